# SPDX-License-Identifier: Apache-2.0
"""How is one test run, and cleaned up after?

A test is a command: exit code 0 passes, 77 skips (a failure unless tests/skips.txt names the test), others fail. It has
a state directory of its own, SSDPULSE_TEST_STATE, and everything tied to that directory is removed when the test has
ended, however it ended: processes that have it in their environment, and mounts and loop devices below it. The
commands in its file `cleanup` are run.
"""
import os
import re
import resource
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

SKIPPED = 77
TELLING = re.compile(r"^ *(FAIL|AGAIN)\b|: Failure$|\berror: |^[A-Za-z_.]*Error\b")


@dataclass
class Outcome:
    verdict: str  # pass, skip or FAIL
    seconds: float
    reason: str = ""
    log: Path = None
    cpu: float = 0  # seconds of the test and of every descendant that was waited for


class Execution:
    """One running test. start(), then poll() until it gives an Outcome; stop() ends it early."""

    def __init__(self, test, work, skips):
        self.test, self._skips = test, skips
        self.state = work / "state" / test.name
        self.log = work / "logs" / f"{test.name}.log"
        self._process = None
        self._began = self._deadline = 0

    def start(self, second_try=False, idle=False):
        """`idle`: it gets only CPU time that nothing else uses, and so may take long."""
        self.state.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, **self.test.environment, "SSDPULSE_TEST_STATE": str(self.state),
                       "SSDPULSE_TEST_SECOND_TRY": "1" if second_try else ""}
        with open(self.log, "wb") as log:
            command = ["chrt", "--idle", "0", *self.test.command] if idle else self.test.command
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, env=environment,
                                             stderr=subprocess.STDOUT, start_new_session=True)
        if idle:
            _weigh_least(self._process.pid)
        self._began = time.monotonic()
        self._deadline = self._began + self.test.timeout * (4 if idle else 1)

    def poll(self):
        """The Outcome, or None while it runs."""
        before, reason = _reaped_seconds(), ""
        if self._process.poll() is None:
            if time.monotonic() < self._deadline:
                return None
            self._end_process()
            reason = f"no end after {self.test.timeout} s"
        return self._outcome(_reaped_seconds() - before, reason)

    def stop(self):
        self._end_process()
        clean(self.state)

    def _end_process(self):
        for number, patience in ((signal.SIGTERM, 10), (signal.SIGKILL, 10)):
            if self._process.poll() is None:
                try:
                    os.killpg(self._process.pid, number)
                    self._process.wait(patience)
                except (ProcessLookupError, subprocess.TimeoutExpired):
                    pass

    def _outcome(self, cpu, reason):
        code, seconds = self._process.returncode, time.monotonic() - self._began
        clean(self.state)
        verdict = "FAIL"
        if not reason and code == 0:
            verdict = "pass"
        elif not reason and code == SKIPPED:
            allowed = self._skips.get(self.test.name)
            verdict, reason = ("skip", allowed) if allowed else ("FAIL", "skipped, and not in tests/skips.txt")
        return Outcome(verdict, seconds, reason or ("" if code == 0 else f"exit code {code}"), self.log, cpu)


def _reaped_seconds():
    """CPU seconds of the children that have been waited for: it grows by those of a test when that is reaped."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _weigh_least(session):
    """The scheduler may treat each session as a group (autogroup) with an equal share, whatever its tasks' priority."""
    try:
        Path(f"/proc/{session}/autogroup").write_text("19", "utf-8")
    except OSError:  # a kernel without such groups, or the session has ended
        pass


def read_skips(root):
    """Test -> reason, from tests/skips.txt."""
    lines = (root / "tests/skips.txt").read_text("utf-8").splitlines()
    return dict(line.split(" ", 1) for line in lines if line and not line.startswith("#"))


def excerpt(log):
    """The most telling lines of a failure first, then the end of the output."""
    lines = log.read_text("utf-8", errors="replace").splitlines()
    telling = [line for i, line in enumerate(lines) if any(TELLING.search(near) for near in lines[max(0, i - 2):i + 1])]
    return [*telling[:16], *(["..."] if telling else []), *lines[-20:]]


def whole(log, lines=400, width=500):
    """All output, but of too many lines only the first and the last, and of each at most `width` characters."""
    text = [line[:width] for line in log.read_text("utf-8", errors="replace").splitlines()]
    if len(text) > lines:
        text[lines // 4:-(lines - lines // 4)] = [f"... {len(text) - lines} more lines in {log} ..."]
    return text


def reason(outcome):
    """What was wrong, in one line: the test's own words if there are any."""
    lines = outcome.log.read_text("utf-8", errors="replace").splitlines() if outcome.log else []
    told = next((line.strip() for line in lines if re.match(r" *FAIL\b", line)), "")
    return (told or outcome.reason)[:300]


def tried_again(log):
    """What a test reports about parts that it retried because the failure was not ours: lines AGAIN."""
    lines = log.read_text("utf-8", errors="replace").splitlines()
    return [line.strip().removeprefix("AGAIN ")[:300] for line in lines if re.match(r" *AGAIN\b", line)][:8]


def clean(state):
    """Removes what a test has left behind."""
    if not state.is_dir():
        return
    _signal_marked(state, signal.SIGTERM)
    if (state / "cleanup").exists():
        for line in reversed((state / "cleanup").read_text().splitlines()):
            subprocess.run(["bash", "-c", line], check=False, capture_output=True)
    for _ in range(30):
        if not _marked(state):
            break
        time.sleep(0.1)
    _signal_marked(state, signal.SIGKILL)
    _detach_loops(state)
    # The kernel writes spaces and the like as a backslash and three octal digits.
    mounts = [re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), line.split()[4])
              for line in Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape").splitlines()]
    for mount in reversed([mount for mount in mounts if mount.startswith(f"{state}/")]):
        if subprocess.run(["umount", mount], check=False, capture_output=True).returncode != 0:
            subprocess.run(["umount", "-l", mount], check=False)
    _detach_loops(state)
    shutil.rmtree(state, ignore_errors=True)


def _marked(state):
    """The processes whose environment shows that they belong to the test with this state directory."""
    mark, found = f"SSDPULSE_TEST_STATE={state}".encode(), []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            pass
    return found


def _signal_marked(state, number):
    for process in _marked(state):
        try:
            os.kill(process, number)
        except ProcessLookupError:
            pass


def _detach_loops(state):
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            backing = path.read_text()
        except OSError:
            continue
        if backing.startswith(f"{state}/"):
            subprocess.run(["losetup", "-d", f"/dev/{path.parts[3]}"], check=False)
