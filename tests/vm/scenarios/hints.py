# SPDX-License-Identifier: Apache-2.0
"""Lifetime hints are seen where the kernel shows them, and are unknown where it does not; streams reach an FDP drive."""
import json

import machine
from devices import Backend, Nvme, NvmeSubsystem
from lib import metrics

SHARES_GUEST = True
HINTS = ("not_set", "none", "short", "medium", "long", "extreme", "unknown")
DIRECT, BUFFERED = 4, 3  # the hints that are set: long, medium
SIZE, BLOCK = 512 << 10, 64 << 10
FDP = "fdp.runs=4M,fdp.nrg=1,fdp.nruh=4"

# How (direct, buffered) writes appear under a hint, and without one.
SEEN = {"device": ("long", "medium"), "ext4": ("long", "medium"), "xfs": ("long", "medium")}
NONE = ("not_set", "not_set")
KERNELS = {
    "5.10": {**SEEN, "device": ("long", "not_set"), "without": NONE},
    "6.1": {"device": ("unknown", "unknown"), "ext4": ("unknown", "medium"), "xfs": ("unknown", "medium"),
            "without": ("unknown", "not_set")},
    "6.12": {**SEEN, "without": NONE},
    "6.12-modular": {**SEEN, "without": NONE},
    "newest": {**SEEN, "without": NONE},
}


def devices():
    return [Nvme("hinted", Backend("512M", data=True)), NvmeSubsystem("placed", Backend("64M"), fdp=FDP)]


class Watch:
    def __init__(self, daemon, disk):
        self.daemon, self.disk, self.scrape = daemon, disk, daemon.at_rest(2.2)

    def since(self):
        now = self.daemon.at_rest(2.2)
        difference, self.scrape = metrics.Difference(self.scrape, now), now
        return difference

    def hints(self, difference):
        """{hint: bytes} of those that have any."""
        have = {hint: int(difference.value("ssdpulse_write_hint_bytes_total", device=self.disk, hint=hint))
                for hint in HINTS}
        return {hint: size for hint, size in have.items() if size}

    def consistent(self, check, difference, what):
        """Every write has one hint, and one latency under it."""
        total = int(difference.value("ssdpulse_io_bytes_total", device=self.disk, operation="write"))
        check.equal(sum(self.hints(difference).values()), total, f"{what}: bytes of all hints")
        ios = {hint: int(difference.value("ssdpulse_write_hint_ios_total", device=self.disk, hint=hint))
               for hint in HINTS}
        timed = {hint: difference.histogram("ssdpulse_write_hint_latency_seconds", device=self.disk, hint=hint).count
                 for hint in HINTS}
        check.equal(timed, ios, f"{what}: latencies by hint")


def write(vm, path, *options):
    vm.sh(f"tagged_write {path} {SIZE} block={BLOCK} {' '.join(options)}")


def step(vm, check, watch, what, path, expected, own):
    """Direct and buffered, each under its hint. `own`: nothing else writes to the disk."""
    for options, hint, want in (("direct", DIRECT, expected[0]), ("", BUFFERED, expected[1])):
        write(vm, path + (options or "buffered") * (not own), f"hint={hint}", options)
        difference = watch.since()
        have = watch.hints(difference)
        name = f"{what} {options or 'buffered'} {HINTS[hint]}"
        watch.consistent(check, difference, name)
        print(f"TABLE {name}: {have}")
        if want in ("not_set", "unknown"):  # with the journal's
            check.that(set(have) == {want} and have[want] >= SIZE, f"{name}: all {want}: {have}")
        else:
            rest = {hint: size for hint, size in have.items() if hint != want}
            check.equal(have.get(want), SIZE, f"{name}: bytes as {want}")
            check.that(set(rest) <= {"not_set", "unknown"} and not (own and rest), f"{name}: the rest: {rest}")
    if own:
        vm.sh(f"tagged_write {path} {BLOCK} hint=0")  # an inode remembers
        watch.since()


def without_hints(vm, check, watch, expected):
    for options, want in zip(("direct", ""), expected):
        write(vm, f"/mnt/h/no{options}", options)
        difference = watch.since()
        have = watch.hints(difference)
        name = f"no hint {options or 'buffered'}"
        watch.consistent(check, difference, name)
        print(f"TABLE {name}: {have}")
        check.that(have.get(want, 0) >= SIZE and set(have) <= {"not_set", "unknown"}, f"{name}: {want}: {have}")


def placements(vm, disk):
    """What is left of the reclaim unit of each placement handle, in blocks."""
    status = json.loads(vm.sh(f"nvme fdp status /dev/{disk} -o json"))
    return [unit["ruamw"] for unit in status["ruhss"]]


def streams(vm, check, daemon, disk):
    limit = f"/sys/block/{disk}/queue/max_write_streams"
    if vm.run(f"test -e {limit}")[0] != 0:
        print("TABLE write streams: this kernel has none")
        return
    print(f"TABLE write streams: {vm.sh(f'cat {limit}')}")
    watch = Watch(daemon, disk)
    for stream, options in ((2, "stream=2"), (1, "stream=1"), (2, "hint=2")):  # a device's own hint names a stream
        before = placements(vm, disk)
        vm.sh(f"tagged_write /dev/{disk} {SIZE} block={BLOCK} direct {options}")
        difference, after = watch.since(), placements(vm, disk)
        have = {number: int(difference.value("ssdpulse_write_stream_bytes_total", device=disk, stream=str(number)) or 0)
                for number in (1, 2, 3)}
        check.equal({number: size for number, size in have.items() if size}, {stream: SIZE}, f"{options}: bytes")
        moved = [index for index, (was, now) in enumerate(zip(before, after)) if was != now]
        check.equal(moved, [stream - 1], f"{options}: placement handle that the drive wrote to, of {before} {after}")
        print(f"TABLE io_uring {options}: stream {have}, placement handle {moved}")


def run(vm, check):
    disk, placed = vm.disk("hinted"), vm.disk("placed")
    vm.sh("modprobe -a -q ext4 xfs; mkdir -p /mnt/h")
    daemon = machine.Daemon(vm)
    expected = KERNELS[vm.name]
    watch = Watch(daemon, disk)
    step(vm, check, watch, "device", f"/dev/{disk}", expected["device"], True)
    for fstype, make in (("ext4", "mke2fs -q -F -t ext4 -E nodiscard,lazy_itable_init=0,lazy_journal_init=0"),
                         ("xfs", "mkfs.xfs -q -f -K")):
        vm.sh(f"{make} /dev/{disk} && mount /dev/{disk} /mnt/h && sync")
        watch.since()
        step(vm, check, watch, fstype, "/mnt/h/", expected[fstype], False)
        without_hints(vm, check, watch, expected["without"])
        vm.sh("umount /mnt/h")
    streams(vm, check, daemon, placed)
    daemon.stop()
