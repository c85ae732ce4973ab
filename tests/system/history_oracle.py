# SPDX-License-Identifier: Apache-2.0
"""What must be in a history, after all that ssdpulse_history_writer was told about its steps and marks?

Knows what history_writer.cpp derives from a step's number, and reads the file with Python's own SQLite, from a copy: a
hot journal is undone there, and the file that the history opens again is never written to. The states of flash models are
files of their own beside it: each must be whole, and as new as was reported.
"""
import json
import math
import shutil
import sqlite3
import struct
from collections import Counter

import past
from lib import history_pages

FIRST, GENERATION = 29_000_000, 100
MOST_WAITING = 50  # steps for which the writer's history has room
TABLES = ("device", "device_hour", "device_minute", "discard_burst", "drive", "drive_minute", "host_wait", "latency_spike", "mark",
          "setting", "spike_seconds", "tenant", "tenant_hour", "tenant_minute")
REASONS = ("age", "size", "hour", "repeated", "unreadable", "clock")  # why rows have gone, as in the file


def generation(step):
    return (step - FIRST) // GENERATION


def drive_minutes(step, ms):
    return [(ms // 60_000, f"serial {i}", "model", f"firmware {generation(step)}", step * 60_000_000_000, "fdp",
             (step << 64 | step).to_bytes(16, "big"), 512_000, 1, None, (step << 96 | i).to_bytes(16, "big"), 1, 0, None, None,
             float(i)) for i in range(3)]


# Table: its rows as (step, measured, ...), and what follows these two in each row of a step.
ROWS = {
    "drive_minute": (
        "discard_bytes, measured, minute, serial, model, firmware, boottime_ns, source, host_count, host_unit_bytes, host_rounding, "
        "host_count_before, media_count, media_unit_bytes, media_rounding, percentage_used, available_spare, temperature_celsius "
        "FROM drive_minute JOIN drive ON id = drive", drive_minutes),
    "latency_spike": (
        "ios, measured, begin_ms, device, operation, duration_seconds, peak_seconds, baseline_seconds, excess_seconds, cause, "
        "evidence, missing FROM latency_spike",
        lambda step, ms: [(ms, "sda", "read", 1.5, float(step - FIRST), 0.5, (step - FIRST) / 2, "unknown", "", f"step {step}")]),
    "discard_burst": (
        "bytes, measured, begin_ms, device, trigger, duration_seconds FROM discard_burst",
        lambda step, ms: [(ms, "sdb", "fstrim", float(step - FIRST))]),
    "host_wait": (
        "CAST(substr(subject, 6) AS INTEGER), measured, begin_ms, cause, subject, device, tenant, duration_seconds, evidence, file "
        "FROM host_wait",
        lambda step, ms: [(ms, "frozen", f"step {step}", "sda", f"tenant {generation(step)}", float(step - FIRST), f"step={step}",
                           "file")]),
    "spike_seconds": (
        f"CAST(excess_seconds AS INTEGER) + {FIRST}, measured, begin_ms, end_ms, device, seconds FROM spike_seconds",
        lambda step, ms: [(ms, ms + 60_000, "sda", bytes([ord("a") + step % 26]) * (step % 50 * 64))]),
    "setting": (
        "CAST(value AS INTEGER), measured, at_ms, device, name, value FROM setting",
        lambda step, ms: [(ms, "", "step", str(step))]),
}


def load(step):
    ios = step - FIRST + 1
    return Counter({"ms": 60_000, ("operation", 0, 0): ios, ("operation", 0, 1): ios * 4096, ("sum", 0): ios * 7,
                    ("word", 0, 100): ios})


def tenants(step):
    ios, own = step - FIRST + 1, f"tenant {generation(step)}"
    return Counter({(own, 0, 0): ios, (own, 0, 1): ios * 4096, (own, 0, 2): ios * 5, ("other", 1, 0): 1, ("other", 1, 1): 512,
                    ("other", 1, 2): 3})


def flash_saved_at(content):
    """When this state of a flash model was saved, in microseconds; in words what is wrong with it. See daemon/flash/binary_state.h."""
    body, end = content[:-8], content[-8:]
    result = 0xCBF29CE484222325
    for word, in struct.iter_unpack("<Q", body + bytes(-len(body) % 8)):
        result = (result ^ word) * 0x100000001B3 & 2**64 - 1
        result ^= result >> 29
    if result.to_bytes(8, "little") != end or not body.startswith(b"drive-03"):
        return f"damaged, {len(content)} bytes"
    place = 8

    def take(form):
        nonlocal place
        place += struct.calcsize("<" + form)
        return struct.unpack_from("<" + form, body, place - struct.calcsize("<" + form))

    def text():
        return take(f"{take('Q')[0]}s")[0]

    key, serial, (size, page, _, _, what_ifs) = text(), text(), take("QQIIQ")
    take(f"{12 * what_ifs}s")
    _, kept_at, _, seen, _ = take("9d5d2ddQd")[-5:]
    model = text()
    whole = place == len(body) and model.startswith(b"flash-01") and serial == key + b"\n " + b"%d" % size
    return round(kept_at * 1e6) if whole and (key, page, seen) == (b"serial 0", 4096, 0) else f"inconsistent: {key} {serial}"


class Oracle:
    """Of one directory, whatever process writes there. `keep`: how many of the last steps nothing may delete."""

    def __init__(self, keep=math.inf):
        self.keep, self.set_aside = keep, 0
        self.sent = {}  # step: the wall clock, of those that are or may be on the disk
        self.there = set()  # steps that are, or were until they were old
        self.in_part, self.dropping = [], math.inf  # (first, last, how many of these are there); the first that may be lost
        self.marks, self.asked, self.made = {}, {}, 0  # step: when; the same, without an answer yet; rows
        self.acknowledged = self.kept = self.lost = 0
        self.session = Counter()  # lines of the process that runs
        self.given, self.ledger = {}, {}
        self.account, self.verified = {}, True  # of the file when it was last verified; no process has run since
        self.crowded = self.wrong_clock = False  # more waited than there is room for; a clock was ahead
        self.state, self.problems = "", []
        self.saves, self.newest_state = {}, 0  # of the flash model: when begun: when done, inf: not known; the newest reported as saved
        self.unfinished = self.saved = self.unsaved = 0  # states under another name; reports

    def newest(self):
        return max(self.there, default=FIRST - 1)

    def at_copy(self, later):
        """For a copy of the file that was begun when this was copied from an oracle, and done when that is as `later`."""
        self.sent.update(later.sent)
        self.asked.update({step: at for step, at in later.marks.items() if step not in self.marks} | later.asked)
        self.given, self.acknowledged, self.kept, self.lost = {}, 0, 0, 0
        self.saves, self.newest_state, self.unfinished, self.saved, self.unsaved = {}, 0, 0, 0, 0

    def removed(self):
        """How many rows of each table the file has counted as gone."""
        return {table: sum(rows[1:]) for table, rows in self.account.items()}

    def waiting(self):
        return [step for step in sorted(self.sent) if step not in self.there]

    def take(self, line):
        """A line of the writer."""
        what, *rest = line.split()
        self.session[what] += 1
        getattr(self, f"_{what}", lambda *_: None)(*rest)

    def _found(self, in_rows, in_state):
        step = max(int(in_rows), int(in_state), FIRST - 1)
        self._resolve(set(range(FIRST, step + 1)))
        if in_rows != in_state and not self.crowded and not self.wrong_clock or step != self.newest():
            self.problems.append(f"found {in_rows} {in_state} again, not {self.newest()}")
        if not self.verified:
            self.account = None
        self.verified = False
        self.session.clear()
        self.given, self.ledger, self.crowded = {}, {}, False

    def _sent(self, step, ms):
        if int(step) in self.sent:
            self.problems.append(f"step {step} twice")
        self.sent[int(step)] = int(ms)
        self.crowded = self.crowded or len(self.sent) - len(self.there) > MOST_WAITING

    def _committed(self, step):
        self.there.add(int(step))
        self.acknowledged += 1

    def _dropping(self, first):
        self.dropping = int(first)

    def _dropped(self, first, last, written):
        self.dropping = math.inf
        first, last, written = int(first), int(last), int(written)
        self.lost += last - first + 1 - written
        if written:
            self.in_part.append((first, last, written))
        else:
            for step in range(first, last + 1):
                del self.sent[step]

    def _asked(self, step, ms):
        self.asked[int(step)] = int(ms)

    def _kept(self, step, ms):
        step, ms = int(step), int(ms)
        self.made += self.marks.get(step) != ms
        if step in self.marks and self.marks[step] != ms and self.keep == math.inf:
            self.problems.append(f"mark {step} was kept at {self.marks[step]}, now {ms}")
        self.marks[step] = ms
        self.asked.pop(step)
        self.kept += 1

    def _refused(self, step, *_):
        self.asked.pop(int(step))
        self.lost += 1

    def _resumed(self, resumed, rejected, at):
        self.unfinished = 0  # such a file goes at the start
        if int(rejected) or resumed == "0" and 0 < self.saves.get(self.newest_state, 0) < int(at):
            self.problems.append(f"flash model: resumed {resumed}, rejected {rejected}, of {self.saves}")

    def _saving(self, begin):
        self.saves[int(begin)] = math.inf

    def _saved(self, begin, end):
        self.saves[int(begin)] = int(end)
        self.newest_state = max(self.newest_state, int(begin))
        self.saved += 1

    def _unsaved(self, begin, end):
        self.saves[int(begin)] = int(end)
        self.unsaved += 1

    def _up(self):
        self.state = "up"

    def _down(self, *words):
        self.state = " ".join(words)

    def _given(self, table, received, *others):
        others = list(map(int, others))
        self.given[table] = int(received), others
        if int(received) != sum(others):
            self.problems.append(f"{table}: received {received}, but {others} of it are known")

    def _rows(self, table, *numbers):
        self.ledger[table] = list(map(int, numbers))

    def _resolve(self, present):
        """Of the steps without an answer, the first ones may have been written."""
        for first, last, written in self.in_part:
            if len(present & set(range(first, last + 1))) != written and self.keep == math.inf:
                self.problems.append(f"{written} of the steps {first} to {last} were written, others are there")
        in_part = {step for first, last, _ in self.in_part for step in range(first, last + 1)}
        waiting = self.waiting()
        written = [step in present for step in waiting if step not in in_part and step < self.dropping]
        if self.keep < math.inf:  # one that has gone already is not among them
            present = present | {step for step in waiting if step < max(present, default=0)}
        elif written != sorted(written, reverse=True):
            self.problems.append(f"of {waiting}, later ones were written before others")
        for step in waiting:
            if step in present:
                self.there.add(step)
            else:
                del self.sent[step]
        self.in_part, self.dropping = [], math.inf

    def verify(self, directory, copy):
        """What is wrong with what is there when no process runs: in words, none if nothing is."""
        shutil.rmtree(copy, ignore_errors=True)
        if directory.exists():
            shutil.copytree(directory, copy)
        if (copy / "ssdpulse.db").exists():
            database = sqlite3.connect(copy / "ssdpulse.db")
            self.problems += [row[0] for row in database.execute("PRAGMA integrity_check") if row[0] != "ok"]
            if database.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'account'").fetchone()[0]:
                self._compare(database)
            database.close()
            # Each page that is used matches its checksum, also where another SQLite has rolled back.
            content = (copy / "ssdpulse.db").read_bytes()
            wrong = set(history_pages.mismatched(content)) - history_pages.unused(content)
            self.problems += [f"pages {sorted(wrong)} do not match their checksums"] if wrong else []
        elif self.there:
            self.problems.append("there is no file")
        aside = [path.name for path in directory.glob("ssdpulse.db.set-aside-*Z")]
        if len(aside) != self.set_aside:
            self.problems.append(f"set aside: {aside}")
        found, self.problems = self.problems + self.verify_flash(directory), []
        return found

    def verify_flash(self, directory):
        """The last state that was reported as saved is there, or one that was tried since then; whole, and alone."""
        may = {begin for begin, end in self.saves.items() if end >= self.newest_state}
        cut_short = list(self.saves.values()).count(math.inf)
        found, unfinished = [], []
        for path in directory.glob("flash-*"):
            (unfinished if path.name.endswith(".new") else found).append(path)
        found = [flash_saved_at(path.read_bytes()) for path in found]
        problems = []
        if set(found) - may or len(found) > 1 or self.newest_state and not found:
            problems.append(f"flash state saved at {found}, not one of {sorted(may)}")
        if len(unfinished) > self.unfinished + cut_short:
            problems.append(f"left over: {[path.name for path in unfinished]}")
        self.saves, self.unfinished = {begin: begin for begin in found if begin in may}, len(unfinished)
        self.newest_state = max(self.saves, default=0)
        return problems

    def _compare(self, database):
        found = {table: self._steps_of(database, columns) for table, (columns, _) in ROWS.items()}
        present = set().union(*found.values())
        self._wrong(present - set(self.sent), "never sent, but there")
        self._resolve(present)
        young = {step for step in self.there if step > self.newest() - self.keep}
        self._compare_rows(found, young)
        self._compare_names(database)
        self._compare_devices(database, young)
        self._compare_marks(database)
        self._compare_account(database)
        states = [int(row[0]) for row in database.execute("SELECT state FROM drive WHERE state NOT NULL")]
        if self.there and (len(states) != 1 or states[0] != self.newest() and not self.crowded):
            self.problems.append(f"state {states} beside step {self.newest()}")

    def _wrong(self, what, words):
        if what:
            self.problems.append(f"{words}: {sorted(what)[:3]}{' ...' if len(what) > 3 else ''}")

    @staticmethod
    def _steps_of(database, columns):
        found = {}
        for step, *row in database.execute(f"SELECT {columns}"):
            found.setdefault(step, []).append(tuple(row))
        return found

    def _compare_rows(self, found, young):
        measured = {}
        replaced = self._replaced()
        for table, steps in found.items():
            _, rows_of = ROWS[table]
            for step in steps.keys() | young:
                have = sorted(row[1:] for row in steps.get(step, []))
                known = step in self.sent and not (table == "drive_minute" and step in replaced)
                want = rows_of(step, self.sent[step]) if known else []
                if have != want and (step in young or not set(have) <= set(want)):
                    self.problems.append(f"{table} of step {step}: {have}, wanted {want}")
                    break
            for step, rows in steps.items():
                self._wrong({row[0] for row in rows} - {measured.setdefault(step, rows[0][0])}, f"{table}: step {step} measured")
        ages = [measured[step] for step in sorted(measured)]
        if ages != sorted(set(ages)):
            self.problems.append(f"measured: {ages}")

    def _replaced(self):
        """Steps whose minute of a drive came again at once, as the clock was set back that little."""
        steps = sorted(self.there)
        minutes = [(self.sent[step] // 60_000, generation(step)) for step in steps]
        return {step for i, step in enumerate(steps)
                if any(minutes[j] == minutes[i] and steps[j] - step <= 2 for j in range(i + 1, min(i + 3, len(steps))))}

    def _compare_names(self, database):
        """That there are those of others is seen where rows refer to them."""
        generations = set(map(generation, self.there))
        for sql, names_of in (("nqn, serial, model, firmware FROM drive",
                               lambda number: [("", f"serial {i}", "model", f"firmware {number}") for i in range(3)]),
                              ("identity, name, model, serial FROM device",
                               lambda number: [(f"wwid of {name} {number}", name, "model", "serial") for name in ("sda", "sdb")]),
                              ("name FROM tenant", lambda number: [(f"tenant {number}",)])):
            self._wrong(set(database.execute(f"SELECT {sql}")) - {name for number in generations for name in names_of(number)},
                        f"{sql}: of no step")

    def _compare_devices(self, database, young):
        """The minutes of all lanes of a device, and the hours of each."""
        lanes = {}
        for lane, identity, *rest in database.execute("SELECT id, identity, minutes_from, hours_made_to FROM device"):
            name, number = identity.removeprefix("wwid of ").split(" ")
            lanes[lane] = (name, int(number)), *rest
        names = {0: "other", **dict(database.execute("SELECT id, name FROM tenant"))}
        steps_of = {}
        for step in self.there:
            steps_of.setdefault((generation(step), self.sent[step] // 60_000), []).append(step)
        for of, column, counts, wanted in (
                ("device", "load", past.counts_of_load, load),
                ("tenant", "tenants", lambda blob: Counter({(names.get(key[0]), *key[1:]): value for key, value
                                                            in past.counts_of_tenants(blob).items()}), tenants)):
            def read(length, of=of, column=column, counts=counts):
                return {divmod(at, 2**32): counts(blob)
                        for at, blob in database.execute(f"SELECT at, {column} FROM {of}_{length}")}

            minutes, hours = read("minute"), read("hour")
            sums = {}
            for (lane, minute), one in minutes.items():
                (name, number), *_ = lanes[lane]
                sums.setdefault((name, number, minute), Counter()).update(one)
            for (number, minute), steps in steps_of.items():
                want = total(map(wanted, steps))
                for name in ("sda", "sdb"):
                    have = sums.pop((name, number, minute), None)
                    if have != want and (have or young.intersection(steps)):
                        self.problems.append(f"{of}_minute of {name}, steps {steps}: {have}, wanted {want}")
            self._wrong(sums, f"{of}_minute of no step")
            self._compare_hours(of, lanes, minutes, hours, {key: total(map(wanted, steps)) for key, steps in steps_of.items()})

    def _compare_hours(self, of, lanes, minutes, hours, wanted):
        devices = Counter(device for device, *_ in lanes.values())
        by_hour = {}
        for (lane, minute), one in minutes.items():
            by_hour.setdefault((lane, minute // 60 * 60), []).append(one)
        missing = {(lane, hour) for lane, hour in by_hour if lanes[lane][1] <= hour < lanes[lane][2]} - set(hours)
        self._wrong(missing if self.keep == math.inf else (), f"{of}_hour missing")
        for (lane, hour), have in hours.items():
            device, minutes_from, made_to = lanes[lane]
            if hour >= made_to:
                self.problems.append(f"{of}_hour {hour} before its time")
            if minutes_from <= hour:
                want = total(by_hour.get((lane, hour), ()))
            elif devices[device] == 1:
                want = total(wanted[device[1], minute] for minute in range(hour, hour + 60) if (device[1], minute) in wanted)
            else:
                continue
            if have != want:
                self.problems.append(f"{of}_hour {hour} of {device}: {have}, wanted {want}")

    def _compare_marks(self, database):
        rows = {int(identity.removeprefix("mark ")): (at, text)
                for at, text, identity in database.execute("SELECT at_ms, text, id FROM mark")}
        for step, (at, text) in rows.items():
            new = step not in self.marks or self.keep < math.inf and self.marks[step] != at
            if new and 0 <= at - self.asked.get(step, math.inf) < 1000:
                self.marks[step] = at  # killed before it could say so
                self.made += 1
            if self.marks.get(step) != at or text != f"step {step}":
                self.problems.append(f"mark {step}: {(at, text)}, wanted {self.marks.get(step, 'none')}")
        self._wrong({step for step in self.marks if step > self.newest() - self.keep} - set(rows), "marks kept, but not there")
        self.asked.clear()

    def _compare_account(self, database):
        (text, tenant_bytes), = database.execute("SELECT rows, tenant_bytes FROM account").fetchall() or [("{}", 0)]
        account = {table: [0] * (1 + len(REASONS)) for table in TABLES} | json.loads(text)
        for table, (inserted, *removed) in account.items():
            count, = database.execute(f"SELECT count(*) FROM {table}").fetchone()
            if inserted - sum(removed) != count or removed[REASONS.index("unreadable")]:
                self.problems.append(f"{table}: {count} rows, of {inserted} less {removed}")
        made = {"drive_minute": 3 * len(self.there), "mark": self.made} | {table: len(self.there) for table in ROWS
                                                                         if table != "drive_minute"}
        for table, rows in made.items():
            if account[table][0] != rows:
                self.problems.append(f"{table}: {account[table][0]} rows were inserted, {rows} were sent")
        if tuple(sorted(account)) != TABLES:
            self.problems.append(f"an account of {sorted(account)}")
        by_clock = {table: rows[1 + REASONS.index("clock")] for table, rows in account.items() if rows[1 + REASONS.index("clock")]}
        replaced = 3 * len(self._replaced()) if self.keep == math.inf else by_clock.get("drive_minute", 0)
        if by_clock != ({"drive_minute": replaced} if replaced else {}):
            self.problems.append(f"rows that came again with the clock: {replaced} readings, counted {by_clock}")
        bytes_there, = database.execute("SELECT (SELECT coalesce(sum(length(tenants)), 0) FROM tenant_minute) + "
                                        "(SELECT coalesce(sum(length(tenants)), 0) FROM tenant_hour)").fetchone()
        if bytes_there != tenant_bytes:
            self.problems.append(f"tenants have {bytes_there} bytes, {tenant_bytes} in the account")
        self._compare_session(account)
        self.account, self.verified = account, True

    def _compare_session(self, account):
        """What the process that ended in order said of itself."""
        if not self.given:
            return
        received = {table: received for table, (received, _) in self.given.items()}
        if received["setting"] != self.session["sent"] or received["mark"] != self.session["asked"]:
            self.problems.append(f"received {received}, of {self.session}")
        if any(others[0] for _, others in self.given.values()):
            if self.state == "up":
                self.problems.append(f"rows waited at the end: {self.given}")
            return  # it may have written them after that
        if self.asked and self.state == "up":
            self.problems.append(f"marks without an answer: {self.asked}")
        if self.account is not None:
            grown = {table: [now - then for now, then in zip(account[table], self.account.get(table, [0] * (1 + len(REASONS))))] for table in TABLES}
            if grown != self.ledger:
                self.problems.append(f"the file's account has grown by {grown}, the process says {self.ledger}")


def total(counts):
    added = Counter()
    for one in counts:
        added.update(one)
    return added
