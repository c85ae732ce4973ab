#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Is each flush, discard and write of zeroes counted once, in its own class, with the right bytes?"""
import fcntl
import os
import random
import struct
from collections import Counter

from lib import compare, rig, trace
from lib.observe import observe

BLKDISCARD = 0x1277
MIB = 1 << 20


def load(disk, seed, rng):
    """Runs everything; what must come of it: Counter of operations, and bytes by operation."""
    count, size = Counter(), Counter()
    for options in ({"fsync": 8}, {"fdatasync": 4}, {"sync": "dsync"}):
        job = rig.fio(disk, seed, rw="randwrite", ioengine="psync", bs="4k", size="256M", number_ios=4_000, **options)
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
        (count, size), difference, traced = seen.result, seen.difference, seen.trace(disk)
        ios = trace.expected_counts(traced)
        for operation, want in count.items():
            check.equal(ios[operation], want, f"{operation}: I/Os in the trace")
            check.equal(traced.bytes[operation], size[operation], f"{operation}: bytes in the trace")
            have = difference.value("ssdpulse_io_bytes_total", device=disk.name, operation=operation)
            check.equal(int(have), size[operation], f"{operation}: bytes counted")
        check.that(ios["flush"] >= 4_000 // 8 + 4_000 // 4, f"{ios['flush']} flushes in the trace")
        check.that(traced.unissued["write"] >= 4_000 // 8 + 4_000 // 4,
                   f"{traced.unissued['write']} parents of flush sequences, {traced.data_stages} data stages")
        compare.everything(check, difference, disk, traced, drift=True)


rig.main(test)
