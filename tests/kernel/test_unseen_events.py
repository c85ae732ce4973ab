#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What must an observer that did not see everything conclude? Traces written by hand: needs neither I/O nor a daemon.

The same rules judge the daemon in the other tests, whenever the kernel happens to run no program for an event.
"""
from lib import rig, trace

READ, WRITE, FLUSH, DISCARD = 0, 1, 2, 3
DEV, SIZE = 7 << 20, 4096


class Story:
    """Events one microsecond apart, each seen within 40 ns."""

    def __init__(self):
        self._records, self.now = [], 1_000_000

    def add(self, kind, request, tag, start, operation, size=SIZE, done=0, started=1, stage=0):
        self.now += 1000
        self._records.append(trace.RECORD.pack(self.now, self.now + 40, request, 8, start, DEV, tag, -1, 0, operation,
                                               0, size, done, 0, kind, 0, started, stage))
        return self

    def issue(self, request, tag, start, operation=READ, **more):
        return self.add(trace.ISSUE, request, tag, start, operation, **more)

    def end(self, request, tag, start, operation=READ, size=SIZE, **more):
        return self.add(trace.COMPLETE, request, tag, start, operation, size, **{"done": size, **more})

    def told(self, state):
        path = state / "trace.bin"
        path.write_bytes(b"".join(self._records))
        return trace.Trace(path, DEV)


def ends(check, state):
    told = Story().issue(1, 1, 10).issue(1, 1, 1_001_500).end(1, 1, 1_001_500).told(state)
    check.equal((dict(told.missed), len(told.issues), len(told.ios), dict(told.unseen())),
                ({"read": 1}, 2, 1, {"read": 1}),
                "an end: the next I/O of the same request tells")
    told = Story().issue(1, 1, 10).issue(1, 1, 1_001_500).told(state)
    check.equal((dict(told.missed), len(told.left_in_flight)), ({}, 2), "an end: not before that one has ended")
    told = Story().issue(1, 1, 10).issue(2, 1, 1_001_500, FLUSH).told(state)
    check.equal((dict(told.missed), len(told.left_in_flight)), ({"read": 1}, 1), "an end: a flush looks at once")
    told = Story().issue(1, 1, 10, FLUSH).issue(2, 1, 1_001_500).end(2, 1, 1_001_500).told(state)
    check.equal((dict(told.missed), len(told.ios)), ({"flush": 1}, 1), "an end: another request in its place tells")
    told = Story().issue(1, 1, 10).issue(2, 2, 10).end(2, 2, 10).told(state)
    check.equal([one.request for one in told.left_in_flight], [1], "an end: nothing tells")
    check.equal(told.ended(told.left_in_flight)["read"], 2, "an end: it counts all the same")


def issues(check, state):
    told = Story().end(1, 1, 10).told(state)
    check.equal((len(told.strays), len(told.ios), told.bytes["read"]), (1, 0, SIZE), "an issue: a stray")
    told = Story().end(1, 1, 10, WRITE, size=0).end(1, 1, 10, DISCARD, started=0).told(state)
    check.equal((dict(told.unissued), told.strays), ({"write": 1, "discard": 1}, []), "there was none: no loss")
    told = Story().issue(1, 1, 10).end(1, 1, 1_001_500, WRITE).told(state)
    check.equal((dict(told.missed), len(told.strays), told.ios), ({"read": 1}, 1, []),
                "an end and the next issue, of another operation")
    told = Story().issue(1, 1, 10).end(1, 1, 1_001_500).told(state)
    check.equal((dict(told.missed), len(told.strays), told.ios, told.told("read")), ({"read": 1}, 1, [], []),
                "an end and the next issue: it was allocated after the one that is known")
    told = Story().issue(1, 1, 10).end(1, 1, 0).told(state)
    check.equal((len(told.ios), told.swapped), (1, 1), "an end and the next issue: the kernel does not say when that was")


def requeues(check, state):
    story = Story().issue(1, 1, 10).end(1, 1, 10, done=1024).add(trace.REQUEUE, 1, 1, 10, READ)
    told = story.issue(1, 1, 10, size=3072, stage=trace.HAD_BEFORE).end(1, 1, 10, size=3072).told(state)
    check.equal((told.requeues["read"], told.partials["read"], len(told.issues), len(told.ios), told.bytes["read"]),
                (1, 1, 1, 1, SIZE), "given back and issued again")
    check.equal([one.size for one in told.told("read")], [SIZE], "its size is that of the whole")
    told = Story().issue(1, 1, 10).issue(1, 1, 10, size=3072, stage=trace.HAD_BEFORE).told(state)
    check.equal([one.size for one in told.told("read")], [3072], "if its partial end was not seen, that of the rest")
    told = Story().issue(1, 1, 10).end(1, 1, 10, size=3072).told(state)
    check.equal([one.size for one in told.told("read")], [3072], "the same if the next issue was not seen, either")
    told = Story().issue(1, 1, 10).issue(1, 1, 10, stage=trace.HAD_BEFORE).end(1, 1, 10).told(state)
    check.equal((told.requeues["read"], dict(told.unseen())), (1, {}), "given back, though nobody saw that")


def interference(check, state):
    """A discard whose end nobody saw: I/Os that end before its place is needed again may count as overlapping it."""
    story = Story().issue(9, 9, 10, DISCARD)
    for request in (1, 2):
        story.issue(request, request, 10).end(request, request, 10)
    told = story.issue(9, 9, 1_005_500, DISCARD).end(9, 9, 1_005_500, DISCARD).issue(3, 3, 10).end(3, 3, 10).told(state)
    beside = trace.Interference(told, 0)
    said = [(beside.exact(io), beside.candidates(io), beside.doubtful(io)) for io in told.of("read")]
    maybe = ("discard", {"none", "discard"}, True)
    check.equal(said, [maybe, maybe, ("none", {"none"}, False)], "beside an end that nobody saw")
    told = Story().issue(9, 9, 10, DISCARD).issue(1, 1, 10).end(9, 9, 10, DISCARD).end(1, 1, 10).told(state)
    check.equal([trace.Interference(told, 0).candidates(io) for io in told.of("read")], [{"discard"}],
                "beside one that was seen to end")


def test(check, state):
    for story in (ends, issues, requeues, interference):
        story(check, state)


rig.main(test)
