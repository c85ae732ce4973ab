# SPDX-License-Identifier: Apache-2.0
"""64 drives and 255 CPU numbers fit into the unit's memory limit, kernel tables included; with less, it says so."""
import re
from pathlib import Path

import machine

MACHINE = {"cpus": "2,maxcpus=255", "memory": "2G"}
# Since 5.11 the tables are charged to the service; from 6.9 on, absent CPUs have no number in such a guest.
KERNELS = ("6.1",)
UNIT = Path(__file__).resolve().parents[3] / "deploy/systemd/ssdpulse.service"
DRIVES, GROUP = 64, "/tmp/cgroup/service"


def devices():
    return []


def run(vm, check):
    [allowed] = re.findall(r"^MemoryMax=(\d+)M$", UNIT.read_text(), re.M)
    vm.sh(f"modprobe null_blk nr_devices={DRIVES} gb=1 queue_mode=2 submit_queues=2; mkdir /tmp/cgroup; "
          f"mount -t cgroup2 cgroup /tmp/cgroup; echo +memory >/tmp/cgroup/cgroup.subtree_control; mkdir {GROUP}")
    check.equal(vm.sh("cat /sys/devices/system/cpu/possible"), "0-254", "CPU numbers")
    enter = f"sh -c 'echo $$ >{GROUP}/cgroup.procs && exec \"$@\"' sh "
    vm.sh(f"echo 32M >{GROUP}/memory.max")
    code, words = vm.run(f"{enter} timeout 40 ssdpulse run --devices.include '*' --history.directory ''", 60)
    check.that(code == 1 and b"memory" in words.splitlines()[-1], f"within 32 MB: exit code {code}, {words[-200:]!r}")
    vm.sh(f"echo {allowed}M >{GROUP}/memory.max; printf '#!/bin/sh\\necho $$ >{GROUP}/cgroup.procs\\nexec /usr/bin/ssdpulse \"$@\"\\n' >/usr/sbin/ssdpulse && "
          "chmod +x /usr/sbin/ssdpulse")
    daemon = machine.Daemon(vm)
    vm.sh("for disk in /dev/nullb*; do dd if=$disk of=/dev/null bs=4k count=20 iflag=direct; "
          "dd if=/dev/zero of=$disk bs=4k count=20 oflag=direct; done 2>/dev/null", 200)
    for _ in range(5):
        scrape = daemon.at_rest(1.5)
    kernel = sum(scrape.series("ssdpulse_kernel_memory_bytes").values())
    peak, now = (int(vm.sh(f"cat {GROUP}/memory.{what}")) for what in ("peak", "current"))
    events = dict(line.split() for line in vm.sh(f"cat {GROUP}/memory.events").splitlines())
    check.that(peak <= int(allowed) * 0.7 * 2**20 and kernel > 100e6,
               f"{peak / 2**20:.0f} MiB at most, {now / 2**20:.0f} now ({kernel / 2**20:.0f} of them tables), of {allowed}")
    print(f"NOTE {events}; cpu {scrape.value('process_cpu_seconds_total'):.1f} s")
    daemon.stop()
