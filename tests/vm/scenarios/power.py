# SPDX-License-Identifier: Apache-2.0
"""A power cut: the history loses a minute at most, a drive's counters start over, and no ratio is absurd."""
import random
import re
import time

import machine
from devices import Backend, NvmeSubsystem, VirtioBlk

KERNELS_IN_CI = ()  # a hundred seconds of power cuts; CI kills only the daemon (system.test_history_faults)
POLL_SECONDS = 10
WRITING_SECONDS = 33
ROUND = 256 << 10
RATIO = 4.0
MOST_WAITING = 50  # steps for which the writer's history has room
EPOCHS = "ssdpulse_nvme_write_epochs_total"


def devices():
    return [NvmeSubsystem("fdp", Backend("256M"), fdp="fdp.runs=1M,fdp.nrg=1,fdp.nruh=4"),
            VirtioBlk("state", Backend("64M", data=True))]


class Boot:
    def __init__(self, vm):
        self.vm, self.disk = vm, vm.disk("fdp")
        vm.sh("modprobe ext4; mkdir -p /mnt/state; grep -q /mnt/state /proc/mounts || "
              f"mount -t ext4 /dev/{vm.disk('state')} /mnt/state")
        vm.sh(f"printf 'nvme: {{ poll_interval: {POLL_SECONDS}s }}\\nhistory: {{ directory: /mnt/state/ssdpulse }}\\n' "
              ">/tmp/power.yaml")
        self.daemon = machine.Daemon(vm, "--config", "/tmp/power.yaml")
        self.daemon.when_drives_were_read(1, 0)
        # No writes are reported before the history has been read.
        self.first = self.daemon.wait_for(lambda scrape: None not in totals(scrape), "the totals are told")

    def write(self):
        """Rounds of 256 KiB that cost 1 MiB each; (how many, a scrape that has seen them)."""
        rounds = int(self.vm.sh(
            f"n=0; end=$(($(date +%s) + {WRITING_SECONDS})); while [ $(date +%s) -lt $end ]; do "
            f"dd if=/dev/zero of=/dev/{self.disk} bs=256k count=1 oflag=direct 2>/dev/null && "
            f"nvme fdp update /dev/{self.disk} --pids=0 >/dev/null || exit 1; n=$((n + 1)); sleep 1; done; echo $n",
            WRITING_SECONDS * 2 + 30))
        return rounds, self.daemon.when_drives_were_read(1, float(self.vm.sh("date +%s")) + 1)

    def end(self, check, what, most=RATIO):
        """Stops the daemon; every ratio on its last page must be one that a drive can have."""
        scrape = self.daemon.scrape()
        ratios = {dict(labels)["window"]: value
                  for labels, value in scrape.series("ssdpulse_write_amplification_ratio").items()}
        check.that(all(0.99 * RATIO <= value <= 1.01 * most for value in ratios.values()), f"{what}: ratios {ratios}")
        self.daemon.stop()


def totals(scrape):
    return [scrape.value(f"ssdpulse_nvme_{who}_written_bytes_total") for who in ("host", "media")]


def write_history(vm):
    """Leaves a writer running; returns a minute that it has reported to be on the disk."""
    pid = vm.sh("ssdpulse_history_writer /mnt/state/cut >/tmp/writer.log 2>&1 & echo $!")
    vm.wait_for("[ $(grep -c committed /tmp/writer.log) -ge 20 ]", 30)
    time.sleep(random.uniform(0, 1))
    vm.sh(f"kill -0 {pid}")
    return int(re.findall(r"committed (\d+)\n", vm.sh("grep committed /tmp/writer.log | tail -n 1") + "\n")[-1])


def found_whole(vm, check, what, committed):
    out = vm.sh("ssdpulse_history_writer /mnt/state/cut 1 2>&1")
    minute, state = map(int, re.search(r"found (\d+) (\d+)", out).groups())
    # The writer does not wait for a slow disk: a state that a later one replaces before it is written is no loss.
    check.that(minute >= committed and minute - MOST_WAITING <= state <= minute,
               f"{what}: minute {minute} and state {state} are there, {committed} was on the disk")
    left = vm.sh("ls /mnt/state/cut").split()
    check.that(not [name for name in left if "damaged" in name], f"{what}: nothing was damaged: {left}")


def run(vm, check):
    vm.sh(f"modprobe ext4; mke2fs -q -t ext4 /dev/{vm.disk('state')}")
    boot = Boot(vm)
    rounds, scrape = boot.write()
    before = totals(scrape)
    check.equal(before, [rounds * ROUND, rounds * ROUND * RATIO], f"first boot: bytes after {rounds} rounds")
    boot.end(check, "first boot")

    # The daemon restarts, the drive does not: everything continues as if nothing had happened.
    boot = Boot(vm)
    check.equal(totals(boot.first), before, "daemon restarted: totals")
    check.equal(boot.first.value(EPOCHS), 0, "daemon restarted: epochs")
    # The oldest minute may end within a round: 256 KiB were written, and their reclaim unit was given up afterwards.
    boot.end(check, "daemon restarted", RATIO + 3)
    vm.sh("sync")

    cuts = 10 if vm.long else 1
    for number in range(cuts):
        committed = write_history(vm)
        vm.restart()
        boot = Boot(vm)
        found_whole(vm, check, f"cut {number}", committed)
        # A daemon that stops before a second reading confirms the fall counts an epoch, and the next one sees the fall again.
        boot.daemon.wait_for(lambda scrape: scrape.value(EPOCHS) == 1, "the fall of the counters is confirmed")
        if number + 1 < cuts:
            boot.daemon.stop()
    check.equal(totals(boot.first), before, "second boot: totals before anything is written")
    rounds, scrape = boot.write()
    check.equal(totals(scrape), [before[0] + rounds * ROUND, before[1] + rounds * ROUND * RATIO],
                f"second boot: totals after {rounds} more rounds")
    check.equal(scrape.value(EPOCHS), 1, "second boot: epochs")
    boot.end(check, "second boot")
