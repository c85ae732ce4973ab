#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Is the I/O on a disk's partitions counted under the disk, exactly, and nowhere else?

fio's own sums are the truth, less what nobody saw (lib/observe.py).
"""
from collections import Counter
from pathlib import Path

from lib import buckets, compare, rig
from lib.observe import observe

BLOCK_SIZES = {"": 512, "p1": 4096, "p2": 16384, "p3": 65536}  # of the load on the whole disk, and on each partition
IOS = 50_000 if rig.LONG else 5_000  # on each of them
LENGTH = 256 << 11  # sectors
RANGES = [(2048 + number * LENGTH, LENGTH) for number in range(len(BLOCK_SIZES) - 1)]


def load(disk, seed):
    jobs = [{"filename": disk.path + suffix, "bs": size, "number_ios": IOS}
            for suffix, size in BLOCK_SIZES.items()]
    return rig.fio_jobs(disk, seed, jobs, rw="randrw", ioengine="libaio", iodepth=8, size="256M", io_size="16T")


def test(check, state):
    seed = rig.fresh_seed()
    with rig.ram_disks(state) as [disk], rig.partitions(disk, RANGES):
        seen = observe(check, state, [disk], lambda: load(disk, seed), drift=True)
        jobs, difference = seen.result, seen.difference
        for operation in ("read", "write"):
            compare.submitted(check, seen, disk, operation, sum(job[operation]["total_ios"] for job in jobs),
                              sum(job[operation]["io_bytes"] for job in jobs))
            sizes = difference.histogram(compare.SIZE, device=disk.name, operation=operation).native
            own = Counter({buckets.size_bucket(size): job[operation]["total_ios"]
                           for size, job in zip(BLOCK_SIZES.values(), jobs)})
            unseen = own - sizes
            check.that(sizes <= own and unseen.total() <= seen.unseen(disk, operation),
                       f"{operation}: I/Os by size, each of one partition: {dict(sizes)}, not seen {dict(unseen)}")
        scrape = difference.after
        named = {dict(labels).get("device") for _, labels in [*scrape.values, *scrape.histograms]}
        there = [path.name for path in Path(f"/sys/block/{disk.name}").glob(f"{disk.name}p*")]
        check.that(len(there) == 3 and not named & set(there), f"no series of {sorted(there)}")
        compare.everything(check, seen, disk)


rig.main(test)
