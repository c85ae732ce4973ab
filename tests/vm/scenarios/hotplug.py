# SPDX-License-Identifier: Apache-2.0
"""A drive that is unplugged under load and comes back: its series disappear and return, and nothing is left behind."""
import time

import figures
import machine
from devices import Nvme, Slow
from lib import metrics

KERNELS_IN_CI = ("newest",)  # the long form has all
MACHINE = {"append": "nvme_core.multipath=N"}
SHARES_GUEST = True
DELAY = 0.02


def devices():
    return [Nvme("ours", Slow("256M"))]


def wait_for_series(daemon, disk, present, seconds=10):
    deadline = time.monotonic() + seconds
    while bool((scrape := daemon.scrape()).series("ssdpulse_device_info", device=disk)) != present:
        if time.monotonic() > deadline:
            raise machine.GuestError(f"after {seconds} s, {disk} is {'not yet' if present else 'still'} there")
        time.sleep(0.5)
    return scrape


def run(vm, check):
    vm.devices["ours"].backend.set(read=DELAY, write=DELAY)
    disk = vm.disk("ours")
    daemon = machine.Daemon(vm)
    wait_for_series(daemon, disk, True)
    descriptors = vm.sh(f"ls /proc/{daemon.pid}/fd 2>/dev/null | wc -l")
    maps = machine.bpf_objects(vm)
    for round_number in range(100 if vm.long else 5):
        end = vm.background_fio(disk, rw="randrw", bs="4k", iodepth=8, number_ios=100000)
        vm.unplug("ours")
        end()
        gone = wait_for_series(daemon, disk, False)
        stale = [name for name, labels in [*gone.values, *gone.histograms] if dict(labels).get("device") == disk]
        check.equal(sorted(set(stale)), [], f"round {round_number}: series of a drive that is gone")
        vm.plug("ours")
        disk = vm.disk("ours")
        wait_for_series(daemon, disk, True)
        before = daemon.at_rest(1.2)
        job = vm.fio(disk, rw="randrw", bs="4k", iodepth=8, number_ios=100)
        difference = metrics.Difference(before, daemon.at_rest(2.2))
        for operation in ("read", "write"):
            check.equal(figures.ios(difference, disk, operation), job[operation]["total_ios"],
                        f"round {round_number}: {operation} I/Os of the new one")
        flying = difference.after.series("ssdpulse_io_in_flight", device=disk)
        check.that(flying and not any(flying.values()), f"round {round_number}: nothing in flight")
    # The kernel reads the partition table of a new drive before the daemon can know of it.
    figures.at_rest(check, daemon.at_rest(6), disk, known_losses=["device_pending"])
    # Not equal: an inventory of the host may have had a file open at the time.
    left = int(vm.sh(f"ls /proc/{daemon.pid}/fd 2>/dev/null | wc -l"))
    check.that(left <= int(descriptors), f"descriptors of the daemon: {left}, {descriptors} at the start")
    check.equal(machine.bpf_objects(vm), maps, "programs and maps")
    daemon.stop()
    check.equal(machine.bpf_left(vm), ([], []), "programs and maps at the end")
