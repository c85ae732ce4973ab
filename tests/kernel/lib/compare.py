# SPDX-License-Identifier: Apache-2.0
"""Does what the daemon exported agree with the trace, and with itself?"""
from collections import Counter

from lib import buckets, trace

RESIDUE = {"clock", "unstamped"}  # not losses of an I/O: it is counted all the same
DEVICE, QUEUE = "ssdpulse_io_device_latency_seconds", "ssdpulse_io_queue_latency_seconds"
TOTAL, SIZE = "ssdpulse_io_latency_seconds", "ssdpulse_io_size_bytes"


def lost_events(difference, disk):
    """I/Os that the daemon says it missed: of this disk, and of no disk in particular."""
    name, lost = "ssdpulse_lost_events_total", 0
    for labels in difference.after.series(name):
        named = dict(labels)
        if named.get("device", disk.name) == disk.name and named.get("cause") not in RESIDUE:
            more = difference.after.values[name, labels] - difference.before.values.get((name, labels), 0)
            if more:
                print(f"     lost {more:.0f}: {named}")
            lost += more
    return int(lost)


def device_histogram_count(difference, disk, operation):
    return sum(difference.histogram(DEVICE, device=disk.name, operation=operation, during=during).count
               for during in trace.DURINGS)


def at_rest(check, scrape, disk, drift=False):
    """Nothing is in flight, and the kernel agrees on the counts: where it was asked already, or with `drift`."""
    flying = {dict(labels)["operation"]: v
              for labels, v in scrape.series("ssdpulse_io_in_flight", device=disk.name).items()}
    check.that(flying and not any(flying.values()), f"{disk.name} at rest has nothing in flight: {flying}")
    drifts = {dict(labels).get("operation"): v
              for labels, v in scrape.series("ssdpulse_accounting_drift_ios", device=disk.name).items()}
    check.that((drifts or not drift) and not any(drifts.values()), f"{disk.name} drift against diskstats: {drifts}")


def _histogram(check, what, histogram, certain, possible, lost):
    """One exported histogram against what the trace allows; also its classic buckets against its native ones."""
    if lost:
        certain, possible = Counter(), certain + possible
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
    rounding = max(1, have >> 50)  # the exposition's doubles
    check.that(low - rounding <= have <= high + rounding, f"{what}: sum {have} ns lies in {low}..{high} ns")


def latencies(check, difference, disk, traced, operation, lost, name, measure):
    ios = traced.of(operation)
    histogram = difference.histogram(name, device=disk.name, operation=operation)
    what = f"{disk.name} {operation} {name}"
    intervals = [measure(io) for io in ios]
    _histogram(check, what, histogram, Counter(map(trace.bucket_range, intervals)), Counter(), lost)
    if not lost:
        _sum(check, what, histogram, intervals)
    check.figure(f"{what}: {trace.near_a_bound(ios, measure)} of {len(ios)} I/Os within 1 us of a bound by the trace's "
                 f"middle; mean {sum(map(trace.middle, intervals)) / max(1, len(ios)) / 1000:.1f} us")


def device_latencies(check, difference, disk, traced, operation, lost, slack):
    """The four histograms of device time, and the split between them."""
    ios = traced.of(operation)
    whole, elsewhere = Counter(), 0
    for during, (certain, possible, exact) in trace.during_bounds(traced, operation, slack).items():
        histogram = difference.histogram(DEVICE, device=disk.name, operation=operation, during=during)
        whole.update(histogram.native)
        elsewhere += max(0, histogram.count - exact)
        if not exact and not histogram.count:
            continue
        _histogram(check, f"{disk.name} {operation} device time during {during}", histogram, certain, possible, lost)
        check.that(abs(histogram.count - exact) <= max(lost, len(ios) // 1000),
                   f"{disk.name} {operation} during {during}: {histogram.count}, the trace's middle says {exact}, "
                   f"{sum(possible.values())} within {slack} ns of an edge")
    check.that(elsewhere <= max(lost, len(ios) // 1000),
               f"{disk.name} {operation}: {elsewhere} of {len(ios)} I/Os ({elsewhere / max(1, len(ios)):.4%}) are under "
               f"another during than the trace's middle says")
    why = buckets.impossible(whole, *((Counter(), trace.histogram_bounds(ios, trace.device_time)) if lost
                                      else (trace.histogram_bounds(ios, trace.device_time), Counter())))
    check.that(why is None, f"{disk.name} {operation} device time, all four together" + (f": {why}" if why else ""))


def everything(check, difference, disk, traced, slack=2000, drift=False):
    """Counts, bytes, sizes, errors, requeues, and all three histograms, of every operation that the trace saw."""
    lost = lost_events(difference, disk)
    check.that(lost <= max(1, traced.events) * 1e-5, f"{disk.name}: {lost} lost of {traced.events} events")
    check.figure(f"brackets up to {traced.widest} ns wide, {traced.no_before} without a lower edge")
    for operation in sorted(set(traced.operations()) | exported_operations(difference, disk)):
        ios = traced.of(operation)
        of = {"device": disk.name, "operation": operation}
        count = device_histogram_count(difference, disk, operation)
        check.that(count <= len(ios) <= count + lost, f"{disk.name} {operation}: {count} I/Os, traced {len(ios)}")
        for name, want in (("ssdpulse_io_bytes_total", traced.bytes[operation]),
                           ("ssdpulse_io_unissued_completions_total", traced.unissued[operation]),
                           ("ssdpulse_io_requeues_total", traced.requeues[operation])):
            have = difference.value(name, **of)
            check.that(have == want or lost and abs(have - want) <= lost << 20,
                       f"{disk.name} {operation} {name}: {have:.0f}, traced {want}")
        sizes = difference.histogram(SIZE, **of)
        what = f"{disk.name} {operation}"
        check.that(lost or sizes.native == traced.sizes(operation), f"{what} sizes: {dict(sizes.native)}")
        check.that(lost or sizes.sum == sum(io.size for io in ios), f"{what} sum of sizes: {sizes.sum:.0f}")
        errors(check, difference, disk, traced, operation)
        device_latencies(check, difference, disk, traced, operation, lost, slack)
        latencies(check, difference, disk, traced, operation, lost, QUEUE, trace.queue_time)
        latencies(check, difference, disk, traced, operation, lost, TOTAL, trace.total_time)
    latencies(check, difference, disk, traced, "commit", lost, TOTAL, trace.total_time)
    at_rest(check, difference.after, disk, drift)


def exported_operations(difference, disk):
    """Operations of which the daemon counted any I/O: one that the trace never saw must not be among them.

    Commits are made of the others."""
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
    """fio sees each I/O begin no later and end no earlier than the kernel's stamps."""
    totals = sorted(trace.middle(trace.total_time(io)) for io in traced.of(operation))
    ours, fios = sum(totals) / len(totals), job[operation]["lat_ns"]["mean"]
    check.that(fios >= ours, f"{operation}: fio's mean lat {fios / 1000:.1f} us is not below {ours / 1000:.1f} us")
    for percent, value in job[operation]["lat_ns"]["percentile"].items():
        mine = totals[min(len(totals) - 1, int(len(totals) * float(percent) / 100))]
        if float(percent) in (50, 90, 99, 99.9):
            check.that(value * 65 >= mine * 64,  # fio's own bins are 1/64 wide
                       f"{operation} p{float(percent):g}: fio {value / 1000:.1f} us, trace {mine / 1000:.1f} us")
