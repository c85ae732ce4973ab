# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus and Alertmanager, with the rules as they are shipped: silent in health, awake in trouble, silent again.

Two drives get into trouble, one after the other: garbage collection on one, and, while the five minutes that the first
alert looks back pass, an fstrim that stalls reads on the other. In the long form health lasts longer, and the stall
lasts until the general alert is due, which waits for ten minutes. At the end this Prometheus is sent every query of the
dashboards, rules and alerts.
"""
import sys
import tarfile
import time
from pathlib import Path

import machine
from devices import Backend, Nvme, NvmeSubsystem, Slow, Way
from troubles import Trouble, after, fired, wait

sys.path.append(str(Path(__file__).resolve().parents[2] / "system"))
import walk  # noqa: E402
from alerts.stack import INSTANCE, stack  # noqa: E402

KERNELS = ("6.12",)  # what is judged does not depend on the kernel
PART = "alarms"  # ten minutes; CI has system.test_alerts_end_to_end, on a made-up page
# The guest does little, and its speed is not judged; but healthy drives must not be held up by other guests.
MACHINE = {"append": "nvme_core.multipath=N", "cpus": 1, "nice": -10}
SECONDS = 900
SUITE, FORM = "sid", "native"
HEALTHY, LONG_HEALTHY = 180, 720  # seconds; the stall of the long form must stay the exception
DISCARD, GC, GENERAL = (f"Ssdpulse{name}" for name in (
    "TailLiftedByDiscard", "TailLiftedByGarbageCollection", "TailLatencyHigh"))
# True of a host just started with an fstrim in working hours, and looks back for an hour: it may fire, and keep firing.
BESIDE_THE_POINT = {"SsdpulseDiscardInWorkingHours"}
FIRES_WITHIN, GENERAL_WITHIN = 120, 780
DISCARD_ENDS, GC_ENDS = 120, 420  # they look back one minute, and five
READ = 0.004  # what a healthy drive takes
SICK = 3  # one that moves reclaim units; a guest on a busy host has tails of half a second by itself
TRIM = 1  # of one group of blocks: there are 128, in the long form 1024
GROUP, LONG_GROUP = 2048, 256
FIO = "--direct=1 --ioengine=psync --bs=4k --norandommap --randrepeat=0 --thread --time_based --runtime=1h"
TABLE = "/mnt/shop/table"


def devices():
    """All with the same pages: what a model refused once is not requested again, and all are of one model."""
    return [
        # ext4 on a drive on which no read passes a trim, readers of one large file.
        Nvme("shop", Slow("1G", data=True, read=READ, write=READ), ocp="on"),
        # A drive that reports what it writes.
        NvmeSubsystem("churn", Slow(read=READ, write=READ), fdp="fdp.runs=1M,fdp.nrg=1,fdp.nruh=4", ocp=True),
        # A volume with a file system and a log that is flushed; nothing happens to it.
        Nvme("ledger", Backend("512M", data=True), ocp="on"),
        Way("way", machine.Daemon.PORT),
    ]


def make_file_systems(vm, disks):
    """Small groups of blocks, because ext4 sends one trim for the free space of each: a large drive has thousands."""
    make = "mke2fs -q -F -t ext4 -E lazy_itable_init=0,lazy_journal_init=0"
    vm.sh(f"modprobe -a ext4 dm_mod; {make} -O ^flex_bg -g {LONG_GROUP if vm.long else GROUP} /dev/{disks['shop']}; "
          f"mkdir -p /mnt/shop /mnt/ledger; mount -t ext4 -o noatime /dev/{disks['shop']} /mnt/shop; "
          f"dd if=/dev/zero of={TABLE} bs=1M count=64 conv=fsync 2>/dev/null; "
          f"dmsetup create ledger --table '0 {256 << 11} linear /dev/{disks['ledger']} 2048'; dmsetup mknodes; "
          f"{make} /dev/mapper/ledger; mount -t ext4 -o discard /dev/mapper/ledger /mnt/ledger", 120)
    vm.devices["shop"].backend.set(trim=TRIM, reads_wait_for_trim=True)


def start_loads(vm, disks):
    """Sessions that think between two I/Os, a log, and occasionally a file with a lifetime hint."""
    jobs = {"readers": f"--filename={TABLE} --rw=randread --numjobs=8 --thinktime=150ms",
            "writers": f"--filename={TABLE} --rw=randwrite --numjobs=2 --thinktime=150ms",
            "churn": f"--filename=/dev/{disks['churn']} --rw=randrw --numjobs=8 --thinktime=200ms",
            "log": "--filename=/mnt/ledger/log --rw=write --size=16M --fsync=4 --thinktime=100ms"}
    vm.sh("".join(f"fio --name={name} {FIO} {job} >/tmp/{name}.words 2>&1 & " for name, job in jobs.items())
          + "while sleep 20; do tagged_write /mnt/ledger/hinted 1048576 hint=4; rm /mnt/ledger/hinted; done "
            ">/dev/null 2>&1 &")


def collect_garbage(vm, check, servers, disk):
    """Reclaim units are moved, and everything else waits. Still unresolved at the end."""
    backend = vm.devices["churn"].backend
    trouble = Trouble(servers, check, GC, disk)
    backend.set(read=SICK, write=SICK)
    vm.sh(f"touch /tmp/moving; while [ -e /tmp/moving ]; do nvme fdp update /dev/{disk} --pids=0; sleep 1; done "
          ">/tmp/mover 2>&1 &")
    trouble.fires(FIRES_WITHIN, f"On {INSTANCE}, garbage collection .* (read|write)s on {disk} in [1-9][0-9.]*% of .* "
                                r"Write amplification in that time: [1-9]")
    vm.sh("rm /tmp/moving")
    backend.set(read=READ, write=READ)
    trouble.ends()
    return trouble


def stall_by_fstrim(vm, check, servers, disk):
    trouble = Trouble(servers, check, DISCARD, disk)
    vm.sh("fstrim /mnt/shop >/tmp/fstrim 2>&1 &")
    trouble.fires(FIRES_WITHIN, f"On {INSTANCE}, reads on {disk} that overlap a discard take (0.9|[1-9]).* s .*; "
                                r"[0-9.]+ s is usual. Trigger: fstrim")
    hold_back(vm, check, servers, disk)
    vm.sh("kill $(pidof fstrim) 2>/dev/null; true")
    vm.wait_for("! pidof fstrim", 30)
    trouble.ends()
    trouble.resolves(DISCARD_ENDS)


def hold_back(vm, check, servers, disk):
    """The general alert is inhibited while the cause is known. It waits for ten minutes, so only in the long form does
    Prometheus send it; else the test does, as Prometheus would. For a drive without trouble it is delivered."""
    if vm.long:
        seconds = wait(GENERAL_WITHIN, lambda: (GENERAL, disk) in servers.firing())
        check.that(seconds is not None, f"{GENERAL} fires {after(seconds)} more")
    else:
        for device in (disk, "nvme9n1"):
            servers.notify({"alertname": GENERAL, "job": "ssdpulse", "instance": INSTANCE, "device": device,
                            "operation": "read", "severity": "warning"})
        check.that(wait(30, lambda: servers.notified().get((GENERAL, "nvme9n1")) == "active")
                   is not None, f"{GENERAL} of another drive is told")
    seconds = wait(30, lambda: servers.notified().get((GENERAL, disk)) == "suppressed")
    check.that(seconds is not None, f"{GENERAL} of this drive is held back: {servers.notified()}")


def run(vm, check):
    disks = {serial: vm.disk(serial) for serial in ("shop", "churn", "ledger")}
    vm.devices["way"].open(vm)
    make_file_systems(vm, disks)
    # The guest is occasionally held up by its host, for less than the floor.
    vm.sh("mkdir -p /tmp/history; echo 1 >/proc/sys/kernel/bpf_stats_enabled; printf 'spikes: { floor: 1s }\\n"
          "history: { directory: /tmp/history }\\n' >/tmp/alarms.yaml")
    daemon = machine.Daemon(vm, "--config", "/tmp/alarms.yaml", f"--web.listen-address 0.0.0.0:{machine.Daemon.PORT}")
    start_loads(vm, disks)
    healthy = LONG_HEALTHY if vm.long else HEALTHY
    with stack(vm.state, SUITE, FORM, vm.devices["way"].port, hurried=False) as servers:
        check.that(wait(60, lambda: servers.server.query('up{job="ssdpulse"} == 1')) is not None,
                   "the guest is scraped")
        begin = time.time()
        time.sleep(healthy)
        check.equal(fired(servers, begin, time.time()), {}, f"{healthy} s of healthy load: what fires")
        check.equal(servers.notified(), {}, "Alertmanager was told of")
        garbage = collect_garbage(vm, check, servers, disks["churn"])
        stall_by_fstrim(vm, check, servers, disks["shop"])
        garbage.resolves(GC_ENDS)
        end = time.time()
        spans = fired(servers, begin, end)
        print(f"     fired, in seconds from begin: {spans}")
        expected = {(GC, disks["churn"]), (DISCARD, disks["shop"])} | ({(GENERAL, disks["shop"])} if vm.long else set())
        check.equal({key for key in spans if key[0] not in BESIDE_THE_POINT}, expected, "all that fired")
        check.equal(servers.server.complaints(), [], "complaints of Prometheus")
        walk.judge(check, servers.server, FORM, begin, end)
    with tarfile.open(vm.state / "prometheus.tar.gz", "w:gz") as archive:  # kept with --keep: for screenshots
        archive.add(vm.state / f"{SUITE}-{FORM}", arcname="prometheus")
    vm.sh("kill $(pidof fio); true")
    daemon.stop()
