# SPDX-License-Identifier: Apache-2.0
"""Reports from the field, each on its own drive: the spike that was felt has its cause, beginning and end; no others.

Nothing here is made for a detector: the drives do what real ones were seen to do, slowed down so far that an emulated
guest can show it, and the loads are sessions that think between two I/Os, as those of a database do.
"""
import re
import time
from collections import Counter
from dataclasses import dataclass

import machine
from devices import Nvme, NvmeSubsystem, Slow
from spike_lines import ahead

KERNELS = ("6.12",)  # what is judged does not depend on the kernel
PART = "spikes"  # CI replays spikes without a guest
MACHINE = {"append": "nvme_core.multipath=N"}
POLL_SECONDS = 10
FLOOR = 0.3  # seconds: an emulated guest is occasionally held up by its host, for less than that
WARM_UP, SICK, AFTERWARDS = 30, 9, 20  # seconds
ACCURACY = 2  # seconds
READ = 0.02  # what a healthy drive takes, unless its story differs
READERS = {"rw": "randread", "numjobs": 8, "thinktime": 100_000}
FIO = {"ioengine": "psync", "direct": 1, "bs": "4k", "thread": None, "norandommap": None, "time_based": None,
       "log_avg_msec": 1000, "log_max_value": 1, "log_unix_epoch": 1, "per_job_logs": 0}
TABLE = "/mnt/shop/table"
ACTIVE, TOTAL = "ssdpulse_latency_spike_active", "ssdpulse_latency_spikes_total"
SPIKE = re.compile(r"latency spike device=(\S+) operation=(read|write) cause=(\S+) begin=(\S+) seconds=([\d.]+)")


def devices():
    return [
        # The weekly fstrim: ext4, a drive on which no read passes a trim, a reader of one large file.
        Nvme("shop", Slow("512M", data=True)),
        # Commits: a log that is flushed after each write; reads wait for a flush, which is quick on a healthy drive.
        Nvme("ledger", Slow(read=READ, write=READ, flush=0.005, reads_wait_for_flush=True)),
        # The backup takes all that the drive can give, and other readers queue up.
        Nvme("archive", Slow(read=READ, bytes_per_second=6_000_000)),
        # It freezes, and counts nothing that could explain why.
        Nvme("frozen", Slow(read=READ)),
        # It moves reclaim units and is a hundred times slower while it does.
        NvmeSubsystem("churn", Slow(read=0.01, write=0.01), fdp="fdp.runs=1M,fdp.nrg=1,fdp.nruh=4"),
        # The nightly report: larger I/O, well within what the drive can do, flushed as it goes.
        Nvme("nightly", Slow(read=READ, write=READ, flush=0.05, bytes_per_second=60_000_000)),
    ]


@dataclass
class Spike:
    device: str
    operation: str
    cause: str
    begin: float  # by this host's clock
    end: float

    def same_as(self, other):
        return ((self.device, self.operation) == (other.device, other.operation)
                and self.begin - ACCURACY <= other.end and other.begin <= self.end + ACCURACY)


def fio(name, target, **options):
    """A background load. The time of its slowest I/O in each second will be in /tmp/NAME_lat.log."""
    words = {"name": name, "filename": target, "write_lat_log": f"/tmp/{name}", **FIO, **options}
    return ("fio " + " ".join(f"--{key}" if value is None else f"--{key}={value}" for key, value in words.items())
            + f" >/tmp/{name}.words 2>&1 & ")


def make_shop(vm, disk):
    """Small groups of blocks, because ext4 sends one trim for the free space of each: a large drive has thousands."""
    vm.sh("modprobe ext4; mke2fs -q -F -t ext4 -O ^flex_bg -g 8192 -E lazy_itable_init=0,lazy_journal_init=0 "
          f"/dev/{disk} && mkdir -p /mnt/shop && mount -t ext4 -o noatime /dev/{disk} /mnt/shop && "
          f"dd if=/dev/zero of={TABLE} bs=1M count=64 conv=fsync 2>/dev/null", 120)
    vm.devices["shop"].backend.set(read=READ, write=READ, trim=0.65, reads_wait_for_trim=True)


def start_loads(vm, disks):
    """The sessions; returns when all of them have done I/O."""
    forever = {"runtime": 600}  # ended when everything has been seen
    targets = {serial: f"/dev/{disk}" for serial, disk in disks.items()} | {"shop": TABLE}
    counts = {serial: f"$(awk '{{ print $1 }}' /sys/block/{disk}/stat)" for serial, disk in disks.items()}
    before = dict(zip(counts, vm.sh("echo " + " ".join(counts.values())).split()))
    vm.sh("".join(fio(f"{serial}-readers", target, **READERS, **forever) for serial, target in targets.items())
          + fio("ledger-log", targets["ledger"], rw="write", size="16M", fsync=1, thinktime=20_000, **forever)
          + fio("churn-writers", targets["churn"], **{**READERS, "rw": "randwrite"}, **forever))
    vm.wait_for(" && ".join(f"[ {counts[serial]} -gt {int(before[serial]) + 100} ]" for serial in counts), 60)


def sicken(vm, check, daemon, disks):
    """Everything goes wrong at once, and recovers SICK seconds later. Returns what should have been noticed."""
    backends = {serial: vm.devices[serial].backend for serial in disks}
    for serial in ("shop", "archive"):
        backends[serial].forget_seen()
    began = time.time()
    backends["ledger"].set(flush=0.7)
    backends["churn"].set(read=1, write=1)
    backends["frozen"].stall(SICK)
    update = f"nvme fdp update /dev/{disks['churn']} --pids=0"
    queued = {"ioengine": "libaio", "runtime": SICK}
    vm.sh(f"touch /tmp/moving; while [ -e /tmp/moving ]; do {update}; sleep 1; done >/tmp/mover 2>&1 & "
          "fstrim /mnt/shop >/tmp/fstrim 2>&1 & "
          + fio("backup", f"/dev/{disks['archive']}", rw="read", bs="128k", iodepth=32, **queued)
          + fio("report", f"/dev/{disks['nightly']}", rw="randrw", bs="64k", iodepth=2, fsync=32, **queued))
    time.sleep(max(0, began + SICK - 2 - time.time()))
    active = {(dict(labels)["device"], dict(labels)["operation"]) for labels, value
              in daemon.scrape().series(ACTIVE).items() if value}
    time.sleep(max(0, began + SICK - time.time()))
    vm.sh("rm /tmp/moving")
    backends["ledger"].set(flush=0.005)
    backends["churn"].set(read=0.01, write=0.01)
    ended = time.time()
    vm.wait_for("! pidof fstrim && grep -q 'Run status' /tmp/backup.words", 30)
    expected = [Spike(disks["shop"], "read", "discard", *backends["shop"].seen()),
                Spike(disks["ledger"], "read", "flush", began, ended),
                Spike(disks["archive"], "read", "saturation", *backends["archive"].seen()),
                Spike(disks["frozen"], "read", "unknown", began, began + SICK),
                Spike(disks["churn"], "read", "gc", began, ended),
                Spike(disks["churn"], "write", "gc", began, ended)]
    active = {(device, operation) for device, operation in active if operation in ("read", "write")}
    check.equal(active, {(spike.device, spike.operation) for spike in expected}, "under way near the end")
    return expected


def told(words, offset):
    return [Spike(device, operation, cause, machine.wall_seconds(begin) - offset,
                  machine.wall_seconds(begin) + float(seconds) - offset)
            for device, operation, cause, begin, seconds in SPIKE.findall(words)]


def match(expected, found):
    """[(expected, found)], with None where one has no counterpart."""
    rest, pairs = list(found), []
    for spike in expected:
        same = max(filter(spike.same_as, rest), key=lambda one: one.end - one.begin, default=None)
        if same is not None:
            rest.remove(same)
        pairs.append((spike, same))
    return pairs + [(None, spike) for spike in rest]


def show_felt(vm, disks, expected, offset):
    """What the loads themselves report: the slowest I/O that ended in each second, from before the trouble to after."""
    first, last = min(spike.begin for spike in expected) - 4, max(spike.end for spike in expected) + 6
    for name in (*(f"{serial}-readers" for serial in disks), "ledger-log", "churn-writers", "backup", "report"):
        slowest = Counter()
        for line in vm.sh(f"cat /tmp/{name}_lat.log").splitlines():
            when, took = map(int, line.split(",")[:2])
            second = int((when / 1000 - offset - first) // 1)
            slowest[second] = max(slowest[second], took / 1e9)
        print(f"     felt by {name:15}: " + " ".join(f"{slowest[second]:.2f}" for second in range(int(last - first))))
        everywhere = max(slowest.values(), default=0)
        outside = max((took for second, took in slowest.items() if not -1 <= second <= last - first), default=0)
        print(f"     {'':24}  {everywhere:.2f} s at most, {outside:.2f} s at other times")


def judge(check, names, expected, found):
    pairs, off, table = match(expected, found), {"begin": [], "end": []}, Counter()
    for want, have in pairs:
        table[want.cause if want else "none", have.cause if have else "none"] += 1
        one = want or have
        line = (f"{names[one.device]:8} {one.operation:6} expected {want.cause if want else 'nothing':10} found "
                f"{have.cause if have else 'nothing':10}")
        if want and have:
            begin, end = have.begin - want.begin, have.end - want.end
            off["begin"].append(begin)
            off["end"].append(end)
            line += f" begin {begin:+.2f} s, end {end:+.2f} s, of {want.end - want.begin:.1f} s"
        print(f"NOTE {line}")
    causes = sorted({cause for pair in table for cause in pair})
    print("NOTE expected \\ found " + " ".join(f"{cause:>10}" for cause in causes))
    for row in causes:
        print(f"NOTE {row:>16} " + " ".join(f"{table[row, column]:10}" for column in causes))
    right = sum(want is not None and have is not None and want.cause == have.cause for want, have in pairs)
    precision, recall = right / max(1, len(found)), right / len(expected)
    furthest = {edge: max(map(abs, seconds), default=float("inf")) for edge, seconds in off.items()}
    print(f"TABLE spikes of the field: precision {precision:.2f}, recall {recall:.2f}, off by at most "
          f"{furthest['begin']:.1f} s (begin) and {furthest['end']:.1f} s (end)")
    check.that(precision >= 0.95, f"precision {precision:.2f}")
    check.that(recall >= 0.95, f"recall {recall:.2f}")
    for edge, seconds in furthest.items():
        check.that(seconds <= ACCURACY, f"{edge}: off by {seconds:.2f} s at most")
    check.that(all(names[spike.device] != "nightly" for spike in found), "nightly: nothing was wrong, nothing is said")


def run(vm, check):
    disks = {serial: vm.disk(serial) for serial in vm.devices}
    make_shop(vm, disks["shop"])
    vm.sh(f"printf 'nvme: {{ poll_interval: {POLL_SECONDS}s }}\\nspikes: {{ floor: {FLOOR * 1000:.0f}ms }}\\n"
          "history: { directory: \"\" }\\n' >/tmp/field.yaml")
    daemon = machine.Daemon(vm, "--config", "/tmp/field.yaml")
    start_loads(vm, disks)
    daemon.when_drives_were_read(len(disks), 0)
    time.sleep(WARM_UP)
    offset, took = ahead(vm)
    expected = sicken(vm, check, daemon, disks)
    time.sleep(AFTERWARDS)
    daemon.wait_for(lambda scrape: not any(scrape.series(ACTIVE).values()), "all spikes are over", 60)
    time.sleep(POLL_SECONDS + 2)  # what the drives report about it comes last
    later, took_later = ahead(vm)
    print(f"     the guest's clock is ahead by {offset:.3f} s (read in {took:.3f} s), then {later:.3f} s "
          f"({took_later:.3f} s)")
    scrape, words = daemon.scrape(), daemon.words()
    vm.sh("for pid in $(pidof fio); do kill -INT $pid; done; n=0; while pidof fio; do sleep 0.2; n=$((n + 1)); "
          "[ $n -lt 100 ] || exit 1; done")
    show_felt(vm, disks, expected, offset)
    lines = [line for line in words.splitlines() if SPIKE.search(line)]
    print("     " + "\n     ".join(lines))
    found = told(words, offset)
    check.equal(len(found), len(lines), "lines of the log that say all of a spike")
    mute = [line for line in lines if " cause=unknown " in line and not re.search(r' missing="[^"]', line)]
    check.equal(mute, [], "lines that know no cause and do not say what is missing")
    judge(check, {disk: serial for serial, disk in disks.items()}, expected, found)
    counted = {tuple(dict(labels)[key] for key in ("device", "operation", "cause")): int(value)
               for labels, value in scrape.series(TOTAL).items()
               if value and dict(labels)["operation"] in ("read", "write")}
    check.equal(counted, dict(Counter((spike.device, spike.operation, spike.cause) for spike in found)),
                "counted as they are told")
    daemon.stop()
    vm.sh("umount /mnt/shop")
