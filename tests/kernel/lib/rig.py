# SPDX-License-Identifier: Apache-2.0
"""The disks, loads, daemon and tracer of one test: created here, and always removed again.

Everything is a context manager; `with` order is teardown order. README.md has the runner's contract (environment).
"""
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from lib import metrics, trace

BUILD = Path(os.environ.get("SSDPULSE_BUILD", "build"))
BINARY = Path(os.environ.get("SSDPULSE_BINARY", BUILD / "ssdpulse"))
TRACER = BUILD / "ssdpulse_iotrace"
LONG = os.environ.get("SSDPULSE_TEST_LONG") == "1"
FIRST_FAILURE_ENDS = os.environ.get("SSDPULSE_TEST_FIRST_FAILURE_ENDS") == "1"
SETTLE_SECONDS = 2.5  # more than two of the daemon's ticks


def run(*command, check=True):
    done = subprocess.run([str(part) for part in command], text=True, capture_output=True, check=False)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit {done.returncode}: {done.stderr.strip()}")
    return done.stdout.strip()


@contextmanager
def state_directory():
    """The runner's per-test directory, or our own if the test was started by hand."""
    given = os.environ.get("SSDPULSE_TEST_STATE")
    path = Path(tempfile.mkdtemp(prefix="ssdpulse-", dir=given))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def tmpfs(state, size):
    path = Path(tempfile.mkdtemp(prefix="ram-", dir=state))
    run("mount", "-t", "tmpfs", "-o", f"size={size}", "ssdpulse-test", path)
    try:
        yield path
    finally:
        run("umount", "-l", path, check=False)


@dataclass
class Disk:
    name: str
    file: Path

    @property
    def path(self):
        return f"/dev/{self.name}"

    @property
    def dev(self):
        major, minor = Path(f"/sys/block/{self.name}/dev").read_text().split(":")
        return int(major) << 20 | int(minor)

    def queue(self, attribute):
        return Path(f"/sys/block/{self.name}/queue/{attribute}").read_text().strip()

    def set_queue(self, attribute, value):
        Path(f"/sys/block/{self.name}/queue/{attribute}").write_text(str(value))

    def stat(self):
        """The kernel's own counts: {operation: I/Os}; writes include flush parents, write zeroes and secure erases."""
        numbers = self._stat()
        return {"read": numbers[0], "write": numbers[4], "discard": numbers[11], "flush": numbers[15]}

    def stat_bytes(self):
        """Like stat(): {operation: bytes that ended}; none are counted for flushes."""
        numbers = self._stat()
        return {"read": numbers[2] * 512, "write": numbers[6] * 512, "discard": numbers[13] * 512}

    def _stat(self):
        return [int(n) for n in Path(f"/sys/block/{self.name}/stat").read_text().split()]


@contextmanager
def loop_disk(file, size=None, direct=False):
    """A loop device that never merges, so that each bio is one request. With `size`, the file is created.

    The kernel keeps a detached device's settings for its next user: so they are set here, not assumed.
    """
    if size is not None:
        run("truncate", "-s", size, file)
    device = run("losetup", "--find", "--show", f"--direct-io={'on' if direct else 'off'}", file)
    try:
        if shutil.which("udevadm"):
            run("udevadm", "settle", "--timeout=10", check=False)
        disk = Disk(Path(device).name, Path(file))
        disk.set_queue("nomerges", 2)
        disk.set_queue("scheduler", "none")
        disk.set_queue("iostats", 1)
        disk.set_queue("read_ahead_kb", 128)  # the kernel's default: a loop device keeps what an earlier test set
        yield disk
    finally:
        for _ in range(50):
            if subprocess.run(["losetup", "--detach", device], capture_output=True, check=False).returncode == 0:
                break
            time.sleep(0.1)


def wait_until_unused(disk, seconds=240):
    """Another test that began a mount namespace of its own while the disk was mounted keeps a copy of that mount."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            os.close(os.open(disk.path, os.O_RDWR | os.O_EXCL))
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.2)


@contextmanager
def partitions(disk, ranges):
    """(first sector, sectors) of each, numbered from 1. The kernel gets them directly: no partition table is needed."""
    try:
        for number, (first, length) in enumerate(ranges, 1):
            run("addpart", disk.path, number, first, length)
        yield
    finally:  # the loop device would keep them
        for number in range(1, len(ranges) + 1):
            run("delpart", disk.path, number, check=False)


@contextmanager
def ram_disks(state, count=1, size="1G", filled=True):
    """Loop devices over tmpfs, with their memory allocated, so that a first write costs the same as a later one."""
    with ExitStack() as stack:
        memory = stack.enter_context(tmpfs(state, "90%"))
        files = [memory / f"disk{i}" for i in range(count)]
        if filled:
            for file in files:
                run("fallocate", "-l", size, file)
        yield [stack.enter_context(loop_disk(file, size)) for file in files]


@contextmanager
def fuse_disk(state, size, filters, *options):
    """A loop device over nbdkit's memory disk behind a FUSE mount: slow or failing, depending on the filters."""
    mount = Path(tempfile.mkdtemp(prefix="fuse-", dir=state))
    file = mount / "disk"
    process = subprocess.Popen(["nbdfuse", file, "[", "nbdkit", "--exit-with-parent",
                                *(f"--filter={name}" for name in filters), "memory", size, *options, "]"],
                               stderr=subprocess.DEVNULL)  # it reports every error that it was asked to cause
    try:
        for _ in range(100):
            if file.exists():
                break
            time.sleep(0.05)
        with loop_disk(file, direct=True) as disk:
            yield disk
    finally:
        run("umount", "-l", mount, check=False)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def fio_command(disk, seed, jobs, **options):
    """One fio command with a job for each dictionary in `jobs`, on top of `options`; an option of None has no value."""
    common = {"filename": disk.path, "direct": 1, "randrepeat": 0, "randseed": seed, "norandommap": None,
              "lat_percentiles": 1, **options}
    command = ["fio", "--output-format=json"]
    for number, job in enumerate(jobs):
        merged = {"name": f"job{number}", **common, **job}
        command += [f"--{key}" if value is None else f"--{key}={value}" for key, value in merged.items()]
    return command


class Load:
    """A running fio; jobs() waits for it, close() ends it."""

    def __init__(self, command, may_fail=False):
        self._may_fail = may_fail
        self._process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def jobs(self):
        out, err = self._process.communicate()
        if self._process.returncode != 0 and not self._may_fail:
            raise RuntimeError(f"fio: exit {self._process.returncode}: {err} {out[-2000:]}")
        return json.loads(out[out.index("{"):])["jobs"]

    def close(self):
        self._process.terminate()
        self._process.communicate()


def fio_jobs(disk, seed, jobs, **options):
    return Load(fio_command(disk, seed, jobs, **options)).jobs()


def fio(disk, seed, may_fail=False, **options):
    """Runs one job; returns its report."""
    return Load(fio_command(disk, seed, [{}], group_reporting=None, **options), may_fail).jobs()[0]


class Daemon:
    def __init__(self, port, process, log):
        self.port, self.process, self.log = port, process, log

    def scrape(self):
        return metrics.scrape(self.port)

    def at_rest(self, settle=SETTLE_SECONDS):
        """A scrape that covers everything that ended before the call."""
        time.sleep(settle)
        return self.scrape()

    def after_ticks(self, ticks=1):
        """A scrape after this many daemon ticks that began after the call."""
        called, seen = time.time(), set()
        deadline = time.monotonic() + 30 + 10 * ticks
        while time.monotonic() < deadline:
            scrape = self.scrape()
            seen.add(scrape.value("ssdpulse_snapshot_timestamp_seconds"))
            # The first tick seen after the call may have begun before it.
            if sum(at > called for at in seen) > ticks:
                return scrape
            time.sleep(0.1)
        raise RuntimeError(f"no {ticks} ticks of the daemon in {30 + 10 * ticks} s")

    def wait_for(self, disks, seconds=30):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            scrape = self.scrape()
            if all(scrape.series("ssdpulse_device_info", device=disk.name) for disk in disks):
                return
            time.sleep(0.1)
        raise RuntimeError(f"the daemon never saw {[d.name for d in disks]}")


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def daemon(state, disks, mode="full", options=(), settings="", include=(), binary=BINARY, web=""):
    """`ssdpulse run`, ready and aware of `disks`. `web`: lines for that block; `settings`: more blocks.

    It measures these disks alone, so that tests running at the same time do not cost it anything; `include`: other
    patterns. Its log is shown when the test fails.
    """
    port = _free_port()
    # The tests' load is all that this host does: the daemon must not turn measurements off after a minute of it.
    unlimited = "" if "limits:" in settings or binary != BINARY else "\nlimits: {cpu: 0%}\n"
    patterns = list(include) or [disk.name for disk in disks] or ["none"]
    config = state / "config.yaml"
    config.write_text(f"web:\n  listen_address: 127.0.0.1:{port}\n{web}"
                      f"devices:\n  include: {json.dumps(patterns)}\n  exclude: []\n"
                      f"latency:\n  mode: {mode}\n"
                      f"history:\n  directory: {state}/history\n{settings}{unlimited}")
    log = state / "daemon.log"
    with open(log, "w") as out:
        process = subprocess.Popen([binary, "run", "--config", config, *options], stdout=out, stderr=subprocess.STDOUT)
    try:
        _wait_ready(port, process)
        subject = Daemon(port, process, log)
        subject.wait_for(disks)
        yield subject
    except BaseException:
        print("--- the daemon's log ---", log.read_text(), "---", sep="\n", file=sys.stderr)
        raise
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_ready(port, process, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the daemon ended with exit code {process.returncode}")
        try:
            if metrics.fetch(port, "/-/ready", "*/*")[0] == 200:
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            pass
        time.sleep(0.1)
    raise RuntimeError("the daemon was not ready in time")


class Tracer:
    """Attaches the trace's two halves separately: make it before the daemon, begin() once the daemon is attached."""

    def __init__(self, process, file):
        self._process, self._file, self._writing = process, file, threading.Lock()
        self._expect("armed")

    def _expect(self, word):
        line = self._process.stdout.readline().strip()
        if line != word:
            raise RuntimeError(f"iotrace said {line!r}, not {word!r}")

    def begin(self):
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        self._expect("tracing")

    def read_so_far(self, disk):
        with self._writing:
            self._process.stdin.write("\n")
            self._process.stdin.flush()
            self._expect("written")
            return self.read(disk)

    def records_so_far(self, disk):
        """Every event recorded so far, as it was written."""
        self.read_so_far(disk)
        return trace.Trace.records(self._file, disk.dev)

    def end(self):
        """Stops tracing; returns {events, ring_full, skipped, no_before}. A gap of the tracer's own is an error."""
        out, _ = self._process.communicate()
        if self._process.returncode != 0:
            raise RuntimeError(f"iotrace: exit {self._process.returncode}: {out}")
        return json.loads(out)

    def read(self, disk):
        return trace.Trace(self._file, disk.dev)


@contextmanager
def tracer(state, disks, ring_mib=256):
    file = state / "trace.bin"
    process = subprocess.Popen([TRACER, file, str(ring_mib), *(disk.name for disk in disks)], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield Tracer(process, file)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def side_by_side(*works):
    """Calls them in threads, as they spend most of their time waiting."""
    with ThreadPoolExecutor(len(works)) as pool:
        for done in [pool.submit(work) for work in works]:
            done.result()


def fresh_seed():
    """SSDPULSE_TEST_SEED, to repeat a run; otherwise a new seed. Printed either way."""
    seed = int(os.environ.get("SSDPULSE_TEST_SEED") or random.SystemRandom().randrange(1, 2**31))
    print(f"seed: {seed} (repeat with SSDPULSE_TEST_SEED={seed})")
    return seed


class Check:
    """Collects what holds and what does not, prints both, and turns the result into an exit code.

    In a sabotage run, the first failed check ends the test: use `finally` to restore whatever the host would keep.
    """

    def __init__(self):
        self.failures = 0

    def that(self, holds, text):
        print(f"{'ok  ' if holds else 'FAIL'} {text}")
        self.failures += not holds
        if FIRST_FAILURE_ENDS and not holds:
            sys.exit(1)

    def equal(self, have, want, text):
        self.that(have == want, f"{text}: {have}" + ("" if have == want else f", expected {want}"))

    def figure(self, text):
        print(f"     {text}")


def main(test):
    """Runs test(check, state); the exit code is the script's."""
    if os.geteuid() != 0:
        sys.exit("needs root")
    sys.stdout.reconfigure(line_buffering=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # a runner's timeout must not leave disks behind
    check = Check()
    began = time.monotonic()
    with state_directory() as state:
        test(check, state)
    print(f"{'PASS' if check.failures == 0 else 'FAIL'} in {time.monotonic() - began:.1f} s")
    sys.exit(check.failures != 0)
