# SPDX-License-Identifier: Apache-2.0
"""Latency spikes are found when they occur, with their cause, and only then: drives go wrong at known times."""
import random
import re
import threading
import time

import machine
import spike_cases
from spike_cases import CASES, UPDATE

KERNELS = ("6.12",)  # what is judged does not depend on the kernel
PART = "spikes"  # CI replays spikes without a guest
MACHINE = {"append": "nvme_core.multipath=N", "memory": "2G"}
SECONDS = 420
POLL_SECONDS = 10
WARM, SICK, AFTER = 16, 6, 18  # seconds: of the last, a poll takes up to 11
NEAR = 2
SUPPRESSED = re.compile(r"suppressed=(\d+)")
LINE = re.compile(r"latency spike device=(\S+) operation=(read|write) cause=(\S+) begin=(\S+) seconds=(\S+) (.*)")


def devices():
    return [case.device(serial) for serial, case in CASES.items()]


def base_load(vm, disks, seconds):
    """One fio for all drives, in the background."""
    jobs = " ".join(
        f"--name={serial} --filename=/dev/{disks[serial]} --bs=4k --time_based --runtime={seconds} " +
        " ".join(f"--{key}={value}" for key, value in job.items())
        for serial, case in CASES.items() if serial in disks for job in case.load)
    vm.sh("fio --direct=1 --ioengine=psync --norandommap --randrepeat=0 --thread --continue_on_error=io "
          f"{jobs} >/tmp/base.log 2>&1 &")


class Clocks:
    """The guest's wall clock, for times since its boot and of the host's monotonic clock. Its date has no fractions."""

    def __init__(self, vm):
        self._real = int(vm.sh("sed -n 's/.*\\.offset: *\\([0-9]\\{18,\\}\\) nsecs/\\1/p' /proc/timer_list | "
                               "head -n 1")) / 1e9
        rounds = []
        for _ in range(10):
            before = time.monotonic()
            uptime = float(vm.sh("cat /proc/uptime").split()[0])
            after = time.monotonic()
            rounds.append((after - before, uptime - (before + after) / 2))
        print(f"     the clocks agree within {min(rounds)[0] / 2:.3f} s")
        self._boot = min(rounds)[1]

    def at(self, monotonic):
        return monotonic + self._boot + self._real

    def of_host(self, wall):
        return self.at(wall - time.time() + time.monotonic())


class Ramps:
    """Drives that become slower a little at a time."""

    def __init__(self, vm, serials):
        self._ramps = {serial: CASES[serial].ramp for serial in serials if CASES[serial].ramp}
        self._vm, self._end = vm, threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        began = time.monotonic()
        while not self._end.wait(0.5):
            for serial, slope in self._ramps.items():
                more = slope * (time.monotonic() - began)
                self._vm.devices[serial].backend.set(read=spike_cases.READ + more, write=spike_cases.WRITE + more)

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()


def set_hot(vm, serials, hot):
    for serial in serials:
        if CASES[serial].hot:
            vm.qmp("qom-set", path=f"/machine/peripheral/{serial}", property="smart_critical_warning",
                   value=2 if hot else 0)


def make_sick(vm, disks, seconds):
    """All at once, and well again after `seconds`. {serial: (begin, end)} by the guest's clock."""
    clocks, times = Clocks(vm), {}
    cases = {serial: CASES[serial] for serial in disks}
    scripts = ["touch /tmp/sick;"]
    for serial, case in cases.items():
        vm.devices[serial].backend.forget_seen()
        words = {"disk": disks[serial], "seconds": seconds}
        if case.guest:
            scripts.append("{ " + case.guest.format(**words) +
                           f"; echo 1 >/tmp/{serial}.end; }} >/tmp/{serial}.log 2>&1 &")
        if case.updates:
            scripts.append("{ " + UPDATE.format(**words) + "; } >/dev/null 2>&1 &")
    set_hot(vm, disks, True)
    began = time.monotonic()
    for serial, case in cases.items():
        times[serial] = began, began + seconds
        if case.stall:
            vm.devices[serial].backend.stall(seconds)
        else:
            vm.devices[serial].backend.set(**case.sick)
    vm.sh(" ".join(scripts) + " true")
    time.sleep(max(0, began + seconds - time.monotonic()))
    for serial, case in cases.items():
        if not case.guest and not case.ramp:
            make_well(vm, serial)
            times[serial] = began, max(time.monotonic(), began + seconds)
    vm.sh("rm /tmp/sick")
    for serial, case in cases.items():
        if case.guest:
            vm.wait_for(f"[ -s /tmp/{serial}.end ]", 30)
            make_well(vm, serial)
    return {serial: tuple(map(clocks.of_host, vm.devices[serial].backend.seen())) if cases[serial].guest
            else tuple(map(clocks.at, times[serial])) for serial in disks}


def make_well(vm, serial):
    case = CASES[serial]
    vm.devices[serial].backend.set(**{**{key: 0 for key in case.sick}, "read": spike_cases.READ,
                                      "write": spike_cases.WRITE, **case.healthy})


def spikes_of(daemon):
    """[(device, operation, cause, begin, end, rest)]"""
    return [(device, operation, cause, machine.wall_seconds(begin), machine.wall_seconds(begin) + float(seconds), rest)
            for device, operation, cause, begin, seconds, rest in LINE.findall(daemon.words())]


class Verdicts:
    """What was found for each thing that was done, over all rounds."""

    def __init__(self):
        self.found, self.missed, self.far = [], [], []

    def judge(self, disks, times, spikes):
        for serial, disk in disks.items():
            case, (begin, end) = CASES[serial], times[serial]
            own = [spike for spike in spikes if spike[0] == disk]
            for _, operation, cause, found_begin, found_end, rest in own:
                self.found.append((case.cause, cause))
                print(f"     {serial} {operation}: {cause}, begin {found_begin - begin:+.2f} s, "
                      f"end {found_end - end:+.2f} s")
                if cause != case.cause:
                    print(f"     WRONG {serial} {operation}: {cause}: {rest}")
                elif operation in case.harms and max(abs(found_begin - begin), abs(found_end - end)) > NEAR:
                    self.far.append(f"{serial} {operation} {found_begin - begin:+.2f} {found_end - end:+.2f}")
            if case.cause and case.cause not in {spike[2] for spike in own}:
                self.missed.append((serial, case.cause))
                print(f"     MISSED {serial}: {case.cause}")

    def matrix(self):
        for expected in sorted({expected or "silence" for expected, _ in self.found}):
            row = [cause for wanted, cause in self.found if (wanted or "silence") == expected]
            print(f"TABLE spikes {expected}: " + ", ".join(f"{cause} {row.count(cause)}" for cause in sorted(set(row))))

    def check(self, check, cases):
        right = sum(expected == cause for expected, cause in self.found)
        precision = right / max(1, len(self.found))
        recall = 1 - len(self.missed) / max(1, cases)
        print(f"TABLE spikes: precision {precision:.3f} of {len(self.found)} spikes, recall {recall:.3f} of {cases} cases")
        check.that(precision >= 0.95, f"precision {precision:.3f} of {len(self.found)} spikes")
        check.that(recall >= 0.95, f"recall {recall:.3f} of {cases} cases; missed {self.missed}")
        check.that(not self.far, f"begin and end within {NEAR} s; not so: {self.far}")


def play(vm, check, verdicts, serials, sick):
    disks = {serial: vm.disk(serial) for serial in serials}
    for serial, disk in disks.items():
        if CASES[serial].prepare:
            vm.sh(CASES[serial].prepare.format(disk=disk))
    daemon = machine.Daemon(vm, "--config", "/tmp/spikes.yaml")
    base_load(vm, disks, WARM + sick + AFTER + 60)
    with Ramps(vm, disks):
        time.sleep(WARM)
        times = make_sick(vm, disks, sick)
        time.sleep(AFTER)
    set_hot(vm, disks, False)  # a drive is hot for a while; the reading after the spike has seen it
    spikes = spikes_of(daemon)
    verdicts.judge(disks, times, spikes)
    scrape = daemon.scrape()
    for serial, disk in disks.items():
        total = sum(sum(scrape.series("ssdpulse_latency_spikes_total", device=disk, operation=operation).values())
                    for operation in ("read", "write"))
        own = [spike for spike in spikes if spike[0] == disk]
        told = len(own) + sum(int(SUPPRESSED.search(spike[5]).group(1)) for spike in own)
        # One line in 10 s for a device and operation: that of the worst, which gives the number of those not written.
        check.that(told <= total <= told + 4, f"{serial}: {total:.0f} counted, {told} told of in the log")
    active = sum(scrape.series("ssdpulse_latency_spike_active").values())
    check.equal(active, 0, "spikes that go on")
    vm.sh("kill $(pidof fio); rm -f /tmp/*.end; true")
    daemon.stop()


def healthy(vm, check, serials, seconds):
    """Nothing goes wrong for a long time."""
    disks = {serial: vm.disk(serial) for serial in serials}
    daemon = machine.Daemon(vm, "--config", "/tmp/spikes.yaml")
    base_load(vm, disks, seconds)
    time.sleep(seconds)
    check.equal(spikes_of(daemon), [], f"spikes in {seconds} s of healthy load")
    daemon.stop()


def run(vm, check):
    vm.sh(f"printf 'nvme: {{ poll_interval: {POLL_SECONDS}s }}\\nhistory: {{ directory: \"\" }}\\n' >/tmp/spikes.yaml")
    serials = list(CASES) if vm.name == "6.12" or vm.long else list(spike_cases.FEW)
    verdicts, rounds = Verdicts(), 5 if vm.long else 1
    for _ in range(rounds):
        play(vm, check, verdicts, serials, random.uniform(5, 12) if vm.long else SICK)
    verdicts.matrix()
    verdicts.check(check, rounds * sum(CASES[serial].cause is not None for serial in serials))
    if vm.long:
        healthy(vm, check, [serial for serial in serials if CASES[serial].cause is None or not CASES[serial].guest], 600)
