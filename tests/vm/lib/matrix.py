# SPDX-License-Identifier: Apache-2.0
"""Runs scenarios in guests, each pair of kernel and scenario in a process of its own, and says what came of it.

A scenario is a module with devices() and run(vm, check); its first line says what must hold. What it prints, the
guest's console, the daemon's log and the last /metrics stay in RESULTS/KERNEL.SCENARIO when it fails.
"""
import argparse
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "kernel"))
from lib.rig import Check  # noqa: E402

import machine  # noqa: E402

EMULATOR_DIED = 75  # exit code: an assertion of QEMU itself, which says nothing of us
TRIES = 3
SECONDS = 300  # of one scenario, unless it says SECONDS = ...; ten times that in the long form


def load(name):
    spec = importlib.util.spec_from_file_location(name, HERE.parent / "scenarios" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_one(kernel, name, results, long):
    """In a process of its own: the exit code is the verdict."""
    scenario = load(name)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    signal.signal(signal.SIGALRM, lambda *_: sys.exit("FAIL not finished in time"))
    signal.alarm(getattr(scenario, "SECONDS", SECONDS) * (10 if long else 1))
    files = SimpleNamespace(kernel=results / f"{kernel}.kernel", initrd=results / f"{kernel}.initrd",
                            qemu=os.environ["QEMU_COMMAND"].split())
    check, code = Check(), None
    state = Path(tempfile.mkdtemp(prefix="ssdpulse-vm-"))  # short, for the names of sockets
    try:
        with machine.Machine(state, files, scenario.devices(), name=kernel, long=long,
                             **getattr(scenario, "MACHINE", {})) as vm:
            print(f"     Linux {vm.sh('uname -r')}, ready {vm.boot_seconds:.1f} s after power-on")
            try:
                scenario.run(vm, check)
            finally:
                vm.collect()
            for line in vm.kernel_complaints():
                check.that(False, f"the kernel complains: {line}")
    except machine.EmulatorDied as error:
        code = EMULATOR_DIED
        print(f"NOTE {error}")
    except machine.GuestError as error:
        check.that(False, str(error))
    finally:
        for path in state.iterdir():
            if path.is_file() and not path.name.endswith(".img"):
                shutil.copy(path, results / f"{kernel}.{name}")
        shutil.rmtree(state)
    sys.exit(check.failures != 0 if code is None else code)


class Run:
    """One pair under way."""

    def __init__(self, arguments, kernel, scenario, tries=TRIES):
        self.kernel, self.scenario, self.tries = kernel, scenario, tries
        self.directory = arguments.results / f"{kernel}.{scenario}"
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir()
        self.began = time.monotonic()
        command = [sys.executable, "-u", __file__, "--results", arguments.results, "--kernels", kernel, "--scenarios",
                   scenario, "--one", *(["--long"] if arguments.long else [])]
        with open(self.directory / "output", "w") as output:
            self.process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=output,
                                            stderr=subprocess.STDOUT)

    def report(self, keep):
        """Prints the verdict; True if it passed."""
        output = (self.directory / "output").read_text()
        lines = output.splitlines()
        passed = self.process.returncode == 0 and any(line.startswith("ok ") for line in lines)
        print(f"{'pass' if passed else 'FAIL'}  {self.kernel:13} {self.scenario:12} "
              f"{time.monotonic() - self.began:6.1f} s  {sum(line.startswith('ok ') for line in lines)} checks")
        for line in lines:
            if line.startswith(("FAIL", "NOTE")):
                print(f"      {line}")
        if not passed:
            if not any(line.startswith("FAIL") for line in lines):
                print("      " + "\n      ".join(lines[-15:]))
            print(f"      output, console, daemon.log, metrics.txt: {self.directory}")
        elif not keep:
            for path in self.directory.iterdir():
                if path.name != "output":
                    path.unlink()
        return passed


def run_all(arguments):
    waiting = [(k, s) for k in arguments.kernels for s in arguments.scenarios]
    running, verdicts = [], []

    def end(*_):
        for run in running:
            run.process.terminate()
        for run in running:
            run.process.wait()
        sys.exit(130)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
    while waiting or running:
        while waiting and len(running) < arguments.jobs:
            running.append(Run(arguments, *waiting.pop(0)))
        for run in [run for run in running if run.process.poll() is not None]:
            running.remove(run)
            if run.process.returncode == EMULATOR_DIED and run.tries > 1:
                print(f"      {run.kernel} {run.scenario}: QEMU died of an assertion of its own; once more")
                running.append(Run(arguments, run.kernel, run.scenario, run.tries - 1))
                continue
            verdicts.append(run.report(arguments.keep))
        time.sleep(0.1)
    print(f"{sum(verdicts)} passed, {len(verdicts) - sum(verdicts)} failed")
    sys.exit(not all(verdicts))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--kernels", nargs="+", required=True)
    parser.add_argument("--scenarios", nargs="+", required=True)
    parser.add_argument("--jobs", type=int, default=5)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--one", action="store_true")
    arguments = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)
    if arguments.one:
        run_one(arguments.kernels[0], arguments.scenarios[0], arguments.results, arguments.long)
    run_all(arguments)


main()
