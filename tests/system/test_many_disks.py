#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Do the log, a metric and the doctor say that there are more disks than the tables in the kernel have places for?"""
import json
import re
import signal

from doctor import until
from lib import rig

ROOM = 5  # of a daemon that began with one disk
DISKS = 8


def measure(daemon, state, disks):
    """Reloads the configuration with these disks."""
    config = state / "config.yaml"
    names = json.dumps([disk.name for disk in disks])
    config.write_text(re.sub(r"include: \[.*?\]", f"include: {names}", config.read_text()))
    daemon.process.send_signal(signal.SIGHUP)


def run(check, state):
    with rig.ram_disks(state, DISKS, "16M", filled=False) as disks, rig.daemon(state, disks[:1]) as daemon:
        where = ("--address", f"127.0.0.1:{daemon.port}")
        measure(daemon, state, disks)
        found = until(lambda found: any(key[0] == "device-places" for key in found), *where)[1]
        said = [key[2] for key in found if key[0] == "device-places"]
        check.that(any(re.fullmatch(rf"{DISKS - ROOM} of {DISKS} devices are not measured: loop\d+(, loop\d+){{{DISKS - ROOM - 1}}}",
                                    text) for text in said), f"doctor: {said}")
        check.equal(daemon.scrape().value("ssdpulse_devices_left_out"), DISKS - ROOM, "the metric")
        daemon.after_ticks(2)
        lines = [line for line in daemon.log.read_text().splitlines() if "devices_left_out=" in line]
        check.that(len(lines) == 1 and f"devices={ROOM} are measured and devices_left_out={DISKS - ROOM} are not" in lines[0],
                   f"one line: {lines}")
        measure(daemon, state, disks[:2])
        found = until(lambda found: not any(key[0] == "device-places" for key in found), *where)[1]
        check.that(not any(key[0] == "device-places" for key in found), "and nothing is missing once there are fewer")


rig.main(run)
