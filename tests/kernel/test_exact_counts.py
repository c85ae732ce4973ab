#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Does the daemon count every I/O, byte and size, exactly? fio's own sums are the truth; the tracer
only says whether the kernel called anybody at all (lib/observe.py)."""
from collections import Counter

from lib import buckets, compare, rig
from lib.observe import observe

MIXED = 140_000  # I/Os of one job with mixed sizes
FIXED = {512: 10_000, 4096: 40_000, 12288: 10_000, 65536: 10_000, 131072: 3_000}  # one job each


def load(disk, seed, engine):
    """Runs both loads; the jobs of fio's report."""
    scale = 10 if rig.LONG else 1
    mixed = rig.fio_jobs(disk, seed, [{"bssplit": "4k/60:8k/15:20k/10:64k/15", "number_ios": MIXED * scale}],
                         rw="randrw", ioengine=engine, iodepth=32, size="1G", io_size="16T")
    fixed = rig.fio_jobs(disk, seed + 1, [{"bs": size, "number_ios": n * scale} for size, n in FIXED.items()],
                         rw="randrw", ioengine=engine, iodepth=6, size="1G", io_size="16T")
    return mixed, fixed


def test(check, state):
    seed = rig.fresh_seed()
    with rig.ram_disks(state) as [disk]:
        for engine in ("io_uring", "libaio"):
            seen = observe(check, state, [disk], lambda engine=engine: load(disk, seed, engine), drift=True)
            (mixed, fixed), difference = seen.result, seen.difference
            lost = compare.lost_events(difference, disk)
            for operation in ("read", "write"):
                truth = sum(job[operation]["total_ios"] for job in mixed + fixed)
                size = sum(job[operation]["io_bytes"] for job in mixed + fixed)
                count = compare.device_histogram_count(difference, disk, operation)
                check.that(count <= truth <= count + lost, f"{engine} {operation}: {count} I/Os, {truth} by fio")
                of = {"device": disk.name, "operation": operation}
                have = difference.value("ssdpulse_io_bytes_total", **of)
                check.that(have == size or lost, f"{engine} {operation}: {have:.0f} bytes counted, {size} by fio")
                sizes(check, difference.histogram(compare.SIZE, **of), mixed, fixed, operation, lost)
            total = sum(job[op]["total_ios"] for job in mixed + fixed for op in ("read", "write"))
            check.that(total >= 200_000, f"{engine}: {total} I/Os")
            check.that(lost <= total * 1e-5, f"{engine}: {lost} counted misses")
            compare.at_rest(check, difference.after, disk, drift=True)


def sizes(check, histogram, mixed, fixed, operation, lost):
    """Of the mixed job only the sum and the possible buckets are known; of the fixed ones, each bucket's least."""
    allowed = {buckets.size_bucket(size) for size in (4096, 8192, 20480, 65536, *FIXED)}
    check.that(set(histogram.native) <= allowed, f"{operation} sizes in {dict(sorted(histogram.native.items()))}")
    check.equal(histogram.count, sum(job[operation]["total_ios"] for job in mixed + fixed) - lost, f"{operation} sizes")
    check.equal(histogram.sum, sum(job[operation]["io_bytes"] for job in mixed + fixed), f"{operation} sum of sizes")
    known = Counter({buckets.size_bucket(size): job[operation]["total_ios"] for size, job in zip(FIXED, fixed)})
    only_fixed = {b for b in known if b not in {buckets.size_bucket(s) for s in (4096, 8192, 20480, 65536)}}
    check.equal({b: histogram.native[b] for b in only_fixed}, {b: known[b] for b in only_fixed},
                f"{operation} sizes that only one job has")


rig.main(test)
