# SPDX-License-Identifier: Apache-2.0
"""64 drives under load: each one is right, and the kernel's memory is what the daemon reports.

From Linux 7 on a program can be preempted, and until it resumes the kernel skips (and counts) the runs of other tasks
on that CPU. Emulated, a program takes so long that this happens to one I/O in ten. So that exact figures can be
required of every kernel, nothing is preempted here: fio's threads have one real-time priority, stay on their CPU, and
issue what they submit themselves, because with two hardware queues there is no I/O scheduler.
"""
import json

import figures
import machine
from lib import metrics

KERNELS_IN_CI = ("newest",)  # the long form has all
SHARES_GUEST = True
DRIVES, IOS = 64, 60
UNPREEMPTED = "chrt --fifo 1"


def devices():
    return []


def run(vm, check):
    vm.sh(f"modprobe null_blk nr_devices={DRIVES} gb=1 queue_mode=2 submit_queues=2")
    disks = [f"nullb{number}" for number in range(DRIVES)]
    vm.wait_for(f"test -e /sys/block/{disks[-1]}")
    daemon = machine.Daemon(vm)
    before = daemon.at_rest(2)
    jobs = " ".join(f"--name={disk} --filename=/dev/{disk} --number_ios={IOS + number}"
                    for number, disk in enumerate(disks))
    out = vm.sh(f"{UNPREEMPTED} fio --output-format=json --thread --direct=1 --ioengine=libaio --iodepth=4 --rw=randrw "
                f"--cpus_allowed=0-1 --cpus_allowed_policy=split --norandommap --bs=4k --size=64m {jobs}", 120)
    reports = {job["jobname"]: job for job in json.loads(out[out.index("{"):])["jobs"]}
    difference = metrics.Difference(before, daemon.at_rest(6))
    wrong = []
    for disk in disks:
        for operation in ("read", "write"):
            have = figures.ios(difference, disk, operation), figures.size(difference, disk, operation)
            want = reports[disk][operation]["total_ios"], reports[disk][operation]["io_bytes"]
            if have != want:
                wrong.append(f"{disk} {operation}: {have}, expected {want}")
        drift = figures.drift(difference.after, disk)
        if not drift or any(drift.values()):
            wrong.append(f"{disk}: drift {drift}")
    check.that(not wrong, f"{DRIVES} drives, {len(wrong)} figures wrong: {wrong[:5]}")
    lost = difference.after.series("ssdpulse_lost_events_total")
    # Skipped runs are counted for the whole host: what a drive lacks shows in its figures.
    check.equal({tuple(sorted(labels)): value for labels, value in lost.items()
                 if value and dict(labels)["cause"] != "recursion"}, {}, "lost")
    said = sum(difference.after.series("ssdpulse_kernel_memory_bytes").values())
    maps = json.loads(vm.sh("bpftool -j map show"))
    entries = sum(entry["max_entries"] * (entry["bytes_value"] or 1) for entry in maps)  # of a ring buffer: its bytes
    check.that(abs(entries - said) <= 0.02 * said, f"kernel memory: {said:.0f} bytes said, {entries} in maps")
    if vm.name != "6.1":  # Linux 5.11 to 6.2 report a rough figure that counts the keys of arrays too
        have = sum(entry["bytes_memlock"] for entry in maps)
        check.that(abs(have - said) <= 0.02 * said, f"kernel memory: {said:.0f} bytes said, {have} by the kernel")
    daemon.stop()
    vm.sh("modprobe -r null_blk")
