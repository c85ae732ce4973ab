#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 200
# timeout-long: 900
"""Does SIGTERM end the daemon within ten seconds, whatever hangs: the history's disk, the log reader, a client?

Of a disk that hangs, the kernel lets no process go that waits for it: what is judged is that the port is free again, no
program of the daemon is attached any more, and all of its threads but the one that waits are gone.
"""
import signal
import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

from controlled_disk import controlled_disk
from lib import rig

RUNS = 5 if rig.LONG else 1
LIMIT = 10.0  # seconds
HANGS = 20  # seconds, of the disk


def states(pid):
    """Of its threads; the leader of those that are left is a zombie."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*"):
        try:
            found.append(task.joinpath("stat").read_text().rsplit(")", 1)[1].split()[0])
        except OSError:
            pass
    return found


def is_over(process):
    """Gone, but for what the kernel does not let go."""
    return process.poll() is not None or set(states(process.pid)) <= {"Z", "D", "X"}


@contextmanager
def hung_disk(state, stack):
    slow, tell = stack.enter_context(controlled_disk(state, {}, 256 << 20, "keep=1"))
    (state / "history").mkdir()
    rig.run("mkfs.ext4", "-q", slow.path)
    rig.run("mount", slow.path, state / "history")
    stack.callback(lambda: (tell({}), subprocess.run(["umount", "-l", state / "history"], check=False)))
    yield lambda daemon: (tell({"stall_until": time.time() + HANGS}), ask_for_mark(daemon))


def ask_for_mark(daemon):
    """Makes the history write."""
    command = ["curl", "-s", "-o", "/dev/null", "-m", "1", "-X", "POST", "-H", "X-Ssdpulse: 1",
               f"http://127.0.0.1:{daemon.port}/api/v1/marks?text=lost&id=lost"]
    subprocess.run(command, check=False)


@contextmanager
def hung_reader(state, stack):
    """A service that takes the daemon's requests to read logs, and answers none."""
    path = state / "reader"
    service = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    service.bind(str(path))
    service.listen()
    yield lambda daemon: None


@contextmanager
def hung_client(state, stack):
    """Clients that read nothing of many answers, and one whose request never ends."""
    def hang(daemon):
        for number in range(64):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", daemon.port)))
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * (20 if number else 1) if number != 1 else b"GET / HTTP/1.1\r\nHo")
    yield hang


HANGS_OF = {"disk": (hung_disk, ()), "reader": (hung_reader, ("--nvme.reader-socket", "reader")), "client": (hung_client, ())}


def one(check, state, what, number):
    make, options = HANGS_OF[what]
    place = state / f"{what}{number}"
    place.mkdir()
    with ExitStack() as stack:
        hang = stack.enter_context(make(place, stack))
        options = [str(place / option) if option == "reader" else option for option in options]
        daemon = stack.enter_context(rig.daemon(place, [], options=options))
        daemon.after_ticks(2)
        hang(daemon)
        began = time.monotonic()
        daemon.process.send_signal(signal.SIGTERM)
        while not is_over(daemon.process) and time.monotonic() < began + 3 * LIMIT:
            time.sleep(0.05)
        took = time.monotonic() - began
        check.that(took < LIMIT, f"{what}: over after {took:.1f} s, threads left: {states(daemon.process.pid)}")
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                other.bind(("127.0.0.1", daemon.port))
                free = True
            except OSError as error:
                free = str(error)
        check.that(free is True, f"{what}: its port is free: {free}")
        log = daemon.log.read_text()
        if what == "disk":
            check.that("rows not written" in log and "mark=1" in log, "what waited is counted and logged: " +
                       next((line for line in log.splitlines() if "not written" in line), "no"))
        else:
            check.equal(daemon.process.wait(1), 0, f"{what}: exit code")


def test(check, state):
    for what in HANGS_OF:
        for number in range(RUNS):
            one(check, state, what, number)


rig.main(test)
