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
PLAIN = ("removed", "renamed", "reloaded", "grown")  # for what is done to a volume in use
SLOW_SECONDS = 8
ODD_NAME = "a b'\"{é"


def memory_disks(vm, number, size=512, delays_ns=()):
    """Names of new disks in the guest's memory that have requests and a write cache; `size` in MiB. `delays_ns`: for how long
    each holds an I/O, by a timer."""
    timers = [f"echo 2 >irqmode && echo {delay} >completion_nsec && " for delay in delays_ns] or [""] * number
    vm.sh("modprobe null_blk nr_devices=0; mount -t configfs none /sys/kernel/config 2>/dev/null; "
          "cd /sys/kernel/config/nullb && " + " && ".join(
              f"mkdir nullb{index} && cd nullb{index} && {timer}echo 1 >memory_backed && echo {size} >size && "
              "echo 1 >discard && echo 1 >power && cd .." for index, timer in zip(range(number), timers)))
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


class Stacks:
    """`names`: {what: the kernel's name}. One that ends in ", below" is of a floor that no load is sent to."""

    def __init__(self, vm, disks):
        self._vm, self._disks, self._taken = vm, disks, 0
        self.names, self.members = {}, {}
        for module in MODULES:
            vm.run(f"modprobe {module}")  # what a kernel does not have is built in, or its volume fails
        self._build()
        # An array's partitions are looked for when it is first opened.
        vm.sh("for disk in /dev/md* /dev/bcache0; do dd if=$disk of=/dev/null bs=4k count=1 2>/dev/null || exit; done")

    def _take(self, number):
        """Paths of new partitions, on the disks in turn: those of one call are on different disks."""
        paths, script = [], []
        for _ in range(number):
            row, disk = divmod(self._taken, len(self._disks))
            self._taken += 1
            script.append(f"addpart /dev/{self._disks[disk]} {row + 1} {2048 + row * PART} {PART}")
            paths.append(f"/dev/{self._disks[disk]}p{row + 1}")
        self._vm.sh(" && ".join(script))
        return paths

    def _dm(self, what, target, members=1, name=None):
        """Of new partitions, or of `members` (paths); `target` has their paths as {0}, {1}, ..."""
        paths = self._take(members) if isinstance(members, int) else members
        self.members[what] = paths
        targets = [one.format(*paths) for one in target.split(" then ")]
        self.names[what] = dm(self._vm, name or what.replace(", ", " "), *targets)
        return "/dev/" + self.names[what]

    def _md(self, what, number, level, members):
        self.members[what] = self._take(members)
        self.names[what] = md(self._vm, number, level, self.members[what], *(["--chunk=64"] if level != 1 else []))
        return "/dev/" + self.names[what]

    def _build(self):
        linear, crypt = "linear {0} 0", "crypt cipher_null-ecb - 0 {0} 0"
        self._dm("linear", linear)
        self._dm("linear on brd", linear, ["/dev/ram0"])
        self._dm("stripe", "striped 2 128 {0} 0 {1} 0", 2)
        self._dm("crypt", crypt)
        pool = self._dm("thin, below", "thin-pool {0} {1} 128 0", 2, "pool")
        self._vm.sh("dmsetup message pool 0 'create_thin 0'")
        self._dm("thin", "thin {0} 0", [pool])
        self._dm("snapshot", "snapshot {0} {1} N 8", 2)
        self._dm("origin", "snapshot-origin {0}", self.members["snapshot"][:1])
        self._dm("delay", "delay {0} 0 20")
        self._md("raid0", 0, 0, 2)
        self._md("raid1", 1, 1, 2)
        self._md("raid5", 5, 5, 3)
        self._md("raid10", 10, 10, 4)
        self.names["bcache"] = bcache(self._vm, *self._take(2))
        self._dm("crypt on linear", crypt, [self._dm("linear, below", linear)])
        mirror = self._md("raid1, below", 2, 1, 2)
        self._dm("linear on crypt on raid1", linear, [self._dm("crypt, below", crypt, [mirror])])
        [path] = self._take(1)
        for floor in range(1, 8):
            path = self._dm(f"floor {floor}, below", linear, [path])
        self._dm("floor 8", linear, [path])
        self._dm("odd name", linear, name=ODD_NAME)
        for what in PLAIN:
            self._dm(what, linear)
        self._dm("slow", f"delay {{0}} 0 {SLOW_SECONDS * 1000}")
        self._dm("broken", "flakey {0} 0 0 3600")
        self._dm("half", "linear {0} 0 then error")


class Fio:
    """One fio with several jobs, at the same time unless one says `stonewall`. `jobs`: [(name, options)], where an
    option of None has no value."""

    def __init__(self, vm, jobs):
        lines = ["[global]", "direct=1", "ioengine=libaio", "norandommap", "randrepeat=0", "thread", "size=8M",
                 "io_size=1G", "disk_util=0", "invalidate=0", "percentile_list=50:99"]
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
