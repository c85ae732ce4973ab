#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Is every written byte told under the right class? The writer is this test; a file system adds its own.

Also misaligned and small writes, on a disk of sectors that are smaller than its blocks.
"""
from lib import rig, writes

SIZE = 1 << 20


def device(check, watch, disk):
    for direct, name in ((True, "direct"), (False, "writeback")):
        writes.write(disk.path, SIZE, direct=direct)
        check.equal(watch.classes(watch.since()), ({name: SIZE}, True), f"device, {name}")


def file_system(check, state, watch, disk, fstype):
    with writes.file_system(state, disk.path, fstype) as mount:
        watch.since()
        for direct, name in ((True, "direct"), (False, "writeback")):
            writes.write(mount / name, SIZE, direct=direct)
            have, complete = watch.classes(watch.since())
            check.equal({kind: have.get(kind, 0) for kind in ("direct", "writeback", "swap")},
                        {"direct": 0, "writeback": 0, "swap": 0, name: SIZE}, f"{fstype}, {name}: data")
            check.that(complete, f"{fstype}, {name}: all bytes have a class: {have}")
        for number in range(300):
            (mount / f"f{number}").touch()
    have, complete = watch.classes(watch.since())
    check.that(complete, f"{fstype}, names: all bytes have a class")
    check.that({"journal", "metadata"} <= set(have) and not {"direct", "swap"} & set(have), f"{fstype}, names: {have}")


def merged(check, watch, disk):
    """Buffered neighbours become one request of many bios: each is told for itself."""
    disk.set_queue("nomerges", 0)
    disk.set_queue("scheduler", "mq-deadline")
    writes.write(disk.path, SIZE)
    difference = watch.since()
    size = difference.histogram("ssdpulse_io_size_bytes", device=disk.name, operation="write")
    have, complete = watch.classes(difference)
    check.that(complete, f"merged: all of {SIZE} bytes in {size.count} requests have a class: {have}")
    check.equal(have, {"writeback": SIZE}, "merged")
    check.that(size.count < SIZE // 4096 // 8, f"merged: {size.count} requests")
    hints, complete = watch.hints(difference)
    check.that(complete, f"merged: all bytes have a hint: {hints}")


def test(check, state):
    with rig.ram_disks(state, size="512M") as [disk], rig.daemon(state, [disk]) as daemon:
        watch = writes.Watch(daemon, disk)
        device(check, watch, disk)
        for fstype in writes.MAKE:
            file_system(check, state, watch, disk, fstype)
        merged(check, watch, disk)


rig.main(test)
