#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Is each read and write counted under the right `during`, while discards and flushes run at the same time?"""
import fcntl
import os
import random
import struct
import threading
import time

from lib import compare, rig, trace
from lib.observe import observe

BLKDISCARD = 0x1277
MIB = 1 << 20


class Disturber:
    """Threads that run alongside the load: some discard what the load writes, some write a page elsewhere and sync. Two
    of each, so that even on a busy machine the two kinds overlap often enough."""

    def __init__(self, disk, seed):
        self._disk, self._stop = disk, threading.Event()
        self._threads = [threading.Thread(target=work, args=(random.Random(seed + i),))
                         for i, work in enumerate((self._discard, self._flush) * 2)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _discard(self, rng):
        opened = os.open(self._disk.path, os.O_RDWR)
        while not self._stop.wait(rng.uniform(0, 0.004)):
            start, length = rng.randrange(0, 448) * MIB, rng.randrange(1, 64) * MIB
            fcntl.ioctl(opened, BLKDISCARD, struct.pack("QQ", start, length))
        os.close(opened)

    def _flush(self, rng):
        opened = os.open(self._disk.path, os.O_RDWR)
        while not self._stop.is_set():
            time.sleep(rng.uniform(0, 0.002))
            os.pwrite(opened, rng.randbytes(4096), rng.randrange(512, 1000) * MIB)
            os.fdatasync(opened)
        os.close(opened)


def test(check, state):
    seed = rig.fresh_seed()

    def load():
        with Disturber(disk, seed):
            rig.fio(disk, seed, rw="randrw", ioengine="io_uring", iodepth=8, bs="4k", size="512M", io_size="16T",
                    number_ios=1_000_000 if rig.LONG else 40_000)

    with rig.ram_disks(state) as [disk]:
        seen = observe(check, state, [disk], load)
        traced = seen.trace(disk)
        for operation in ("read", "write"):
            shares = {during: exact for during, (_, _, exact) in trace.during_bounds(traced, operation, 0)[0].items()}
            check.that(all(shares[during] >= 50 for during in ("none", "discard", "flush", "both")),
                       f"the load puts enough {operation}s under each during: {shares}")
        compare.everything(check, seen, disk)


rig.main(test)
