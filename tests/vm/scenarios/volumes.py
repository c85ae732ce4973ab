# SPDX-License-Identifier: Apache-2.0
"""Volumes (device-mapper, md, bcache) are counted as their users sent the I/O, whatever the kernel makes of it below.

Two oracles that know nothing of each other: fio, and the kernel's own statistics of the volume. Where those differ
from fio is a table here."""
import time
from collections import Counter

import figures
import machine
import volume_stacks
from devices import Backend, Nvme
from lib import buckets, metrics
from volume_stacks import Fio, diskstats

MACHINE = {"append": "nvme_core.multipath=N"}
OPERATIONS = ("read", "write", "flush", "discard")
FIO = {"read": "read", "write": "write", "discard": "trim", "flush": "sync"}
SMALL = {"alone": {"rw": "randrw", "bs": "4k", "iodepth": 1, "number_ios": 60},
         "deep": {"rw": "randrw", "bs": "4k", "iodepth": 16, "number_ios": 200},
         "flushes": {"rw": "write", "bs": "4k", "ioengine": "psync", "number_ios": 20, "fsync": 1},
         "durable": {"rw": "write", "bs": "4k", "ioengine": "psync", "number_ios": 20, "sync": "dsync"},
         "discards": {"rw": "randtrim", "bs": "64k", "ioengine": "psync", "number_ios": 20}}
LARGE = {"large": {"rw": "randrw", "bs": "1m", "iodepth": 4, "number_ios": 20}}
OLD, NEW = ("5.10", "6.1"), ("6.12", "6.12-modular", "newest")
# Who splits 1 MiB, so that the kernel counts the pieces.
SPLIT = {"stripe", "thin", "snapshot", "raid0", "raid1", "raid5", "raid10"}
SPLIT_NEW = {"crypt", "crypt on linear", "crypt, below"}
# (kernels, volumes, operation) of which the kernel's own statistics are wrong.
WRONG_BYTES = [(("5.10",), ("raid5",), "read"), (("5.10",), ("raid10",), "read"), (("5.10",), ("raid10",), "write"),
               (NEW, ("bcache",), "write"), (NEW, ("bcache",), "discard")]
NOT_COUNTED = [(("6.1", *NEW), ("raid0", "raid5"), "discard")]


def devices():
    return [Nvme("left", Backend("1G", data=True)), Nvme("right", Backend("1G", data=True))]


def listed(table, kernel, what, operation):
    return any(kernel in kernels and what in volumes and operation == of for kernels, volumes, of in table)


class Sent:
    """What fio says it sent: Counter of (what, operation, "ios" or "bytes")."""

    def __init__(self, jobs, cached):
        """`cached`: volumes with a write cache; the kernel sends a flush to no other."""
        self.counted, self.errors = Counter(), Counter()
        for name, job in jobs:
            what, shape = name.rsplit(" / ", 1)
            for operation, field in FIO.items():
                ios = job[field]["total_ios"]
                if operation == "flush":
                    # A durable write ends in a flush of the volume.
                    ios = (ios + (job["write"]["total_ios"] if shape == "durable" else 0)) * (what in cached)
                self.counted[what, operation, "ios"] += ios
                self.counted[what, operation, "bytes"] += job[field].get("io_bytes", 0)
            self.errors[what] += job["total_err"] if "total_err" in job else 0


class Volumes:
    def __init__(self, vm, check):
        self.vm, self.check = vm, check
        self.made = volume_stacks.build(vm, [vm.disk("left"), vm.disk("right"), *volume_stacks.memory_disks(vm, 2)])
        queue = {what: vm.sh(f"cd /sys/block/{name}/queue && cat write_cache discard_max_bytes").splitlines()
                 for what, name in self.made.items()}
        self.cached = {what for what, (cache, _) in queue.items() if cache == "write back"}
        self.discards = {what for what, (_, most) in queue.items() if int(most) and (what, vm.name) != ("raid5", "5.10")}
        self.used = [what for what in self.made if not what.endswith(", below")]

    def load(self, shapes):
        """What fio sent, and what the kernel counted meanwhile."""
        jobs = []
        for shape, options in shapes.items():
            for what in self.used:
                if options["rw"] != "randtrim" or what in self.discards:
                    first = {"stonewall": None} if what == self.used[0] else {}
                    jobs.append((f"{what} / {shape}", {"filename": f"/dev/{self.made[what]}", **options, **first}))
        before = diskstats(self.vm)
        done = Fio(self.vm, jobs).jobs()
        for name, job in done:
            self.check.that(job["error"] == 0, f"{name}: fio's error {job['error']}")
        after = diskstats(self.vm)
        return Sent(done, self.cached), {key: value - before[key] for key, value in after.items()}

    def compare_oracles(self, sent, kernel, shapes):
        """Where the kernel counts something else than fio did, it is known why."""
        version, have, want = self.vm.name, {}, {}
        splits = SPLIT | (SPLIT_NEW if version in NEW else set())
        for what in self.used:
            name = self.made[what]
            md = name.startswith("md")
            for operation in ("read", "write", "discard"):
                ios, size = (sent.counted[what, operation, kind] for kind in ("ios", "bytes"))
                if operation == "write" and (not md or version in OLD):
                    ios += sent.counted[what, "flush", "ios"]
                if listed(NOT_COUNTED, version, what, operation):
                    ios = size = 0
                counted = kernel[name, operation, "ios"]
                if shapes is LARGE and what in splits:
                    self.check.that(counted >= ios, f"{what}: {operation} pieces {counted} of {ios}")
                else:
                    have[what, operation, "ios"], want[what, operation, "ios"] = counted, ios
                if not listed(WRONG_BYTES, version, what, operation):
                    have[what, operation, "bytes"], want[what, operation, "bytes"] = kernel[name, operation, "bytes"], size
        differ = {key: (have[key], want[key]) for key in want if have[key] != want[key]}
        self.check.equal(differ, {}, f"{' and '.join(shapes)}: the kernel's counts and fio's, {len(want)} of them")
