# SPDX-License-Identifier: Apache-2.0
"""nbdkit plugin: how slow should the disk be today? Takes as long for each kind of command as the control file says.

The file is read again for each command, so a test changes it by renaming a new one into its place. "stall_until" is a
wall-clock time before which no command ends, whichever it is and whenever it arrived. "bytes_per_second" is the rate at
which data are transferred, one command after the other, "read_errors" the share of reads that fail. A flush takes
"flush" and the time to write what is in the cache, at most "cache_bytes", at "cache_bytes_per_second".
"added" are rules for extra time that some commands take: {"kind": "read", "seconds": 0.5, "share": 0.003,
"every": 1000, "at_least": bytes, "from": offset, "until": wall-clock time}; all but the kind may be left out.
CONTROL.seen has the times of trims, flushes, and data in other pieces than 4 KiB, at most one line per tenth of a
second. CONTROL.added has a line for each command that was held up: when it ended, its kind, the seconds due to a rule,
a stall or what it waited for, and the seconds by which this process itself was late. Keeps no data, unless keep=1.
"""
import builtins
import errno
import itertools
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
cached, cached_at = 0, 0  # bytes in the drive's own cache, which it also empties while nobody waits
seen_at = 0
concerned = itertools.count(1)
kept = None
WORTH_A_LINE, LATE = 0.01, 0.05  # seconds by which a command was held up, and is late


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


def can_multi_conn(_handle):
    return True  # there is one cache for all


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
        _append("seen", f"{now}\n")


def _take(kind, size=0, offset=0, waited=0):
    """`waited`: how long it has already been held up."""
    if size != 4096:
        _see()
    control = _control()
    began, usual = time.monotonic(), control.get(kind, 0)
    if kind == "flush":
        usual += _in_cache(control)
    time.sleep(usual)
    rate = control.get("bytes_per_second")
    if rate and size and kind in ("read", "write"):
        usual += _stand_in_line(size / rate)
    wanted = sum(_beyond(rule) for rule in control.get("added", ()) if _concerns(rule, kind, size, offset))
    time.sleep(wanted)
    wanted += _wait_for_the_end_of_a_stall()
    late = time.monotonic() - began - usual - wanted
    if wanted + waited > WORTH_A_LINE or late > LATE:
        _append("added", f"{time.time()} {kind} {wanted + waited} {late}\n")
    if size != 4096:
        _see()


def _concerns(rule, kind, size, offset):
    if rule["kind"] != kind or size < rule.get("at_least", 0) or offset < rule.get("from", 0):
        return False
    return random.random() < rule.get("share", 1) and next(concerned) % rule.get("every", 1) == 0


def _beyond(rule):
    return rule.get("seconds", 0) + max(0, rule.get("until", 0) - time.time())


def _wait_for_the_end_of_a_stall():
    """For how long it was due; a test may end a stall early."""
    began = time.time()
    while (until := _control().get("stall_until", 0)) > time.time():
        time.sleep(max(0, min(until - time.time(), 0.2)))
    return max(0, until - began)


def _append(what, line_of_text):
    with builtins.open(f"{settings['control']}.{what}", "a", encoding="ascii") as file:
        file.write(line_of_text)


def _stand_in_line(seconds):
    global line_free_at  # pylint: disable=global-statement
    with line:
        line_free_at = max(line_free_at, time.monotonic()) + seconds
        turn = max(0, line_free_at - time.monotonic())
    time.sleep(turn)
    return turn


def _in_cache(control, written=0):
    """The seconds that it would take to empty the cache, after this many bytes more."""
    global cached, cached_at  # pylint: disable=global-statement
    rate = control.get("cache_bytes_per_second")
    if not rate:
        return 0
    with line:
        now = time.monotonic()
        cached = max(0, cached - (now - cached_at) * rate)
        cached, cached_at = min(cached + written, control["cache_bytes"]), now
        return cached / rate


def _wait_for_others(who, control):
    """How long it waited for commands that it cannot overtake."""
    began = None
    for kind in running:
        if control.get(f"{who}_wait_for_{kind}") and running[kind] > 0:
            began = began or time.monotonic()
            with waiting:
                waiting.wait_for(lambda kind=kind: running[kind] == 0, 60)
    return time.monotonic() - began if began else 0


def _run(kind, waited=0, size=0, offset=0):
    """What reads may have to wait for."""
    with waiting:
        running[kind] += 1
    try:
        _take(kind, size, offset, waited)
    finally:
        with waiting:
            running[kind] -= 1
            waiting.notify_all()


def pread(_handle, buffer, offset, _flags):
    control = _control()
    _take("read", len(buffer), offset, _wait_for_others("reads", control))
    if random.random() < control.get("read_errors", 0):
        time.sleep(control.get("error", 0))
        nbdkit.set_error(errno.EIO)
        raise OSError("as asked")
    buffer[:] = kept[offset:offset + len(buffer)] if kept else bytes(len(buffer))


def pwrite(_handle, buffer, offset, _flags):
    _take("write", len(buffer), offset, _wait_for_others("writes", _control()))
    _in_cache(_control(), len(buffer))
    if kept:
        kept[offset:offset + len(buffer)] = buffer


def zero(_handle, count, offset, _flags):
    _take("write", count, offset)
    if kept:
        kept[offset:offset + count] = bytes(count)


def flush(_handle, _flags):
    _run("flush", _wait_for_others("flushes", _control()))


def trim(_handle, count, offset, _flags):
    _run("trim", size=count, offset=offset)
