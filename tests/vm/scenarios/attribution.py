# SPDX-License-Identifier: Apache-2.0
"""Each I/O is reported under the cgroup that sent it and the path by which it came, on the device and on file systems.

Six engines at once, each in a cgroup of its own; oracles are fio and the io controller's own counts (io.stat).
"""
from collections import Counter

import owners
from devices import Backend, Nvme
from lib.attribution import BYTES, IOS
from owners import Probe

KERNELS_IN_CI = ("5.10",)  # kernel.test_attribution judges a newer one; the long form has all
SHARES_GUEST = True
MIB, OF_THE_FILE_SYSTEM = 2, 64 << 10
# cgroup: (fio's options, path of reads, path of writes); before 6.2 the engine of direct I/O is not known
ENGINES = {
    "libaio": ("--ioengine=libaio --iodepth=4", "libaio", "libaio"),
    "uring": ("--ioengine=io_uring --iodepth=4", "io_uring", "io_uring"),
    "sqpoll": ("--ioengine=io_uring --iodepth=4 --sqthread_poll=1", "sqpoll", "sqpoll"),
    "sync": ("--ioengine=psync", "sync", "sync"),
    "buffered": ("--ioengine=psync --direct=0 --end_fsync=1", "buffered_read", "writeback"),
    "mmap": ("--ioengine=mmap --direct=0", "buffered_read", "writeback"),
}
MAKE = {"ext4": "mke2fs -q -F -t ext4 -E nodiscard,lazy_itable_init=0,lazy_journal_init=0", "xfs": "mkfs.xfs -q -f -K"}
ENGINE_UNKNOWN = ("5.10", "6.1")
STAT_COUNTS_TWICE = ("5.10",)  # each I/O, but not its bytes
MORE_THAN_FIO_KNOWS = ("buffered_read raw read", "other file read")  # on a disk
ROUNDS = 4
ONCE_MORE = 8 * 4096  # a read through the page cache may find that a page has gone


def devices():
    return [Nvme("owned", Backend("512M", data=True))]


def load(vm, node=None):
    """{cgroup: [(I/Os, bytes) read, written]} by fio, on the disk, or each on a file of its own: dirty pages there
    have an owner."""
    jobs = {}
    for number, (group, (options, _, _)) in enumerate(ENGINES.items()):
        # A fault dirties a whole folio, which fio does not know; a disk's page cache may be written back by anybody.
        kind = "randread" if group == "mmap" or (node and group == "buffered") else "randrw"
        jobs[group] = (options, f"{node} --offset={number * MIB}M" if node else f"/mnt/a/{group}", kind)
    done = owners.fio_at_once(vm, jobs, MIB)
    vm.sh("sync")
    return done


def expected_path(vm, group, number, access):
    path = ENGINES[group][1 + number]
    if group == "mmap" and access == "raw" and vm.name in ENGINE_UNKNOWN:
        return "other file"  # by a buffer, from which nothing can be traced there
    engine = path in ("libaio", "io_uring", "sqpoll") or (path == "sync" and access == "file")
    return f"{'direct' if engine and vm.name in ENGINE_UNKNOWN else path} {access}"


def since(before, after):
    return {group: [tuple(b - a for a, b in zip(*ways)) for ways in zip(before[group], after[group])] for group in before}


def judge_by_kernel(vm, check, what, look, stat, ids, access):
    """By io.stat: bytes, and, where no file system sends flushes (which io.stat counts as writes), I/Os."""
    for number, operation in enumerate(("read", "write")):
        have = {group: look.owners.get(ids[group], {}).get(operation, [0, 0, 0]) for group in ENGINES}
        check.equal({group: totals[BYTES] for group, totals in have.items()},
                    {group: both[number][1] for group, both in stat.items()}, f"{what}: bytes of {operation}s by io.stat")
        if access == "raw":
            times = 2 if vm.name in STAT_COUNTS_TWICE else 1
            check.equal({group: times * totals[IOS] for group, totals in have.items()},
                        {group: both[number][0] for group, both in stat.items()},
                        f"{what}: {operation}s by io.stat")


def judge(vm, check, what, look, done, ids, access):
    check.equal(look.disagreement(), [], f"{what}: the sums agree")
    wanted = Counter()
    for number, operation in enumerate(("read", "write")):
        for group, sizes in done.items():
            ios, size = sizes[number]
            totals = look.owners.get(ids[group], {}).get(operation, [0, 0, 0])
            have = totals[BYTES]
            cached = ENGINES[group][1] == "buffered_read"
            # The page cache writes back several pages at once, and a file system does reads of its own.
            more = cached or (access == "file" and number == 0)
            check.that(totals[IOS] == ios or (more and totals[IOS] > ios) or (cached and number == 1),
                       f"{what}: {operation}s of {group}: {totals[IOS]}, by fio {ios}")
            # What a file system itself reads or logs because a process waits for it is charged to that process.
            most = size + (OF_THE_FILE_SYSTEM if access == "file" else ONCE_MORE if cached else 0)
            check.that(size <= have <= most, f"{what}: bytes of {operation}s of {group}: {have}, by fio {size}")
            wanted[f"{expected_path(vm, group, number, access)} {operation}"] += size
    have = {f"{path} {operation}": totals[operation][BYTES] for path, totals in look.paths.items()
            for operation in ("read", "write") if totals[operation][BYTES]}
    print(f"TABLE {what}: {have}")
    short = {key: (have.get(key, 0), size) for key, size in wanted.items()
             if not size <= have.get(key, 0) <= size + (ONCE_MORE if access == "raw" and key in MORE_THAN_FIO_KNOWS else 0)}
    check.equal(short, {}, f"{what}: bytes by path that are not as fio says")


def lacks(look, done, stat, ids):
    """Bytes that fio has done or the kernel has counted (a page that was read again, too), and the reading has not."""
    return sum(max(0, max(sizes[number][1], stat[group][number][1]) -
                   look.owners.get(ids[group], {}).get(operation, [0, 0, 0])[BYTES])
               for group, sizes in done.items() for number, operation in enumerate(("read", "write")))


def observed(vm, check, what, disk, ids, node=None):
    """(reading, fio's figures, io.stat's) of a load. The kernel does not nest runs of a program, on an interrupt that
    ends another I/O, and counts what it skips; an emulated guest is slow enough for that to happen. If it can be why
    something is missing, the load is repeated."""
    for left in reversed(range(ROUNDS)):
        probe = Probe(vm, [disk])
        check.figure(f"{what}: {probe.features}")
        before = owners.io_stat(vm, ENGINES, disk)
        done = load(vm, node)
        look = probe.looks()[disk]
        stat = since(before, owners.io_stat(vm, ENGINES, disk))
        probe.end()
        lacking = lacks(look, done, stat, ids)
        if not (look.skipped["on_complete"] and lacking and left):
            return look, done, stat
        print(f"AGAIN {vm.name} attribution: {what}: {lacking} bytes are lacking; runs that the kernel skipped: {look.skipped}")


def run(vm, check):
    disk = vm.disk("owned")
    node = f"/dev/{disk}"
    vm.sh("for module in ext4 xfs; do modprobe -q $module; done; true")
    ids = owners.make_groups(vm, ENGINES)
    # The path's queue, too, where the disk is a multipath head.
    vm.sh(f"for queue in /sys/block/nvme*/queue; do echo 2 >$queue/nomerges; done; echo 0 >/sys/block/{disk}/queue/read_ahead_kb")
    look, done, stat = observed(vm, check, "device", disk, ids, node)
    judge(vm, check, "device", look, done, ids, "raw")
    judge_by_kernel(vm, check, "device", look, stat, ids, "raw")
    check.equal({group: look.seen.get(ids[group], [0, ""])[1] for group in ENGINES}, {group: group for group in ENGINES},
                "names")
    for fstype, make in MAKE.items():
        vm.sh(f"{make} {node} && mkdir -p /mnt/a && mount {node} /mnt/a && "
              + "; ".join(f"dd if=/dev/zero of=/mnt/a/{group} bs=1M count={MIB} conv=fsync" for group in ENGINES)
              + "; sync; echo 3 >/proc/sys/vm/drop_caches")
        look, done, stat = observed(vm, check, fstype, disk, ids)
        judge(vm, check, fstype, look, done, ids, "file")
        judge_by_kernel(vm, check, fstype, look, stat, ids, "file")
        vm.sh("umount /mnt/a")
    owners.remove_groups(vm)
