# SPDX-License-Identifier: Apache-2.0
"""A SCSI host is busy, transfers half, or finds a bad sector: each I/O is counted once, as is what happened to it."""
import figures
import machine
from lib import metrics

KERNELS_IN_CI = ("newest",)  # the long form has all
SHARES_GUEST = True
IOS = 300
HOST_BUSY, SHORT_TRANSFER, MEDIUM_ERROR = 0x8000, 0x100, 2
BAD_SECTOR = 0x1234
DRIVER = "/sys/bus/pseudo/drivers/scsi_debug"


def devices():
    return []


def misbehave(vm, options, every):
    vm.sh(f"echo {options} >{DRIVER}/opts; echo {every} >{DRIVER}/every_nth")


def load(vm, check, daemon, disk, what, block_size):
    before = daemon.at_rest(1.2)
    trace = vm.trace(disk, ["block_rq_issue", "block_rq_requeue"])
    job = vm.fio(disk, rw="randrw", bs=block_size, iodepth=4, number_ios=IOS)
    misbehave(vm, 0, 0)
    events = trace()
    difference = metrics.Difference(before, daemon.at_rest())
    again = 0
    for operation in ("read", "write"):
        check.equal(figures.ios(difference, disk, operation), job[operation]["total_ios"], f"{what}: {operation} I/Os")
        check.equal(figures.size(difference, disk, operation), job[operation]["io_bytes"], f"{what}: {operation} bytes")
        sizes = difference.histogram("ssdpulse_io_size_bytes", device=disk, operation=operation)
        check.equal((sizes.count, int(sizes.sum)), (job[operation]["total_ios"], job[operation]["io_bytes"]),
                    f"{what}: {operation} sizes at the first issue")
        again += figures.requeues(difference, disk, operation, "driver")
    total = sum(job[operation]["total_ios"] for operation in ("read", "write"))
    check.equal(again, events["block_rq_issue"] - total, f"{what}: requeues, of {events}")
    check.that(again > 0, f"{what}: it did happen")
    check.equal(difference.value("ssdpulse_io_errors_total", device=disk), 0, f"{what}: errors")


def wait_for_the_host(vm, check, daemon, disk, when):
    """What the driver returned is in flight for us, but not for the kernel, while the host is busy: that is a
    standstill, not a missed completion."""
    missed = figures.lost(daemon.scrape(), disk).get("completion_missed", 0)
    misbehave(vm, HOST_BUSY, 1)
    reader = vm.sh(f"dd if=/dev/{disk} of=/dev/null bs=4k count=4 iflag=direct >/dev/null 2>&1 & echo $!")
    for _ in range(3):
        scrape = daemon.at_rest(2)
        kernel = vm.sh(f"cat /sys/block/{disk}/inflight").split()
        flying = scrape.value("ssdpulse_io_in_flight", device=disk, operation="read")
        lost = figures.lost(scrape, disk)
        check.that(flying > 0 and lost.get("completion_missed", 0) == missed,
                   f"host busy for long, {when}: {flying:.0f} reads in flight, {kernel[0]} by the kernel's count, "
                   f"{missed:.0f} missed before; lost now: {lost}")
    misbehave(vm, 0, 0)
    vm.wait_for(f"! kill -0 {reader}")
    figures.at_rest(check, daemon.at_rest(5.5), disk)


def run(vm, check):
    vm.sh("modprobe sd_mod; modprobe scsi_debug dev_size_mb=64 delay=0 max_luns=1")
    disk = vm.sh(f"n=0; until ls {DRIVER}/adapter*/host*/target*/*/block 2>/dev/null; do sleep 0.1; n=$((n + 1)); "
                 "[ $n -lt 100 ]; done")
    vm.sh(f"echo 2 >/sys/block/{disk}/queue/nomerges")
    daemon = machine.Daemon(vm)
    wait_for_the_host(vm, check, daemon, disk, "as the daemon starts")
    misbehave(vm, HOST_BUSY, 10)
    load(vm, check, daemon, disk, "host busy", "4k")
    misbehave(vm, SHORT_TRANSFER, 10)
    load(vm, check, daemon, disk, "short transfer", "64k")
    daemon.at_rest(4.2)  # counts were compared with diskstats at rest
    wait_for_the_host(vm, check, daemon, disk, "after a rest")

    before = daemon.at_rest(1.2)
    vm.sh(f"echo {MEDIUM_ERROR} >{DRIVER}/opts")
    for _ in range(3):
        code, output = vm.run(f"dd if=/dev/{disk} of=/dev/null iflag=direct bs=4096 skip={BAD_SECTOR // 8} count=1")
        check.that(code != 0, f"medium error: dd is told: {output.decode().splitlines()[0]}")
    vm.sh(f"echo 0 >{DRIVER}/opts")
    difference = metrics.Difference(before, daemon.at_rest(5.5))
    errors = {}
    for labels in difference.after.series("ssdpulse_io_errors_total", device=disk, operation="read"):
        errors[dict(labels)["error"]] = difference.value("ssdpulse_io_errors_total", **dict(labels))
    check.equal({error: count for error, count in errors.items() if count}, {"medium": 3}, "medium error: errors")
    check.equal(figures.ios(difference, disk, "read"), 3, "medium error: I/Os")
    figures.at_rest(check, difference.after, disk)
    daemon.stop()
    vm.sh("modprobe -r scsi_debug")
