# SPDX-License-Identifier: Apache-2.0
"""A tenant floods a drive and another one's reads wait: the spike names the first as heaviest, the other as slowed."""
import re
import time

import machine
import owners
from devices import Nvme, Slow

PART = "stacks"  # CI has system.test_noisy_neighbour
# Seconds. What takes less than the floor is no spike: an emulated guest is occasionally held up that long.
FLOOR, READ = 0.3, 0.02
LEARN, FLOOD, QUIET = 25, 6, 25  # floods that take a third of the time become usual after some minutes
BYTES_PER_SECOND = 6_000_000
SPIKE = re.compile(r"latency spike device=(\S+) operation=read .*?evidence=\"([^\"]*)\"")


def devices():
    return [Nvme("shared", Slow(read=READ, bytes_per_second=BYTES_PER_SECOND))]


def load(group, disk, options):
    """A background load by a member of the cgroup."""
    return (f"sh -c 'echo $$ >{owners.GROUPS}/{group}/cgroup.procs; exec fio --name=job --filename=/dev/{disk} --direct=1 "
            f"--time_based --thread --norandommap {options}' >/tmp/fio.{group} 2>&1 & ")


def first(evidence, what):
    """The first of heaviest= or slowed=, without its amount."""
    found = re.search(rf"\b{what}=([^ ,]+):", evidence)
    return found and found[1]


def run(vm, check):
    rounds, enough = (20, 19) if vm.long else (2, 2)
    disk = vm.disk("shared")
    owners.make_groups(vm, ["quiet", "noisy"])
    vm.sh(f"printf 'nvme: {{ poll_interval: 1h }}\\nspikes: {{ floor: {FLOOR * 1000:.0f}ms }}\\n"
          "history: { directory: \"\" }\\n' >/tmp/noisy.yaml")
    daemon = machine.Daemon(vm, "--config", "/tmp/noisy.yaml")
    vm.sh(load("quiet", disk, "--rw=randread --bs=4k --ioengine=psync --numjobs=4 --thinktime=100000 --runtime=3600"))
    time.sleep(LEARN)
    right, reported = 0, []
    for _ in range(rounds):
        known = len(SPIKE.findall(daemon.words()))
        vm.sh(load("noisy", disk, f"--rw=write --bs=128k --ioengine=libaio --iodepth=32 --runtime={FLOOD}"))
        time.sleep(FLOOD + QUIET)
        spikes = [(first(evidence, "heaviest"), first(evidence, "slowed"))
                  for device, evidence in SPIKE.findall(daemon.words())[known:] if device == disk]
        right += ("/noisy", "/quiet") in spikes
        reported.append(spikes)
    print(f"TABLE noisy neighbour: {right} of {rounds} named")
    check.that(right >= enough, f"{right} of {rounds} spikes name who floods and who waits: {reported}")
    vm.sh("for pid in $(pidof fio); do kill -INT $pid; done; n=0; while pidof fio; do sleep 0.2; n=$((n + 1)); "
          "[ $n -lt 100 ] || exit 1; done")
    daemon.stop()
    owners.remove_groups(vm)
