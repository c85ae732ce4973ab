#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Is every byte, and its latency, counted under the hint that its writer declared? The writer is this test.

For kernels whose bios carry hints (6.9 and later); the scenario `hints` of the matrix shows what other kernels report.
"""
from functools import partial

from lib import rig, writes

SIZE = 1 << 20


def one(check, watch, path, hint, direct, rest_allowed):
    writes.write(path, SIZE, hint=hint, direct=direct)
    step = watch.since()
    have, complete = step.hints()
    name, what = writes.HINTS[hint], f"{path} {'direct' if direct else 'buffered'} {writes.HINTS[hint]}"
    check.that(complete, f"{what}: all bytes have a hint: {have}")
    check.that(step.has(have, name, SIZE) and (have.get(name, 0) <= SIZE or hint == 0),
               f"{what}: {SIZE} bytes, {step.unseen} not seen: {have}")
    check.that(set(have) - {name} <= ({"not_set"} if rest_allowed else set()), f"{what}: nothing else: {have}")
    of_each = [{"device": step.disk, "hint": each} for each in writes.HINTS]
    ios = [int(step.difference.value("ssdpulse_write_hint_ios_total", **of)) for of in of_each]
    latencies = [step.difference.histogram("ssdpulse_write_hint_latency_seconds", **of).count for of in of_each]
    check.equal(sum(latencies), step.ended, f"{what}: latencies")
    if step.ended == sum(ios):
        check.equal(latencies, ios, f"{what}: latencies of each hint")


def device(check, watch):
    for hint in range(6):
        one(check, watch, watch.disk.path, hint, hint % 2 == 0, False)


def file_system(check, state, watch, fstype):
    with writes.file_system(state, watch.disk.path, fstype) as mount:
        watch.since()
        for hint, direct in ((2, False), (5, True), (0, False)):
            one(check, watch, f"{mount}/{hint}", hint, direct, True)


def test(check, state):
    with rig.ram_disks(state, count=3, size="512M") as disks, writes.watched(state, disks) as (daemon, watches):
        features = {dict(labels)["feature"]: dict(labels)["decision"]
                    for labels in daemon.scrape().series("ssdpulse_kernel_feature_info")}
        if not features["write_hint"].startswith("bio"):
            print(f"SKIP: bios of this kernel carry no hints: {features['write_hint']}")
            raise SystemExit(77)
        [path] = daemon.scrape().series("ssdpulse_write_hint_path_info", device=disks[0].name)
        check.that(dict(path)["kernel"] in ("block_layer", "file_system_drops_buffered"), f"where hints end: {path}")
        rig.side_by_side(lambda: device(check, watches[0]), *(
            partial(file_system, check, state, watch, fstype) for watch, fstype in zip(watches[1:], writes.MAKE)))


rig.main(test)
