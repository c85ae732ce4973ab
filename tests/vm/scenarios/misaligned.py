# SPDX-License-Identifier: Apache-2.0
"""A partition off by one sector on a drive of 16-KiB pages: audit finds it, it is made again, report proves it."""
import statistics
import threading
import time
from collections import defaultdict

import decisions
from devices import NvmeTcp

KERNELS = ("6.12",)  # what is judged does not depend on the kernel
PART = "decisions"
SECONDS = 900
PAGE, SECTOR = 16 << 10, 512
PROGRAM = 0.010  # seconds for a page of flash; a page that is partly written is read first
READ = 0.002
WAY = 0.010  # seconds at most from the guest's block layer to the drive and back
WINDOW = 150  # seconds of load: minutes of history


class Flash:
    """How long a write should take on a drive that can only write whole pages, and how long it took."""

    def __init__(self):
        self._lock, self._took = threading.Lock(), defaultdict(list)
        self.phase = "before"

    def seconds(self, name, offset, size):
        if name != "write" or not size:
            return READ if name == "read" else 0
        first, last = offset // PAGE, (offset + size - 1) // PAGE
        parts = (offset % PAGE != 0) + ((offset + size) % PAGE != 0 and (last != first or offset % PAGE == 0))
        took = (last - first + 1) * PROGRAM + parts * READ  # answered one after the other
        began = time.monotonic()
        time.sleep(took)
        with self._lock:
            self._took[self.phase].append(time.monotonic() - began)
        return 0

    def median(self, phase):
        with self._lock:
            return statistics.median(self._took[phase])


def devices():
    return [NvmeTcp("flash", size=192 << 20)]


def partition(vm, disk, first_sector):
    """The drive keeps no data, so no table either: the kernel is given the partition directly."""
    vm.sh(f"blockdev --rereadpt /dev/{disk} && addpart /dev/{disk} 1 {first_sector} 262144 && "
          f"[ \"$(cat /sys/block/{disk}/{disk}p1/start)\" = {first_sector} ]")


def database(vm, disk):
    """A database's pages of 16 KiB reach the drive one after the other."""
    vm.fio(f"{disk}p1", WINDOW + 120, rw="randrw", rwmixread=30, bs="16k", iodepth=1, numjobs=1, time_based=None,
           runtime=WINDOW)


def run(vm, check):
    controller, flash = vm.devices["flash"].controller, Flash()
    controller.namespaces[1].set(nsfeat=0b10000, npwg=PAGE // SECTOR - 1, npwa=PAGE // SECTOR - 1)
    controller.io_seconds = flash.seconds
    vm.devices["flash"].connect(vm)
    disk = vm.disk("flash")
    check.equal(int(vm.sh(f"cat /sys/block/{disk}/queue/minimum_io_size")), PAGE, "the kernel knows the drive's pages")
    partition(vm, disk, 63)
    host = decisions.Host(vm)
    database(vm, disk)
    decisions.show("audit", host.audit("-v"))
    one = host.finding("N2", disk)
    check.equal((one["verdict"], f"{disk}p1" in one["why"]), ("advise", True), f"found: {one['found']}: {one['why']}")
    check.that(one["evidence"].get("misaligned_share", 0) > 0.95, f"all of it is misaligned: {one['evidence']}")
    host.mark("repartitioned")
    flash.phase = "after"
    partition(vm, disk, 2048)
    database(vm, disk)
    check.equal(host.finding("N2", disk)["verdict"], "ok", "gone")
    words = host.report("--change", "last", "--settle", "1m", "--device", disk)
    decisions.show("report", words)
    check.that("time is scaled: a minute of the history was 1 s" in words, "the report says that time is scaled")
    rows = host.rows(disk, "--change", "last", "--settle", "1m")
    row = rows["write.p50"]
    check.equal(row["verdict"], "better", f"writes: {row['before']} to {row['after']}, change {row['change']}")
    before, after = (flash.median(phase) for phase in ("before", "after"))
    low, high = (row["change"][side] for side in ("lower", "upper"))
    # In addition to the drive's time, each I/O crosses a network and an emulated guest.
    least, most = after / (before + WAY), (after + WAY) / before
    print(f"TABLE misaligned: drive's own ratio {after / before:.3f}, with the way to it {least:.3f} to {most:.3f}; report {low:.3f} to "
          f"{high:.3f}")
    check.that(low <= most and least <= high, f"the interval {low:.3f} to {high:.3f} holds the drive's own ratio, or that with the way")
    host.daemon.stop()
