#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Are the device, queue and total histograms those of an independent full trace of the same requests, in each bucket?

The trace brackets each of the daemon's clock readings, so an I/O's bucket is uncertain only if its own bracket contains
a bucket bound. fio sees the same I/Os from outside and never sees them faster.
"""
from lib import compare, rig
from lib.observe import observe

COMMON = {"rw": "randrw", "bssplit": "4k/70:16k/20:64k/10", "size": "1G", "io_size": "16T"}
SCENARIOS = (
    ("one by one", "none", {"ioengine": "psync", "iodepth": 1, "number_ios": 10_000}),
    ("depth 32, io_uring", "none", {"ioengine": "io_uring", "iodepth": 32, "number_ios": 40_000}),
    ("batches of 16 through mq-deadline, libaio", "mq-deadline",
     {"ioengine": "libaio", "iodepth": 64, "iodepth_batch_submit": 16, "number_ios": 30_000}),
)


def test(check, state):
    seed = rig.fresh_seed()
    for name, scheduler, options in SCENARIOS:
        print(f"-- {name}")
        if rig.LONG:
            options = {**options, "number_ios": options["number_ios"] * 20}
        with rig.ram_disks(state) as [disk]:
            disk.set_queue("scheduler", scheduler)
            seen = observe(check, state, [disk], lambda: rig.fio(disk, seed, **COMMON, **options))
            compare.everything(check, seen, disk)
            for operation in ("read", "write"):
                compare.fio_is_slower(check, seen.result, seen.trace(disk), operation)


rig.main(test)
