#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Is every byte told under the hint that its writer declared, and its latency too? The writer is this test.

For kernels whose bios carry hints (6.9 and later); what the others show is in the scenario `hints` of the matrix.
"""
from lib import rig, writes

SIZE = 1 << 20


def one(check, watch, path, hint, direct, rest_allowed):
    writes.write(path, SIZE, hint=hint, direct=direct)
    difference = watch.since()
    have, complete = watch.hints(difference)
    name, what = writes.HINTS[hint], f"{path} {'direct' if direct else 'buffered'} {writes.HINTS[hint]}"
    check.that(complete, f"{what}: all bytes have a hint: {have}")
    check.that(have.get(name, 0) == SIZE or (hint == 0 and have.get(name, 0) >= SIZE), f"{what}: {SIZE} bytes: {have}")
    check.that(set(have) - {name} <= ({"not_set"} if rest_allowed else set()), f"{what}: nothing else: {have}")
    for each in writes.HINTS:
        of = {"device": watch.disk, "hint": each}
        ios = difference.value("ssdpulse_write_hint_ios_total", **of)
        check.equal(difference.histogram("ssdpulse_write_hint_latency_seconds", **of).count, ios,
                    f"{what}: latencies of {each}")


def test(check, state):
    with rig.ram_disks(state, size="512M") as [disk], rig.daemon(state, [disk]) as daemon:
        features = {dict(labels)["feature"]: dict(labels)["decision"]
                    for labels in daemon.scrape().series("ssdpulse_kernel_feature_info")}
        if not features["write_hint"].startswith("bio"):
            print(f"SKIP: bios of this kernel carry no hints: {features['write_hint']}")
            raise SystemExit(77)
        [path] = daemon.scrape().series("ssdpulse_write_hint_path_info", device=disk.name)
        check.that(dict(path)["kernel"] in ("block_layer", "file_system_drops_buffered"), f"where hints end: {path}")
        watch = writes.Watch(daemon, disk)
        for hint in range(6):
            one(check, watch, disk.path, hint, hint % 2 == 0, False)
        writes.write(disk.path, 4096, hint=0)
        for fstype in writes.MAKE:
            with writes.file_system(state, disk.path, fstype) as mount:
                watch.since()
                for hint, direct in ((2, False), (5, True), (0, False)):
                    one(check, watch, f"{mount}/{hint}", hint, direct, True)


rig.main(test)
