# SPDX-License-Identifier: Apache-2.0
"""A controller is reset under load: no I/O is lost, none counts twice, none seems fast."""
import time

import figures
import machine
from devices import Nvme, Slow
from lib import metrics

KERNELS_IN_CI = ("newest",)  # the long form has all
MACHINE = {"append": "nvme_core.multipath=N"}
SHARES_GUEST = True
DELAY = 0.05


def devices():
    return [Nvme("ours", Slow("256M"))]


def run(vm, check):
    disk = vm.disk("ours")
    vm.devices["ours"].backend.set(read=DELAY, write=DELAY)
    controller = vm.sh(f"basename $(readlink -f /sys/block/{disk}/device)")
    daemon = machine.Daemon(vm)
    before = daemon.at_rest(1.2)
    times = 100 if vm.long else 5
    trace = vm.trace(disk, ["block_rq_issue"])
    end = vm.background_fio(disk, rw="randrw", bs="4k", iodepth=8, number_ios=150 * times)
    for _ in range(times):
        time.sleep(0.3)  # of load
        vm.sh(f"echo 1 >/sys/class/nvme/{controller}/reset_controller")
        vm.wait_for(f"grep -q live /sys/class/nvme/{controller}/state", 20)
    job = end(times * 30)
    events = trace()
    difference = metrics.Difference(before, daemon.at_rest(6))
    again = 0
    for operation in ("read", "write"):
        check.equal(figures.ios(difference, disk, operation), job[operation]["total_ios"], f"{operation} I/Os")
        check.equal(figures.size(difference, disk, operation), job[operation]["io_bytes"], f"{operation} bytes")
        early = figures.earlier_than(figures.device_time(difference, disk, operation), DELAY)
        check.equal(early, 0, f"{operation}s that took less than the drive does")
        again += figures.requeues(difference, disk, operation, "driver")
    total = sum(job[operation]["total_ios"] for operation in ("read", "write"))
    check.equal(again, events["block_rq_issue"] - total, f"requeues, of {events}")
    check.that(again > 0, f"{times} resets caught {again} I/Os in flight")
    figures.at_rest(check, difference.after, disk)
    daemon.stop()
