#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Does the daemon know what it costs, do less when that is too much and more again later, without losing any I/O?

fio reports how many I/Os there were, and the kernel's own accounting what they cost. The limit is derived from the
load's estimated cost, so that the test is the same on every host.
"""
import re
import signal
import threading
from contextlib import contextmanager
from pathlib import Path

import host
from lib import compare, metrics, rig

STATS = Path("/proc/sys/kernel/bpf_stats_enabled")
RATIO, LEVEL, STEPS = "ssdpulse_estimated_bpf_cpu_ratio", "ssdpulse_cpu_limit_level", "ssdpulse_cpu_limit_steps_total"
TOTAL = "ssdpulse_io_latency_seconds"
# The estimate is from consecutive runs with warm caches; the kernel's account includes its own clock readings, and
# whatever interrupts a run, including other guests of this machine.
MOST_APART = 3 if rig.LONG else 10


class Watch:
    """Scrapes the whole time: the levels seen, which series were there at each, and counters that fell."""

    def __init__(self, daemon):
        self._daemon, self._end = daemon, threading.Event()
        self.levels, self.fell, self._highest, self.seen_at = [0], [], {}, {}

    def look(self):
        scrape = self._daemon.scrape()
        level = int(scrape.value(LEVEL))
        if level != self.levels[-1]:
            self.levels.append(level)
        counts = {key: value for key, value in scrape.values.items() if key[0].endswith("_total")}
        counts |= {key: histogram.count for key, histogram in scrape.histograms.items()}
        for key, count in counts.items():
            if count < self._highest.get(key, 0):
                self.fell.append((key, self._highest[key], count))
            self._highest[key] = count
        self.seen_at.setdefault(level, []).append({name for name, _ in scrape.values} | {n for n, _ in scrape.histograms})
        return scrape

    def wait_for(self, level, seconds=40):
        for _ in range(seconds * 5):
            scrape = self.look()
            if int(scrape.value(LEVEL)) == level:
                return scrape
            self._end.wait(0.2)
        raise RuntimeError(f"never at level {level} in {seconds} s; levels so far: {self.levels}")


@contextmanager
def accounted():
    before = STATS.read_text()
    STATS.write_text("1")
    try:
        yield
    finally:
        STATS.write_text(before)


def set_limit(state, daemon, ratio, after="1s"):
    limit = f"{min(max(ratio * 100, 0.0001), 100):.6f}%" if ratio else "0%"
    config = state / "config.yaml"
    text = re.sub(r"\nlimits:.*", "", config.read_text())
    config.write_text(f"{text}\nlimits: {{cpu: {limit}, after: {after}}}\n")
    loaded = daemon.scrape().value("ssdpulse_config_last_reload_success_timestamp_seconds")
    daemon.process.send_signal(signal.SIGHUP)
    for _ in range(100):
        if daemon.scrape().value("ssdpulse_config_last_reload_success_timestamp_seconds") > loaded:
            return
        threading.Event().wait(0.1)
    raise RuntimeError("the configuration was not reloaded")


def write(disk, seed, seconds, **options):
    return rig.Load(rig.fio_command(disk, seed, [{}], rw="randwrite", bs="4k", size="64M", time_based=None, runtime=seconds,
                                    **options))


def mean_ratio(daemon, looks):
    return sum(daemon.after_ticks().value(RATIO) for _ in range(looks)) / looks


def steps(check, state, disk, daemon, watch, seed):
    """One load, with steps down and up again. Returns the number of I/Os by fio."""
    load = write(disk, seed, 30, ioengine="psync", thinktime=200)
    ratio = mean_ratio(daemon, 3)
    check.equal(int(watch.look().value(LEVEL)), 0, "without a limit nothing is turned off")
    # Far below and far above: the speed of this load varies with whatever else the host does.
    set_limit(state, daemon, ratio / 100, after="3s")
    watch.wait_for(2)
    set_limit(state, daemon, ratio * 100, after="1s")
    watch.wait_for(0)
    written = sum(job["write"]["total_ios"] for job in load.jobs())
    check.equal(watch.levels, [0, 1, 2, 1, 0], "each step down, and each up")
    return written


def nothing_is_lost(check, disk, first, after, written):
    counted = metrics.Difference(first, after).histogram(TOTAL, device=disk.name, operation="write").count
    lost = compare.lost_events(metrics.Difference(first, after), disk)
    told = lost["completion_missed"] + lost["stray"]
    # I/Os that no program saw at all (tests/kernel/README.md) are in the drift.
    unseen = -int(after.value("ssdpulse_accounting_drift_ios", device=disk.name, operation="write"))
    check.equal(counted + told + unseen, written, f"fio's writes: {counted} counted, {told} told as lost, {unseen} seen by nobody")
    check.that(unseen <= compare.MOST_UNSEEN * written, "most was seen")
    check.equal(after.value("ssdpulse_io_in_flight", device=disk.name, operation="write"), 0, "nothing stays in flight")
    check.equal(after.value("ssdpulse_lost_events_total", device=disk.name, cause="stray"), 0, "no stray is invented")


def close(check, state, disk, daemon, watch, seed):
    """At full speed: is the estimate right, and do the steps end with detached programs?"""
    set_limit(state, daemon, 0)
    flood = write(disk, seed, 16, ioengine="libaio", iodepth=16)
    own = mean_ratio(daemon, 2)
    with accounted():
        account = daemon.after_ticks(2).value(RATIO)
    check.that(account / MOST_APART < own < account * MOST_APART,
               f"estimated {own:.5f} of all CPUs' time, accounted {account:.5f}: {account / own:.2f} of it")
    set_limit(state, daemon, own / 20)
    closed = watch.wait_for(3)
    flood.jobs()
    watch.look()
    check.equal(watch.levels[-4:], [0, 1, 2, 3], "each step down to the last")
    check.equal(closed.value("ssdpulse_source_up", source="block"), 0, "the source says that it is down")
    check.that("link" not in {kind for kind, _ in host.bpf_of(daemon.process.pid)}, "no link is left")
    check.equal(closed.value(STEPS, direction="down"), 5, "steps down")
    check.equal(closed.value(STEPS, direction="up"), 2, "steps up")


def test(check, state):
    seed = rig.fresh_seed()
    with (rig.ram_disks(state, size="128M") as [disk],
          rig.daemon(state, [disk], settings="\nlimits: {cpu: 0%}\n") as daemon):
        first = daemon.at_rest()
        watch = Watch(daemon)
        written = steps(check, state, disk, daemon, watch, seed)
        nothing_is_lost(check, disk, first, daemon.at_rest(6), written)
        close(check, state, disk, daemon, watch, seed + 2)
        absent(check, watch)
        check.equal(watch.fell, [], "counters that fell")
        said = re.findall(r"limits\.cpu: .* effort=(\w+)", daemon.log.read_text())
        check.equal(said, ["essentials", "completions", "essentials", "everything", "essentials", "completions", "nothing"],
                    "the log says each step")


def absent(check, watch):
    """What is off has no series; a scrape close to a step may show either side."""
    for level, name in ((1, "ssdpulse_path_ios_total"), (2, "ssdpulse_path_ios_total"),
                        (2, "ssdpulse_io_device_latency_seconds"), (3, TOTAL),
                        (3, "ssdpulse_io_bytes_total")):
        check.that(name not in watch.seen_at[level][-1], f"no {name} at level {level}")
    for name in ("ssdpulse_path_ios_total", "ssdpulse_io_device_latency_seconds"):
        check.that(name in watch.seen_at[0][-1], f"{name} again at level 0")


rig.main(test)
