# SPDX-License-Identifier: Apache-2.0
"""XFS on RAID-0 of four drives is trimmed by its mount and by fstrim: audit says what each costs, as the drives' own logs have it."""
import statistics
import time

import decisions
from devices import Nvme, Slow

KERNELS = ("6.12",)  # what is judged lies above the kernel
PART = "decisions"
MACHINE = {"append": "nvme_core.multipath=N", "memory": "2G", "nice": -10}
SECONDS = 1500
NAMES = ("wheel0", "wheel1", "wheel2", "wheel3")
READ, TRIM, WAIT_OF_FSTRIM = 0.002, 0.05, 0.4  # seconds: of a read, of a small discard, of a large one beside that
LARGE = 8 << 20  # bytes of a discard that only fstrim sends
WINDOW, EVERY = 360, 15  # seconds of load: minutes of history; between two runs of fstrim
WAY = 0.010  # seconds at most from the guest's block layer to the drive and back
MOUNT = "/mnt/db"
TIMER = "/etc/systemd/system/timers.target.wants/fstrim.timer"
LOADS = {  # of a document database: reads, a journal, files that come and go as it compacts them
    "reads": f"while :; do fio --name=r --filename={MOUNT}/data --size=192M --rw=randread --bs=4k --direct=1 --iodepth=32 "
             "--ioengine=libaio --time_based --runtime=600 --rate_iops=900 --output=/tmp/r.json --output-format=json; done",
    "journal": f"while :; do dd if=/dev/zero of={MOUNT}/journal bs=16k count=4 conv=notrunc,fsync; sleep 0.2; done",
    "compaction": f"while :; do dd if=/dev/zero of={MOUNT}/segment bs=1M count=2 conv=fsync; rm {MOUNT}/segment; sync; "
                  "sleep 0.3; done",
}


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


def work(vm, seconds, fstrim):
    """What the timer would do is done here: nobody else is there to do it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(EVERY)
        if fstrim:
            vm.sh(f"fstrim {MOUNT}", 120)


def waits(vm, name, since, until):
    """Seconds that the drive held up reads behind trims, by its own log."""
    return [seconds + READ for end, kind, seconds, _ in vm.devices[name].backend.added()
            if kind == "read" and since <= end < until and seconds > 0.01]


def p99(values):
    return statistics.quantiles(values, n=100)[98]


def run(vm, check):
    disks = [vm.disk(name) for name in NAMES]
    build(vm, disks)
    host = decisions.Host(vm)
    database = Database(vm)
    database.start()
    times = [time.time()]
    work(vm, WINDOW, fstrim=True)
    times.append(time.time())
    decisions.show("audit", host.audit())
    decisions.show("audit -v", host.audit("-v"))
    one = host.finding("F1", MOUNT)
    evidence = one["evidence"]
    check.equal((one["verdict"], one["observed_by"]), ("advise", "history"), f"F1: {one['found']}: {one['why']}")
    fstrim, online = (evidence[f"{way}_excess_seconds_per_day"] for way in ("fstrim", "online"))
    check.that(fstrim > 0 and online > 0, f"what each costs: fstrim {fstrim:.0f}, online {online:.0f} s a day")
    check.equal("fstrim.timer" in one["change"], fstrim > online, f"the dearer one goes: {one['change']}")
    total = sum(seconds for name in NAMES for end, kind, seconds, _ in vm.devices[name].backend.added()
                if kind == "read" and times[0] <= end < times[1])
    observed = one["observed_seconds"]
    counted = (fstrim + online) * observed / 86400
    print(f"TABLE both_trims: waited behind trims {total:.1f} s by the drives, {counted:.1f} s at most by the audit")
    check.that(0.7 * total <= counted <= 2.5 * total, f"costs: {counted:.1f} s, the drives say {total:.1f} s")
    vm.sh(f"rm {TIMER}")  # systemctl disable --now fstrim.timer
    host.mark("fstrim.timer disabled")
    times.append(time.time() + 2)
    work(vm, WINDOW, fstrim=False)
    times.append(time.time())
    database.stop()
    check.that(host.finding("F1", MOUNT)["verdict"] == "ok", "gone")
    words = host.report("--change", "last", "--settle", "1m", "--device", disks[0])
    decisions.show("report", words)
    check.that("time is scaled: a minute of the history was 1 s" in words, "the report says that time is scaled")
    row = host.rows(disks[0], "--change", "last", "--settle", "1m")["read.beside_discard.p99"]
    before, after = (p99(waits(vm, NAMES[0], *span)) for span in ((times[0], times[1]), (times[2], times[3])))
    least, most = after / (before + WAY), (after + WAY) / before
    low, high = ((row["change"] or {}).get(side) or 0 for side in ("lower", "upper"))
    print(f"TABLE both_trims: drive's own ratio {after / before:.3f}, with the way to it {least:.3f} to {most:.3f}, report {low:.3f} to "
          f"{high:.3f}, {row['verdict']} of {row['n_before']:.0f} and {row['n_after']:.0f} reads")
    check.equal(row["verdict"], "better", f"reads beside discards: {row['before']} to {row['after']}")
    check.that(low <= most and least <= high, "the interval holds the drive's own ratio, or that with the way")
    host.daemon.stop()
