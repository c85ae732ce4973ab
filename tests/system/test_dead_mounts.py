#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Do commands end, and name what they could not read, while a FUSE server is stopped: one that never took the question,
and one that took it, so that even SIGKILL does not free whoever asked?
"""
import ctypes
import json
import os
import signal
import struct
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

from lib import rig

LOOKUP, GETATTR, INIT = 1, 3, 26
IN_HEADER = struct.Struct("<IIQQIIII")
OUT_HEADER = struct.Struct("<IiQ")
LIMIT = 30  # seconds, for any command
libc = ctypes.CDLL(None, use_errno=True)


def mount_fuse(source, place):
    """Whose requests are read from the descriptor that this returns."""
    server = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={server},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    if libc.mount(source.encode(), os.fsencode(place), b"fuse", 0, options) != 0:
        raise OSError(ctypes.get_errno(), f"mount {place}")
    return server


def serve(server, taken):
    """Answers for a directory with directories of any name. After SIGUSR1 it takes the next request, reports it, and stops."""
    takes = []
    signal.signal(signal.SIGUSR1, lambda *_: takes.append(True))
    signal.siginterrupt(signal.SIGUSR1, False)
    while True:
        request = os.read(server, 1 << 17)
        _, opcode, unique, node, *_ = IN_HEADER.unpack_from(request)
        directory = struct.pack("<QQQQQQIIIIIIIIII", 2 if opcode == LOOKUP else node, 0, 0, 0, 0, 0, 0, 0, 0, 0o40755, 2, 0, 0, 0, 4096, 0)
        if takes:
            os.write(taken, b"x")
            os.kill(os.getpid(), signal.SIGSTOP)
            continue
        if opcode == INIT:
            body = struct.pack("<IIIIHHI", 7, 23, 0, 0, 0, 0, 1 << 16) + bytes(40)
        elif opcode == GETATTR:
            body = struct.pack("<QII", 0, 0, 0) + directory
        elif opcode == LOOKUP:  # valid for no time: each walk along a path asks again
            body = struct.pack("<QQQQII", 2, 0, 0, 0, 0, 0) + directory
        else:
            body = None
        error = -38 if body is None else 0
        body = body or b""
        os.write(server, OUT_HEADER.pack(OUT_HEADER.size + len(body), error, unique) + body)


@contextmanager
def dead_mount(state, name, takes, disk=None):
    """A FUSE mount whose server is stopped: it `takes` a question first, or was stopped before anybody asked. Below it, at
    `data`, the file system of the disk is mounted: whoever asks about that walks through the FUSE mount.
    """
    place = Path(state) / name
    place.mkdir()
    server = mount_fuse("dead", place)
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read)
            serve(server, write)
        finally:
            os._exit(1)
    os.close(write)
    os.close(server)
    if disk:
        rig.wait_until_unused(disk)
        rig.run("mkfs.ext4", "-q", "-F", disk.path)
        rig.run("mount", disk.path, place / "data")
    os.kill(pid, signal.SIGUSR1 if takes else signal.SIGSTOP)
    try:
        yield place, read
    finally:
        os.kill(pid, signal.SIGKILL)  # ends the connection, and with it all who wait
        os.waitpid(pid, 0)
        os.close(read)
        subprocess.run(["umount", "-l", place], check=False)


def ended(check, *command):
    begin = time.monotonic()
    try:
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired as error:
        check.that(False, f"{' '.join(map(str, command))} ended within {LIMIT} s")
        return subprocess.CompletedProcess(command, None, str(error.stdout), str(error.stderr))
    print(f"{' '.join(map(str, command[1:3]))}: {time.monotonic() - begin:.1f} s, {done.returncode}: {done.stderr.strip()[:300]}")
    return done


def audits(check, place, config):
    done = ended(check, rig.BINARY, "audit", "-c", config, "--json", "--all")
    findings = json.loads(done.stdout)["findings"]
    full = [one for one in findings if one["id"] == "F12" and one["device"] == str(place)]
    check.equal([(one["verdict"], one["why"]) for one in full], [("unknown", "the file system does not answer")], f"F12 of {place}")
    check.that(f"{place}: its file system does not answer" in done.stderr, f"said on stderr: {done.stderr}")
    check.that(any(one["id"] == "F12" and one["device"] != str(place) or one["id"] == "F3" for one in findings),
               "and the rest of the host is audited")


def run(check, state):
    config = Path(state) / "config.yaml"
    with rig.loop_disk(Path(state) / "disk", "64M") as disk:
        config.write_text(f"devices:\n  include: [{disk.name}]\nhistory:\n  directory: ''\n", encoding="utf-8")
        for takes in (False, True):
            with dead_mount(state, f"dead-{takes}", takes, disk) as (place, taken):
                audits(check, place / "data", config)
                if takes:
                    check.equal(os.read(taken, 1), b"x", "the server had taken the question when it was stopped")
    (Path(state) / "there.yaml").write_text(f"history:\n  directory: {state}/files/history\n", encoding="utf-8")
    with dead_mount(state, "files", takes=False) as (place, _):
        file = place / "ssdpulse.yaml"
        for command in (("audit", "--accepted", file), ("audit", "-c", file), ("audit", "--history.directory", place),
                        ("report", "--last", "1h", "--history.directory", place), ("history", "-c", file), ("doctor", "-c", file),
                        ("why", "-c", file), ("check-config", file), ("check-config", f"{state}/there.yaml"),
                        ("print-config", "-c", file), ("devices", "-c", file)):
            done = ended(check, rig.BINARY, *command)
            check.that("its file system does not answer" in done.stderr, " ".join(map(str, command)))


rig.main(run)
