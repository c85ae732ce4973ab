#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
"""Does `ssdpulse doctor` name each problem and its fix, and is the problem gone after the fix, word for word?"""
import os
import signal
import socket
import subprocess
import time

from doctor import doctor, until
from lib import rig
from log_reader import start

RETRIED = 75  # seconds: a history that is down is retried every minute


def missing(found):
    """What could be measured and is not, apart from what is up to the host: single I/Os that it lost, and whether it
    accounts I/O to its cgroups."""
    return {key: one for key, one in found.items()
            if one["verdict"] != "info" and one["id"] not in ("lost-ios", "io-accounting")}


def says(found):
    """The exit status that these findings must produce."""
    return int(any(one["verdict"] != "info" for one in found.values()))


def running(check, state, disk):
    with rig.daemon(state, [disk]) as daemon:
        where = ("--address", f"127.0.0.1:{daemon.port}")
        code, found = until(lambda found: not missing(found), *where)  # the history may still be opening
        check.equal((code, missing(found)), (says(found), {}), "all that can be measured is")
        check.that(("health", disk.name) in found, "what cannot be is said, too")
        key = ("iostats", disk.name)
        disk.set_queue("iostats", 0)
        code, found = until(lambda found: key in found, *where)
        one = found.get(key, {})
        check.equal((code, one.get("verdict")), (1, "advise"), "iostats 0")
        check.that(time.time() - 60 < (one.get("since") or 0) <= time.time(), f"since {one.get('since')}")
        subprocess.run(["sh", "-c", one["change"]], check=True)
        code, found = until(lambda found: key not in found, *where)
        check.equal((code, key in found, disk.queue("iostats")), (says(found), False, "1"), "and gone once it was changed")
        subprocess.run(["sh", "-c", one["undo"]], check=True)
        check.equal(disk.queue("iostats"), "0", "undone")
        disk.set_queue("iostats", 1)
        text = subprocess.run([rig.BINARY, "doctor", *where, "--verbose", "--all"], text=True, capture_output=True,
                              timeout=20, check=False).stdout
        check.that("since" in text and "ok sources host" in text, "in words")
    code, found = doctor(*where)
    check.equal((code, found[("daemon", "")]["verdict"]), (1, "danger"), "a daemon that has gone")


def source(found, name):
    """The finding about this source, if it is down."""
    return next((one for one in found.values() if one["id"] == "sources" and name in one["found"].split()), {})


def reader_down(check, state, disk):
    path = state / "reader.sock"
    with rig.daemon(state, [disk], options=[f"--nvme.reader-socket={path}"]) as daemon:
        where = ("--address", f"127.0.0.1:{daemon.port}")
        # Shortly after the start the history may still be opening, and no attempt to reach the reader has been made.
        code, found = until(lambda found: source(found, "nvme"), *where)
        one = source(found, "nvme")
        check.that(code == 1 and "ssdpulse-nvme.socket" in one.get("change", ""), f"the reader is down: {one.get('why')}")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:  # as the socket unit does
            listener.bind(str(path))
            listener.listen(8)
            reader = start(rig.BINARY, listener)
            try:
                code, found = until(lambda found: not source(found, "nvme"), *where)
                check.equal((code, source(found, "nvme")), (says(found), {}), f"gone once it was started: {[*found]}")
            finally:
                os.kill(reader, signal.SIGKILL)
                os.waitpid(reader, 0)


def history_down(check, daemon, words, change):
    """It names the reason, and the change that fixes it."""
    where = ("--address", f"127.0.0.1:{daemon.port}")
    code, found = until(lambda found: words in source(found, "history").get("why", ""), *where)
    one = source(found, "history")
    check.that(code == 1 and words in one.get("why", "") and change in one["change"],
               f"no history: {one.get('why')}, expected: {words}; change: {one.get('change')}")


def history_up(check, daemon, directory, what):
    code, found = until(lambda found: not source(found, "history"), "--address", f"127.0.0.1:{daemon.port}", seconds=RETRIED)
    check.equal((code, source(found, "history")), (says(found), {}), f"gone: {what}")
    check.that((directory / "ssdpulse.db").exists(), "and there is a history")


def history_missing(check, state, disk):
    directory = state / "parent/history"
    options = [f"--history.directory={directory}"]
    with rig.daemon(state, [disk], options=options) as daemon:
        history_down(check, daemon, "No such file or directory", "create it and restart the daemon")
    directory.mkdir(parents=True)
    with rig.daemon(state, [disk], options=options) as daemon:
        history_up(check, daemon, directory, "the directory was made")


def history_full(check, state, disk):
    """Reported by a daemon that is up, and by doctor before there is a daemon."""
    with rig.tmpfs(state, "24M") as memory:
        directory, ballast = memory / "history", memory / "ballast"
        directory.mkdir()
        subprocess.run(["dd", "if=/dev/zero", f"of={ballast}", "bs=64k"], stderr=subprocess.DEVNULL, check=False)
        config = state / "full.yaml"
        config.write_text(f"history:\n  directory: {directory}\n  size: 16MiB\n")
        asked = ("-c", config, "--address", "127.0.0.1:1")
        one = doctor(*asked)[1].get(("history-directory", ""), {})
        check.that(one.get("verdict") == "advise" and " 0 B free" in one["why"] and one["change"].startswith("make room there"),
                   f"no daemon, and no room for its history: {one.get('why')}")
        with rig.daemon(state, [disk], options=[f"--history.directory={directory}"]) as daemon:
            history_down(check, daemon, "full", "make room")
            ballast.unlink()
            history_up(check, daemon, directory, "room was made")
        check.that(("history-directory", "") not in doctor(*asked)[1], "and whoever asks without one finds room")


def capabilities(check):
    """Root without one of the capabilities that load programs, and no daemon (CAP_SYS_ADMIN, 21, includes both)."""
    key, nobody = ("capabilities", ""), ("--address", "127.0.0.1:1")
    for name, number in (("CAP_BPF", 39), ("CAP_PERFMON", 38)):
        found = doctor(*nobody, prefix=("setpriv", f"--bounding-set=-cap_21,-cap_{number}"))[1]
        one = found.get(key, {})
        check.that(one.get("verdict") == "unknown" and f"lacks {name}," in one["why"] and "root" in one["change"],
                   f"without {name}: {one.get('why')}")
    one = doctor(*nobody, prefix=("setpriv", "--bounding-set=-cap_21"))[1].get(key, {})
    check.equal((one.get("verdict"), one.get("why")), ("info", "CAP_SYS_ADMIN is missing"), "with both, but for log pages")
    check.that(key not in doctor(*nobody)[1], "gone for whoever has all")


def no_daemon(check, state):
    config = state / "doctor.yaml"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        config.write_text(f"web:\n  listen_address: 127.0.0.1:{port}\nhistory:\n  directory: {config}\n"
                          f"nvme:\n  reader_socket: {state}/none\n")
        code, found = doctor("-c", config, "--address", "127.0.0.1:1")
        check.that(code == 1 and str(port) in found[("port", "")]["found"], f"port {port} is taken")
        check.equal(found[("history-directory", "")]["verdict"], "advise", "a history that is no directory")
        check.equal(found[("reader-socket", "")]["verdict"], "advise", "a reader's socket that is not there")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as reader:
        reader.bind(f"{state}/none")
        config.write_text(config.read_text().replace(f"directory: {config}", f"directory: {state}"))
        found = doctor("-c", config, "--address", "127.0.0.1:1")[1]
        check.equal([key for key in ("port", "history-directory", "reader-socket") if (key, "") in found], [],
                    "gone once the port is free, a directory is named and the reader's socket is there")
    empty = state / "empty"
    (empty / "sys/kernel").mkdir(parents=True)
    found = doctor("--address", "127.0.0.1:1", "--root", empty)[1]
    check.equal(found[("kernel-btf", "")]["verdict"], "danger", "a kernel without BTF")
    check.equal(subprocess.run([rig.BINARY, "doctor", "--nonsense"], capture_output=True, check=False).returncode, 2,
                "exit status of a wrong command line")


def test(check, state):
    no_daemon(check, state)
    capabilities(check)
    with rig.ram_disks(state, size="64M", filled=False) as [disk]:
        def apart(test):
            own = state / test.__name__
            own.mkdir()
            return lambda: test(check, own, disk)
        # They spend most of their time waiting.
        rig.side_by_side(*map(apart, (running, reader_down, history_missing, history_full)))


rig.main(test)
