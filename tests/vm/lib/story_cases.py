# SPDX-License-Identifier: Apache-2.0
"""What a database suffers from although percentiles over minutes look good, and what else an operator might meet.

Each story has a drive of its own (`array`: a part of one) and a plan: what is done to it, by seconds from the beginning
of the trouble. The effect is in the backend's own log; `expected` is what must be reported about the operations that
were held up: {operation: causes, any of which is right}. Nothing may be reported about any other. The second half was
written from README.md alone.
"""
import time
from dataclasses import dataclass, field

from devices import Nvme, Slow, VirtioBlk

READ, WRITE, FLUSH = 0.02, 0.005, 0.005  # seconds, while all is well
UNKNOWN = ("unknown",)
UPPER = 128 << 20  # the half of a drive whose writes are commits
# Few I/Os a second, from many jobs that think: the delays are large compared with what the emulated guest itself adds.
# (While a command is slow, QEMU's NBD client may notice the answer to another only when the next one is sent: only the
# guest sees that.)
READERS = {"rw": "randread", "numjobs": 8, "thinktime": 270, "size": "128M"}
WRITERS = {"rw": "randwrite", "numjobs": 6, "thinktime": 400, "size": "128M"}
LOG = {"rw": "write", "fsync": 1, "thinktime": 100, "size": "64M"}  # one at a time: each commit is one flush
DSYNC = {"rw": "write", "sync": "dsync", "thinktime": 100, "offset": "128M", "size": "64M"}  # with FUA, then a flush
FIO = ("fio --direct=1 --ioengine=psync --bs=4k --norandommap --randrepeat=0 --thread --time_based "
       "--runtime={seconds} {jobs} >/tmp/{name}.words 2>&1 & ")


def fio(name, target, jobs, seconds):
    """A script that starts these jobs on /dev/TARGET. `thinktime` is in milliseconds; no two are equal, or the jobs
    would run in step."""
    words = []
    for job in jobs:
        job = dict(job)
        count, think = job.pop("numjobs", 1), job.pop("thinktime")
        options = " ".join(f"--{key}={value}" for key, value in job.items())
        words += [f"--name={name} --filename=/dev/{target} {options} "
                  f"--thinktime={1000 * think * (1 + (number - (count - 1) / 2) * 0.31 / count):.0f}" for number in range(count)]
    return FIO.format(seconds=seconds, jobs=" ".join(words), name=name)


@dataclass
class Story:
    load: tuple
    plan: object = None  # (drive, random): [(second, what to do)]; a drive has .set(), .stall() and .guest(script)
    expected: dict = field(default_factory=dict)
    healthy: dict = field(default_factory=dict)  # of the backend
    edges: bool = True  # outliers have none
    commits: str = ""  # what holds up a commit: the kind of command; "": there is no figure
    array: str = ""
    cost: bool = True  # what is usual does not change, so that the excess is what the drive added
    goes_on: bool = False  # so long that the log reports it while it lasts
    nvme: bool = False  # has FUA, but answers as late as the emulator's main loop: for a floor of 300 ms
    late: tuple = ()  # operations whose answers QEMU's NBD client notices late while others are held up: not judged
    apart: float = 5  # seconds without a command held up that separate two episodes

    def device(self, serial):
        backend = Slow("256M", **{"read": READ, "write": WRITE, "flush": FLUSH, **self.healthy})
        return Nvme(serial, backend) if self.nvme else VirtioBlk(serial, backend, own_thread=True)


def added(seconds_on, *rules):
    """These rules for some seconds."""
    def plan(drive, random):
        begin = random.uniform(0, 5)
        return [(begin, lambda: drive.set(added=rules)), (begin + seconds_on, lambda: drive.set(added=()))]
    return plan


def freezes(count, every, seconds, first=0.0):
    def plan(drive, random):
        begin = first + random.uniform(0, 3)
        return [(begin + number * every, lambda: drive.stall(seconds)) for number in range(count)]
    return plan


def only_reads_freeze(drive, random):
    begin = random.uniform(0, 20)
    return [(begin, lambda: drive.set(added=({"kind": "read", "until": time.time() + 6},))),
            (begin + 8, lambda: drive.set(added=()))]


def creeping(drive, random):
    """Ten times slower in 150 s, a little at a time; then a freeze."""
    steps = [(0.5 * step, lambda step=step: drive.set(read=0.01 + 0.0003 * step)) for step in range(300)]
    return [*steps, (160 + random.uniform(0, 3), lambda: drive.stall(5))]


def trims(drive, random):
    """Each piece takes a second, and commands that the drive makes wait for trims wait."""
    return [(random.uniform(0, 20), lambda: drive.guest("blkdiscard --force --step 16M /dev/{disk}"))]


BLIND = {
    "flush": Story((READERS, LOG), added(20, {"kind": "flush", "seconds": 1.5}),
                   {"commit": ("flush",), "flush": ("flush",)}, commits="flush"),
    "fua": Story((READERS, DSYNC), added(20, {"kind": "write", "from": UPPER, "seconds": 1.5}),
                 {"commit": UNKNOWN, "write": UNKNOWN}, commits="write", nvme=True),
    "freeze": Story((READERS, WRITERS), freezes(3, 40, 0.8), {"read": UNKNOWN, "write": UNKNOWN}),
    "outliers": Story(({**READERS, "thinktime": 150},), added(100, {"kind": "read", "share": 0.003, "seconds": 0.8}),
                      {"read": UNKNOWN}, healthy={"read": 0.001}, edges=False, apart=200),
    "brownout": Story(({**READERS, "numjobs": 12}, {**WRITERS, "numjobs": 8}),
                      added(60, {"kind": "read", "seconds": 0.6}, {"kind": "write", "seconds": 0.6}),
                      {"read": UNKNOWN, "write": UNKNOWN}, healthy={"read": 0.3, "write": 0.3}),
    "thousandth": Story(({**READERS, "numjobs": 6, "thinktime": 400}, {**WRITERS, "numjobs": 4, "thinktime": 80}),
                        added(100, {"kind": "read", "every": 1000, "seconds": 20}), {"read": UNKNOWN},
                        healthy={"read": 0.001}, edges=False, apart=200),
}
NEW = {
    "trims": Story((READERS,), trims, {"read": ("discard",)}, healthy={"trim": 1, "reads_wait_for_trim": True}),
    "neighbour": Story((READERS,)),  # of the drive above
    # So long that what an emulated guest itself adds, some 0.15 s for each write of this size, is small in comparison.
    "large": Story((READERS, WRITERS, {"rw": "randwrite", "bs": "128k", "thinktime": 200, "size": "128M"}),
                   added(24, {"kind": "write", "at_least": 65536, "seconds": 3}), {"write": UNKNOWN}),
    "left": Story(({**READERS, "numjobs": 10, "size": "256M"},), freezes(3, 50, 4), {"read": UNKNOWN}, array="md0"),
    "right": Story((), freezes(3, 50, 4, first=20), {"read": UNKNOWN}, array="md0"),
    "creeping": Story((READERS,), creeping, {"read": UNKNOWN}, healthy={"read": 0.01}, cost=False),
    "trimlog": Story((READERS, LOG), trims,
                     {"read": ("discard",), "commit": ("flush", "discard"), "flush": ("unknown", "discard")},
                     healthy={"trim": 1, "reads_wait_for_trim": True, "flushes_wait_for_trim": True}, commits="flush",
                     late=("write",)),
    # All eight readers wait, but the drive may have seen only seven: its log gives no figure.
    "long": Story((READERS, LOG), freezes(1, 0, 170), {"read": UNKNOWN, "write": UNKNOWN, "flush": UNKNOWN,
                                                       "commit": ("unknown", "flush")}, commits="flush", goes_on=True, cost=False),
    "readers": Story((READERS, WRITERS), only_reads_freeze, {"read": UNKNOWN}, late=("write",)),
}
STORIES = {**BLIND, **NEW}
