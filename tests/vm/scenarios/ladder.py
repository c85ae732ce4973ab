# SPDX-License-Identifier: Apache-2.0
"""The write ladder: what file systems send, what volumes make of it and what the drives get is what the kernel counted there,
and a mirror doubles it, parity adds its share and reads, and a journal of data writes all twice.

Two oracles: the kernel's own statistics of each volume and disk, and what each load must become."""
import json

import machine
from lib import metrics
from volume_stacks import Fio, diskstats, md, memory_disks

KERNELS = ("5.10", "6.1", "6.12", "newest")
PART = "volumes"
MACHINE = {"append": "nvme_core.multipath=N", "nice": -10}
MODULES = ("raid0", "raid1", "raid10", "raid456", "ext4")
MEMBERS = {"raid1": 2, "raid10": 4, "raid5": 4, "raid0": 2}
NUMBERS = {"raid0": 0, "raid1": 1, "raid5": 5, "raid10": 10}
CHUNK = 64 << 10
STRIPE = 3 * CHUNK  # data of raid5
FILE = 8 << 20
TOLERANCE = 0.01
LARGE = {"rw": "write", "bs": "64k", "iodepth": 4, "number_ios": 256}
# (volume, load, fio's options, bytes written below for each, bytes read below for each that nobody asked for)
LOADS = (
    ("raid1", "large writes", LARGE, 2, 0),
    ("raid10", "large writes", LARGE, 2, 0),
    ("raid0", "large writes", LARGE, 1, 0),
    # Each in a stripe of its own: old data and old parity, or the rest of the stripe, are read.
    ("raid5", "small writes", {"rw": "write:252k", "bs": "4k", "iodepth": 1, "number_ios": 200, "offset": "1m", "size": "64m"}, 2, 2),
    ("raid5", "whole stripes", {"rw": "write", "bs": STRIPE * 4, "iodepth": 1, "number_ios": 20, "offset": STRIPE * 400,
                                "size": STRIPE * 40}, 4 / 3, 0),
)


def devices():
    return []


class Ladder:
    def __init__(self, vm, check, arrays):
        """`arrays`: {what: (name, members)}"""
        self.vm, self.check, self.arrays = vm, check, arrays
        self.daemon = machine.Daemon(vm)
        self.scrape, self.stats, self.page = self.look()

    def look(self):
        return self.daemon.at_rest(), diskstats(self.vm), json.loads(self.vm.sh(f"curl -sf http://127.0.0.1:{self.daemon.PORT}/api/v1/stacks"))

    def since(self):
        """(metrics.Difference, {(disk, operation, kind): by the kernel}, the answers before and now) since the last call."""
        scrape, stats, page = self.scrape, self.stats, self.page
        self.scrape, self.stats, self.page = self.look()
        return metrics.Difference(scrape, self.scrape), {key: self.stats[key] - stats[key] for key in self.stats}, (page, self.page)

    def near(self, have, want, words, missing=0.0, of=0):
        """`missing`: at most, as the kernel skipped a run of a program, by its own count. `of`: if what is wanted may be 0."""
        slack = TOLERANCE * max(want, of)
        self.check.that(want - slack - missing <= have <= want + slack, f"{words}: {have:.0f}, {want:.0f}")

    def load(self, what, load, options, written_below, read_below):
        name, members = self.arrays[what]
        [(_, job)] = Fio(self.vm, [(load, {"filename": f"/dev/{name}", **options})]).jobs()
        difference, kernel, pages = self.since()
        words, written = f"{what}, {load}", job["write"]["io_bytes"]
        # Each skipped run may have missed a bio or a request.
        skipped = sum(difference.value("ssdpulse_lost_events_total", cause="recursion", program=program)
                      for program in ("on_volume_submit", "on_issue", "on_complete")) * CHUNK
        counted = {kind: sum(kernel[member, kind, "bytes"] for member in members) for kind in ("read", "write")}
        self.near(counted["write"], written * written_below, f"{words}: written to members, by the kernel, and by arithmetic")
        self.near(counted["read"], written * read_below, f"{words}: read from members, by the kernel, and by arithmetic", of=written)
        rungs = {rung: sum(difference.value("ssdpulse_write_ladder_bytes_total", rung=rung, device=device) for device in devices)
                 for rung, devices in (("file_system", [name, *members]), ("drive", members))}
        self.near(rungs["file_system"], kernel[name, "write", "bytes"], f"{words}: file systems, and by the kernel", skipped)
        self.near(rungs["drive"], counted["write"], f"{words}: drives, and by the kernel", skipped)
        before, now = ({layer["name"]: layer for layer in page["layers"]}[name] for page in pages)
        grown = {field: now[field] - before[field] for field in now if field.endswith("_bytes") and field in before}
        self.near(grown["written_bytes"], written, f"{words}: the volume, and fio", skipped)
        if what == "raid0" and self.vm.name == "5.10":
            # It passes bios on as they are: nothing is known of its members.
            self.check.that("members_written_bytes" not in now, f"{words}: nothing is said of its members")
            gaps = {(gap["device"], gap["reason"]) for ladder in pages[1]["ladders"] for gap in ladder["gaps"] if gap["rung"] == "file_system"}
            self.check.that({(member, "unknown_sender") for member in members} <= gaps, f"{words}: {sorted(gaps)} are lacking")
        else:
            self.near(grown["members_written_bytes"], counted["write"], f"{words}: members, and by the kernel", skipped)
            self.near(grown["members_read_bytes"] - grown["read_bytes"], counted["read"], f"{words}: read from members", skipped, written)
        print(f"TABLE {words}: {written} bytes; below {counted['write'] / written:.3f} of them written, {counted['read'] / written:.3f} read; "
              f"ladder {rungs['drive'] / rungs['file_system']:.3f}, {grown.get('members_written_bytes', 0) / written:.3f}")

    def journal(self, disk, mode, least, most):
        """One file on a drive without volumes: `least` and `most` bytes for each of it."""
        self.vm.sh(f"mke2fs -q -F -t ext4 -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 -J size=32 /dev/{disk} && "
                   f"mkdir -p /mnt/l && mount -o data={mode} /dev/{disk} /mnt/l && sync")
        self.since()
        self.vm.sh(f"dd if=/dev/zero of=/mnt/l/file bs=64k count={FILE // CHUNK} conv=fsync; sync; umount /mnt/l", 100)
        difference, kernel, _ = self.since()
        written = kernel[disk, "write", "bytes"]
        self.check.that(least * FILE <= written <= most * FILE, f"data={mode}: {written / FILE:.2f} bytes for each, by the kernel")
        by_class = {name: int(value) for name in ("journal", "metadata", "writeback", "direct", "swap", "other") if (value := difference.value(
            "ssdpulse_write_ladder_bytes_total", rung="file_system", device=disk, **{"class": name}))}
        skipped = sum(difference.value("ssdpulse_lost_events_total", cause="recursion", program=program)
                      for program in ("on_issue", "on_complete")) * CHUNK * 8
        self.near(sum(by_class.values()), written, f"data={mode}: file systems, and by the kernel", skipped)
        if self.vm.name != "5.10":  # which does not show whose buffers a bio has
            journal = by_class.get("journal", 0)
            self.check.that(journal >= FILE - skipped if mode == "journal" else journal <= FILE // 10, f"data={mode}: by class {by_class}")
        print(f"TABLE ext4 data={mode}: {written / FILE:.2f} bytes for each of the file; {by_class}")


def run(vm, check):
    for module in MODULES:
        vm.run(f"modprobe {module}")  # what a kernel does not have is built in, or its array fails
    disks, arrays = memory_disks(vm, sum(MEMBERS.values()) + 1, 128), {}
    plain = disks.pop()
    for what, number in MEMBERS.items():
        members = [disks.pop(0) for _ in range(number)]
        options = [] if what == "raid1" else ["--chunk=64"]
        arrays[what] = (md(vm, NUMBERS[what], NUMBERS[what], [f"/dev/{member}" for member in members], *options), members)
    # The superblocks say that the arrays are in use from here on.
    vm.sh("for disk in /dev/md*; do [ -b $disk ] || continue; dd if=/dev/zero of=$disk bs=4k count=1 conv=fsync 2>/dev/null; done; sleep 1")
    ladder = Ladder(vm, check, arrays)
    for load in LOADS:
        ladder.load(*load)
    for mode, least, most in (("ordered", 1, 1.2), ("journal", 2, 2.4)):
        ladder.journal(plain, mode, least, most)
    # What a volume gets past the page cache is not known; what counts media bytes is not the subject here.
    gaps = {(gap["rung"], gap["device"]) for one in ladder.page["ladders"] for gap in one["gaps"]
            if gap["rung"] not in ("media", "application")}
    known = {("file_system", member) for member in arrays["raid0"][1]} if vm.name == "5.10" else set()
    check.equal(gaps, known, "nothing else is lacking")
    print(f"     {vm.sh('ssdpulse devices --ladder 1')}")
    ladder.daemon.stop()
