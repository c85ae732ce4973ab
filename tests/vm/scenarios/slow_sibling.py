# SPDX-License-Identifier: Apache-2.0
"""Of the five drives of a striped array one answers slowly: within 15 minutes it is named, and no other is."""
import json
import statistics

import machine
from devices import Nvme, Slow
from volume_stacks import md

KERNELS = ("6.12",)
PART = "volumes"
SECONDS = 1800
MACHINE = {"append": "nvme_core.multipath=N", "nice": -10}
USUAL, SLOW = 0.004, 0.016  # seconds a read: well above what an emulated guest itself takes
MEMBERS = ("first", "second", "third", "fourth", "slow")
WITHIN, AFTERWARDS = 900, 120  # seconds


def devices():
    return [Nvme(name, Slow("256M", data=True, read=SLOW if name == "slow" else USUAL)) for name in MEMBERS]


def milliseconds_a_read(vm, disk):
    """With what the emulator adds."""
    fields = vm.sh(f"cat /sys/block/{disk}/stat").split()
    return int(fields[3]) / int(fields[0])


def run(vm, check):
    disks = {name: vm.disk(name) for name in MEMBERS}
    vm.sh("modprobe -a md_mod raid0")
    # Emulated drives of one model are not held against each other: they are volumes of a host. Members of an array are.
    array = md(vm, 0, 0, [f"/dev/{disk}" for disk in disks.values()], "--chunk=64")
    daemon = machine.Daemon(vm)
    vm.sh(f"fio --name=load --filename=/dev/{array} --rw=randread --bs=4k --direct=1 --ioengine=libaio --iodepth=8 --numjobs=1 "
          f"--rate_iops=200 --rate_process=poisson --time_based --runtime={WITHIN + 120} --output=/dev/null >/dev/null 2>&1 &")
    begin = vm.clock()
    named, after = set(), WITHIN
    while vm.clock() - begin < min(WITHIN, after + AFTERWARDS):
        vm.sh("sleep 20")
        scrape = daemon.scrape()
        named |= {dict(labels)["device"] for labels, slower in scrape.series("ssdpulse_device_slower_than_siblings").items()
                  if slower == 1}
        after = min(after, vm.clock() - begin) if named else WITHIN
    check.equal(named, {disks["slow"]}, f"named after {after:.0f} s")
    [ratio] = scrape.series("ssdpulse_device_latency_of_siblings_ratio", device=disks["slow"]).values()
    takes = {name: milliseconds_a_read(vm, disk) for name, disk in disks.items()}
    truth = takes["slow"] / statistics.median(one for name, one in takes.items() if name != "slow")
    check.that(0.8 * truth <= ratio <= 1.15 * truth, f"ratio {ratio:.2f}, by the kernel's own count {truth:.2f}")
    words = json.loads(vm.sh(f"curl -sf http://127.0.0.1:{machine.Daemon.PORT}/api/v1/why"))["why"]["remarks"]
    check.that(disks["slow"] in words and "slower than" in words, words)
    print(f"TABLE a slow sibling: named after {after:.0f} s, ratio {ratio:.2f}: {words}")
    daemon.stop()
