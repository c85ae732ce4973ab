# SPDX-License-Identifier: Apache-2.0
"""What really happened to each request? Reads ssdpulse_iotrace's file and pairs issues with completions.

The rules are those of the design (decisions 5 to 7), written a second time: nothing is shared with the daemon.
Every instant is known as an interval [before, after] that holds the clock which the daemon read for the same event.
"""
import struct
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

from lib import buckets

RECORD = struct.Struct("<QQQQQIiiIIIIIIBBBB")  # tests/kernel/trace/event.h
ISSUE, COMPLETE, REQUEUE = range(3)
UNKNOWN_BEFORE = 1000  # ns, where the first program did not see the event

OPERATIONS = {0: "read", 1: "write", 2: "flush", 3: "discard", 5: "secure_erase", 7: "write", 9: "write_zeroes"}
ERRORS = {1: "unsupported", 2: "timeout", 3: "nospace", 4: "transport", 5: "target", 7: "medium", 8: "protection",
          10: "io"}
FUA = 1 << 17  # include/linux/blk_types.h: the same bit on every supported kernel
DURINGS = ("none", "discard", "flush", "both")


def operation_of(cmd_flags):
    code = cmd_flags & 0xFF
    return "passthrough" if code >= 32 else OPERATIONS.get(code, "zone")


@dataclass(slots=True)
class Io:
    """One issued request, from its first issue to its final completion."""
    operation: str
    request: int
    start: int  # the kernel's start_time_ns
    first_issue: tuple  # (before, after)
    issue: tuple  # the last one
    size: int
    sector: int
    bytes: int = 0
    given_back: bool = False  # requeued, and not issued again yet
    complete: tuple = None


class Trace:
    """The finished I/Os of one disk, and what else its events said."""

    def __init__(self, path, dev):
        self.ios = []  # by final completion
        self.commits = []  # what a caller of fsync waits for: parents of flush sequences, and FUA writes that are no stage
        self.unissued = Counter()  # operation -> completions without an issue
        self.gaps = 0  # events that cannot follow the one before them: something in between was not traced
        self.data_stages = 0  # writes that were one stage of a flush sequence: their parent ended behind them
        self.errors = Counter()  # (operation, error)
        self.bytes = Counter()
        self.requeues = Counter()
        self.partials = Counter()
        self.events = 0
        self.widest = 0  # longest [before, after]
        self.no_before = 0
        self._last_start = {}
        self._durable = {}  # request -> its FUA write that ended last
        flying = {}
        for record in self._records(path, dev):
            self._take(flying, *record)
        self.left_in_flight = list(flying.values())
        self.commits += self._durable.values()

    @staticmethod
    def _records(path, dev):
        records = [r for r in RECORD.iter_unpack(Path(path).read_bytes()) if r[5] == dev]
        records.sort(key=lambda r: r[1])
        return records

    def _take(self, flying, before, after, request, sector, start, _dev, _tag, _itag, _hctx, cmd_flags, _rq_flags,
              data_len, nr_bytes, _cpu, kind, status, has_bio, _pad):
        self.events += 1
        if before == 0:
            self.no_before += 1
            before = after - UNKNOWN_BEFORE
        self.widest = max(self.widest, after - before)
        when = (before, after)
        io = flying.get(request)
        operation = operation_of(cmd_flags)
        if kind == ISSUE:
            if io is None:
                flying[request] = Io(operation, request, start, when, when, data_len, sector)
            elif io.given_back and io.start == start:
                io.issue = when
                io.given_back = False
                self.requeues[operation] += 1
            else:
                self.gaps += 1
            return
        if kind == REQUEUE:
            if io is not None:
                io.given_back = True
            return
        if io is not None and io.start != start:
            self.gaps += 1
        self.bytes[operation] += nr_bytes
        if status:
            self.errors[operation, ERRORS.get(status, "other")] += 1
        if nr_bytes < data_len:
            self.partials[operation] += 1
            if io is not None:
                io.bytes += nr_bytes
            return
        if io is None:
            self.unissued[operation] += 1
            self.gaps += nr_bytes > 0 or operation != "write"
            self.data_stages += self._last_start.get(request) == start
            if operation == "write" and has_bio:
                self._end_sequence(Io("commit", request, start, None, None, 0, sector, complete=when))
            return
        del flying[request]
        self._last_start[request] = start
        io.bytes += nr_bytes
        io.complete = when
        self.ios.append(io)
        if operation == "write" and cmd_flags & FUA:
            self._end_durable(io)

    def _end_durable(self, io):
        """A FUA write: a commit, or a stage of one, whose parent is the same request and ends behind it."""
        before = self._durable.pop(io.request, None)
        if before:
            self.commits.append(before)
        self._durable[io.request] = io

    def _end_sequence(self, parent):
        stage = self._durable.get(parent.request)
        if stage and stage.start == parent.start:
            del self._durable[parent.request]
        self.commits.append(parent)

    def of(self, operation):
        if operation == "commit":
            return self.commits
        return [io for io in self.ios if io.operation == operation]

    def operations(self):
        return sorted({io.operation for io in self.ios} | set(self.unissued))

    def sizes(self, operation):
        return Counter(buckets.size_bucket(io.size) for io in self.of(operation))


def device_time(io):
    return io.complete[0] - io.issue[1], io.complete[1] - io.issue[0]


def queue_time(io):
    return io.first_issue[0] - io.start, io.first_issue[1] - io.start


def total_time(io):
    return io.complete[0] - io.start, io.complete[1] - io.start


def middle(interval):
    return sum(interval) // 2


def bucket_range(interval):
    return tuple(buckets.position(buckets.latency_bucket(edge)) for edge in interval)


def near_a_bound(ios, measure, nanoseconds=1000):
    return sum(buckets.distance_to_bound(middle(measure(io))) <= nanoseconds for io in ios)


class Interference:
    """Which reads and writes overlapped a discard or a flush (closed intervals)?

    `slack` widens what is possible and narrows what is certain: the kernel's state changes a little beside the clock.
    """

    def __init__(self, trace, slack):
        self._slack = slack
        self._exact, self._widest, self._narrowest = (
            {kind: _Overlap([reading(io) for io in trace.of(kind)]) for kind in ("discard", "flush")}
            for reading in (self._middle, self._wide, self._narrow))

    @staticmethod
    def _middle(io):
        return middle(io.issue), middle(io.complete)

    def _wide(self, io):
        return io.issue[0] - self._slack, io.complete[1] + self._slack

    def _narrow(self, io):
        return io.issue[1] + self._slack, io.complete[0] - self._slack

    def exact(self, io):
        """As the middles of the brackets say. Only reads and writes are told apart."""
        if io.operation not in ("read", "write"):
            return "none"
        return _during(*(other.meets(*self._middle(io)) for other in self._exact.values()))

    def candidates(self, io):
        """Every answer that some reading of the clocks allows."""
        if io.operation not in ("read", "write"):
            return {"none"}
        discard, flush = ({self._widest[kind].meets(*self._wide(io)), self._narrowest[kind].meets(*self._narrow(io))}
                          for kind in ("discard", "flush"))
        return {_during(d, f) for d in discard for f in flush}


def _during(discard, flush):
    return DURINGS[discard + 2 * flush]


class _Overlap:
    """Intervals, where one with its end before its begin (slack turned it around) counts for nothing."""

    def __init__(self, intervals):
        intervals = [(begin, end) for begin, end in intervals if begin <= end]
        self._begins = sorted(begin for begin, _ in intervals)
        self._ends = sorted(end for _, end in intervals)

    def meets(self, begin, end):
        """Those begun by `end`, less those ended before `begin`, which are all among the former."""
        return begin <= end and bisect_right(self._begins, end) > bisect_left(self._ends, begin)


def expected_counts(trace):
    """operation -> number of finished I/Os."""
    return Counter(io.operation for io in trace.ios)


def histogram_bounds(ios, measure):
    """Certain measurements by bucket range, for buckets.impossible()."""
    return Counter(bucket_range(measure(io)) for io in ios)


def during_bounds(trace, operation, slack):
    """during -> (certain, possible, exact count), for the device histograms of one operation."""
    interference = Interference(trace, slack)
    certain, possible, exact = defaultdict(Counter), defaultdict(Counter), Counter()
    for io in trace.of(operation):
        if operation in ("read", "write"):
            candidates, answer = interference.candidates(io), interference.exact(io)
        else:
            candidates, answer = {"none"}, "none"  # nothing else is asked
        exact[answer] += 1
        where = bucket_range(device_time(io))
        for during in candidates:
            (certain if len(candidates) == 1 else possible)[during][where] += 1
    return {during: (certain[during], possible[during], exact[during]) for during in DURINGS}


def full_nanoseconds(ios, depth, begin_of):
    """How long were at least `depth` I/Os between begin_of(io) and their completion?"""
    steps = sorted([(begin_of(io), 1) for io in ios] + [(middle(io.complete), -1) for io in ios])
    total = flying = since = 0
    for when, step in steps:
        if flying >= depth:
            total += when - since
        flying += step
        since = when
    return total
