# SPDX-License-Identifier: Apache-2.0
"""nbdkit plugin: how slow shall the disk be today? Takes as long for each kind of command as the control file says.

The file is read anew for each command, so a test changes its mind by renaming a new one into its place. "stall_until"
is a wall-clock time before which no command ends, whichever it is and whenever it came. Keeps no data.
"""
import builtins
import json
import threading
import time

import nbdkit

API_VERSION = 2
settings = {}
trims = threading.Condition()
running_trims = 0


def config(key, value):
    settings[key] = value


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


def _take(kind):
    time.sleep(_control().get(kind, 0))
    time.sleep(max(0, _control().get("stall_until", 0) - time.time()))


def pread(_handle, buffer, _offset, _flags):
    if _control().get("reads_wait_for_trims"):
        with trims:
            trims.wait_for(lambda: running_trims == 0, 60)
    _take("read")
    buffer[:] = bytes(len(buffer))


def pwrite(_handle, _buffer, _offset, _flags):
    _take("write")


def zero(_handle, _count, _offset, _flags):
    _take("write")


def flush(_handle, _flags):
    _take("flush")


def trim(_handle, _count, _offset, _flags):
    global running_trims  # pylint: disable=global-statement
    with trims:
        running_trims += 1
    try:
        _take("trim")
    finally:
        with trims:
            running_trims -= 1
            trims.notify_all()
