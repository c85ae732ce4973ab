# SPDX-License-Identifier: Apache-2.0
"""The latency that the backend was told to have is exported, as far as the guest itself feels it."""
import figures
import machine
from devices import Nvme, Slow
from lib import buckets, metrics

MACHINE = {"append": "nvme_core.multipath=N"}
STEPS = {0.001: 300, 0.010: 100, 0.100: 24}  # seconds: I/Os
TOTAL = "ssdpulse_io_latency_seconds"


def devices():
    return [Nvme("ours", Slow("256M"))]


def run(vm, check):
    disk, backend = vm.disk("ours"), vm.devices["ours"].backend
    daemon = machine.Daemon(vm)
    for delay, ios in STEPS.items():
        backend.set(read=delay, write=delay)
        before = daemon.at_rest(1.2)
        job = vm.fio(disk, rw="randrw", bs="4k", iodepth=1, number_ios=ios)
        difference = metrics.Difference(before, daemon.at_rest(2.2))
        asked = buckets.latency_bucket(round(delay * 1e9))
        for operation in ("read", "write"):
            what = f"{delay * 1000:g} ms {operation}"
            median = figures.quantile(figures.device_time(difference, disk, operation), 0.5)
            felt_ns = job[operation]["lat_ns"]["percentile"]["50.000000"]
            felt = buckets.latency_bucket(felt_ns)
            check.that(median >= asked, f"{what}: median in bucket {median}, not below that of the delay, {asked}")
            total = figures.quantile(difference.histogram(TOTAL, device=disk, operation=operation).native, 0.5)
            # The way between fio and the block layer costs tenths of a millisecond in an emulated guest.
            near = 2 if delay < 0.01 else 1
            check.that(0 <= felt - total <= near, f"{what}: total {total}, fio's {felt} ({felt_ns / 1e6:.2f} ms)")
            if delay >= 0.1:
                check.that(median - asked <= 1, f"{what}: bucket {median}, at most one above the delay's, {asked}")
    figures.at_rest(check, daemon.at_rest(5), disk)
    daemon.stop()
