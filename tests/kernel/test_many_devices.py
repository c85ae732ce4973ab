#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Are four disks under load at once kept apart, each exact?"""
from lib import compare, rig
from lib.observe import observe

IOS = 60_000


def test(check, state):
    seed = rig.fresh_seed()

    def load():
        loads = [rig.Load(rig.fio_command(disk, seed + i, [{"rw": "randrw", "rwmixread": 20 * (i + 1)}], bs=4096 << i,
                                          ioengine="io_uring", iodepth=16, number_ios=IOS + i * 1000, size="256M",
                                          io_size="16T")) for i, disk in enumerate(disks)]
        return [running.jobs()[0] for running in loads]

    with rig.ram_disks(state, count=4, size="256M") as disks:
        seen = observe(check, state, disks, load)
        difference = seen.difference
        for disk, job in zip(disks, seen.result):
            lost = compare.lost_events(difference, disk)
            check.that(lost <= IOS * 1e-5, f"{disk.name}: {lost} counted misses")
            for operation in ("read", "write"):
                have = compare.device_histogram_count(difference, disk, operation)
                truth = job[operation]["total_ios"]
                check.that(have <= truth <= have + lost, f"{disk.name} {operation}: {have} I/Os, {truth} by fio")
                have = difference.value("ssdpulse_io_bytes_total", device=disk.name, operation=operation)
                check.that(have == job[operation]["io_bytes"] or lost, f"{disk.name} {operation}: {have:.0f} bytes")
            compare.at_rest(check, difference.after, disk)


rig.main(test)
