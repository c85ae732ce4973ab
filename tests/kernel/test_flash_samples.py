#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Are the events for the flash model exactly those that the sampling rule selects, and is every loss counted?

The rule is written a second time, page by page (lib/samples.py), and applied to the I/Os that the tracer saw end.
"""
import random

from lib import rig, samples, writes

SIZE = 256 << 20
PAGES = SIZE >> 12
FIRST = 2052  # sector of a partition: in the middle of a page
RING_EVENTS = (1 << 20) // 24


def load(disk, seed):
    """Writes of all sizes and alignments, discards that begin and end in the middle of pages, zeroes."""
    rig.fio_jobs(disk, seed, [{"rw": "randwrite", "bsrange": "512-65536", "blockalign": 512, "io_size": "48M"},
                              {"rw": "write", "bs": "128k", "io_size": "32M"},
                              {"rw": "randread", "bs": "4k", "number_ios": 500},
                              {"rw": "randwrite", "bs": "4k", "number_ios": 4000}],
                 ioengine="libaio", iodepth=8, size="256M", fsync=500)
    dice = random.Random(seed)
    for _ in range(60 if rig.LONG else 15):
        offset, length = dice.randrange(SIZE >> 9) << 9, dice.choice((512, 8192, 100_352, 3 << 20))
        rig.run("blkdiscard", *dice.choice(([], ["--zeroout"])), "--offset", offset, "--length",
                min(length, SIZE - offset), disk.path)
    rig.run("blkdiscard", disk.path)
    writes.write(disk.path, 1 << 20, hint=2, direct=True)


def compare(check, probe, tracer, disk, rule, what):
    parts = samples.parts_of(tracer, disk)
    events, written = samples.expected(rule, parts)
    have = probe.of(disk)
    totals = probe.devices[disk.name]
    kinds = [sum(n for (_, _, kind), n in events.items() if kind == each) for each in range(4)]
    check.that(have == events, f"{what}: {events.total()} events of {len(parts)} parts, by kind {kinds}; "
               f"missing {list((events - have).items())[:5]}, too many {list((have - events).items())[:5]}")
    check.equal(sum(totals["written"]), written, f"{what}: pages written")
    check.equal(totals["lost"], [0, 0, 0, 0], f"{what}: nothing lost")


def exact(check, state, mode, seed):
    rules = {"full": [samples.Rule(3, seed, (PAGES >> 3) & ~3),
                      samples.Rule(5, seed, PAGES >> 5, page_bits=14, first_page=4321)],
             "completion-only": [samples.Rule(0, seed, PAGES + 999, first_page=777)]}[mode]
    with rig.ram_disks(state, count=len(rules), size=SIZE) as disks, rig.tracer(state, disks) as tracer, \
            samples.probe(disks, mode) as probe:
        for disk, rule in zip(disks, rules):
            probe.sample(disk, rule)
        probe.look()
        tracer.begin()
        with rig.partitions(disks[0], [(FIRST, 1 << 16)]):
            writes.write(f"{disks[0].path}p1", 256 << 10, block=4096, direct=True)
            for disk in disks:
                load(disk, seed)
                probe.look()
            probe.look()
        for disk, rule in zip(disks, rules):
            compare(check, probe, tracer, disk, rule, f"{mode}, one of {1 << rule.rate_bits}")
            check.that(probe.hints(disk)[2] > 0, f"{mode}: hints of events {dict(probe.hints(disk))}")


def overflow(check, state, seed):
    """No sample is taken while more is written than the ring buffer holds."""
    rule = samples.Rule(0, seed, PAGES)
    with rig.ram_disks(state, size=SIZE) as [disk], rig.tracer(state, [disk]) as tracer, samples.probe([disk]) as probe:
        probe.sample(disk, rule)
        probe.look()
        tracer.begin()
        rig.fio_jobs(disk, seed, [{"rw": "randwrite", "bs": "4k", "number_ios": RING_EVENTS + 5000}],
                     ioengine="libaio", iodepth=16, size="256M", io_size="16T")
        rig.run("blkdiscard", "--offset", 0, "--length", 1 << 20, disk.path)
        probe.look()
        events, written = samples.expected(rule, samples.parts_of(tracer, disk))
        have, totals = probe.of(disk), probe.devices[disk.name]
        for kind in (samples.WRITE, samples.DISCARD):
            want = sum(n for event, n in events.items() if event[2] == kind)
            came = sum(n for event, n in have.items() if event[2] == kind)
            lost = totals["lost"][kind]
            check.equal(came + lost, want, f"kind {kind}: {came} came, {lost} were lost, together")
        check.that(have <= events, "what came was sent")
        check.that(totals["lost"][samples.WRITE] > 2000, "many were lost")
        check.equal(sum(totals["written"]), written, "pages written, whatever was lost")
        began = sum(n for n in have.values())
        writes.write(disk.path, 1 << 20, direct=True)
        probe.look()
        check.that(probe.of(disk).total() > began, "room again")


def changes(check, state, seed):
    """Changed parameters get a new number and totals from 0; off is off."""
    with rig.ram_disks(state, size=SIZE) as [disk], samples.probe([disk]) as probe:
        writes.write(disk.path, 1 << 20, direct=True)
        probe.look()
        check.that(not probe.devices and not probe.events, "nothing unless it is asked for")
        probe.sample(disk, samples.Rule(0, seed, PAGES))
        writes.write(disk.path, 1 << 20, direct=True)
        probe.look()
        first = probe.devices[disk.name]
        check.equal(sum(first["written"]), 256, "pages of 1 MiB")
        probe.sample(disk, samples.Rule(0, seed, PAGES, page_bits=13))
        check.that(not probe.devices, "other parameters: off for one look")
        probe.look()
        writes.write(disk.path, 1 << 20, direct=True)
        probe.look()
        second = probe.devices[disk.name]
        check.equal(sum(second["written"]), 128, "larger pages of 1 MiB")
        check.that(second["sampling"] > first["sampling"], "another number")
        probe.off(disk)
        before = len(probe.events)
        writes.write(disk.path, 1 << 20, direct=True)
        probe.look()
        check.that(not probe.devices and len(probe.events) == before, "off")


def test(check, state):
    seed = rig.fresh_seed()
    exact(check, state, "full", seed)
    exact(check, state, "completion-only", seed)
    overflow(check, state, seed)
    changes(check, state, seed)


rig.main(test)
