#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
"""Is `ssdpulse top` a good guest in a terminal, and does `ssdpulse why` say the first line?

In a real pseudo-terminal, read by a terminal emulator: start, keys, another size, stop and continue, and each way to end
leave the terminal as it was. Not Debian's python3 but that of the path would lack pyte.
"""
import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(SOURCE / "tests/kernel")]
import pyte  # noqa: E402  pylint: disable=wrong-import-position
from lib import rig  # noqa: E402  pylint: disable=wrong-import-position


def lead(command):
    """As a shell does: the command has a process group of its own in the foreground, so that it can be stopped."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    if (child := os.fork()) == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.execv(command[0], command)
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)


class Terminal:
    """`command` in a terminal of its own, and what is on its screen."""

    def __init__(self, command, **environment):
        self.leader, self.fd = pty.fork()
        if self.leader == 0:
            os.environ.update({"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **environment})
            lead(command)
        children = Path(f"/proc/{self.leader}/task/{self.leader}/children")
        while not (pid := children.read_text().strip()):
            time.sleep(0.01)
        self.pid = int(pid)
        self.before = termios.tcgetattr(self.fd)
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
        except OSError:  # nothing there, or nobody at the other end
            pass

    def shows(self, words, seconds=10):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.read()
            if any(words in line for line in self.screen.display):
                return True
            time.sleep(0.05)
        return False

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def cooked(self):
        """Lines are edited and echoed, as a shell wants it."""
        return bool(termios.tcgetattr(self.fd)[3] & termios.ICANON and termios.tcgetattr(self.fd)[3] & termios.ECHO)

    def state(self):
        return Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]

    def end(self):
        """The exit status, once it has ended."""
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
    check.that(terminal.shows("Esc back") and terminal.shows("p99.9"), "Enter opens the drive")
    check.that(terminal.shows("now"), "with a heatmap")
    terminal.press("o")
    check.that(terminal.shows("heatmap: write"), "o changes what it is of")
    terminal.press("\x1b")
    check.that(terminal.shows("sort: need"), "Esc goes back")
    terminal.press("s")
    check.that(terminal.shows("sort: name"), "s sorts")
    terminal.press("/nothing\r")
    check.that(terminal.shows("no drive fits the filter"), "/ filters")
    terminal.press("\x1b")
    check.that(terminal.shows(disk.name), "Esc clears the filter")
    terminal.press("p")
    check.that(terminal.shows("PAUSED"), "p pauses")
    terminal.press("p")
    terminal.size(120, 40)
    check.that(terminal.shows("r p50"), "a larger terminal has more columns")
    terminal.size(40, 10)
    check.that(terminal.shows("q quit  Enter drive  / filter"), "a small one is no trouble")
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


def each_end_is_clean(check, command):
    for how in (signal.SIGTERM, signal.SIGINT):
        terminal = Terminal(command, NO_COLOR="1")
        terminal.shows("ssdpulse top")
        check.that(b"\x1b[38;5" not in terminal.bytes and b"\x1b[33m" not in terminal.bytes, "NO_COLOR has no colours")
        os.kill(terminal.pid, how)
        check.equal(terminal.end(), 0, f"exit status of {how.name}")
        is_sane(check, terminal, how.name)


def scripts_are_served(check, address, disk):
    def run(*arguments):
        return subprocess.run([rig.BINARY, *arguments, "--address", address], capture_output=True, text=True, check=False,
                              env={**os.environ, "TERM": "dumb"})

    once = run("top", "--once")
    check.that(once.returncode == 0 and disk.name in once.stdout and "\x1b" not in once.stdout, "--once prints text")
    check.equal(run("top").stdout.splitlines()[3:4], once.stdout.splitlines()[3:4], "and so does no terminal")
    check.equal([one["name"] for one in json.loads(run("top", "--json").stdout)["devices"]], [disk.name], "--json prints JSON")
    why = run("why")
    known = not why.stdout.startswith("Measuring began")
    check.that(why.returncode == (0 if known else 6) and (not known or why.stdout.startswith(("No drive is slower than usual", disk.name))),
               f"why: {why.stdout.strip()}")
    before = run("why", "--at", "-1h")
    check.that(before.returncode == 6 and "Out of range: " in before.stdout, f"why --at says how far back it reaches: {before.stdout}")
    check.equal([run(what, "--at", "noon").returncode for what in ("why", "top")], [2, 2], "exit status of a time that is none")
    gone = subprocess.run([rig.BINARY, "top", "--address", "127.0.0.1:1", "--once"], capture_output=True, text=True, check=False)
    check.that(gone.returncode == 1 and "no daemon answers at 127.0.0.1:1" in gone.stderr, "it says where nobody answers")


def test(check, state):
    with rig.ram_disks(state, 1, "64M") as (disk,), rig.daemon(state, [disk], include=[disk.name]) as daemon:
        rig.fio(disk, 1, rw="randrw", bs="4k", ioengine="psync", runtime=3, time_based=None, rate_iops="200,100")
        address = f"127.0.0.1:{daemon.port}"
        command = [str(rig.BINARY), "top", "--address", address]
        a_person_looks_around(check, command, disk)
        each_end_is_clean(check, command)
        scripts_are_served(check, address, disk)


rig.main(test)
