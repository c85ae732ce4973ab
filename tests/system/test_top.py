#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
"""Does `ssdpulse top` behave well in a terminal, and does `ssdpulse why` print the first line?

In a real pseudo-terminal, read by a terminal emulator: starting, keys, resizing, stopping and continuing, and each way
of ending leave the terminal as it was. Uses Debian's python3, as another one in the path would lack pyte.
"""
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from datetime import datetime, timedelta
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(SOURCE / "tests/kernel")]
import pyte  # noqa: E402  pylint: disable=wrong-import-position
from lib import rig  # noqa: E402  pylint: disable=wrong-import-position

# Keys named as in the help, and what a terminal sends for them.
KEYS = {"up": "\x1bOA", "down": "\x1bOB", "j": "j", "k": "k", "Enter": "\r", "l": "l", "d": "d", "v": "v", "t": "t", "Esc": "\x1b", "h": "h", "/": "/",
        "s": "s", ">": ">", "<": "<", "r": "r", "o": "o",
        "p": "p", "space": " ", "[": "[", "]": "]", "{": "{", "}": "}", "n": "n", "?": "?", "q": "q"}
ROUNDS_OF_STOP = 20
RIGHT, LEFT = "\x1bOC", "\x1bOD"
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def lead(command):
    """As a shell does: the command gets its own process group in the foreground, so that it can be stopped."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    if (child := os.fork()) == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.execv(command[0], command)
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)


class Terminal:
    """`command` in a terminal of its own, and the content of its screen."""

    def __init__(self, command, **environment):
        seen, tell = os.pipe()
        self.leader, self.fd = pty.fork()
        if self.leader == 0:
            os.close(tell)
            os.read(seen, 1)
            os.environ.update({"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **environment})
            lead(command)
        self.before = termios.tcgetattr(self.fd)  # while nothing has changed it yet
        os.write(tell, b".")
        os.close(seen)
        os.close(tell)
        children = Path(f"/proc/{self.leader}/task/{self.leader}/children")
        while not (pid := children.read_text().strip()):
            time.sleep(0.01)
        self.pid = int(pid)
        self.screen, self.bytes = pyte.Screen(80, 24), b""
        self.stream = pyte.ByteStream(self.screen)
        self.size(80, 24)

    def size(self, columns, rows):
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self):
        os.set_blocking(self.fd, False)
        try:
            while new := os.read(self.fd, 65536):
                self.bytes += new
                self.stream.feed(new)
        except OSError:  # nothing there, or the other end is closed
            pass

    def until(self, holds, seconds=10):
        """Whether the condition becomes true on the screen in time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.read()
            if holds():
                return True
            time.sleep(0.05)
        return False

    def has(self, words):
        return any(words in line for line in self.screen.display)

    def shows(self, words, seconds=10):
        return self.until(lambda: self.has(words), seconds)

    def rows(self, names):
        """{drive: whether its row is the selected one}."""
        first = {y: re.split(r"[ )]", re.sub(r"^\S+ \(", "", line))[0] for y, line in enumerate(self.screen.display)}
        return {name: self.screen.buffer[y][0].reverse for y, name in first.items() if name in names}

    def past(self):
        """The time in the title, if the screen shows the past."""
        found = re.search(r"PAST.* (\d{4}-\d\d-\d\d \d\d:\d\d)", self.screen.display[0])
        return found and datetime.strptime(found[1], "%Y-%m-%d %H:%M")

    def keys_of_the_help(self):
        first, last = (next(y for y, line in enumerate(self.screen.display) if line[14:].startswith(words))
                       for words in ("drives; volumes", "this help; quit"))
        return {key for line in self.screen.display[first:last + 1] for key in line[:14].split()}

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def cooked(self):
        """Lines are edited and echoed, as a shell expects."""
        return bool(termios.tcgetattr(self.fd)[3] & termios.ICANON and termios.tcgetattr(self.fd)[3] & termios.ECHO)

    def state(self):
        return Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]

    def end(self):
        """Waits for its end; returns the exit status."""
        for _ in range(100):
            self.read()
            pid, status = os.waitpid(self.leader, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.05)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.leader, 0)
        return None


def is_sane(check, terminal, how):
    check.that(terminal.cooked() and termios.tcgetattr(terminal.fd)[:4] == terminal.before[:4], f"{how}: lines and echo as before")
    check.that(b"\x1b[?1049l" in terminal.bytes[-200:] and b"\x1b[?25h" in terminal.bytes[-200:], f"{how}: screen and cursor are back")


def a_person_looks_around(check, command, disk):
    terminal = Terminal(command)
    check.that(terminal.shows(disk.name), "the drive is on the screen")
    check.that(terminal.shows("ssdpulse top") and not terminal.cooked(), "with the title, keys without Enter")
    terminal.press("?")
    check.that(terminal.shows("What is not measured here, and why"), "? shows the keys, and what is not measured")
    terminal.press("?\r")
    check.that(terminal.shows("Esc back") and terminal.shows("usual p99"), "Enter opens the drive")
    check.that(terminal.shows("now"), "with a heatmap")
    terminal.press("o")
    check.that(terminal.shows("heatmap: write"), "o changes what it is of")
    terminal.press("\x1b")
    check.that(terminal.shows("sort: worst"), "Esc goes back")
    terminal.press("s")
    check.that(terminal.shows("sort: name"), "s sorts")
    terminal.press("/nothing\r")
    check.that(terminal.shows("No drive fits the filter"), "/ filters")
    terminal.press("\x1b")
    check.that(terminal.shows(disk.name), "Esc clears the filter")
    terminal.press("p")
    check.that(terminal.shows("PAUSED"), "p pauses")
    terminal.press("p")
    terminal.size(120, 40)
    check.that(terminal.shows("p99.9 ms"), "a larger terminal has more columns")
    terminal.size(40, 10)
    check.that(terminal.shows("q quit  ? help  v volumes"), "a small one is no trouble")
    terminal.press("\x1a")
    check.that(any(terminal.state() == "T" or time.sleep(0.05) for _ in range(100)), "Ctrl-Z stops it")
    terminal.read()
    is_sane(check, terminal, "stopped")
    terminal.screen.reset()
    os.kill(terminal.pid, signal.SIGCONT)
    check.that(terminal.shows("ssdpulse top"), "and it draws itself again when it goes on")
    terminal.press("q")
    check.equal(terminal.end(), 0, "exit status of q")
    is_sane(check, terminal, "q")


def stopped_while_it_is_resized(check, command):
    """Both come from outside, at any moment: its own signal used to kill it, every 2nd or 3rd time on a busy host."""
    for number in range(ROUNDS_OF_STOP):
        terminal = Terminal(command)
        terminal.shows("ssdpulse top")
        for size in ((120, 40), (40, 10)):
            terminal.size(*size)
        terminal.press("\x1a")
        if not any(terminal.state() == "T" or time.sleep(0.02) for _ in range(250)):
            check.that(False, f"round {number}: Ctrl-Z stops it")
        terminal.screen.reset()
        os.kill(terminal.pid, signal.SIGCONT)
        if not terminal.shows("ssdpulse top"):
            check.that(False, f"round {number}: it draws itself again")
        terminal.press("q")
        if status := terminal.end():
            check.that(False, f"round {number}: exit status {status}")
    check.that(True, f"stopped and resized {ROUNDS_OF_STOP} times")


def every_key_does_what_the_help_says(check, command, disks):
    terminal = Terminal(command)
    first, second = names = sorted(disk.name for disk in disks)
    check.that(terminal.until(lambda: len(terminal.rows(names)) == 2), "both drives are on the screen")
    terminal.press(KEYS["?"])
    check.that(terminal.shows("this help"), "? shows the keys")
    check.equal(terminal.keys_of_the_help(), set(KEYS), "keys of the help are those that are pressed here")
    terminal.press(KEYS["?"])
    for words in ("name", "read p99", "write p99", "I/Os", "data", "worst", "name"):
        terminal.press(KEYS["s"])
        check.that(terminal.shows(f"sort: {words} "), f"s sorts by {words}")
    for key, words in ((">", "read p99"), ("<", "name"), ("r", "name (r)")):
        terminal.press(KEYS[key])
        check.that(terminal.shows(f"sort: {words} "), f"{key} sorts by {words}")
    check.that(terminal.until(lambda: [*terminal.rows(names)] == [second, first]), "r reverses the order of the lines")
    terminal.press(KEYS["r"])
    check.that(terminal.until(lambda: [*terminal.rows(names)] == names), "and back")
    for key, wanted in (("j", second), ("k", first), ("down", second), ("up", first), ("down", second)):
        terminal.press(KEYS[key])
        check.that(terminal.until(lambda wanted=wanted: terminal.rows(names) == {name: name == wanted for name in names}),
                   f"{key} selects {wanted}")
    for there, back in ((KEYS["Enter"], KEYS["Esc"]), (KEYS["l"], KEYS["h"]), (RIGHT, LEFT)):
        terminal.press(there)
        check.that(terminal.until(lambda: terminal.has("o heatmap: ") and set(terminal.rows(names)) == {second}),
                   f"{there!r} opens the selected drive")
        terminal.press(back)
        check.that(terminal.until(lambda: len(terminal.rows(names)) == 2), f"{back!r} goes back")
    terminal.press(KEYS["v"])
    check.that(terminal.until(lambda: terminal.has("no volumes (LVM") or terminal.has("Health")), "v shows the volumes, or that there is none")
    terminal.press(KEYS["t"])
    check.that(terminal.shows("Counted from now on"), "t shows the tenants")
    rig.fio_jobs(disks[0], 1, [{}], rw="randread", bs="4k", ioengine="psync", runtime=2, time_based=None, rate_iops="100")
    check.that(terminal.until(lambda: terminal.has("on all drives.") and terminal.has("MB/s"), 15), "with figures of who has read since")
    for key in ("d", "t", "t"):
        terminal.press(KEYS[key])
    check.that(terminal.until(lambda: len(terminal.rows(names)) == 2), "d shows the drives, and so does t once more")
    terminal.press(KEYS["l"])
    for words in ("write", "flush", "discard", "commit", "read"):
        terminal.press(KEYS["o"])
        check.that(terminal.shows(f"heatmap: {words} "), f"o shows the heatmap of {words}")
    terminal.press(KEYS["h"])
    terminal.press(KEYS["/"] + "nothing" + KEYS["Enter"])
    check.that(terminal.shows("No drive fits the filter"), "/ filters")
    terminal.press(KEYS["h"])
    check.that(terminal.until(lambda: len(terminal.rows(names)) == 2), "h clears the filter")
    for key in ("p", "space"):
        terminal.press(KEYS[key])
        check.that(terminal.shows("PAUSED"), f"{key} pauses")
        terminal.press(KEYS[key])
        check.that(terminal.until(lambda: not terminal.has("PAUSED")), f"{key} goes on")
    keys_through_time(check, terminal)
    terminal.press(KEYS["q"])
    check.equal(terminal.end(), 0, "exit status after every key")
    is_sane(check, terminal, "every key")


def keys_through_time(check, terminal):
    terminal.press(KEYS["{"])
    check.that(terminal.until(terminal.past), "{ shows the past")
    begin = terminal.past()
    for key, away in (("[", -MINUTE), ("]", 0 * MINUTE), ("{", -HOUR), ("}", 0 * MINUTE)):
        terminal.press(KEYS[key])
        check.that(terminal.until(lambda away=away: terminal.past() == begin + away), f"{key} leads from {begin} to {terminal.past()}")
    terminal.press(KEYS["}"] * 2)
    check.that(terminal.until(lambda: not terminal.past()), "} ends in the present")
    terminal.press(KEYS["{"])
    check.that(terminal.until(terminal.past), "once more")
    terminal.press(KEYS["n"])
    check.that(terminal.until(lambda: not terminal.past()), "n is now")


def each_end_is_clean(check, command):
    for how in (signal.SIGTERM, signal.SIGINT):
        terminal = Terminal(command, NO_COLOR="1")
        terminal.shows("ssdpulse top")
        check.that(b"\x1b[38;5" not in terminal.bytes and b"\x1b[33m" not in terminal.bytes, "NO_COLOR has no colours")
        os.kill(terminal.pid, how)
        check.equal(terminal.end(), 0, f"exit status of {how.name}")
        is_sane(check, terminal, how.name)


def scripts_are_served(check, address, disk, other):
    def run(*arguments):
        return subprocess.run([rig.BINARY, *arguments, "--address", address], capture_output=True, text=True, check=False,
                              env={**os.environ, "TERM": "dumb"})

    once = run("top", "--once")
    check.that(once.returncode == 0 and disk.name in once.stdout and "\x1b" not in once.stdout, "--once prints text")
    check.equal(run("top").stdout.splitlines()[3:4], once.stdout.splitlines()[3:4], "and so does no terminal")
    check.that(disk.name in {one["name"] for one in json.loads(run("top", "--json").stdout)["devices"]}, "--json prints JSON")
    why = run("why")
    known = not why.stdout.startswith("Measuring began")
    check.that(why.returncode == (0 if known else 6) and (not known or why.stdout.startswith(("No drive is slower than usual", disk.name, other.name))),
               f"why: {why.stdout.strip()}")
    before = run("why", "--at", "-1h")
    check.that(before.returncode == 6 and "Out of range: " in before.stdout, f"why --at says how far back it reaches: {before.stdout}")
    check.equal([run(what, "--at", "noon").returncode for what in ("why", "top")], [2, 2], "exit status of a time that is none")
    gone = subprocess.run([rig.BINARY, "top", "--address", "127.0.0.1:1", "--once"], capture_output=True, text=True, check=False)
    check.that(gone.returncode == 1 and "no daemon answers at 127.0.0.1:1" in gone.stderr, "it says where nobody answers")


def test(check, state):
    with rig.ram_disks(state, 2, "64M") as disks, rig.daemon(state, disks) as daemon:
        rig.fio_jobs(disks[0], 1, [{"filename": disk.path} for disk in disks], rw="randrw", bs="4k", ioengine="psync", runtime=3,
                     time_based=None, rate_iops="200,100")
        address = f"127.0.0.1:{daemon.port}"
        command = [str(rig.BINARY), "top", "--address", address]
        a_person_looks_around(check, command, disks[0])
        every_key_does_what_the_help_says(check, command, disks)
        stopped_while_it_is_resized(check, command)
        each_end_is_clean(check, command)
        scripts_are_served(check, address, *disks)


rig.main(test)
