# SPDX-License-Identifier: Apache-2.0
"""Runs scenarios of one kernel in one guest, in this process, and leaves a verdict on each in RESULTS/KERNEL.SCENARIO.

After a failure the rest gets a new guest, because the state of the old one is unknown. When QEMU dies of an assertion
of its own, or hangs before the guest is up, which is not our failure, the scenario is retried, and this is reported.
"""
import importlib.util
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "kernel"))
from lib.rig import Check  # noqa: E402

import machine  # noqa: E402

TRIES = 3
SECONDS = 400  # of one scenario, unless it sets SECONDS = ...; ten times that in the long form


def load(name):
    spec = importlib.util.spec_from_file_location(name, HERE.parent / "scenarios" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def out_of_time(*_):
    raise machine.GuestError("not finished in time")


class Guest:
    """`names`: scenarios that agree on the machine."""

    def __init__(self, kernel, names, results, long=False, keep=False):
        self._kernel, self._results, self._long, self._keep = kernel, results, long, keep
        self._waiting = {name: load(name) for name in names}
        self._deaths = {name: [] for name in names}
        self._options = dict(getattr(self._waiting[names[0]], "MACHINE", {}))
        self._nice = self._options.pop("nice", 0)  # what is left is for the machine
        self._state = None

    def run(self):
        os.nice(self._nice)  # everything started from here inherits it
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a QEMU that aborts would write all of the guest's memory
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
        signal.signal(signal.SIGALRM, out_of_time)
        while self._waiting:
            self._state = Path(tempfile.mkdtemp(prefix="ssdpulse-vm-"))  # short, for the names of sockets
            vm = self._machine()
            try:
                while self._waiting and self._scenario(vm, next(iter(self._waiting))):
                    pass
            finally:
                vm.close()
                shutil.rmtree(self._state)

    def _machine(self):
        """Not started yet: it has the disks of all waiting scenarios."""
        files = SimpleNamespace(qemu=os.environ["QEMU_COMMAND"].split(), **{
            name: self._results / f"{self._kernel}.{name}" for name in ("kernel", "initrd")})
        disks = {disk.serial: disk for scenario in self._waiting.values() for disk in scenario.devices()}
        return machine.Machine(self._state, files, list(disks.values()), name=self._kernel, long=self._long,
                               **self._options)

    def _scenario(self, vm, name):
        """True if it passed, and the next one can have this guest."""
        directory, began = self._results / f"{self._kernel}.{name}", time.monotonic()
        directory.mkdir(exist_ok=True)
        check = Check()
        with open(directory / "output", "w", buffering=1, encoding="utf-8") as output, redirect_stdout(output):
            for words in self._deaths[name]:
                print(f"AGAIN {self._kernel} {name}: QEMU had died of itself: {words}")
            signal.alarm(getattr(self._waiting[name], "SECONDS", SECONDS) * (10 if self._long else 1))
            try:
                self._judge(vm, self._waiting[name], check)
            except machine.EmulatorDied as error:
                self._deaths[name].append(error)
                if len(self._deaths[name]) < TRIES and not check.failures:
                    signal.alarm(0)
                    return False
                check.that(False, f"QEMU died of itself: {error}")
            except machine.GuestError as error:
                check.that(False, str(error))
            except Exception:  # pylint: disable=broad-exception-caught  # whatever a scenario trips over
                check.that(False, "\n     ".join(traceback.format_exc().strip().splitlines()[::-1]))
            signal.alarm(0)
            if check.failures or self._keep:
                vm.collect()
                for path in self._state.iterdir():
                    if path.is_file() and not path.name.endswith(".img"):
                        shutil.copy(path, directory)
        del self._waiting[name]
        verdict = directory / "verdict.new"
        verdict.write_text(json.dumps({"passed": check.failures == 0, "seconds": time.monotonic() - began}))
        verdict.rename(directory / "verdict")
        return check.failures == 0

    def _judge(self, vm, scenario, check):
        if not vm.started:
            try:
                vm.start()
            except machine.EmulatorDied:
                raise
            except machine.GuestError as error:
                # Emulating several processors, QEMU occasionally loses a timer, and the kernel waits forever.
                raise machine.EmulatorDied(f"the guest did not come up: {error}") from error
            print(f"     Linux {vm.sh('uname -r')}, ready {vm.boot_seconds:.1f} s after power-on")
        scenario.run(vm, check)
        vm.sh("rm -f /tmp/daemon*")
        for line in vm.kernel_complaints():
            check.that(False, f"the kernel complains: {line}")
