# SPDX-License-Identifier: Apache-2.0
"""An hour of load, scrapes, and a drive pulled again and again: memory and descriptors stay, no tick or I/O is lost.

Except for what the kernel skips: a drive that is pulled ends its I/O in process context, and an interrupt that ends
another drive's I/O just then runs no program. That is counted and reported; only under emulation does the program take
so long.

SSDPULSE_SOAK_SECONDS sets another length. A clock that is read four times a second shows when the host stops the guest:
the daemon may miss no more ticks than in such stops.
"""
import os
import re
import time

import figures
import machine
from devices import Nvme, Slow
from lib import metrics

KERNELS = ("6.12",)
PART = "soak"
SECONDS = 900  # ten times that
MACHINE = {"append": "nvme_core.multipath=N"}
DELAY = 0.01
LENGTH = int(os.environ.get("SSDPULSE_SOAK_SECONDS", "3600"))
ROUND = 15  # seconds from one time that the drive is pulled to the next
SKIPPED = 1e-4  # of the I/Os at most
WARM = 1 / 4  # of the length: until then memory may grow
GROWTH = 512 << 10  # bytes an hour
SETTLED = 256 << 10  # bytes, in a run of any length: one arena more
# For each process: time, PID, anonymous KiB, descriptors.
SAMPLER = ("while sleep 5; do for pid in $(pidof ssdpulse); do echo $(cut -d' ' -f1 /proc/uptime) $pid "
           "$(sed -n 's/^RssAnon:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/$pid/status) $(ls /proc/$pid/fd | wc -l); done; "
           "done 2>/dev/null")
CLOCK = ("read last rest </proc/uptime; while sleep 0.25; do read now rest </proc/uptime; "
         "[ $((${now%.*}${now#*.} - ${last%.*}${last#*.})) -lt 50 ] || echo $last $now; last=$now; done")
SCRAPE = f"curl -sf -o /dev/null http://127.0.0.1:{machine.Daemon.PORT}/metrics"
SCRAPER = f"while sleep 1; do {SCRAPE} && {SCRAPE} --compressed -H 'Accept: {metrics.PROTOBUF}' && echo; done"


def devices():
    return [Nvme(serial, Slow("256M", read=DELAY, write=DELAY)) for serial in ("steady", "roving")]


def come_and_go(vm, until):
    """How often the drive was pulled, each time in the middle of a load."""
    rounds = 0
    while time.monotonic() < until:
        began = time.monotonic()
        end = vm.background_fio(vm.disk("roving"), rw="randrw", bs="4k", iodepth=4, number_ios=100000)
        vm.unplug("roving")
        end()
        vm.plug("roving")
        vm.disk("roving")
        rounds += 1
        time.sleep(max(0, began + ROUND - time.monotonic()))
    return rounds


def slope(samples):
    """Least squares: units a second."""
    mean_x = sum(x for x, _ in samples) / len(samples)
    mean_y = sum(y for _, y in samples) / len(samples)
    return (sum((x - mean_x) * (y - mean_y) for x, y in samples) / sum((x - mean_x) ** 2 for x, _ in samples))


def judge_process(check, name, samples):
    """samples: [(uptime, bytes, descriptors)]"""
    begin = samples[0][0]
    late = [sample for sample in samples if sample[0] - begin >= WARM * (samples[-1][0] - begin)]
    growth = slope([(when, size) for when, size, _ in late]) * 3600
    moved = growth * (late[-1][0] - late[0][0]) / 3600
    sizes = [size >> 10 for _, size, _ in samples]
    print(f"TABLE soak, {name}: anonymous memory {sizes[0]} KiB at first, {sizes[-1]} KiB at last, "
          f"{max(sizes)} KiB at most; slope {growth / 1024:+.1f} KiB/h")
    check.that(growth <= GROWTH or moved <= SETTLED, f"{name}: memory grows by {growth / 1024:+.1f} KiB/h, by "
               f"{moved / 1024:+.1f} KiB in {late[-1][0] - late[0][0]:.0f} s")
    third = len(late) // 3
    first, last = (sorted(count for _, _, count in part)[third // 2] for part in (late[:third], late[-third:]))
    check.equal(last, first, f"{name}: descriptors ({max(count for _, _, count in samples)} at most)")


def run(vm, check):
    steady = vm.disk("steady")
    vm.disk("roving")
    vm.sh("mkdir -p /tmp/history; printf 'nvme: { poll_interval: 10s }\\nhistory: { directory: /tmp/history }\\n' "
          ">/tmp/soak.yaml")
    daemon = machine.Daemon(vm, "--config", "/tmp/soak.yaml")
    daemon.when_drives_were_read(2, 0)
    before = daemon.at_rest()
    end = vm.background_fio(steady, rw="randrw", bs="4k", iodepth=4, thinktime="20ms", number_ios=10**9, time_based=None,
                            runtime=LENGTH)
    vm.sh("".join(f"{{ {script}; }} >/tmp/soak.{name} 2>&1 & echo $! >>/tmp/soak.pids; " for name, script in
                  (("samples", SAMPLER), ("stops", CLOCK), ("scrapes", SCRAPER))))
    rounds = come_and_go(vm, time.monotonic() + LENGTH)
    job = end(120)
    after = daemon.at_rest(6)
    vm.sh("kill $(cat /tmp/soak.pids)")
    scrapes = int(vm.sh("wc -l </tmp/soak.scrapes"))
    stops = [float(now) - float(last) for last, now in map(str.split, vm.sh("cat /tmp/soak.stops").splitlines())]
    processes = {}
    lines = vm.sh("cat /tmp/soak.samples")
    (vm.state / "samples").write_text(lines)
    for line in lines.splitlines():
        # A process that ends while it is being read leaves part of a line, or an error message of sed.
        if found := re.fullmatch(r"([0-9.]+) (\d+) (\d+) (\d+)", line):
            processes.setdefault(int(found[2]), []).append((float(found[1]), int(found[3]) << 10, int(found[4])))
    passing = [pid for pid, samples in processes.items() if len(samples) < 3]  # on its way to exec or to its end
    for pid in passing:
        print(f"     a process that was there for a moment: {pid}: {processes.pop(pid)}")
    lasting = {len(samples) for samples in processes.values()}
    check.that(len(processes) > 1 and max(lasting) - min(lasting) <= 2 and min(lasting) >= LENGTH / 20,
               f"{len(processes)} processes, the same for all the time: samples {lasting}; {len(passing)} others for a moment")
    for pid, samples in processes.items():
        judge_process(check, "daemon" if pid == daemon.pid else f"reader {pid}", samples)

    difference = metrics.Difference(before, after)
    asked = sum(job[operation]["total_ios"] for operation in ("read", "write"))
    counted = sum(figures.ios(difference, steady, operation) for operation in ("read", "write"))
    runs_skipped = figures.skipped_runs(after)["on_complete"]
    lost = {disk: {cause: count for cause, count in figures.lost(after, disk).items()
                   if cause not in ("recursion", "device_pending")}  # of the whole host; of a drive not known yet
            for disk in (steady, vm.disk("roving"))}
    skipped = int(lost[steady].pop("completion_missed", 0))
    check.that(skipped <= min(runs_skipped, asked * SKIPPED), f"{skipped} of {asked} I/Os ended while the kernel skipped the "
               f"program, {runs_skipped:.0f} times as it says itself")
    check.equal(counted + skipped, asked, "I/Os of the load, with those that were told to be skipped")
    check.that(not any(lost.values()), f"lost for any other cause, or of the other drive: {lost}")
    figures.at_rest(check, after, steady, known_losses=["device_pending", "completion_missed"])
    missed = int(difference.value("ssdpulse_missed_ticks_total"))
    check.that(missed <= sum(1 + int(stop) for stop in stops), f"{missed} ticks missed, {len(stops)} stops of the guest "
               f"({sum(stops):.1f} s)")
    check.that(scrapes >= LENGTH / 20, f"{scrapes} times two scrapes")
    print(f"TABLE soak: {LENGTH} s, the drive was pulled {rounds} times, {2 * scrapes} scrapes, {missed} ticks missed, "
          f"{len(stops)} stops of the guest, {skipped} of {asked} I/Os skipped by the kernel, and told")
    daemon.stop()
