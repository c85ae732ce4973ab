#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
"""Does the daemon start, reload, stop and die as its host expects of it?"""
import os
import re
import signal
import socket
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import host
from lib import compare, metrics, rig

UNSEEN_BY_ANYBODY = 0.01  # at most, of a load: completions for which a virtual machine's kernel ran no BPF program
IDLE_LIMIT = 1.0  # seconds from the signal to the exit


def wait_until(true, seconds=5):
    deadline = time.monotonic() + seconds
    while not (holds := true()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return holds


def write_config(state, port, include, mode="full", more=""):
    """Overwrites the file that rig.daemon() wrote."""
    names = ", ".join(f'"{name}"' for name in include)
    (state / "config.yaml").write_text(f"web:\n  listen_address: 127.0.0.1:{port}\n{more}"
                                       f"devices:\n  include: [{names}]\n  exclude: []\nlatency:\n  mode: {mode}\n"
                                       f"history:\n  directory: {state}/history\n")


def reload(daemon, words):
    """Sends SIGHUP; returns what is logged from then until `words` appears, or for a few seconds."""
    before = len(daemon.log.read_text())
    daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: words in daemon.log.read_text()[before:])
    return daemon.log.read_text()[before:]


def fixed_load(disk, seed, ios=20_000):
    """Exactly this many reads and writes; returns {operation: I/Os}."""
    job = rig.fio(disk, seed, rw="randrw", bs="4k", iodepth=8, ioengine="libaio", size="64M", io_size="16G",
                  number_ios=ios)
    return {operation: job[operation]["total_ios"] for operation in ("read", "write")}


def counts(difference, disk, operations):
    return {operation: difference.histogram(compare.TOTAL, device=disk.name, operation=operation).count
            for operation in operations}


def complete(check, difference, disk, truth, what):
    """Every I/O was counted, or is one of a few counted losses (see lib/observe.py)."""
    lost = compare.lost_events(difference, disk).total()  # those without a device may be another disk's
    have = counts(difference, disk, truth)
    missing = sum(truth.values()) - sum(have.values())
    good = all(have[operation] <= truth[operation] for operation in truth) and missing <= lost
    check.that(good and missing <= sum(truth.values()) * UNSEEN_BY_ANYBODY,
               f"{disk.name} {what}: {have}, fio {truth}, {missing} missing, {lost} counted as lost")


def stops(check, state, disk):
    for name in ("SIGTERM", "SIGINT", "SIGKILL"):
        with rig.daemon(state, [disk]) as daemon:
            held = host.bpf_of(daemon.process.pid)
            kinds = {kind for kind, _ in held}
            check.that({"prog", "map"} <= kinds and held <= host.bpf_all(),
                       f"{name}: the daemon holds {len(held)} BPF objects")
            with socket.create_connection(("127.0.0.1", daemon.port)) as idle:
                idle.send(b"GET /metrics HTTP/1.1\r\nHost: idle\r\n\r\n")
                idle.recv(1)
                began = time.monotonic()
                daemon.process.send_signal(signal.Signals[name])
                code = daemon.process.wait(10)
                took = time.monotonic() - began
            check.equal(code, -signal.SIGKILL if name == "SIGKILL" else 0, f"{name}: exit code")
            check.that(took < IDLE_LIMIT, f"{name}: ends after {took:.3f} s, a client being connected")
            left = host.bpf_left(held)
            check.that(not left and not host.listening(daemon.port),
                       f"{name}: no BPF object and no socket is left {left or ''}")


def privileges(check, daemon):
    tasks = list(Path(f"/proc/{daemon.process.pid}/task").iterdir())
    sets = {host.status(f"{daemon.process.pid}/task/{task.name}", f"Cap{which}")
            for task in tasks for which in ("Inh", "Prm", "Eff", "Bnd", "Amb")}
    check.equal(sets, {"0" * 16}, f"capabilities of {len(tasks)} threads")
    for field, value, what in (("NoNewPrivs", "1", "no_new_privs"), ("Seccomp", "2", "a filter of system calls")):
        check.equal({host.status(f"{daemon.process.pid}/task/{task.name}", field) for task in tasks}, {value}, what)


def pages(check, daemon):
    for path, expected in (("/-/ready", 200), ("/-/healthy", 200), ("/", 200)):
        check.equal(metrics.fetch(daemon.port, path, "*/*")[0], expected, path)


def devices_of(scrape, *names):
    """Which of these devices have any series?"""
    seen = {dict(labels).get("device") for _, labels in [*scrape.values, *scrape.histograms]}
    return seen & set(names)


def reloads(check, state, disks, seed):
    """The filter changes under a running load; the disk that stays keeps all its counts."""
    stays, goes, comes = disks
    names = [disk.name for disk in disks]
    with rig.daemon(state, disks) as daemon:
        check.equal(devices_of(daemon.scrape(), *names), set(names), "measured at first")
        write_config(state, daemon.port, [stays.name, goes.name])
        reload(daemon, "configuration reloaded")
        check.that(wait_until(lambda: devices_of(daemon.scrape(), *names) == {stays.name, goes.name}),
                   "a disk is excluded")
        fixed_load(comes, seed, 500)
        before = daemon.at_rest()

        load = rig.Load(rig.fio_command(stays, seed, [{}], rw="randrw", bs="4k", iodepth=8, ioengine="libaio",
                                        size="64M",
                                        rate_iops=5000, time_based=None, runtime=6))
        time.sleep(1)
        for number in range(4):
            write_config(state, daemon.port, [stays.name, (comes, goes)[number % 2].name])
            reload(daemon, "configuration reloaded")
            time.sleep(0.5)
        write_config(state, daemon.port, [stays.name, comes.name])
        reload(daemon, "configuration reloaded")
        check.that(wait_until(lambda: devices_of(daemon.scrape(), *names) == {stays.name, comes.name}),
                   "a reload ends the series of one disk and begins those of another")
        log = daemon.log.read_text()
        check.that(f"device gone device={goes.name}" in log and f"device came device={comes.name}" in log,
                   "the log names both")
        job = load.jobs()[0]
        issued = fixed_load(comes, seed + 1)
        difference = metrics.Difference(before, daemon.at_rest())
        truth = {operation: job[operation]["total_ios"] for operation in ("read", "write")}
        complete(check, difference, stays, truth, "measured through five reloads")
        complete(check, difference, comes, issued, "counts from when it was included")
        bad_reloads(check, state, daemon, disks)


def command_line_wins(check, state, disks):
    """It also wins after a reload of a file that differs."""
    chosen, too, other = (disk.name for disk in disks)
    with rig.daemon(state, disks[:2], include=("loop*",), options=[f"--devices.include={name}" for name in (chosen, too)]) as daemon:
        log = reload(daemon, "configuration reloaded")
        check.that("devices_measured=2" in log and devices_of(daemon.at_rest(1.2), chosen, too, other) == {chosen, too},
                   "each --devices.include counts, and they win over the file after a reload")


def bad_reloads(check, state, daemon, disks):
    stays, goes, comes = disks
    write_config(state, daemon.port, [goes.name], more="  wrong: 1\n")
    log = reload(daemon, "stays in force")
    check.that(re.search(r"error \S+/config\.yaml:3:3: unknown key 'wrong'", log) and "stays in force" in log,
               f"a bad file is named with its line and column: {log.splitlines()}")
    time.sleep(1.2)
    check.equal(devices_of(daemon.scrape(), stays.name, goes.name, comes.name), {stays.name, comes.name},
                "and changes nothing")
    check.equal(daemon.scrape().value("ssdpulse_config_last_reload_successful"), 0, "a metric says so")
    (state / "config.yaml").unlink()
    log = reload(daemon, "stays in force")
    check.that("config.yaml: cannot be opened" in log and "stays in force" in log,
               f"a file that is gone: {log.splitlines()}")
    write_config(state, daemon.port, [stays.name], mode="completion-only")
    log = reload(daemon, "configuration reloaded")
    check.that("key=latency.mode changed: takes effect after a restart" in log and "web." not in log,
               f"a new mode needs a restart: {log.splitlines()}")
    write_config(state, 1, [stays.name])
    log = reload(daemon, "configuration reloaded")
    check.that("key=web.listen_address changed: takes effect after a restart" in log and "latency" not in log,
               f"a new address needs a restart: {log.splitlines()}")
    mode = daemon.scrape().series("ssdpulse_latency_mode_info")
    check.equal([dict(labels)["mode"] for labels in mode], ["full"], "mode meanwhile")
    check.that(wait_until(lambda: devices_of(daemon.scrape(), stays.name, comes.name) == {stays.name}),
               "the filter of the same file was applied")
    check.equal(daemon.scrape().value("ssdpulse_config_last_reload_successful"), 1, "a good file ends it")


class Notifications(threading.Thread):
    """What a service manager would receive: (monotonic time, {key: value}, status of /metrics at READY)."""

    def __init__(self, path, config):
        super().__init__(daemon=True)
        self.messages, self._config = [], config
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._socket.settimeout(0.2)
        self._over = False

    def run(self):
        while not self._over:
            try:
                text = self._socket.recv(4096).decode()
            except TimeoutError:
                continue
            at, page = time.monotonic(), None
            message = dict(line.split("=", 1) for line in text.splitlines())
            if "READY" in message:
                port = int(re.search(r"listen_address: 127\.0\.0\.1:(\d+)", self._config.read_text())[1])
                page = metrics.fetch(port)[0]
            self.messages.append((at, message, page))

    def having(self, key):
        return [(at, message, page) for at, message, page in list(self.messages) if key in message]

    def end(self):
        time.sleep(0.3)
        self._over = True
        self.join()
        self._socket.close()


@contextmanager
def notified(state):
    notifications = Notifications(state / "notify", state / "config.yaml")
    notifications.start()
    os.environ["NOTIFY_SOCKET"] = str(state / "notify")
    try:
        yield notifications
    finally:
        del os.environ["NOTIFY_SOCKET"]
        notifications.end()


def service_manager(check, state, disk):
    with notified(state) as heard:
        with rig.daemon(state, [disk]) as daemon:
            check.that(wait_until(lambda: heard.having("READY")), "READY=1")
            first = heard.messages[0]
            check.equal((first[1].get("READY"), first[2]), ("1", 200),
                        "the first message is READY, and there is a sample")
            check.that(re.fullmatch(r"measuring \d+ device\(s\)", first[1].get("STATUS", "")),
                       f"STATUS={first[1].get('STATUS')}")
            time.sleep(5)
            beats = [at for at, _, _ in heard.having("WATCHDOG")]
            gaps = [after - before for before, after in zip(beats, beats[1:])]
            # One per second, if the host allows; the service manager waits for 30 s.
            check.that(3 <= len(beats) <= 8 and max(gaps) < 5,
                       f"{len(beats)} WATCHDOG=1, up to {max(gaps, default=0):.2f} s apart")
            asked = time.monotonic()
            write_config(state, daemon.port, [disk.name])
            reload(daemon, "configuration reloaded")
            check.that(wait_until(lambda: len(heard.having("READY")) == 2), "READY=1 again after a reload")
            answered = time.monotonic()
            reloading = heard.having("RELOADING")
            stamps = [int(message["MONOTONIC_USEC"]) / 1e6 for _, message, _ in reloading]
            check.that(len(stamps) == 1 and reloading[0][1]["RELOADING"] == "1" and asked <= stamps[0] <= answered
                       and reloading[0][0] < heard.having("READY")[1][0],
                       "before it RELOADING=1 with MONOTONIC_USEC of that time")
            check.equal(heard.having("READY")[1][1]["STATUS"], "measuring 1 device(s)", "STATUS of the new filter")
        check.that(wait_until(lambda: heard.having("STOPPING")), "STOPPING=1")
        check.equal(heard.messages[-1][1], {"STOPPING": "1"}, "the last message")


def two_at_once(check, state, disk, seed):
    (state / "other").mkdir()
    with rig.daemon(state, [disk]) as one, rig.daemon(state / "other", [disk], "completion-only") as two:
        before = [daemon.at_rest(1.2) for daemon in (one, two)]
        truth = fixed_load(disk, seed)
        full, completion_only = (metrics.Difference(past, daemon.at_rest()) for past, daemon in zip(before, (one, two)))
        complete(check, full, disk, truth, "the one of two daemons that runs full")
        # Without issues it cannot detect a completion that no program saw; the other daemon missed the same ones.
        check.equal(counts(completion_only, disk, truth), counts(full, disk, truth), "completion-only: as many as the other")


def test(check, state):
    seed = rig.fresh_seed()
    with rig.ram_disks(state, count=3, size="64M") as disks:
        stops(check, state, disks[0])
        with rig.daemon(state, disks) as daemon:
            privileges(check, daemon)
            pages(check, daemon)
        reloads(check, state, disks, seed)
        command_line_wins(check, state, disks)
        service_manager(check, state, disks[0])
        two_at_once(check, state, disks[0], seed)


rig.main(test)
