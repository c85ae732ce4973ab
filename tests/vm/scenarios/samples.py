# SPDX-License-Identifier: Apache-2.0
"""The samples for the flash model are what the sampling rule gives for the backend's own log, to the last page."""
import json
import re
from collections import Counter

from devices import Logged, NvmeNamespaces
from lib import samples

KERNELS_IN_CI = ("5.10",)  # kernel.test_flash_samples judges a newer one; the long form has all
MACHINE = {"append": "nvme_core.multipath=N"}
SHARES_GUEST = True
MIB = 1 << 20
SIZE = 320 * MIB  # of each namespace
RATE_BITS = 2
PAGES = SIZE >> 12
KINDS = {"write": samples.WRITE, "trim": samples.DISCARD, "zero": samples.ZEROES}
LONG = 180


def devices():
    return [NvmeNamespaces("terrace", Logged("320M"), Logged("320M"))]


class Probe:
    """ssdpulse_samples_probe in the guest: queried through a pipe, it answers into a file."""

    def __init__(self, vm, mode, disks):
        self._vm, self._asked = vm, 0
        vm.sh("rm -f /tmp/ask /tmp/answers; mkfifo /tmp/ask; sleep 100000 >/tmp/ask & echo $! >/tmp/opener")
        vm.sh(f"ssdpulse_samples_probe {mode} {' '.join(disks)} </tmp/ask >/tmp/answers 2>/tmp/daemon-probe & "
              "echo $! >/tmp/probe")

    def ask(self, words):
        self._asked += 1
        self._vm.sh(f"echo {words} >/tmp/ask")
        self._vm.wait_for(f"[ $(wc -l </tmp/answers) -ge {self._asked} ]", 60)

    def answers(self):
        return [json.loads(line) for line in self._vm.sh("cat /tmp/answers").splitlines()]

    def end(self):
        self._vm.sh("kill $(cat /tmp/opener); kill $(cat /tmp/probe); rm -f /tmp/ask")


def load(vm, first, second):
    """ext4 and its fstrim, xfs that discards what is deleted, raw writes of all sizes, ranges inside pages, zeroes."""
    vm.sh(f"modprobe -q ext4; mke2fs -q -F -t ext4 /dev/{first}; mkdir -p /mnt/terrace; "
          f"mount -t ext4 /dev/{first} /mnt/terrace; for i in $(seq 10); do dd if=/dev/urandom of=/mnt/terrace/$i "
          "bs=256k count=4; done 2>/dev/null; sync; rm /mnt/terrace/[13579]; sync; fstrim /mnt/terrace; "
          "umount /mnt/terrace", LONG)
    vm.sh(f"modprobe -q xfs; mkfs.xfs -q -f /dev/{second}; mount -t xfs -o discard /dev/{second} /mnt/terrace; "
          "for i in $(seq 40); do dd if=/dev/urandom of=/mnt/terrace/$i bs=64k count=4; done 2>/dev/null; sync; "
          "rm /mnt/terrace/*[13579]; sync; sleep 2; sync; umount /mnt/terrace", LONG)
    for disk in (first, second):
        vm.fio(disk, LONG, rw="randwrite", bsrange="512-32k", blockalign=512, number_ios=800, iodepth=8, size="320M")
        vm.sh(f"for at in 512 123904 40000000 77777408; do blkdiscard --force --offset $((at / 512 * 512)) "
              f"--length 1003520 /dev/{disk}; blkdiscard --force --zeroout --offset $((at / 512 * 512 + 20971520)) "
              f"--length 300544 /dev/{disk}; done 2>&1; dd if=/dev/zero of=/dev/{disk} bs=1M count=16 2>/dev/null; "
              f"fallocate -z -o 50331648 -l 1048576 /dev/{disk} 2>/dev/null; sync", LONG)


def pages_of(events):
    """{(followed page, kind): times}; zeroes are one kind, as the backend cannot distinguish them."""
    return Counter((page, min(kind, samples.ZEROES)) for first, count, kind in events
                   for page in range(first, first + count))


def compare(check, what, rule, commands, answers, disk):
    expected = [rule.event(offset >> 9, size, KINDS[kind]) for kind, offset, size in commands]
    want = pages_of(event for event in expected if event)
    events = [(first, count, kind) for answer in answers for name, first, count, kind, _ in answer["events"]
              if name == disk]
    have = pages_of(events)
    check.that(have == want, f"{what}: {len(events)} events of {len(commands)} commands, "
               f"{want.total()} pages by kind {dict(Counter(kind for _, kind in want.elements()))}; "
               f"missing {list((want - have).items())[:3]}, too many {list((have - want).items())[:3]}")
    written = sum(len(rule.pages(offset >> 9, size, samples.WRITE)) for kind, offset, size in commands
                  if kind == "write")
    totals = answers[-1]["devices"][disk]
    check.equal(sum(totals["written"]), written, f"{what}: pages written")
    check.equal(totals["lost"], [0, 0, 0, 0], f"{what}: events lost")


def run(vm, check):
    controller = re.sub(r"n\d+$", "", vm.disk("terrace"))
    # The kernel names them in the order in which it finds them.
    first, second = (vm.sh(f"dirname $(grep -lx {number} /sys/block/{controller}n*/nsid) | xargs basename")
                     for number in (1, 2))
    backends = vm.devices["terrace"].backends
    rules = [samples.Rule(RATE_BITS, 20_26, (2 * PAGES >> RATE_BITS) & ~3, first_page=number * PAGES)
             for number in range(2)]
    for mode in ("full", "completion-only") if vm.long else ("full",):
        probe = Probe(vm, mode, (first, second))
        for disk, rule in zip((first, second), rules):
            probe.ask(f"sample {disk} {rule.page_bits} {rule.rate_bits} {rule.seed} {rule.followed} {rule.first_page}")
        begun = [len(backend.commands()) for backend in backends]
        ended = [int(vm.sh(f"cat /sys/block/{disk}/stat").split()[11]) for disk in (first, second)]
        load(vm, first, second)
        probe.ask("look")
        answers = probe.answers()
        for disk, rule, backend, seen, before in zip((first, second), rules, backends, begun, ended):
            commands = backend.commands()[seen:]
            compare(check, f"{mode} {disk}", rule, commands, answers, disk)
            discards = int(vm.sh(f"cat /sys/block/{disk}/stat").split()[11]) - before
            trims = sum(kind == "trim" for kind, _, _ in commands)
            print(f"NOTE {mode} {disk}: {discards} discards of {trims} ranges")
            if disk == second:
                check.that(trims > discards, f"{mode}: discards of several ranges: {discards} of {trims} ranges")
        probe.end()
