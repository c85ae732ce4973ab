#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
"""The history's disk hangs, and several people ask about the past. Every scrape must be answered as ever, each question
within its time, and /-/ready must say what is wrong; when the disk is back, so is the past.
"""
import json
import statistics
import subprocess
import threading
import time
from pathlib import Path

import web
from controlled_disk import controlled_disk
from lib import metrics, rig

HUNG_SECONDS = 60 if rig.LONG else 25
SCRAPE_LIMIT = 3.0  # seconds
ANSWER_LIMIT = 10.0  # the server cuts what takes longer
QUESTIONS = 6


class Asker(threading.Thread):
    """Asks again and again: (seconds that it took, status, body) of each."""

    def __init__(self, port, path, pause):
        super().__init__(daemon=True)
        self.port, self.path, self.pause, self.answers, self._over = port, path, pause, [], threading.Event()

    def run(self):
        while not self._over.is_set():
            begin = time.monotonic()
            try:
                status, _, body = web.Client(self.port).get(self.path, timeout=2 * ANSWER_LIMIT)
            except OSError as error:
                status, body = type(error).__name__, b""
            self.answers.append((time.monotonic() - begin, status, body.decode("utf-8", "replace")))
            self._over.wait(self.pause)

    def end(self):
        self._over.set()
        self.join()
        return self.answers


def asked(port, path):
    return json.loads(metrics.fetch(port, path, "application/json")[2])


def test(check, state):
    with controlled_disk(state, {}, 256 << 20, "keep=1") as (disk, tell), rig.ram_disks(state, 1, "64M") as (measured,):
        directory = state / "history"
        directory.mkdir()
        rig.run("mkfs.ext4", "-q", disk.path)
        rig.run("mount", disk.path, directory)
        try:
            with rig.daemon(state, [measured]) as daemon:
                def of_past():
                    return f"/api/v1/why?at={int(time.time()) - 90}"

                check.that(web.wait_until(lambda: list(directory.glob("ssdpulse.db*")), 30), "there is a history")
                answer = asked(daemon.port, of_past())["why"]["sentence"]
                check.that("does not answer" not in answer, f"before: {answer}")
                rig.run("sync")
                tell({"stall_until": time.time() + 1000})
                Path("/proc/sys/vm/drop_caches").write_text("3")
                questions = [Asker(daemon.port, of_past(), 0.5) for _ in range(QUESTIONS)]
                scrapes = Asker(daemon.port, "/metrics", 0.5)
                live = Asker(daemon.port, "/api/v1/why", 0.5)
                for one in (*questions, scrapes, live):
                    one.start()
                time.sleep(HUNG_SECONDS)
                ready = metrics.fetch(daemon.port, "/-/ready", "*/*")
                tell({})
                answers = [answer for one in questions for answer in one.end()]
                for name, one in (("scrapes", scrapes.end()), ("the live answer", live.end())):
                    times = [seconds for seconds, _, _ in one]
                    check.figure(f"{name}: {len(one)}, p50 {statistics.median(times) * 1e3:.0f} ms, max {max(times) * 1e3:.0f} ms")
                    check.equal({status for _, status, _ in one}, {200}, f"{name} meanwhile")
                    check.that(max(times) < SCRAPE_LIMIT, f"{name}: none took {SCRAPE_LIMIT} s")
                late = max(seconds for seconds, _, _ in answers)
                check.figure(f"questions about the past: {len(answers)}, the slowest took {late:.1f} s")
                check.that(late < ANSWER_LIMIT, "each question about the past was answered in time")
                check.that({status for _, status, _ in answers} <= {200, 503}, "with 200 or 503")
                check.that(any("does not answer" in body for _, _, body in answers), "and says that the history does not answer")
                check.that(ready[0] == 200 and "history: " in ready[2].decode(), f"/-/ready: {ready[2].decode()!r}")
                check.that(web.wait_until(lambda: "does not answer" not in asked(daemon.port, of_past())["why"]["sentence"], 60),
                           "the past is back with its disk")
        finally:
            tell({})
            subprocess.run(["umount", "-l", directory], check=False)


rig.main(test)
