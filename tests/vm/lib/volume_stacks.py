# SPDX-License-Identifier: Apache-2.0
"""Volumes of every kind, all at once, each on partitions of its own, so that one load and one scrape judge them all."""
import base64
import json
import shlex
import struct
from collections import Counter

PART = 24 << 11  # sectors of a partition
BUCKET = 32  # sectors; a cache must have more than 512 of them
SIZE = 16 << 11  # of a device-mapper volume: the rest of the partition is for growing
MODULES = ("brd rd_nr=1 rd_size=24576", "dm-mod", "dm-crypt", "dm-thin-pool", "dm-snapshot", "dm-delay", "dm-flakey",
           "linear", "raid0", "raid1", "raid10", "raid456", "bcache", "crypto_null", "ecb")
ODD_NAME = "a b'\"{é"


class Parts:
    """Hands out partitions of the disks in turn: those of one call are on different disks."""

    def __init__(self, vm, disks):
        self._vm, self._disks, self._taken = vm, disks, 0

    def take(self, number):
        """Their paths."""
        paths, script = [], []
        for _ in range(number):
            row, disk = divmod(self._taken, len(self._disks))
            self._taken += 1
            disk = self._disks[disk]
            script.append(f"addpart /dev/{disk} {row + 1} {2048 + row * PART} {PART}")
            paths.append(f"/dev/{disk}p{row + 1}")
        self._vm.sh(" && ".join(script))
        return paths


def memory_disks(vm, number, size=512):
    """Names of new disks in the guest's memory that have requests and a write cache; `size` in MiB."""
    vm.sh("modprobe null_blk nr_devices=0; mount -t configfs none /sys/kernel/config 2>/dev/null; "
          "cd /sys/kernel/config/nullb && " + " && ".join(
              f"mkdir nullb{index} && cd nullb{index} && echo 1 >memory_backed && echo {size} >size && "
              "echo 1 >discard && echo 1 >power && cd .." for index in range(number)))
    return [f"nullb{index}" for index in range(number)]


def dm(vm, name, *targets, size=SIZE):
    """The kernel's name of a new device-mapper volume. Each target: its type and arguments; they share `size` evenly."""
    each, name = size // len(targets), shlex.quote(name)
    table = "\n".join(f"{index * each} {each} {target}" for index, target in enumerate(targets))
    return "dm-" + vm.sh(f"echo '{table}' | dmsetup create {name} && dmsetup info -c --noheadings -o minor {name}")


def md(vm, number, level, members, *options):
    """It does not note on its members that it is idle, so that it writes only what is written to it."""
    vm.sh(f"mdadm --create /dev/md{number} --quiet --run --level={level} --raid-devices={len(members)} --assume-clean "
          f"{'' if level == 0 else '--bitmap=none '}{' '.join(options)} {' '.join(members)} 2>&1 && "
          f"{{ echo 0 >/sys/block/md{number}/md/safe_mode_delay || true; }} 2>/dev/null", 100)
    return f"md{number}"


def bcache(vm, backing, cache):
    """The superblocks are written here: the guests have no bcache-tools. Fields: Linux, struct cache_sb_disk."""
    magic = bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81")
    def register(path, version, own, geometry):
        body = struct.pack("<QQ16s16s16s32sQQ64s16sIHH", 8, version, magic, own * 16, b"s" * 16, b"", 0, 0, b"",
                           geometry, 0, 1, 0)
        text = base64.b64encode(struct.pack("<Q", _crc64(body)) + body).decode()
        vm.sh(f"echo {text} | base64 -d | dd of={path} bs=4096 seek=1 conv=fsync 2>/dev/null && "
              f"echo {path} >/sys/fs/bcache/register")

    register(cache, 3, b"c", struct.pack("<QHHHH", PART // BUCKET, 1, BUCKET, 1, 0))
    register(backing, 1, b"b", struct.pack("<QHHHH", 0, 1, 0, 0, 0))
    vm.wait_for("grep -q . /sys/block/bcache0/bcache/cache/cache_available_percent", 20)
    return "bcache0"


def _crc64(data):
    crc = (1 << 64) - 1
    for byte in data:
        crc ^= byte << 56
        for _ in range(8):
            crc = (crc << 1 ^ (0x42F0E1EBA9EA3693 if crc >> 63 else 0)) & ((1 << 64) - 1)
    return crc ^ ((1 << 64) - 1)


def build(vm, disks):
    """{what: the kernel's name}. A name that ends in ", below" is of a floor that no load is sent to."""
    parts = Parts(vm, disks)
    for module in MODULES:
        vm.run(f"modprobe {module}")  # what a kernel does not have is built in, or its volume fails
    take, made = parts.take, {}

    def linear(path, name):
        return dm(vm, name, f"linear {path} 0")

    def crypt(path, name):
        return dm(vm, name, f"crypt cipher_null-ecb - 0 {path} 0")

    made["linear"] = linear(*take(1), "linear")
    made["linear on brd"] = linear("/dev/ram0", "brd")
    left, right = take(2)
    made["stripe"] = dm(vm, "stripe", f"striped 2 128 {left} 0 {right} 0")
    made["crypt"] = crypt(*take(1), "crypt")
    data, metadata = take(2)
    pool = dm(vm, "pool", f"thin-pool {metadata} {data} 128 0")
    vm.sh("dmsetup message pool 0 'create_thin 0'")
    made["thin"] = dm(vm, "thin", f"thin /dev/{pool} 0")
    base, copies = take(2)
    made["origin"] = dm(vm, "origin", f"snapshot-origin {base}")
    made["snapshot"] = dm(vm, "snapshot", f"snapshot {base} {copies} N 8")
    made["delay"] = dm(vm, "delay", f"delay {take(1)[0]} 0 20")
    made["raid0"] = md(vm, 0, 0, take(2), "--chunk=64")
    made["raid1"] = md(vm, 1, 1, take(2))
    made["raid5"] = md(vm, 5, 5, take(3), "--chunk=64")
    made["raid10"] = md(vm, 10, 10, take(4), "--chunk=64")
    made["bcache"] = bcache(vm, *take(2))
    made["linear, below"] = linear(*take(1), "lower")
    made["crypt on linear"] = crypt("/dev/" + made["linear, below"], "crypt2")
    made["raid1, below"] = md(vm, 2, 1, take(2))
    made["crypt, below"] = crypt("/dev/" + made["raid1, below"], "crypt3")
    made["linear on crypt on raid1"] = linear("/dev/" + made["crypt, below"], "linear3")
    [path] = take(1)
    for floor in range(1, 8):
        made[f"floor {floor}, below"] = linear(path, f"floor{floor}")
        path = "/dev/" + made[f"floor {floor}, below"]
    made["floor 8"] = linear(path, "floor8")
    made["odd name"] = linear(*take(1), ODD_NAME)
    # An array's partitions are looked for when it is first opened.
    vm.sh("for disk in /dev/md* /dev/bcache0; do dd if=$disk of=/dev/null bs=4k count=1 2>/dev/null || exit; done")
    return made


class Fio:
    """One fio with several jobs, at the same time unless one says `stonewall`. `jobs`: [(name, options)], where an
    option of None has no value."""

    def __init__(self, vm, jobs):
        lines = ["[global]", "direct=1", "ioengine=libaio", "norandommap", "randrepeat=0", "thread", "size=8M",
                 "io_size=1G", "disk_util=0", "percentile_list=50:99"]
        for name, options in jobs:
            lines += [f"[{name}]", *(key if value is None else f"{key}={value}" for key, value in options.items())]
        text = base64.b64encode("\n".join(lines).encode()).decode()
        self._vm = vm
        self._pid = vm.sh(f"echo {text} | base64 -d >/tmp/jobs; "
                          "fio --output-format=json --output=/tmp/fio.json /tmp/jobs >/tmp/fio.log 2>&1 & echo $!")

    def jobs(self, seconds=100):
        """[(name, job)] once it has ended."""
        self._vm.wait_for(f"! kill -0 {self._pid}", seconds)
        out = self._vm.sh("cat /tmp/fio.json")
        return [(job["jobname"], job) for job in json.loads(out[out.index("{"):])["jobs"]]


# Of /proc/diskstats: I/Os and sectors.
FIELDS = {"read": (3, 5), "write": (7, 9), "discard": (14, 16)}


def diskstats(vm):
    """Counter of (disk, operation, "ios" or "bytes")"""
    counted = Counter()
    for line in map(str.split, vm.sh("cat /proc/diskstats").splitlines()):
        for operation, (ios, sectors) in FIELDS.items():
            counted[line[2], operation, "ios"] = int(line[ios])
            counted[line[2], operation, "bytes"] = int(line[sectors]) * 512
    return counted
