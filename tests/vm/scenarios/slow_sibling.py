# SPDX-License-Identifier: Apache-2.0
"""Of five drives of one model, under unequal loads, one answers slowly: within 15 minutes it is named, and no other is."""
import json

import machine
from devices import Nvme, Slow

KERNELS = ("6.12",)
PART = "volumes"
SECONDS = 1800
MACHINE = {"append": "nvme_core.multipath=N"}
USUAL, SLOW = 0.004, 0.016  # seconds a read: well above what an emulated guest itself takes
RATES = {"first": 20, "second": 40, "third": 40, "fourth": 60, "slow": 30}  # reads a second
WITHIN = 900  # seconds


def devices():
    return [Nvme(name, Slow("256M", read=SLOW if name == "slow" else USUAL)) for name in RATES]


def run(vm, check):
    disks = {name: vm.disk(name) for name in RATES}
    daemon = machine.Daemon(vm)
    for name, rate in RATES.items():
        vm.sh(f"fio --name={name} --filename=/dev/{disks[name]} --rw=randread --bs=4k --direct=1 --ioengine=psync "
              f"--rate_iops={rate} --rate_process=poisson --time_based --runtime={WITHIN + 120} --output=/dev/null >/dev/null 2>&1 &")
    begin = vm.clock()
    named = set()
    while vm.clock() - begin < WITHIN and not named:
        vm.sh("sleep 20")
        scrape = daemon.scrape()
        named = {dict(labels)["device"] for labels, slower in scrape.series("ssdpulse_device_slower_than_siblings").items()
                 if slower == 1}
    after = vm.clock() - begin
    check.equal(named, {disks["slow"]}, f"named after {after:.0f} s")
    [ratio] = scrape.series("ssdpulse_device_latency_of_siblings_ratio", device=disks["slow"]).values()
    check.that(2.5 <= ratio <= 5, f"ratio {ratio:.2f}, of {SLOW / USUAL:.0f} in the drive alone")
    why = json.loads(vm.sh("ssdpulse why --json"))
    check.that(disks["slow"] in why["sentence"] and "slower than" in why["sentence"], why["sentence"])
    print(f"TABLE a slow sibling: named after {after:.0f} s, ratio {ratio:.2f}: {why['sentence']}")
    daemon.stop()
