#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Is every written byte counted under the right class? The writer is this test; a file system adds its own.

Includes misaligned and small writes, on a disk whose sectors are smaller than its blocks.
"""
from functools import partial

from lib import rig, writes

SIZE = 1 << 20


def all_told(check, step, what):
    have, complete = step.classes()
    check.that(complete, f"{what}: all bytes have a class: {have}")
    return have


def device(check, watch):
    for direct, name in ((True, "direct"), (False, "writeback")):
        writes.write(watch.disk.path, SIZE, direct=direct)
        step = watch.since()
        have = all_told(check, step, f"device, {name}")
        check.that(step.has_just(have, {name: SIZE}), f"device, {name}: {SIZE} bytes, {step.unseen} not seen: {have}")


def file_system(check, state, watch, fstype):
    with writes.file_system(state, watch.disk.path, fstype) as mount:
        watch.since()
        for direct, name in ((True, "direct"), (False, "writeback")):
            writes.write(mount / name, SIZE, direct=direct)
            step = watch.since()
            have = all_told(check, step, f"{fstype}, {name}")
            data = {kind: have[kind] for kind in ("direct", "writeback", "swap") if kind in have}
            check.that(step.has_just(data, {name: SIZE}), f"{fstype}, {name}: data, {step.unseen} not seen: {data}")
        for number in range(300):
            (mount / f"f{number}").touch()
    have = all_told(check, watch.since(), f"{fstype}, names")
    check.that({"journal", "metadata"} <= set(have) and not {"direct", "swap"} & set(have), f"{fstype}, names: {have}")


def merged(check, watch):
    """Neighbouring buffered writes become one request of many bios: each is counted separately."""
    watch.disk.set_queue("nomerges", 0)
    watch.disk.set_queue("scheduler", "mq-deadline")
    writes.write(watch.disk.path, SIZE)
    step = watch.since()
    requests = step.difference.histogram("ssdpulse_io_size_bytes", device=step.disk, operation="write").count
    have = all_told(check, step, f"merged, {requests} requests")
    check.that(step.has_just(have, {"writeback": SIZE}), f"merged: {SIZE} bytes, {step.unseen} not seen: {have}")
    check.that(requests < SIZE // 4096 // 8, f"merged: {requests} requests")
    hints, complete = step.hints()
    check.that(complete, f"merged: all bytes have a hint: {hints}")


def test(check, state):
    def of_device(watch):
        device(check, watch)
        merged(check, watch)

    with rig.ram_disks(state, count=3, size="512M") as disks, writes.watched(state, disks) as (_, [first, *others]):
        rig.side_by_side(lambda: of_device(first), *(
            partial(file_system, check, state, watch, fstype) for watch, fstype in zip(others, writes.MAKE)))


rig.main(test)
