#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# tier: long
# alone: the daemons of other tests would measure its 64 disks, too
"""Does the memory of 64 drives with everything on leave a quarter of the unit's limit free?

Memory is the peak resident size plus all tables in the kernel, touched or not; what is in both is counted twice. Like
the disks, flash models have the size of large drives' models; the memory they take does not depend on writes.
"""
import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

from lib import cgroups, metrics, rig

UNIT = Path(os.environ["SSDPULSE_SOURCE"]) / "deploy/systemd/ssdpulse.service"
SHARE = 0.75
DRIVES, SIZE, SPAN = 64, "64G", 64 << 20  # of a disk, which is sparse; of the part that is written
TENANTS, SECONDS = 60, 15
PATIENCE = 60  # seconds until the models are ready, as there is other work
SETTINGS = "flash_model: { virtual_disks: true }\nwrites: { page_hints: always }\n"
OPERATIONS = ("read", "write", "discard")
# What each tenant does with each of its disks.
TOUCH = """
import mmap, os, sys
page = mmap.mmap(-1, 4096)
for path in sys.argv[1:]:
    disk = os.open(path, os.O_RDWR | os.O_DIRECT)
    os.preadv(disk, [page], 4096)
    os.pwritev(disk, [page], 8192)
    os.close(disk)
"""


def allowed():
    """MemoryMax of the unit, in bytes."""
    number, unit = re.search(r"^MemoryMax=(\d+)([MG])$", UNIT.read_text(), re.M).groups()
    return int(number) << {"M": 20, "G": 30}[unit]


def most_resident(daemon):
    text = Path(f"/proc/{daemon.process.pid}/status").read_text()
    return int(re.search(r"^VmHWM:\s+(\d+) kB", text, re.M)[1]) << 10


class Readers:
    """Clients whose answers take memory as well: Prometheus in both forms, and the page."""

    def __init__(self, daemon):
        self._daemon, self._stop, self.answers = daemon, threading.Event(), 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while not self._stop.is_set():
            for path, accept in (("/metrics", metrics.PROTOBUF), ("/metrics", "text/plain"), ("/api/v1/devices", "*/*"),
                                 ("/api/v1/status", "*/*")):
                self.answers += metrics.fetch(self._daemon.port, path, accept)[0] == 200
            self._stop.wait(0.5)

    def end(self):
        self._stop.set()
        self._thread.join()


def load(disks):
    """A few operations of each kind on all disks, each of which has half of the tenants.

    The kernel's tables have 16 cells on each CPU for each cgroup and disk, 4288 on two CPUs. An operation takes one at most,
    so the 3840 of the tenants and those of fio have room, while twice as many would leave most tenants without a cell.
    """
    jobs = [{"filename": disk.path, "name": disk.name} for disk in disks]
    running = rig.Load(rig.fio_command(disks[0], rig.fresh_seed(), jobs, rw="randrw", bs="4k", ioengine="psync", size=SPAN, rate_iops=8,
                                       time_based=None, runtime=SECONDS, thread=None))
    with cgroups.named(*(f"/batch.slice/crowd{number}-{os.getpid()}.service" for number in range(TENANTS))) as crowd:
        for number, one in enumerate(crowd):
            subprocess.run(one.command([sys.executable, "-c", TOUCH, *(disk.path for disk in disks[number % 2::2])]), check=True)
        for disk in disks:
            rig.run("blkdiscard", "--offset", SPAN, "--length", SPAN, disk.path)
        running.jobs()


def modelled(scrape, names):
    """The disks that have a flash model, even if it reports nothing yet because too little was written."""
    reasons = {dict(have)["device"]: dict(have)["reason"]
               for have in scrape.series("ssdpulse_modelled_write_amplification_silence_info")}
    return {name for name in names if reasons.get(name, "virtual") not in ("virtual", "no_memory")}


def once_all_have_models(daemon, names):
    deadline = time.monotonic() + PATIENCE
    while len(modelled(scrape := daemon.at_rest(), names)) < DRIVES and time.monotonic() < deadline:
        time.sleep(1)
    return scrape


def everything_is_on(check, scrape, names):
    """Otherwise the memory measured would be too low."""
    for operation in OPERATIONS:
        seen = {name for name in names if scrape.histogram("ssdpulse_io_latency_seconds", device=name, operation=operation).count}
        check.equal(len(seen), DRIVES, f"disks whose {operation}s were measured")
    tenants = {dict(have)["tenant"] for have in scrape.series("ssdpulse_tenant_bytes_total")}
    check.that(sum(tenant.startswith("crowd") for tenant in tenants) >= TENANTS / 2, f"tenants: {len(tenants)}")
    check.equal(len(modelled(scrape, names)), DRIVES, "disks that have a flash model")
    check.equal(scrape.value("ssdpulse_source_up", source="history"), 1, "the history is up")


def test(check, state):
    most = allowed()
    with rig.ram_disks(state, DRIVES, SIZE, filled=False) as disks:
        names = {disk.name for disk in disks}
        with rig.daemon(state, disks, settings=SETTINGS) as daemon:
            readers = Readers(daemon)
            try:
                load(disks)
                scrape = once_all_have_models(daemon, names)
            finally:
                readers.end()
            check.that(readers.answers > SECONDS, f"{readers.answers} answers meanwhile")
            everything_is_on(check, scrape, names)
            tables = sum(scrape.series("ssdpulse_kernel_memory_bytes").values())
            resident = most_resident(daemon)
            check.figure(f"tables {json.dumps({dict(have)['use']: int(value) for have, value in scrape.series('ssdpulse_kernel_memory_bytes').items()})}")
            check.that(tables > 0 and resident + tables <= SHARE * most,
                       f"{resident / 2**20:.0f} MiB resident and {tables / 2**20:.0f} MiB of tables are "
                       f"{100 * (resident + tables) / most:.0f} % of MemoryMax, {100 * SHARE:.0f} % at most")


rig.main(test)
