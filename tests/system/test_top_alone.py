#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
"""Does `ssdpulse top` measure by itself if no daemon answers, say so, and leave nothing behind, however it ends?"""
import fcntl
import json
import os
import pty
import signal
import socket
import struct
import subprocess
import termios
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import host
from lib import rig

BY_ITSELF = "measured by top itself since "
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
POWERLESS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
CHILDREN_IGNORED = ("env", "--ignore-signal=CHLD")  # as some supervisors leave it for their children


def wait_until(true, seconds):
    deadline = time.monotonic() + seconds
    while not (holds := true()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return holds


@contextmanager
def load_on(disk):
    process = subprocess.Popen(rig.fio_command(disk, 1, [{}], rw="randrw", bs="4k", ioengine="psync", size="32M", runtime=600,
                                               time_based=None, rate_iops="400,200"),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        if not wait_until(lambda: disk.stat()["read"] > 0, 60):
            raise RuntimeError("fio does not read")
        yield
    finally:
        process.terminate()
        process.wait()


def configuration(state, disk):
    """(file, port): a port where nothing listens, and a configuration with the disk."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    file = state / "alone.yaml"
    file.write_text(f'web:\n  listen_address: 127.0.0.1:{port}\ndevices:\n  include: ["{disk.name}"]\n  exclude: []\n'
                    f"history:\n  directory: {state}/history\nlimits: {{cpu: 0%}}\n")
    return file, port


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_alive(pid):
    """A process whose parent does not wait for it is a zombie, and holds nothing."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    return False


def listens_on_tcp(pid):
    held = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # closed since the listing
            held.add(os.readlink(descriptor))
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return any(f"socket:[{row[9]}]" in held for row in rows if row[3] == "0A")


def directories():
    return {path for place in ("/run", "/tmp") for path in Path(place).glob("ssdpulse-top.*")}


class Terminal:
    """`command` in a terminal of its own."""

    def __init__(self, command):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
            os.environ.update({"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"})
            os.execv(command[0], command)
        os.set_blocking(self.fd, False)
        self.bytes = b""

    def read(self):
        with suppress(OSError):  # nothing there, or the other end is closed
            while new := os.read(self.fd, 65536):
                self.bytes += new

    def shows(self, words, seconds=60):
        def seen():
            self.read()
            return words.encode() in self.bytes
        return wait_until(seen, seconds)

    def end(self, how):
        """Ends it by a signal or a key; returns its exit status."""
        if isinstance(how, signal.Signals):
            os.kill(self.pid, how)
        else:
            os.write(self.fd, how.encode())
        status = []

        def ended():
            self.read()
            status[:] = os.waitpid(self.pid, os.WNOHANG)
            return status[0] != 0
        if not wait_until(ended, 30):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            return None
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status[1])


def nothing_is_left(check, command, how, status):
    name = how.name if isinstance(how, signal.Signals) else how
    before = directories()
    terminal = Terminal(command)
    check.that(terminal.shows(BY_ITSELF), f"{name}: the title says who measures")
    daemons = children(terminal.pid)
    check.equal(len(daemons), 1, f"{name}: daemons of its own")
    daemon = daemons[0]
    others = children(daemon)
    held = host.bpf_of(daemon)
    check.equal(Path(f"/proc/{daemon}/comm").read_text().strip(), "ssdpulse", f"{name}: name of the daemon")
    check.that(Path(f"/proc/{daemon}/cmdline").read_bytes().startswith(b"ssdpulse\0run\0"), f"{name}: and what it runs")
    check.that({"prog", "map"} <= {kind for kind, _ in held}, f"{name}: it holds {len(held)} BPF objects")
    check.that(not listens_on_tcp(daemon), f"{name}: it listens on no port")
    check.equal(directories(), before, f"{name}: files of sockets")
    check.equal(terminal.end(how), status, f"{name}: exit status")
    check.that(wait_until(lambda: not any(map(is_alive, [daemon, *others])), 15), f"{name}: no process is left of {[daemon, *others]}")
    left = host.bpf_left(held, 15)
    check.that(not left, f"{name}: no BPF object is left {left or ''}")
    check.equal(directories(), before, f"{name}: files of sockets that are left")


def scripts_are_served(check, run, disk):
    before = disk.stat()
    answer = run("--once", "--json")
    after = disk.stat()
    check.that(answer.returncode == 0 and "top measures by itself" in answer.stderr, f"--json says who measures: {answer.stderr.strip()}")
    device = next(one for one in json.loads(answer.stdout)["devices"] if one["name"] == disk.name)
    now = device["now"] or {"seconds": 0, "read": {"ios": 0, "p99": None}}
    check.that(now["seconds"] > 0.99 and 0 < now["read"]["ios"] <= after["read"] - before["read"] and now["read"]["p99"],
               f"reads of {now['seconds']} s: {now['read']}, by the kernel {after['read'] - before['read']} in all")
    once = run("--once")
    row = next((line.split() for line in once.stdout.splitlines() if line.startswith(disk.name + " ")), ["", "?"])
    check.that(once.returncode == 0 and BY_ITSELF in once.stdout.splitlines()[0] and "?" not in row[1:4],
               f"--once has figures: {once.stdout.splitlines()[:1]} {row}")
    ignored = run("--once", before=CHILDREN_IGNORED)
    check.that(ignored.returncode == 0 and BY_ITSELF in ignored.stdout, f"with SIGCHLD ignored: {ignored.returncode} {ignored.stderr}")


def who_may_not_measure_is_told(check, binary, file, port):
    def descriptors():
        os.dup2(os.open(binary, os.O_RDONLY), 9)
        os.dup2(os.open(file, os.O_RDONLY), 8)

    nobody = subprocess.run([*NOBODY, "/proc/self/fd/9", "top", "--once", "-c", "/proc/self/fd/8"], text=True, capture_output=True,
                            check=False, preexec_fn=descriptors, close_fds=False)
    check.that(nobody.returncode == 1 and f"no daemon answers at http://127.0.0.1:{port}" in nobody.stderr and
               "sudo ssdpulse top" in nobody.stderr, f"not root: {nobody.returncode} {nobody.stderr.strip()}")
    few = subprocess.run(["prlimit", "--nofile=11", binary, "top", "--once", "-c", file], text=True, capture_output=True, check=False,
                         timeout=60)
    check.that(few.returncode == 1 and "Too many open files" in few.stderr, f"few descriptors: {few.returncode} {few.stderr.strip()}")
    heard = set()
    for before in ((), CHILDREN_IGNORED):
        powerless = subprocess.run([*before, *POWERLESS, binary, "top", "--once", "-c", file], text=True, capture_output=True, check=False,
                                   timeout=60)
        words = powerless.stderr.partition("top cannot measure by itself: ")[2].strip()
        check.that(powerless.returncode == 1 and len(words) > 20 and not words.startswith(("exit status", "signal")),
                   f"{before}: root without capabilities hears the daemon's own words: {words}")
        heard.add(words)
    check.equal(len(heard), 1, f"with SIGCHLD ignored, the same: {heard}")


def test(check, state):
    with rig.ram_disks(state, 1, "64M") as [disk], load_on(disk):
        file, port = configuration(state, disk)

        def run(*arguments, config=file, before=()):
            return subprocess.run([*before, rig.BINARY, "top", "-c", config, *arguments], capture_output=True, text=True, check=False,
                                  env={**os.environ, "TERM": "dumb"})

        scripts_are_served(check, run, disk)
        command = [str(rig.BINARY), "top", "-c", str(file)]
        for how, status in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, 0), ("q", 0)):
            nothing_is_left(check, command, how, status)
        check.that(not (state / "history").exists(), "no history is kept")
        who_may_not_measure_is_told(check, rig.BINARY, file, port)
        elsewhere = run("--once", "--address", "127.0.0.1:1")
        check.that(elsewhere.returncode == 1 and "by itself" not in elsewhere.stderr, "nobody at an address that was named stays an error")
        past = run("--once", "--at", "-10m")
        check.that(past.returncode == 1 and "by itself" not in past.stderr, "who has only begun to measure has no past")
        with rig.daemon(state, [disk]) as daemon:
            asked = run("--once", config=state / "config.yaml")
            check.that(asked.returncode == 0 and f"127.0.0.1:{daemon.port}" in asked.stdout.splitlines()[0] and
                       "itself" not in asked.stdout + asked.stderr, "where a daemon answers, it is asked")


rig.main(test)
