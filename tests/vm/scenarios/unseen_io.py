# SPDX-License-Identifier: Apache-2.0
"""Devices whose drivers have no requests: not measured, said so everywhere, and nothing is advised that cannot help."""
import json

import machine
from devices import Nvme

KERNELS_IN_CI = ("newest",)  # the long form has all
MACHINE = {"append": "memmap=64M!256M"}  # for pmem
IOS = 10000


def devices():
    return [Nvme("ours")]


def run(vm, check):
    vm.sh("modprobe -a nd_e820 nd_pmem; modprobe brd rd_nr=1 rd_size=65536")
    vm.wait_for("[ -e /dev/pmem0 ] && [ -e /dev/ram0 ]")
    ours = vm.disk("ours")
    daemon = machine.Daemon(vm)
    vm.sh("echo 1 >/sys/block/pmem0/queue/iostats")  # then its driver counts
    for disk in ("pmem0", "ram0", ours):
        before = vm.sh(f"cat /sys/block/{disk}/stat /sys/block/{disk}/queue/iostats")
        vm.fio(disk, rw="write", bs="4k", ioengine="psync", size="32M", number_ios=IOS if disk != ours else 500, loops=9)
        print(f"{disk}: {before} -> " + vm.sh(f"cat /sys/block/{disk}/stat"))
    scrape = daemon.at_rest(10)
    doctor = machine.doctor(vm)
    page = {one["name"]: one for one in json.loads(vm.sh("curl -s http://127.0.0.1:10936/api/v1/devices"))["devices"]}
    listed = {}
    for line in vm.sh("ssdpulse devices --devices.include '*' --devices.exclude none").splitlines():
        listed.setdefault(line.split(" ")[0], line)
    for disk in ("pmem0", "ram0", ours):
        unseen = disk != ours
        check.equal(scrape.value("ssdpulse_device_unseen", device=disk), float(unseen), f"{disk}: by the metric")
        stale = sorted(name for name, labels in [*scrape.values, *scrape.histograms]
                       if dict(labels).get("device") == disk and name.startswith(("ssdpulse_io_", "ssdpulse_lost", "ssdpulse_acc")))
        check.equal(bool(stale), not unseen, f"{disk}: series of counts: {stale[:3]}")
        check.equal([(one, disk) in doctor for one in ("devices", "lost-ios", "iostats")], [unseen, unseen, False],
                    f"{disk}: the doctor's words: {doctor.get(('devices', disk), {}).get('why')}")
        check.equal(page[disk]["state"] == "unseen", unseen, f"{disk}: on the page: {page[disk]['state']}")
        check.equal("not measured" in listed[disk], unseen, f"{disk}: {listed[disk]}")
    counted = {disk: doctor["devices", disk].get("evidence", {}).get("kernel_ios") for disk in ("pmem0", "ram0")}
    check.that(counted["pmem0"] and counted["pmem0"] >= IOS, f"I/Os by the kernel's count: {counted}")
    check.equal(sorted(line for line in daemon.words().splitlines() if "iostats" in line and "setting changed" not in line and ("pmem" in line or "ram0" in line)),
                [], "lines of the log about iostats")
    check.equal(daemon.words().count("is not measured"), 2, "lines of the log")
    daemon.stop()
