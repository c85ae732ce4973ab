#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# timeout-long: 3600
"""Can any client keep a scraper from its metrics, or make the daemon keep memory?

Each attack has a daemon of its own, which somebody else scrapes meanwhile, each time over a new connection. Of these
scrapes 99.9 % must be answered within a second, not counting as many as a bystander took that long to answer: a process
that does nothing else, and shows how late the host lets anybody be. Five minutes later the daemon must have as much memory as before,
give or take 10 %. In CI, two of the attacks at the same time, and no scrape may take 3 s. With the hung disk, also:
everything about the past is answered in time, /-/ready says what is wrong, and when the disk is back, so is the past.
"""
import json
import multiprocessing
import os
import resource
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import host
import hostile
import web
from controlled_disk import controlled_disk
from crowd import crowd
from lib import metrics, rig
from past import DAY, HOUR, MINUTE, READ, READ_DEVICE_NONE, READ_TOTAL, Past, load, word

SECONDS = 120 if rig.LONG else 40
EVERY = 0.1 if rig.LONG else 0.25  # seconds between scrapes
LATER = 300  # seconds
SOON, LATE, IN_TIME = 1.0, 3.0, 0.999
MORE_MEMORY = 128 << 20  # at most, at any time
KEPT = 0.1  # of what it had before
ANSWER_LIMIT = 10.0  # the server cuts what takes longer
SCRAPER = "198.51.100.200"
IN_CI = ("96 slow pages from 2 addresses", "hung history disk")


def trickle(port, count, seconds, out):
    """Connections that ask for a page and read a few bytes of it now and then; each one that is cut comes back."""
    held, cut, end = [], 0, time.monotonic() + seconds
    while time.monotonic() < end:
        while len(held) < count:
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.settimeout(2)
            try:
                client.connect(("127.0.0.1", port))
                client.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 20)
                client.setblocking(False)
                held.append(client)
            except OSError:
                client.close()
                break
        left = []
        for client in held:
            try:
                client.recv(100)
            except BlockingIOError:
                pass
            except OSError:
                client.close()
                cut += 1
                continue
            left.append(client)
        held = left
        time.sleep(0.2)
    out.put(f"{len(held)} read slowly, {cut} were cut")


def unread(port, count, seconds, disk, out):
    """Connections that ask for pages, each its own, and read none; each one that is cut comes back."""
    held, cut, number, end = [], 0, 0, time.monotonic() + seconds
    while time.monotonic() < end:
        while len(held) < count and time.monotonic() < end:
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.settimeout(2)
            number += 1
            path = f"/api/v1/devices/{disk}/live?since=0&heat=read&n={number}" if number % 2 else "/metrics"
            try:
                client.connect(("127.0.0.1", port))
                client.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode() * 50)
                client.setblocking(False)
                held.append(client)
            except OSError:
                client.close()
                break
        left = []
        for client in held:
            try:
                client.recv(1, socket.MSG_PEEK)
            except BlockingIOError:
                pass
            except OSError:
                client.close()
                cut += 1
                continue
            left.append(client)
        held = left
        time.sleep(0.2)
    out.put(f"{len(held)} read nothing, {cut} were cut")


def handshakes(port, count, seconds, out):
    """Handshakes as fast as they go, while others stop in the middle of theirs."""
    done, end = Counter(), time.monotonic() + seconds

    def repeat():
        while time.monotonic() < end:
            try:
                hostile._secure(hostile._connect(port, 5)).close()
                done["complete"] += 1
            except OSError as error:
                done[type(error).__name__] += 1

    threads = [threading.Thread(target=repeat) for _ in range(4)]
    for thread in threads:
        thread.start()
    held = []
    while time.monotonic() < end:
        while len(held) < count and time.monotonic() < end:
            with suppress(OSError):
                client = hostile._connect(port, 2)
                client.send(hostile.CLIENT_HELLO)
                client.setblocking(False)
                held.append(client)
        left = []
        for client in held:
            try:
                if not client.recv(1):
                    raise OSError
            except BlockingIOError:
                left.append(client)
                continue
            except OSError:
                client.close()
                done["cut"] += 1
        held = left
        time.sleep(0.2)
    for thread in threads:
        thread.join()
    out.put(f"handshakes: {dict(done)}")


def marks(port, count, seconds, out):
    statuses, end = Counter(), time.monotonic() + seconds

    def repeat():
        client = web.Client(port)
        while time.monotonic() < end:
            try:
                statuses[client.get("/api/v1/marks?text=again", {"X-Ssdpulse": "test"}, method="POST")[0]] += 1
            except OSError as error:
                statuses[type(error).__name__] += 1

    threads = [threading.Thread(target=repeat) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    out.put(f"marks: {dict(statuses)}")


def slow_pages(port, addresses, seconds, disk, out):
    now = int(time.time())
    path = f"/api/v1/history/{disk}?points=2000&heat=read&from={now - 90 * DAY}&to={now}"
    statuses, took = crowd(port, 96, 1, seconds, lambda *_: path, addresses)
    out.put(f"answers {dict(statuses)}, p50 {statistics.median(took) if took else 0:.2f} s")


def past_of_hung_disk(port, addresses, seconds, disk, out):
    statuses, took = crowd(port, 96, 1, seconds, lambda client, number: f"/api/v1/why?at={int(time.time()) - 90}", addresses)
    out.put(f"answers {dict(statuses)}, p50 {statistics.median(took) if took else 0:.2f} s")


def nothing(port, seconds, out):
    time.sleep(seconds)
    out.put("")


# name: (function, its arguments between port and seconds, and after them)
ATTACKS = {
    "none": (nothing, (), ()),
    "slow readers": (trickle, (600,), ()),
    "96 slow pages from 1 address": (slow_pages, (1,), ("disk",)),
    "96 slow pages from 2 addresses": (slow_pages, (2,), ("disk",)),
    "96 slow pages from 8 addresses": (slow_pages, (8,), ("disk",)),
    "hung history disk": (past_of_hung_disk, (2,), ("disk",)),
    "1,000 unread answers": (unread, (1000,), ("disk",)),
    "TLS handshakes": (handshakes, (500,), ()),
    "marks": (marks, (16,), ()),
}


def bystander(listener):
    """Answers whoever asks, and does nothing else."""
    while True:
        client, _ = listener.accept()
        with client, suppress(OSError):
            client.recv(4096)
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx")


@contextmanager
def by_bystander():
    """The client of one, which a process of its own serves."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        process = multiprocessing.get_context("fork").Process(target=bystander, args=(listener,), daemon=True)
        process.start()
        try:
            yield web.Client(listener.getsockname()[1], source=SCRAPER)
        finally:
            process.kill()
            process.join()


class Asker(threading.Thread):
    """Asks again and again, from an address of its own: (seconds that it took, status, body) of each."""

    def __init__(self, client, path, pause, keeps=False):
        super().__init__(daemon=True)
        self.client, self.path, self.pause, self.keeps = client, path, pause, keeps
        self.answers, self._over = [], threading.Event()

    def run(self):
        while not self._over.is_set():
            begin = time.monotonic()
            try:
                status, _, body = self.client.get(self.path, timeout=2 * ANSWER_LIMIT)
            except OSError as error:
                status, body = type(error).__name__, b""
            took = time.monotonic() - begin
            self.answers.append((took, status, body.decode("utf-8", "replace") if self.keeps else ""))
            self._over.wait(max(0, self.pause - took))

    def end(self):
        self._over.set()
        self.join()
        return self.answers


class Memory(threading.Thread):
    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.peak, self._over = pid, 0, threading.Event()

    def run(self):
        while not self._over.wait(0.05):
            self.peak = max(self.peak, host.rss(self.pid))

    def end(self):
        self._over.set()
        self.join()
        return self.peak


def write_past(state, disk):
    """90 days, so that a page of them takes long."""
    now = int(time.time()) // HOUR * HOUR
    blob = load(60000, {READ: (600, 600 * 4096)}, {latency: {word(0.001) + i: 10 for i in range(40)}
                                                   for latency in (READ_TOTAL, READ_DEVICE_NONE)})
    with Past(state / "history/ssdpulse.db", disk.name) as past:
        for at in range(now - 90 * DAY, now, HOUR):
            past.hour(at, blob)
        for at in range(now - 2 * DAY, now, MINUTE):
            past.minute(at, blob)
        past.reaches(now - 2 * DAY, now)


@contextmanager
def one_cpu():
    """As in its unit: what is started has one CPU."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield lambda: os.sched_setaffinity(0, before)
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def subject(name, state, disk):
    """(daemon, client as which the scraper asks, client of a bystander, tell)."""
    with ExitStack() as stack:
        tell, make = None, lambda port: web.Client(port, source=SCRAPER)
        if name == "hung history disk":
            slow, tell = stack.enter_context(controlled_disk(state, {}, 256 << 20, "keep=1"))
            (state / "history").mkdir()
            rig.run("mkfs.ext4", "-q", slow.path)
            rig.run("mount", slow.path, state / "history")
            stack.callback(lambda: (tell({}), subprocess.run(["umount", "-l", state / "history"], check=False)))
        if "slow pages" in name:
            with rig.daemon(state, [disk]) as daemon:
                rig.fio(disk, 1, rw="randread", bs="4k", size="1M", number_ios=10)
                daemon.after_ticks(2)
            write_past(state, disk)
        free = stack.enter_context(one_cpu())
        if name == "TLS handshakes":
            authority = web.Authority(state, "authority")
            authority.issue("server", "IP:127.0.0.1")
            web.write(state / "web.yaml", {"tls_server_config": {"cert_file": "server.crt", "key_file": "server.key"}})
            make = lambda port: web.Client(port, ca=authority.certificate, source=SCRAPER)  # noqa: E731
            options = ("--web.config.file", state / "web.yaml", f"--devices.include={disk.name}", "--devices.exclude=none")
            daemon = stack.enter_context(web.daemon(state, options, make))
        else:
            daemon = stack.enter_context(rig.daemon(state, [disk]))
        other = stack.enter_context(by_bystander())
        free()
        yield daemon, make(daemon.port), other, tell


def of_hung_disk(daemon, directory, attacked):
    """Before and after the attack: what else must hold. Yields (holds, words) of each."""
    def of_past():
        return f"/api/v1/why?at={int(time.time()) - 90}"

    def sentence():
        return json.loads(metrics.fetch(daemon.port, of_past(), "application/json")[2])["why"]["sentence"]

    if not attacked:
        yield web.wait_until(lambda: list(directory.glob("ssdpulse.db*")), 30), "there is a history"
        yield web.wait_until(lambda: "does not answer" not in sentence(), 30), "which answers"
    else:
        yield web.wait_until(lambda: "does not answer" not in sentence(), 60), "the past is back with its disk"


def attack(name, state, disk, tell_parent):
    """In a process of its own. Sends "over" once the attack is over, and the row of the table."""
    function, before, after = ATTACKS[name]
    row, found = {"attack": name}, []
    with subject(name, state, disk) as (daemon, client, other, tell):
        pid = daemon.process.pid
        more = [{"disk": disk.name}[one] for one in after]
        with hostile.Attack(function, daemon.port, *before, SECONDS, *more) as attacker:
            hung = tell is not None
            found += list(of_hung_disk(daemon, state / "history", False)) if hung else []
            for _ in range(20):
                client.get()
                client.get("/api/v1/devices") if name != "TLS handshakes" else None
            if "slow pages" in name:
                client.get(f"/api/v1/history/{disk.name}?points=2000")
            time.sleep(LATER / 10 if rig.LONG else 0)
            row["before"] = host.rss(pid)
            if hung:
                rig.run("sync")
                tell({"stall_until": time.time() + 10000})
                Path("/proc/sys/vm/drop_caches").write_text("3")
            memory, scrapes = Memory(pid), Asker(client, "/metrics", EVERY)
            others = [Asker(client, "/api/v1/why", 0.5),
                      Asker(client, f"/api/v1/why?at={int(time.time()) - 90}", 1, keeps=True)] if hung else []
            control = Asker(other, "/", EVERY)
            for one in (memory, scrapes, control, *others):
                one.start()
            attacker.begin()
            time.sleep(SECONDS - 1)
            ready = client.get("/-/ready") if hung else None
            attacker.wait(60)
            scraped, controlled = scrapes.end(), control.end()
            asked = [one.end() for one in others]
            row["said"] = attacker.said()
        row["peak"] = memory.end()
        row["took"], row["control"] = ([took for took, _, _ in answers] for answers in (scraped, controlled))
        row["statuses"] = dict(Counter(str(status) for _, status, _ in scraped))
        if hung:
            tell({})
            live, past = asked
            found.append((ready[0] == 200 and "history: " in ready[2].decode(), f"/-/ready says so: {ready[2].decode()!r}"))
            found.append(({status for _, status, _ in live} == {200}, "the live answer comes as ever"))
            found.append((max(took for took, _, _ in live) < LATE, f"and in time: {max(took for took, _, _ in live):.2f} s"))
            found.append((max(took for took, _, _ in past) < ANSWER_LIMIT,
                          f"each question about the past is answered in time: {max(took for took, _, _ in past):.1f} s"))
            found.append(({status for _, status, _ in past} <= {200, 503}, "with 200 or 503"))
            found.append((any("does not answer" in body for _, _, body in past), "and says that the history does not answer"))
            found += of_hung_disk(daemon, state / "history", True)
        tell_parent.send("over")
        if rig.LONG:
            time.sleep(LATER)
            row["after"] = host.rss(pid)
        found.append((client.get()[0] == 200, "a scrape afterwards"))
    tell_parent.send((row, [(bool(holds), words) for holds, words in found]))


def judge(check, row, found):
    name, took = row["attack"], sorted(row["took"])
    for holds, words in found:
        check.that(holds, f"{name}: {words}")
    soon = sum(one <= SOON for one in took) / len(took)

    def beyond(limit):
        return sum(one > limit for one in took) - sum(one > limit for one in row["control"])

    check.figure(f"TABLE {name}: {len(took)} scrapes, {soon:.2%} within {SOON:.0f} s, p50 {took[len(took) // 2] * 1e3:.0f} ms, "
                 f"slowest {took[-1]:.2f} s (of a bystander {max(row['control']):.2f} s); RSS {row['before'] / 2**20:.1f} MiB before, {row['peak'] / 2**20:.1f} at most"
                 + (f", {row['after'] / 2**20:.1f} after {LATER} s" if "after" in row else ""))
    check.figure(f"      {row['said']}")
    check.equal(set(row["statuses"]), {"200"}, f"{name}: scrapes")
    if rig.LONG:
        check.that(beyond(SOON) <= (1 - IN_TIME) * len(took), f"{name}: {IN_TIME:.1%} within {SOON:.0f} s")
        check.that(row["after"] <= row["before"] * (1 + KEPT), f"{name}: its memory is given back")
    check.that(beyond(LATE) <= 0, f"{name}: no scrape took {LATE:.0f} s")
    check.that(row["peak"] < row["before"] + MORE_MEMORY, f"{name}: at most {MORE_MEMORY >> 20} MiB more memory")


def test(check, state):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    chosen = sys.argv[1:] or (list(ATTACKS) if rig.LONG else IN_CI)
    with rig.ram_disks(state, size="16M") as [disk]:
        context, running = multiprocessing.get_context("fork"), []
        try:
            for number, name in enumerate(chosen):
                own = state / f"{number}"
                own.mkdir()
                ours, theirs = context.Pipe()
                process = context.Process(target=attack, args=(name, own, disk, theirs))
                process.start()
                theirs.close()
                running.append((process, ours))
                if rig.LONG:
                    ours.recv()  # "over": one attack at a time, while others wait for five minutes
            for _, ours in running:
                answer = ours.recv()
                judge(check, *(answer if answer != "over" else ours.recv()))
        finally:
            for process, _ in running:
                process.join(30)
                process.terminate()


web.in_own_network()
rig.main(test)
