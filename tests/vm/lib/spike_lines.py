# SPDX-License-Identifier: Apache-2.0
"""Latency spikes as the daemon's log reports them, and by how much the guest's clock is ahead of this host's."""
import re
import time
from dataclasses import dataclass, replace

import machine

GOES_ON = "latency spike continues"
LINE = re.compile(r"latency spike device=(\S+) operation=(\S+) cause=(\S+) begin=(\S+) seconds=([\d.]+)(.*)")


@dataclass(frozen=True)
class Spike:
    device: str
    operation: str
    cause: str
    begin: float
    end: float
    rest: str

    def moved(self, seconds):
        return replace(self, begin=self.begin + seconds, end=self.end + seconds)


def spikes_of(words):
    """By the guest's clock."""
    return [Spike(device, operation, cause, machine.wall_seconds(begin), machine.wall_seconds(begin) + float(seconds), rest)
            for device, operation, cause, begin, seconds, rest in LINE.findall(words)]


def ahead(vm):
    """Seconds by which the guest's clock is ahead of ours, from the quickest reading, and how long that took."""
    readings = []
    for _ in range(12):
        asked = time.time()
        clock = vm.clock()
        answered = time.time()
        readings.append((answered - asked, clock - (asked + answered) / 2))
    took, offset = min(readings)
    return offset, took
