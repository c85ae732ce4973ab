#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
"""Does `ssdpulse doctor` name each trouble with what fixes it, and is it gone once that was done, word by word?"""
import socket
import subprocess
import time

from doctor import doctor, until
from lib import rig


def missing(found):
    """What could be measured and is not, but for single I/Os: the host's mood decides whether some were lost."""
    return {key: one for key, one in found.items() if one["verdict"] != "info" and one["id"] != "lost-ios"}


def says(found):
    """The exit status that goes with these findings."""
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


def reader_down(check, state, disk):
    sock = state / "no.sock"
    with rig.daemon(state, [disk], options=[f"--nvme.reader-socket={sock}"]) as daemon:
        where = ("--address", f"127.0.0.1:{daemon.port}")
        # Shortly after the start the history may still be opening, and nobody has tried to reach the reader.
        code, found = until(lambda found: "nvme" in found.get(("sources", ""), {}).get("found", ""), *where)
        one = found.get(("sources", ""), {})
        check.that(code == 1 and "nvme" in one.get("found", "") and "ssdpulse-nvme.socket" in one["change"],
                   f"the reader is down: {one.get('why')}")


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
    check.that(("port", "") not in doctor("-c", config, "--address", "127.0.0.1:1")[1], "the port is free again")
    empty = state / "empty"
    (empty / "sys/kernel").mkdir(parents=True)
    found = doctor("--address", "127.0.0.1:1", "--root", empty)[1]
    check.equal(found[("kernel-btf", "")]["verdict"], "danger", "a kernel without BTF")
    check.equal(subprocess.run([rig.BINARY, "doctor", "--nonsense"], capture_output=True, check=False).returncode, 2,
                "exit status of a wrong command line")


def test(check, state):
    no_daemon(check, state)
    with rig.ram_disks(state, size="64M", filled=False) as [disk]:
        running(check, state, disk)
        reader_down(check, state, disk)


rig.main(test)
