#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Does the cheaper mode count the same I/Os and total times, leave out what it cannot know, and say that it runs?"""
from lib import compare, rig, trace
from lib.observe import observe

ABSENT = ("ssdpulse_io_in_flight", "ssdpulse_io_queue_full_seconds_total", "ssdpulse_io_requeues_total")


def test(check, state):
    seed = rig.fresh_seed()
    with rig.ram_disks(state) as [disk]:
        seen = observe(check, state, [disk], lambda: rig.fio(
            disk, seed, rw="randrw", ioengine="io_uring", iodepth=32, number_ios=150_000,
            bssplit="4k/70:16k/20:64k/10", size="1G", io_size="16T"), mode="completion-only")
        job, difference, traced = seen.result, seen.difference, seen.trace(disk)
        lost = compare.lost_events(difference, disk)
        check.equal(lost, 0, "counted misses")
        for operation in ("read", "write"):
            of = {"device": disk.name, "operation": operation}
            check.equal(difference.histogram(compare.TOTAL, **of).count, job[operation]["total_ios"],
                        f"{operation}: I/Os as fio says")
            check.equal(int(difference.value("ssdpulse_io_bytes_total", **of)), job[operation]["io_bytes"],
                        f"{operation}: bytes as fio says")
            compare.latencies(check, difference, disk, traced, operation, lost, compare.TOTAL, trace.total_time)
            check.equal(difference.histogram(compare.SIZE, **of).native, traced.sizes(operation), f"{operation} sizes")
        after = difference.after
        present = after.histogram_names(device=disk.name) & {compare.DEVICE, compare.QUEUE}
        present |= {name for name in ABSENT if after.series(name, device=disk.name)}
        check.equal(present, set(), "series that need the issue")
        said = [dict(labels) for (name, labels) in after.values
                if name.endswith("_info") and "completion-only" in dict(labels).values()]
        check.that(said, f"an info metric says which mode runs: {said}")


rig.main(test)
