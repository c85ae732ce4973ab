# SPDX-License-Identifier: Apache-2.0
"""Does what the daemon exported agree with the trace, and is it consistent in itself?"""
from collections import Counter

from lib import buckets, trace

RESIDUE = {"clock", "unstamped"}  # no I/O is lost here: it is still counted
MOST_UNSEEN = 0.2  # of the I/Os: beyond that, a comparison proves little
DEVICE, QUEUE = "ssdpulse_io_device_latency_seconds", "ssdpulse_io_queue_latency_seconds"
TOTAL, SIZE = "ssdpulse_io_latency_seconds", "ssdpulse_io_size_bytes"


def lost_events(difference, disk):
    """{cause: events} that the daemon reports as missed, for this disk and for no disk in particular."""
    name, lost = "ssdpulse_lost_events_total", Counter()
    for labels in difference.after.series(name):
        named = dict(labels)
        if named.get("device", disk.name) == disk.name and named.get("cause") not in RESIDUE:
            lost[named.get("cause")] += int(difference.after.values[name, labels]
                                            - difference.before.values.get((name, labels), 0))
    return Counter({cause: events for cause, events in lost.items() if events})


def losses(check, seen, disk):
    """For each unseen event, the daemon reports what can be concluded from the other events."""
    traced, lost = seen.trace(disk), lost_events(seen.difference, disk)
    # A missed end counts as in flight until it is known to be missing. When that happens is up to the daemon.
    flying, left = in_flight(seen.difference.after, disk), len(traced.left_in_flight)
    check.that(0 <= flying <= left, f"{disk.name}: {flying} in flight at rest, {left} ends that nothing tells of")
    check.equal(lost.pop("completion_missed", 0) + flying, sum(traced.missed.values()) + left,
                f"{disk.name}: completions missed, and I/Os in flight at rest")
    check.equal(lost.pop("stray", 0), len(traced.strays), f"{disk.name}: strays")
    # Per host, not per disk: a test running at the same time adds disks. Losses of this disk show in its counts.
    lost.pop("device_pending", None)
    check.equal(dict(lost), {}, f"{disk.name}: other losses")


def in_flight(scrape, disk):
    return int(scrape.value("ssdpulse_io_in_flight", device=disk.name))


def drift(check, seen, disk):
    """How far the daemon reports its counts to be below or above diskstats."""
    left = seen.trace(disk).left_in_flight
    if left and in_flight(seen.difference.after, disk):
        check.figure(f"{disk.name}: not compared with diskstats, as {len(left)} ends were not seen")
        return
    have = {dict(labels)["operation"]: int(value) for labels, value
            in seen.difference.after.series("ssdpulse_accounting_drift_ios", device=disk.name).items()}
    check.equal(have, {group: -ios for group, ios in seen.ended_beyond(disk, left).items()},
                f"{disk.name}: drift against diskstats")


def submitted(check, seen, disk, group, ios, size):
    """Diskstats count exactly what the load reports. Most of it must have been seen by somebody."""
    check.equal(seen.kernel[disk.name][group], ios, f"{disk.name} {group}: I/Os of the load, by diskstats")
    check.equal(seen.kernel_bytes[disk.name][group], size, f"{disk.name} {group}: bytes of the load, by diskstats")
    unseen = seen.unseen(disk, group)
    check.that(unseen <= MOST_UNSEEN * ios, f"{disk.name} {group}: at most {unseen} of {ios} I/Os were not seen")


def device_histogram_count(difference, disk, operation):
    return sum(difference.histogram(DEVICE, device=disk.name, operation=operation, during=during).count
               for during in trace.DURINGS)


def at_rest(check, scrape, disk):
    """Nothing is in flight, and the counts agree with the kernel's where they have been compared."""
    flying = {dict(labels)["operation"]: v
              for labels, v in scrape.series("ssdpulse_io_in_flight", device=disk.name).items()}
    check.that(flying and not any(flying.values()), f"{disk.name} at rest has nothing in flight: {flying}")
    drifts = {dict(labels).get("operation"): v
              for labels, v in scrape.series("ssdpulse_accounting_drift_ios", device=disk.name).items()}
    check.that(not any(drifts.values()), f"{disk.name} drift against diskstats: {drifts}")


def _histogram(check, what, histogram, certain, possible=Counter()):
    """Compares one exported histogram with what the trace allows, and its classic buckets with its native ones."""
    total = sum(certain.values()) + sum(possible.values())
    unsure = sum(n for (low, high), n in certain.items() if low != high)
    why = buckets.impossible(histogram.native, certain, possible)
    check.that(why is None, f"{what}: {histogram.count} samples in {len(histogram.native)} buckets equal the trace "
                            f"({total} I/Os, {unsure} of them on a bound)" + (f": {why}" if why else ""))
    check.that(histogram.count == sum(histogram.native.values()), f"{what}: count is the sum of the buckets")
    wrong = []
    for bound, cumulative in histogram.classic.items():
        below = sum(n for bucket, n in histogram.native.items() if _at_or_below(bucket, bound, histogram.schema))
        if below != cumulative:
            wrong.append((bound, cumulative, below))
    check.that(not wrong, f"{what}: {len(histogram.classic)} classic buckets follow from the native ones"
                          + (f": {wrong[:4]}" if wrong else ""))


def _at_or_below(bucket, bound, schema):
    if bucket == buckets.ZERO or bound == float("inf"):
        return True
    if schema == 3 and bucket == buckets.OVER:
        return False
    return 2.0 ** (bucket / 2**schema) <= bound * (1 + 1e-9)


def _sum(check, what, histogram, intervals):
    low, high = sum(max(0, i[0]) for i in intervals), sum(max(0, i[1]) for i in intervals)
    have = round(histogram.sum * 1e9)
    rounding = max(1, have >> 50)  # the exposition format has doubles
    check.that(low - rounding <= have <= high + rounding, f"{what}: sum {have} ns lies in {low}..{high} ns")


def latencies(check, difference, disk, ios, operation, name, measure):
    """`ios`: those of the operation; `measure` gives the latency of each."""
    histogram = difference.histogram(name, device=disk.name, operation=operation)
    what = f"{disk.name} {operation} {name}"
    intervals = [measure(io) for io in ios]
    _histogram(check, what, histogram, Counter(map(trace.bucket_range, intervals)))
    _sum(check, what, histogram, intervals)
    check.figure(f"{what}: {trace.near_a_bound(ios, measure)} of {len(ios)} I/Os within 1 us of a bound by the trace's "
                 f"middle; mean {sum(map(trace.middle, intervals)) / max(1, len(ios)) / 1000:.1f} us")


def device_latencies(check, difference, disk, traced, operation, slack):
    """The four histograms of device time, and the split between them."""
    ios = traced.of(operation)
    whole, elsewhere = Counter(), 0
    bounds, doubtful = trace.during_bounds(traced, operation, slack)
    allowed = len(ios) // 1000 + doubtful
    for during, (certain, possible, exact) in bounds.items():
        histogram = difference.histogram(DEVICE, device=disk.name, operation=operation, during=during)
        whole.update(histogram.native)
        elsewhere += max(0, histogram.count - exact)
        if not exact and not histogram.count:
            continue
        _histogram(check, f"{disk.name} {operation} device time during {during}", histogram, certain, possible)
        check.that(abs(histogram.count - exact) <= allowed,
                   f"{disk.name} {operation} during {during}: {histogram.count}, the trace's middle says {exact}, "
                   f"{sum(possible.values())} within {slack} ns of an edge")
    check.that(elsewhere <= allowed,
               f"{disk.name} {operation}: {elsewhere} of {len(ios)} I/Os are under another during than the trace's "
               f"middle says; {doubtful} more may be, as an end was not seen")
    why = buckets.impossible(whole, trace.histogram_bounds(ios, trace.device_time), Counter())
    check.that(why is None, f"{disk.name} {operation} device time, all four together" + (f": {why}" if why else ""))


def counts(check, seen, disk):
    """I/Os, bytes, sizes, errors and requeues of every operation that the trace or the daemon saw, and all losses."""
    difference, traced = seen.difference, seen.trace(disk)
    losses(check, seen, disk)
    for operation in operations(seen, disk):
        of = {"device": disk.name, "operation": operation}
        what = f"{disk.name} {operation}"
        check.equal(device_histogram_count(difference, disk, operation), len(traced.of(operation)), f"{what}: I/Os")
        for name, want in (("ssdpulse_io_bytes_total", traced.bytes[operation]),
                           ("ssdpulse_io_unissued_completions_total", traced.unissued[operation]),
                           ("ssdpulse_io_requeues_total", traced.requeues[operation])):
            check.equal(int(difference.value(name, **of)), want, f"{what}: {name}")
        issues, sizes = traced.told(operation), difference.histogram(SIZE, **of)
        check.equal(dict(sizes.native), dict(trace.sizes(issues)), f"{what} sizes")
        check.equal(int(sizes.sum), sum(issued.size for issued in issues), f"{what} sum of sizes")
        errors(check, difference, disk, traced, operation)
    if seen.drift:
        drift(check, seen, disk)


def everything(check, seen, disk, slack=2000):
    """The counts, and all three latency histograms."""
    difference, traced = seen.difference, seen.trace(disk)
    counts(check, seen, disk)
    check.figure(f"brackets up to {traced.widest} ns wide, {traced.no_before} without a lower edge")
    for operation in operations(seen, disk):
        device_latencies(check, difference, disk, traced, operation, slack)
        latencies(check, difference, disk, traced.told(operation), operation, QUEUE, trace.queue_time)
        latencies(check, difference, disk, traced.of(operation), operation, TOTAL, trace.total_time)
    latencies(check, difference, disk, traced.commits, "commit", TOTAL, trace.total_time)


def operations(seen, disk):
    return sorted(set(seen.trace(disk).operations()) | exported_operations(seen.difference, disk))


def exported_operations(difference, disk):
    """Operations for which the daemon counted any I/O: none that the trace never saw may be among them.

    Commits are made up of the others."""
    seen = {dict(labels)["operation"] for (_, labels) in difference.after.histograms
            if ("device", disk.name) in labels and "operation" in dict(labels)} - {"commit"}
    return {operation for operation in seen if difference.histogram(TOTAL, device=disk.name, operation=operation).count}


def errors(check, difference, disk, traced, operation):
    have = Counter()
    for labels in difference.after.series("ssdpulse_io_errors_total", device=disk.name, operation=operation):
        have[dict(labels)["error"]] += int(difference.value("ssdpulse_io_errors_total", **dict(labels)))
    want = {error: n for (op, error), n in traced.errors.items() if op == operation}
    check.equal({error: n for error, n in have.items() if n}, want, f"{disk.name} {operation} errors")


def fio_is_slower(check, job, traced, operation):
    """fio sees each I/O begin no later and end no earlier than the kernel's timestamps do. Unseen I/Os may have taken
    no time at all."""
    totals = sorted(trace.middle(trace.total_time(io)) for io in traced.of(operation))
    totals = [0] * (job[operation]["total_ios"] - len(totals)) + totals
    ours, fios = sum(totals) / len(totals), job[operation]["lat_ns"]["mean"]
    check.that(fios >= ours, f"{operation}: fio's mean lat {fios / 1000:.1f} us is not below {ours / 1000:.1f} us")
    for percent, value in job[operation]["lat_ns"]["percentile"].items():
        mine = totals[min(len(totals) - 1, int(len(totals) * float(percent) / 100))]
        if float(percent) in (50, 90, 99, 99.9):
            check.that(value * 65 >= mine * 64,  # fio's own bins are 1/64 wide
                       f"{operation} p{float(percent):g}: fio {value / 1000:.1f} us, trace {mine / 1000:.1f} us")
