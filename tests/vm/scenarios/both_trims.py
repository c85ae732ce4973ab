# SPDX-License-Identifier: Apache-2.0
"""XFS on RAID-0 of four drives is trimmed by its mount and by fstrim: audit gives each one's cost as drives log it."""
import random
import statistics
import time

import decisions
from devices import Nvme, Slow

KERNELS = ("6.12",)  # what is judged does not depend on the kernel
PART = "decisions"
MACHINE = {"append": "nvme_core.multipath=N", "memory": "2G", "nice": -10}
SECONDS = 3300
NAMES = ("wheel0", "wheel1", "wheel2", "wheel3")
READ, TRIM, WAIT_OF_FSTRIM = 0.002, 0.04, 1.0  # seconds: of a read, of a small discard, of a large one on top of that
LARGE = 8 << 20  # bytes of a discard that only fstrim sends
WINDOW, AFTER, PAUSE = 600, 1260, (8, 16)  # seconds of load: minutes of history; least and most between two runs of fstrim
# AFTER: a drive then has 3 reads a second during a discard, and the report needs 3000.
WAY = 0.010  # seconds at most from the guest's block layer to the drive and back
READS = 500  # a second, of all drives: so few that what waited for fstrim is made up for in the pause
CLOSE = 0.2  # by which fstrim's share of all waiting may be off
MOUNT = "/mnt/db"
TIMER = "/etc/systemd/system/timers.target.wants/fstrim.timer"


def paced(command, hundredths):
    """Equally often, however long one takes: delays are made up for, so that stalls do not change the load."""
    clock = "read -r up rest </proc/uptime; now=${up%.*}${up#*.}"
    return (f"{clock}; next=$now; while :; do {command}; next=$((next + {hundredths})); {clock}; left=$((next - now)); "
            "[ $left -le 0 ] || sleep $(printf 0.%02d $left); done")


LOADS = {  # of a document database: reads, a journal, files that it creates and deletes as it compacts
    "reads": f"fio --name=r --filename={MOUNT}/data --size=192M --rw=randread --bs=4k --direct=1 --iodepth=32 --thread "
             f"--ioengine=libaio --time_based --runtime=7200 --rate_iops={READS} --output=/tmp/r.json --output-format=json",
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
    return [Nvme(name, Slow("160M", data=True, read=READ, write=0.001, flush=0.001, trim=TRIM,
                            reads_wait_for_trim=True,
                            added=[{"kind": "trim", "at_least": LARGE, "seconds": WAIT_OF_FSTRIM}])) for name in NAMES]


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
    """Does what the timer would do, while it is enabled: nothing else does it here."""
    began, runs, took = time.monotonic(), 0, 0
    while time.monotonic() < began + seconds:
        time.sleep(pauses.uniform(*PAUSE))
        if vm.run(f"[ -L {TIMER} ]")[0] == 0:
            start = time.monotonic()
            vm.sh(f"fstrim {MOUNT}", 120)
            runs, took = runs + 1, took + time.monotonic() - start
    print(f"{time.monotonic() - began:.0f} s of load, {runs} runs of fstrim, {took:.0f} s")


class Waits:
    """Seconds by which a drive held up reads behind trims, by its own log."""

    def __init__(self, vm, name):
        added = vm.devices[name].backend.added()
        self._reads = [(end - READ - seconds, end - READ, seconds) for end, kind, seconds, _ in added
                       if kind == "read" and seconds > 0.01]
        self._large = [(end - seconds, end) for end, kind, seconds, _ in added if kind == "trim"]  # others are usual

    def between(self, since, until):
        return [seconds + READ for _, end, seconds in self._reads if since <= end < until]

    def behind_fstrim(self, since, until):
        """The sum of those that overlapped a large trim."""
        return sum(seconds for begin, end, seconds in self._reads if since <= end < until
                   and any(begin < last and first < end for first, last in self._large))


def p99(values):
    return statistics.quantiles(values, n=100)[98]


def make(vm, database, change):
    """What a finding advises, word for word."""
    in_the_way = "umount" in change
    if in_the_way:
        database.stop()
    vm.sh(change)
    if in_the_way:
        database.start()


def judge_costs(vm, check, one, window):
    """What the audit reports about each way, against the drives' logs; the share of fstrim decides which one goes."""
    logs = [Waits(vm, name) for name in NAMES]
    total = sum(sum(log.between(*window)) - READ * len(log.between(*window)) for log in logs)
    by_fstrim = sum(log.behind_fstrim(*window) for log in logs)
    fstrim, online = (one["evidence"][f"{way}_excess_seconds_per_day"] for way in ("fstrim", "online"))
    counted = (fstrim + online) * one["observed_seconds"] / 86400
    true_share, share = by_fstrim / total, fstrim / (fstrim + online)
    print(f"TABLE both_trims: waited behind trims {total:.1f} s by the drives, {counted:.1f} s at most by the audit; of that for "
          f"fstrim {true_share:.2f} and {share:.2f}")
    check.that(fstrim > 0 and online > 0, f"what each costs: fstrim {fstrim:.0f}, online {online:.0f} s a day")
    check.that(0.7 * total <= counted <= 2.5 * total, f"costs: {counted:.1f} s, the drives say {total:.1f} s")
    check.that(abs(share - true_share) <= CLOSE, f"share of fstrim: {share:.2f}, the drives say {true_share:.2f}")
    check.equal("fstrim.timer" in one["change"], true_share > 0.5, f"the dearer one goes: {one['change']}")


def run(vm, check):
    disks = [vm.disk(name) for name in NAMES]
    build(vm, disks)
    host = decisions.Host(vm)
    database, pauses = Database(vm), random.Random(1)
    database.start()
    times = [time.time()]
    work(vm, WINDOW, pauses)
    times.append(time.time())
    decisions.show("audit", host.audit())
    decisions.show("audit -v", host.audit("-v"))
    one = host.finding("F1", MOUNT)
    check.equal((one["verdict"], one["observed_by"]), ("advise", "history"), f"F1: {one['found']}: {one['why']}")
    judge_costs(vm, check, one, times)
    make(vm, database, one["change"])
    host.mark("trimmed in one way")
    times.append(time.time() + 2)
    work(vm, AFTER, pauses)
    times.append(time.time())
    check.equal(host.finding("F1", MOUNT)["verdict"], "ok", "gone")
    words = host.report("--change", "last", "--settle", "1m", "--device", disks[0])
    database.stop()
    decisions.show("report", words)
    check.that("time is scaled: a minute of the history was 1 s" in words, "the report says that time is scaled")
    row = host.rows(disks[0], "--change", "last", "--settle", "1m")["read.during_discard.p99"]
    log = Waits(vm, NAMES[0])
    before, after = (p99(log.between(*span)) for span in ((times[0], times[1]), (times[2], times[3])))
    least, most = after / (before + WAY), (after + WAY) / before
    low, high = ((row["change"] or {}).get(side) or 0 for side in ("lower", "upper"))
    print(f"TABLE both_trims: drive's own ratio {after / before:.3f}, with the way to it {least:.3f} to {most:.3f}, report {low:.3f} to "
          f"{high:.3f}, {row['verdict']} of {row['n_before']:.0f} and {row['n_after']:.0f} reads")
    check.equal(row["verdict"], "better" if after < before else "worse",
                f"reads during discards: {row['before']} to {row['after']}: {row.get('reason')}")
    check.that(low <= most and least <= high, "the interval holds the drive's own ratio, or that with the way")
    host.daemon.stop()
