#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Is each flush, discard and write-zeroes request counted once, in its own class, with the right bytes?"""
import fcntl
import os
import random
import struct
from collections import Counter

from lib import compare, rig
from lib.observe import observe

BLKDISCARD = 0x1277
MIB = 1 << 20
WRITES = 4_000 if rig.LONG else 1_000


def load(disk, seed, rng):
    """Runs everything; returns the expected counts: Counter of operations, and bytes by operation."""
    count, size = Counter(), Counter()
    for options in ({"fsync": 8}, {"fdatasync": 4}, {"sync": "dsync"}):
        job = rig.fio(disk, seed, rw="randwrite", ioengine="psync", bs="4k", size="256M", number_ios=WRITES, **options)
        count["write"] += job["write"]["total_ios"]
        size["write"] += job["write"]["io_bytes"]
    opened = os.open(disk.path, os.O_RDWR)
    try:
        for _ in range(300):
            length = rng.randrange(1, 512) * 4096
            fcntl.ioctl(opened, BLKDISCARD, struct.pack("QQ", rng.randrange(0, 512 * MIB, 4096), length))
            count["discard"] += 1
            size["discard"] += length
    finally:
        os.close(opened)
    rig.run("blkdiscard", "--offset", 256 * MIB, "--length", 64 * MIB, "--step", 4 * MIB, disk.path)
    count["discard"] += 16
    size["discard"] += 64 * MIB
    for i in range(40):
        rig.run("fallocate", "--punch-hole", "--offset", i * 2 * MIB, "--length", MIB, disk.path)
        count["write_zeroes"] += 1
        size["write_zeroes"] += MIB
    return count, size


def test(check, state):
    seed = rig.fresh_seed()
    with rig.ram_disks(state) as [disk]:
        seen = observe(check, state, [disk], lambda: load(disk, seed, random.Random(seed)), drift=True)
        (count, size), traced = seen.result, seen.trace(disk)
        compare.submitted(check, seen, disk, "discard", count["discard"], size["discard"])
        check.equal(seen.kernel_bytes[disk.name]["write"], size["write"] + size["write_zeroes"],
                    "writes: bytes, by diskstats")
        for operation, want in count.items():
            group = "discard" if operation == "discard" else "write"
            have, unseen = len(traced.of(operation)), seen.unseen(disk, group)
            check.that(want - unseen <= have <= want,
                       f"{operation}: {have} I/Os in the trace of {want}, at most {unseen} not seen")
            beyond = size[operation] - traced.bytes[operation]
            check.that(0 <= beyond <= seen.bytes_beyond(disk, group),
                       f"{operation}: all bytes in the trace but {beyond}")
        least = WRITES // 8 + WRITES // 4
        for what, have in (("flushes", len(traced.of("flush"))), ("parents of sequences", traced.unissued["write"])):
            check.that(have >= least * (1 - compare.MOST_UNSEEN), f"{have} {what} in the trace, by the load {least}")
        check.that(traced.data_stages > 0, f"{traced.data_stages} data stages")
        compare.everything(check, seen, disk)


rig.main(test)
