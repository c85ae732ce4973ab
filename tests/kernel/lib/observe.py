# SPDX-License-Identifier: Apache-2.0
"""Runs a load under the daemon and the tracer at once; returns what both saw, and what the kernel itself counted.

On a busy virtual machine the kernel sometimes runs no program at all for an event (see README.md). The daemon and the
tracer then miss the same events, so the daemon must still report exactly what follows from the trace. Diskstats, which
do not depend on tracepoints, show how much nobody saw: it is what the load did beyond the trace.
"""
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass

from lib import metrics, rig, trace

COMPARISON_TICKS = 4  # the daemon reads diskstats at every fourth tick
WRITES = ("write", "write_zeroes", "secure_erase", "zone")


@dataclass
class Observation:
    result: object  # of the load
    difference: metrics.Difference
    traces: dict  # disk name -> trace.Trace
    kernel: dict  # disk name -> what its stat() grew by
    kernel_bytes: dict  # disk name -> what its stat_bytes() grew by
    drift: bool  # whether the daemon compared its counts with diskstats before and after

    def trace(self, disk):
        return self.traces[disk.name]

    def ended_beyond(self, disk, left=()):
        """By group, requests that ended by diskstats, less those in the trace: I/Os of which nobody saw anything."""
        traced = ended_by_group(self.traces[disk.name], left)
        return {group: ios - traced[group] for group, ios in self.kernel[disk.name].items()}

    def bytes_beyond(self, disk, group):
        """Bytes whose completion nobody saw."""
        return self.kernel_bytes[disk.name][group] - by_group(self.traces[disk.name].bytes)[group]

    def unseen(self, disk, group):
        """An upper bound on the I/Os of the group that lack something that the trace could have had."""
        traced = self.traces[disk.name]
        # A stage of a flush sequence whose end nobody saw is counted twice, and may hide another one.
        times = 2 if group == "write" and traced.data_stages else 1
        return max(0, self.ended_beyond(disk)[group]) + times * by_group(traced.unseen())[group]


def growth(now, before):
    return {key: value - before[key] for key, value in now.items()}


def by_group(count):
    """Groups operations as diskstats do. Diskstats count no bytes for flushes."""
    return Counter({"read": count["read"], "write": sum(count[op] for op in WRITES), "discard": count["discard"],
                    "flush": count["flush"]})


def ended_by_group(traced, left=()):
    """Of a flush sequence, the kernel counts the parent, not its data stage."""
    ended = by_group(traced.ended(left))
    ended["write"] -= traced.data_stages
    return ended


def observe(check, state, disks, load, mode="full", drift=False):
    """With `drift`, the daemon compares its counts with diskstats before the load and again after it."""
    with ExitStack() as stack:
        tracer = stack.enter_context(rig.tracer(state, disks))
        daemon = stack.enter_context(rig.daemon(state, disks, mode))
        stats = {disk.name: (disk.stat(), disk.stat_bytes()) for disk in disks}
        before = _compared(daemon, disks) if drift else daemon.scrape()
        tracer.begin()
        result = load()
        after = daemon.after_ticks(COMPARISON_TICKS if drift else 1)
        check.figure(f"tracer: {tracer.end()}")
        kernel = {disk.name: growth(disk.stat(), stats[disk.name][0]) for disk in disks}
        kernel_bytes = {disk.name: growth(disk.stat_bytes(), stats[disk.name][1]) for disk in disks}
    traces = {disk.name: tracer.read(disk) for disk in disks}
    observation = Observation(result, metrics.Difference(before, after), traces, kernel, kernel_bytes, drift)
    for disk in disks:
        _tell(check, observation, disk)
    return observation


def _compared(daemon, disks):
    """A scrape after the daemon's first comparison with diskstats, from which drift is counted."""
    for _ in range(10):
        scrape = daemon.scrape()
        if all(scrape.series("ssdpulse_accounting_drift_ios", device=disk.name) for disk in disks):
            return scrape
        daemon.after_ticks()
    raise RuntimeError("no ssdpulse_accounting_drift_ios")


def _tell(check, seen, disk):
    traced, beyond = seen.trace(disk), {group: n for group, n in seen.ended_beyond(disk).items() if n}
    check.figure(f"{disk.name}: {len(traced.ios)} I/Os; unseen: ends {dict(traced.missed)}, issues "
                 f"{dict(Counter(io.operation for io in traced.strays))}, swapped {traced.swapped}, left in flight "
                 f"{len(traced.left_in_flight)}; nothing seen of {beyond}")
