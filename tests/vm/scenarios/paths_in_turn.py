# SPDX-License-Identifier: Apache-2.0
"""Two paths to one drive that take turns: a read during a discard counts as such, whichever path either took."""
import figures
import machine
from devices import NvmeSubsystem, Slow
from lib import metrics

KERNELS_IN_CI = ()  # the long form has all
READS, READ = 20, 0.05
TRIM = 10  # seconds: longer than all reads


def devices():
    return [NvmeSubsystem("shared", Slow("256M", read=READ, trim=TRIM), controllers=2)]


def reads_by_path(vm):
    return [int(ios) for ios in vm.sh("cat /sys/block/nvme*c*n*/stat | awk '{print $1}'").split()]


def run(vm, check):
    head = vm.disk("shared")
    vm.wait_for("[ $(cat /sys/class/nvme/nvme*/state | grep -c live) -eq 2 ]")
    vm.sh("for policy in /sys/class/nvme-subsystem/*/iopolicy; do echo round-robin >$policy; done")
    daemon = machine.Daemon(vm)
    before, before_by_path = daemon.at_rest(1.2), reads_by_path(vm)
    vm.sh(f"blkdiscard --force --length 1M /dev/{head} >/dev/null 2>&1 & "
          f"until cat /sys/block/nvme*c*n*/stat | awk '{{n += $9}} END {{exit n == 0}}'; do sleep 0.01; done")
    job = vm.fio(head, rw="randread", bs="4k", ioengine="psync", offset="64M", size="64M", number_ios=READS)
    vm.wait_for("! pgrep -x blkdiscard")
    difference = metrics.Difference(before, daemon.at_rest(2.2))
    seen = {during: difference.histogram(figures.DEVICE_TIME, device=head, operation="read", during=during).count
            for during in figures.DURINGS}
    check.equal({during: ios for during, ios in seen.items() if ios}, {"discard": job["read"]["total_ios"]},
                "reads beside a discard, as many as fio's")
    check.equal([after - earlier for after, earlier in zip(reads_by_path(vm), before_by_path)], [READS // 2, READS // 2],
                "reads of each path, by the kernel's own counts")
    daemon.stop()
