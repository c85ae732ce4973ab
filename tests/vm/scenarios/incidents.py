# SPDX-License-Identifier: Apache-2.0
"""One incident after another: while each goes on, and afterwards, the first line is about it, not about an older one.

Each story has a drive and a daemon of its own. Those of a group happen at the same time; an emulated processor is too
slow for more daemons than that. What is right follows from the plan alone. SSDPULSE_STORIES=NAME,NAME: only these.
With SSDPULSE_RECORD_TICKS=DIRECTORY, the ticks of each story are recorded there, with what must be answered
(tests/fixtures/ticks), instead of asking daemons.
"""
import json
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

import machine
import owners
from devices import Slow, VirtioBlk
from spike_lines import ahead

KERNELS = ("6.12",)  # what is judged does not depend on the kernel
PART = "incidents"  # CI replays what was recorded
ALONE = True
MACHINE = {"append": "nvme_core.multipath=N", "memory": "2G", "nice": -10}
SECONDS = 2400
SETTLE = 10  # seconds until the load is even
GROUPS = ("db", "wal", "batch", "storm", "noisy", "loader")
HALF = "--offset=128M --size=64M"  # a part of the drive that the database does not use
READS = ("db", "--rw=randread --bs=4k --ioengine=psync --numjobs=4 --thinktime=100000 --size=64M")
FAST_READS = ("db", "--rw=randread --bs=4k --ioengine=psync --numjobs=2 --thinktime=40000 --size=64M")
WRITES = ("db", "--rw=randwrite --bs=4k --ioengine=psync --numjobs=2 --thinktime=150000 --offset=64M --size=32M")
COMMITS = ("wal", "--rw=write --bs=4k --ioengine=psync --fsync=1 --thinktime=40000 --offset=96M --size=16M")
FEW_COMMITS = ("wal", "--rw=write --bs=4k --ioengine=psync --fsync=1 --thinktime=950000 --offset=96M --size=16M")
HEALTHY = {"read": 0.02, "write": 0.005, "flush": 0.01, "trim": 0}
HOST_BUSY = 0x8000
SCSI = "/sys/bus/pseudo/drivers/scsi_debug"


@dataclass
class Story:
    load: tuple
    plan: object  # (drive): [(second, words, what to do)]
    asks: tuple  # (second, what must be answered; {disk} is its name)
    healthy: dict
    mounted: bool = False
    scsi: bool = False


class Drive:
    """What a plan may do."""

    def __init__(self, vm, serial, disk):
        self._vm, self.serial, self.disk = vm, serial, disk
        backend = vm.devices[serial].backend if serial in vm.devices else None
        self.set, self.stall = (backend.set, backend.stall) if backend else (None, None)

    def guest(self, script):
        self._vm.sh(f"{{ {script.format(disk=self.disk)}; }} >/tmp/{self.serial}.guest 2>&1 &")

    def job(self, group, options, seconds):
        self._vm.sh(load(group, self.serial, f"--filename=/dev/{self.disk}", f"{options} --runtime={seconds}"))


def load(group, serial, target, options):
    """A background load by a member of the cgroup."""
    return (f"sh -c 'echo $$ >{owners.GROUPS}/{group}/cgroup.procs; exec fio --name=job {target} --direct=1 "
            f"--time_based --thread --norandommap --randrepeat=0 {options}' >/tmp/fio.{serial}.{group} 2>&1 & ")


def in_turn(begin, seconds, words, settings, back):
    """These settings of the drive for some seconds."""
    return lambda drive: [(begin, words, lambda: drive.set(**settings)),
                          (begin + seconds, "over", lambda: drive.set(**back))]


def chain(drive):
    return [(60, "a batch job has 32 writes in flight for 41 s", lambda: drive.job(
                "batch", f"--rw=randwrite --bs=64k --ioengine=libaio --iodepth=32 {HALF}", 41)),
            (150, "blkdiscard for 33 s, reads and flushes wait for it", lambda: (drive.set(
                trim=2, reads_wait_for_trim=True, flushes_wait_for_trim=True), drive.guest(
                    "blkdiscard --force --offset 192M --step 4M /dev/{disk}"))),
            (315, "nothing completes for 16 s", lambda: drive.stall(16))]


def fstrim(drive):
    return [(60, "fstrim for about 30 s; reads, writes and flushes wait for it", lambda: (drive.set(
        trim=2, reads_wait_for_trim=True, writes_wait_for_trim=True, flushes_wait_for_trim=True), drive.guest(
            f"for part in $(seq 0 14); do fstrim -o $((part * 16))M -l 16M /mnt/{drive.serial}; done; "
            f"touch /tmp/{drive.serial}.end")))]


def busy(drive):
    def switch(options, every):
        return lambda: drive.guest(f"echo {options} >{SCSI}/opts; echo {every} >{SCSI}/every_nth")
    return [step for begin in (60, 75, 90) for step in (
        (begin, "the SCSI host is busy for 3 s: requeues, no errors", switch(HOST_BUSY, 1)),
        (begin + 3, "over", switch(0, 0)))]


def write_back(drive):
    flood = "--rw=write --bs=128k --ioengine=libaio --iodepth=32 " + HALF
    return [(begin, "write-back of a few seconds: reads wait behind it",
             lambda: drive.job("loader", flood, 3)) for begin in (90, 120)]


def bulk(drive):
    return [(60, "a bulk load for 60 s", lambda: drive.job(
                "loader", f"--rw=write --bs=64k --ioengine=libaio --iodepth=16 {HALF}", 60)),
            (240, "reads take 400 ms more, for 30 s", lambda: drive.set(added=({"kind": "read", "seconds": 0.4},))),
            (270, "over", lambda: drive.set(added=()))]


def neighbour(group, options, words, begin, seconds):
    return lambda drive: [(begin, f"{words}, for {seconds} s", lambda: drive.job(group, options, seconds))]


def during_and_after(begin, end, what):
    """5 s into it, 5 s after it, 2 minutes after it."""
    return tuple((second, f"device={{disk}} | {what}") for second in (begin + 5, end + 5, end + 120))


TRIM = "contains=trim or discard | lacks=does not show;fsync;flushes of its cache"
STORIES = {
    "chain": Story((READS, COMMITS), chain, (
        (65, "device={disk} | contains=/batch"),
        *((second, "device={disk} | contains=trim or discard | lacks=/batch;does not show")
          for second in (155, 190, 304)),
        *((second, "device={disk} | lacks=/batch;trim;discard") for second in (320, 336, 451))),
        {**HEALTHY, "bytes_per_second": 6_000_000}),
    "fstrim": Story((READS, WRITES, COMMITS), fstrim, during_and_after(60, 98, TRIM), HEALTHY, mounted=True),
    # Without reads: on some paths to a drive they wait behind a flush, and are truly slow, too.
    "flush": Story((COMMITS,), in_turn(40, 40, "each flush takes 400 ms, and so there are fewer fsyncs",
                                       {"flush": 0.4}, {"flush": 0.01}),
                   during_and_after(40, 80, "contains=commit or flush | lacks=reads take;calls fsync so often;"
                                            "flushes of its cache (fsync) are in flight"), HEALTHY),
    "storm": Story((READS, COMMITS), neighbour(
        "storm", f"--rw=randwrite --bs=16k --ioengine=psync --numjobs=40 --fsync=1 {HALF}", "40 threads call fsync",
        60, 30),
        during_and_after(60, 90, "contains=/storm | lacks=reads take"),
        {**HEALTHY, "cache_bytes": 64 << 20, "cache_bytes_per_second": 3_000_000}),
    "flood": Story((READS,), neighbour("noisy", f"--rw=write --bs=128k --ioengine=libaio --iodepth=32 {HALF}",
                                       "a neighbour floods the drive with writes", 60, 24),
                   during_and_after(60, 84, "contains=reads | contains=/noisy | contains=/db"),
                   {**HEALTHY, "bytes_per_second": 6_000_000}),
    "bulk": Story((READS,), bulk, ((245, "device={disk} | contains=reads | lacks=/loader"),
                                   (275, "device={disk} | contains=reads | lacks=/loader"),
                                   (390, "device={disk} | contains=reads | lacks=/loader")),
                  {**HEALTHY, "bytes_per_second": 8_000_000}),
    "busy": Story((("db", "--rw=randrw --bs=4k --ioengine=psync --numjobs=4 --thinktime=50000"),), busy,
                  tuple((second, "device={disk} | contains=on the host or sent again | lacks=error | evidence_lacks=errors=")
                        for second in (65, 150)), {}, scsi=True),
    "gap_a": Story((FAST_READS, FEW_COMMITS), neighbour(
        "storm", f"--rw=randwrite --bs=4k --ioengine=psync --numjobs=40 --fsync=1 {HALF}", "40 threads call fsync; "
        "reads wait for flushes; there was one fsync a second before", 60, 21),
        during_and_after(60, 81, "contains=reads | contains=flush or fsync or commit"),
        {"read": 0.005, "write": 0.005, "flush": 0.1, "reads_wait_for_flush": True}),
    "gap_b": Story((FAST_READS,), in_turn(60, 90, "of 1,000 reads, 3 take half a second more",
                                          {"added": ({"kind": "read", "every": 333, "seconds": 0.5},)}, {"added": ()}),
                   ((130, "device={disk} | contains=read | spike=read"), (160, "device={disk} | contains=read")),
                   {"read": 0.005, "write": 0.005, "flush": 0.005}),
    "gap_c": Story((READS,), write_back, ((98, "device={disk} | contains=reads | spike=read"),
                                          (128, "device={disk} | contains=reads | spike=read")),
                   {**HEALTHY, "bytes_per_second": 6_000_000}),
}
TOGETHER = (("chain", "fstrim", "flush"), ("storm", "flood", "gap_a"), ("bulk", "gap_b", "gap_c"), ("busy",))


def devices():
    return [VirtioBlk(serial, Slow("256M", data=story.mounted), own_thread=True)
            for serial, story in STORIES.items() if not story.scsi]


class OneDisk(machine.Daemon):
    """A daemon that measures one disk."""

    def __init__(self, vm, disk, port):
        self.PORT = port
        super().__init__(vm, "--devices.include", disk, "--web.listen-address", f"127.0.0.1:{port}",
                         log=f"daemon.{disk}.log")

    def why(self):
        return json.loads(self.vm.sh(f"curl -sf http://127.0.0.1:{self.PORT}/api/v1/why"))["why"]


def wrong_in(why, expected):
    """What is wrong with an answer; what only a replay sees is not judged here."""
    wrong = []
    for part in expected.split(" | "):
        key, value = part.split("=", 1)
        texts = value.split(";")
        if key == "device":
            named = why["device"] == value or re.search(rf"\b{value}\b", why["sentence"])
            wrong += [] if named or value == "none" and not why["device"] else [part]
        elif key == "contains":
            wrong += [text for text in texts if not any(one in why["sentence"] for one in text.split(" or "))]
        elif key == "lacks":
            wrong += [text for text in texts if text in why["sentence"]]
        elif key == "evidence_lacks":
            wrong += [text for text in texts if text in json.dumps(why)]
    return wrong


def prepare(vm, serial, story):
    """The story's disk, and where its load goes."""
    if story.scsi:
        vm.sh("modprobe scsi_debug dev_size_mb=256 ndelay=2000000 && modprobe sd_mod")
        vm.wait_for("ls /sys/bus/pseudo/drivers/scsi_debug/adapter*/host*/target*/*/block/*")
        disk = vm.sh("ls /sys/bus/pseudo/drivers/scsi_debug/adapter*/host*/target*/*/block | tail -n 1").strip()
    else:
        disk = vm.disk(serial)
        vm.devices[serial].backend.set(read=0, write=0, flush=0)
    if not story.mounted:
        return disk, f"/dev/{disk}"
    vm.sh(f"modprobe -q crc32c_generic; modprobe -q ext4; "
          f"mke2fs -q -t ext4 -F -E nodiscard,lazy_itable_init=0 /dev/{disk}; "
          f"mkdir -p /mnt/{serial}; mount /dev/{disk} /mnt/{serial}; "
          f"dd if=/dev/zero of=/mnt/{serial}/data bs=1M count=112 conv=fsync 2>&1", 120)
    return disk, f"/mnt/{serial}/data"


def run(vm, check):
    owners.make_groups(vm, GROUPS)
    wanted = os.environ.get("SSDPULSE_STORIES", ",".join(STORIES)).split(",")
    for group in TOGETHER:
        if serials := [serial for serial in group if serial in wanted]:
            run_together(vm, check, serials)


def run_together(vm, check, serials):
    directory = os.environ.get("SSDPULSE_RECORD_TICKS")
    stories = {serial: STORIES[serial] for serial in serials}
    prepared = {serial: prepare(vm, serial, story) for serial, story in stories.items()}
    disks = {serial: disk for serial, (disk, _) in prepared.items()}
    for serial, story in stories.items():
        if not story.scsi:
            vm.devices[serial].backend.set(**story.healthy)
    # The daemons start before the loads, which leave little of an emulated processor.
    daemons = {} if directory else {serial: OneDisk(vm, disk, machine.Daemon.PORT + number)
                                    for number, (serial, disk) in enumerate(disks.items())}
    for serial, story in stories.items():
        for number, (group, options) in enumerate(story.load):
            vm.sh(load(group, f"{serial}.{number}", f"--filename={prepared[serial][1]}", f"{options} --runtime=3600"))
    time.sleep(SETTLE)
    if directory:
        vm.sh("rm -rf /tmp/ticks; mkdir /tmp/ticks; "
              f"ssdpulse_tick_recorder --each /tmp/ticks {' '.join(disks.values())} >/tmp/recorder 2>&1 & "
              "echo $! >/tmp/recorder.pid")
        vm.wait_for("grep -q recording /tmp/recorder", 60)
    offset, _ = ahead(vm)
    steps, done = [], {serial: [] for serial in serials}
    for serial, story in stories.items():
        for second, words, act in story.plan(Drive(vm, serial, disks[serial])):
            steps.append((second, serial, words, act))
        for second, expected in story.asks:
            steps.append((second, serial, "at", expected.format(disk=disks[serial])))
    began = time.monotonic()
    for second, serial, words, act in sorted(steps, key=lambda step: step[0]):
        time.sleep(max(0, began + second - time.monotonic()))
        at = time.time() + offset
        if words != "at":
            act()
            done[serial].append(f"# {at:.1f} {words}")
        elif directory:
            done[serial].append(f"at {at:.1f} | {act}")
        else:
            why = daemons[serial].why()
            wrong = wrong_in(why, act)
            check.that(not wrong, f"{serial}, second {second}: {wrong or 'right'}: {why['sentence']}")
    time.sleep(3)
    check.that("fstrim" not in serials or vm.run("test -e /tmp/fstrim.end")[0] == 0, "fstrim has ended")
    if directory:
        keep(vm, check, Path(directory), disks, done)
    vm.sh(f"kill $(cat {' '.join(f'{owners.GROUPS}/{group}/cgroup.procs' for group in GROUPS)}); sleep 1; true")
    for daemon in daemons.values():
        daemon.stop()


def keep(vm, check, directory, disks, done):
    """Brings the recordings to this host, each next to what must be answered."""
    vm.sh("kill $(cat /tmp/recorder.pid)")
    vm.wait_for("! kill -0 $(cat /tmp/recorder.pid)", 20)
    for serial, lines in done.items():
        code, recording = vm.run(f"cat /tmp/ticks/{disks[serial]}.ticks.gz")
        check.that(code == 0 and 0 < len(recording) <= 200 << 10, f"{serial}: a recording of {len(recording)} bytes")
        (directory / f"{serial}.ticks.gz").write_bytes(recording)
        (directory / f"{serial}.expect").write_text("\n".join(lines) + "\n")
