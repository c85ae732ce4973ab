# SPDX-License-Identifier: Apache-2.0
"""What do the exported figures of one disk show? Sums over labels, quantiles, and what holds for any disk at rest."""
from collections import Counter

from lib import buckets

DEVICE_TIME = "ssdpulse_io_device_latency_seconds"
TOTAL = "ssdpulse_io_latency_seconds"
DURINGS = ("none", "discard", "flush", "both")


def device_time(difference, disk, operation):
    """Device times by native bucket, whatever else was in flight."""
    total = Counter()
    for during in DURINGS:
        total.update(difference.histogram(DEVICE_TIME, device=disk, operation=operation, during=during).native)
    return total


def ios(difference, disk, operation):
    return sum(device_time(difference, disk, operation).values())


def size(difference, disk, operation):
    return int(difference.value("ssdpulse_io_bytes_total", device=disk, operation=operation))


def requeues(difference, disk, operation, reason):
    return int(difference.value("ssdpulse_io_requeues_total", device=disk, operation=operation, reason=reason))


def quantile(native, share):
    """The bucket in which this share of the samples ends."""
    below = 0
    for bucket, count in sorted(native.items(), key=lambda item: buckets.position(item[0])):
        below += count
        if below >= share * sum(native.values()):
            return bucket
    return None


def earlier_than(native, seconds):
    """How many samples lie in buckets that end before this latency?"""
    limit = buckets.latency_bucket(round(seconds * 1e9))
    return sum(count for bucket, count in native.items() if buckets.position(bucket) < limit)


def lost(scrape, disk):
    """{cause: I/Os} that the daemon missed."""
    found = {}
    for labels, value in scrape.series("ssdpulse_lost_events_total").items():
        named = dict(labels)
        if value and named.get("device", disk) == disk:
            found[named["cause"]] = found.get(named["cause"], 0) + value
    return found


def skipped_runs(scrape):
    """{program: runs that the kernel skipped}, of the whole guest; 0 for programs that it does not report."""
    found = {"on_issue": 0, "on_complete": 0}
    for labels, value in scrape.series("ssdpulse_lost_events_total").items():
        if "program" in dict(labels):
            found[dict(labels)["program"]] = value
    return found


def drift(scrape, disk):
    return {dict(labels)["operation"]: value
            for labels, value in scrape.series("ssdpulse_accounting_drift_ios", device=disk).items()}


def at_rest(check, scrape, disk, known_losses=()):
    """Nothing in flight, nothing lost except for `known_losses`, and the kernel's own statistics agree.

    Runs that the kernel skipped are reported for the whole guest: those of this disk would show as drift. An I/O whose
    issue was skipped ends as a stray, one whose completion was skipped as missed: at most as many as those runs.
    """
    flying = {dict(labels)["operation"]: value
              for labels, value in scrape.series("ssdpulse_io_in_flight", device=disk).items()}
    check.that(flying and not any(flying.values()), f"{disk}: nothing in flight: {flying}")
    missed = lost(scrape, disk)
    skipped = skipped_runs(scrape)
    follows = {"stray": skipped["on_issue"], "completion_missed": skipped["on_complete"]}
    unknown = {cause: ios for cause, ios in missed.items()
               if cause not in (*known_losses, "recursion") and ios > follows.get(cause, 0)}
    check.that(not unknown, f"{disk}: lost: {missed}; runs that the kernel skipped: {skipped}")
    differs = drift(scrape, disk)
    check.that(differs and not any(differs.values()), f"{disk}: drift against diskstats: {differs}")
