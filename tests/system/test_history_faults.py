#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# timeout-long: 2400
"""Is everything in the history that was reported as written, in every table, and is every loss counted, whatever happens? And
is the state of a flash model beside it whole, and the one that was saved last?

ssdpulse_history_writer says what the history reports; after each fault, history_oracle.py compares that with a copy of
the files that are left. A point is one fault at a random moment. `lost` counts steps and marks of which the history itself
said that they will not be there; `unsaved` counts the flash model's failures to save its state.
"""
import copy
import random
import signal
import sqlite3
import subprocess
import threading
import time
from collections import Counter
from contextlib import contextmanager, nullcontext
from pathlib import Path

from controlled_disk import controlled_disk
from history_oracle import FIRST, Oracle
from lib import cgroups, history_pages, rig

WRITER = rig.BUILD / "ssdpulse_history_writer"
HANG_SECONDS = 60 if rig.LONG else 4  # of a disk, of a process
FOREVER = "1000000"  # steps
OF_FLASH = {"resumed", "saving", "saved", "unsaved"}  # said by the flash model, whatever the history does


class Writer:
    """A running writer, whose lines the oracle hears. `kill_at`: it is killed right after this line: (what, which)."""

    def __init__(self, oracle, directory, *arguments, inside=lambda command: command, kill_at=None):
        self._oracle, self._kill_at = oracle, kill_at
        self.said, self.last = Counter(), {}
        self.heard = threading.Condition()
        self.process = subprocess.Popen(inside([WRITER, directory, *arguments]), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def _read(self):
        for line in self.process.stdout:
            what, _, words = line.strip().partition(" ")
            if not line.endswith("\n"):
                continue  # killed within a line: not said
            with self.heard:
                self._oracle.take(line)
                self.said[what] += 1
                self.last[what] = words
                if self._kill_at == (what, self.said[what]):
                    self.process.kill()
                self.heard.notify_all()
        with self.heard:
            self.heard.notify_all()

    def wait(self, true, seconds=60):
        with self.heard:
            if not self.heard.wait_for(lambda: true() or not self._reader.is_alive(), seconds) or not true():
                raise RuntimeError(f"the writer said {dict(self.said)}, last {self.last}")

    def more(self, steps):
        """Waits until so many more are on the disk."""
        target = self.said["committed"] + steps
        self.wait(lambda: self.said["committed"] >= target)

    def wait_until_down(self, words):
        self.wait(lambda: words in self.last.get("down", ""))

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def end(self):
        """In order."""
        self.tell("end")
        self.over(0)

    def over(self, code):
        if self.process.wait(120) != code:
            raise RuntimeError(f"the writer ended with {self.process.returncode}, not {code}")
        self._reader.join()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self._reader.join()
        self.process.stdout.close()
        self.process.stdin.close()


class Stage:
    """Where one kind of fault happens, and what became of the rows there."""

    def __init__(self, check, state, name, seed):
        self.check, self.state, self.name = check, state, name
        self.random = random.Random(f"{seed} {name}")
        self.points, self.wrong, self.oracles = 0, 0, []
        state.mkdir()

    def oracle(self, *arguments):
        self.oracles.append(Oracle(*arguments))
        return self.oracles[-1]

    def that(self, holds, text):
        self.wrong += not holds
        if not holds:
            self.check.that(False, f"{self.name}: {text}")

    def verify(self, oracle, directory):
        """When no process runs."""
        for problem in oracle.verify(directory, self.state / "copy"):
            self.that(False, f"point {self.points}: {problem}")

    def point(self, oracle, directory):
        self.points += 1
        self.verify(oracle, directory)

    def row(self):
        acknowledged, kept, lost = (sum(getattr(one, what) for one in self.oracles) for what in ("acknowledged", "kept", "lost"))
        saved, unsaved = (sum(getattr(one, what) for one in self.oracles) for what in ("saved", "unsaved"))
        return [self.name, self.points, acknowledged, kept, lost, saved, unsaved, self.wrong]


def is_hot(journal):
    """A journal whose header has not been cleared yet: the process was killed within a transaction."""
    return journal.exists() and journal.read_bytes()[:8] == bytes.fromhex("d9d505f920a163d7")


def ask_commands(stage, directory):
    """The commands for a file answer before any daemon has undone its transaction, and leave that to one."""
    def content():
        return {path.name: path.read_bytes() for path in directory.iterdir()}

    before, file, backup, salvaged = content(), directory / "ssdpulse.db", stage.state / "backup", stage.state / "salvaged"
    for path, *question in ((file, "--check"), (file, "--backup", backup), (file, "--salvage", salvaged), (backup, "--check"),
                            (salvaged, "--check")):
        answer = subprocess.run([rig.BINARY, "history", "--file", path, *question], capture_output=True, text=True, check=False)
        stage.that(answer.returncode == 0, f"{path.name} {question} after a kill: {answer.stdout} {answer.stderr}")
    stage.that(content() == before, "the commands have changed the history")
    backup.unlink(missing_ok=True)
    salvaged.unlink(missing_ok=True)


def killed(stage, points):
    oracle, directory, hot = stage.oracle(), stage.state / "history", 0
    # About one kill in five falls within a transaction.
    while stage.points < points or not hot and stage.points < 10 * points:
        with Writer(oracle, directory) as writer:
            if stage.random.random() < 0.25:
                time.sleep(stage.random.uniform(0, 0.03))  # perhaps before there is anything
            else:
                writer.wait(lambda: writer.said["found"])
                time.sleep(stage.random.uniform(0, 0.5))
        if is_hot(directory / "ssdpulse.db-journal"):
            hot += 1
            ask_commands(stage, directory)
        stage.point(oracle, directory)
    stage.check.that(hot > 0, f"{hot} of {stage.points} kills within a transaction")


def killed_after(what, most):
    def fault(stage, points):
        oracle, directory = stage.oracle(), stage.state / "history"
        for _ in range(points):
            with Writer(oracle, directory, kill_at=(what, stage.random.randint(1, most))) as writer:
                writer.over(-signal.SIGKILL)
            stage.point(oracle, directory)
    return fault


def killed_while_saving(stage, points):
    """What is left of a flash model's state that was not finished is gone after the next start."""
    oracle, directory, left = stage.oracle(), stage.state / "history", 0
    while stage.points < points or not left and stage.points < 10 * points:
        with Writer(oracle, directory) as writer:
            writer.wait(lambda: writer.said["saved"])
            time.sleep(stage.random.uniform(0, 0.1))
            deadline = time.monotonic() + 10
            while not any(path.name.endswith(".new") for path in directory.iterdir()):
                if time.monotonic() > deadline:
                    raise RuntimeError("no state is written under another name")
        stage.point(oracle, directory)
        left += oracle.unfinished
        with Writer(oracle, directory, "1") as writer:
            writer.over(0)
        stage.verify(oracle, directory)
    stage.check.that(left > 0, f"{left} of {stage.points} kills left an unfinished state")


def fill(disk):
    with open(disk / "ballast", "ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass


def fill_while(disk, writer):
    """Also what is freed when a state is not saved."""
    unsaved = writer.said["unsaved"]
    while writer.said["unsaved"] < unsaved + 3 and writer.process.poll() is None:
        fill(disk)
        time.sleep(0.005)


def make_room(disk):
    (disk / "ballast").unlink()


def full(stage, points):
    """Every second one is killed while there is no room."""
    for number in range(points):
        oracle = stage.oracle()
        with rig.tmpfs(stage.state, "16M") as disk:
            with Writer(oracle, disk / "history") as writer:
                writer.more(stage.random.randint(1, 200))
                fill_while(disk, writer)
                writer.wait_until_down("full")
                time.sleep(stage.random.uniform(0, 5))
                if number % 2:
                    writer.kill()
                make_room(disk)
                if writer.process.returncode is None:
                    writer.more(10)
                    writer.end()
            stage.point(oracle, disk / "history")


def full_from_the_start(stage, points):
    """With no file, or with one."""
    for number in range(points):
        oracle = stage.oracle()
        with rig.tmpfs(stage.state, "16M") as disk:
            directory = disk / "history"
            if number % 2:
                with Writer(oracle, directory, str(stage.random.randint(1, 100))) as writer:
                    writer.over(0)
                stage.verify(oracle, directory)
            fill(disk)
            with Writer(oracle, directory) as writer:
                writer.wait_until_down("full")
                make_room(disk)
                writer.more(10)
                writer.end()
            stage.point(oracle, directory)


@contextmanager
def ext4(stage, disk, *options):
    mount = stage.state / "mount"
    mount.mkdir()
    rig.run("mkfs.ext4", "-q", "-F", disk.path)
    rig.run("mount", *options, disk.path, mount)
    try:
        yield mount
    finally:
        rig.run("umount", "-l", mount, check=False)


def hanging_disk(stage, points):
    oracle = stage.oracle()
    with controlled_disk(stage.state, {}, 256 << 20, "keep=1") as (disk, tell), ext4(stage, disk) as mount:
        directory = mount / "history"
        for _ in range(points):
            with Writer(oracle, directory) as writer:
                writer.more(stage.random.randint(1, 50))
                try:
                    tell({"stall_until": time.time() + 3600})
                    time.sleep(1)  # for what the disk had done before
                    before = Counter(writer.said)
                    time.sleep(HANG_SECONDS)
                    during = writer.said - before
                finally:
                    tell({})
                stage.that(during["sent"] > 0 and not during["committed"] and not during["kept"] and not during["saved"],
                           f"while the disk hangs: {dict(during)}")
                writer.more(10)
                writer.end()
            stage.point(oracle, directory)


def read_only(stage, points):
    """From the start, or when the kernel meets an error."""
    (stage.state / "disk mounted").mkdir()
    for number in range(points):
        oracle = stage.oracle()
        with rig.loop_disk(stage.state / "disk", "64M") as disk, ext4(stage, disk, "-o", "errors=remount-ro") as mount:
            directory = mount / "state/history"  # which cannot be made below when nothing is mounted
            directory.parent.mkdir()
            rig.run("sync", "-f", mount)
            if number % 2:
                rig.run("mount", "-o", "remount,ro", mount)
            with Writer(oracle, directory) as writer:
                if number % 2:
                    writer.wait(lambda: "down" in writer.last)
                    stage.that(not writer.said["found"], "waits for a read-only disk")
                    rig.run("mount", "-o", "remount,rw", mount)
                else:
                    writer.more(stage.random.randint(1, 50))
                    unsaved = writer.said["unsaved"]
                    Path(f"/sys/fs/ext4/{disk.name}/trigger_fs_error").write_text("by a test")
                    writer.wait(lambda: "down" in writer.last)
                    time.sleep(stage.random.uniform(0, 3))
                    while subprocess.run(["umount", mount], capture_output=True, check=False).returncode:
                        time.sleep(0.01)  # the writer tries again
                    rig.run("e2fsck", "-p", disk.path, check=False)
                    stage.that(writer.said["unsaved"] > unsaved, "no state is counted as not saved")
                    rig.run("mount", "-o", "ro", disk.path, stage.state / "disk mounted")
                    for problem in oracle.verify_flash(stage.state / "disk mounted/state/history"):
                        stage.that(problem.startswith("left over"), f"after the error: {problem}")
                    rig.run("umount", stage.state / "disk mounted")
                    rig.run("mount", "-o", "errors=remount-ro", disk.path, mount)
                writer.more(10)
                writer.end()
            stage.point(oracle, directory)
        (stage.state / "mount").rmdir()


def clock_steps(stage, points):
    """Of minutes, hours and years, either way; some with a restart, at which the clock is right."""
    oracle, directory = stage.oracle(), stage.state / "history"
    oracle.wrong_clock = True
    for _ in range(points):
        with Writer(oracle, directory) as writer:
            for _ in range(stage.random.randint(1, 4)):
                most = stage.random.choice((600, 12 * 3600, 20 * 365 * 86400))
                writer.tell(f"clock {stage.random.randint(-most, most)}")
                writer.more(stage.random.randint(5, 80))
            if stage.random.random() < 0.5:
                writer.end()
        stage.point(oracle, directory)


def two_writers(stage, points):
    oracle, directory = stage.oracle(), stage.state / "history"
    for _ in range(points):
        with Writer(oracle, directory) as first:
            first.more(5)
            with Writer(oracle, directory) as second:
                second.wait_until_down("another ssdpulse")
                first.more(stage.random.randint(1, 50))
                stage.that(set(second.said) - OF_FLASH == {"down"}, f"a second writer says {dict(second.said)}")
                if stage.random.random() < 0.5:
                    first.end()
                first.kill()
                second.more(5)
                second.end()
        stage.point(oracle, directory)


def two_killed(stage, points):
    """At once; both keep the state of the same drive's flash model."""
    oracle, directory = stage.oracle(), stage.state / "history"
    for _ in range(points):
        with Writer(oracle, directory) as first, Writer(oracle, directory) as second:
            for writer in first, second:
                writer.wait(lambda writer=writer: writer.said["saved"])
            time.sleep(stage.random.uniform(0, 0.5))
            for writer in first, second:
                writer.process.kill()
        stage.point(oracle, directory)
        with Writer(oracle, directory) as writer:
            writer.more(1)
            writer.end()
        stage.verify(oracle, directory)


def stopped(stage, points):
    oracle, directory = stage.oracle(), stage.state / "history"
    for _ in range(points):
        with Writer(oracle, directory) as writer:
            writer.more(1)
            time.sleep(stage.random.uniform(0, 0.5))
            writer.process.send_signal(signal.SIGSTOP)
            time.sleep(HANG_SECONDS)
            writer.process.send_signal(signal.SIGCONT)
            writer.more(10)
            writer.end()
        stage.point(oracle, directory)


def out_of_memory(stage, points):
    oracle, directory = stage.oracle(), stage.state / "history"
    with cgroups.limited_memory("history", 32 << 20) as cgroup:
        for _ in range(points):
            with Writer(oracle, directory, inside=cgroup.command) as writer:
                writer.more(stage.random.randint(1, 50))
                writer.tell("hold 256")
                writer.over(-signal.SIGKILL)  # by the kernel
            stage.point(oracle, directory)


def copied(stage, points):
    """By the product's own command while it writes, and continued elsewhere."""
    oracle, directory = stage.oracle(), stage.state / "history"
    for number in range(points):
        elsewhere = stage.state / f"copy {number}"
        elsewhere.mkdir()
        with Writer(oracle, directory) as writer:
            writer.more(stage.random.randint(1, 50))
            with writer.heard:
                of_copy = copy.deepcopy(oracle)
            rig.run(rig.BINARY, "history", "--backup", elsewhere / "ssdpulse.db", "--file", directory / "ssdpulse.db")
            with writer.heard:
                of_copy.at_copy(oracle)
            if stage.random.random() < 0.5:
                writer.end()
        stage.oracles.append(of_copy)
        stage.verify(oracle, directory)
        stage.verify(of_copy, elsewhere)
        with Writer(of_copy, elsewhere) as writer:
            writer.more(10)
            writer.end()
        stage.point(of_copy, elsewhere)


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


def earlier_build(stage, points):
    """What a build before 1.0.0 kept is there under one of two names at any moment, and a new file is written."""
    for number in range(points):
        directory, oracle = stage.state / f"history {number}", stage.oracle()
        oracle.set_aside = 1
        before = plant(directory, (1, 5)[number % 2])
        if number % 4 < 2:
            with Writer(oracle, directory):
                time.sleep(stage.random.uniform(0, 0.03))
            names = [path for path in directory.glob("ssdpulse.db*") if path.read_bytes() == before]
            stage.that(len(names) == 1, f"killed: the file is {names}")
        with Writer(oracle, directory) as writer:
            writer.more(5)
        aside = list(directory.glob("ssdpulse.db.set-aside-*Z"))
        stage.that([path.read_bytes() == before for path in aside] == [True], f"set aside, unchanged: {aside}")
        stage.point(oracle, directory)


def lose_account(directory):
    """The daemon takes the file for damaged, and salvages it; no row is lost. Returns its bytes."""
    file = directory / "ssdpulse.db"
    database = sqlite3.connect(file)
    database.execute("UPDATE account SET rows = 'x'")
    database.commit()
    database.close()
    history_pages.seal(file)
    return file.read_bytes()


def salvaged(stage, points):
    """Killed, or without room, while a damaged file is saved and set aside: it is there as it was, under one of two names, until
    all of its rows are in another one."""
    for number in range(points):
        with rig.tmpfs(stage.state, "16M") as disk:
            directory, steps = disk / "history", stage.random.randint(50, 300)
            with Writer(Oracle(), directory, str(steps)) as writer:
                writer.over(0)
            before = lose_account(directory)
            if number % 2:
                fill(disk)
            with Writer(Oracle(), directory) as writer:
                if number % 2:
                    writer.wait_until_down("full")
                    stage.that((directory / "ssdpulse.db").read_bytes() == before, "without room, the file is not as it was")
                    make_room(disk)
                    writer.wait(lambda: writer.said["found"])
                else:
                    time.sleep(stage.random.uniform(0, 0.2))
            names = [path.name for path in directory.glob("ssdpulse.db*") if path.read_bytes() == before]
            stage.that(len(names) == 1, f"the damaged file is there as {names}")
            with Writer(Oracle(), directory, "1") as writer:
                writer.over(0)
            database = sqlite3.connect(directory / "ssdpulse.db")
            kept, = database.execute("SELECT count(*) FROM setting WHERE CAST(value AS INTEGER) < ?", (FIRST + steps,)).fetchone()
            database.close()
            stage.that(kept == steps, f"{kept} of {steps} steps are in the new file")
            content = (directory / "ssdpulse.db").read_bytes()
            wrong = set(history_pages.mismatched(content)) - history_pages.unused(content)
            stage.that(not wrong, f"pages {sorted(wrong)} of the new file do not match their checksums")
            rest = sorted(path.name for path in directory.glob("*.salvage*"))
            stage.that(not rest, f"left over: {rest}")
            stage.points += 1


def restarted(stage, points):
    """Ten processes in a row, each of which ends in order."""
    oracle, directory = stage.oracle(), stage.state / "history"
    for _ in range(points):
        for _ in range(9):
            with Writer(oracle, directory, str(stage.random.randint(1, 30))) as writer:
                writer.over(0)
            stage.verify(oracle, directory)
        with Writer(oracle, directory, "1") as writer:
            writer.over(0)
        stage.point(oracle, directory)


def old_rows(stage, points):
    """Killed while rows go because they are old, or because the file is full."""
    gone = Counter()
    for keep, first, limits in (120, 300, ("120",)), (0, 1200, ("5256000", str(1 << 20))):
        oracle = stage.oracle(keep)
        with rig.tmpfs(stage.state, "16M") as disk:
            for number in range(points // 2):
                kill_at = "committed", stage.random.randint(1, 100) + (0 if number else first)
                with Writer(oracle, disk / "history", FOREVER, *limits, kill_at=kill_at) as writer:
                    writer.over(-signal.SIGKILL)
                stage.point(oracle, disk / "history")
        gone.update(oracle.removed())
    stage.that(gone and all(gone.values()), f"rows of each table went: {gone}")


# Points in CI, and in the long tier.
FAULTS = {
    "killed": (killed, 20, 60),
    "killed after a step": (killed_after("committed", 40), 2, 16),
    "killed after a mark": (killed_after("kept", 6), 2, 16),
    "killed while saving": (killed_while_saving, 3, 40),
    "disk full": (full, 2, 12),
    "disk full from the start": (full_from_the_start, 2, 8),
    "disk hangs": (hanging_disk, 1, 4),
    "disk read-only": (read_only, 2, 8),
    "clock steps": (clock_steps, 2, 16),
    "two writers": (two_writers, 1, 6),
    "two killed": (two_killed, 1, 12),
    "stopped": (stopped, 1, 4),
    "out of memory": (out_of_memory, 1, 8),
    "copied": (copied, 1, 10),
    "earlier build": (earlier_build, 2, 12),
    "salvaged": (salvaged, 4, 24),
    "restarted": (restarted, 1, 4),
    "old rows": (old_rows, 2, 16),
}


def test(check, state):
    seed, rows = rig.fresh_seed(), []
    # In CI, the host's disk may be busy with anything. But there a transaction takes long enough to be met by a kill.
    with nullcontext(state) if rig.LONG else rig.tmpfs(state, "512M") as memory:
        for number, (name, (fault, *points)) in enumerate(FAULTS.items()):
            stage = Stage(check, (state if fault is killed else memory) / str(number), name, seed)
            began = time.monotonic()
            fault(stage, points[rig.LONG])
            rows.append(stage.row())
            check.that(not stage.wrong, f"{name}: {stage.points} points in {time.monotonic() - began:.1f} s")
    rows.append(["all", *(sum(column) for column in list(zip(*rows))[1:])])
    for row in [["fault", "points", "steps acknowledged", "marks", "lost", "states", "unsaved", "uncounted"],
                *rows]:
        check.figure(f"{row[0]:<25}" + "".join(f"{value:>{width}}" for value, width in zip(row[1:], (7, 20, 7, 7, 8, 9, 11))))


rig.main(test)
