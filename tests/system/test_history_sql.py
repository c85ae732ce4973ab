#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Do the views and all queries in ssdpulse-history(5) return the right answers on a file that the history itself wrote?

SQL inserts the events, so that each answer is known in advance; the drives' and devices' data is the writer's.
"""
import os
import re
import sqlite3
import subprocess
from pathlib import Path

from lib import rig

DEPLOY = Path(os.environ["SSDPULSE_SOURCE"]) / "deploy"
WRITER = rig.BUILD / "ssdpulse_history_writer"
FIRST = 29_000_000  # the writer's first minute: 2025-02-19 21:20 UTC, a Wednesday
MINUTES = 30
BEGIN = FIRST * 60_000
MINUTE = 60_000


def queries():
    """(question, SQL) from the manual page, as a reader sees them."""
    page = (DEPLOY / "man/ssdpulse-history.5").read_text().split(".Sh EXAMPLES")[1]
    return re.findall(r"^\.Ss (.*?)$.*?^\.Bd .*?$\n(.*?)^\.Ed$", page, re.M | re.S)


def fill(file):
    database = sqlite3.connect(file)
    for table in "latency_spike", "discard_burst", "setting", "mark":
        database.execute(f"DELETE FROM {table}")  # the writer's own
    spikes = [(BEGIN + 5 * MINUTE, "sda", "read", 0, 2.5, 0.040, 0.004, 1.5, 30, "discard", "e", ""),
              (BEGIN + 90 * MINUTE, "sda", "read", 0, 1.5, 0.020, 0.004, 0.5, 10, "discard", "e", ""),
              (BEGIN + 91 * MINUTE, "sdb", "write", 0, 8.0, 0.900, 0.009, 0.25, 99, "unknown", "", "media writes")]
    database.executemany(f"INSERT INTO latency_spike VALUES ({', '.join('?' * 12)})", spikes)
    bursts = [(BEGIN + 4 * MINUTE, "sda", "fstrim", 0, 120.0, 7_000_000), (BEGIN + 90 * MINUTE, "sdb", "fstrim", 0, 600.0, 5)]
    database.executemany("INSERT INTO discard_burst VALUES (?, ?, ?, ?, ?, ?)", bursts)
    settings = [(BEGIN, "wwid of sda 0", "queue.scheduler", "none"),
                (BEGIN + 9 * MINUTE, "wwid of sda 0", "queue.scheduler", "kyber"), (BEGIN, "", "vm.dirty_ratio", "20")]
    database.executemany("INSERT INTO setting (at_ms, device, name, value, measured) VALUES (?, ?, ?, ?, 0)", settings)
    database.execute("INSERT INTO mark (at_ms, text, measured) VALUES (?, ?, 0)", (BEGIN + 60 * MINUTE, "deployed 4.2"))
    database.execute("UPDATE drive_minute SET percentage_used = 0.03, available_spare = 1 - minute % 7 * 0.01")
    database.commit()
    database.close()


def wanted():
    since = "2025-02-19 21:20:00"
    last = "2025-02-19 21:49:00"
    amplification = 2.0**96 / (2.0**64 * 512_000)
    return [
        [("sda", "model", "serial", since, last), ("sdb", "model", "serial", since, last)],
        [("2025-02-19 22:51:00", "sdb", "write", "unknown", 0.9, 100.0),
         ("2025-02-19 21:25:00", "sda", "read", "discard", 0.04, 10.0),
         ("2025-02-19 22:50:00", "sda", "read", "discard", 0.02, 5.0)],
        [("sdb", "unknown", 1, 8.0), ("sda", "discard", 2, 4.0)],
        [("3", "22", 2, 9.5), ("3", "21", 1, 2.5)],
        [("sda", "fstrim", 1, 7_000_000, 120.0), ("sdb", "fstrim", 1, 5, 600.0)],
        [("2025-02-19 21:25:00", "sda", "read", "fstrim", 0.04),
         ("2025-02-19 22:51:00", "sdb", "write", "fstrim", 0.9)],
        [("2025-02-19 21:29:00", "sda", "queue.scheduler", "none", "kyber")],
        [("2025-02-19 22:20:00", "deployed 4.2", 1, 2)],
        [(f"serial {number}", "model", 0.03, 0.94, float(number), last) for number in range(3)],
        [(f"serial {number}", "fdp", amplification) for number in range(3)],
    ]


def close(have, want):
    return have == want or (isinstance(have, float) and isinstance(want, float) and abs(have - want) <= 1e-6 * want)


def test(check, state):
    subprocess.run([WRITER, state, str(MINUTES)], check=True, capture_output=True)
    file = state / "ssdpulse.db"
    fill(file)
    database = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    check.equal(database.execute("PRAGMA user_version").fetchone(), (1,), "the version that the page describes")
    database.executescript((DEPLOY / "history/views.sql").read_text())
    asked = queries()
    check.equal(len(asked), 10, "queries on the page")
    for (question, sql), answer in zip(asked, wanted()):
        rows = database.execute(sql).fetchall()
        same = len(rows) == len(answer) and all(len(row) == len(want) and all(map(close, row, want))
                                                for row, want in zip(rows, answer))
        check.that(same, f"{question} {'' if same else f'{rows}, wanted {answer}'}")


rig.main(test)
