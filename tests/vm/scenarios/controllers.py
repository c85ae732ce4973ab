# SPDX-License-Identifier: Apache-2.0
"""Two controllers of one subsystem, one of which is removed: the audit judges the drive by what it reports through either."""
import time

import decisions
from devices import Nvme, NvmeSubsystem

KERNELS_IN_CI = ()  # the long form has all
READ_ONLY = 8  # the bit of critical_warning


def devices():
    # Kernels number a subsystem after its first controller: once that is removed, no controller has its number.
    return [Nvme("first"), NvmeSubsystem("shared", controllers=2)]


def controllers_of(vm, head):
    return vm.sh(f"ls /sys/block/{head}/device | grep -E '^nvme[0-9]+$'").split()


def finding_once(host, disk, verdict, seconds=60):
    """The drive is polled every 10 s, and again after a controller is gone."""
    end = time.monotonic() + seconds
    while True:
        found = host.finding("N10", disk)
        if found["verdict"] == verdict or time.monotonic() > end:
            return found
        time.sleep(1)


def run(vm, check):
    head, other = vm.disk("shared"), vm.disk("first")
    vm.wait_for("[ $(cat /sys/class/nvme/nvme*/state | grep -c live) -eq 3 ]")
    before = controllers_of(vm, head)
    check.equal(len(before), 2, f"controllers of {head}: {before}")
    host = decisions.Host(vm, reads_drives=True)
    check.equal(finding_once(host, head, "ok")["verdict"], "ok", "two controllers: N10")
    for number in (1, 2):
        vm.qmp("qom-set", path=f"/machine/peripheral/shared-{number}", property="smart_critical_warning", value=READ_ONLY)
    warned = finding_once(host, head, "danger")
    check.equal((warned["verdict"], "no more writes" in warned["why"]), ("danger", True),
                f"two controllers, read-only: {warned['found']}: {warned['why']}")
    check.equal(host.finding("N10", other)["verdict"], "ok", "the other drive's N10")
    named = head.rsplit("n", 1)[0]
    check.that(named in before, f"{head} is named after one of its controllers: {before}")
    removed = int(vm.sh(f"cat /sys/class/nvme/{named}/cntlid")) + 1  # the emulator counts from 0 in the order of its devices
    vm.unplug(f"shared-{removed}")
    vm.wait_for("[ $(ls /sys/class/nvme | wc -l) -eq 2 ]")
    left = controllers_of(vm, head)
    check.equal(len(left), 1, f"controllers of {head} after one was removed: {left}")
    check.that(named not in left, f"{head} is named after none of its controllers: {left}")
    time.sleep(15)
    after = finding_once(host, head, "danger")
    check.equal(after["verdict"], "danger", f"one controller, read-only: {after['found']}: {after['why']}")
    check.equal(host.finding("N10", other)["verdict"], "ok", "the other drive's N10, one controller")
    print(f"TABLE controllers: {head} by {'+'.join(before)}, then by {left[0]}: {after['verdict']}, {after['found']}")
    host.daemon.stop()
