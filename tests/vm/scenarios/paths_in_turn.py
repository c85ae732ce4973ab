# SPDX-License-Identifier: Apache-2.0
"""Two paths to one drive that take turns: a read during a discard counts as such, whichever path either took."""
import figures
import machine
from devices import NvmeSubsystem, Slow
from lib import metrics

KERNELS_IN_CI = ()  # the long form has all
READS, READ = 20, 0.05
TRIM = 10  # seconds: longer than all reads
ROUNDS = 6  # of which two on paths that differ, as the paths take turns: a discard and the reads are an odd number of I/Os


def devices():
    return [NvmeSubsystem("shared", Slow("256M", read=READ, trim=TRIM), controllers=2)]


def ios_by_path(vm, field):
    """By path, one of the kernel's own counts: field 1: reads, 9: in flight."""
    return [int(ios) for ios in vm.sh(f"cat /sys/block/nvme*c*n*/stat | awk '{{print ${field}}}'").split()]


def reads_beside_a_discard(vm, check, daemon, head):
    before, before_by_path = daemon.at_rest(1.2), ios_by_path(vm, 1)
    vm.sh(f"blkdiscard --force --length 1M /dev/{head} >/dev/null 2>&1 & "
          f"until cat /sys/block/nvme*c*n*/stat | awk '{{n += $9}} END {{exit n == 0}}'; do sleep 0.01; done")
    path = [in_flight > 0 for in_flight in ios_by_path(vm, 9)].index(True)
    job = vm.fio(head, rw="randread", bs="4k", ioengine="psync", offset="64M", size="64M", number_ios=READS)
    vm.wait_for("! pgrep -x blkdiscard")
    difference = metrics.Difference(before, daemon.at_rest(2.2))
    seen = {during: difference.histogram(figures.DEVICE_TIME, device=head, operation="read", during=during).count
            for during in figures.DURINGS}
    check.equal({during: ios for during, ios in seen.items() if ios}, {"discard": job["read"]["total_ios"]},
                f"reads beside a discard on path {path}, as many as fio's")
    check.equal([after - earlier for after, earlier in zip(ios_by_path(vm, 1), before_by_path)], [READS // 2, READS // 2],
                "reads of each path, by the kernel's own counts")
    return path


def run(vm, check):
    head = vm.disk("shared")
    vm.wait_for("[ $(cat /sys/class/nvme/nvme*/state | grep -c live) -eq 2 ]")
    vm.sh("for policy in /sys/class/nvme-subsystem/*/iopolicy; do echo round-robin >$policy; done")
    daemon = machine.Daemon(vm)
    # One path's state is that of the drive: only a discard on the other shows that they share it.
    paths = set()
    for _ in range(ROUNDS):
        paths.add(reads_beside_a_discard(vm, check, daemon, head))
        if len(paths) == 2:
            break
    check.equal(paths, {0, 1}, "paths on which a discard ran")
    daemon.stop()
