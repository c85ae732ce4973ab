#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Is the share of sequential bytes right, also when many streams interleave and when random I/O runs between them?

The truth is the load's own shape: a stream of n I/Os has n - 1 that begin where the one before ended.
"""
import random

from lib import rig
from lib.observe import observe

STREAMS = 32
PER_STREAM = 1_500 if rig.LONG else 600  # I/Os


def share(difference, disk, operation):
    of = {"device": disk.name, "operation": operation}
    return (difference.value("ssdpulse_io_sequential_bytes_total", **of),
            difference.value("ssdpulse_io_bytes_total", **of))


def streams(rng, rw, size=4096):
    """Jobs on areas of their own, not aligned with each other."""
    area = (1 << 30) // STREAMS
    return [{"rw": rw, "bs": size, "number_ios": PER_STREAM, "iodepth": 1, "ioengine": "psync",
             "offset": i * area + rng.randrange(0, 1024) * 4096, "size": PER_STREAM * size} for i in range(STREAMS)]


def test(check, state):
    seed = rig.fresh_seed()
    rng = random.Random(seed)
    disturbance = {"rw": "randread", "bs": 4096, "number_ios": STREAMS * PER_STREAM, "iodepth": 4,
                   "ioengine": "libaio", "size": "1G", "io_size": "1T"}
    cases = [("32 streams of reads", streams(rng, "read"), "read", 1.0),
             ("32 streams of writes", streams(rng, "write"), "write", 1.0),
             ("32 streams of 16 KiB in step", [{**job, "offset": i << 25} for i, job in
                                               enumerate(streams(rng, "read", 16384))], "read", 1.0),
             ("random reads", [disturbance], "read", 0.0),
             ("one random read for each of 32 streams", [*streams(rng, "read"), disturbance], "read", 0.5)]
    with rig.ram_disks(state) as [disk]:
        for name, jobs, operation, want in cases:
            seen = observe(check, state, [disk], lambda jobs=jobs: rig.fio_jobs(disk, seed, jobs, thread=None))
            sequential, total = share(seen.difference, disk, operation)
            check.equal(int(total), sum(job[operation]["io_bytes"] for job in seen.result), f"{name}: bytes")
            bytes_of_firsts = sum(job["bs"] for job in jobs if job["rw"] != "randread")
            most = want * total - bytes_of_firsts  # every I/O of a stream but its first
            have, low, high = sequential / total, 0.97 * most / total, most / total + 0.01
            check.that(low <= have <= high,
                       f"{name}: sequential share {have:.4f}, expected {max(0, low):.4f}..{high:.4f}")


rig.main(test)
