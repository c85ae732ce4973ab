# SPDX-License-Identifier: Apache-2.0
"""Runs every scenario on every kernel, each guest in a process of its own, and reports the results.

A scenario is a module with devices() and run(vm, check); its first line says what must hold. What it prints, the
guest's console, the daemon's log and the last /metrics stay in RESULTS/KERNEL.SCENARIO when it fails. Scenarios that
set SHARES_GUEST = True and have the same MACHINE run one after the other in one guest, which has the disks of all of
them (those with the same serial number must be the same): a boot costs as much as a scenario. Sharers clean up.
PART = "NAME": only in this part of the long form. ALONE = True: no other guest at the same time.
Lines "TABLE KEY: VALUE" of a scenario are collected at the end in one table per kernel.
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import guest

KERNELS_OF_CI = ("5.10", "newest")
SHARING = 5  # scenarios per guest: the run ends with its last guest, so none may take much longer than the others


def kernels_of(scenario, kernels, whole):
    """KERNELS are those that a scenario is for, if not all. CI uses the oldest and the newest of them, or only those of
    these in KERNELS_IN_CI, where the kernel has little influence on what is judged or the level kernel judges the same;
    `whole` uses them all."""
    own = getattr(scenario, "KERNELS", kernels)
    in_ci = getattr(scenario, "KERNELS_IN_CI", KERNELS_OF_CI)
    return [kernel for kernel in kernels if kernel in own and (whole or kernel in in_ci)]


def arrange(arguments):
    """[(kernel, scenarios of one guest)], longest first. A scenario with PART runs only in that part of the long form,
    or when it is named."""
    groups, kernels, whole = {}, arguments.kernels, arguments.whole or arguments.long
    for name in arguments.scenarios:
        scenario = guest.load(name)
        if getattr(scenario, "PART", None) != arguments.part and not arguments.named:
            continue
        alone = None if getattr(scenario, "SHARES_GUEST", False) else name
        groups.setdefault((json.dumps(getattr(scenario, "MACHINE", {})), alone), []).append(name)
    fitting = [(kernel, [name for name in group if kernel in kernels_of(guest.load(name), kernels, whole)])
               for group in groups.values() for kernel in kernels]
    guests = [(kernel, names) for kernel, group in fitting for names in evenly(group)]
    return sorted(guests, key=lambda one: length(one[1]), reverse=True)


def evenly(names):
    """As few lists as possible of at most SHARING names, whose lengths differ by one at most."""
    parts = -(-len(names) // SHARING)
    return [names[part::parts] for part in range(parts)]


def length(names):
    """The sort key: a scenario that takes as long as several others, and mostly waits, comes first."""
    seconds = [getattr(guest.load(name), "SECONDS", guest.SECONDS) for name in names]
    return max(seconds) >= 2 * guest.SECONDS, sum(seconds)


class Run:
    """One running process."""

    def __init__(self, arguments, kernel, scenarios):
        self._kernel, self._waiting, self._keep = kernel, list(scenarios), arguments.keep
        self._results = arguments.results
        for scenario in scenarios:
            shutil.rmtree(self._directory(scenario), ignore_errors=True)
            self._directory(scenario).mkdir()
        options = [*(["--long"] if arguments.long else []), *(["--keep"] if arguments.keep else [])]
        command = [sys.executable, "-u", __file__, "--results", arguments.results, "--kernels", kernel, "--scenarios",
                   *scenarios, "--one", *options]
        self.process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL)

    def _directory(self, scenario):
        return self._results / f"{self._kernel}.{scenario}"

    def over(self):
        return self.process.poll() is not None and not self._waiting

    def verdicts(self):
        """Prints and yields the new verdicts; scenarios without one when the process has ended have failed."""
        ended = self.process.poll() is not None
        for scenario in list(self._waiting):
            file = self._directory(scenario) / "verdict"
            if not file.exists() and not ended:
                return
            verdict = json.loads(file.read_text()) if file.exists() else {"passed": False, "seconds": 0}
            self._waiting.remove(scenario)
            yield self._kernel, scenario, self._report(scenario, **verdict)

    def _report(self, scenario, passed, seconds):
        """Prints the verdict; True if it passed."""
        output = self._directory(scenario) / "output"
        lines = output.read_text().splitlines() if output.exists() else []
        checks = sum(line.startswith("ok ") for line in lines)
        passed = passed and checks > 0
        print(f"{'pass' if passed else 'FAIL'}  {self._kernel:13} {scenario:12} {seconds:6.1f} s  {checks} checks")
        for line in lines:
            if line.startswith(("FAIL", "NOTE", "AGAIN")):
                print(f"      {line}")
        if not passed:
            print("      it said last:\n      " + "\n      ".join(lines[-60:]))
            print(f"      output, console, daemon.log, metrics.txt: {output.parent}")
        return passed


def print_tables(results, kernels, scenarios):
    for kernel in kernels:
        outputs = [results / f"{kernel}.{scenario}" / "output" for scenario in scenarios]
        rows = [line.removeprefix("TABLE ").split(": ", 1) for output in outputs if output.exists()
                for line in output.read_text().splitlines() if line.startswith("TABLE ")]
        if rows:
            print(f"\n{kernel}")
        for key, value in rows:
            print(f"  {key:{max(len(key) for key, _ in rows)}}  {value}")


def second_try(arguments):
    """[(kernel, [scenario])] of what failed in the previous run, when the runner makes its one second try."""
    failed = arguments.results / "failed"
    if not os.environ.get("SSDPULSE_TEST_SECOND_TRY") or not failed.exists():
        return None
    return [(kernel, [scenario]) for kernel, scenario in json.loads(failed.read_text())]


def run_all(arguments):
    """Everything once, several guests at a time; on a second try only what failed, one guest at a time."""
    began, running, verdicts, jobs = time.monotonic(), [], {}, arguments.jobs
    waiting = second_try(arguments)
    if waiting:
        jobs = 1
    else:
        waiting = arrange(arguments)
    if any(getattr(guest.load(name), "ALONE", False) for _, names in waiting for name in names):
        jobs = 1
    if not waiting:
        sys.exit(f"none of these scenarios is for {' or '.join(arguments.kernels)}, or in this form")

    def end(*_):
        for run in running:
            run.process.terminate()
        for run in running:
            run.process.wait()
        sys.exit(130)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
    while waiting or running:
        while waiting and len(running) < jobs:
            running.append(Run(arguments, *waiting.pop(0)))
        for run in running:
            verdicts |= {(kernel, scenario): passed for kernel, scenario, passed in run.verdicts()}
        running = [run for run in running if not run.over()]
        time.sleep(0.1)
    print_tables(arguments.results, arguments.kernels, arguments.scenarios)
    failed = [pair for pair, passed in sorted(verdicts.items()) if not passed]
    (arguments.results / "failed").write_text(json.dumps(failed))
    names = ", ".join(f"{kernel} {scenario}" for kernel, scenario in failed)
    print(f"\n{len(verdicts) - len(failed)} passed, {len(failed)} failed{': ' if failed else ''}{names}; "
          f"in {time.monotonic() - began:.0f} s")
    sys.exit(bool(failed))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--kernels", nargs="+", required=True)
    parser.add_argument("--scenarios", nargs="+", required=True)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--named", action="store_true")
    parser.add_argument("--part")
    parser.add_argument("--one", action="store_true")
    parser.add_argument("--needed", action="store_true", help="only print the kernels that there is a scenario for")
    arguments = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)
    if arguments.needed:
        needed = {kernel for kernel, _ in arrange(arguments)}
        print(*[kernel for kernel in arguments.kernels if kernel in needed], sep="\n", end="")
    elif arguments.one:
        guest.Guest(arguments.kernels[0], arguments.scenarios, arguments.results, arguments.long, arguments.keep).run()
    else:
        run_all(arguments)


main()
