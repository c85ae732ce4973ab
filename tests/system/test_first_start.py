#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# alone: it measures how long a start takes
"""Does the daemon measure soon after its start on a busy host, and does no I/O wait for it meanwhile?

The slow part is the kernel's verifier. The number of instructions that it follows is the same on every host, and so is
whether the start waits for anything but a CPU; the seconds that it takes are checked in the long tier, as they depend on
what else the host does.
"""
import os
import re
import time
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

from lib import rig

STARTS = 5 if os.environ.get("SSDPULSE_TEST_LONG") else 3
MOST_SECONDS = 1.0
# In which it neither runs nor waits for a CPU: no mood of the host makes these longer.
MOST_IDLE_SECONDS = 0.5
# A kernel follows some 300,000 to 500,000 per second.
MOST_VERIFIED = 250_000
# An I/O of this load takes a few hundred microseconds, and occasionally as long as the host's scheduler likes.
MOST_WAIT_SECONDS = 0.1


def busy(disk, seed, seconds):
    return rig.Load(rig.fio_command(disk, seed, [{}], rw="randrw", bs="4k", iodepth=8, ioengine="libaio", size="64M",
                                    time_based=None, runtime=seconds))


def longest_seconds(load):
    return max(job[operation]["clat_ns"]["max"] for job in load.jobs() for operation in ("read", "write")) / 1e9


def seconds_until_it_measures(log):
    lines = log.read_text().splitlines()
    measuring = next(line for line in lines if "measuring devices=" in line)
    first, ready = (datetime.fromisoformat(line.split()[0]) for line in (lines[0], measuring))
    return (ready - first).total_seconds()


def busy_seconds(process):
    """In which its main thread, which starts everything, ran or waited for a CPU."""
    ran, waited, _ = Path(f"/proc/{process.pid}/task/{process.pid}/schedstat").read_text().split()
    return (int(ran) + int(waited)) / 1e9


def verified(process):
    """Instructions that the verifier followed in the programs that the daemon holds; 0 before Linux 5.16."""
    count = 0
    for file in Path(f"/proc/{process.pid}/fdinfo").iterdir():
        try:
            info = file.read_text()
        except FileNotFoundError:  # closed since the listing
            continue
        count += sum(map(int, re.findall(r"^verified_insns:\s*(\d+)", info, re.MULTILINE)))
    return count


def test(check, state):
    seed = rig.fresh_seed()
    took, idle, longest, followed = [], [], [], 0
    with ExitStack() as stack:
        [disk] = stack.enter_context(rig.ram_disks(state, size="128M"))
        alone = longest_seconds(busy(disk, seed, 3))
        for _ in range(STARTS):
            load = busy(disk, seed, 3)
            time.sleep(1)
            with rig.daemon(state, [disk]) as daemon:
                took.append(seconds_until_it_measures(daemon.log))
                idle.append(took[-1] - busy_seconds(daemon.process))
                longest.append(longest_seconds(load))
                followed = verified(daemon.process)
    took.sort()
    longest.sort()
    check.figure(f"seconds from its first line until it measures: {took}; longest I/O meanwhile: "
                 f"{[f'{seconds * 1e3:.1f}' for seconds in longest]} ms, without a daemon {alone * 1e3:.1f} ms")
    # The load uses the whole host, as may others: the quickest start is representative. Of the waits, use the median.
    if os.environ.get("SSDPULSE_TEST_LONG"):
        check.that(took[0] < MOST_SECONDS, f"measures after {took[0]:.2f} s")
    check.that(min(idle) < MOST_IDLE_SECONDS, f"seconds in which its start waits for something else than a CPU: {[f'{seconds:.2f}' for seconds in idle]}")
    check.that(0 < followed < MOST_VERIFIED, f"instructions that the verifier followed: {followed}")
    check.that(longest[STARTS // 2] < max(MOST_WAIT_SECONDS, 2 * alone),
               f"the longest I/O while it starts: {longest[STARTS // 2] * 1e3:.1f} ms")


rig.main(test)
