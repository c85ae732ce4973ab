# SPDX-License-Identifier: Apache-2.0
"""With 1 % of the events lost, the live estimate stays within 5 %; with 10 % lost there is none, for that reason.

The daemon is stopped by a signal while more is written than the kernel's ring of events holds.
"""
import time

import live_model
import machine
from devices import Logged, Nvme

PART = "flash"
KERNELS = ("5.10", "newest")
MACHINE = {"append": "nvme_core.multipath=N"}
SECONDS = 1800
SIZE, UNIT = 256 << 20, 4096
RING_EVENTS = (1 << 20) // 24  # kSampleBytes; an event has 16 bytes and the kernel's header of 8
EVENTS_OF_A_DRIVE_WRITE = SIZE // UNIT // 2  # every second page is followed
WRITES_AT_MOST = 0.03  # EventLosses::kMaxWrites


def devices():
    return [Nvme("lossy", Logged(str(SIZE)))]


def run(vm, check):
    disk = vm.disk("lossy")
    controller = disk.split("n1")[0]
    vm.sh(f"mkdir -p /tmp/history; printf '{live_model.SETTINGS}' >/tmp/flash.yaml")
    daemon = machine.Daemon(vm, "--config", "/tmp/flash.yaml")

    def figure(scrape, metric, **labels):
        return scrape.value(metric, controller=controller, **labels)

    def write(count):
        vm.fio(disk, 600, rw="randwrite", bs=UNIT, iodepth=16, size=SIZE, number_ios=count, io_size=count * UNIT,
               norandommap=None, randseed=count)

    def lose(share):
        """Writes while nothing reads events, until this share of a drive write's events found no room."""
        vm.sh(f"kill -STOP {daemon.pid}")
        write(2 * int(RING_EVENTS + share * EVENTS_OF_A_DRIVE_WRITE))
        vm.sh(f"kill -CONT {daemon.pid}")
        time.sleep(35)  # until the model is evaluated again
        return daemon.at_rest()

    daemon.wait_for(lambda scrape: figure(scrape, "ssdpulse_model_written_drive_writes") is not None, "there is a model", 90)
    time.sleep(3)  # until the sampling parameters are in force
    begun = len(vm.devices["lossy"].backend.commands())
    vm.fio(disk, 300, rw="write", bs="256k", iodepth=4, size=SIZE)
    write(SIZE // UNIT)
    check.equal(figure(daemon.at_rest(), "ssdpulse_model_lost_events_total", kind="write"), 0, "nothing was lost so far")
    scrape = lose(0.01)
    commands = vm.devices["lossy"].backend.commands()[begun:]
    lost = figure(scrape, "ssdpulse_model_lost_events_total", kind="write")
    share = figure(scrape, "ssdpulse_model_lost_events_ratio", kind="write")
    written = sum(size for kind, _, size in commands if kind == "write") / SIZE
    have = figure(scrape, "ssdpulse_model_written_drive_writes")
    print(f"TABLE flash losses: {lost:.0f} events, {100 * share:.2f} % of those of a drive write; {have:.3f} of "
          f"{written:.3f} drive writes counted")
    check.that(0.003 < share < 0.02, f"a hundredth is lost: {share}")
    check.that(abs(have - written) < 0.001, f"pages are counted in the kernel, lost or not: {have} of {written}")
    live_model.judge(check, "a hundredth lost", live_model.estimate(scrape, controller),
                     live_model.in_full(commands, SIZE, vm.state / "lossy.csv"))

    scrape = lose(0.12)
    share = figure(scrape, "ssdpulse_model_lost_events_ratio", kind="write")
    print(f"TABLE flash losses, then: {100 * share:.1f} % of those of a drive write")
    check.that(0.07 < share < 0.15, f"a tenth is lost: {share}")
    live = live_model.estimate(scrape, controller)
    check.equal(set(live.values()), {None}, f"more than {WRITES_AT_MOST:.0%} lost: estimates")
    check.equal(figure(scrape, "ssdpulse_modelled_write_amplification_silence_info", window="24h", reason="events_lost"), 1,
                "and why there is none")
    words = vm.sh("ssdpulse devices 2>&1")
    check.that("events" in words and "lost" in words, f"devices says so: {words}")
    daemon.stop(seconds=60)
