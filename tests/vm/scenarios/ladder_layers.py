# SPDX-License-Identifier: Apache-2.0
"""The write ladder of file systems, snapshots and dm-integrity is what the drives' own backends logged, region by region; and
the report of a misaligned file system with data=journal, made again as it should be, has each rung right in both windows.

The oracles: nbdkit's log of each drive's writes, where the file lies by FIEMAP, the journal on a drive of its own; for the
report the kernel's statistics around each load."""
import json
import re

import decisions
import machine
from devices import Logged, Nvme
from lib import metrics
from volume_stacks import Fio, diskstats, dm, md, memory_disks

KERNELS = ("6.12", "newest")
PART = "volumes"
SECONDS = 900
MACHINE = {"append": "nvme_core.multipath=N", "nice": -10}
MODULES = ("ext4", "xfs", "btrfs", "dm-mod", "dm-snapshot", "dm-integrity", "raid456")
CLASSES = ("journal", "metadata", "writeback", "direct", "swap", "other")
FILE, CHUNK = 8 << 20, 64 << 10
TOLERANCE, OF_REPORT = 0.01, 0.02
JOURNAL_BEGINS = 8192  # of ext4 on a device of its own, behind both superblocks
EXT4 = "mke2fs -q -F -t ext4 -b 4096 -E nodiscard,lazy_itable_init=0,lazy_journal_init=0"
EXT4_LOG = "mke2fs -q -F -O journal_dev -b 4096 /dev/{1} 8192 && " + EXT4 + " -J device=/dev/{1} /dev/{0}"
# (words, how it is made, how it is mounted, where its journal begins on the log's drive; None: it has no journal there)
FILE_SYSTEMS = (
    ("ext4 data=ordered", EXT4_LOG, "-t ext4 -o data=ordered /dev/{0}", JOURNAL_BEGINS),
    ("ext4 data=journal", EXT4_LOG, "-t ext4 -o data=journal /dev/{0}", JOURNAL_BEGINS),
    ("xfs", "mkfs.xfs -q -f -K -l logdev=/dev/{1},size=64m /dev/{0}", "-t xfs -o logdev=/dev/{1} /dev/{0}", 0),
    ("btrfs", "mkfs.btrfs -q -f -K -m single -d single /dev/{0}", "-t btrfs /dev/{0}", None),
)


def devices():
    return [Nvme("meadow", Logged("512M")), Nvme("ledger", Logged("128M"))]


def overlap(ranges, offset, size):
    return sum(max(0, min(end, offset + size) - max(begin, offset)) for begin, end in ranges)


class Layers:
    def __init__(self, vm, check):
        self.vm, self.check = vm, check
        self.data, self.log = vm.disk("meadow"), vm.disk("ledger")
        self.serials = {self.data: "meadow", self.log: "ledger"}
        self.daemon = machine.Daemon(vm)
        self.since()

    def since(self):
        """(metrics.Difference, {disk: [(offset, bytes) of each write]}, bytes that became dirty) since the last call."""
        before = getattr(self, "seen", None)
        dirtied = int(self.vm.sh("sed -n 's/^nr_dirtied //p' /proc/vmstat")) * 4096
        logs = {disk: [(offset, size) for kind, offset, size in self.vm.devices[serial].backend.commands() if kind == "write"]
                for disk, serial in self.serials.items()}
        self.seen = (self.daemon.at_rest(), logs, dirtied)
        if before is None:
            return None
        return (metrics.Difference(before[0], self.seen[0]), {disk: logs[disk][len(before[1][disk]):] for disk in logs},
                dirtied - before[2])

    def near(self, have, want, words, missing=0, of=0, tolerance=TOLERANCE):
        """`missing`: at most, as the kernel skipped a run of a program, by its own count. `of`: if little is wanted."""
        slack = tolerance * max(want, of)
        self.check.that(want - slack - missing <= have <= want + slack, f"{words}: {have:.0f}, {want:.0f}")

    @staticmethod
    def skipped(difference):
        return CHUNK * 8 * sum(difference.value("ssdpulse_lost_events_total", cause="recursion", program=program)
                               for program in ("on_volume_submit", "on_issue", "on_complete"))

    @staticmethod
    def rung(difference, rung, device, **labels):
        return difference.value("ssdpulse_write_ladder_bytes_total", rung=rung, device=device, **labels)

    def by_class(self, difference, disk):
        return {name: int(value) for name in CLASSES if (value := self.rung(difference, "file_system", disk, **{"class": name}))}

    def file_system(self, words, make, mount, journal_begins):
        disks = (self.data, self.log)
        self.vm.sh(f"{make.format(*disks)} && mkdir -p /mnt/l && mount {mount.format(*disks)} /mnt/l && sync && sleep 1", 100)
        self.since()
        self.vm.sh(f"dd if=/dev/zero of=/mnt/l/file bs=64k count={FILE // CHUNK} conv=fsync 2>/dev/null; "
                   "for i in $(seq 200); do : >/mnt/l/f$i; done; sync", 100)
        extents = [(int(first) * 512, (int(last) + 1) * 512) for first, last in re.findall(
            r"\]: +(\d+)\.\.(\d+)", self.vm.sh("xfs_io -r -c 'fiemap -v' /mnt/l/file"))]
        self.vm.sh("umount /mnt/l; sync")
        difference, logs, dirtied = self.since()
        missing = self.skipped(difference)
        written = {disk: sum(size for _, size in logs[disk]) for disk in disks}
        classes = {disk: self.by_class(difference, disk) for disk in disks}
        for disk in disks:
            self.near(sum(classes[disk].values()), written[disk], f"{words}: classes of {disk}, and by its log", missing, FILE)
            self.near(self.rung(difference, "drive", disk), written[disk], f"{words}: {disk}, and by its log", missing, FILE)
        # Both are read within a second of rest.
        self.near(difference.value("ssdpulse_write_ladder_bytes_total", rung="application", **{"class": "page_cache"}), dirtied,
                  f"{words}: applications, and nr_dirtied", of=FILE)
        self.check.that(dirtied >= FILE, f"{words}: {dirtied} bytes became dirty")
        if journal_begins is not None:
            journal = sum(size for offset, size in logs[self.log] if offset >= journal_begins)
            self.near(classes[self.log].get("journal", 0), journal, f"{words}: the journal, and by its region", missing, FILE)
            self.check.equal(classes[self.data].get("journal", 0), 0, f"{words}: none of it elsewhere")
            self.check.that(journal >= FILE if "data=journal" in words else journal <= FILE // 4, f"{words}: {journal} bytes of journal")
        if journal_begins is not None and "data=journal" not in words:
            file = sum(overlap(extents, *write) for write in logs[self.data])
            self.near(classes[self.data].get("writeback", 0), file, f"{words}: data, and by where the file lies", missing)
            self.near(classes[self.data].get("metadata", 0) + classes[self.data].get("other", 0), written[self.data] - file,
                      f"{words}: metadata, and by where the file does not lie", missing, FILE)
        if journal_begins is None:
            # Its data shows no sender; all else is marked as metadata.
            self.near(classes[self.data].get("metadata", 0), written[self.data] - FILE, f"{words}: metadata, and all but the data", missing)
        print(f"TABLE {words}: log {written}; classes {classes}; dirtied {dirtied / FILE:.2f} of the file")

    def volume(self, words, name, least, settle="true"):
        """Direct writes to a volume, which adds at least so much: `least` times what was written."""
        self.daemon.stop()  # bios are counted where there are volumes from the start
        self.daemon = machine.Daemon(self.vm)
        self.since()
        [(_, job)] = Fio(self.vm, [(words, {"filename": f"/dev/{name}", "rw": "write", "bs": "64k", "iodepth": 4, "number_ios": 128,
                                            "size": "12M"})]).jobs()
        self.vm.sh(settle)
        difference, logs, _ = self.since()
        written, missing = job["write"]["io_bytes"], self.skipped(difference)
        self.near(self.rung(difference, "file_system", name, **{"class": "other"}), written, f"{words}: sent to it, and fio", missing)
        below = {disk: sum(size for _, size in logs[disk]) for disk in logs}
        for disk, size in below.items():
            self.near(self.rung(difference, "drive", disk), size, f"{words}: {disk}, and by its log", missing, written)
        self.check.that(sum(below.values()) >= least * written, f"{words}: {below} of {written}")
        gaps = {(labels["rung"], labels.get("device", ""))
                for labels in map(dict, difference.after.series("ssdpulse_write_ladder_gap_info"))}
        self.check.that(("application", name) in gaps, f"{words}: what it got past the page cache is not known")
        self.check.that(not {gap for gap in gaps if gap[0] in ("file_system", "drive")}, f"{words}: nothing else is lacking: {gaps}")
        print(f"TABLE {words}: {written} bytes; log {below}; ladder {sum(below.values()) / written:.3f}")

    def snapshot(self):
        """What is overwritten is copied first, and each copy is noted."""
        self.vm.sh(f"dd if=/dev/zero of=/dev/{self.log} bs=64k count=1 oflag=direct 2>/dev/null")  # no header: it is made
        origin = dm(self.vm, "origin", f"snapshot-origin /dev/{self.data}")
        dm(self.vm, "snapshot", f"snapshot /dev/{self.data} /dev/{self.log} P 8")
        self.vm.sh("dmsetup suspend --noudevsync origin && dmsetup resume --noudevsync origin")
        self.volume("dm-snapshot", origin, 2)
        self.vm.sh("dmsetup remove --noudevsync snapshot && dmsetup remove --noudevsync origin")

    def integrity(self):
        """All goes to a journal first; its size is known once it is formatted, which loading a zeroed device does."""
        target = f"integrity /dev/{self.data} 0 32 J 1 internal_hash:sha256"
        self.vm.sh(f"dd if=/dev/zero of=/dev/{self.data} bs=64k count=1 oflag=direct conv=fsync 2>/dev/null")
        dm(self.vm, "format", target, size=8)
        sectors = int(self.vm.sh("dmsetup status format | cut -d' ' -f5; dmsetup remove --noudevsync format"))
        name = dm(self.vm, "integrity", target, size=sectors // 8 * 8)
        self.volume("dm-integrity", name, 2, "dmsetup suspend --noudevsync integrity && dmsetup resume --noudevsync integrity")
        self.vm.sh("dmsetup remove --noudevsync integrity")


class Story:
    """ext4 on RAID 5, whose partition begins in the middle of a page, and whose data goes through the journal."""

    def __init__(self, vm, check):
        self.vm, self.check = vm, check
        self.members = memory_disks(vm, 3, 128)
        self.array = md(vm, 5, 5, [f"/dev/{member}" for member in self.members], "--chunk=64")
        self.host = decisions.Host(vm)  # volumes are measured if there is one at the start
        self.begin = int(re.search(r"FROM=(\d+)", self.host._clock)[1])  # pylint: disable=protected-access

    def scaled(self):
        return int(self.begin + (self.vm.clock() - self.begin) * decisions.SCALE)

    def counted(self):
        stats = diskstats(self.vm)
        return {"application": int(self.vm.sh("sed -n 's/^nr_dirtied //p' /proc/vmstat")) * 4096,
                "file_system": stats[self.array, "write", "bytes"],
                "drive": sum(stats[member, "write", "bytes"] for member in self.members)}

    def phase(self, first_sector, options):
        """(window, {rung: bytes by the kernel}): with rest around the load, so that no byte is on a window's edge."""
        part = f"{self.array}p1"
        self.vm.sh(f"blockdev --rereadpt /dev/{self.array} && addpart /dev/{self.array} 1 {first_sector} 262144 && "
                   f"{EXT4} -J size=16 /dev/{part} && mkdir -p /mnt/s && mount -o {options} /dev/{part} /mnt/s && sync && sleep 4", 100)
        start, before = self.scaled(), self.counted()
        self.vm.sh("sleep 2; for i in $(seq 24); do dd if=/dev/zero of=/mnt/s/f$i bs=128k count=8 conv=fsync 2>/dev/null; done; sync; "
                   "sleep 6", 300)
        after, end = self.counted(), self.scaled()
        self.vm.sh("umount /mnt/s; sync; sleep 2")
        return f"@{start}..@{end}", {rung: after[rung] - before[rung] for rung in after}

    def run(self):
        self.vm.sh("sleep 3")
        phases = [self.phase(63, "data=journal"), self.phase(2048, "data=ordered")]
        windows = ("--before", phases[0][0], "--after", phases[1][0])
        decisions.show("report", self.host.report(*windows))
        ladder = json.loads(self.host.report("--json", *windows))["ladder"]
        for side, (_, truth) in zip(("before", "after"), phases):
            rungs = ladder[side]["rungs"]
            for rung, size in truth.items():
                self.check.that(abs(rungs[rung]["bytes"] - size) <= OF_REPORT * size, f"{side}: {rung}: {rungs[rung]['bytes']:.0f}, {size}")
            self.check.that(abs(rungs["drive"]["ratio"] - truth["drive"] / truth["file_system"]) <= OF_REPORT * rungs["drive"]["ratio"],
                            f"{side}: what the array adds: {rungs['drive']['ratio']}")
            self.check.that(rungs["file_system"]["ratio"] is None and [gap for gap in ladder[side]["gaps"] if gap["rung"] == "application"],
                            f"{side}: what an array gets past the page cache is not known: {ladder[side]['gaps']}")
            print(f"TABLE story, {side}: {truth}, by the report { {rung: rungs[rung]['bytes'] for rung in truth} }")
        (_, bad), (_, good) = phases
        self.check.that(bad["file_system"] > 1.8 * good["file_system"], "the journal doubled what the array got")
        self.check.that(bad["drive"] > 1.5 * good["drive"], "and so the drives")
        self.host.daemon.stop()


def run(vm, check):
    for module in MODULES:
        vm.run(f"modprobe {module}")  # what a kernel does not have is built in, or its part fails
    layers = Layers(vm, check)
    for file_system in FILE_SYSTEMS:
        layers.file_system(*file_system)
    layers.snapshot()
    layers.integrity()
    print(f"     {vm.sh('ssdpulse devices --ladder 1')}")
    layers.daemon.stop()
    Story(vm, check).run()
