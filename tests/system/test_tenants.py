#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout-long: 900
"""Whose I/O is it? A live daemon, real cgroups and fio: each tenant has the bytes that fio reports, under its name.

The daemon's own byte counts lack the I/Os whose end no program saw (tests/kernel/README.md): that much may be missing
from the tenants, and no more. In every scrape the tenants add up to everything counted.
"""
import os
import re
import stat
import subprocess
import threading
import time

from lib import cgroups, rig

KIB = 1024
OPERATIONS = ("read", "write", "discard")
MEMORY_NOISE = 2 << 20  # bytes: pages that the allocator keeps, and the minutes held in memory
SMALL = {"bs": "4k", "ioengine": "psync", "size": "32M"}
CONTAINER = f"{os.getpid():08x}" + "5a" * 28


def unique(name):
    """A name that no other run uses."""
    return f"{name}-{os.getpid()}"


def load(cgroup, disk, seed, **options):
    """A fio with one job that runs in the cgroup."""
    return rig.Load(cgroup.command(rig.fio_command(disk, seed, [{}], group_reporting=None, **SMALL, **options)))


def names(scrape, name="ssdpulse_tenant_bytes_total", **labels):
    return {dict(have).get("tenant") for have in scrape.series(name, **labels)}


def sums(scrape, disk, operation, what):
    """(tenants and departed, paths, all I/Os)."""
    labels = {"device": disk.name, "operation": operation}
    tenants = ((scrape.value(f"ssdpulse_tenant_{what}_total", **labels) or 0)
               + (scrape.value(f"ssdpulse_tenant_departed_{what}", **labels) or 0))
    whole = (scrape.value("ssdpulse_io_bytes_total", **labels) or 0 if what == "bytes"
             else scrape.histogram("ssdpulse_io_latency_seconds", **labels).count)
    return tenants, scrape.value(f"ssdpulse_path_{what}_total", **labels) or 0, whole


def adds_up(scrape, disk):
    """All bytes are accounted for; the I/Os are those in the histogram and, over all operations, the strays."""
    untimed = 0
    for operation in OPERATIONS:
        for what in ("ios", "bytes"):
            tenants, paths, whole = sums(scrape, disk, operation, what)
            untimed += (tenants - whole) * (what == "ios")
            if tenants != paths or tenants < whole or what == "bytes" and tenants != whole:
                return f"{operation} {what}: tenants {tenants}, paths {paths}, all {whole}"
    strays = scrape.value("ssdpulse_lost_events_total", device=disk.name, cause="stray")
    return "" if untimed <= strays else f"{untimed} I/Os are in no histogram, and {strays} are strays"


class Scrapes:
    """Scrapes one after another throughout the load."""

    def __init__(self, daemon, disk):
        self.wrong, self.number, self.before, self._stop = [], 0, {}, threading.Event()
        self._thread = threading.Thread(target=self._run, args=(daemon, disk))
        self._thread.start()

    def _run(self, daemon, disk):
        while not self._stop.is_set():
            scrape = daemon.scrape()
            self.number += 1
            if wrong := adds_up(scrape, disk):
                self.wrong.append(wrong)
            now = scrape.series("ssdpulse_tenant_bytes_total")
            self.wrong += [f"{dict(have)} fell" for have, value in now.items() if value < self.before.get(have, 0)]
            self.before = now
            time.sleep(0.1)

    def end(self):
        self._stop.set()
        self._thread.join()


def named(check, state, disk):
    service, worker = f"/batch.slice/{unique('a')}.service", f"/batch.slice/{unique('b')}.service/worker"
    expected = {os.path.basename(service): ("unit", service), f"docker/{CONTAINER[:12]}": ("container", f"/docker/{CONTAINER}"),
                f"{unique('b')}.service": ("unit", os.path.dirname(worker))}
    with cgroups.named(service, f"/docker/{CONTAINER}", worker) as [one, container, below], \
            rig.daemon(state, [disk]) as daemon:
        before = daemon.scrape()
        scrapes = Scrapes(daemon, disk)
        seed = rig.fresh_seed()
        running = {os.path.basename(service): load(one, disk, seed, rw="randread", number_ios=3000),
                   f"docker/{CONTAINER[:12]}": load(container, disk, seed + 1, rw="randwrite", number_ios=2000),
                   f"{unique('b')}.service": load(below, disk, seed + 2, rw="randrw", number_ios=1000)}
        done = {tenant: job.jobs()[0] for tenant, job in running.items()}
        after = daemon.at_rest()
        scrapes.end()
        check.that(not scrapes.wrong, f"{scrapes.number} scrapes: tenants add up to paths and to all bytes {scrapes.wrong[:3]}")
        check.equal(adds_up(after, disk), "", "at rest, too")
        for operation in ("read", "write"):
            by_fio = {tenant: job[operation]["io_bytes"] for tenant, job in done.items()}
            told = {tenant: (after.value("ssdpulse_tenant_bytes_total", device=disk.name, operation=operation, tenant=tenant) or 0)
                    for tenant in done}
            labels = {"device": disk.name, "operation": operation}
            unseen = sum(by_fio.values()) - ((after.value("ssdpulse_io_bytes_total", **labels) or 0)
                                             - (before.value("ssdpulse_io_bytes_total", **labels) or 0))
            check.that(all(0 <= by_fio[tenant] - told[tenant] <= max(unseen, 0) for tenant in done),
                       f"{operation}: bytes as fio says, up to the {unseen} that no program saw: {told} {by_fio}")
            others = {tenant: after.value("ssdpulse_tenant_bytes_total", tenant=tenant, **labels)
                      for tenant in names(after, **labels) - set(done)}
            check.that(sum(by_fio.values()) - sum(told.values()) <= unseen + sum(others.values()),
                       f"{operation}: nothing of it is anybody else's {others}")
        info = {dict(have)["tenant"]: (dict(have)["kind"], dict(have).get("cgroup"))
                for have in after.series("ssdpulse_tenant_info")}
        check.equal({tenant: info.get(tenant) for tenant in expected}, expected, "kinds and directories")
        seconds = after.value("ssdpulse_tenant_device_seconds_total", tenant=os.path.basename(service)) or 0
        check.that(seconds > 0, f"device time: {seconds:.6f} s")
        synchronous = after.value("ssdpulse_path_bytes_total", device=disk.name, path="sync", access="raw")
        check.figure(f"paths {({'/'.join(v for k, v in have if k in ('path', 'access', 'operation')): n for have, n in after.series('ssdpulse_path_ios_total').items()})}")
        check.that(synchronous, f"path sync, raw: {synchronous} bytes")


def hidden(check, state, disk):
    """No part of a name is on the page or in the log; after a restart the same hash stands for the same tenant."""
    secret = f"{unique('secret')}.service"
    hashes = []
    for start in ("first", "second"):
        with cgroups.named(f"/system.slice/{secret}") as [one], \
                rig.daemon(state, [disk], settings="attribution: {names: hashed}\n") as daemon:
            load(one, disk, rig.fresh_seed(), rw="randwrite", number_ios=500).jobs()
            scrape = daemon.at_rest()
            page = str(sorted(scrape.values, key=str)) + daemon.log.read_text()
        found = {tenant for tenant in names(scrape) if re.fullmatch("[0-9a-f]{16}", tenant)}
        check.that("secret" not in page and "system.slice" not in page, f"{start} start: no name on the page or in the log")
        check.equal(scrape.value("ssdpulse_tenant_ios_total", tenant=next(iter(found), "")) is not None and len(found), 1,
                    f"{start} start: one hash {found}")
        hashes.append(found)
    check.equal(hashes[0], hashes[1], "the same hash after a restart")
    key = state / "history" / "tenant-names.key"
    check.equal((key.stat().st_size, stat.S_IMODE(key.stat().st_mode)), (32, 0o600), "the key is its owner's alone")


def switched_off(check, state, disk):
    for settings, paths in (("names: off", True), ("enabled: false", False)):
        with rig.daemon(state, [disk], settings=f"attribution: {{{settings}}}\n") as daemon:
            rig.fio(disk, rig.fresh_seed(), rw="randread", number_ios=100, **SMALL)
            scrape = daemon.at_rest()
        check.equal(({name for name, _ in scrape.values if name.startswith("ssdpulse_tenant")},
                     scrape.value("ssdpulse_path_ios_total") is not None), (set(), paths), settings)


def departing(check, state, disk):
    """Two slots besides the root's: a newcomer gets that of one that has gone, whose I/O is in no rate."""
    paths = [f"/{unique(name)}" for name in "abcd"]
    with cgroups.named(*paths) as [a, b, c, d], \
            rig.daemon(state, [disk], settings="attribution: {tenants: 3}\n") as daemon:
        scrapes = Scrapes(daemon, disk)
        rig.fio(disk, rig.fresh_seed(), rw="randwrite", number_ios=50, **SMALL)
        for one in (a, b, c):
            load(one, disk, rig.fresh_seed(), rw="randwrite", number_ios=400).jobs()
            before = daemon.at_rest()
        check.that(len(names(before) - {"other"}) <= 3 and (before.value("ssdpulse_tenant_ios_total", tenant="other") or 0) > 0,
                   f"three tenants and other: {names(before)}")
        for one in (a, b, c):
            one.remove()
        daemon.at_rest(12)
        load(d, disk, rig.fresh_seed(), rw="randwrite", number_ios=300).jobs()
        after = daemon.at_rest()
        scrapes.end()
        check.that(not scrapes.wrong, f"{scrapes.number} scrapes: all adds up, nothing falls {scrapes.wrong[:3]}")
        check.that(paths[3] in names(after), f"the newcomer has a place: {names(after)}")
        departed = after.value("ssdpulse_tenant_departed_ios", operation="write") or 0
        check.that(departed > 0, f"departed: {departed} I/Os")
        grown = sum(value - before.series("ssdpulse_tenant_ios_total").get(have, 0)
                    for have, value in after.series("ssdpulse_tenant_ios_total").items())
        check.that(grown <= 330, f"counters grew by what was done meanwhile: {grown} of 300")


def churn(check, state, disk):
    """Containers appear, read a little and go, alongside three that stay: all their I/O is there, but they are not."""
    number, each = (2000, 3) if rig.LONG else (200, 3)
    staying = [f"/{unique(name)}" for name in ("stays-a", "stays-b", "stays-c")]
    # The runtime's own directory stays, as on a real host.
    with cgroups.named(*staying, f"/docker/{unique('other')}") as [*stay, _], rig.daemon(state, [disk]) as daemon:
        before = daemon.scrape()
        scrapes = Scrapes(daemon, disk)
        loads = [load(one, disk, rig.fresh_seed(), rw="randread", rate_iops=100, number_ios=number // 2) for one in stay]
        for container in range(number):
            if container == number // 2:
                half_way = daemon.scrape()
            time.sleep(0.1)  # at most ten a second: a slot is free again about four seconds after its cgroup has gone
            with cgroups.named(f"/docker/{container:08x}{'c0' * 28}") as [one]:
                subprocess.run(one.command(["dd", f"if={disk.path}", "of=/dev/null", "bs=4k", f"count={each}", "iflag=direct",
                                            "status=none"]), check=True)
        by_fio = sum(job.jobs()[0]["read"]["total_ios"] for job in loads)
        after = daemon.at_rest(12)
        scrapes.end()
        check.that(not scrapes.wrong, f"{scrapes.number} scrapes: all adds up, nothing falls {scrapes.wrong[:3]}")
        labels = {"device": disk.name, "operation": "read"}
        told = {name: sum(value for have, value in after.series("ssdpulse_tenant_ios_total", **labels).items()
                          if dict(have)["tenant"].startswith(name)) for name in ("docker/", "/stays-", "other")}
        told["departed"] = after.value("ssdpulse_tenant_departed_ios", **labels) or 0
        whole = (after.value("ssdpulse_io_bytes_total", **labels) - (before.value("ssdpulse_io_bytes_total", **labels) or 0)) / 4096
        check.that(0 <= number * each + by_fio - whole <= 0.05 * (number * each + by_fio),
                   f"{whole:.0f} of {number * each + by_fio} reads were seen to end")
        lost = number * each + by_fio - whole
        check.that(0 <= by_fio - told["/stays-"] <= lost, f"who stayed has his own: {told['/stays-']:.0f} of {by_fio}")
        check.that(told["docker/"] + told["departed"] + told["other"] >= number * each - lost, f"who went is all there: {told}")
        series = len(after.series("ssdpulse_tenant_ios_total", **labels))
        check.that(series <= 65, f"{series} series of {number + 3} tenants")
        check.that(told["other"] <= 0.2 * number * each, f"other: {told['other']:.0f} of {number * each}")
        # At most as many series as slots, so those of earlier ones have ended, and the latest ones have theirs.
        left = {name for name in names(after, **labels) if name.startswith("docker/")}
        last = {f"docker/{container:08x}c0c0" for container in range(number - 20, number)}
        check.that(f"docker/{0:08x}c0c0" not in left and last & left,
                   f"the first container has no series, {len(last & left)} of the last {len(last)} have: {len(left)} in all")
        memory = [scrape.value("process_resident_memory_bytes") for scrape in (half_way, after)]
        check.that(memory[1] - memory[0] <= MEMORY_NOISE, f"memory of the daemon: {memory[0] / 1e6:.1f} MB after half of them, "
                   f"{memory[1] / 1e6:.1f} MB after all")


def test(check, state):
    with rig.ram_disks(state, size="64M") as [disk]:
        for part in (named, hidden, switched_off, departing, churn):
            part(check, state, disk)


rig.main(test)
