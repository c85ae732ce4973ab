#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# timeout-long: 1800
"""Is the history intact after SIGKILL at any moment, and does it survive a full and a read-only disk?

ssdpulse_history_writer reports which minutes are on the disk; what is there is read with another SQLite reader, from a
copy of what the killed process left.
"""
import itertools
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import threading
import time

from lib import history_pages, rig

WRITER = rig.BUILD / "ssdpulse_history_writer"
KILLS = 200 if rig.LONG else 20
FIRST = 29_000_000


class Writer:
    def __init__(self, directory):
        self.process = subprocess.Popen([WRITER, directory], stdout=subprocess.PIPE, text=True)
        self.lines = []
        self.reader = threading.Thread(target=lambda: self.lines.extend(iter(self.process.stdout.readline, "")))
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()

    def last(self, pattern):
        """The groups of the newest line that matches."""
        return next((match.groups() for line in reversed(list(self.lines)) if (match := re.match(pattern, line))), None)

    def committed(self):
        found = self.last(r"committed (\d+)\n")
        return int(found[0]) if found else 0

    def wait(self, true, seconds=20):
        deadline = time.monotonic() + seconds
        while not true() and time.monotonic() < deadline:
            time.sleep(0.005)
        return true()


def numbers(blob):
    """Variable-length numbers, seven bits per byte."""
    value = shift = 0
    for byte in blob:
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            yield value
            value = shift = 0


def load_errors(database, newest):
    """Each minute's load is there and contains its number; each hour's is the sum of its minutes."""
    if not database.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'device_minute'").fetchone()[0]:
        return []
    def loads(table):
        # layout, milliseconds, mask of operations, reads
        return {divmod(at, 2**32): tuple(itertools.islice(numbers(load), 4))
                for at, load in database.execute(f"SELECT at, load FROM {table}")}
    minutes, hours = loads("device_minute"), loads("device_hour")
    begin = min((minute for _, minute in minutes), default=0)
    expected = {(device, minute): (1, 60_000, 1, minute - FIRST + 1)
                for device in (1, 2) for minute in range(max(begin, FIRST), newest + 1)} if newest else {}
    wrong = [] if minutes == expected else [f"minutes: {sorted(set(minutes.items()) ^ set(expected.items()))[:3]}"]
    for (device, hour), (_, measured, _, reads) in hours.items():
        inside = range(max(hour, FIRST), hour + 60)
        if (measured, reads) != (60_000 * len(inside), sum(minute - FIRST + 1 for minute in inside)):
            wrong.append(f"hour {hour} of device {device}: {measured} {reads}")
    return wrong


def checksum_errors(file):
    """Each page that is used matches its checksum, also where another SQLite has rolled back."""
    content = file.read_bytes()
    wrong = set(history_pages.mismatched(content)) - history_pages.unused(content)
    return [f"pages {sorted(wrong)} do not match their checksums"] if wrong else []


def content_errors(directory):
    """What another reader finds: the newest minute, and what is wrong."""
    database = sqlite3.connect(directory / "ssdpulse.db")
    wrong = [row[0] for row in database.execute("PRAGMA integrity_check") if row[0] != "ok"]
    if not database.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'drive_minute'").fetchone()[0]:
        return 0, wrong  # killed before it was begun
    rows = database.execute("""SELECT minute, serial, host_count, media_count, discard_bytes, temperature_celsius
                               FROM drive_minute JOIN drive ON id = drive ORDER BY minute, serial""").fetchall()
    for index, (minute, serial, host, media, discards, temperature) in enumerate(rows):
        expected, number = FIRST + index // 3, index % 3
        if (minute, serial, discards, temperature) != (expected, f"serial {number}", expected, number) or \
                int.from_bytes(host, "big") != expected << 64 | expected or \
                int.from_bytes(media, "big") != expected << 96 | number:
            wrong.append(f"row {index}: {rows[index]}")
            break
    if len(rows) % 3:
        wrong.append(f"{len(rows)} rows of three drives: a minute in part")
    wrong += load_errors(database, rows[-1][0] if rows else 0)
    state = database.execute("SELECT state FROM drive WHERE serial = 'serial 0'").fetchone()
    newest = rows[-1][0] if rows else 0
    if rows and int(state[0]) != newest:
        wrong.append(f"state {state[0]} beside the minute {newest}")
    database.close()
    return newest, wrong + checksum_errors(directory / "ssdpulse.db")


def is_hot(journal):
    """A journal whose header has not been cleared yet: the process was killed within a transaction."""
    return journal.exists() and journal.read_bytes()[:8] == bytes.fromhex("d9d505f920a163d7")


def kills(check, state, random_source):
    directory = state / "killed"
    acknowledged = hot = unreported = longest = 0
    number = 0
    # About one kill in five falls within a transaction.
    while number < KILLS or not hot and number < 10 * KILLS:
        number += 1
        with Writer(directory) as writer:
            if random_source.random() < 0.25:
                time.sleep(random_source.uniform(0, 0.03))  # perhaps before there is anything
            else:
                writer.wait(lambda: writer.last("(found)"))
                time.sleep(random_source.uniform(0, 0.5))
            writer.kill()
            found = writer.last(r"found (\d+) (\d+)\n")
            if found and not acknowledged <= int(found[0]) <= acknowledged + 1 or found and found[0] != found[1]:
                check.that(False, f"acknowledged {acknowledged}, found again {found}")
            before, acknowledged = acknowledged, max(acknowledged, writer.committed())
            longest = max(longest, acknowledged - before)
        copy = state / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        if not directory.exists():
            continue  # killed before anything
        shutil.copytree(directory, copy)
        hot += is_hot(copy / "ssdpulse.db-journal")
        if not (copy / "ssdpulse.db").exists():
            continue
        newest, wrong = content_errors(copy)
        if wrong or not acknowledged <= newest <= acknowledged + 1:
            check.that(False, f"acknowledged {acknowledged}, on disk {newest} {wrong}")
        unreported += newest > acknowledged
        acknowledged = max(acknowledged, newest)
    check.that(not list(directory.glob("*.set-aside-*")), "no file was ever taken for damaged")
    check.that(acknowledged - FIRST > number, f"{number} kills, {acknowledged - FIRST + 1} minutes, none lost")
    check.that(hot > 0, f"{hot} kills within a transaction, {unreported} between the commit and its report")


def plant(directory, version):
    """A file as a build before 1.0.0 left it; returns its bytes."""
    directory.mkdir()
    database = sqlite3.connect(directory / "ssdpulse.db")
    database.executescript(f"""
        PRAGMA application_id = {0x53534450}; PRAGMA user_version = {version};
        CREATE TABLE drive_minute (minute INTEGER NOT NULL, read_p99_seconds REAL);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
        INSERT INTO drive_minute SELECT {FIRST} - i, 0.001 FROM n""")
    database.close()
    return (directory / "ssdpulse.db").read_bytes()


def earlier_builds(check, state, random_source):
    """What a build before 1.0.0 kept is there under one of two names at any moment, and a new file is written."""
    directory = state / "earlier"
    for version in 1, 5:
        for kill in range(50 if rig.LONG else 4):
            before = plant(directory, version)
            with Writer(directory) as writer:
                if kill:
                    time.sleep(random_source.uniform(0, 0.03))
                    writer.kill()
                    names = [path for path in directory.glob("ssdpulse.db*") if path.read_bytes() == before]
                    check.that(len(names) == 1, f"killed: the file of version {version} is {names[0].name if names else 'gone'}")
            with Writer(directory) as writer:
                check.that(writer.wait(lambda: writer.committed() > FIRST), f"version {version}: a new file is written")
            aside = list(directory.glob("ssdpulse.db.set-aside-*Z"))
            check.that([path.read_bytes() == before for path in aside] == [True], f"set aside, unchanged: {aside}")
            newest, wrong = content_errors(directory)
            check.that(newest >= FIRST and not wrong, f"the new file: {newest} {wrong}")
            shutil.rmtree(directory)


def disk_troubles(check, state):
    with rig.tmpfs(state, "4M") as disk, Writer(disk / "history") as writer:
        check.that(writer.wait(lambda: writer.committed() > 0), "writes")
        ballast = disk / "ballast"
        with open(ballast, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError as error:
                print(f"     {error}")
        check.that(writer.wait(lambda: writer.last("down (.*full.*)")), f"a full disk: {writer.last('down (.*)')}")
        ballast.unlink()
        stopped = writer.committed()
        check.that(writer.wait(lambda: writer.committed() > stopped), "goes on when there is room again")
        writer.kill()
        newest, wrong = content_errors(disk / "history")
        check.that(newest >= writer.committed() and not wrong, f"nothing is lost: {newest} {wrong}")


def read_only(check, state):
    with rig.tmpfs(state, "4M") as disk:
        rig.run("mount", "-o", "remount,ro", disk)
        with Writer(disk / "history") as writer:
            time.sleep(0.3)
            check.that(writer.process.poll() is None and not writer.committed(), "a read-only disk: waits")
            rig.run("mount", "-o", "remount,rw", disk)
            check.that(writer.wait(lambda: writer.committed() > 0), "and begins when it can be written to")


def test(check, state):
    seed = rig.fresh_seed()
    kills(check, state, random.Random(seed))
    earlier_builds(check, state, random.Random(seed))
    disk_troubles(check, state)
    read_only(check, state)


rig.main(test)
