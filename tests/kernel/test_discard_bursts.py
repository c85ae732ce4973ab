#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Is each burst of discards told with its trigger, its bytes and its times, and are two at once kept apart?

The load runs one cause after the other, with a rest between them, so that the cause of each byte is known; diskstats
says how many bytes the disk was sent. Two causes at once count their own bytes.
"""
import fcntl
import os
import random
import re
import struct
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path

from lib import metrics, rig

BLKDISCARD = 0x1277
MIB = 1 << 20
TRIGGERS = ("fstrim", "online", "blkdiscard", "mkfs", "other")
BYTES, BURSTS, ACTIVE = (f"ssdpulse_discard_{what}" for what in ("burst_bytes_total", "bursts_total", "burst_active"))
ON_FILE_SYSTEM = "ssdpulse_filesystem_discard_bytes_total"
TRIES = 3
LARGEST = 255 * 4096  # bytes of a discard, where two are at work
CLOCK_SECONDS = 0.05  # between the log's wall clock and ours, and for a program to start and end
LINE = re.compile(r"discard burst device=(\S+) trigger=(\S+) begin=(\S+)Z end=(\S+)Z seconds=\S+ bytes=(\d+) "
                  r"requests=(\d+) ranges=\d+ comm=\"([^\"]*)\" filesystem=\"([^\"]*)\" array=\"([^\"]*)\"")


def discarded(disk):
    """I/Os and bytes, as the kernel counts them."""
    fields = [int(field) for field in Path(f"/sys/block/{disk.name}/stat").read_text().split()]
    return fields[11], fields[13] * 512


def told(daemon, disk):
    """Bursts of the disk in the log: {trigger: (begin, end, bytes, requests, comm, file system)}, the last of each."""
    def seconds(text):
        return datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp()
    return {trigger: (seconds(begin), seconds(end), int(size), int(requests), comm, filesystem)
            for name, trigger, begin, end, size, requests, comm, filesystem, _
            in LINE.findall(daemon.log.read_text()) if name == disk.name}


class Stage:
    """One cause at a time: what it sent, by diskstats, is what its trigger must have."""

    def __init__(self, check, daemon, disk):
        self._check, self._daemon, self._disk = check, daemon, disk

    def expect(self, trigger, what, act, comm, filesystem="", least=MIB, size=None):
        """Of `act`: the trigger, who sent it, the file system; `size(result)`, where it knows its bytes itself."""
        check, disk = self._check, self._disk
        before, (ios, sent) = self._daemon.at_rest(3.2), discarded(disk)
        began = time.time()
        result = act()
        ended = time.time()
        after = self._daemon.at_rest(3.2)
        ios, sent = (now - then for now, then in zip(discarded(disk), (ios, sent)))
        difference = metrics.Difference(before, after)
        have = {name: int(difference.value(BYTES, device=disk.name, trigger=name)) for name in TRIGGERS}
        check.equal(have, {name: sent if name == trigger else 0 for name in TRIGGERS}, f"{what}: bytes by trigger")
        check.that(sent >= least, f"{what}: {sent} bytes in {ios} I/Os, by diskstats")
        if size is not None:
            check.equal(sent, size(result), f"{what}: bytes as it says itself")
        check.that(difference.value(BURSTS, device=disk.name, trigger=trigger) >= 1, f"{what}: a burst")
        check.equal(after.value(ACTIVE, device=disk.name), 0, f"{what}: bursts under way after it")
        burst = told(self._daemon, disk).get(trigger)
        if burst is None:
            check.that(False, f"{what}: no line in the log")
            return
        begin, end, *_, name, where = burst
        check.that(began - CLOCK_SECONDS <= begin <= end <= ended + 2 * filesystem_delay(trigger) + CLOCK_SECONDS,
                   f"{what}: told from {begin - began:.3f} s to {end - began:.3f} s of {ended - began:.3f} s")
        check.that(re.fullmatch(comm, name) is not None, f"{what}: sent by {name!r}")
        check.equal(where, filesystem, f"{what}: file system")


def filesystem_delay(trigger):
    """Seconds that a journal may take to send what was removed."""
    return 5 if trigger == "online" else 0


def trimmed(text):
    return int(re.search(r"\((\d+) bytes\)", text)[1])


def remove_files(mountpoint):
    """Writes files of 16 MiB in all and removes them: what they held is discarded with the next commits."""
    for number in range(16):
        (mountpoint / f"file{number}").write_bytes(os.urandom(MIB))
    rig.run("sync", "-f", mountpoint)
    for number in range(16):
        (mountpoint / f"file{number}").unlink()
    for _ in range(3):
        rig.run("sync", "-f", mountpoint)
        time.sleep(0.3)


def discard_by_ioctl(disk, rng, first, count):
    """BLKDISCARD `count` times within 128 MiB; how many bytes."""
    size, opened = 0, os.open(disk.path, os.O_RDWR)
    try:
        for _ in range(count):
            length = rng.randrange(4096, LARGEST + 1, 4096)
            fcntl.ioctl(opened, BLKDISCARD, struct.pack("QQ", first + rng.randrange(0, 100 * MIB, 4096), length))
            size += length
    finally:
        os.close(opened)
    return size


def warnings_of(daemon, volume):
    return sum("use one of the two" in line and f"volume={volume} " in line
               for line in daemon.log.read_text().splitlines())


def on_file_systems(daemon, volumes):
    """(volume, mountpoint, discard, trigger) of all that was discarded there."""
    return sorted(tuple(dict(labels)[name] for name in ("volume", "mountpoint", "discard", "trigger"))
                  for labels, value in daemon.scrape().series(ON_FILE_SYSTEM).items()
                  if value and dict(labels)["volume"] in volumes)


def file_system(check, daemon, disk, state, fstype, make):
    stage = Stage(check, daemon, disk)
    mountpoint = state / f"mnt-{fstype}"
    mountpoint.mkdir()
    stage.expect("mkfs", f"mkfs.{fstype}", lambda: rig.run(*make, disk.path), r"mkfs\.\S+|mke2fs")
    rig.run("mount", disk.path, mountpoint)
    try:
        (mountpoint / "data").write_bytes(os.urandom(MIB))
        stage.expect("fstrim", f"fstrim on {fstype}", lambda: rig.run("fstrim", "-v", mountpoint), "fstrim",
                     str(mountpoint), 100 * MIB, trimmed if fstype == "ext4" else None)
        rig.run("umount", mountpoint)  # xfs takes the option at no other time
        rig.run("mount", "-o", "discard", disk.path, mountpoint)
        time.sleep(1.5)  # mounts are looked at once in a tick
        stage.expect("online", f"{fstype} mounted with discard", lambda: remove_files(mountpoint),
                     r"kworker.*|jbd2.*|xfs.*", str(mountpoint), 15 * MIB)
        warnings = [warnings_of(daemon, disk.name)]
        for _ in range(2):
            rig.run("fstrim", mountpoint)
            daemon.at_rest(3.2)
            warnings.append(warnings_of(daemon, disk.name))
        check.equal(warnings, [0, 1, 1], f"{fstype}: warnings of discard and fstrim together, after each fstrim")
    finally:
        rig.run("umount", mountpoint)


def neighbours(check, daemon, disk, state):
    """Two partitions of one disk: on one each deletion is discarded, the other is trimmed. None of them has both."""
    rig.run("addpart", disk.path, 1, 2048, 192 << 11)
    rig.run("addpart", disk.path, 2, 2048 + (192 << 11), 192 << 11)
    online, quiet = state / "mnt-online", state / "mnt-quiet"
    volumes = {online: f"{disk.name}p1", quiet: f"{disk.name}p2"}
    try:
        for mountpoint, volume in volumes.items():
            rig.run("mkfs.ext4", "-q", "-F", "-E", "nodiscard", f"/dev/{volume}")
            mountpoint.mkdir()
            rig.run("mount", "-o", "discard" if mountpoint == online else "nodiscard", f"/dev/{volume}", mountpoint)
        stage = Stage(check, daemon, disk)
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


def overlap(check, daemon, disk, rng):
    """blkdiscard in one half, an ioctl of ours in the other, at the same time."""
    for attempt in range(TRIES):
        before, (ios, sent) = daemon.at_rest(3.2), discarded(disk)
        ours, theirs, runs = [], 0, 0
        thread = threading.Thread(target=lambda into=ours: into.append(discard_by_ioctl(disk, rng, 256 * MIB, 30_000)))
        thread.start()
        while thread.is_alive():
            rig.run("blkdiscard", "--force", "--length", 128 * MIB, "--step", 256 << 10, disk.path)
            theirs += 128 * MIB
            runs += 1
            scrape = daemon.scrape()
        thread.join()
        difference = metrics.Difference(before, daemon.at_rest(3.2))
        ios, sent = (now - then for now, then in zip(discarded(disk), (ios, sent)))
        counted = difference.value("ssdpulse_io_bytes_total", device=disk.name, operation="discard")
        if counted == sent:
            break
        print(f"AGAIN {attempt}: the kernel called no program for {sent - counted:.0f} bytes; see README.md")
    # On a host that is never quiet for so long, what is missing must have been told.
    lost = int(difference.value("ssdpulse_lost_events_total", device=disk.name))
    missing = lost * LARGEST
    check.that(lost <= ios / 1000, f"two at once: {lost} of {ios} I/Os were lost, and told")
    have = {name: int(difference.value(BYTES, device=disk.name, trigger=name)) for name in TRIGGERS}
    want = {**dict.fromkeys(TRIGGERS, 0), "blkdiscard": theirs, "other": ours[0]}
    check.that(all(want[name] - missing <= have[name] <= want[name] for name in TRIGGERS),
               f"two at once, {runs} runs of one beside the other: bytes by trigger: {have}, sent {want}")
    check.that(sent - missing <= sum(have.values()) <= sent, f"two at once: {sent} bytes by diskstats")
    active = {name for name in TRIGGERS if scrape.value(ACTIVE, device=disk.name, trigger=name)}
    if runs > 3:
        check.equal(active, {"blkdiscard", "other"}, "two at once: bursts under way")
    bursts = {name: difference.value(BURSTS, device=disk.name, trigger=name) for name in ("blkdiscard", "other")}
    check.equal(bursts, {"blkdiscard": 1, "other": 1}, "two at once: bursts")


def blkdiscard(disk):
    """All of it. Whoever looks for file systems just then has the disk for himself: nothing is discarded yet."""
    for _ in range(20):
        done = subprocess.run(["blkdiscard", "--force", disk.path], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
        if "busy" not in done.stderr:
            break
        time.sleep(0.2)
    raise RuntimeError(f"blkdiscard: {done.stderr}")


def test(check, state):
    rng = random.Random(rig.fresh_seed())
    with rig.ram_disks(state, count=3, size="512M", filled=False) as disks, rig.daemon(state, disks) as daemon:
        print("     " + re.search("feature=discard_submitters .*", daemon.log.read_text())[0])
        present = {(dict(labels)["device"], dict(labels)["trigger"]): value
                   for labels, value in daemon.scrape().series(BYTES).items()}
        for disk in disks:
            check.equal({name: present.get((disk.name, name)) for name in TRIGGERS}, dict.fromkeys(TRIGGERS, 0),
                        f"{disk.name}: from 0")
        first, second, third = disks
        # Side by side, as most of the time is waited for bursts to end.
        with ThreadPoolExecutor() as pool:
            for done in [pool.submit(file_system, check, daemon, first, state, "ext4", ["mkfs.ext4", "-q", "-F"]),
                         pool.submit(file_system, check, daemon, second, state, "xfs", ["mkfs.xfs", "-q", "-f"]),
                         pool.submit(neighbours, check, daemon, third, state)]:
                done.result()
        stage = Stage(check, daemon, first)
        stage.expect("blkdiscard", "blkdiscard", lambda: blkdiscard(first), "blkdiscard", size=lambda _: 512 * MIB)
        stage.expect("other", "BLKDISCARD of a program", lambda: discard_by_ioctl(first, rng, 0, 500), re.escape(Path("/proc/self/comm").read_text().strip()),
                     size=lambda size: size)
        overlap(check, daemon, second, rng)
    completion_only(check, state)


def completion_only(check, state):
    """Without issues: nothing is known to be in flight, and ends are those of ticks. No hook is worth every bio."""
    with rig.ram_disks(state, size="64M", filled=False) as [disk], \
            rig.daemon(state, [disk], "completion-only") as daemon:
        before = daemon.at_rest(1.2)
        rig.run("blkdiscard", "--force", "--step", MIB, disk.path)
        difference = metrics.Difference(before, daemon.at_rest(3.5))
        have = {name: int(difference.value(BYTES, device=disk.name, trigger=name)) for name in TRIGGERS}
        [seen] = [dict(labels)["decision"] for name, labels in difference.after.values
                  if name == "ssdpulse_kernel_feature_info" and dict(labels)["feature"] == "discard_submitters"]
        check.that(not seen.startswith("every bio"), f"completion-only: no hook on every bio, but {seen}")
        check.equal(have, {**dict.fromkeys(TRIGGERS, 0), "other" if seen == "unseen" else "blkdiscard": 64 * MIB},
                    "completion-only: bytes by trigger")
        check.equal((difference.value(BURSTS, device=disk.name), difference.after.value(ACTIVE, device=disk.name)),
                    (1, 0), "completion-only: bursts, and those under way after it")


rig.main(test)
