#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Is every I/O attributed to the cgroup that sent it and to the path by which it entered the kernel?

Cgroups, each with its own I/O engine, run at once on a disk and on a file system. Samples are taken under load (in the
long tier, a thousand in each mode), and in each the sums by cgroup, by path and of the device itself must be equal even
though I/Os are lost. Cgroups appear and disappear.

fio reports what each of them did. What no program saw (see README.md) is missing from exactly one cgroup and one path:
all that is missing adds up to what the device's own counts lack compared with diskstats.
"""
import os
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager

from lib import attribution, cgroups, rig, writes
from lib.attribution import BYTES, IOS

MIB = 1 << 20
# name: (fio's options, path of reads, path of writes)
ENGINES = {
    "libaio": ({"ioengine": "libaio", "iodepth": 8}, "libaio", "libaio"),
    "uring": ({"ioengine": "io_uring", "iodepth": 8}, "io_uring", "io_uring"),
    "fixed": ({"ioengine": "io_uring", "iodepth": 8, "fixedbufs": 1}, "io_uring", "io_uring"),
    "sqpoll": ({"ioengine": "io_uring", "iodepth": 8, "sqthread_poll": 1}, "sqpoll", "sqpoll"),
    "sync": ({"ioengine": "psync"}, "sync", "sync"),
    "threads": ({"ioengine": "posixaio", "iodepth": 4}, "sync", "sync"),
    "buffered": ({"ioengine": "psync", "direct": 0, "end_fsync": 1}, "buffered_read", "writeback"),
    "mmap": ({"ioengine": "mmap", "direct": 0, "rw": "randread"}, "buffered_read", "writeback"),
}
# The page cache of a whole disk is written back by any process that syncs any part of it.
ON_A_DISK = {"buffered": {"rw": "randread"}}


def start(disk, cgroup, number, engine, seed, filename, mib):
    # Each has its own part of the disk and accesses each block once: the bytes written are the bytes made dirty.
    options = {"rw": "randrw", "bs": "4k", "size": f"{mib}M", "offset": f"{number * mib}M", "filename": filename,
               **ENGINES[engine][0], **(ON_A_DISK.get(engine, {}) if filename == disk.path else {})}
    command = rig.fio_command(disk, seed, [{}], **options)
    command.remove("--norandommap")
    return rig.Load(cgroup.command(command))


def load(disk, made, seed, filename, mib):
    """{engine: (reads, writes)} by fio."""
    running = {engine: start(disk, cgroup, number, engine, seed + number, filename, mib)
               for number, (engine, cgroup) in enumerate(zip(ENGINES, made))}
    jobs = {engine: one.jobs()[0] for engine, one in running.items()}
    return {engine: [job[way]["total_ios"] for way in ("read", "write")] for engine, job in jobs.items()}


CACHED = ("buffered", "mmap", "buffered_read file", "buffered_read raw")
NEIGHBOURS = 8 * 4096  # a reader through the page cache may find a page already there, or read one more


def accounted(check, name, deficits, unseen):
    """None is short of anything except what nobody saw."""
    exact = [deficit for user, deficit in deficits.items() if user not in CACHED]
    cached = [deficit for user, deficit in deficits.items() if user in CACHED]
    check.that(all(deficit >= 0 for deficit in exact) and sum(exact) <= unseen and
               all(abs(deficit) <= unseen + NEIGHBOURS for deficit in cached),
               f"{name}: all is told, {unseen} not seen; short: {({k: v for k, v in deficits.items() if v})}")


def judge(check, name, disk, before, look, done, made, access):
    """Compares bytes, as the page cache merges its writes."""
    stat = {op: disk.stat_bytes()[op] - before[op] for op in ("read", "write")}
    by_owner = dict(zip(ENGINES, made))
    for number, operation in enumerate(("read", "write")):
        unseen = stat[operation] - look.own[operation][2]
        deficits = {engine: done[engine][number] * 4096 - look.owners[by_owner[engine].id][operation][BYTES]
                    for engine in ENGINES}
        accounted(check, f"{name}, {operation}s by cgroup", deficits, unseen)
        wanted = {}
        for engine in ENGINES:
            if not done[engine][number]:
                continue
            path = f"{ENGINES[engine][1 + number]} {access}"
            wanted[path] = wanted.get(path, 0) + done[engine][number] * 4096
        deficits = {path: size - look.paths[path][operation][BYTES] for path, size in wanted.items()}
        accounted(check, f"{name}, {operation}s by path", deficits, unseen)


def engines(check, disk, seed, filename, access, mode="full", mib=4):
    name = f"{access}, {mode}"
    with ExitStack() as stack:
        made = stack.enter_context(cgroups.cgroups(*ENGINES))
        probe = stack.enter_context(attribution.probe([disk], mode))
        check.equal(probe.features["io_path"], "exact", f"{name}: paths of this kernel")
        probe.look(disk)
        before = disk.stat_bytes()
        with probe.watched(disk) as (disagreements, looks):
            done = load(disk, made, seed, filename, mib)
            rig.run("sync")
            time.sleep(0.2)
        probe.look(disk)
        look = probe.look(disk)
        check.that(not disagreements and not look.disagreement(),
                   f"{name}: sums agree at {len(looks)} looks: {(disagreements + look.disagreement())[:3]}")
        judge(check, name, disk, before, look, done, made, access)
        times = [totals[op][2] for totals in look.paths.values() for op in ("read", "write")]
        check.that(any(times) == (mode == "full"), f"{name}: device time is told in full mode alone: {sum(times)} ns")
        for engine, cgroup in zip(ENGINES, made):
            check.equal(look.seen.get(cgroup.id), [cgroup.parent, cgroup.path.name], f"{name}: name of {engine}")


def file_system(check, state, disk, seed):
    with writes.file_system(state, disk.path, "ext4") as mount:
        file = mount / "file"
        rig.run("fallocate", "-l", 4 * MIB * len(ENGINES), file)
        subprocess.run(["dd", "if=/dev/zero", f"of={file}", "bs=1M", f"count={4 * len(ENGINES)}", "conv=notrunc,fsync"],
                       check=True, capture_output=True)
        rig.run("sync")
        with open(file, "rb") as cached:
            os.posix_fadvise(cached.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        engines(check, disk, seed, str(file), "file")
        with attribution.probe([disk]) as probe:
            for number in range(300):
                (mount / f"f{number}").touch()
            rig.run("sync")
            time.sleep(0.2)
            probe.look(disk)
            look = probe.look(disk)
        paths = look.path_ios("write")
        check.that(paths["journal file"] > 0 and paths["metadata file"] > 0 and not paths["sync raw"],
                   f"ext4, names: {dict(+paths)}")
        check.that(sum(look.commits.values()) > 0, f"ext4, names: commits by cgroup: {look.commits}")
        layers(check, disk, mount, seed)


def layers(check, disk, mount, seed):
    """A loop device that accesses its file directly: on the disk below, the owner is the cgroup that wrote above."""
    with ExitStack() as stack:
        [owner] = stack.enter_context(cgroups.cgroups("above"))
        above = stack.enter_context(rig.loop_disk(mount / "image", "8M", direct=True))
        rig.run("dd", "if=/dev/zero", f"of={above.path}", "bs=1M", "count=8", "oflag=direct", "conv=fsync")
        probe = stack.enter_context(attribution.probe([disk]))
        before = disk.stat_bytes()["write"]
        rig.Load(owner.command(rig.fio_command(above, seed, [{}], rw="randwrite", bs="4k", size="2M"))).jobs()
        time.sleep(0.2)
        probe.look(disk)
        look = probe.look(disk)
        unseen = disk.stat_bytes()["write"] - before - look.own["write"][2]
        for name, have in (("path", look.paths["loop file"]), ("cgroup", look.owners.get(owner.id, look.owners["other"]))):
            short = 2 * MIB - have["write"][BYTES]
            check.that(0 <= short <= unseen, f"below a loop device, by {name}: short of {short} bytes, {unseen} not seen")


def discards(check, disk):
    with ExitStack() as stack:
        [owner] = stack.enter_context(cgroups.cgroups("discards"))
        probe = stack.enter_context(attribution.probe([disk]))
        before = disk.stat_bytes()["discard"]
        subprocess.run(owner.command(["blkdiscard", "--length", str(64 * MIB), disk.path]), check=True)
        time.sleep(0.2)
        probe.look(disk)
        look = probe.look(disk)
        unseen = disk.stat_bytes()["discard"] - before - look.own["discard"][2]
        have = look.owners.get(owner.id, look.owners["other"])["discard"]
        check.that(not look.disagreement() and 0 <= 64 * MIB - have[BYTES] <= unseen and have[2] > 0,
                   f"discards of a cgroup: {have}, {unseen} bytes not seen; {look.disagreement()}")


def churn(check, disk, count):
    """css ids are reused again and again, serial numbers never."""
    with ExitStack() as stack:
        probe = stack.enter_context(attribution.probe([disk]))
        [stays] = stack.enter_context(cgroups.cgroups("stays"))
        probe.look(disk)
        before, told, gone, disagreements, most = disk.stat(), set(), [], [], 0

        def read(cgroup):
            subprocess.run(cgroup.command(["dd", f"if={disk.path}", "of=/dev/null", "bs=4k", "count=3", "iflag=direct"]),
                           check=True, capture_output=True)

        for number in range(count):
            cgroup = cgroups.make(f"c{number}")
            read(cgroup)
            told.add(cgroup.id)
            if number % 10 == 0:
                read(stays)
            cgroup.remove()
            gone.append(cgroup.id)
            if number % 20 == 19:
                look = probe.gone(disk, gone)
                disagreements += look.disagreement()
                most = max([most, *(totals["read"][IOS] for owner, totals in look.owners.items() if owner in told)])
        check.that(not disagreements, f"churn: the sums agree: {disagreements[:3]}")
        check.that(most <= 3, f"churn: nobody has another's: {most} reads at most")
        for _ in range(6):
            look = probe.gone(disk, gone)
        unseen = disk.stat()["read"] - before["read"] - sum(look.own["read"][:2])
        check.equal(look.owners["other"]["read"][IOS], 0, "churn: reads without room")
        check.that(0 <= 3 * count - look.owners["departed"]["read"][IOS] <= unseen,
                   f"churn: departed {look.owners['departed']['read'][IOS]} of {3 * count}, {unseen} not seen")
        check.that(0 <= 3 * len(range(0, count, 10)) - look.owners[stays.id]["read"][IOS] <= unseen,
                   f"churn: who stays: {look.owners[stays.id]['read'][IOS]}")
        check.that(not set(gone) & set(look.seen), f"churn: names are forgotten: {len(look.seen)} are left")


@contextmanager
def crowd(disk, number):
    """A deep queue, and `number` cgroups that each read and write one block after the other, until the end."""
    names = [f"m{one}" for one in range(number)]
    copy = ["dd", f"if={disk.path}", f"of={disk.path}", "bs=4k", "iflag=direct", "oflag=direct", "conv=notrunc", "count=4000000"]
    fio = rig.fio_command(disk, 1, [{}], ioengine="libaio", rw="randrw", bs="4k", iodepth=64, time_based=None, runtime=3600)
    with cgroups.cgroups(*names) as made:
        running = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                   for command in (fio, *(one.command(copy) for one in made))]
        try:
            yield
        finally:
            for process in running:
                process.terminate()
            for process in running:
                process.wait()


def losses(check, disk, mode):
    """The sums agree in each sample under load while everything is lost that can be: programs attach while requests are
    in flight (more often, if none was), there are more cgroups than cells, and at times the kernel keeps no times."""
    starts, looks, tenants = (20, 50, 60) if rig.LONG else (2, 10, 60)
    wrong, strays, without_cell, ios, started = [], 0, 0, 0, 0
    with crowd(disk, tenants):
        while started < starts or (mode == "full" and not strays and started < starts + 10):
            started += 1
            with attribution.probe([disk], mode, cgroups=1) as probe:
                for number in range(looks):
                    disk.set_queue("iostats", int(number % 4 < 2))
                    look = probe.look(disk)
                    wrong += look.disagreement()
                strays += sum(one[1] for one in look.own.values())
                without_cell += sum(totals[IOS] for totals in look.owners["other"].values())
                ios += sum(sum(one[:2]) for one in look.own.values())
    disk.set_queue("iostats", 1)
    name = f"losses, {mode}"
    check.that(not wrong, f"{name}: sums agree at {started * looks} looks at {ios} I/Os: {wrong[:3]}")
    check.that(without_cell > 0, f"{name}: {without_cell} I/Os without a cell")
    # Completion-only misses no issue, as it sees none.
    check.that((strays > 0) == (mode == "full"), f"{name}: {strays} I/Os whose issue nobody saw")


def test(check, state):
    seed = rig.fresh_seed()
    with rig.ram_disks(state, count=2, size="256M") as [raw, formatted]:
        for disk in (raw, formatted):
            disk.set_queue("read_ahead_kb", 0)
        engines(check, raw, seed, raw.path, "raw")
        engines(check, raw, seed, raw.path, "raw", mode="completion-only", mib=2)
        file_system(check, state, formatted, seed)
        discards(check, raw)
        for mode in ("full", "completion-only"):
            losses(check, raw, mode)
        churn(check, raw, 1000 if rig.LONG else 100)


if __name__ == "__main__":
    sys.exit(rig.main(test))
