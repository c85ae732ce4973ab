# SPDX-License-Identifier: Apache-2.0
"""The test command's runner: which tests run, in which order, how many at a time, and what is printed about them.

The CI tier is the same on every host: random choices use a fixed seed there, and a fresh one in the long tier.
"""
import argparse
import dataclasses
import fcntl
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from catalogue import BATCHES, IDLE_LEVELS, JOBS, LEVELS, NEED_ROOT, Catalogue, Test
from execution import Execution, Outcome, clean, excerpt, read_skips, reason, tried_again, whole
from parts import PARTS, missing

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build-tests"
CI_SEED = 20261
# The only second tries: a whole run of the CI tier retries up to this many failures of these levels, with nothing else
# running. A test that passes only then is flaky: the last lines name it, with its first failure.
SECOND_TRIES = 4
TRIED_TWICE = {
    "kernel": "counts and times of real I/O, which other jobs of the host disturb",
    "system": "a daemon, its clients and real disks, which other jobs of the host hold up",
    "package": "boots an emulated guest",
    "vm": "emulated guests, which the host's other jobs and faults of the emulator hold up",
}
SLOWEST = 10
# Up to this many failed tests have their whole output printed again at the end, as CI may keep only the end.
PRINTED_WHOLE = 8

LEVEL_HELP = """
levels, in this order (a name may also be a test: kernel.test_counts):
  static     formatting, shellcheck, layering, headers, texts, and, in the long tier, clang-tidy
  build      g++ and, in the long tier, clang, every warning an error
  unit       what needs neither root nor a kernel
  kernel     the BPF programs on this host's kernel (root)
  system     the whole daemon on this host (root)
  package    what is installed, the Debian packages, and the service in a machine of its own (root)
  vm         other kernels, in QEMU (root)
  sanitize   unit tests of what reads hostile bytes, under address,undefined; in the long tier all, and all under thread
  fuzz       hostile bytes for the page decoders and the configuration's parser
  flash      the flash model with many seeds, in the long tier
  mutate     sabotages of the code that the tests must notice (root)

output of a test: build-tests/logs/TEST.log. SSDPULSE_TEST_SEED=N sets the seed of a run's random choices.
exit code: 0 all passed, 1 some failed, 2 wrong usage
"""


class Run:
    """One call of the test command. Prints as it goes; `outcomes` holds the last outcome of each test, `again` the
    first failure of those that were tried twice."""

    def __init__(self, catalogue, arguments):
        self._catalogue, self._arguments = catalogue, arguments
        self._skips = read_skips(ROOT)
        self._tries = 0 if arguments.long or arguments.names or arguments.part else SECOND_TRIES
        self._running, self._built, self.outcomes, self.again = [], {}, {}, {}
        self._later, self._aside = None, None  # tests to be run aside, once they are known; the one that runs
        self.spans = {}  # level -> when its first test began and its last one ended; not those run aside

    def stop(self):
        for execution in [*self._running, *([self._aside] if self._aside else [])]:
            execution.stop()

    def everything(self):
        if not self._arguments.no_build and not self._run([Test("packages", self._install(), 1200)], 1):
            return
        for batch in BATCHES:
            if wanted := [level for level in batch if self._catalogue.wants(level)]:
                self._batch(wanted)

    @staticmethod
    def _install():
        return ["deploy/install-packages.sh", "build", "test"]

    def _batch(self, levels):
        if levels[0] in NEED_ROOT and os.geteuid() != 0:
            for level in levels:
                self._report(Test(level, []), Outcome("FAIL", 0, "must run as root"))
            return
        idle = levels[0] in IDLE_LEVELS
        if not idle:
            self._end_aside()
        builds = [self._build(kind) for kind in dict.fromkeys(kind for level in levels for kind in self._catalogue.builds(level))]
        if all(builds):
            tests = [test for level in levels for test in self._catalogue.tests(level) if test.name not in self.outcomes]
            if idle and self._later is None and not self._arguments.no_build:
                self._later = self._tests_aside()
            self._run(tests, self._arguments.jobs or JOBS.get(levels[0], 1), aside=idle)

    def _tests_aside(self):
        """Tests of later levels that can run now, in their order; those levels run the rest."""
        wanted = [level for level in ("sanitize", "mutate") if self._catalogue.wants(level)]
        builds = dict.fromkeys(kind for level in wanted for kind in self._catalogue.builds(level) if kind not in self._built)
        tests = [self._catalogue.build(kind) for kind in builds]
        return tests + [test for test in self._catalogue.tests("mutate") if "mutate" in wanted and not test.alone]

    def _advance_aside(self, more):
        """Checks whether the test that runs aside has ended. `more`: if so, the next one may start."""
        if self._aside and (outcome := self._aside.poll()):
            test, self._aside = self._aside.test, None
            if test.level == "build":
                self._built[test.name.removeprefix("build.")] = outcome.verdict == "pass"
            self._report(test, outcome)
        if more and self._later and not self._aside:
            test = self._later.pop(0)
            self._aside = Execution(test, WORK, self._skips)
            self._aside.start(idle=True)

    def _end_aside(self):
        while self._aside:
            self._advance_aside(more=False)
            time.sleep(0.05)

    def _build(self, kind):
        if not self._arguments.no_build and kind not in self._built:
            self._built[kind] = self._run([self._catalogue.build(kind)], 1)
        return self._built.get(kind, True)

    def _run(self, tests, jobs, aside=False):
        """True if all passed. First those that may share the host, then those that need it alone, then second tries.
        `aside`: work for idle CPUs may run alongside, except during second tries."""
        tests = sorted(tests, key=lambda test: -test.timeout)  # longest first, so that nothing waits for it
        failed = self._several([test for test in tests if not test.alone], jobs, aside=aside)
        failed += self._several([test for test in tests if test.alone], 1, aside=aside)
        for test, outcome in failed:
            if self._tries and test.level in TRIED_TWICE:
                self._end_aside()
                self._tries -= 1
                self.again[test.name] = reason(outcome)
                self._report(test, dataclasses.replace(outcome, verdict="AGAIN"))
                outcome.log.rename(outcome.log.with_suffix(".first.log"))
                self._several([test], 1, second_try=True)
            else:
                self._report(test, outcome)
        return all(self.outcomes[test.name].verdict != "FAIL" for test in tests)

    def _several(self, tests, jobs, second_try=False, aside=False):
        """Runs them, `jobs` at a time; [(test, outcome)] of failures, which are reported later unless final."""
        waiting, failed = list(tests), []
        while waiting or self._running:
            while waiting and len(self._running) < jobs:
                self._running.append(Execution(waiting.pop(0), WORK, self._skips))
                self._running[-1].start(second_try)
                self.spans.setdefault(self._running[-1].test.level, [time.monotonic(), 0])
            for execution in list(self._running):
                if outcome := execution.poll():
                    self._running.remove(execution)
                    self.spans[execution.test.level][1] = time.monotonic()
                    if outcome.verdict == "FAIL" and not second_try:
                        failed.append((execution.test, outcome))
                    else:
                        self._report(execution.test, outcome)
            if aside:
                self._advance_aside(more=True)
            time.sleep(0.05)
        return failed

    def _report(self, test, outcome):
        self.outcomes[test.name] = outcome
        print(f"{outcome.verdict:5} {test.name:52} {outcome.seconds:7.1f} s {outcome.cpu:7.1f} s CPU  {outcome.reason}".rstrip())
        if outcome.verdict in ("FAIL", "AGAIN") and outcome.log:
            for line in excerpt(outcome.log):
                print(f"      | {line}")
            print(f"      the whole output: {outcome.log}")


def print_times(outcomes, spans, seconds):
    by_level = {}
    for name, outcome in outcomes.items():
        by_level.setdefault(name.split(".")[0], []).append(outcome)
    print(f"\ntime by level, from its begin to its end, summed over its tests, and CPU time (the whole took {seconds:.0f} s and "
          f"{sum(outcome.cpu for outcome in outcomes.values()):.0f} s CPU):")
    for level, of_level in by_level.items():
        wall = f"{spans[level][1] - spans[level][0]:7.1f} s" if level in spans else " " * 9
        print(f"  {level:10} {wall} {sum(one.seconds for one in of_level):8.1f} s {sum(one.cpu for one in of_level):8.1f} s CPU  "
              f"{len(of_level)} tests")
    for what, key in (("slowest", "seconds"), ("with most CPU time", "cpu")):
        print(f"the {SLOWEST} {what}:")
        for name, outcome in sorted(outcomes.items(), key=lambda item: -getattr(item[1], key))[:SLOWEST]:
            print(f"  {outcome.seconds:7.1f} s {outcome.cpu:7.1f} s CPU  {name}")


def print_failed(outcomes, failed):
    """The output of the failed tests, in order."""
    for name in failed[:PRINTED_WHOLE]:
        if outcomes[name].log:
            print(f"\n---- output of {name} ({outcomes[name].reason}):")
            print("\n".join(whole(outcomes[name].log)))


def print_again(again, outcomes):
    for name, words in again.items():
        verdict = "FLAKY, passed at the second try" if outcomes[name].verdict != "FAIL" else "failed at both tries"
        level = name.split(".")[0]
        print(f"{verdict}: {name}: at first {words} (may be tried twice: {TRIED_TWICE[level]})")
    for name, outcome in outcomes.items():
        for line in tried_again(outcome.log) if outcome.verdict == "pass" and outcome.log else []:
            print(f"tried again within {name}: {line}")


def close(run, seconds):
    """The last lines, and the exit code."""
    verdicts = [outcome.verdict for outcome in run.outcomes.values()]
    failed = [name for name, outcome in run.outcomes.items() if outcome.verdict == "FAIL"]
    print_failed(run.outcomes, failed)
    print_times(run.outcomes, run.spans, seconds)
    print_again(run.again, run.outcomes)
    if failed:
        print(f"failed: {' '.join(failed)}")
    print(f"{verdicts.count('pass')} passed, {len(failed)} failed, {verdicts.count('skip')} skipped")
    return 1 if failed else 0


def parse(arguments):
    parser = argparse.ArgumentParser(prog="tests/run.sh", epilog=LEVEL_HELP,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     description="Runs all levels of the CI tier, or only the named levels and tests.")
    parser.add_argument("names", nargs="*", metavar="LEVEL | TEST")
    parser.add_argument("--long", action="store_true", help="the long tier: more cases, wider sweeps, all sabotages")
    parser.add_argument("--part", choices=list(PARTS), metavar="NAME", help="one part of the long tier")
    parser.add_argument("--list-parts", action="store_true", help="the parts of the long tier, and what each holds")
    parser.add_argument("--list", action="store_true", help="only print the tests (those of unit once they are built)")
    parser.add_argument("--no-build", action="store_true", help="neither install nor build: test what is in build-tests/")
    parser.add_argument("--jobs", type=int, help="tests at a time, instead of each level's own number")
    result = parser.parse_args(arguments)
    if result.part:
        if result.names:
            parser.error("--part takes no names")
        result.long = True
    for name in result.names:
        if name.split(".")[0] not in LEVELS:
            parser.error(f"there is no level {name.split('.')[0]}")
    return result


def set_environment(long):
    """What every test finds in its environment; see tests/README.md."""
    seed = os.environ.get("SSDPULSE_TEST_SEED") or str(random.randrange(2**31) if long else CI_SEED)
    gcc = WORK / "gcc"
    given = {"SSDPULSE_TEST_CACHE": str(WORK / "cache"), "TSAN_OPTIONS": "halt_on_error=1",
             "UBSAN_OPTIONS": "print_stacktrace=1",
             "RC_PARAMS": f"seed={seed}{' max_success=5000' if long else ''}"}
    os.environ.update({name: value for name, value in given.items() if name not in os.environ})
    os.environ.update(SSDPULSE_SOURCE=str(ROOT), SSDPULSE_BUILD=str(gcc), SSDPULSE_BINARY=str(gcc / "ssdpulse"),
                      SSDPULSE_TEST_LONG="1" if long else "", SSDPULSE_TEST_SEED=seed)
    for directory in (WORK / "logs", WORK / "state", Path(os.environ["SSDPULSE_TEST_CACHE"])):
        directory.mkdir(parents=True, exist_ok=True)
    return seed


def list_parts(catalogue):
    for name, holds in PARTS.items():
        print(f"{name:18} {' '.join(holds)}")
    everything = [test.name for level in LEVELS for test in catalogue.tests(level)]
    if left_out := missing(everything):
        sys.exit(f"in no part: {' '.join(left_out)}")


def main():
    arguments = parse(sys.argv[1:])
    os.chdir(ROOT)
    sys.stdout.reconfigure(line_buffering=True)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    names = PARTS[arguments.part] if arguments.part else arguments.names
    seed = set_environment(arguments.long or arguments.list_parts)
    catalogue = Catalogue(ROOT, names, arguments.long or arguments.list_parts)
    if arguments.list_parts:
        list_parts(catalogue)
        return 0
    if arguments.list:
        for level in LEVELS:
            for test in catalogue.tests(level):
                print(test.name)
        return 0
    with open(WORK / "lock", "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"another run of the tests is under way in {WORK}")
        run = Run(catalogue, arguments)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: sys.exit(130))
        for leftover in (WORK / "state").iterdir():
            clean(leftover)
        revision = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "describe", "--always", "--dirty"],
                                  capture_output=True, text=True, check=False).stdout.strip()
        tier = f"part {arguments.part} of the long tier" if arguments.part else "long tier" if arguments.long else "CI tier"
        print(f"{tier}, revision {revision or 'unknown'}, seed {seed}")
        began = time.monotonic()
        try:
            run.everything()
        finally:
            run.stop()
        if not set(run.outcomes) - {"packages"}:
            print("nothing was run: no such test", file=sys.stderr)
            return 2
        return close(run, time.monotonic() - began)


if __name__ == "__main__":
    sys.exit(main())
