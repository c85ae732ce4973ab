#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Is the oracle right? Compares the trace with fio and diskstats, and tests the comparison with altered histograms.

Needs no daemon.
"""
from collections import Counter

from lib import buckets, compare, rig, trace
from lib.observe import Observation, growth

IOS = 200_000 if rig.LONG else 40_000


def bounds(check):
    for index in range(buckets.UNDER, buckets.OVER):
        bound = buckets.upper_bound(index)
        if not (buckets.fits(bound, index) and not buckets.fits(bound + 1, index)):
            check.that(False, f"bound {index}")
    check.equal(buckets.upper_bound(0), 10**9, "bucket 0 ends at one second")
    check.equal([buckets.latency_bucket(v) for v in (0, 1, 953, 954, 10**9, 10**9 + 1, 64 * 10**9, 64 * 10**9 + 1)],
                ["zero", -160, -160, -159, 0, 1, 48, 49], "buckets of known latencies")
    check.equal([buckets.size_bucket(v) for v in (0, 1, 2, 3, 4096, 4097)], ["zero", 0, 1, 2, 12, 13], "of known sizes")


def bent(check, traced):
    """A comparison that cannot fail proves nothing: a true histogram passes, slightly altered ones do not."""
    ios = traced.of("read")
    certain = trace.histogram_bounds(ios, trace.total_time)
    true = Counter(buckets.latency_bucket(trace.middle(trace.total_time(io))) for io in ios)
    check.equal(buckets.impossible(true, certain, Counter()), None, "the trace's own histogram is possible")
    unsure = sum(n for (low, high), n in certain.items() if low != high)
    bucket, count = true.most_common(1)[0]
    moved = min(count, unsure + 1)
    for name, change in (("one sample missing", {bucket: -1}), ("one too many", {bucket: 1}),
                         (f"{moved} of {len(ios)} one bucket up", {bucket: -moved, bucket + 1: moved}),
                         (f"{moved} three buckets down", {bucket: -moved, bucket - 3: moved})):
        histogram = Counter(true)
        histogram.update(change)
        check.that(buckets.impossible(histogram, certain, Counter()) is not None, f"refused: {name}")


def traced_run(check, state, disk, seed):
    """What fio and the tracer saw."""
    with rig.tracer(state, [disk]) as tracer:
        tracer.begin()
        before = disk.stat(), disk.stat_bytes()
        job = rig.fio(disk, seed, rw="randrw", ioengine="io_uring", iodepth=32, number_ios=IOS,
                      bssplit="4k/70:16k/20:64k/10", size="1G", io_size="1T")
        kernel, size = growth(disk.stat(), before[0]), growth(disk.stat_bytes(), before[1])
        check.figure(f"tracer: {tracer.end()}; {job['read']['iops'] + job['write']['iops']:.0f} IOPS under trace")
    return Observation(job, None, {disk.name: tracer.read(disk)}, {disk.name: kernel}, {disk.name: size}, False)


def test(check, state):
    bounds(check)
    seed = rig.fresh_seed()
    with rig.ram_disks(state) as [disk]:
        seen = traced_run(check, state, disk, seed)
    job, traced = seen.result, seen.trace(disk)
    for operation in ("read", "write"):
        compare.submitted(check, seen, disk, operation, job[operation]["total_ios"], job[operation]["io_bytes"])
        ios, unseen = job[operation]["total_ios"] - len(traced.of(operation)), seen.unseen(disk, operation)
        check.that(0 <= ios <= unseen, f"{operation}: the trace holds all I/Os but {ios}, at most {unseen} not seen")
        beyond = seen.bytes_beyond(disk, operation)
        check.that(0 <= beyond <= unseen * 65536, f"{operation}: the trace holds all bytes but {beyond}")
        compare.fio_is_slower(check, job, traced, operation)
    widths = sorted(io.complete[1] - io.complete[0] for io in traced.ios)
    check.figure(f"bracket around a completion: median {widths[len(widths) // 2]} ns, p99.9 "
                 f"{widths[len(widths) * 999 // 1000]} ns, longest {widths[-1]} ns")
    bent(check, traced)


rig.main(test)
