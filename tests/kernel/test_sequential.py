#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Is the share of sequential bytes right, even when many streams interleave and random I/O runs between them?

The truth is the load's own shape: in a stream of n I/Os, n - 1 begin where the one before ended.
"""
import random

from lib import compare, rig
from lib.observe import observe

STREAMS = 32
PER_STREAM = 1_500  # I/Os; with a fifth of that, one burst of completions that no program sees can hide most of a load


def streams(rng, rw, size=4096):
    """Jobs on separate areas, not aligned with each other."""
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
    with rig.ram_disks(state, count=len(cases), filled=False) as disks:
        seen = observe(check, state, disks, lambda: [rig.fio_jobs(disk, seed, jobs, thread=None)
                                                     for disk, (_, jobs, _, _) in zip(disks, cases)])
        for disk, result, (name, jobs, operation, want) in zip(disks, seen.result, cases):
            total = sum(job[operation]["io_bytes"] for job in result)
            compare.submitted(check, seen, disk, operation, sum(job[operation]["total_ios"] for job in result), total)
            have = seen.difference.value("ssdpulse_io_sequential_bytes_total", device=disk.name, operation=operation)
            most = want * total - sum(job["bs"] for job in jobs if job["rw"] != "randread")  # all but a stream's first
            # An I/O whose issue nobody saw is not sequential, nor is the next one.
            unseen = 2 * seen.unseen(disk, operation) * max(job["bs"] for job in jobs)
            have, low, high = have / total, 0.97 * (most - unseen) / total, most / total + 0.01
            check.that(low <= have <= high,
                       f"{name}: sequential share {have:.4f}, expected {max(0, low):.4f}..{high:.4f}")


rig.main(test)
