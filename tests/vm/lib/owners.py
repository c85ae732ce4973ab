# SPDX-License-Identifier: Apache-2.0
"""Whose I/O was it? Cgroups of a guest, what they do, and what ssdpulse_attribution_probe reports about it."""
import json
from types import SimpleNamespace

from lib import attribution

GROUPS = "/tmp/cgroups"


def make_groups(vm, names):
    """Makes them on cgroup version 2, with both controllers: {name: its identity}.

    No huge pages: khugepaged reads missing pages of mapped files itself, and the kernel charges them to the root.
    """
    vm.sh(f"echo never >/sys/kernel/mm/transparent_hugepage/enabled; mkdir -p {GROUPS}; "
          f"mount -t cgroup2 cgroup {GROUPS}; echo '+io +memory' >{GROUPS}/cgroup.subtree_control; "
          + "; ".join(f"mkdir {GROUPS}/{name}" for name in names))
    return {name: int(vm.sh(f"stat -c %i {GROUPS}/{name}")) for name in names}


def remove_groups(vm):
    vm.sh(f"for group in {GROUPS}/*/; do rmdir $group; done; umount {GROUPS}")


def fio_at_once(vm, jobs, mib):
    """{group: [(I/Os, bytes) read, and written]} by members of the cgroups, all at the same time, according to fio.

    jobs: {group: (options, place, kind)}.
    """
    start = " ".join(f"sh -c 'echo $$ >{GROUPS}/{group}/cgroup.procs; exec fio --name=job --filename={place} --direct=1 "
                     f"--rw={kind} --bs=4k --size={mib}M --randrepeat=0 --thread --fadvise_hint=random "
                     f"--output-format=json {options}' >/tmp/fio.{group} 2>&1 & fios=\"$fios $!\"\n"
                     for group, (options, place, kind) in jobs.items())
    vm.sh(f"echo 3 >/proc/sys/vm/drop_caches; fios=\n{start} for fio in $fios; do wait $fio || exit; done", 100)
    done = {}
    for group in jobs:
        report = vm.sh(f"cat /tmp/fio.{group}")
        job = json.loads(report[report.index("{"):])["jobs"][0]
        done[group] = [(job[way]["total_ios"], job[way]["io_bytes"]) for way in ("read", "write")]
    return done


def fio(vm, group, options, place, kind, mib):
    """[bytes read, bytes written] by a member of the cgroup, according to fio."""
    return [size for _, size in fio_at_once(vm, {group: (options, place, kind)}, mib)[group]]


def io_stat(vm, groups, disk):
    """{group: [(I/Os, bytes) read, and written]} of the disk, as the kernel's io controller has counted them so far."""
    number = vm.sh(f"cat /sys/block/{disk}/dev").strip()
    counted = {}
    for group in groups:
        lines = [line.split() for line in vm.sh(f"cat {GROUPS}/{group}/io.stat").splitlines()]
        words = dict(word.split("=") for line in lines if line and line[0] == number for word in line[1:])
        counted[group] = [(int(words.get(f"{way}ios", 0)), int(words.get(f"{way}bytes", 0))) for way in "rw"]
    return counted


class Probe:
    """See tests/kernel/lib/attribution.py."""

    def __init__(self, vm, disks):
        self._vm, self._disks, self._answers = vm, disks, 1
        vm.sh("rm -f /tmp/ask /tmp/answers; mkfifo /tmp/ask; sleep 10000 >/tmp/ask & echo $! >/tmp/holder; "
              f"ssdpulse_attribution_probe full 64 {' '.join(disks)} </tmp/ask >/tmp/answers 2>/tmp/probe.log &")
        self.features = self._answer()

    def _answer(self):
        self._vm.sh(f"n=0; until [ $(wc -l </tmp/answers) -ge {self._answers} ]; do n=$((n + 1)); [ $n -lt 600 ] || "
                    "{ cat /tmp/probe.log; exit 1; }; sleep 0.1; done", 240)
        answer = json.loads(self._vm.sh(f"sed -n {self._answers}p /tmp/answers"))
        self._answers += 1
        return answer

    def looks(self):
        """{disk: the second of two readings}, at rest: nothing is left over for the next one."""
        for _ in range(2):
            self._vm.sh("echo look >/tmp/ask")
            answer = self._answer()
        return {disk: attribution.Look(answer, SimpleNamespace(name=disk)) for disk in self._disks}

    def end(self):
        self._vm.sh("kill $(cat /tmp/holder); while pidof ssdpulse_attribution_probe; do sleep 0.1; done")
