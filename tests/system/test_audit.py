#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# alone: turns settings of the host, fstrim.timer among them
"""Does `ssdpulse audit` notice a changed setting, is its finding gone once the advised change has been made, word for
word, and does the undo restore the setting? On loop devices, with a daemon that has measured for seconds.
"""
import ctypes
import json
import os
import re
import shutil
import subprocess
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from controlled_disk import controlled_disk
from lib import rig

ACCEPTED = """\
accepted:
  - id: Q?
    device: loop*
    reason: a test of it
    expires: "{}"
"""


USUAL, BOOKED = 15, 60  # seconds until the usual latency is known, and at most from a spike to its cause


class Audit:
    def __init__(self, check, daemon, state):
        self.check, self.daemon, self.state = check, daemon, state

    def run(self, *arguments):
        return subprocess.run([rig.BINARY, "audit", "-c", self.state / "config.yaml", "--min-observation", "0.001",
                               *map(str, arguments)], text=True, capture_output=True, timeout=30, check=False)

    def finding(self, rule, device):
        """The rule's finding for the device, of which there must be exactly one."""
        findings = json.loads(self.run("--json").stdout)["findings"]
        found = [one for one in findings if (one["id"], one["device"]) == (rule, device)]
        if len(found) != 1:
            raise RuntimeError(f"{rule} of {device}: {found}")
        return found[0]

    def turned(self, rule, device, was, verdict, read, what):
        """`read` returns the setting. Checks the finding, its change and its undo."""
        one = self.finding(rule, device)
        self.check.equal(one["verdict"], verdict, f"{rule}: {what}: {one['found']}: {one['why']} {one['evidence']}")
        shell(one["change"])
        after = self.finding(rule, device)
        self.check.that(after["verdict"] not in ("advise", "danger") and after["found"] != one["found"],
                        f"{rule}: gone after: {one['change']}")
        shell(one["undo"])
        self.check.equal(read(), was, f"{rule}: undone by: {one['undo']}")


def shell(command):
    subprocess.run(["sh", "-ec", command], check=True, stdout=subprocess.DEVNULL)


def turn(audit, disk, attribute, value, rule, verdict, what):
    before = disk.queue(attribute)
    disk.set_queue(attribute, value)
    now = disk.queue(attribute)
    try:
        audit.turned(rule, disk.name, now, verdict, lambda: disk.queue(attribute), what)
    finally:  # a loop device would keep it
        disk.set_queue(attribute, before.split("[")[1].split("]")[0] if "[" in before else before)


def settings(check, audit, disk):
    seed = 1
    check.equal(audit.finding("Q3", disk.name)["verdict"], "info", "nomerges alone is no advice")
    rig.fio(disk, seed, rw="write", bs="4k", size="32M", loops=8)
    rig.fio(disk, seed, rw="randread", bs="4k", size="32M", iodepth=64, ioengine="libaio", loops=4)
    audit.daemon.after_ticks(2)
    turn(audit, disk, "nomerges", 2, "Q3", "advise", "small sequential writes that are not merged")
    turn(audit, disk, "rotational", 1, "Q7", "advise", "an SSD that spins")
    turn(audit, disk, "max_sectors_kb", 4, "Q9", "advise", "requests that are split")
    disk.set_queue("discard_max_bytes", 1 << 31)  # the default is no multiple of the granularity: cannot be restored
    audit.turned("Q13", disk.name, str(1 << 31), "info", lambda: disk.queue("discard_max_bytes"),
                 "large discards that cost nothing here")
    turn(audit, disk, "iostats", 0, "Q10", "info", "no statistics, and nothing was lost by it yet")
    disk.set_queue("iostats", 0)
    rig.fio(disk, seed, rw="randread", bs="4k", size="4M")
    audit.daemon.after_ticks(2)
    audit.turned("Q10", disk.name, "0", "advise", lambda: disk.queue("iostats"), "I/Os that could not be measured")
    disk.set_queue("iostats", 1)
    if disk.queue("wbt_lat_usec") if Path(f"/sys/block/{disk.name}/queue/wbt_lat_usec").exists() else False:
        turn(audit, disk, "wbt_lat_usec", 75000, "Q6", "info", "writeback as on a spinning disk")


def too_few_requests(check, audit, disk):
    before = disk.queue("nr_requests")
    disk.set_queue("nr_requests", 4)
    try:
        rig.fio(disk, 1, rw="randread", bs="4k", size="32M", iodepth=64, numjobs=4, ioengine="libaio", time_based=None,
                runtime="6")
        audit.daemon.after_ticks(2)
        audit.turned("Q2", disk.name, "4", "advise", lambda: disk.queue("nr_requests"), "requests that wait for a tag")
    finally:
        # The next user of the loop device would see the usual number, but have 4 tags.
        disk.set_queue("nr_requests", before)


FSTRIM_ENABLED = Path("/etc/systemd/system/timers.target.wants/fstrim.timer")


@contextmanager
def without_service_manager(state):
    """Advice that enables or disables a unit is followed without --now: not every host of these tests runs systemd."""
    systemctl = state / "bin/systemctl"
    systemctl.parent.mkdir()
    systemctl.write_text(f'#!/bin/sh\nexec {shutil.which("systemctl")} "$1" "$3"\n')
    systemctl.chmod(0o755)
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{systemctl.parent}:{before}"
    try:
        yield
    finally:
        os.environ["PATH"] = before


@contextmanager
def fstrim_timer(enabled):
    """Enables or disables it as systemctl does."""
    link, target = FSTRIM_ENABLED, "/lib/systemd/system/fstrim.timer"
    made = [folder for folder in (link.parent.parent, link.parent) if not folder.exists()]
    link.parent.mkdir(parents=True, exist_ok=True)
    was = link.is_symlink()

    def set_link(wanted):
        link.unlink(missing_ok=True)
        if wanted:
            link.symlink_to(target)
    set_link(enabled)
    try:
        yield
    finally:
        set_link(was)
        for folder in reversed(made):
            if not any(folder.iterdir()):
                folder.rmdir()


def trims(check, audit, disk, state):
    mount = state / "mnt"
    mount.mkdir()
    rig.run("mkfs.ext4", "-q", "-F", disk.path)
    rig.run("mount", "-o", "discard,strictatime", disk.path, mount)
    try:
        with fstrim_timer(enabled=True):
            check.equal(audit.finding("F1", str(mount))["verdict"], "info", "two ways of trimming that do nothing yet")
            audit.daemon.after_ticks(2)
            for number in range(3):
                (mount / "file").write_bytes(os.urandom(1 << 20))
                os.sync()
                (mount / "file").unlink()
                os.sync()
                time.sleep(1)
            rig.run("fstrim", mount)
            audit.daemon.after_ticks(3)

            def both():
                return "discard" in rig.run("findmnt", "-no", "OPTIONS", mount), FSTRIM_ENABLED.is_symlink()
            # Which of the two goes depends on what waited for each, and an fstrim is over in a millisecond.
            with without_service_manager(state):
                audit.turned("F1", str(mount), (True, True), "advise", both, "trimmed twice")
        journals(check, audit, disk, mount)
        audit.turned("F9", str(mount), True, "info",
                     lambda: "relatime" not in rig.run("findmnt", "-no", "OPTIONS", mount), "each read updates the access time")
    finally:
        rig.run("umount", mount)


def journals(check, audit, disk, mount):
    """Barriers, and options that a remount cannot change."""
    def options():
        return rig.run("findmnt", "-no", "OPTIONS", mount)
    check.equal(disk.queue("write_cache"), "write back", "a disk with a volatile cache")
    check.equal(audit.finding("F8", str(mount))["verdict"], "ok", "data is ordered before the journal")
    rig.run("mount", "-o", "remount,nobarrier", mount)
    audit.turned("F7", str(mount), True, "danger", lambda: "nobarrier" in options(), "no barriers")
    rig.run("mount", "-o", "remount,barrier", mount)
    disk.set_queue("write_cache", "write through")
    try:
        rig.run("mount", "-o", "remount,nobarrier", mount)
        check.equal(audit.finding("F7", str(mount))["verdict"], "info", "no barriers, and no cache to be flushed")
        rig.run("mount", "-o", "remount,barrier", mount)
    finally:
        disk.set_queue("write_cache", "write back")


def defaults_of_the_super_block(check, audit, disk, state):
    """What tune2fs -o asks for is in force and not in mountinfo; the advice is where it comes from."""
    mount = state / "mnt-defaults"
    mount.mkdir()
    rig.wait_until_unused(disk)
    rig.run("mkfs.ext4", "-q", "-F", "-E", "nodiscard", disk.path)

    def defaults():
        return re.search(r"Default mount options: +(.*)", rig.run("tune2fs", "-l", disk.path))[1]
    before = defaults()
    rig.run("tune2fs", "-o", "discard,nobarrier,journal_data_writeback", disk.path)
    rig.run("mount", disk.path, mount)
    try:
        with fstrim_timer(enabled=True):
            both = audit.finding("F1", str(mount))
        # With the timer, which of the two should go depends on what each cost on this host.
        with fstrim_timer(enabled=False):
            found = {rule: audit.finding(rule, str(mount)) for rule in ("F2", "F7", "F8")}
        # Whether it is advice depends on the same costs.
        check.equal(({both["verdict"], found["F2"]["verdict"]} <= {"info", "advise"}, found["F7"]["verdict"],
                     found["F8"]["verdict"]), (True, "danger", "info"), "options of the super block: verdicts")
        check.that("data=writeback" in found["F8"]["found"], f"options of the super block: {found['F8']['found']}")
    finally:
        rig.run("umount", mount)
    for command in (found["F2"]["persistent"].split("; ")[-1], found["F7"]["persistent"], found["F8"]["change"].split(",")[0]):
        check.that(command.startswith("tune2fs "), f"options of the super block: {command}")
        shell(command)
    check.equal(defaults(), before, "options of the super block: after the advice")
    rig.wait_until_unused(disk)
    rig.run("mkfs.ext4", "-q", "-F", "-O", "^has_journal", disk.path)
    rig.run("mount", disk.path, mount)
    try:
        check.equal(audit.finding("F8", str(mount))["found"], "it has no journal", "ext4 without a journal")
    finally:
        rig.run("umount", mount)


def swapped_out():
    """Pages, since the host started."""
    return int(re.search(r"^pswpout (\d+)$", Path("/proc/vmstat").read_text(), re.M)[1])


def over_two_disks(check, audit, first, second, state):
    """btrfs from a link that is gone, xfs with its log elsewhere, swap in a file."""
    mount, link = state / "mnt-two", state / "link"
    mount.mkdir()

    def disks():
        return {dict(labels)["device"] for labels in audit.daemon.scrape().series("ssdpulse_filesystem_info",
                                                                                  mountpoint=str(mount))}
    rig.wait_until_unused(first)
    rig.wait_until_unused(second)
    rig.run("mkfs.btrfs", "-q", "-f", "-K", first.path, second.path)
    link.symlink_to(second.path)
    libc = ctypes.CDLL(None, use_errno=True)  # mount(8) would resolve the link
    check.equal(libc.mount(bytes(link), bytes(mount), b"btrfs", 0, None), 0, "btrfs is mounted")
    link.unlink()
    try:
        audit.daemon.after_ticks(2)
        check.equal(disks(), {first.name, second.name}, "btrfs: its disks")
    finally:
        rig.run("umount", mount)
    rig.wait_until_unused(first)
    rig.wait_until_unused(second)
    rig.run("mkfs.xfs", "-q", "-f", "-l", f"logdev={second.path}", first.path)
    rig.run("mount", "-t", "xfs", "-o", f"logdev={second.path}", first.path, mount)
    swap = mount / "swap"
    try:
        swap.write_bytes(bytes(16 << 20))
        swap.chmod(0o600)
        rig.run("mkswap", swap)
        swapped = swapped_out()
        rig.run("swapon", swap)
        audit.daemon.after_ticks(2)
        check.equal(disks(), {first.name, second.name}, "xfs: its disks")
        findings = json.loads(audit.run("--json", "--all").stdout)["findings"]
        # A host that reclaims memory ahead of need writes to any swap at once, and then there is something to advise.
        verdict = {one["device"]: one["verdict"] for one in findings if one["id"] == "F14"}.get(first.name)
        check.that(verdict == "info" or verdict == "advise" and swapped_out() > swapped, f"swap in a file: {verdict}")
    finally:
        rig.run("swapoff", swap, check=False)
        rig.run("umount", mount)


DIRTY = ("dirty_ratio", "dirty_background_ratio", "dirty_bytes", "dirty_background_bytes")
MUCH = ["90", "10", "0", "0"]


def limits():
    return [Path(f"/proc/sys/vm/{name}").read_text().strip() for name in DIRTY]


@contextmanager
def much_may_wait():
    """90 % of the memory may be dirty."""
    before = limits()
    try:
        rig.run("sysctl", "vm.dirty_background_ratio=10", "vm.dirty_ratio=90")
        yield
    finally:
        for name, value in zip(DIRTY, before):
            if value != "0":
                rig.run("sysctl", f"vm.{name}={value}")


def memory(check, audit, disk):
    """Limits of the page cache, and swap."""
    with much_may_wait():
        audit.turned("F13", "", MUCH, "info", limits, "90 % of the memory may wait to be written, and nothing waited for it")
    check.equal(audit.finding("F14", disk.name)["verdict"], "not applicable", "no swap")
    rig.run("mkswap", disk.path)
    rig.run("swapon", disk.path)
    try:
        one = audit.finding("F14", disk.name)
        check.that(one["verdict"] == "info" and "swappiness" in one["change"], f"swap: {one['why']}")
    finally:
        rig.run("swapoff", disk.path)
    rig.run("wipefs", "-qa", disk.path)


def partitions(check, audit, disk):
    subprocess.run(["sfdisk", "-q", "--no-reread", disk.path], input="start=63,size=40000\n", text=True, check=True)
    rig.run("partx", "-u", disk.path, check=False)
    try:
        one = audit.finding("N2", disk.name)
        check.that(one["verdict"] == "info" and f"{disk.name}p1" in one["why"], f"a misaligned partition: {one['why']}")
        subprocess.run(["sfdisk", "-q", "--no-reread", "--wipe=always", disk.path], input="start=2048,size=40000\n", text=True,
                       check=True)
        rig.run("partx", "-u", disk.path, check=False)
        check.equal(audit.finding("N2", disk.name)["verdict"], "ok", "one that is aligned")
    finally:
        rig.run("partx", "-d", disk.path, check=False)
    rig.run("wipefs", "-qa", disk.path)


def accepted(check, audit, disk):
    file = audit.state / "accepted.yaml"
    file.write_text(ACCEPTED.format("2099-01-01"))
    disk.set_queue("nomerges", 2)
    check.equal(audit.finding("Q3", disk.name)["verdict"], "advise", "something to accept")
    answer = json.loads(audit.run("--json", "--accepted", file).stdout)
    check.that(any(one["id"] == "Q3" and "a test of it" in one["why"] for one in answer["accepted"]), "accepted by a pattern")
    check.that(all(one["verdict"] != "advise" for one in answer["findings"] if one["device"] == disk.name), "and not counted")
    file.write_text(ACCEPTED.format("2020-01-01"))
    done = audit.run("--accepted", file)
    check.that(done.returncode == 1 and "expired on" in done.stderr and "Q3" in done.stdout, "until it expires")
    file.write_text("accepted:\n  - {id: Q3}\n")
    done = audit.run("--accepted", file)
    check.that(done.returncode == 2 and "reason is missing" in done.stderr, f"a reason is needed: {done.stderr.strip()}")
    disk.set_queue("nomerges", 0)


def answers(check, audit):
    text = audit.run("--all", "--markdown").stdout
    check.that("### ok " in text, "Markdown")
    check.that("advice needs 3 s" in audit.run().stdout, "the time that was measured is said")
    check.equal(audit.run("--min-observation", "-1").returncode, 2, "exit status of a wrong command line")
    alone = audit.state / "alone.yaml"
    alone.write_text('history: { directory: "" }\n')  # which may or may not have a minute by now
    blind = subprocess.run([rig.BINARY, "audit", "-c", alone, "--json", "--address", "127.0.0.1:1"], text=True,
                           capture_output=True, timeout=30, check=False)
    findings = json.loads(blind.stdout)["findings"]
    check.that("nothing is advised" in blind.stderr and findings and
               all(one["verdict"] not in ("advise",) for one in findings), "without a daemon nothing is advised")
    nobody = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/proc/self/fd/9", "audit",
                             "--address", "127.0.0.1:1", "--json"], text=True, capture_output=True, check=False,
                            preexec_fn=lambda: os.dup2(os.open(rig.BINARY, os.O_RDONLY), 9), close_fds=False)
    check.that(nobody.returncode == 0 and json.loads(nobody.stdout)["findings"], "any user may ask")


@contextmanager
def mounted(disk, mount):
    rig.run("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0", disk.path)
    rig.run("mount", disk.path, mount)
    try:
        yield
    finally:
        rig.run("umount", mount)


@contextmanager
def readers(disk, *files):
    """A few reads at a time on each file (or the disk), fewer than it could answer."""
    loads = [rig.Load(rig.fio_command(disk, 1, [{"filename": str(file)}], rw="randread", bs="4k", ioengine="psync", size="32M",
                                      numjobs=2, rate_iops=30, time_based=None, runtime=120), may_fail=True) for file in files]
    try:
        yield
    finally:
        for load in loads:
            load._process.terminate()
            load._process.communicate()


def waiting(check, state):
    """Reads wait for large discards on one disk, and for the page cache's bursts of writeback on the other."""
    for name in ("trimmed", "flushed", "asked", "files"):
        (state / name).mkdir()
    # A trim in one piece makes seconds in which no read ends.
    with controlled_disk(state / "trimmed", {"read": 0.002, "trim": 0.9, "reads_wait_for_trim": True}) as (trimmed, _), \
            controlled_disk(state / "flushed", {"read": 0.002, "bytes_per_second": 16 << 20}, 256 << 20, "keep=1") as (flushed, _), \
            mounted(flushed, state / "files"), much_may_wait():
        trimmed.set_queue("discard_max_bytes", 1 << 31)
        file = state / "files/read"
        rig.run("dd", "if=/dev/zero", f"of={file}", "bs=1M", "count=32", "conv=fsync")
        with rig.daemon(state, [trimmed, flushed]) as daemon:
            # Without the history, which has each minute only once it is over.
            (state / "asked/config.yaml").write_text(f"web: {{ listen_address: '127.0.0.1:{daemon.port}' }}\n"
                                                     f"devices: {{ include: [{trimmed.name}, {flushed.name}], exclude: [] }}\n"
                                                     "history: { directory: '' }\n")
            audit = Audit(check, daemon, state / "asked")
            with readers(trimmed, trimmed.path, file):
                time.sleep(USUAL)
                rig.side_by_side(
                    lambda: rig.run("blkdiscard", "--step", "32M", trimmed.path),
                    lambda: rig.run("dd", "if=/dev/zero", f"of={state / 'files/written'}", "bs=1M", "count=100", "conv=fsync"))
                end = time.monotonic() + BOOKED
                while time.monotonic() < end and "info" in (audit.finding("Q13", trimmed.name)["verdict"],
                                                            audit.finding("F13", "")["verdict"]):
                    time.sleep(1)
            audit.turned("Q13", trimmed.name, str(1 << 31), "advise", lambda: trimmed.queue("discard_max_bytes"),
                         "large discards that reads waited for")
            audit.turned("F13", "", MUCH, "advise", limits, "writes that waited in memory, and held up reads")


def watched(check, state, disk):
    """Does a running daemon export the danger by itself, and show it on its page?"""
    mount = state / "mnt"
    rig.run("mkfs.ext4", "-q", "-F", disk.path)
    disk.set_queue("write_cache", "write back")
    rig.run("mount", "-o", "nobarrier", disk.path, mount)
    try:
        with rig.daemon(state, [disk]) as daemon:
            def answer(path):
                with urllib.request.urlopen(f"http://127.0.0.1:{daemon.port}{path}", timeout=10) as page:
                    return page.read().decode()
            wanted = f'ssdpulse_audit_finding_info{{id="F7",device="{mount}",verdict="danger"}} 1'
            end = time.monotonic() + 30
            while wanted not in answer("/metrics") and time.monotonic() < end:
                time.sleep(0.5)
            check.that(wanted in answer("/metrics"), "the danger is a metric")
            check.that(any(str(mount) in one["what"] for one in json.loads(answer("/api/v1/status"))["findings"]),
                       "and on the page")
    finally:
        rig.run("umount", mount)


def is_documented(check):
    rules = rig.run(rig.BINARY, "audit", "--rules")
    check.that(rules in (Path(os.environ["SSDPULSE_SOURCE"]) / "deploy/docs/audit.md").read_text(),
               f"audit.md has the {len(rules.splitlines()) - 2} rules")


def test(check, state):
    is_documented(check)
    with rig.ram_disks(state, count=2, size="256M") as [disk, other]:
        with rig.daemon(state, [disk, other]) as daemon:
            audit = Audit(check, daemon, state)
            settings(check, audit, disk)
            too_few_requests(check, audit, disk)
            accepted(check, audit, disk)
            trims(check, audit, other, state)
            defaults_of_the_super_block(check, audit, other, state)
            memory(check, audit, other)
            partitions(check, audit, other)
            answers(check, audit)
        watched(check, state, other)
    with rig.ram_disks(state, count=2, size="512M", filled=False) as disks, rig.daemon(state, disks) as daemon:
        over_two_disks(check, Audit(check, daemon, state), *disks, state)
    waiting(check, state)


rig.main(test)
