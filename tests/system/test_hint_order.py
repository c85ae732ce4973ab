#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# tier: long
# timeout: 900
"""Is a writer with lifetime hints in the wrong order reported, and one with the right order left alone?

Real hints (F_SET_RW_HINT) of direct writes through this kernel to disks in memory, for kernels whose bios carry hints
(6.9 and later). Half of each disk is written eight times as often as the other, at random. Only ratios of lifetimes are
judged: when a write came within a tick is not known. Writes are large, so that the ring holds a late tick's samples.
"""
import fcntl
import math
import mmap
import os
import random
import struct

from lib import rig, writes

SIZE, UNIT = 512 << 20, 65536
HALF = SIZE // UNIT // 2  # units
DRIVE_WRITES = 8
TIMES_LONGER = 8
WITHIN = 1.25  # a factor
SETTINGS = "flash_model:\n  virtual_disks: true\n  sample: 1/2\n"
NOT_SET, SHORT, LONG = 0, 2, 4
# Hints for the half that is written often, and for the other.
LOADS = {"wrong": (LONG, SHORT), "right": (SHORT, LONG), "unhinted": (NOT_SET, NOT_SET)}


def write(disk, hints, dice):
    with mmap.mmap(-1, UNIT) as buffer:
        buffer.write(random.Random(1).randbytes(UNIT))
        file = os.open(disk.path, os.O_WRONLY | os.O_DIRECT)
        try:
            last = None
            for _ in range(DRIVE_WRITES * 2 * HALF):
                half = 0 if dice.random() * (TIMES_LONGER + 1) < TIMES_LONGER else 1
                if hints[half] != last:
                    last = hints[half]
                    fcntl.fcntl(file, writes.SET_RW_HINT, struct.pack("Q", last))
                os.pwritev(file, [buffer], (half * HALF + dice.randrange(HALF)) * UNIT)
        finally:
            fcntl.fcntl(file, writes.SET_RW_HINT, struct.pack("Q", NOT_SET))  # the inode would keep it
            os.close(file)


def about(value, expected):
    return abs(math.log(value / expected)) < math.log(WITHIN)


def median(scrape, disk, hint):
    """Median bytes that the host writes during such a lifetime, or None."""
    return next(iter(scrape.series("ssdpulse_write_lifetime_bytes", device=disk.name, hint=writes.HINTS[hint],
                                   share="0.5").values()), None)


def violations(scrape, disk):
    """{(declared shorter, declared longer): how many times longer the former lives}"""
    found = {}
    for labels, ratio in scrape.series("ssdpulse_write_hint_order_violation", device=disk.name).items():
        named = dict(labels)
        found[named["shorter"], named["longer"]] = ratio
    return found


def judge(check, scrape, disk, kind):
    written = scrape.value("ssdpulse_model_written_drive_writes", device=disk.name)
    lost = scrape.value("ssdpulse_model_lost_events_total", device=disk.name, kind="write")
    check.figure(f"{kind}: {written} drive writes seen of {DRIVE_WRITES}, {lost} samples lost")
    found = violations(scrape, disk)
    often, seldom = (median(scrape, disk, hint) for hint in LOADS[kind])
    if kind == "unhinted":
        check.that(often is not None, f"{kind}: a median of what has no hint is known: {often}")
    else:
        known = often is not None and seldom is not None
        check.that(known and about(seldom / often, TIMES_LONGER),
                   f"{kind}: medians of {often} and {seldom} bytes, {TIMES_LONGER} times as long by the load")
    if kind == "wrong":
        check.that(set(found) == {("short", "long")} and about(found["short", "long"], TIMES_LONGER),
                   f"{kind}: short lives {TIMES_LONGER} times as long as long, and that is reported: {found}")
    else:
        check.that(not found, f"{kind}: nothing is reported: {found}")


def test(check, state):
    dice = random.Random(rig.fresh_seed())
    with rig.ram_disks(state, count=len(LOADS), size=str(SIZE)) as disks, \
            rig.daemon(state, disks, settings=SETTINGS) as daemon:
        features = {dict(labels)["feature"]: dict(labels)["decision"]
                    for labels in daemon.scrape().series("ssdpulse_kernel_feature_info")}
        if not features["write_hint"].startswith("bio"):
            print(f"SKIP: bios of this kernel carry no hints: {features['write_hint']}")
            raise SystemExit(77)
        daemon.after_ticks(3)  # until the sampling settings are in force
        for disk, hints in zip(disks, LOADS.values()):
            write(disk, hints, dice)
        scrape = daemon.after_ticks(20)  # each model is read every 10 s
        for disk, kind in zip(disks, LOADS):
            judge(check, scrape, disk, kind)


rig.main(test)
