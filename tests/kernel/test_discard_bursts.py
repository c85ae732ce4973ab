#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Is each burst of discards reported with its trigger, bytes and times, and are two simultaneous bursts kept apart?

The load runs one cause after another, with a pause between them, so that the cause of each byte is known; diskstats
report how many bytes were sent to the disk, and the trace how many of them anybody saw. When two causes run at once,
they count their own bytes.
"""
import fcntl
import os
import random
import re
import shutil
import struct
import subprocess
import threading
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

from lib import metrics, rig, trace

BLKDISCARD = 0x1277
FITRIM = 0xC0185879
MIB = 1 << 20
TRIGGERS = ("fstrim", "online", "blkdiscard", "mkfs", "other")
BYTES, BURSTS, ACTIVE = (f"ssdpulse_discard_{what}" for what in ("burst_bytes_total", "bursts_total", "burst_active"))
ON_FILE_SYSTEM = "ssdpulse_filesystem_discard_bytes_total"
OVERLAP_SECONDS = 20 if rig.LONG else 4
OVER_TICKS = 2  # after the last discard of a burst: the gap of a second, and the tick that notices it
LARGEST = 255 * 4096  # bytes of one discard, when two causes are at work
CLOCK_SECONDS = 0.05  # between the log's wall clock and ours, and for a program to start and exit
LINE = re.compile(r"discard burst device=(\S+) trigger=(\S+) begin=(\S+)Z end=(\S+)Z seconds=\S+ bytes=(\d+) "
                  r"requests=(\d+) ranges=\d+ comm=\"([^\"]*)\" filesystem=\"([^\"]*)\" array=\"([^\"]*)\"")


def told(daemon, disk):
    """Bursts of the disk in the log: {trigger: (begin, end, bytes, requests, comm, file system)}, the last of each."""
    def seconds(text):
        return datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp()
    return {trigger: (seconds(begin), seconds(end), int(size), int(requests), comm, filesystem)
            for name, trigger, begin, end, size, requests, comm, filesystem, _
            in LINE.findall(daemon.log.read_text()) if name == disk.name}


@dataclass
class Look:
    """What all three report about a disk at one moment."""
    scrape: metrics.Scrape
    traced: trace.Trace
    sent: int  # bytes that ended, by diskstats
    stat: dict

    @property
    def unseen(self):
        """Bytes whose end nobody saw. They may be taken for discards still under way, and later ones for them."""
        return self.sent - self.traced.bytes["discard"]

    @property
    def stuck(self):
        """Is a discard considered in flight forever?"""
        return any(one.operation == "discard" for one in self.traced.left_in_flight)


class Subject:
    """One disk, as the daemon, the tracer and diskstats see it."""

    def __init__(self, daemon, tracer, disk):
        self.daemon, self.disk, self._tracer = daemon, disk, tracer
        self._before = disk.stat_bytes()["discard"]  # of earlier users of the loop device
        self.last = self._look(daemon.scrape())

    def _look(self, scrape):
        sent = self.disk.stat_bytes()["discard"] - self._before
        return Look(scrape, self._tracer.read_so_far(self.disk), sent, self.disk.stat())

    def rest(self):
        """(before, after): what happened since the last pause, when all bursts are over."""
        before, self.last = self.last, self._look(self.daemon.after_ticks(OVER_TICKS))
        return before, self.last


def by_trigger(check, before, after, disk, want, what):
    """Of all bytes that anybody saw, each trigger has what it sent, give or take what nobody saw."""
    difference = metrics.Difference(before.scrape, after.scrape)
    have = {name: int(difference.value(BYTES, device=disk.name, trigger=name)) for name in TRIGGERS}
    check.equal(sum(have.values()), after.traced.bytes["discard"] - before.traced.bytes["discard"],
                f"{what}: bytes of all triggers, as traced")
    check.that(all(abs(have[name] - want.get(name, 0)) <= after.unseen for name in TRIGGERS),
               f"{what}: bytes by trigger: {have}, sent {want}, of which {after.unseen} bytes were not seen")
    return difference


class Stage:
    """One cause at a time: the bytes it sent, by diskstats, must be counted under its trigger."""

    def __init__(self, check, subject):
        self._check, self._subject = check, subject

    def expect(self, trigger, what, act, comm, filesystem="", least=MIB, size=None):
        """For `act`: its trigger, the sender, the file system; `size(result)` if it knows its bytes itself."""
        check, disk = self._check, self._subject.disk
        began = time.time()
        result = act()
        ended = time.time()
        before, after = self._subject.rest()
        sent = after.sent - before.sent
        difference = by_trigger(check, before, after, disk, {trigger: sent}, what)
        ios = after.stat["discard"] - before.stat["discard"]
        check.that(sent >= least, f"{what}: {sent} bytes in {ios} I/Os, by diskstats")
        if size is not None:
            check.equal(sent, size(result), f"{what}: bytes as it says itself")
        if after.traced.bytes["discard"] == before.traced.bytes["discard"]:
            check.figure(f"{what}: nobody saw an end")
            return
        check.that(difference.value(BURSTS, device=disk.name, trigger=trigger) >= 1, f"{what}: a burst")
        if after.stuck:
            check.figure(f"{what}: the burst is under way for ever, as nobody saw an end")
            return
        check.equal(after.scrape.value(ACTIVE, device=disk.name), 0, f"{what}: bursts under way after it")
        burst = told(self._subject.daemon, disk).get(trigger)
        if burst is None:
            check.that(False, f"{what}: no line in the log")
            return
        begin, end, *_, name, where = burst
        check.that(began - CLOCK_SECONDS <= begin <= end <= ended + 2 * filesystem_delay(trigger) + CLOCK_SECONDS,
                   f"{what}: told from {begin - began:.3f} s to {end - began:.3f} s of {ended - began:.3f} s")
        check.that(re.fullmatch(comm, name) is not None, f"{what}: sent by {name!r}")
        check.equal(where, filesystem, f"{what}: file system")


def filesystem_delay(trigger):
    """Seconds that a journal may take to discard the space of removed files."""
    return 5 if trigger == "online" else 0


def trimmed(text):
    return int(re.search(r"\((\d+) bytes\)", text)[1])


def unlink(files):
    for file in files:
        file.unlink()


def remove_files(mountpoint, remove=unlink):
    """Writes files of 16 MiB in all and removes them: their blocks are discarded at once, or with the next commits."""
    for number in range(16):
        (mountpoint / f"file{number}").write_bytes(os.urandom(MIB))
    rig.run("sync", "-f", mountpoint)
    remove([mountpoint / f"file{number}" for number in range(16)])
    for _ in range(3):
        rig.run("sync", "-f", mountpoint)
        time.sleep(0.3)


def discard_by_ioctl(disk, rng, first, go_on):
    """BLKDISCARD within 128 MiB while go_on(number); returns (bytes, seconds of the longest pause)."""
    size, number, rest, opened = 0, 0, 0, os.open(disk.path, os.O_RDWR)
    last = time.monotonic()
    try:
        while go_on(number):
            length = rng.randrange(4096, LARGEST + 1, 4096)
            fcntl.ioctl(opened, BLKDISCARD, struct.pack("QQ", first + rng.randrange(0, 100 * MIB, 4096), length))
            size += length
            number += 1
            now = time.monotonic()
            rest, last = max(rest, now - last), now
    finally:
        os.close(opened)
    return size, rest


def warnings_of(daemon, volume):
    return sum("use one of the two" in line and f"volume={volume} " in line
               for line in daemon.log.read_text().splitlines())


def on_file_systems(daemon, volumes):
    """(volume, mountpoint, discard, trigger) of everything discarded there."""
    return sorted(tuple(dict(labels)[name] for name in ("volume", "mountpoint", "discard", "trigger"))
                  for labels, value in daemon.scrape().series(ON_FILE_SYSTEM).items()
                  if value and dict(labels)["volume"] in volumes)


def file_system(check, subject, state, fstype, make):
    stage, disk, daemon = Stage(check, subject), subject.disk, subject.daemon
    mountpoint = state / f"mnt-{fstype}"
    mountpoint.mkdir()
    stage.expect("mkfs", f"mkfs.{fstype}", lambda: rig.run(*make, disk.path), r"mkfs\.\S+|mke2fs")
    rig.run("mount", disk.path, mountpoint)
    try:
        (mountpoint / "data").write_bytes(os.urandom(MIB))
        stage.expect("fstrim", f"fstrim on {fstype}", lambda: rig.run("fstrim", "-v", mountpoint), "fstrim",
                     str(mountpoint), 100 * MIB, trimmed if fstype == "ext4" else None)
        rig.run("umount", mountpoint)  # xfs accepts the option at no other time
        rig.run("mount", "-o", "discard", disk.path, mountpoint)
        daemon.after_ticks()  # mounts are read once per tick
        stage.expect("online", f"{fstype} mounted with discard", lambda: remove_files(mountpoint),
                     r"kworker.*|jbd2.*|xfs.*", str(mountpoint), 15 * MIB)
        warnings, wanted = [warnings_of(daemon, disk.name)], [0]
        for _ in range(2):
            rig.run("fstrim", mountpoint)
            difference = metrics.Difference(*(look.scrape for look in subject.rest()))
            warnings.append(warnings_of(daemon, disk.name))
            seen = difference.value(BURSTS, device=disk.name, trigger="fstrim") > 0
            wanted.append(1 if seen or wanted[-1] else 0)
        check.equal(warnings, wanted, f"{fstype}: warnings of discard and fstrim together, after each fstrim")
    finally:
        rig.run("umount", mountpoint)


def trim(mountpoint):
    """As fstrim does, under our own name."""
    opened = os.open(mountpoint, os.O_RDONLY)
    try:
        fcntl.ioctl(opened, FITRIM, struct.pack("QQQ", 0, 2**64 - 1, 0))
    finally:
        os.close(opened)


def in_our_context(check, subject, state, name, prepare, options):
    """ext4 discards in the context of who removes a file if it has no journal, or data is not ordered before that."""
    stage, disk, daemon = Stage(check, subject), subject.disk, subject.daemon
    comm = re.escape(Path("/proc/self/comm").read_text().strip())
    mountpoint = state / f"mnt-{name}"
    mountpoint.mkdir()
    rig.run("mkfs.ext4", "-q", "-F", "-E", "nodiscard", *prepare.get("mkfs", ()), disk.path)
    if "tune2fs" in prepare:
        rig.run("tune2fs", *prepare["tune2fs"], disk.path)
    rig.run("mount", "-o", options, disk.path, mountpoint)
    try:
        daemon.after_ticks()  # mounts are read once per tick
        stage.expect("online", f"{name}: removed files", lambda: remove_files(mountpoint), rf"{comm}|kworker.*|jbd2.*",
                     str(mountpoint), 15 * MIB)
        if tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2]) >= (5, 15):
            for disguise in ("fstrim", "blkdiscard"):
                program = state / disguise
                shutil.copy("/bin/rm", program)
                remove_files(mountpoint, lambda files, program=program: rig.run(program, *files))
                before, after = subject.rest()
                check.that(after.sent - before.sent >= 15 * MIB, f"{name}: a program of the name {disguise} removes files")
                by_trigger(check, before, after, disk, {"online": after.sent - before.sent}, f"{name}: removed by {disguise}")
            stage.expect("fstrim", f"{name}: FITRIM of a program", lambda: trim(mountpoint), comm, str(mountpoint), 100 * MIB)
            check.equal(warnings_of(daemon, disk.name), 1, f"{name}: warnings of discard and fstrim together")
    finally:
        rig.run("umount", mountpoint)


def neighbours(check, subject, state):
    """Two partitions of one disk: one discards on each deletion, the other is trimmed. Neither has both."""
    stage, disk, daemon = Stage(check, subject), subject.disk, subject.daemon
    rig.run("addpart", disk.path, 1, 2048, 192 << 11)
    rig.run("addpart", disk.path, 2, 2048 + (192 << 11), 192 << 11)
    online, quiet = state / "mnt-online", state / "mnt-quiet"
    volumes = {online: f"{disk.name}p1", quiet: f"{disk.name}p2"}
    try:
        for mountpoint, volume in volumes.items():
            rig.run("mkfs.ext4", "-q", "-F", "-E", "nodiscard", f"/dev/{volume}")
            mountpoint.mkdir()
            rig.run("mount", "-o", "discard" if mountpoint == online else "nodiscard", f"/dev/{volume}", mountpoint)
        daemon.after_ticks()  # mounts are read once per tick
        stage.expect("fstrim", "fstrim beside a file system with discard", lambda: rig.run("fstrim", "-v", quiet), "fstrim",
                     str(quiet), 100 * MIB, trimmed)
        stage.expect("online", "discard beside a file system that is trimmed", lambda: remove_files(online),
                     r"kworker.*|jbd2.*", str(online), 15 * MIB)
        check.equal(on_file_systems(daemon, volumes.values()), [(volumes[online], str(online), "true", "online"),
                                   (volumes[quiet], str(quiet), "false", "fstrim")], "neighbours: file systems")
        check.equal([warnings_of(daemon, volume) for volume in volumes.values()], [0, 0], "neighbours: warnings of both")
    finally:
        for mountpoint in volumes:
            rig.run("umount", mountpoint, check=False)
        for number in (1, 2):
            rig.run("delpart", disk.path, number, check=False)


def overlap(check, subject, rng):
    """blkdiscard in one half, an ioctl of ours in the other, at the same time."""
    disk, stop, ours, runs, rest = subject.disk, threading.Event(), [], 0, 0
    thread = threading.Thread(
        target=lambda: ours.append(discard_by_ioctl(disk, rng, 256 * MIB, lambda _: not stop.is_set())))
    began = last = time.monotonic()
    thread.start()
    while last < began + OVERLAP_SECONDS:
        rig.run("blkdiscard", "--force", "--length", 128 * MIB, "--step", 256 << 10, disk.path)
        runs += 1
        scrape, now = subject.daemon.scrape(), time.monotonic()
        rest, last = max(rest, now - last), now
    stop.set()
    thread.join()
    [(size, our_rest)] = ours
    before, after = subject.rest()
    sent = {"blkdiscard": runs * 128 * MIB, "other": size}
    check.equal(after.sent - before.sent, sum(sent.values()),
                f"two at once, {runs} runs of one beside the other: bytes, by diskstats")
    difference = by_trigger(check, before, after, disk, sent, "two at once")
    check.that(after.unseen <= sum(sent.values()) / 10, f"two at once: {after.unseen} bytes were not seen")
    if max(rest, our_rest) > 0.5:
        check.figure(f"two at once: a host so busy that one of them was silent for {max(rest, our_rest):.1f} s")
        return
    active = {name for name in TRIGGERS if scrape.value(ACTIVE, device=disk.name, trigger=name)}
    check.equal(active, set(sent), "two at once: bursts under way")
    bursts = {name: difference.value(BURSTS, device=disk.name, trigger=name) for name in sent}
    check.equal(bursts, dict.fromkeys(sent, 1), "two at once: bursts")


def blkdiscard(disk):
    """If a program probing for file systems holds the disk exclusively just then, nothing is discarded yet."""
    for _ in range(20):
        done = subprocess.run(["blkdiscard", "--force", disk.path], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
        if "busy" not in done.stderr:
            break
        time.sleep(0.2)
    raise RuntimeError(f"blkdiscard: {done.stderr}")


def one_cause(check, subject, rng):
    stage, disk = Stage(check, subject), subject.disk
    stage.expect("blkdiscard", "blkdiscard", lambda: blkdiscard(disk), "blkdiscard", size=lambda _: 512 * MIB)
    stage.expect("other", "BLKDISCARD of a program", lambda: discard_by_ioctl(disk, rng, 0, lambda done: done < 500),
                 re.escape(Path("/proc/self/comm").read_text().strip()), size=lambda result: result[0])


def completion_only(check, state):
    """Without issues, nothing is known to be in flight; bursts end at ticks. A hook on every bio is not worth it."""
    with rig.ram_disks(state, size="64M", filled=False) as [disk], rig.tracer(state, [disk]) as tracer, \
            rig.daemon(state, [disk], "completion-only") as daemon:
        tracer.begin()
        subject = Subject(daemon, tracer, disk)
        rig.run("blkdiscard", "--force", "--step", MIB, disk.path)
        before, after = subject.rest()
        [seen] = [dict(labels)["decision"] for name, labels in after.scrape.values
                  if name == "ssdpulse_kernel_feature_info" and dict(labels)["feature"] == "discard_submitters"]
        check.that(seen != "every_bio", f"completion-only: no hook on every bio, but {seen}")
        difference = by_trigger(check, before, after, disk, {"other" if seen == "not_hooked" else "blkdiscard": 64 * MIB},
                                "completion-only")
        check.equal((difference.value(BURSTS, device=disk.name), after.scrape.value(ACTIVE, device=disk.name)), (1, 0),
                    "completion-only: bursts, and those under way after it")


def full(check, state, rng):
    with rig.ram_disks(state, count=7, size="512M", filled=False) as disks, rig.tracer(state, disks) as tracer, \
            rig.daemon(state, disks) as daemon:
        tracer.begin()
        [decision] = [dict(labels)["decision"] for labels in daemon.scrape().series(
            "ssdpulse_kernel_feature_info", feature="discard_submitters")]
        print(f"     {decision}")
        present = {(dict(labels)["device"], dict(labels)["trigger"]): value
                   for labels, value in daemon.scrape().series(BYTES).items()}
        for disk in disks:
            check.equal({name: present.get((disk.name, name)) for name in TRIGGERS}, dict.fromkeys(TRIGGERS, 0),
                        f"{disk.name}: from 0")
        ext4, xfs, parts, one, two, bare, defaults = (Subject(daemon, tracer, disk) for disk in disks)
        rig.side_by_side(partial(file_system, check, ext4, state, "ext4", ["mkfs.ext4", "-q", "-F"]),
                         partial(file_system, check, xfs, state, "xfs", ["mkfs.xfs", "-q", "-f"]),
                         partial(neighbours, check, parts, state),
                         partial(one_cause, check, one, rng), partial(overlap, check, two, rng),
                         partial(in_our_context, check, bare, state, "ext4 without journal",
                                 {"mkfs": ("-O", "^has_journal")}, "discard"),
                         partial(in_our_context, check, defaults, state, "ext4 by its super block",
                                 {"tune2fs": ("-o", "discard,journal_data_writeback")}, "defaults"))


def test(check, state):
    rng = random.Random(rig.fresh_seed())
    other = state / "completion-only"
    other.mkdir()
    rig.side_by_side(partial(full, check, state, rng), partial(completion_only, check, other))


rig.main(test)
