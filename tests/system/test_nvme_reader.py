#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 60
"""Is the process that may read NVMe logs as restricted as promised: one capability, one socket, gone with its daemon?

No drive is needed: requests are for a controller that no host has.
"""
import errno
import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import host
from lib import rig
from log_reader import (IDENTIFY_CONTROLLER, IDENTIFY_NAMESPACE, LOG_PAGE, NONE, REQUEST, SYS_ADMIN, SYS_ADMIN_AND_READ,
                        Reader, children, ended, start, wait_until)

NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
GRANTED = [f"--{which}-caps=-all,+sys_admin,+dac_read_search,+sys_ptrace,+bpf" for which in ("inh", "ambient")]


@contextmanager
def reader(binary, prefix=()):
    one = Reader(binary, prefix)
    try:
        yield one
    finally:
        one.socket.close()
        if not wait_until(lambda: ended(one.pid)):
            os.kill(one.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(one.pid, 0)


def privileges(check, one, expected, bounded=True):
    """Only a process that may set capabilities can empty the bounding set; no_new_privs does it for the others."""
    one.ask(IDENTIFY_CONTROLLER)  # once it answers, it has dropped all it will drop, and has its threads
    for name, pid, filters in (("supervisor", one.pid, "1"), ("worker", one.worker, "2")):
        tasks = [f"{pid}/task/{task.name}" for task in Path(f"/proc/{pid}/task").iterdir()]
        wanted = {"Inh": {NONE}, "Prm": {expected}, "Eff": {expected}, "Amb": {NONE}}
        if bounded:
            wanted["Bnd"] = {NONE}
        sets = {which: {host.status(task, f"Cap{which}") for task in tasks} for which in wanted}
        check.equal(sets, wanted, f"{name}: capabilities of {len(tasks)} threads")
        check.equal({tuple(host.status(task, field) for field in ("NoNewPrivs", "Seccomp", "Seccomp_filters"))
                     for task in tasks}, {("1", "2", filters)}, f"{name}: no_new_privs and filters of system calls")
        check.equal(host.status(pid, "Name"), "nvme-reader", f"{name}: its name")
        links = {int(fd.name): os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir() if int(fd.name) > 2}
        others = [link for fd, link in links.items() if fd != 3 and "pidfd" not in link]
        check.that(links.get(3, "").startswith("socket:") and not others, f"{name}: descriptors {links}")


def answers(check, one):
    check.equal(one.ask(IDENTIFY_CONTROLLER), (-errno.ENODEV, 0), "identify of a controller that is not there")
    check.equal(one.ask(IDENTIFY_NAMESPACE, nsid=1), (-errno.ENODEV, 0), "a namespace of it")
    check.equal(one.ask(LOG_PAGE, page=0xffff), (-errno.EINVAL, 0), "a log page that is not listed")
    check.equal(one.ask(IDENTIFY_CONTROLLER, version=one.version ^ 1), (-errno.EPROTO, 0), "a client of another version")
    check.equal(one.ask(5), (-errno.EINVAL, 0), "a request of no known kind")
    for garbage in (b"", b"x", bytes(REQUEST.size), b"\xff" * 70_000):
        one.socket.send(garbage)
    check.equal(one.ask(IDENTIFY_CONTROLLER, number=7), (-errno.ENODEV, 0), "after garbage of all sizes")


def dies_and_returns(check, one):
    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        os.kill(one.pid, signal.Signals[name])
        os.kill(one.worker, signal.Signals[name])
    check.equal(one.ask(IDENTIFY_CONTROLLER), (-errno.ENODEV, 0), "signals to everybody do not end it")
    dead = one.worker
    os.kill(dead, signal.SIGKILL)
    began = time.monotonic()
    check.equal(one.next(), (-errno.ECONNRESET, 0, 0), "a worker that died is told")
    took = time.monotonic() - began
    check.that(2 < took < 10, f"and replaced after {took:.1f} s")
    check.equal(one.ask(IDENTIFY_CONTROLLER), (-errno.ENODEV, 0), "the next one answers")
    one.worker = children(one.pid)[0]
    check.that(one.worker != dead and ended(dead), "it is another process")


def ends_with_the_socket(check, binary):
    with reader(binary) as one:
        began = time.monotonic()
        one.socket.close()
        _, status = os.waitpid(one.pid, 0)
        check.equal(os.waitstatus_to_exitcode(status), 0, "exit code when the daemon has closed the socket")
        check.that(wait_until(lambda: ended(one.worker)) and time.monotonic() - began < 2, "and no worker is left")


def ends_with_the_daemon(check, binary):
    """Even while something else holds the daemon's end of the socket open: here, this test does."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    told, tell = os.pipe()
    daemon = os.fork()
    if daemon == 0:
        os.write(tell, str(start(binary, theirs)).encode())
        signal.pause()
    supervisor = int(os.read(told, 20))
    wait_until(lambda: children(supervisor))
    worker = children(supervisor)[0]
    os.kill(daemon, signal.SIGKILL)
    os.waitpid(daemon, 0)
    check.that(wait_until(lambda: ended(supervisor, worker)), "both end when the daemon is killed")
    for fd in (ours.detach(), theirs.detach(), told, tell):
        os.close(fd)


def by_hand(check, binary):
    for what, redirection in (("without a socket", "3<&-"), ("with a file for it", "3</dev/null")):
        done = subprocess.run(["sh", "-c", f"exec '{binary}' nvme-reader {redirection}"], text=True, timeout=20,
                              capture_output=True, check=False)
        check.that(done.returncode == 2 and not done.stdout and len(done.stderr.splitlines()) == 1
                   and "ssdpulse run" in done.stderr, f"by hand {what}: {done.returncode}, {done.stderr!r}")
    done = subprocess.run([binary, "--help"], text=True, timeout=20, capture_output=True, check=False)
    check.that("devices" in done.stdout and "nvme-reader" not in done.stdout, "it is not in the help")


def test(check, state):
    binary = state / "ssdpulse"  # another user can run it there, too
    state.chmod(0o755)
    shutil.copy(rig.BINARY, binary)
    with reader(binary) as one:
        privileges(check, one, SYS_ADMIN)
        answers(check, one)
        dies_and_returns(check, one)
        privileges(check, one, SYS_ADMIN)
    with reader(binary, NOBODY) as one:
        privileges(check, one, NONE, bounded=False)
        check.equal(one.ask(IDENTIFY_CONTROLLER), (-errno.ENODEV, 0), "without any right it still answers")
    with reader(binary, [*NOBODY, *GRANTED]) as one:
        privileges(check, one, SYS_ADMIN_AND_READ, bounded=False)
    ends_with_the_socket(check, binary)
    ends_with_the_daemon(check, binary)
    by_hand(check, binary)


rig.main(test)
