#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What can others make the daemon create? An unprivileged user mounts hundreds of FUSE file systems that claim to lie on a
measured disk, under names with quotes, escapes and invalid bytes; then root mounts more real ones than are named.

Series and lines of the log are counted before and after; for rows of the history see unit.stage_setting_changes_test.
"""
import ctypes
import os
import re
import socket
import time
from contextlib import contextmanager
from pathlib import Path

from doctor import doctor
from lib import metrics, rig

USER = 65534
CLAIMS, REAL = 900 if rig.LONG else 300, 80
NAMED = 64  # of a disk
MIB = 1 << 20
MNT_DETACH = 2
libc = ctypes.CDLL(None, use_errno=True)
# Of a log line, of a terminal and of UTF-8.
ENDINGS = (b'" cause=gc p99_seconds=9.9', b"\nforged line", b"\x1b[2J", b"\xff", b"\xfe", b"")


def claim(disk, point):
    """A FUSE mount by fusermount3, as any user may ask for. Nobody ever serves it. Returns what keeps it alive."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        os.set_inheritable(theirs.fileno(), True)
        pid = os.posix_spawnp("fusermount3", ["fusermount3", "-o", f"fsname={disk.path},subtype=ext4", "--", point],
                              {**os.environ, "_FUSE_COMMFD": str(theirs.fileno())})
        if os.waitpid(pid, 0)[1] != 0:
            raise OSError(f"fusermount3 {point}")
        return socket.recv_fds(ours, 1, 1)[1][0]


@contextmanager
def claims(disk, directory):
    """By a process of the user, which ends them all."""
    directory.mkdir()
    os.chown(directory, USER, USER)
    ready, done = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setgid(USER)
            os.setuid(USER)
            kept = []
            for number in range(CLAIMS):
                point = os.fsencode(directory) + b"/m%d" % number + ENDINGS[number % len(ENDINGS)]
                os.mkdir(point)
                kept.append(claim(disk, point))
            os.write(ready[1], b"x")
            os.close(done[1])
            os.read(done[0], 1)
        finally:
            os._exit(1)
    os.close(ready[1])
    os.close(done[0])
    try:
        yield os.read(ready[0], 1) == b"x"
    finally:
        os.close(done[1])
        os.waitpid(pid, 0)
        os.close(ready[0])
        for line in Path("/proc/self/mountinfo").read_bytes().splitlines():
            point = line.split()[4]
            if point.startswith(os.fsencode(directory)):
                umount(re.sub(rb"\\(\d{3})", lambda octal: bytes([int(octal[1], 8)]), point))


def mount(source, point):
    if libc.mount(source.encode(), point, b"ext4", 0, None) != 0:
        raise OSError(ctypes.get_errno(), f"mount {point}")


def umount(point):
    libc.umount2(point, MNT_DETACH)


@contextmanager
def real_mounts(disk, directory):
    """An ext4 file system on each of many partitions."""
    directory.mkdir()
    image = directory / "image"
    with open(image, "wb") as out:
        out.truncate(MIB)
    rig.run("mkfs.ext4", "-q", "-F", "-O", "^has_journal", image)
    content = image.read_bytes()
    points = []
    with rig.partitions(disk, [(2048 * (1 + number), 2048) for number in range(REAL)]):
        try:
            for number in range(REAL):
                with open(f"{disk.path}p{number + 1}", "wb") as part:
                    part.write(content)
                point = os.fsencode(directory) + b"/r" + (b"\xff", b"\xfe")[number] if number < 2 else \
                    os.fsencode(directory / f"r{number}")
                os.mkdir(point)
                mount(f"{disk.path}p{number + 1}", point)
                points.append(point)
            yield
        finally:
            for point in points:
                umount(point)


def series_of(port):
    """Every line of a page, without its value."""
    text = metrics.fetch(port, "/metrics", "text/plain")[2]
    text = text.decode() if isinstance(text, bytes) else text
    return [line.rpartition(" ")[0] for line in text.splitlines() if line and not line.startswith("#")]


def counted(daemon):
    return len(series_of(daemon.port)), len(daemon.log.read_bytes().splitlines())


def until(holds, seconds):
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.5)


def run(check, state):
    state.chmod(0o755)
    with rig.ram_disks(state, 1, "128M") as (disk,), rig.daemon(state, [disk]) as daemon:
        daemon.after_ticks(3)
        before = counted(daemon)
        with claims(disk, state / "claims") as mounted:
            check.that(mounted, f"a user mounts {CLAIMS} file systems that claim to be on {disk.name}")
            daemon.after_ticks(3)
            after = counted(daemon)
        check.figure(f"series and lines: {before} before, {after} after")
        check.that(after[0] <= before[0] + 5, "they are no series")
        check.that(after[1] <= before[1] + 5 and b"forged line" not in daemon.log.read_bytes(), "and no lines of the log")
        with real_mounts(disk, state / "real"):
            until(lambda: daemon.scrape().value("ssdpulse_filesystems_unnamed"), 10)
            daemon.after_ticks(2)
            scrape, series = daemon.scrape(), series_of(daemon.port)
            check.equal(scrape.value("ssdpulse_filesystems_unnamed"), REAL - NAMED, f"of {REAL} real ones are only counted")
            check.that(len(scrape.series("ssdpulse_filesystem_info")) in (NAMED - 1, NAMED), "the others have names")
            check.that(len(series) <= before[0] + 20 * NAMED, f"and a few series each: {len(series)}")
            check.equal(len(series), len(set(series)), "two names that differ in invalid bytes make no pair of series")
            found = doctor("--address", f"127.0.0.1:{daemon.port}")[1].get(("names", disk.name), {})
            check.that(found.get("found", "").endswith(f": {REAL - NAMED}"), f"doctor says so: {found}")


rig.main(run)
