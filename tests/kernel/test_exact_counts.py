#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Does the daemon count every I/O, byte and size, exactly? fio's own sums are the truth, less what nobody saw
(lib/observe.py)."""
from collections import Counter

from lib import buckets, compare, rig
from lib.observe import observe

SCALE = 100 if rig.LONG else 1
MIXED = 14_000 * SCALE  # I/Os of one job with mixed sizes
FIXED = {512: 1_000, 4096: 4_000, 12288: 1_000, 65536: 1_000, 131072: 300}  # one job each


def load(disk, seed, engine):
    """Runs both loads; returns the jobs of fio's report."""
    mixed = rig.fio_jobs(disk, seed, [{"bssplit": "4k/60:8k/15:20k/10:64k/15", "number_ios": MIXED}],
                         rw="randrw", ioengine=engine, iodepth=32, size="1G", io_size="16T")
    fixed = rig.fio_jobs(disk, seed + 1, [{"bs": size, "number_ios": n * SCALE} for size, n in FIXED.items()],
                         rw="randrw", ioengine=engine, iodepth=6, size="1G", io_size="16T")
    return mixed, fixed


def test(check, state):
    seed = rig.fresh_seed()
    with rig.ram_disks(state) as [disk]:
        for engine in ("io_uring", "libaio"):
            seen = observe(check, state, [disk], lambda engine=engine: load(disk, seed, engine), drift=True)
            jobs = [job for jobs in seen.result for job in jobs]
            for operation in ("read", "write"):
                compare.submitted(check, seen, disk, operation, sum(job[operation]["total_ios"] for job in jobs),
                                  sum(job[operation]["io_bytes"] for job in jobs))
                sizes(check, seen, disk, operation)
            compare.counts(check, seen, disk)


def sizes(check, seen, disk, operation):
    """Of the mixed job, only the sum and the possible buckets are known; of the fixed ones, each bucket's minimum."""
    mixed, fixed = seen.result
    histogram = seen.difference.histogram(compare.SIZE, device=disk.name, operation=operation)
    of_mixed = {buckets.size_bucket(size) for size in (4096, 8192, 20480, 65536)}
    allowed = of_mixed | {buckets.size_bucket(size) for size in FIXED}
    check.that(set(histogram.native) <= allowed, f"{operation} sizes in {dict(sorted(histogram.native.items()))}")
    unseen = seen.unseen(disk, operation)
    ios = sum(job[operation]["total_ios"] for job in mixed + fixed) - histogram.count
    check.that(0 <= ios <= unseen, f"{operation} sizes of all but {ios}, at most {unseen} not seen")
    size = sum(job[operation]["io_bytes"] for job in mixed + fixed) - histogram.sum
    check.that(512 * ios <= size <= 131072 * ios, f"{operation} sum of sizes of all but {size:.0f}")
    known = Counter({buckets.size_bucket(size): job[operation]["total_ios"] for size, job in zip(FIXED, fixed)})
    for bucket in set(known) - of_mixed:
        check.that(known[bucket] - unseen <= histogram.native[bucket] <= known[bucket],
                   f"{operation} sizes that only one job has: {histogram.native[bucket]} of {known[bucket]}")


rig.main(test)
