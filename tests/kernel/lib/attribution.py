# SPDX-License-Identifier: Apache-2.0
"""What does the block source alone report by cgroup and path (ssdpulse_attribution_probe), and do its sums agree?"""
import json
import subprocess
import threading
from collections import Counter
from contextlib import contextmanager

from lib import rig

PROBE = rig.BUILD / "ssdpulse_attribution_probe"
OPERATIONS = ("read", "write", "discard")
IOS, BYTES, NS = range(3)


class Look:
    """One sample of one disk: {cgroup id or "departed" or "other": {operation: [I/Os, bytes, device ns]}} and so on."""

    def __init__(self, answer, disk):
        device, self.skipped = answer["devices"][disk.name], answer["skipped"]  # {program: runs}
        self.own, self.paths, self.commits = device["own"], device["paths"], device["commits"]
        self.seen = {int(cgroup): name for cgroup, name in answer["seen"].items()}
        self.owners = {int(cgroup): totals for cgroup, totals in device["cgroups"].items()}
        self.owners |= {"departed": device["departed"], "other": device["other"]}

    def sums(self, table, operation):
        return [sum(totals[operation][word] for totals in table.values()) for word in range(3)]

    def disagreement(self):
        """Operations whose I/Os or bytes differ between the sums by owner, by path and the device's own counts."""
        wrong = []
        for operation in OPERATIONS:
            timed, strays, size = self.own[operation]
            owners, paths = self.sums(self.owners, operation), self.sums(self.paths, operation)
            if owners != paths or owners[:2] != [timed + strays, size]:
                wrong.append(f"{operation}: owners {owners}, paths {paths}, own {self.own[operation]}")
        return wrong

    def path_ios(self, operation):
        return Counter({path: totals[operation][IOS] for path, totals in self.paths.items()})


class Probe:
    def __init__(self, process):
        self._process, self._asking = process, threading.Lock()
        self.features = json.loads(process.stdout.readline() or "{}")

    def _ask(self, line):
        with self._asking:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())

    def look(self, disk):
        return Look(self._ask("look"), disk)

    def gone(self, disk, cgroups):
        return Look(self._ask(" ".join(["gone", *map(str, cgroups)])), disk)

    @contextmanager
    def watched(self, disk, seconds=0.01):
        """Takes samples the whole time; yields a list of disagreements, and a list with one entry per sample."""
        end, found, looks = threading.Event(), [], []

        def watch():
            while not end.wait(seconds):
                look = self.look(disk)
                looks.append(1)
                found.extend(look.disagreement())

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            yield found, looks
        finally:
            end.set()
            watcher.join()


@contextmanager
def probe(disks, mode="full", cgroups=64):
    process = subprocess.Popen([PROBE, mode, str(cgroups), *(disk.name for disk in disks)], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield Probe(process)
    finally:
        process.stdin.close()
        process.wait(30)
