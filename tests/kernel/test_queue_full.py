#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Does ssdpulse_io_queue_full_seconds_total grow with the clock while requests wait for a tag, and only then?

On a device that is slow enough, twice its depth keeps it full from the first moment to the last. On a fast one the
queue is full for some of the time: that run is only printed, because who waited cannot be seen in the trace. (Tags are
handed to waiters in batches of 8, so that somebody waits while all but 8 are taken.)
"""
from lib import rig, trace
from lib.observe import observe

NAME = "ssdpulse_io_queue_full_seconds_total"
SLOW_SECONDS = 4 if rig.LONG else 2
FAST_RUNTIME = "1s" if rig.LONG else "300ms"  # each I/O is traced, and read in Python


def measure(check, state, disk, seed, **options):
    """(counter, seconds with all tags taken, with nearly all taken, seconds from first issue to last completion)."""
    seen = observe(check, state, [disk], lambda: rig.fio(disk, seed, rw="randrw", bs="4k", size="100M", io_size="16T",
                                                         time_based=None, **options))
    ios = seen.trace(disk).ios
    depth = int(disk.queue("nr_requests"))
    taken = [trace.full_nanoseconds(ios, d) / 1e9 for d in (depth, depth - 8)]
    span = (max(io.complete[1] for io in ios) - min(io.issue[0] for io in ios)) / 1e9
    return seen.difference.value(NAME, device=disk.name), *taken, span


def test(check, state):
    seed = rig.fresh_seed()
    with rig.fuse_disk(state, "128M", ["delay"], "delay-read=1ms", "delay-write=1ms") as disk:
        check.equal(disk.queue("nr_requests"), "128", "tags of the disk")
        for engine in ("libaio", "io_uring"):
            have, full, nearly, span = measure(check, state, disk, seed, ioengine=engine, iodepth=256,
                                             runtime=SLOW_SECONDS)
            check.that(0.9 * span <= have <= 1.02 * span, f"{engine}, depth 256, slow disk: {have:.3f} s of "
                       f"{span:.3f} s; all tags taken for {full:.3f} s, all but 8 for {nearly:.3f} s")
            check.that(0.9 * nearly <= have <= 1.1 * nearly, f"{engine}: the trace's time with a waiter, within 10 %")
        have, full, _, span = measure(check, state, disk, seed, ioengine="libaio", iodepth=32, runtime=2)
        check.that(have == 0 and full == 0, f"depth 32, slow disk: {have} s of {span:.3f} s")
    with rig.ram_disks(state) as [disk]:
        have, full, nearly, span = measure(check, state, disk, seed, ioengine="io_uring", iodepth=256, runtime=FAST_RUNTIME)
        check.figure(f"depth 256, fast disk: {have:.3f} s of {span:.3f} s; all tags taken for {full:.3f} s, "
                     f"all but 8 for {nearly:.3f} s")
        check.that(have <= 1.02 * span + 0.01, "fast disk: no more than the run's length")
        have, full, _, span = measure(check, state, disk, seed, ioengine="io_uring", iodepth=32, runtime=FAST_RUNTIME)
        check.that(have == 0 and full == 0, f"depth 32, fast disk: {have} s of {span:.3f} s")


rig.main(test)
