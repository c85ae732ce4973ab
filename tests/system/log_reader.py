# SPDX-License-Identifier: Apache-2.0
"""The process that reads NVMe logs, as seen by its clients: start it, ask it, and check whether it has ended."""
import os
import socket
import struct
import time
from pathlib import Path

import host

SYS_ADMIN, SYS_ADMIN_AND_READ = f"{1 << 21:016x}", f"{1 << 21 | 1 << 2:016x}"
NONE = "0" * 16
REQUEST = struct.Struct("=IIQIHHBB2xI")  # daemon/nvme_reader/reader_protocol.h
RESPONSE = struct.Struct("=IiQQQII4096s")
REQUEST_MARK, RESPONSE_MARK = 0x3152504e, 0x3153504e
IDENTIFY_CONTROLLER, IDENTIFY_NAMESPACE, LOG_PAGE = 0, 1, 4
NO_CONTROLLER = 4_000_000_000


def wait_until(true, seconds=10):
    deadline = time.monotonic() + seconds
    while not (holds := true()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return holds


def state_of(pid):
    try:
        return host.status(pid, "State")[0]
    except OSError:
        return None


def ended(*pids):
    return all(state_of(pid) in (None, "Z") for pid in pids)


def start(binary, theirs, prefix=()):
    """Starts the reader with its end of a socket, and with a descriptor that it should not keep."""
    stray = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(stray, True)
    pid = os.fork()
    if pid == 0:
        os.dup2(theirs.fileno(), 3)
        os.set_inheritable(3, True)  # the socket may have been descriptor 3 already
        command = [*prefix, str(binary), "nvme-reader"]
        os.execvp(command[0], command)
    os.close(stray)
    return pid


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class Client:
    def __init__(self, connection):
        self.socket = connection
        self.socket.settimeout(20)
        self.version = 0  # the reader's, once it has answered

    def ask(self, kind, number=1, nsid=0, page=0, version=None):
        """(result, bytes) of the answer to this request."""
        if version is None and not self.version:
            self.ask(kind, number, nsid, page, 0)
        version = self.version if version is None else version
        self.socket.send(REQUEST.pack(REQUEST_MARK, NO_CONTROLLER, number, nsid, page, 0, kind, 0, version))
        result, answered, size = self.next()
        return (result, size) if answered == number else None

    def next(self):
        """(result, number, bytes)"""
        message = self.socket.recv(RESPONSE.size + 1)
        mark, result, number, _, _, size, self.version, _ = RESPONSE.unpack(message)
        return (result, number, size) if mark == RESPONSE_MARK else None


class Reader(Client):
    """As the daemon starts it: our end of the socket, the supervisor, its worker."""

    def __init__(self, binary, prefix=()):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        super().__init__(ours)
        self.pid = start(binary, theirs, prefix)
        theirs.close()
        wait_until(lambda: children(self.pid))
        self.worker = children(self.pid)[0]
