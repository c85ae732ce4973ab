# SPDX-License-Identifier: Apache-2.0
"""Writes made in a known way, and what the daemon says of a disk's writes: bytes by hint, class and stream."""
import fcntl
import mmap
import os
import struct
import tempfile
from contextlib import contextmanager
from pathlib import Path

from lib import metrics, rig

HINTS = ("not_set", "none", "short", "medium", "long", "extreme", "unknown")
CLASSES = ("journal", "metadata", "writeback", "direct", "swap", "other")
SET_RW_HINT = 1024 + 12
MAKE = {"ext4": ("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"),
        "xfs": ("mkfs.xfs", "-q", "-f", "-K")}


def write(path, size, block=65536, hint=None, direct=False, offset=0, sync=True):
    """`hint`: a number of the kernel's, which the inode keeps."""
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


class Watch:
    """Differences of one disk's figures from step to step."""

    def __init__(self, daemon, disk):
        self.daemon, self.disk, self._scrape = daemon, disk.name, daemon.at_rest()

    def since(self):
        now = self.daemon.at_rest()
        difference, self._scrape = metrics.Difference(self._scrape, now), now
        return difference

    def by(self, difference, metric, label, names):
        """{name: bytes} of those that have any, and whether all together are what was written."""
        have = {name: int(difference.value(metric, device=self.disk, **{label: name})) for name in names}
        total = int(difference.value("ssdpulse_io_bytes_total", device=self.disk, operation="write"))
        return {name: size for name, size in have.items() if size}, sum(have.values()) == total

    def hints(self, difference):
        return self.by(difference, "ssdpulse_write_hint_bytes_total", "hint", HINTS)

    def classes(self, difference):
        return self.by(difference, "ssdpulse_write_class_bytes_total", "class", CLASSES)
