# SPDX-License-Identifier: Apache-2.0
"""A volume's mean, median and 99th percentile are what fio felt, although the kernel's own account knows only whole ticks.

What iostat would say stands beside them in the table and is not judged: await, from the fields of /proc/diskstats that
sysstat divides.
"""
import figures
import machine
from lib import buckets, metrics
from volume_stacks import Fio, dm, memory_disks

KERNELS = ("5.10", "6.1", "6.12", "newest")
PART = "volumes"
MACHINE = {"own_time": True}
SECONDS = 600
DELAYS_MS = (1, 2, 3)
SIZE = 64 << 11  # sectors
LOADS = {"one at a time": {"ioengine": "psync", "number_ios": 1000}, "four at a time": {"iodepth": 4, "number_ios": 1000}}
FEW, FEW_SECONDS = 20, 30  # I/Os a second at random times, as iostat sees them each second
MEAN_TOLERANCE = 0.05
SHARES = {"p50": 0.5, "p99": 0.99}


def devices():
    return []


def ticks_per_second(vm):
    return round(float(vm.sh("jiffies() { sed -n 's/^jiffies: //p' /proc/timer_list | head -n 1; }; "
                             "set -- $(jiffies); sleep 4; echo $(($(jiffies) - $1))")) / 4)


def awaits(vm, names, readings=1):
    """{volume: (reads and writes, their milliseconds)} of each reading, a second apart."""
    text = vm.sh(f"cat /proc/diskstats; n=1; while [ $n -lt {readings} ]; do sleep 1; echo; cat /proc/diskstats; n=$((n + 1)); done")
    found = []
    for reading in text.split("\n\n"):
        lines = {words[2]: words for words in map(str.split, reading.splitlines())}
        found.append({name: (int(lines[name][3]) + int(lines[name][7]), int(lines[name][6]) + int(lines[name][10]))
                      for name in names})
    return found


def between(before, after, name):
    """In milliseconds; None where nothing ended."""
    ios, time = (late - early for early, late in zip(before[name], after[name]))
    return time / ios if ios else None


def compare(check, what, difference, volume, job):
    """Our figures and fio's in milliseconds, for the table."""
    words = []
    for operation in ("read", "write"):
        felt = job[operation]["clat_ns"]
        ours = difference.histogram("ssdpulse_volume_latency_seconds", volume=volume, operation=operation)
        check.equal(ours.count, job[operation]["total_ios"], f"{what}: {operation}s")
        mean = ours.sum / ours.count * 1e9
        check.that(abs(mean - felt["mean"]) <= MEAN_TOLERANCE * felt["mean"],
                   f"{what}: mean of {operation}s {mean / 1e6:.3f} ms, fio's {felt['mean'] / 1e6:.3f}")
        quantiles = {name: figures.quantile(ours.native, share) for name, share in SHARES.items()}
        fio = {name: felt["percentile"][f"{100 * share:.6f}"] for name, share in SHARES.items()}
        for name, bucket in quantiles.items():
            check.that(abs(bucket - buckets.latency_bucket(fio[name])) <= 1,
                       f"{what}: {name} of {operation}s in bucket {bucket}, fio's {buckets.latency_bucket(fio[name])} ({fio[name]} ns)")
        words += [f"{operation}s: ours mean {mean / 1e6:.2f}, " +
                  ", ".join(f"{name} {buckets.upper_bound(bucket) / 1e6:.2f}" for name, bucket in quantiles.items()) +
                  f"; fio mean {felt['mean'] / 1e6:.2f}, " + ", ".join(f"{name} {ns / 1e6:.2f}" for name, ns in fio.items())]
    return "; ".join(words)


def run(vm, check):
    vm.sh("modprobe dm_mod")
    disks = memory_disks(vm, len(DELAYS_MS), 128, [delay * 1_000_000 for delay in DELAYS_MS])
    volumes = {delay: dm(vm, f"after {delay} ms", f"linear /dev/{disk} 0", size=SIZE) for delay, disk in zip(DELAYS_MS, disks)}
    names = list(volumes.values())
    print(f"TABLE ticks a second: {ticks_per_second(vm)}")
    # Else some of fio's wakings would wait for the daemon, and one in a hundred is its 99th percentile.
    daemon = machine.Daemon(vm, environment="taskset 1")
    common = {"rw": "randrw", "bs": "4k", "cpus_allowed": 1}
    for delay, name in volumes.items():
        for load, options in LOADS.items():
            what = f"{delay} ms, {load}"
            before, [then] = daemon.at_rest(), awaits(vm, names)
            [(_, job)] = Fio(vm, [(name, {"filename": f"/dev/{name}", **common, **options})]).jobs()
            [now] = awaits(vm, names)
            words = compare(check, what, metrics.Difference(before, daemon.at_rest()), name, job)
            print(f"TABLE {what}: iostat await {between(then, now, name):.2f}; {words}")
    before = daemon.at_rest()
    fio = Fio(vm, [(name, {"filename": f"/dev/{name}", **common, "ioengine": "psync", "rate_iops": f"{FEW // 2},{FEW // 2}",
                           "rate_process": "poisson", "number_ios": FEW * FEW_SECONDS}) for name in names])
    readings = awaits(vm, names, FEW_SECONDS)
    jobs, difference = dict(fio.jobs()), metrics.Difference(before, daemon.at_rest())
    for delay, name in volumes.items():
        words = compare(check, f"{delay} ms, {FEW} a second", difference, name, jobs[name])
        seconds = [one for one in (between(*pair, name) for pair in zip(readings, readings[1:])) if one is not None]
        print(f"TABLE {delay} ms, {FEW} a second: iostat await between {min(seconds):.2f} and {max(seconds):.2f}; {words}")
    daemon.stop()
