#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Does `ssdpulse report -- COMMAND...` measure before, during and after a command, and leave the command as it is?

The wall clock of the daemon and of the report runs 60 times as fast as the host's: a minute of the history is a second. What the
disk did while the command ran is counted by the command itself: it is the only one that writes.
"""
import json
import os
import signal
import subprocess
import time
from pathlib import Path

from lib import rig

SCALE = 60
SOURCE = Path(os.environ["SSDPULSE_SOURCE"]) / "tests/vm/lib/fast_clock.c"
# A daemon that the host holds up for a moment closes a minute (here a second) late, with what the command wrote until then: the
# command waits longer than that before and after its writes.
WRITES = "sleep 2; for i in $(seq 400); do dd if=/dev/zero of=$0 bs=4k count=8 oflag=direct conv=notrunc status=none; done; sleep 2;" \
         " echo done; exit 3"


def fast_clock(state):
    library = state / "libfast_clock.so"
    subprocess.run(["cc", "-D_GNU_SOURCE", "-O1", "-shared", "-fPIC", SOURCE, "-o", library], check=True)
    return {"LD_PRELOAD": str(library), "SSDPULSE_TIME_SCALE": str(SCALE), "SSDPULSE_TIME_SCALE_FROM": str(int(time.time()))}


def words(state, *options):
    return [str(rig.BINARY), "report", "-c", str(state / "config.yaml"), "--time-scale", str(SCALE), *options]


def report(state, *options):
    return subprocess.run(words(state, *options), capture_output=True, text=True, check=False, timeout=240)


def measured(check, state, disk):
    run = report(state, "--json", "--device", disk.name, "--", "sh", "-c", WRITES, disk.path)
    check.equal(run.returncode, 3, f"the command's exit status: {run.stderr.strip()[-300:]}")
    check.that(run.stderr.startswith("done\n"), "with --json, its output is not in the report")
    device = json.loads(run.stdout)["devices"][0]
    before, during, after = device["before"], device["during"]["after"], device["after"]
    check.that(before["to"] == during["from"] and during["to"] == after["from"], f"{before}, {during} and {after} touch")
    check.that(after["to"] - after["from"] == before["to"] - before["from"] >= 180, "as long before as after, three minutes at least")
    written = {row["id"]: row for row in device["during"]["load"]}["write.ios"]
    limit = written["after"] / 10
    check.that(written["after"] > 20 and written["before"] < limit, f"its writes were measured while it ran, and not before: {written}")
    check.that(all(row["after"] < limit for row in device["load"] if row["id"] == "write.ios"), "nor after it")
    check.that("command" in [note["id"] for note in device["notes"]], "that it is a command's")


def interrupted(check, state):
    """Signals are passed on; what was measured so far is reported."""
    for number, script, status in ((signal.SIGTERM, "trap 'exit 9' TERM; echo ready; while :; do sleep 0.1; done", 9),
                                   (signal.SIGINT, "echo ready; exec sleep 60", 128 + signal.SIGINT)):
        process = subprocess.Popen(words(state, "--width", "1m", "--", "bash", "-c", script), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        check.equal(process.stdout.readline(), "ready\n", "the command's output is its own")
        time.sleep(1.5)
        process.send_signal(number)
        out, err = process.communicate(timeout=120)
        check.equal(process.returncode, status, f"{number.name} reaches the command: {err.strip()[-200:]}")
        check.that("While it ran" in out or "Nothing" in out, f"and there is a report:\n{out}")


def refused(check, state):
    for status, what, command in ((127, "not found", ["no-such-program"]), (126, "not executable", ["/etc/passwd"])):
        run = report(state, "--", *command)
        check.equal(run.returncode, status, f"{what}: {run.stderr.strip()[-200:]}")
        check.that(command[0] in run.stderr and not run.stdout, "and says so")
    for what, options in (("a window and a command", ("--last", "1h")), ("no duration", ("--width", "soon"))):
        run = report(state, *options, "--", "true")
        check.equal(run.returncode, 2, f"{what}: {run.stderr.strip()[-200:]}")


def test(check, state):
    os.environ.update(fast_clock(state))
    with rig.ram_disks(state, size="64M") as disks:
        disk = disks[0]
        with rig.daemon(state, [disk]):
            reads = f"while :; do dd if={disk.path} of=/dev/null bs=4k count=64 iflag=direct status=none; sleep 0.05; done"
            with subprocess.Popen(["bash", "-c", reads]) as reader:
                try:
                    time.sleep(5)
                    measured(check, state, disk)
                    interrupted(check, state)
                    refused(check, state)
                finally:
                    reader.kill()
        marker = state / "ran"
        run = report(state, "--", "touch", str(marker))
        check.equal(run.returncode, 125, "without a daemon there is no report")
        check.that("systemctl start ssdpulse" in run.stderr and not marker.exists(), f"and the command does not run: {run.stderr.strip()}")


rig.main(test)
