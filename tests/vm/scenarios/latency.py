# SPDX-License-Identifier: Apache-2.0
"""The latency that the backend was set to is exported, within one bucket of what the guest's program felt.

Also while a backend stands still: pending I/O, on a partition too, is in flight and not lost."""

import figures
import machine
from devices import Nvme, Slow
from lib import buckets, metrics

KERNELS_IN_CI = ("newest",)  # the long form has all
MACHINE = {"append": "nvme_core.multipath=N", "nice": -10}  # a polling fio must not wait for other guests
SHARES_GUEST = True
# Between the kernel's stamps and fio's lie a system call and, with interrupts, the waking of a sleeper: in an emulated
# guest 150 to 300 us, more than a bucket at 1 ms. Polled, it is 25 to 100 us, on a slow host up to 200; but polling
# keeps others from running.
STEPS = {0.001: {"number_ios": 300, "iodepth": 1, "ioengine": "io_uring", "hipri": None},
         0.010: {"number_ios": 100, "iodepth": 1}, 0.100: {"number_ios": 96, "iodepth": 8}}  # seconds: load
WAY_TO_FIO_NS = 200_000
TRIES = 5
STALL = 25  # seconds at most: Linux gives up on a command after 30
TOTAL = "ssdpulse_io_latency_seconds"


def devices():
    return [Nvme("ours", Slow("256M"))]


def set_poll_queues(vm, number):
    """The driver reads how many are wanted when it binds a drive. Returns the drive's name."""
    vm.sh(f"address=$(basename $(readlink -f /sys/block/{vm.disk('ours')}/device/device)); "
          f"echo {number} >/sys/module/nvme/parameters/poll_queues; "
          "cd /sys/bus/pci/drivers/nvme && echo $address >unbind && echo $address >bind")
    return vm.disk("ours")


def load(vm, daemon, disk, delay, options):
    """fio's median latencies in nanoseconds, and what the daemon counted. Where fio itself felt far more than `delay`,
    the host had no time for the guest: the load is repeated."""
    for _ in range(TRIES):
        before = daemon.at_rest(1.2)
        job = vm.fio(disk, rw="randrw", bs="4k", **options)
        difference = metrics.Difference(before, daemon.at_rest(2.2))
        felt = {operation: job[operation]["lat_ns"]["percentile"]["50.000000"] for operation in ("read", "write")}
        if max(felt.values()) <= (1.12 * delay + 0.001) * 1e9:
            break
        print(f"AGAIN {vm.name} latency: the guest felt {felt} ns")
    return felt, difference


def slow_commits(vm, check, daemon, disk, backend):
    """Writes are as quick as ever; fsync waits for the flush."""
    backend.set(read=0, write=0, flush=0.1)
    before = daemon.at_rest(1.2)
    sync = vm.fio(disk, rw="write", bs="4k", ioengine="psync", number_ios=20, fsync=1)["sync"]
    commits = metrics.Difference(before, daemon.at_rest(2.2)).histogram(TOTAL, device=disk, operation="commit")
    check.equal(commits.count, sync["total_ios"], "slow commits")
    median, felt_ns = figures.quantile(commits.native, 0.5), sync["lat_ns"]["percentile"]["50.000000"]
    check.that(buckets.latency_bucket(10**8) <= median <= buckets.latency_bucket(felt_ns),
               f"slow commits: median in bucket {median}, fio's {buckets.latency_bucket(felt_ns)} ({felt_ns / 1e6:.2f} ms)")
    backend.set(flush=0)


def standstill(vm, check, daemon, disk, backend):
    vm.sh(f"addpart /dev/{disk} 1 2048 65536")
    for name, kind in ((disk, "read"), (f"{disk}p1", "write")):
        before = figures.lost(daemon.at_rest(4.2), disk)  # our counts were compared with diskstats
        backend.stall(STALL)
        end = vm.background_fio(name, rw=f"rand{kind}", bs="4k", iodepth=3, number_ios=3, size="16M")
        vm.wait_for(f"set -- $(cat /sys/block/{disk}/inflight); [ $(($1 + $2)) -eq 3 ]")
        for _ in range(2):
            scrape = daemon.at_rest(2.2)
            check.equal(figures.lost(scrape, disk), before, f"standstill of {name}: lost as before")
            kernel = vm.sh(f"cat /sys/block/{disk}/inflight").split()
            check.equal(scrape.value("ssdpulse_io_in_flight", device=disk, operation=kind), 3,
                        f"standstill of {name}: {kind}s in flight, of which the kernel counts {kernel}")
        backend.stall(0)
        end()
        figures.at_rest(check, daemon.at_rest(5), disk)


def run(vm, check):
    disk, backend = set_poll_queues(vm, 1), vm.devices["ours"].backend
    daemon = machine.Daemon(vm)
    for delay, options in STEPS.items():
        backend.set(read=delay, write=delay)
        felt, difference = load(vm, daemon, disk, delay, options)
        asked = buckets.latency_bucket(round(delay * 1e9))
        for operation, felt_ns in felt.items():
            what = f"{delay * 1000:g} ms {operation}"
            near = buckets.latency_bucket(felt_ns)
            median = figures.quantile(figures.device_time(difference, disk, operation), 0.5)
            check.that(median >= asked, f"{what}: median in bucket {median}, not below that of the delay, {asked}")
            total = figures.quantile(difference.histogram(TOTAL, device=disk, operation=operation).native, 0.5)
            least = buckets.latency_bucket(felt_ns - WAY_TO_FIO_NS)
            check.that(least - 1 <= total <= near + 1, f"{what}: total {total}, fio's {near} ({felt_ns / 1e6:.2f} ms)")
            if delay >= 0.1:
                check.that(median - asked <= 1, f"{what}: bucket {median}, at most one above the delay's, {asked}")
    figures.at_rest(check, daemon.at_rest(5), disk)
    slow_commits(vm, check, daemon, disk, backend)
    standstill(vm, check, daemon, disk, backend)
    daemon.stop()
    set_poll_queues(vm, 0)
