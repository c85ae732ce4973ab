# SPDX-License-Identifier: Apache-2.0
"""Each I/O is told under the cgroup that sent it and the path by which it came, on the device and on file systems."""
from collections import Counter

import owners
from devices import Backend, Nvme
from lib.attribution import BYTES
from owners import Probe

SHARES_GUEST = True
MIB, OF_THE_FILE_SYSTEM = 2, 64 << 10
# cgroup: (fio's options, path of reads, path of writes); before 6.2 direct I/O is of no known engine
ENGINES = {
    "libaio": ("--ioengine=libaio --iodepth=4", "libaio", "libaio"),
    "uring": ("--ioengine=io_uring --iodepth=4", "io_uring", "io_uring"),
    "sqpoll": ("--ioengine=io_uring --iodepth=4 --sqthread_poll=1", "sqpoll", "sqpoll"),
    "sync": ("--ioengine=psync", "sync", "sync"),
    "buffered": ("--ioengine=psync --direct=0 --end_fsync=1", "buffered_read", "writeback"),
}
MAKE = {"ext4": "mke2fs -q -F -t ext4 -E nodiscard,lazy_itable_init=0,lazy_journal_init=0", "xfs": "mkfs.xfs -q -f -K"}
ENGINE_UNKNOWN = ("5.10", "6.1")


def devices():
    return [Nvme("owned", Backend("512M", data=True))]


def load(vm, node=None):
    """{cgroup: [bytes read, written]} by fio, on the disk, or each on a file of its own: what is dirty there has an owner."""
    done = {}
    for number, (group, (options, _, _)) in enumerate(ENGINES.items()):
        kind = "randread" if node and group == "buffered" else "randrw"
        place = f"{node} --offset={number * MIB}M" if node else f"/mnt/a/{group}"
        done[group] = owners.fio(vm, group, options, place, kind, MIB)
    vm.sh("sync")
    return done


def expected_path(vm, group, number, access):
    path = ENGINES[group][1 + number]
    engine = path in ("libaio", "io_uring", "sqpoll") or (path == "sync" and access == "file")
    return "direct" if engine and vm.name in ENGINE_UNKNOWN else path


def judge(vm, check, what, look, done, ids, access):
    check.equal(look.disagreement(), [], f"{what}: the sums agree")
    wanted = Counter()
    for number, operation in enumerate(("read", "write")):
        for group, sizes in done.items():
            size = sizes[number]
            have = look.owners.get(ids[group], {}).get(operation, [0, 0, 0])[BYTES]
            # What a file system reads of its own, or logs, because somebody waits for it is charged to him.
            check.that(size <= have <= size + (OF_THE_FILE_SYSTEM if access == "file" else 0), f"{what}: bytes of {operation}s of {group}: {have}, by fio {size}")
            wanted[f"{expected_path(vm, group, number, access)} {access} {operation}"] += size
    have = {f"{path} {operation}": totals[operation][BYTES] for path, totals in look.paths.items()
            for operation in ("read", "write") if totals[operation][BYTES]}
    print(f"TABLE {what}: {have}")
    short = {key: (have.get(key, 0), size) for key, size in wanted.items() if have.get(key, 0) != size}
    check.equal(short, {}, f"{what}: bytes by path that are not as fio says")


def run(vm, check):
    disk = vm.disk("owned")
    node = f"/dev/{disk}"
    vm.sh("for module in ext4 xfs; do modprobe -q $module; done; true")
    ids = owners.make_groups(vm, ENGINES)
    vm.sh(f"echo 2 >/sys/block/{disk}/queue/nomerges; echo 0 >/sys/block/{disk}/queue/read_ahead_kb")
    probe = Probe(vm, [disk])
    check.figure(f"{probe.features}")
    done = load(vm, node)
    look = probe.looks()[disk]
    judge(vm, check, "device", look, done, ids, "raw")
    check.equal({group: look.seen.get(ids[group], [0, ""])[1] for group in ENGINES}, {group: group for group in ENGINES},
                "names")
    probe.end()
    for fstype, make in MAKE.items():
        vm.sh(f"{make} {node} && mkdir -p /mnt/a && mount {node} /mnt/a && "
              + "; ".join(f"dd if=/dev/zero of=/mnt/a/{group} bs=1M count={MIB} conv=fsync" for group in ENGINES)
              + "; sync; echo 3 >/proc/sys/vm/drop_caches")
        probe = Probe(vm, [disk])
        done = load(vm)
        judge(vm, check, fstype, probe.looks()[disk], done, ids, "file")
        probe.end()
        vm.sh("umount /mnt/a")
    owners.remove_groups(vm)
