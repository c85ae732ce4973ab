#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout-long: 1500
"""A tenant floods a drive and another's reads slow down: does the spike name the one as heaviest, the other as slowed?

The drive is so slow that the host's load does not matter: a read takes 20 ms, and more than a second if it waits for
the writes. A busy host also delays reads, which would keep a spike open from one flood to the next: so anything below
the floor is not a spike.
"""
import os
import re
import subprocess
import time
from contextlib import contextmanager

from lib import cgroups, rig

ROUNDS, ENOUGH = (20, 19) if rig.LONG else (2, 2)
# Floods less than model::kIncidentGap (10 s) apart are one incident; it is judged that long after its end.
LEARN_SECONDS, FLOOD_SECONDS, QUIET_SECONDS, JUDGED_SECONDS = 20, 5, 15, 60
READ, BITS_PER_SECOND, FLOOR = "20ms", "24M", "500ms"
SPIKE = re.compile(r"latency spike (?:continues )?device=(\S+) operation=read .*?evidence=\"([^\"]*)\"")


def load(cgroup, disk, **options):
    return cgroup.command(rig.fio_command(disk, rig.fresh_seed(), [{}], group_reporting=None, size="128M", time_based=None, **options))


@contextmanager
def reading(cgroup, disk):
    """Reads until the end of the block: on a busy host a round takes longer than planned."""
    command = load(cgroup, disk, rw="randread", bs="4k", ioengine="psync", numjobs=8, rate_iops=5, runtime=86400)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()


def named(evidence, what):
    """The tenants listed in heaviest= or slowed=, most affected first."""
    found = re.search(rf"\b{what}=(\S+)", evidence)
    return [one.rsplit(":", 1)[0] for one in found[1].split(",")] if found else []


def spikes_since(log, start, disk):
    """Heaviest and slowed tenants of each spike of the disk that the log has from there on, once there are any."""
    for _ in range(JUDGED_SECONDS):
        found = [(named(evidence, "heaviest"), named(evidence, "slowed"))
                 for device, evidence in SPIKE.findall(log.read_text()[start:]) if device == disk.name]
        if found:
            return found
        time.sleep(1)
    return []


def test(check, state):
    quiet, noisy = f"/quiet-{os.getpid()}", f"/noisy-{os.getpid()}"
    filters = (["delay", "rate"], f"rdelay={READ}", f"rate={BITS_PER_SECOND}")
    with rig.fuse_disk(state, "128M", *filters) as disk, cgroups.named(quiet, noisy) as [one, other], \
            rig.daemon(state, [disk], settings=f"spikes: {{floor: {FLOOR}}}\n") as daemon:
        reported = []
        with reading(one, disk):
            time.sleep(LEARN_SECONDS)
            for _ in range(ROUNDS):
                before = len(daemon.log.read_text())
                rig.Load(load(other, disk, rw="write", bs="256k", ioengine="libaio", iodepth=16, runtime=FLOOD_SECONDS)).jobs()
                time.sleep(QUIET_SECONDS)
                reported.append(spikes_since(daemon.log, before, disk))
    right = [spikes for spikes in reported if any(heaviest[:1] == [noisy] and slowed[:1] == [quiet] for heaviest, slowed in spikes)]
    check.that(len(right) >= ENOUGH, f"{len(right)} of {ROUNDS}: {noisy} heaviest, {quiet} slowed {[spikes for spikes in reported if spikes not in right][:3]}")


rig.main(test)
