#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
"""Does the log reader serve one client at a time when a service manager starts it, and does the daemon find it again?

No drive is needed: requests are for a controller that no host has.
"""
import errno
import os
import signal
import socket
import struct
from contextlib import contextmanager
from pathlib import Path

import host
from lib import rig
from log_reader import IDENTIFY_CONTROLLER, SYS_ADMIN, Client, children, ended, start, state_of, wait_until


class Manager:
    """Acts like systemd for a socket unit: listens, starts the service, and keeps the socket when that ends."""

    def __init__(self, path):
        self.path = path
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(str(path))
        self.listener.listen(8)
        self.pid = None

    def start(self):
        self.pid = start(rig.BINARY, self.listener)

    def end(self, with_signal=signal.SIGTERM):
        os.kill(self.pid, with_signal)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def connect(self):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.connect(str(self.path))
        return Client(connection)


@contextmanager
def manager(path):
    one = Manager(path)
    try:
        yield one
    finally:
        if one.pid and state_of(one.pid) not in (None, "Z"):
            one.end(signal.SIGKILL)
        one.listener.close()


def live_workers(one):
    """Without the ended workers of clients that have gone, which may still be listed."""
    return [pid for pid in children(one.pid) if not ended(pid)]


def answered(client):
    return client.ask(IDENTIFY_CONTROLLER) == (-errno.ENODEV, 0)


def one_at_a_time(check, one):
    one.start()
    first = one.connect()
    check.that(answered(first), "a client is served")
    [worker] = live_workers(one)
    for name, pid in (("supervisor", one.pid), ("worker", worker)):
        check.equal([host.status(pid, field) for field in ("CapPrm", "CapEff", "NoNewPrivs", "Seccomp")],
                    [SYS_ADMIN, SYS_ADMIN, "1", "2"], f"{name}: one capability, no_new_privs, a filter")
    links = [os.readlink(fd) for fd in Path(f"/proc/{worker}/fd").iterdir() if int(fd.name) > 2]
    check.that(len(links) == 1 and links[0].startswith("socket:"), f"the worker has its client and no listener: {links}")
    others = [one.connect() for _ in range(3)]
    check.equal([other.socket.recv(1) for other in others], [b""] * 3, "others meanwhile are turned away")
    check.that(answered(first), "and the first does not notice")
    os.kill(worker, signal.SIGKILL)
    check.equal(first.next(), (-errno.ECONNRESET, 0, 0), "a worker that died is told")
    check.that(answered(first), "and replaced")
    first.socket.close()
    for number in range(2, 7):
        # It may connect before the reader knows that the previous client has gone.
        check.that(wait_until(lambda: workers_of_a_client(one) > 0), f"client {number} is served")
    # Those that have ended go when the next client comes.
    check.that(wait_until(lambda: workers_of_a_client(one) == 1), "no workers pile up")
    check.that(wait_until(lambda: not live_workers(one)), "the last client's worker ends")
    last = one.connect()
    check.that(answered(last), "the last one")
    [worker] = live_workers(one)
    check.equal(one.end(), -signal.SIGTERM, "ended by the service manager")
    check.that(wait_until(lambda: ended(worker)) and last.socket.recv(1) == b"", "its worker too")


def workers_of_a_client(one):
    """How many processes the reader has while it serves a client that then goes, ended ones included; 0: turned away."""
    client = one.connect()
    with client.socket:
        try:
            return len(children(one.pid)) if answered(client) else 0
        except (ConnectionError, struct.error):  # turned away
            return 0


def is_the_client(one):
    """Any other client is turned away."""
    def turned_away():
        with one.connect().socket as other:
            other.settimeout(1)
            try:
                return other.recv(1) == b""
            except TimeoutError:
                return False
    return wait_until(turned_away, 15)


def finds_it_again(check, state, path, disk):
    """The daemon is there first; the reader appears, dies, and comes back."""
    with rig.daemon(state, [disk], options=[f"--nvme.reader-socket={path}"]) as daemon:
        def value(name, **labels):
            return daemon.scrape().value(f"ssdpulse_source_{name}", **labels)
        check.equal((value("up", source="nvme"), children(daemon.process.pid)), (0, []),
                    "no reader yet: the source is down, none is started")
        check.that(f"no NVMe reader at {path}" in daemon.log.read_text(), "the log says what is missing")
        check.equal(value("up", source="block"), 1, "measuring goes on")
        with manager(path) as one:
            one.start()
            check.that(wait_until(lambda: value("up", source="nvme") == 1, 15), "a reader that comes is found")
            check.that(is_the_client(one), "and has the daemon as its one client")
            one.end(signal.SIGKILL)
            check.that(wait_until(lambda: value("errors_total", source="nvme", kind="reader_gone") == 1),
                       "one that dies is counted")
            one.start()
            check.that(wait_until(lambda: value("up", source="nvme") == 1, 15) and is_the_client(one),
                       "the next one is found")
        check.that(wait_until(lambda: value("up", source="nvme") == 0), "without a manager the source is down again")
        log = daemon.log.read_text()
        check.that("connected to the reader of NVMe logs" in log and "the reader of NVMe logs is gone" in log,
                   "the log tells of both")


def test(check, state):
    with manager(state / "reader.socket") as one:
        one_at_a_time(check, one)
    (state / "reader.socket").unlink()
    with rig.ram_disks(state, size="64M") as [disk]:
        finds_it_again(check, state, state / "reader.socket", disk)


rig.main(test)
