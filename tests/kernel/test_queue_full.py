#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Does ssdpulse_io_queue_full_seconds_total grow with the clock while requests wait for a tag, and only then?

On a device that is slow enough, a load of twice its depth keeps it full from beginning to end. On a fast one the
queue is full for some of the time: that run is only printed, because the trace does not show which requests waited.
(Tags are handed to waiters in batches of 8, so that somebody waits while all but 8 are taken.)
"""
from contextlib import ExitStack

from lib import rig, trace
from lib.observe import observe

NAME = "ssdpulse_io_queue_full_seconds_total"
SLOW_SECONDS = 4 if rig.LONG else 1
FAST_RUNTIME = "1s" if rig.LONG else "200ms"  # each I/O is traced, and the trace is read in Python
LOADS = (("slow", "libaio", 256), ("slow", "io_uring", 256), ("slow", "libaio", 32), ("fast", "io_uring", 256),
         ("fast", "io_uring", 32))


def load(disks, seed):
    for disk, (speed, engine, depth) in zip(disks, LOADS):
        rig.fio(disk, seed, rw="randrw", bs="4k", size="100M", io_size="16T", ioengine=engine, iodepth=depth,
                time_based=None, runtime=SLOW_SECONDS if speed == "slow" else FAST_RUNTIME)


def judge(check, seen, disk, speed, engine, depth):
    ios, tags = seen.trace(disk).ios, int(disk.queue("nr_requests"))
    full, nearly = (trace.full_nanoseconds(ios, taken) / 1e9 for taken in (tags, tags - 8))
    span = (max(io.complete[1] for io in ios) - min(io.issue[0] for io in ios)) / 1e9
    have = seen.difference.value(NAME, device=disk.name)
    what = f"{speed} disk, {engine}, depth {depth}"
    figures = f"{have:.3f} s of {span:.3f} s; all tags taken for {full:.3f} s, all but 8 for {nearly:.3f} s"
    check.equal(tags, 128, f"{what}: tags")
    if depth < tags:
        check.that(have == 0 and full == 0, f"{what}: {figures}")
        return
    check.that(have <= 1.02 * span + 0.01, f"{what}: no more than the run's length: {figures}")
    if speed == "slow":
        check.that(nearly >= 0.5 * span, f"{what}: the load keeps the queue full")
        check.that(0.9 * nearly <= have <= 1.1 * nearly, f"{what}: the trace's time with a waiter, within 10 %")


def test(check, state):
    seed = rig.fresh_seed()
    with ExitStack() as stack:
        disks = [stack.enter_context(rig.fuse_disk(state, "128M", ["delay"], "delay-read=1ms", "delay-write=1ms"))
                 for speed, *_ in LOADS if speed == "slow"]
        disks += stack.enter_context(rig.ram_disks(state, count=len(LOADS) - len(disks), size="128M"))
        seen = observe(check, state, disks, lambda: load(disks, seed))
        for disk, one in zip(disks, LOADS):
            judge(check, seen, disk, *one)


rig.main(test)
