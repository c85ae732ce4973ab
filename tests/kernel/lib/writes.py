# SPDX-License-Identifier: Apache-2.0
"""Known writes, and what the daemon reports about a disk's writes: bytes by hint, class and stream."""
import fcntl
import mmap
import os
import struct
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lib import metrics, rig, trace

HINTS = ("not_set", "none", "short", "medium", "long", "extreme", "unknown")
CLASSES = ("journal", "metadata", "writeback", "direct", "swap", "other")
SET_RW_HINT = 1024 + 12
MAKE = {"ext4": ("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"),
        "xfs": ("mkfs.xfs", "-q", "-f", "-K")}


def write(path, size, block=65536, hint=None, direct=False, offset=0, sync=True):
    """`hint`: one of the kernel's numbers, which the inode keeps."""
    flags = os.O_RDWR | (os.O_DIRECT if direct else 0) | (0 if str(path).startswith("/dev/") else os.O_CREAT)
    fd = os.open(path, flags, 0o600)
    try:
        if hint is not None:
            fcntl.fcntl(fd, SET_RW_HINT, struct.pack("Q", hint))
        with mmap.mmap(-1, block) as memory:
            if hasattr(mmap, "MADV_NOHUGEPAGE"):
                memory.madvise(mmap.MADV_NOHUGEPAGE)
            memory.write(os.urandom(block))
            for at in range(0, size, block):
                view = memoryview(memory)
                if os.pwrite(fd, view, offset + at) != block:
                    raise RuntimeError("short write")
                view.release()
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)


@contextmanager
def file_system(state, device, fstype):
    directory = Path(tempfile.mkdtemp(prefix="mount-", dir=state))
    rig.run(*MAKE[fstype], device)
    rig.run("mount", device, directory)
    try:
        yield directory
    finally:
        rig.run("umount", directory)


@contextmanager
def watched(state, disks):
    """A daemon, and a Watch on what it reports about each disk."""
    with rig.tracer(state, disks) as tracer, rig.daemon(state, disks) as daemon:
        tracer.begin()
        yield daemon, [Watch(tracer, daemon, disk) for disk in disks]


class Step:
    """What the daemon, the tracer and diskstats report about one step's writes."""

    def __init__(self, before, after):
        self.difference = metrics.Difference(before.scrape, after.scrape)
        self.disk = after.disk.name
        self.bytes, zeroes = (_told(after, operation) - _told(before, operation) for operation in ("write", "write_zeroes"))
        self.ended = len(after.traced.of("write")) - len(before.traced.of("write"))
        self.unseen = after.written - before.written - self.bytes - zeroes  # bytes of writes whose end nobody saw

    def hints(self):
        return self._by("ssdpulse_write_hint_bytes_total", "hint", HINTS)

    def classes(self):
        return self._by("ssdpulse_write_class_bytes_total", "class", CLASSES)

    def _by(self, metric, label, names):
        """{name: bytes} for names that have any, and whether they add up to the bytes issued."""
        have = {name: int(self.difference.value(metric, device=self.disk, **{label: name})) for name in names}
        return {name: size for name, size in have.items() if size}, sum(have.values()) == self.bytes

    def has(self, have, name, size):
        """Were at least `size` bytes written under this name, except for what nobody saw?"""
        return have.get(name, 0) >= size - self.unseen

    def has_just(self, have, want):
        """The same for several names, and nothing more."""
        return set(have) <= set(want) and all(
            self.has(have, name, size) and have.get(name, 0) <= size for name, size in want.items())


def _told(look, operation):
    """Bytes of the requests whose size is known."""
    return sum(one.size for one in look.traced.told(operation))


@dataclass
class Look:
    disk: rig.Disk
    scrape: metrics.Scrape
    traced: trace.Trace
    written: int  # bytes, by diskstats


class Watch:
    """Differences of one disk's figures from step to step."""

    def __init__(self, tracer, daemon, disk):
        self._tracer, self._daemon, self.disk = tracer, daemon, disk
        self._last = self._look()

    def _look(self):
        """Repeats the reading until nothing was written during it: a file system may write whenever it likes."""
        while True:
            stat = self.disk.stat()
            look = Look(self.disk, self._daemon.after_ticks(), self._tracer.read_so_far(self.disk),
                        self.disk.stat_bytes()["write"])
            if self.disk.stat() == stat:
                return look

    def since(self):
        now = self._look()
        step, self._last = Step(self._last, now), now
        return step
