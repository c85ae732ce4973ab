# SPDX-License-Identifier: Apache-2.0
"""XFS on RAID-0 is trimmed by its mount and by fstrim: audit reports what each costs, as the drives' own logs have it."""
import random
import statistics
import time

import decisions
from devices import Nvme, Slow

KERNELS = ("6.12",)  # what is judged does not depend on the kernel
PART = "decisions"
MACHINE = {"append": "nvme_core.multipath=N", "memory": "2G", "nice": -10}
SECONDS = 3300
SERIALS = ("stripe0", "stripe1", "stripe2", "stripe3")
READ_SECONDS, SMALL_TRIM_SECONDS, LARGE_TRIM_MORE_SECONDS = 0.002, 0.04, 1.0  # the last on top of the second
LARGE_TRIM_BYTES = 8 << 20  # from this on, only fstrim sends it
BEFORE_SECONDS = 600  # of load; each is a minute of the history
AFTER_SECONDS = 1260  # a drive then has 3 reads a second during a discard, and the report needs 3000
PAUSE_SECONDS = (8, 16)  # at least and at most, between two runs of fstrim
HELD_UP_SECONDS = 0.01  # a line in a drive's log with less is of a read that was late by itself (slow_disk.py)
MAX_TRANSPORT_SECONDS = 0.010  # from the guest's block layer to the drive and back
READS_PER_SECOND = 500  # of all drives: so few that what waited for fstrim is made up for in the pause
COST_RATIOS = (0.7, 2.5)  # at least and at most, the audit's cost over the drives': it reports an upper bound
SHARE_TOLERANCE = 0.2  # by which fstrim's share of all waiting may be off
MOUNT = "/mnt/db"
TIMER = "/etc/systemd/system/timers.target.wants/fstrim.timer"


def paced(command, hundredths):
    """Runs the command every so many hundredths of a second (less than 100): delays are made up for, so that stalls do not
    change the load.
    """
    clock = "read -r up rest </proc/uptime; now=${up%.*}${up#*.}"
    return (f"{clock}; next=$now; while :; do {command}; next=$((next + {hundredths})); {clock}; left=$((next - now)); "
            "[ $left -le 0 ] || sleep $(printf 0.%02d $left); done")


LOADS = {  # of a document database: reads, a journal, files that it creates and deletes as it compacts
    "reads": f"fio --name=r --filename={MOUNT}/data --size=192M --rw=randread --bs=4k --direct=1 --iodepth=32 --thread "
             f"--ioengine=libaio --time_based --runtime=7200 --rate_iops={READS_PER_SECOND} --output=/tmp/r.json "
             "--output-format=json",
    "journal": paced(f"dd if=/dev/zero of={MOUNT}/journal bs=16k count=4 conv=notrunc,fsync", 40),
    "compaction": paced(f"dd if=/dev/zero of={MOUNT}/segment bs=1M count=2 conv=fsync; rm {MOUNT}/segment; sync", 40),
}
SYSTEMCTL = f"""#!/bin/sh
# There is no systemd here: what the advice needs of it.
case "$*" in
  "disable --now fstrim.timer") rm {TIMER} ;;
  "enable --now fstrim.timer") ln -s /usr/lib/systemd/system/fstrim.timer {TIMER} ;;
  *) echo "systemctl $*" >&2; exit 1 ;;
esac
"""


def devices():
    slow_fstrim = {"kind": "trim", "at_least": LARGE_TRIM_BYTES, "seconds": LARGE_TRIM_MORE_SECONDS}
    return [Nvme(serial, Slow("160M", data=True, read=READ_SECONDS, write=0.001, flush=0.001, trim=SMALL_TRIM_SECONDS,
                              reads_wait_for_trim=True, added=[slow_fstrim])) for serial in SERIALS]


class Database:
    def __init__(self, vm):
        self._vm, self._pids = vm, []

    def start(self):
        for name, script in LOADS.items():
            self._vm.sh(f"cat >/tmp/{name}.sh <<'END'\n{script}\nEND")
            self._pids.append(self._vm.sh(f"setsid dash /tmp/{name}.sh >/dev/null 2>&1 & echo $!"))

    def stop(self):
        self._vm.sh("for p in " + " ".join(self._pids) + "; do kill -9 -$p; done 2>/dev/null; sleep 1")
        self._pids = []


def build(vm, disks):
    vm.sh("modprobe -a raid0 xfs; mdadm --create /dev/md0 --run --level=0 --raid-devices=4 --chunk=64 "
          + " ".join(f"/dev/{disk}" for disk in disks) + " 2>&1", 120)
    vm.sh(f"mkfs.xfs -q -f -K /dev/md0 && mkdir -p {MOUNT} && mount -t xfs -o discard /dev/md0 {MOUNT} && "
          f"mkdir -p /etc && echo '/dev/md0 {MOUNT} xfs discard 0 0' >/etc/fstab && dd if=/dev/zero of={MOUNT}/data bs=1M count=192 "
          "conv=fsync", 180)
    vm.sh(f"mkdir -p $(dirname {TIMER}) /usr/lib/systemd/system; printf '[Timer]\\nOnCalendar=weekly\\n' "
          f">/usr/lib/systemd/system/fstrim.timer; ln -s /usr/lib/systemd/system/fstrim.timer {TIMER}")
    vm.sh(f"cat >/usr/sbin/systemctl <<'END'\n{SYSTEMCTL}END\nchmod 755 /usr/sbin/systemctl")


def work(vm, seconds, pauses):
    """Lets the load run, and runs fstrim in place of its timer while that is enabled. Returns when that was, as (begin, end)."""
    since, began, runs, took = time.time(), time.monotonic(), 0, 0
    while time.monotonic() < began + seconds:
        time.sleep(pauses.uniform(*PAUSE_SECONDS))
        if vm.run(f"[ -L {TIMER} ]")[0] == 0:
            start = time.monotonic()
            vm.sh(f"fstrim {MOUNT}", 120)
            runs, took = runs + 1, took + time.monotonic() - start
    print(f"{time.monotonic() - began:.0f} s of load, {runs} runs of fstrim, {took:.0f} s")
    return since, time.time()


class Waits:
    """Reads that a drive held up behind trims, by its own log. All times are seconds by the host's wall clock."""

    def __init__(self, vm, serial):
        held_up = vm.devices[serial].backend.added()
        self._waits = [(end - READ_SECONDS - seconds, end - READ_SECONDS, seconds) for end, kind, seconds, _ in held_up
                       if kind == "read" and seconds > HELD_UP_SECONDS]
        self._large_trims = [(end - seconds, end) for end, kind, seconds, _ in held_up if kind == "trim"]  # small ones have no line

    def latencies(self, since, until):
        """Of the reads that waited."""
        return [seconds + READ_SECONDS for _, end, seconds in self._waits if since <= end < until]

    def total(self, since, until):
        return sum(seconds for _, end, seconds in self._waits if since <= end < until)

    def behind_fstrim(self, since, until):
        """The part of the total that overlapped a large trim."""
        return sum(seconds for begin, end, seconds in self._waits if since <= end < until
                   and any(begin < trim_end and trim_begin < end for trim_begin, trim_end in self._large_trims))


def p99(values):
    return statistics.quantiles(values, n=100)[98]


def apply(vm, database, change):
    """Runs the commands that a finding advises, unchanged."""
    unmounts = "umount" in change
    if unmounts:
        database.stop()
    vm.sh(change)
    if unmounts:
        database.start()


def judge_costs(vm, check, finding, window):
    """What the audit reports about each way to trim, against the drives' logs; it must advise to end the costlier one."""
    logs = [Waits(vm, serial) for serial in SERIALS]
    total = sum(log.total(*window) for log in logs)
    by_fstrim = sum(log.behind_fstrim(*window) for log in logs)
    fstrim, online = (finding["evidence"][f"{way}_excess_seconds_per_day"] for way in ("fstrim", "online"))
    counted = (fstrim + online) * finding["observed_seconds"] / 86400
    least, most = (ratio * total for ratio in COST_RATIOS)
    true_share, share = by_fstrim / total, fstrim / (fstrim + online)
    print(f"TABLE both_trims: waited behind trims {total:.1f} s by the drives, {counted:.1f} s at most by the audit; of that for "
          f"fstrim {true_share:.2f} and {share:.2f}")
    check.that(fstrim > 0 and online > 0, f"what each costs: fstrim {fstrim:.0f}, online {online:.0f} s a day")
    check.that(least <= counted <= most, f"costs: {counted:.1f} s, the drives say {total:.1f} s")
    check.that(abs(share - true_share) <= SHARE_TOLERANCE, f"share of fstrim: {share:.2f}, the drives say {true_share:.2f}")
    check.equal("fstrim.timer" in finding["change"], true_share > 0.5, f"it ends the costlier one: {finding['change']}")


def run(vm, check):
    disks = [vm.disk(serial) for serial in SERIALS]
    build(vm, disks)
    host = decisions.Host(vm)
    database, pauses = Database(vm), random.Random(1)
    database.start()
    before_change = work(vm, BEFORE_SECONDS, pauses)
    decisions.show("audit", host.audit())
    decisions.show("audit -v", host.audit("-v"))
    finding = host.finding("F1", MOUNT)
    check.equal((finding["verdict"], finding["observed_by"]), ("advise", "history"), f"F1: {finding['found']}: {finding['why']}")
    judge_costs(vm, check, finding, before_change)
    apply(vm, database, finding["change"])
    host.mark("trimmed in one way")
    settled = time.time() + 2  # after the report's --settle, which is 1 s here
    _, end = work(vm, AFTER_SECONDS, pauses)
    check.equal(host.finding("F1", MOUNT)["verdict"], "ok", "F1 once the change is made")
    words = host.report("--change", "last", "--settle", "1m", "--device", disks[0])
    database.stop()
    decisions.show("report", words)
    check.that("time is scaled: a minute of the history was 1 s" in words, "the report says that time is scaled")
    row = host.rows(disks[0], "--change", "last", "--settle", "1m")["read.during_discard.p99"]
    log = Waits(vm, SERIALS[0])
    before, after = (p99(log.latencies(*span)) for span in (before_change, (settled, end)))
    drive_low, drive_high = after / (before + MAX_TRANSPORT_SECONDS), (after + MAX_TRANSPORT_SECONDS) / before
    low, high = ((row["change"] or {}).get(side) or 0 for side in ("lower", "upper"))
    print(f"TABLE both_trims: drive's own ratio {after / before:.3f}, with the transport {drive_low:.3f} to {drive_high:.3f}, "
          f"report {low:.3f} to {high:.3f}, {row['verdict']} of {row['n_before']:.0f} and {row['n_after']:.0f} reads")
    check.equal(row["verdict"], "better" if after < before else "worse",
                f"reads during discards: {row['before']} to {row['after']}: {row.get('reason')}")
    check.that(low <= drive_high and drive_low <= high, "the interval holds the drive's own ratio, or one with the transport")
    host.daemon.stop()
