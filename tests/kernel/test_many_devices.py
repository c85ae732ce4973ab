#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Are four disks under simultaneous load kept apart, each counted exactly?"""
from lib import compare, rig
from lib.observe import observe

IOS = 60_000 if rig.LONG else 12_000


def test(check, state):
    seed = rig.fresh_seed()

    def load():
        loads = [rig.Load(rig.fio_command(disk, seed + i, [{"rw": "randrw", "rwmixread": 20 * (i + 1)}], bs=4096 << i,
                                          ioengine="io_uring", iodepth=16, number_ios=IOS + i * 1000, size="256M",
                                          io_size="16T")) for i, disk in enumerate(disks)]
        return [running.jobs()[0] for running in loads]

    with rig.ram_disks(state, count=4, size="256M") as disks:
        seen = observe(check, state, disks, load)
        for disk, job in zip(disks, seen.result):
            for operation in ("read", "write"):
                compare.submitted(check, seen, disk, operation, job[operation]["total_ios"], job[operation]["io_bytes"])
            compare.counts(check, seen, disk)


rig.main(test)
