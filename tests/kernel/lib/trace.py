# SPDX-License-Identifier: Apache-2.0
"""What must an observer that saw just these events conclude? Reads ssdpulse_iotrace's file and pairs issues with ends.

The rules are those of the design (decisions 5 to 7), written a second time: nothing is shared with the daemon.
Every instant is known as an interval [before, after] that contains the daemon's clock reading for the same event.

An event that no BPF program saw is missing here just as it is for the daemon. The rules say what follows from that: an
issue into an occupied place means an end that nobody saw, and an end without its issue is a stray.

The rules also say when a missing end is discovered: a read or a write is put into its place without checking it, so the
earlier occupant is known to have ended only when the new one ends. All other operations check first.
"""
import struct
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from lib import buckets

RECORD = struct.Struct("<QQQQQIiiIIIIIIBBBB")  # tests/kernel/trace/event.h
ISSUE, COMPLETE, REQUEUE = range(3)
UNKNOWN_BEFORE = 1000  # ns, if the first program did not see the event

OPERATIONS = {0: "read", 1: "write", 2: "flush", 3: "discard", 5: "secure_erase", 7: "write", 9: "write_zeroes"}
ERRORS = {1: "unsupported", 2: "timeout", 3: "nospace", 4: "transport", 5: "target", 7: "medium", 8: "protection",
          10: "io"}
FUA = 1 << 17  # include/linux/blk_types.h: the same bit on every supported kernel
FLUSH_STAGE, HAS_BIO, HAD_BEFORE = 1, 2, 4  # flags of an event
DURINGS = ("none", "discard", "flush", "both")
HOT = ("read", "write")


def operation_of(cmd_flags):
    code = cmd_flags & 0xFF
    return "passthrough" if code >= 32 else OPERATIONS.get(code, "zone")


@dataclass(slots=True)
class Issued:
    """What the issues of a request reveal. It stays in its place until its end, or until another one's issue."""
    operation: str
    request: int
    start: int  # the kernel's start_time_ns
    first_issue: tuple  # (before, after)
    issue: tuple  # the last one
    size: int
    gone: tuple = None  # when it was discovered that its end had not been seen
    told: bool = False  # its size and queue time are counted: after its end, a partial end, or a second issue
    hidden: list = field(default_factory=list)  # earlier occupants of its place that have not been found missing yet

    def tell(self, size):
        """The size is what this event finds left to do: less than at the issue if nobody saw that a part ended."""
        if not self.told:
            self.told, self.size = True, size


@dataclass(slots=True)
class Io:
    """A request that ended. Its issue is None if nobody saw it, and may be an earlier I/O's of the same request."""
    operation: str
    start: int
    size: int  # bytes left to do
    complete: tuple
    issued: Issued

    @property
    def issue(self):
        return self.issued.issue


class Trace:
    """The I/Os of one disk, and what else its events show. Counters are by operation."""

    def __init__(self, path, dev):
        self.issues = []  # Issued, by first issue
        self.ios = []  # Io with an issue, by final completion
        self.strays = []  # Io without one
        self.commits = []  # what a caller of fsync waits for: parents of flush sequences, and FUA writes outside one
        self.missed = Counter()  # ends that nobody saw, as revealed by a later issue or end in the same place
        self.swapped = 0  # ends of a later I/O of the same request, allocated before the issue recorded here
        self.unissued = Counter()  # completions of requests that were never issued
        self.data_stages = 0  # writes that were one stage of a flush sequence: their parent ended after them
        self.errors = Counter()  # (operation, error)
        self.bytes = Counter()
        self.requeues = Counter()  # issues of requests that were already in flight
        self.requeues_seen = 0  # according to the requeue tracepoint
        self.partials = Counter()
        self.events = 0
        self.widest = 0  # longest [before, after]
        self.no_before = 0
        places = {}
        for record in self.records(path, dev):
            self._take(places, *record)
        self.left_in_flight = [one for held in places.values() for one in (held, *held.hidden)]

    @staticmethod
    def records(path, dev):
        records = [r for r in RECORD.iter_unpack(Path(path).read_bytes()) if r[5] == dev]
        records.sort(key=lambda r: r[1])
        return records

    def _take(self, places, before, after, request, _sector, start, _dev, tag, internal_tag, hctx, cmd_flags, _rq_flags,
              data_len, nr_bytes, _cpu, kind, status, started, flags):
        self.events += 1
        if before == 0:
            self.no_before += 1
            before = after - UNKNOWN_BEFORE
        self.widest = max(self.widest, after - before)
        place = hctx, internal_tag if internal_tag >= 0 else tag  # the tag that survives a requeue
        operation = operation_of(cmd_flags)
        if kind == ISSUE:
            self._issue(places, place, Issued(operation, request, start, (before, after), (before, after), data_len),
                        flags & HAD_BEFORE)
        elif kind == REQUEUE:
            self.requeues_seen += 1
        else:
            io = Io(operation, start, data_len, (before, after), None)
            self._complete(places, place, request, io, nr_bytes, status, started, flags)
            # A parent has no data left; a stage is not a commit of its own.
            if operation == "write" and nr_bytes >= data_len and flags & (HAS_BIO | FLUSH_STAGE) == HAS_BIO \
                    and (not data_len or cmd_flags & FUA):
                self.commits.append(io)

    def _issue(self, places, place, new, had_before):
        held = places.get(place)
        # A request serves one I/O after another: the driver has not had a new one before.
        if had_before and _is_own(held, new):
            held.issue = new.issue
            held.tell(new.size)
            self.requeues[new.operation] += 1
            return
        if held:
            new.hidden = [held, *held.hidden]
        if had_before or new.operation not in HOT:
            self._miss(new.hidden, new.issue)
            new.hidden = []
        places[place] = new
        self.issues.append(new)

    def _miss(self, these, when):
        """Their ends were not seen, and this is now known."""
        for one in these:
            one.gone = when
            self.missed[one.operation] += 1

    def _complete(self, places, place, request, io, nr_bytes, status, started, flags):
        small = io.operation in HOT
        self.bytes[io.operation] += nr_bytes
        if status and (io.size or not small):  # a flush sequence's parent repeats its stage's error
            self.errors[io.operation, ERRORS.get(status, "other")] += 1
        held = places.get(place)
        own = _is_own(held, Issued(io.operation, request, io.start, None, None, io.size))
        if nr_bytes < io.size:
            self.partials[io.operation] += 1
            if own:
                held.tell(io.size)
            return
        if small and not io.size and flags & HAS_BIO or not started and not flags & HAD_BEFORE:
            self.unissued[io.operation] += 1
            return
        if held:
            self._miss(held.hidden if own else [held, *held.hidden], io.complete)
            del places[place]
        if own:
            held.tell(io.size)
            io.issued = held
            self.ios.append(io)
            self.swapped += held.start != io.start
            self.data_stages += io.operation == "write" and bool(flags & FLUSH_STAGE)
        elif not started or small and not io.size:
            self.unissued[io.operation] += 1
        else:
            self.strays.append(io)

    def of(self, operation):
        if operation == "commit":
            return self.commits
        return [io for io in self.ios if io.operation == operation]

    def issued(self, operation):
        return [issued for issued in self.issues if issued.operation == operation]

    def told(self, operation):
        """Issued requests whose size and time in the queue are known."""
        return [issued for issued in self.issued(operation) if issued.told]

    def operations(self):
        return sorted({one.operation for one in self.issues + self.ios + self.strays} | set(self.unissued))

    def unseen(self):
        """By operation, how many I/Os are known to lack an event."""
        swapped = [one for io in self.ios if io.issued.start != io.start for one in (io, io.issued)]
        return self.missed + Counter(one.operation for one in self.strays + self.left_in_flight + swapped)

    def ended(self, left=()):
        """Requests that ended, whatever was seen of them; `left` are requests that ended as well."""
        count = Counter(io.operation for io in self.ios + self.strays + list(left))
        return count + self.unissued + self.missed


def _is_own(held, io):
    """An I/O that was allocated before the last issue in the place is the one that was issued."""
    return held and (held.request, held.operation) == (io.request, io.operation) and io.start <= held.issue[1]


def sizes(ios):
    return Counter(buckets.size_bucket(io.size) for io in ios)


def device_time(io):
    return io.complete[0] - io.issue[1], io.complete[1] - io.issue[0]


def queue_time(issued):
    return issued.first_issue[0] - issued.start, issued.first_issue[1] - issued.start


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

    `slack` widens what is possible and narrows what is certain: the kernel's state changes slightly before or after the
    clock reading. A discard or flush whose end nobody saw is in flight until its place is needed again, if the daemon
    learns of the loss no sooner. It may learn of it at any time before that, so only the issue is certain.
    """

    def __init__(self, trace, slack):
        self._slack = slack
        seen, unseen = {}, {}
        for kind in ("discard", "flush"):
            seen[kind], unseen[kind] = self._intervals(trace, kind)
        self._unsure = any(unseen.values())
        self._exact = self._overlaps(seen, unseen, self._middle)
        self._least = self._overlaps(seen, _only_begun(unseen), self._middle)
        self._widest = self._overlaps(seen, unseen, self._wide)
        self._narrowest = self._overlaps(seen, _only_begun(unseen), self._narrow)

    @staticmethod
    def _intervals(trace, kind):
        """(first issue, end) of those that were seen to end, and of those whose end was discovered later or never."""
        seen = [(io.issued.first_issue, io.complete) for io in trace.ios if io.operation == kind]
        unseen = [(issued.first_issue, issued.gone) for issued in trace.issued(kind) if issued.gone]
        return seen, unseen + [(one.first_issue, None) for one in trace.left_in_flight if one.operation == kind]

    @staticmethod
    def _overlaps(seen, unseen, reading):
        return {kind: _Overlap([reading(*interval) for interval in seen[kind] + unseen[kind]]) for kind in seen}

    @staticmethod
    def _middle(begin, end):
        return begin and middle(begin), end and middle(end)

    def _wide(self, begin, end):
        return (begin or end)[0] - self._slack, end and end[1] + self._slack

    def _narrow(self, begin, end):
        return begin and begin[1] + self._slack, end and end[0] - self._slack

    def _answer(self, overlaps, reading, io):
        """Only reads and writes have different answers."""
        if io.operation not in ("read", "write"):
            return "none"
        return _during(*(other.meets(*reading(io.issue, io.complete)) for other in overlaps.values()))

    def exact(self, io):
        """The answer by the middles of the brackets."""
        return self._answer(self._exact, self._middle, io)

    def doubtful(self, io):
        """Does it overlap something only because nobody saw the end of that?"""
        return self._unsure and self.exact(io) != self._answer(self._least, self._middle, io)

    def candidates(self, io):
        """Every answer that some reading of the clocks allows."""
        widest, narrowest = (DURINGS.index(self._answer(overlaps, reading, io)) for overlaps, reading in
                             ((self._widest, self._wide), (self._narrowest, self._narrow)))
        return {_during(d, f) for d in {widest & 1, narrowest & 1} for f in {widest >> 1, narrowest >> 1}}


def _only_begun(intervals):
    return {kind: [(begin, begin) for begin, _ in these] for kind, these in intervals.items()}


def _during(discard, flush):
    return DURINGS[discard + 2 * flush]


class _Overlap:
    """Intervals. An edge of None means no beginning, or no end. An interval that ends before it begins (because of the
    slack) does not count."""

    def __init__(self, intervals):
        intervals = [(begin, end) for begin, end in intervals if begin is None or end is None or begin <= end]
        self._begins = sorted(begin for begin, _ in intervals if begin is not None)
        self._ends = sorted(end for _, end in intervals if end is not None)

    def meets(self, begin, end):
        """More have begun than ended by `end`, or something ended from `begin` on."""
        ended = bisect_right(self._ends, end)
        return begin <= end and (bisect_right(self._begins, end) > ended or ended > bisect_left(self._ends, begin))


def histogram_bounds(ios, measure):
    """Certain measurements by range of buckets, for buckets.impossible()."""
    return Counter(bucket_range(measure(io)) for io in ios)


def during_bounds(trace, operation, slack):
    """(during -> (certain, possible, exact count), doubtful I/Os), for the device histograms of one operation."""
    interference = Interference(trace, slack)
    certain, possible, exact = defaultdict(Counter), defaultdict(Counter), Counter()
    doubtful = 0
    for io in trace.of(operation):
        candidates = interference.candidates(io)
        exact[interference.exact(io)] += 1
        doubtful += interference.doubtful(io)
        where = bucket_range(device_time(io))
        for during in candidates:
            (certain if len(candidates) == 1 else possible)[during][where] += 1
    return {during: (certain[during], possible[during], exact[during]) for during in DURINGS}, doubtful


def full_nanoseconds(ios, depth):
    """For how long were at least `depth` I/Os between their allocation and their completion?"""
    steps = sorted([(io.start, 1) for io in ios] + [(middle(io.complete), -1) for io in ios])
    total = flying = since = 0
    for when, step in steps:
        if flying >= depth:
            total += when - since
        flying += step
        since = when
    return total
