# SPDX-License-Identifier: Apache-2.0
"""What does the block source sample for the flash model (ssdpulse_samples_probe), and what should it, by the rule?

The rule is the definition, page by page: in each aligned group of 2^rate_bits pages of the drive, one page is followed,
the one that MurmurHash3's finalizer picks from the group's number and the seed. A write touches pages, a discard covers
them. An event names the groups whose followed page is in its range.
"""
import json
import subprocess
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass

from lib import rig, trace

PROBE = rig.BUILD / "ssdpulse_samples_probe"
WRITE, DISCARD, ZEROES, ZEROES_KEPT = range(4)
KINDS = {"write": WRITE, "discard": DISCARD, "secure_erase": DISCARD, "write_zeroes": ZEROES}


@dataclass(frozen=True)
class Rule:
    rate_bits: int
    seed: int
    followed: int
    first_page: int = 0
    page_bits: int = 12

    def page_of(self, group):
        mixed = (group ^ self.seed) & 0xFFFFFFFF
        mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & 0xFFFFFFFF
        mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
        return (group << self.rate_bits) + (mixed ^ mixed >> 16) % (1 << self.rate_bits)

    def pages(self, sector, size, kind):
        """Pages of the device that a range touches (a write) or covers (anything else)."""
        begin, end, page = sector * 512, sector * 512 + size, 1 << self.page_bits
        return [number for number in range(begin // page, -(-end // page))
                if kind == WRITE or begin <= number * page and (number + 1) * page <= end]

    def event(self, sector, size, kind):
        """(first, count, kind), or None if there is no followed page in the range."""
        held = [(page + self.first_page) >> self.rate_bits for page in self.pages(sector, size, kind)
                if self._is_followed(page + self.first_page)]
        return (held[0], len(held), kind) if held else None

    def _is_followed(self, page):
        group = page >> self.rate_bits
        return group < self.followed and self.page_of(group) == page


def expected(rule, parts):
    """(events, pages written) for parts of requests: (operation, sector, bytes) of each one that succeeded."""
    events, written = Counter(), 0
    for operation, sector, size in parts:
        kind = KINDS.get(operation)
        if kind is None or not size:
            continue
        event = rule.event(sector, size, kind)
        events += Counter({event: 1} if event else {})
        written += len(rule.pages(sector, size, WRITE)) if kind == WRITE else 0
    return events, written


def parts_of(tracer, disk):
    """Each part that succeeded, whether its issue was seen or not."""
    return [(trace.operation_of(record[9]), record[3], record[12])
            for record in tracer.records_so_far(disk) if record[14] == trace.COMPLETE and not record[15]]


class Probe:
    """The events of all samples add up."""

    def __init__(self, process):
        self._process = process
        self.events, self.devices = [], {}

    def _say(self, *words):
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        self.events += answer["events"]
        self.devices = answer["devices"]

    def sample(self, disk, rule):
        self._say("sample", disk.name, rule.page_bits, rule.rate_bits, rule.seed, rule.followed, rule.first_page)

    def off(self, disk):
        self._say("off", disk.name)

    def look(self):
        self._say("look")

    def of(self, disk):
        """Counter of (first, count, kind) so far."""
        return Counter((first, count, kind) for name, first, count, kind, _ in self.events if name == disk.name)

    def hints(self, disk):
        return Counter(hint for name, _, _, kind, hint in self.events if name == disk.name and kind == WRITE)


@contextmanager
def probe(disks, mode="full"):
    process = subprocess.Popen([PROBE, mode, *(disk.name for disk in disks)], text=True, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
    try:
        yield Probe(process)
    finally:
        process.stdin.close()
        process.wait(30)
