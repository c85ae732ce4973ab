#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# alone: it counts the I/O of every loop device of the host
# timeout: 240
"""Do disks that appear and disappear leave anything behind, and are they measured while they are there?

A steady disk is under load throughout. Meanwhile other disks are attached and detached: every second batch lives until
it has been seen and measured, the others are removed at once. Diskstats show how many I/Os a disk had. The daemon must
report whatever it did not count: as pending or lost, or as in flight if the kernel skipped the program run for the end.
"""
import mmap
import os
import signal
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import host
from lib import compare, metrics, rig

CHURNS = 500 if rig.LONG else 30
BATCH = 3  # fewer than the spare places that the daemon keeps for new disks
WARM_UP = 12  # churns before memory and descriptors are compared
MOST_LOST = 4  # I/Os of a batch for which the kernel may not have run a program
EARLY, LATE = 5, 40  # I/Os right after the attach, and once the disk is known
GONE_SECONDS = 3
MORE_MEMORY = 1 << 20
ZERO = {"read": 0, "write": 0}


class SteadyLoad(rig.Load):
    def end(self):
        """Lets fio finish what is in flight; returns its job."""
        self._process.send_signal(signal.SIGINT)
        return self.jobs()[0]


@contextmanager
def steady_load(disk, seed):
    load = SteadyLoad(rig.fio_command(disk, seed, [{}], rw="randrw", bs="4k", iodepth=4, ioengine="libaio", size="64M",
                                      rate_iops=2000, time_based=None, runtime=36000), may_fail=True)
    try:
        yield load
    finally:
        if load._process.poll() is None:
            load._process.kill()


def all_stats():
    """{name: I/Os so far}: a loop device keeps its counts through a detach."""
    return {path.parent.name: rig.Disk(path.parent.name, path).stat() for path in Path("/sys/block").glob("loop*/stat")}


def some_io(disk, ios):
    """This many direct reads and writes, alternating."""
    buffer = mmap.mmap(-1, 4096)
    fd = os.open(disk.path, os.O_RDWR | os.O_DIRECT)
    try:
        for number in range(ios):
            (os.preadv if number % 2 else os.pwritev)(fd, [buffer], number * 4096)
    finally:
        os.close(fd)
        buffer.close()


def counted(scrape, disk):
    return sum(scrape.histogram(compare.TOTAL, device=disk.name, operation=operation).count for operation in ZERO)


def pending(scrape):
    return scrape.value("ssdpulse_lost_events_total", cause="device_pending")


def told(scrape, disk):
    """I/Os of a disk at rest that the daemon reports as not being in its histograms."""
    return sum(scrape.value(name, device=disk.name) or 0
               for name in ("ssdpulse_lost_events_total", "ssdpulse_io_in_flight"))


def await_ticks(daemon, condition, seconds=4):
    """The first scrape for which the condition holds, or the last one."""
    deadline = time.monotonic() + seconds
    while True:
        scrape = daemon.scrape()
        if condition(scrape) or time.monotonic() > deadline:
            return scrape
        time.sleep(0.1)


@contextmanager
def blind(daemon, wanted):
    """The daemon is not running: disks attached meanwhile have I/O before they are known."""
    if wanted:
        daemon.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        daemon.process.send_signal(signal.SIGCONT)


def living_batch(daemon, files, early):
    """Attach, I/O at once, wait until known, I/O, detach. Returns what was wrong, the missed I/Os, and the names."""
    wrong, before, stats = [], daemon.at_rest(1.2), all_stats()
    with ExitStack() as stack:
        with blind(daemon, early):
            disks = [stack.enter_context(rig.loop_disk(file)) for file in files]
            for disk in disks:
                some_io(disk, EARLY)
        known = await_ticks(daemon, lambda scrape: all(scrape.series("ssdpulse_device_info", device=disk.name) and
                                                       scrape.series("ssdpulse_io_in_flight", device=disk.name)
                                                       for disk in disks))
        start = {disk.name: counted(known, disk) for disk in disks}
        for disk in disks:
            some_io(disk, LATE)
        truth = {}
        for disk in disks:
            now, past = disk.stat(), stats.get(disk.name, ZERO)
            truth[disk.name] = sum(now[operation] - past[operation] for operation in ZERO)
        after = await_ticks(daemon, lambda scrape: all(counted(scrape, disk) >= start[disk.name] + LATE
                                                       for disk in disks))
        missed, lost = 0, 0
        for disk in disks:
            have, unmeasured = counted(after, disk), told(after, disk)
            missed, lost = missed + truth[disk.name] - have, lost + unmeasured
            if not start[disk.name] + LATE - unmeasured <= have <= truth[disk.name]:
                wrong.append(f"{disk.name}: {have} I/Os counted, {start[disk.name]} of them early, {unmeasured:.0f} told "
                             f"as not measured, diskstats {truth[disk.name]}")
    more = pending(after) - pending(before)
    if not more <= missed <= more + lost or lost > MOST_LOST or (early and missed < EARLY * len(disks)):
        wrong.append(f"{missed} I/Os missed, {more:.0f} counted as pending, {lost:.0f} as lost or never ended")
    return wrong, missed, [disk.name for disk in disks]


def fleeting_batch(files):
    with ExitStack() as stack:
        for file in files:
            some_io(stack.enter_context(rig.loop_disk(file)), EARLY)


def still_there(daemon, names):
    scrape = daemon.scrape()
    return {dict(labels).get("device") for _, labels in [*scrape.values, *scrape.histograms]} & set(names)


def footprint(daemon):
    time.sleep(rig.SETTLE_SECONDS)
    return host.rss_anon(daemon.process.pid), host.open_fds(daemon.process.pid)


def churn(check, daemon, files):
    """Returns the footprint after the warm-up."""
    wrong, lingering, missed, lived, warm = [], set(), 0, 0, None
    for number in range(0, CHURNS, BATCH):
        if number >= WARM_UP and warm is None:
            warm = footprint(daemon)
        if number // BATCH % 2:
            fleeting_batch(files)
            continue
        faults, more, names = living_batch(daemon, files, early=number // BATCH % 4 == 0)
        wrong, missed, lived = wrong + faults, missed + more, lived + len(names)
        if number // BATCH % 6 == 0:
            time.sleep(GONE_SECONDS)
            lingering |= still_there(daemon, names)
    check.that(lived and not wrong, f"{lived} disks that lived, known and counted exactly but for the {missed} I/Os "
                                    f"that came before and are counted as pending {wrong}")
    check.equal(lingering, set(), f"series of disks that went {GONE_SECONDS} s ago")
    return warm


def test(check, state):
    seed = rig.fresh_seed()
    with rig.tmpfs(state, "90%") as memory, rig.ram_disks(state, size="64M") as [steady]:
        files = [memory / f"churned{number}" for number in range(BATCH)]
        for file in files:
            rig.run("fallocate", "-l", "4M", file)
        with rig.daemon(state, [steady], include=("loop*",)) as daemon:
            before, stat = daemon.at_rest(1.2), steady.stat()
            with steady_load(steady, seed) as load:
                memory_before, fds_before = churn(check, daemon, files)
                memory_after, fds_after = footprint(daemon)
                job = load.end()
            difference = metrics.Difference(before, daemon.at_rest())
            check.figure(f"{CHURNS} churns: RssAnon {memory_before >> 10} to {memory_after >> 10} KiB, {fds_before} to "
                         f"{fds_after} descriptors")
            check.that(memory_after <= memory_before + MORE_MEMORY, f"memory grew by less than {MORE_MEMORY >> 10} KiB")
            check.that(fds_after <= fds_before, f"descriptors: {fds_after}")
            for cause in ("device_table_full", "queue_id_range"):
                check.equal(difference.after.value("ssdpulse_lost_events_total", cause=cause), 0, cause)
            lost = sum(difference.value("ssdpulse_lost_events_total", device=steady.name, cause=cause)
                       for cause in ("completion_missed", "slot_collision"))
            now = steady.stat()
            truth = {operation: job[operation]["total_ios"] for operation in ZERO}
            check.equal({operation: now[operation] - stat[operation] for operation in ZERO}, truth,
                        "fio and diskstats agree")
            have = difference.histogram(compare.TOTAL, device=steady.name, operation="read").count \
                + difference.histogram(compare.TOTAL, device=steady.name, operation="write").count
            check.that(have + lost == sum(truth.values()) and lost <= sum(truth.values()) * 1e-2,
                       f"steady disk: {have} I/Os counted, {sum(truth.values())} by fio, {lost:.0f} counted as lost")
            compare.at_rest(check, difference.after, steady)


rig.main(test)
