# SPDX-License-Identifier: Apache-2.0
"""Runs a load under the daemon and the tracer at once, and hands back what both saw.

A trace proves something only if it is complete. Diskstats say so, which know of no tracepoint: where they count I/Os
that the trace lacks, the kernel called no program at all for a while (seen on a busy virtual machine: for up to a few
milliseconds every tracepoint of one CPU is silent, and no count of skipped programs grows). Such a run is repeated; the
daemon's own figures have no say in that.
"""
from contextlib import ExitStack
from dataclasses import dataclass

from lib import metrics, rig, trace

TRIES = 10
COMPARISON_SECONDS = 6  # the daemon looks at diskstats every fourth tick


@dataclass
class Observation:
    result: object  # of the load
    difference: metrics.Difference
    traces: dict  # disk name -> trace.Trace

    def trace(self, disk):
        return self.traces[disk.name]


def observe(check, state, disks, load, mode="full", drift=False):
    """The first Observation whose trace is complete. A daemon of its own serves each try.

    With `drift`, the daemon compared itself with diskstats before the load, and again behind it.
    """
    for _ in range(TRIES):
        observation, blind = _once(state, disks, load, mode, drift)
        if not blind:
            return observation
        check.figure(f"AGAIN: the trace is not complete: {'; '.join(blind)}")
    raise RuntimeError(f"no complete trace in {TRIES} tries: this host is too busy to be an oracle")


def _compared(daemon, disks):
    """Waits for the daemon's first comparison with diskstats, from which drift counts."""
    for _ in range(3 * COMPARISON_SECONDS):
        scrape = daemon.at_rest(1)
        if all(scrape.series("ssdpulse_accounting_drift_ios", device=disk.name) for disk in disks):
            return
    raise RuntimeError(f"no ssdpulse_accounting_drift_ios in {3 * COMPARISON_SECONDS} s")


def _once(state, disks, load, mode, drift):
    with ExitStack() as stack:
        tracer = stack.enter_context(rig.tracer(state, disks))
        daemon = stack.enter_context(rig.daemon(state, disks, mode))
        if drift:
            _compared(daemon, disks)
        before = daemon.at_rest(1.2)
        tracer.begin()
        stats = {disk.name: disk.stat() for disk in disks}
        result = load()
        settle = COMPARISON_SECONDS if drift else rig.SETTLE_SECONDS
        difference = metrics.Difference(before, daemon.at_rest(settle))
        tracer.end()
    traces = {disk.name: tracer.read(disk) for disk in disks}
    blind = [f"{disk.name}: {why}" for disk in disks for why in missing(disk, stats[disk.name], traces[disk.name])]
    return Observation(result, difference, traces), blind


def missing(disk, stats_before, traced):
    """Where the trace contradicts the kernel's own statistics, or itself. Empty when it is complete."""
    now = disk.stat()
    have = {operation: now[operation] - stats_before[operation] for operation in now}
    ios = trace.expected_counts(traced)
    # Of a flush sequence, the kernel counts the parent and not its data stage.
    writes = (sum(ios[op] for op in ("write", "write_zeroes", "secure_erase")) + traced.unissued["write"]
              - traced.data_stages)
    want = {"read": ios["read"], "write": writes, "discard": ios["discard"], "flush": ios["flush"]}
    found = [f"{operation}: {want[operation]} traced, {have[operation]} in diskstats"
             for operation in want if want[operation] != have[operation]]
    if traced.gaps:
        found.append(f"{traced.gaps} events without the one before them")
    if traced.left_in_flight:
        found.append(f"{len(traced.left_in_flight)} without an end")
    return found
