# SPDX-License-Identifier: Apache-2.0
"""In which native bucket does a latency or a size belong, and can a histogram have come from given measurements?

Latencies: schema 3. Native index i holds (2^((i-1)/8), 2^(i/8)] seconds, so v nanoseconds belong to the smallest i with
v^8 <= 10^72 * 2^i. Everything is decided in integers of unlimited size; no floating point is involved.
"""
from bisect import bisect_left
from collections import Counter
from itertools import accumulate

ZERO = "zero"  # key of the zero bucket
UNDER, OVER = -160, 49  # values beyond the kernel's range are counted in the nearest of these buckets
POWER = 10**72


def fits(nanoseconds, index):
    """Is `nanoseconds` at or below the upper bound of bucket `index`?"""
    if index >= 0:
        return nanoseconds**8 <= POWER << index
    return nanoseconds**8 << -index <= POWER


def upper_bound(index):
    """The largest whole number of nanoseconds in bucket `index`, found by bisection with fits()."""
    low, high = 0, 10**12
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle, index) else (low, middle - 1)
    return low


BOUNDS = [upper_bound(i) for i in range(UNDER, OVER)]


def latency_bucket(nanoseconds):
    """Native index, clamped to UNDER..OVER, or ZERO."""
    if nanoseconds <= 0:
        return ZERO
    return UNDER + bisect_left(BOUNDS, nanoseconds)


def distance_to_bound(nanoseconds):
    at = bisect_left(BOUNDS, nanoseconds)
    return min(abs(nanoseconds - bound) for bound in BOUNDS[max(0, at - 1):at + 1])


def size_bucket(size):
    """Schema 0: bucket i holds (2^(i-1), 2^i] bytes."""
    return ZERO if size == 0 else (size - 1).bit_length()


def position(bucket):
    """Buckets in ascending order as whole numbers: ZERO comes just before UNDER."""
    return UNDER - 1 if bucket == ZERO else bucket


def impossible(counts, certain, possible):
    """Why can `counts` (bucket -> samples) not have come from these measurements? None if they can.

    `certain` and `possible` are Counters of (lowest position, highest position): measurements that are certainly in the
    histogram, and those that may be. Exact (Hall's theorem for intervals): every run of buckets holds at least the
    certain measurements that fit nowhere else, and at most all those that overlap it.
    """
    histogram = Counter()
    for bucket, count in counts.items():
        histogram[position(bucket)] += count
    both = certain + possible
    if not both and not histogram:
        return None
    edges = [p for lo_hi in both for p in lo_hi] + [p for p, n in histogram.items() if n]
    first, last = min(edges), max(edges)
    width = last - first + 1
    have = list(accumulate((histogram[first + p] for p in range(width)), initial=0))
    starts = _starts_by_end(certain, first, width)
    all_ends = list(accumulate((sum(n for (_, hi), n in both.items() if hi == first + p) for p in range(width)),
                               initial=0))
    all_starts = list(accumulate((sum(n for (lo, _), n in both.items() if lo == first + p) for p in range(width)),
                                 initial=0))
    for a in range(width):
        inside = 0
        for b in range(a, width):
            inside += starts[b][a]
            counted = have[b + 1] - have[a]
            touching = all_starts[b + 1] - all_ends[a]
            if not inside <= counted <= touching:
                return (f"buckets {first + a}..{first + b} hold {counted}, "
                        f"the trace allows {inside}..{touching}")
    return None


def _starts_by_end(measurements, first, width):
    """table[b][a]: how many measurements end at position b and begin at or after a."""
    table = [[0] * (width + 1) for _ in range(width)]
    for (low, high), count in measurements.items():
        table[high - first][low - first] += count
    return [list(accumulate(reversed(row)))[::-1] for row in table]
