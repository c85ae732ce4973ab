# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with a drive, and what must not be mistaken for it? Each case has a drive of its own, so that all
of them can go wrong at once; what a case does is known to the second.

`cause` is what a spike must be attributed to; None: silence. `healthy` and `sick` are settings of slow_disk.py before
and during; `guest` is what runs in the guest meanwhile, and its commands determine when it began and ended. `updates`:
the drive's media writes exceed the host's meanwhile.
"""
from dataclasses import dataclass, field

from devices import Nvme, NvmeSubsystem, Slow

READ, WRITE = 0.005, 0.005  # seconds, while all is well
SLOW = {"read": 1.5, "write": 1.5}  # a guest on a busy host is occasionally slow by itself
UPDATE = "while [ -e /tmp/sick ]; do nvme fdp update /dev/{disk} --pids=0; sleep 0.3; done"
# A few jobs with one I/O in flight each: one that is held up does not catch up afterwards. The writer does nothing
# else, so that there is a write soon after everything became slow.
LOAD = ({"rw": "randread", "numjobs": 2, "thinktime": "50ms"}, {"rw": "randwrite", "thinktime": "50ms"})


@dataclass
class Case:
    cause: str | None
    sick: dict = field(default_factory=dict)
    stall: bool = False
    guest: str = ""
    hot: bool = False
    fdp: bool = False
    updates: bool = False
    harms: tuple = ("read", "write")  # whose beginning and end are known
    healthy: dict = field(default_factory=dict)
    ramp: float = 0  # slower by this much per second, all the time
    load: tuple = LOAD  # jobs
    prepare: str = ""
    options: dict = field(default_factory=dict)  # of the drive

    def device(self, serial):
        backend = Slow("256M", **{"read": READ, "write": WRITE, **self.healthy})
        return NvmeSubsystem(serial, backend, fdp="fdp.runs=1M,fdp.nrg=1,fdp.nruh=4") if self.fdp else \
            Nvme(serial, backend, **self.options)


TRIM = "blkdiscard --force --step 32M /dev/{disk}"  # 8 of them
FIO = "fio --name=job --filename=/dev/{disk} --direct=1 --thread --time_based --runtime={seconds} "
CASES = {
    "trim": Case("discard", {"trim": 0.9, "reads_wait_for_trim": True}, guest=TRIM, harms=("read",)),
    "flush": Case("flush", {"flush": 0.9, "reads_wait_for_flush": True},
                  guest=FIO + "--rw=write --bs=4k --fsync=1", harms=("read",)),
    "queue": Case("queue", guest=FIO + "--ioengine=libaio --rw=randread --bs=8k --iodepth=256", healthy={"read": 0.02},
                  options={"mqes": 7}, prepare="modprobe -q mq-deadline; cd /sys/block/{disk}/queue && "
                                               "echo mq-deadline >scheduler && echo 256 >nr_requests",
                  harms=("read",)),  # a write may wait in the scheduler longer than a spike lasts without evidence
    "full": Case("saturation", guest=FIO + "--ioengine=libaio --rw=write --bs=256k --iodepth=64",
                 healthy={"bytes_per_second": 16 << 20}),
    "gc-stall": Case("gc", stall=True, updates=True, fdp=True),
    "gc-slow": Case("gc", SLOW, updates=True, fdp=True),
    "stall": Case("unknown", stall=True, fdp=True),
    "slow": Case("unknown", SLOW),
    "hot": Case("thermal", SLOW, hot=True),
    "errors": Case("error", {"read_errors": 0.2, "error": 1.5}, harms=("read",)),
    "trim-errors": Case("discard", {"trim": 0.9, "reads_wait_for_trim": True, "read_errors": 0.01}, guest=TRIM, harms=("read",)),
    "trim-gc": Case("discard", {"trim": 0.9, "reads_wait_for_trim": True}, guest=TRIM, updates=True, fdp=True, harms=("read",)),
    "quiet": Case(None, load=({"rw": "randrw", "thinktime": "500ms"},)),
    "bursts": Case(None, load=({"rw": "randrw", "numjobs": 8, "thinktime": "4s", "thinktime_blocks": 20},)),
    "ramp": Case(None, ramp=0.0005),
}
FEW = ("trim", "gc-stall", "slow", "quiet")
