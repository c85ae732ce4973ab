# SPDX-License-Identifier: Apache-2.0
"""64 and 500 logical volumes of one disk: each is counted to the I/O, and what that costs: memory, a tick, series, answers.

The guest's clock counts instructions, so that times are those of an idle host. Nothing is preempted, as in `many`.
"""
import json

import machine
from lib import metrics
from volume_stacks import diskstats

KERNELS = ("newest",)
PART = "volumes"
MACHINE = {"own_time": True}
SECONDS = 1500
NUMBERS = (64, 500)
TOGETHER = 50  # threads of fio
SECTORS = 8 << 11
IDLE_SECONDS, ASKED = 20, 10
MAX_RESIDENT_MIB, MAX_TICK_MS = 64, 60  # of the largest host: 52 MiB and 42 ms, and a third for what another kernel does


def devices():
    return []


def create(vm, first, end):
    vm.sh(f"for n in $(seq {first} {end - 1}); do dmsetup create --noudevsync vg-lv$n --table \"0 {SECTORS} linear /dev/nullb0 "
          f"$((n * {SECTORS}))\" || exit; done; dmsetup mknodes; test $(ls /sys/block | grep -c ^dm-) = {end}", 600)


def load(vm, names):
    """{(volume, operation): I/Os} as fio says."""
    sent = {}
    for first in range(0, len(names), TOGETHER):
        jobs = " ".join(f"--name={name} --filename=/dev/{name} --number_ios={9 + number % 7}"
                        for number, name in enumerate(names[first:first + TOGETHER], first))
        out = vm.sh(f"chrt --fifo 1 fio --output-format=json --thread --direct=1 --ioengine=psync --rw=randrw --cpus_allowed=0-1 "
                    f"--cpus_allowed_policy=split --norandommap --bs=4k --size=4m {jobs}", 300)
        for job in json.loads(out[out.index("{"):])["jobs"]:
            sent.update({(job["jobname"], operation): job[operation]["total_ios"] for operation in ("read", "write")})
    return sent


def exact(vm, check, daemon, names):
    before, kernel = daemon.at_rest(2), diskstats(vm)
    sent = load(vm, names)
    difference, kernel_after = metrics.Difference(before, daemon.at_rest(6)), diskstats(vm)
    wrong = []
    for (name, operation), ios in sent.items():
        have = {"ios": int(difference.value("ssdpulse_volume_ios_total", volume=name, operation=operation)),
                "bytes": int(difference.value("ssdpulse_volume_bytes_total", volume=name, operation=operation))}
        by_kernel = {kind: kernel_after[name, operation, kind] - kernel[name, operation, kind] for kind in have}
        if not have == by_kernel == {"ios": ios, "bytes": 4096 * ios}:
            wrong.append(f"{name} {operation}: {have}, the kernel {by_kernel}, fio {ios}")
    check.that(not wrong, f"{len(names)} volumes, {sum(sent.values())} I/Os: {len(wrong)} of {len(sent)} figures are wrong: {wrong[:5]}")
    # Skipped runs are counted for the whole host: what a volume lacks shows in its figures.
    lost = {labels: value for family in ("ssdpulse_volume_losses_total", "ssdpulse_lost_events_total")
            for labels, value in difference.after.series(family).items() if value and dict(labels)["cause"] != "recursion"}
    check.equal(lost, {}, "lost")
    check.equal(difference.after.value("ssdpulse_volumes_left_out"), 0, "volumes without a row")


def cpu_ms(vm, daemon, script):
    """What the daemon's threads ran meanwhile; the kernel says it in steps of 10 ms."""
    total = f"awk '{{ print $14 + $15 }}' /proc/{daemon.pid}/stat"
    before, after = map(int, vm.sh(f"{total}; {script} >/dev/null; {total}", 300).split())
    return 10 * (after - before)


def costs(vm, check, daemon, number):
    tick = cpu_ms(vm, daemon, f"sleep {IDLE_SECONDS}") / IDLE_SECONDS
    answers = []
    for path in ("metrics", "api/v1/stacks"):  # apart: of one second's figures an answer is made once
        ask, begin = f"curl -s http://127.0.0.1:{daemon.PORT}/{path}", vm.clock()
        spent = cpu_ms(vm, daemon, f"for n in $(seq {ASKED}); do {ask}; sleep 1.1; done") - tick * (vm.clock() - begin)
        answers.append(f"/{path} {int(vm.sh(f'{ask} | wc -c')) / 1024:.0f} KiB in {spent / ASKED:.0f} ms")
    resident = int(vm.sh(f"awk '/VmRSS/ {{ print $2 }}' /proc/{daemon.pid}/status")) / 1024
    kernel = daemon.scrape().value("ssdpulse_kernel_memory_bytes", use="volumes") / (1 << 20)
    series = int(vm.sh(f"curl -s http://127.0.0.1:{daemon.PORT}/metrics | grep -vc '^#'"))
    print(f"TABLE {number} volumes: resident {resident:.1f} MiB, kernel {kernel:.1f} MiB, tick {tick:.1f} ms, {series} series, {', '.join(answers)}")
    check.that(resident <= MAX_RESIDENT_MIB and tick <= MAX_TICK_MS, f"{number} volumes: at most {MAX_RESIDENT_MIB} MiB resident, a tick of {MAX_TICK_MS} ms")


def run(vm, check):
    vm.sh("modprobe dm-mod; modprobe null_blk nr_devices=1 gb=8 queue_mode=2 submit_queues=2 && test -b /dev/nullb0")
    made = 0
    for number in NUMBERS:
        create(vm, made, number)
        made = number
        daemon = machine.Daemon(vm)
        names = sorted(name for name in vm.sh("ls /sys/block").split() if name.startswith("dm-"))
        exact(vm, check, daemon, names)
        costs(vm, check, daemon, number)
        daemon.stop()
    vm.sh("dmsetup remove_all --force; modprobe -r null_blk")
