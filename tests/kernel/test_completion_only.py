#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Does the cheaper mode count the same I/Os and total times, omit what it cannot know, and report that it is in use?"""
from lib import compare, rig, trace
from lib.observe import observe

ABSENT = ("ssdpulse_io_in_flight", "ssdpulse_io_queue_full_seconds_total", "ssdpulse_io_requeues_total")


def test(check, state):
    seed = rig.fresh_seed()
    with rig.ram_disks(state) as [disk]:
        seen = observe(check, state, [disk], lambda: rig.fio(
            disk, seed, rw="randrw", ioengine="io_uring", iodepth=32, number_ios=150_000 if rig.LONG else 30_000,
            bssplit="4k/70:16k/20:64k/10", size="1G", io_size="16T"), mode="completion-only")
        job, difference, traced = seen.result, seen.difference, seen.trace(disk)
        check.equal(dict(compare.lost_events(difference, disk)), {}, "losses: without issues none is known")
        for operation in ("read", "write"):
            of = {"device": disk.name, "operation": operation}
            compare.submitted(check, seen, disk, operation, job[operation]["total_ios"], job[operation]["io_bytes"])
            ended = [io for io in traced.ios + traced.strays if io.operation == operation]
            check.equal(difference.histogram(compare.TOTAL, **of).count, len(ended), f"{operation}: I/Os")
            check.equal(int(difference.value("ssdpulse_io_bytes_total", **of)), traced.bytes[operation],
                        f"{operation}: bytes")
            compare.latencies(check, difference, disk, ended, operation, compare.TOTAL, trace.total_time)
            check.equal(difference.histogram(compare.SIZE, **of).native, trace.sizes(ended), f"{operation} sizes")
        after = difference.after
        present = after.histogram_names(device=disk.name) & {compare.DEVICE, compare.QUEUE}
        present |= {name for name in ABSENT if after.series(name, device=disk.name)}
        check.equal(present, set(), "series that need the issue")
        said = [dict(labels) for (name, labels) in after.values
                if name.endswith("_info") and "completion-only" in dict(labels).values()]
        check.that(said, f"an info metric says which mode runs: {said}")


rig.main(test)
