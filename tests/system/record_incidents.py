#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records the stories of tests/vm/scenarios/incidents.py on this host: record_incidents.py DIRECTORY [STORY...]

No test: it makes fixtures (tests/fixtures/ticks) where a guest is too slow. Disks are loop devices over files of a FUSE
file system, behind which is the same plugin as in the guests, with the same log. Needs root.
"""
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

SOURCE = Path(__file__).resolve().parents[2]
for room in ("tests/kernel", "tests/vm/lib", "tests/vm/scenarios"):
    sys.path.insert(0, str(SOURCE / room))
from lib import cgroups  # noqa: E402

import incidents  # noqa: E402
import owners  # noqa: E402
from controlled_disk import controlled_disk  # noqa: E402

BUILD = Path(os.environ.get("SSDPULSE_BUILD", SOURCE / "build"))


class Backend:
    """The interface of devices.Slow."""

    def __init__(self, tell):
        self._tell, self._seconds = tell, {}

    def set(self, **seconds):
        self._seconds.update(seconds)
        self._tell(self._seconds)

    def stall(self, seconds):
        self.set(stall_until=time.time() + seconds)


class Host:
    """The interface of machine.Machine, as far as the stories need it."""

    def __init__(self, disks):
        self._disks = {serial: disk.name for serial, (disk, _) in disks.items()}
        self.devices = {serial: SimpleNamespace(backend=Backend(tell)) for serial, (_, tell) in disks.items()}

    def run(self, script, _seconds=60):
        done = subprocess.run(["bash", "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
        return done.returncode, done.stdout

    def sh(self, script, seconds=60):
        code, output = self.run(script, seconds)
        if code != 0:
            raise RuntimeError(f"{script}: exit {code}")
        return output.decode().strip()

    def wait_for(self, script, seconds=10):
        deadline = time.monotonic() + seconds
        while self.run(f"{{ {script}; }} >/dev/null 2>&1")[0] != 0:
            if time.monotonic() > deadline:
                raise RuntimeError(f"not in {seconds} s: {script}")
            time.sleep(0.1)

    def disk(self, serial):
        return self._disks[serial]

    def clock(self):
        return time.time()


def that(right, words):
    print("ok  " if right else "FAIL", words, flush=True)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))  # so that everything is removed again
    where, wanted = Path(sys.argv[1]), sys.argv[2:]
    os.environ["SSDPULSE_RECORD_TICKS"] = str(where)
    os.environ["PATH"] = f"{BUILD}:{os.environ['PATH']}"
    names = wanted or [name for name, story in incidents.STORIES.items() if not story.scsi]
    incidents.STORIES = {name: incidents.STORIES[name] for name in names}
    with ExitStack() as stack:
        state = Path(stack.enter_context(TemporaryDirectory()))
        disks = {}
        for name in names:
            (state / name).mkdir()
            keep = ["keep=1"] if incidents.STORIES[name].mounted else []
            disks[name] = stack.enter_context(controlled_disk(state / name, {}, 256 << 20, *keep))
        vm = Host(disks)
        root = cgroups.V1 if cgroups.V1.is_dir() else cgroups.V2
        owners.GROUPS = str(root / f"incidents-{os.getpid()}")
        owners.make_groups = lambda _, groups: vm.sh(
            f"mkdir {owners.GROUPS} && cd {owners.GROUPS} && mkdir {' '.join(groups)}")
        try:
            incidents.run(vm, SimpleNamespace(that=that))
        finally:
            for group in incidents.GROUPS:
                vm.run(f"cd {owners.GROUPS}/{group} && for pid in $(cat cgroup.procs); do kill $pid; done; sleep 0.5; "
                       f"rmdir {owners.GROUPS}/{group}")
            vm.run(f"rmdir {owners.GROUPS}")
            for name, story in incidents.STORIES.items():
                if story.mounted:
                    vm.run(f"umount /mnt/{name}; rmdir /mnt/{name}; rm -rf /tmp/{name}.end")


if __name__ == "__main__":
    main()
