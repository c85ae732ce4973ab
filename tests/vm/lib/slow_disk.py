# SPDX-License-Identifier: Apache-2.0
"""nbdkit plugin: how slow shall the disk be today? Takes as long for each kind of command as the control file says.

The file is read anew for each command, so a test changes its mind by renaming a new one into its place. "stall_until"
is a wall-clock time before which no command ends, whichever it is and whenever it came. "bytes_per_second" is a rate at
which data go one after the other, "read_errors" the share of reads that fail.
When there were trims, flushes, or data in other pieces than 4 KiB is told in CONTROL.seen, a line every tenth of a
second. Keeps no data, unless it is started with keep=1.
"""
import builtins
import errno
import json
import mmap
import random
import threading
import time

import nbdkit

API_VERSION = 2
settings = {}
waiting = threading.Condition()
running = {"trim": 0, "flush": 0}
line = threading.Lock()
line_free_at = 0
seen_at = 0
kept = None


def config(key, value):
    settings[key] = value


def config_complete():
    global kept  # pylint: disable=global-statement
    if settings.get("keep"):
        kept = mmap.mmap(-1, int(settings["size"]))  # takes memory only where something was written


def thread_model():
    return nbdkit.THREAD_MODEL_PARALLEL


def open(readonly):  # pylint: disable=redefined-builtin
    return 1


def get_size(_handle):
    return int(settings["size"])


def can_trim(_handle):
    return True


def can_flush(_handle):
    return True


def can_fua(_handle):
    return nbdkit.FUA_NATIVE


def can_zero(_handle):
    return True


def _control():
    with builtins.open(settings["control"], encoding="ascii") as file:
        return json.load(file)


def _see():
    global seen_at  # pylint: disable=global-statement
    now = time.time()
    if now - seen_at >= 0.1:
        seen_at = now
        with builtins.open(settings["control"] + ".seen", "a", encoding="ascii") as file:
            file.write(f"{now}\n")


def _take(kind, size=0):
    if size != 4096:
        _see()
    control = _control()
    time.sleep(control.get(kind, 0))
    rate = control.get("bytes_per_second")
    if rate and size:
        _stand_in_line(size / rate)
    time.sleep(max(0, _control().get("stall_until", 0) - time.time()))
    if size != 4096:
        _see()


def _stand_in_line(seconds):
    global line_free_at  # pylint: disable=global-statement
    with line:
        line_free_at = max(line_free_at, time.monotonic()) + seconds
        until = line_free_at
    time.sleep(max(0, until - time.monotonic()))


def _run(kind):
    """What reads may have to wait for."""
    with waiting:
        running[kind] += 1
    try:
        _take(kind)
    finally:
        with waiting:
            running[kind] -= 1
            waiting.notify_all()


def pread(_handle, buffer, offset, _flags):
    control = _control()
    for kind in running:
        if control.get(f"reads_wait_for_{kind}"):
            with waiting:
                waiting.wait_for(lambda kind=kind: running[kind] == 0, 60)
    _take("read", len(buffer))
    if random.random() < control.get("read_errors", 0):
        time.sleep(control.get("error", 0))
        nbdkit.set_error(errno.EIO)
        raise OSError("as asked")
    buffer[:] = kept[offset:offset + len(buffer)] if kept else bytes(len(buffer))


def pwrite(_handle, buffer, offset, _flags):
    _take("write", len(buffer))
    if kept:
        kept[offset:offset + len(buffer)] = buffer


def zero(_handle, count, offset, _flags):
    _take("write", count)
    if kept:
        kept[offset:offset + count] = bytes(count)


def flush(_handle, _flags):
    _run("flush")


def trim(_handle, _count, _offset, _flags):
    _run("trim")
