#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Is each commit, which a caller of fsync waits for, counted once with its whole time, whatever stages it goes through?

The caller itself counts its fsyncs; the trace has the time of each. A loop device makes no write durable by itself: a
write that must be durable becomes a flush sequence. A drive that does is in the kernel matrix.
"""
from lib import compare, rig, trace, writes
from lib.observe import observe

CALLERS = 4
FSYNCS = 1_500  # of each caller
DSYNCS = 1_000


def load(cached, uncached, state, seed):
    """Commits of callers that know how many they made, then others; returns fio's report on the former."""
    fsync = {"rw": "randwrite", "ioengine": "psync", "bs": "4k", "size": "64M", "number_ios": FSYNCS, "fsync": 1}
    callers = rig.fio_jobs(cached, seed, [{"offset": f"{64 * number}M"} for number in range(CALLERS)], **fsync)
    rig.fio(uncached, seed, **fsync)
    rig.fio(uncached, seed, **fsync, sync="dsync")
    return callers


def stages(cached, state, seed):
    """Sequences with data, with several stages, and in several pieces; and writes that nobody waits for."""
    for size in ("4k", "4M"):
        rig.fio(cached, seed, rw="randwrite", ioengine="psync", bs=size, size="256M",
                number_ios=DSYNCS if size == "4k" else 20, sync="dsync")
    with writes.file_system(state, cached.path, "ext4") as mount:
        rig.run("fio", "--name=log", f"--directory={mount}", "--rw=write", "--ioengine=psync", "--bs=4k", "--size=4M",
                "--fsync=1")
    rig.fio(cached, seed, rw="randrw", ioengine="io_uring", iodepth=16, bs="4k", size="256M", number_ios=20_000)


def commits_of(difference, disk):
    return difference.histogram(compare.TOTAL, device=disk.name, operation="commit")


def test(check, state):
    seed = rig.fresh_seed()
    with rig.ram_disks(state, count=2, size="512M") as disks:
        cached, uncached = disks
        uncached.set_queue("write_cache", "write through")
        try:
            for mode in ("full", "completion-only"):
                seen = observe(check, state, disks, lambda: load(cached, uncached, state, seed), mode)
                wanted = sum(job["sync"]["total_ios"] for job in seen.result)
                have, traced = commits_of(seen.difference, cached), seen.trace(cached)
                check.that(wanted >= CALLERS * (FSYNCS - 1), f"{mode}: {wanted} fsyncs")
                check.equal(have.count, len(traced.commits), f"{mode}: commits, that take {have.sum:.3f} s")
                check.that(wanted - seen.unseen(cached, "write") <= have.count <= wanted, f"{mode}: commits of the callers")
                waited = sum(job["sync"]["lat_ns"]["mean"] * job["sync"]["total_ios"] for job in seen.result) / 1e9
                check.that(have.sum <= waited, f"{mode}: callers waited for {waited:.3f} s")
                flushes = len(traced.of("flush"))
                check.that(flushes < wanted, f"{mode}: {flushes} flushes, shared by callers at a time")
                check.equal(commits_of(seen.difference, uncached).count, 0, f"{mode}: commits without a write cache")
                seen = observe(check, state, [cached], lambda: stages(cached, state, seed), mode)
                traced = seen.trace(cached)
                check.that(traced.data_stages > DSYNCS, f"{mode}: {len(traced.commits)} commits in the trace, "
                                                        f"{traced.data_stages} of them with data")
                compare.latencies(check, seen.difference, cached, traced.commits, "commit", compare.TOTAL,
                                  trace.total_time)
        finally:
            uncached.set_queue("write_cache", "write back")


rig.main(test)
