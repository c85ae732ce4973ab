# SPDX-License-Identifier: Apache-2.0
"""The clock steps by a day, a CPU goes and returns, the host sleeps: each I/O is still counted, nothing is made up."""
import time

import figures
import machine
from devices import Nvme, Slow
from lib import metrics

KERNELS_IN_CI = ()  # clocks that step, CPUs that go offline: it depends on the host how much of that a guest notices
MACHINE = {"append": "nvme_core.multipath=N"}
DELAY = 0.002
DAY = 86400
CPU = "/sys/devices/system/cpu/cpu1/online"
SLEEP_SECONDS = 4


def devices():
    return [Nvme("ours", Slow("256M", read=DELAY, write=DELAY))]


def judged(vm, check, daemon, disk, what, happens, ios=1500, **options):
    """Runs a load of `ios` I/Os while it happens; exactly that must be exported, with no I/O longer than the load."""
    before = daemon.at_rest()
    began = time.monotonic()
    end = vm.background_fio(disk, rw="randrw", bs="4k", iodepth=4, number_ios=ios, **options)
    happens()
    job = end()
    after = daemon.at_rest(3)
    difference = metrics.Difference(before, after)
    for operation in ("read", "write"):
        check.equal(figures.ios(difference, disk, operation), job[operation]["total_ios"], f"{what}: {operation}s")
    figures.at_rest(check, after, disk)
    seconds = sum(difference.histogram(figures.DEVICE_TIME, device=disk, operation=operation, during="none").sum
                  for operation in ("read", "write"))
    lasted = time.monotonic() - began
    check.that(0 < seconds <= 4 * lasted, f"{what}: device time {seconds:.1f} s of 4 I/Os at a time in {lasted:.1f} s")
    check.equal(daemon.vm.run(f"curl -sf http://127.0.0.1:{daemon.PORT}/-/ready -o /dev/null")[0], 0, f"{what}: ready")
    return difference


def step_clock(vm, seconds):
    vm.sh(f"date -s @$(($(date +%s) + {seconds})) >/dev/null")


def turn_cpu_off_and_on(vm):
    for _ in range(4):
        vm.sh(f"sleep 0.3; echo 0 >{CPU}; sleep 0.3; echo 1 >{CPU}")


def fall_asleep(vm):
    """Suspends to memory, as a laptop does; woken from outside."""
    vm.sh("(sleep 0.5; echo mem >/sys/power/state) >/dev/null 2>&1 &")
    deadline = time.monotonic() + 30
    while vm.qmp("query-status")["status"] != "suspended":
        if time.monotonic() > deadline:
            raise machine.GuestError("it does not fall asleep: " + vm.sh("dmesg | tail -5"))
        time.sleep(0.2)
    time.sleep(SLEEP_SECONDS)
    vm.qmp("system_wakeup")
    vm.sh("true", 60)


def run(vm, check):
    disk = vm.disk("ours")
    daemon = machine.Daemon(vm)

    def told(scrape, name):
        return sum(scrape.series(name).values())

    for words, step in (("a day forward", DAY), ("two days back", -2 * DAY), ("a day forward again", DAY)):
        difference = judged(vm, check, daemon, disk, words, lambda step=step: (time.sleep(0.5), step_clock(vm, step)))
        wall = int(vm.sh("date +%s"))
        taken = difference.after.value("ssdpulse_snapshot_timestamp_seconds")
        check.that(abs(taken - wall) < 10, f"{words}: the snapshot is of now: {taken - wall:+.1f} s")

    judged(vm, check, daemon, disk, "a CPU went four times", lambda: turn_cpu_off_and_on(vm))

    def uptimes():
        return [float(word) for word in vm.sh("cat /proc/uptime").split()]

    slept = uptimes()[0]
    difference = judged(vm, check, daemon, disk, "the host slept", lambda: fall_asleep(vm))
    slept = uptimes()[0] - slept
    complaint = vm.sh("dmesg | grep -c 'PM: suspend exit'")
    check.that(slept > SLEEP_SECONDS and int(complaint) == 1, f"the host slept: {complaint.strip()} time, {slept:.1f} s in all")
    check.equal(told(difference.after, "ssdpulse_latency_spikes_total"), told(difference.before, "ssdpulse_latency_spikes_total"),
                "the host slept: latency spikes")
    daemon.stop()
    check.equal(machine.bpf_left(vm), ([], []), "stopped: programs and maps")
