# SPDX-License-Identifier: Apache-2.0
"""Two paths to one namespace: I/O counts once, for the head; a path failing in mid-flight causes no false latency."""
import figures
import machine
from devices import NvmeSubsystem, Slow
from lib import metrics

KERNELS_IN_CI = ("newest",)  # the long form has all
DELAY = 0.05
DEPTH = 8


def devices():
    return [NvmeSubsystem("shared", Slow("256M", read=DELAY, write=DELAY), controllers=2)]


def load(vm, check, daemon, head, what, disturb, ios):
    before = daemon.at_rest(1.2)
    end = vm.background_fio(head, rw="randrw", bs="4k", iodepth=DEPTH, number_ios=ios)
    disturb()
    job = end()
    check.equal(job["error"], 0, f"{what}: fio felt no error")
    difference = metrics.Difference(before, daemon.at_rest())
    failovers = 0
    for operation in ("read", "write"):
        check.equal(figures.ios(difference, head, operation), job[operation]["total_ios"], f"{what}: {operation} I/Os")
        check.equal(figures.size(difference, head, operation), job[operation]["io_bytes"], f"{what}: {operation} bytes")
        early = figures.earlier_than(figures.device_time(difference, head, operation), DELAY)
        check.equal(early, 0, f"{what}: {operation}s that took less than the drive does")
        failovers += figures.requeues(difference, head, operation, "failover")
    check.equal(difference.value("ssdpulse_io_errors_total", device=head), 0, f"{what}: errors")
    names = {dict(labels).get("device") for labels in difference.after.series("ssdpulse_device_info")}
    check.that(head in names and not any("c" in name.removeprefix("nvme") for name in names if name.startswith("nvme")),
               f"{what}: the head alone has a name: {sorted(names)}")
    return failovers


def path_in_use(vm):
    """PCI address of the controller that has something in flight; its bus number counts the controllers."""
    return vm.sh("until for d in /sys/block/nvme*c*n*; do if [ $(awk '{print $9}' $d/stat) -gt 0 ]; then "
                 "basename $(readlink -f $d/device/device); exit; fi; done; false; do sleep 0.01; done").split()[0]


def run(vm, check):
    head = vm.disk("shared")
    vm.wait_for("[ $(cat /sys/class/nvme/nvme*/state | grep -c live) -eq 2 ]")
    daemon = machine.Daemon(vm)
    check.equal(load(vm, check, daemon, head, "both paths", lambda: None, 100), 0, "both paths: failovers")
    before = daemon.at_rest(1.2)
    sync = vm.fio(head, rw="randwrite", bs="4k", ioengine="psync", number_ios=20, fsync=1)["sync"]
    commits = metrics.Difference(before, daemon.at_rest(2.2)).histogram(figures.TOTAL, device=head, operation="commit")
    check.equal(commits.count, sync["total_ios"], "both paths: commits count for the head")

    def vanish():
        """The drive no longer answers on this path. A mere reset would return its commands with a status of their
        own, and they would be retried on the same path."""
        address = path_in_use(vm)
        vm.sh(f"dd if=/dev/zero of=/sys/bus/pci/devices/{address}/config bs=1 seek=4 count=2 conv=notrunc 2>/dev/null; "
              f"echo 1 >/sys/class/nvme/$(ls /sys/bus/pci/devices/{address}/nvme)/reset_controller")

    failovers = load(vm, check, daemon, head, "path lost", vanish, 400)
    check.that(0 < failovers <= DEPTH, f"path lost: {failovers} failovers of at most {DEPTH} I/Os in flight")

    def remove():
        vm.unplug(f"shared-{int(path_in_use(vm).split(':')[1], 16)}")

    failovers = load(vm, check, daemon, head, "path removed", remove, 200)
    check.equal(failovers, 0, "path removed: failovers, as it ends its own")
    figures.at_rest(check, daemon.at_rest(4), head)
    check.equal(vm.sh("ls /sys/class/nvme | wc -l"), "1", "path removed: controllers")
    daemon.stop()
