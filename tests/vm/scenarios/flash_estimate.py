# SPDX-License-Identifier: Apache-2.0
"""The live flash model agrees with `simulate --full` of the backend's own log, across a restart of the daemon."""
import time

import live_model
import machine
from devices import Logged, Nvme

PART = "flash"  # two and a half drive writes of each disk take minutes; system.test_flash_model is in CI
KERNELS = ("5.10", "newest")
MACHINE = {"append": "nvme_core.multipath=N"}
SECONDS = 1800
SIZE, UNIT = 256 << 20, 16 << 10
LOADS = {"uniform": {}, "skewed": {"random_distribution": "zoned:90/10:10/90"}}
HALVES = 1.25, 1.25  # drive writes before and after the restart; a sequential one first makes all pages known


def devices():
    return [Nvme(serial, Logged(str(SIZE))) for serial in LOADS]


def write(vm, disks, drive_writes):
    for serial, options in LOADS.items():
        vm.fio(disks[serial], 600, rw="randwrite", bs=UNIT, iodepth=4, size=SIZE,
               number_ios=int(drive_writes * SIZE / UNIT), io_size=int(drive_writes * SIZE), **options)


def run(vm, check):
    disks = {serial: vm.disk(serial) for serial in LOADS}
    controllers = {serial: disk.split("n1")[0] for serial, disk in disks.items()}
    vm.sh(f"mkdir -p /tmp/history; printf '{live_model.SETTINGS}' >/tmp/flash.yaml")

    def figure(scrape, serial, metric, **labels):
        return scrape.value(metric, controller=controllers[serial], **labels)

    def start():
        daemon = machine.Daemon(vm, "--config", "/tmp/flash.yaml")
        daemon.wait_for(lambda scrape: all(figure(scrape, serial, "ssdpulse_model_written_drive_writes") is not None
                                           for serial in LOADS), "both drives have a model", 90)
        time.sleep(3)  # until the sampling parameters are in force
        return daemon

    daemon = start()
    begun = {serial: len(vm.devices[serial].backend.commands()) for serial in LOADS}
    for disk in disks.values():
        vm.fio(disk, 300, rw="write", bs="256k", iodepth=4, size=SIZE)
    written = 1
    for half in HALVES:
        write(vm, disks, half)
        written += half
        time.sleep(35)  # until the models are evaluated again
        scrape = daemon.at_rest()
        for serial in LOADS:
            have = figure(scrape, serial, "ssdpulse_model_written_drive_writes")
            check.that(have is not None and abs(have - written) < 0.01,
                       f"{serial}: {have} drive writes are known of {written}")
        if half is HALVES[0]:
            daemon.stop(seconds=60)
            daemon = start()
    for serial in LOADS:
        commands = vm.devices[serial].backend.commands()[begun[serial]:]
        live_model.judge(check, serial, live_model.estimate(scrape, controllers[serial]),
                         live_model.in_full(commands, SIZE, vm.state / f"{serial}.csv"))
    daemon.stop(seconds=60)
