#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# tier: long
# timeout-long: 9000
# alone: what slows the database must be what the test does to its disks
"""PostgreSQL on slow disks: is the sentence that people act on right, during an incident and after it?

Incidents happen one after another, in random order, minutes apart. `why` is asked 5 s into each, 5 s after its end, and 2
minutes after it: device, operation, cause, culprit and victim must be right; where they are not, the answer must be that
it does not know, or that it is not the disk. It never names somebody or something that had no part in it. What the
database felt is what pgbench says; what the disks did is in their own logs and in the kernel's counters.

By hand: test_postgresql_incidents.py [--list] [--seed N] [--count N | --only NAME,NAME] [--gap SECONDS] [--keep DIRECTORY]
"""
import argparse
import json
import os
import random
import shutil
import subprocess
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path

import postgresql
from controlled_disk import controlled_disk
from lib import cgroups, metrics, rig
from postgresql import DATA, WAL

INCIDENTS, ENOUGH = 20, 57 / 60
GAP_SECONDS, INCIDENT_SECONDS = 180, 25
WARM_UP_SECONDS = 150
RECORDED_BEFORE_SECONDS = 75
INTO, AFTER, LATER = 5, 5, 120  # when is asked
HEALTHY_MS = 100  # a transaction takes less
FELT = 3  # times its usual latency: then the database was slowed
# The host is shared with the disks' own processes: what takes less than this may be theirs.
FLOOR = "15ms"
DATA_DISK = {"read": 0.004, "write": 0.002, "flush": 0.004, "trim": 0.01, "bytes_per_second": 6 << 20}
WAL_DISK = {"read": 0.002, "write": 0.001, "flush": 0.003, "trim": 0.01, "bytes_per_second": 48 << 20}
CACHE = {"cache_bytes": 1 << 20, "cache_bytes_per_second": 6 << 20}  # what a neighbour wrote is flushed for everybody
FAST = {"read": 0.0002, "write": 0.0002, "flush": 0.0005}
ANY = frozenset(("read", "write", "flush", "commit"))
TOO_MUCH = frozenset(("saturation", "queue"))
# (operations, causes) that are right together. A commit is slow because its flush is; why the flush is, only the drive knows.
OF_A_FLUSH = ((frozenset(("commit",)), frozenset(("flush",))), (frozenset(("flush",)), frozenset(("unknown", "flush"))))


@dataclass(frozen=True)
class Truth:
    """What may be said about an incident; None among the names: nobody. Without devices it is not the disk."""

    devices: frozenset = frozenset()  # "data", "wal"
    answers: tuple = ()  # ((operations, causes), ...)
    culprits: frozenset = frozenset((None,))
    victims: frozenset = frozenset(("database",))
    # It is the database's own work: only if that slowed its transactions must anything be said.
    own_work: bool = False


def truth(device, answers, culprit=None, victims=("database",), own_work=False, or_nobody=False):
    return Truth(frozenset(device.split()), tuple(answers), frozenset((culprit, None) if or_nobody else (culprit,)),
                 frozenset(victims), own_work)


class Stage:
    """What incidents are made with."""

    def __init__(self, server, disks, tells, groups, state):
        self.server, self.disks, self.groups, self.state = server, disks, groups, state
        self._tells, self._healthy = tells, {"data": DATA_DISK, "wal": WAL_DISK}

    def set(self, device, **settings):
        self._tells[device]({**self._healthy[device], **settings})

    def heal(self):
        for device in self._tells:
            self.set(device)

    @contextmanager
    def running(self, group, *commands):
        """Runs these until the end of the block."""
        with open(self.state / "loads.log", "ab") as log:
            processes = [subprocess.Popen(self.groups[group].command(command), stdout=log, stderr=log,
                                          start_new_session=True) for command in commands]
        try:
            yield processes
        finally:
            for process in processes:
                try:
                    os.killpg(process.pid, 15)
                except ProcessLookupError:
                    pass
            for process in processes:
                process.wait()


def load(directory, name, **options):
    """fio on a file, or one file for each job, of its own."""
    given = {"directory": directory, "filename_format": "$jobname.$jobnum", "time_based": None, "runtime": 3600, **options}
    return ["fio", f"--name={name}", *(f"--{key}" if value is None else f"--{key}={value}" for key, value in given.items())]


@contextmanager
def sick(stage, device, **settings):
    stage.set(device, **settings)
    try:
        yield
    finally:
        stage.heal()


@contextmanager
def slow_flush(stage):
    with sick(stage, "wal", flush=0.12):
        yield


@contextmanager
def slow_reads(stage):
    with sick(stage, "data", read=0.15):
        yield


@contextmanager
def hang(stage):
    """Of the disk with the data: no command ends, whichever it is."""
    with sick(stage, "data", stall_until=time.time() + INCIDENT_SECONDS):
        yield


@contextmanager
def fsync_storm(stage):
    """By fdatasync, as databases do: what fsync adds to the journal, the kernel's own thread writes for everybody."""
    storm = load(WAL, "storm", rw="randwrite", bs="32k", size="1M", numjobs=12, fdatasync=1, ioengine="psync", thread=None)
    with sick(stage, "wal", **CACHE), stage.running("neighbour", storm):
        yield


@contextmanager
def fstrim(stage):
    """Of a file system from which a large table has just been dropped; reads wait for trims in the drive."""
    table = DATA / "dropped"
    rig.run("fallocate", "-l", "768M", table)
    rig.run("sync", "-f", DATA)
    table.unlink()
    rig.run("sync", "-f", DATA)
    time.sleep(8)  # what that wrote is no part of the incident
    with sick(stage, "data", trim=0.5, reads_wait_for_trim=True):
        with stage.running("maintenance", ["fstrim", "-v", DATA]) as [process]:
            yield process


@contextmanager
def neighbours_reads(stage):
    with stage.running("neighbour", load(DATA, "neighbour", rw="randread", bs="128k", size="128M", direct=1, ioengine="libaio",
                                         iodepth=16)):
        yield


@contextmanager
def neighbours_writes(stage):
    with stage.running("neighbour", load(DATA, "neighbour", rw="randwrite", bs="128k", size="128M", direct=1,
                                         ioengine="libaio", iodepth=16)):
        yield


@contextmanager
def backup(stage):
    """Eight processes read everything, as a backup of the files does."""
    copy = ["sh", "-c", f"while :; do find {stage.server.directory}/base -type f -size +64k | shuf | xargs cat >/dev/null; done"]
    with stage.running("backup", *[copy] * 8):
        yield


@contextmanager
def checkpoint(stage):
    with stage.running("batch", stage.server.client("psql", "-X", "-q", "-c", "CHECKPOINT", "postgres")) as [process]:
        yield process


@contextmanager
def bulk_load(stage):
    """At almost as many bytes per second as the disk can take."""
    stage.server.sql("DROP TABLE IF EXISTS bulk", "CREATE TABLE bulk (id bigint, words text)")
    rows = stage.state / "rows"
    rows.write_text("".join(f"{number}\t{random.randbytes(400).hex()}\n" for number in range(1500)))
    rows.chmod(0o644)
    copy = " ".join(stage.server.client("psql", "-X", "-q", "-c", "'COPY bulk FROM STDIN'", "postgres"))
    with stage.running("batch", ["sh", "-c", f"while :; do {copy} <{rows}; sleep 0.1; done"]):
        yield


@contextmanager
def row_locks(stage):
    statements = ("BEGIN", "LOCK TABLE pgbench_branches IN EXCLUSIVE MODE", "SELECT pg_sleep(3600)")
    with stage.running("batch", stage.server.client("psql", "-X", "-q", *(word for one in statements for word in ("-c", one)),
                                                    "postgres")):
        try:
            yield
        finally:  # the server would not notice that its client is gone
            stage.server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'")


@contextmanager
def nothing(_stage):
    yield


READS_TOO_MUCH = ((ANY, TOO_MUCH),)
KINDS = {
    "slow flush": (slow_flush, truth("wal", OF_A_FLUSH)),
    "fsync storm": (fsync_storm, truth("wal", (*OF_A_FLUSH, (ANY, TOO_MUCH)), "neighbour")),
    "fstrim": (fstrim, truth("data", ((ANY, frozenset(("discard",))),), "maintenance")),
    "neighbour's reads": (neighbours_reads, truth("data", READS_TOO_MUCH, "neighbour")),
    "neighbour's writes": (neighbours_writes, truth("data", READS_TOO_MUCH, "neighbour")),
    "hang": (hang, truth("data", ((ANY, frozenset(("unknown",))),), victims=("database", None))),
    "slow reads": (slow_reads, truth("data", ((frozenset(("read",)), frozenset(("unknown",))),))),
    "bulk load": (bulk_load, truth("data wal", ((ANY, TOO_MUCH | {"flush"}),), "database", own_work=True, or_nobody=True)),
    "checkpoint": (checkpoint, truth("data", ((ANY, TOO_MUCH | {"flush"}),), "database", own_work=True, or_nobody=True)),
    "backup": (backup, truth("data", READS_TOO_MUCH, "backup")),
    "row locks": (row_locks, Truth()),
    "nothing": (nothing, Truth()),
}
MOMENTS = ("during", "after", "later")
WHEN = {"during": ("now",), "after": ("now", "ended"), "later": ("ended", "earlier")}


@dataclass
class Answer:
    """What `why` said."""

    verdict: str
    device: str
    operation: str
    cause: str
    culprit: str
    victim: str
    when: str
    sentence: str

    @classmethod
    def of(cls, why):
        return cls(*(why[one.name] for one in fields(cls)))


@dataclass
class Event:
    kind: str
    began: float = 0
    ended: float = 0
    usual: float = 0  # latency of the transactions in ms, in the minute before
    felt: float = 0  # times that
    short: bool = False  # it was over when it was asked for the first time
    answers: dict = field(default_factory=dict)  # moment -> Answer
    grades: dict = field(default_factory=dict)  # moment -> (grade, why)

    @property
    def truth(self):
        return KINDS[self.kind][1]

    @property
    def must_be_felt(self):
        return self.kind != "nothing" and not self.truth.own_work


def names_wrong(answer, true):
    """What the answer names that had no part in it."""
    found = []
    for what in ("device", "culprit", "victim"):
        name, right = getattr(answer, what), getattr(true, what + "s")
        if name is not None and name not in right:
            found.append(f"{what} {name}")
    return found


def grade(answer, moment, event, earlier):
    """("right" | "unknown" | "wrong", in which respect). `earlier`: the events before this one."""
    true = event.truth
    about_older = answer.when == "earlier" and (moment != "later" or not true.devices or names_wrong(answer, true))
    if about_older:  # it must be true of one of those, and says nothing of this one
        if not any(one.truth.devices and not names_wrong(answer, one.truth) for one in earlier):
            return "wrong", "no earlier incident was like that"
    if answer.verdict == "unknown":
        return "unknown", "it does not know"
    if not true.devices:
        calm = answer.verdict == "ok" and answer.when in (None, "earlier")
        return ("right", "") if calm else ("wrong", f"{answer.verdict}, {answer.when}: it was not the disk")
    if answer.when is None or about_older:
        if true.own_work and event.felt < FELT:
            return "right", f"felt {event.felt:.1f} times as long"
        return "unknown", "not the disk"
    if wrong := names_wrong(answer, true):
        return "wrong", ", ".join(wrong)
    if answer.when not in WHEN["after" if event.short and moment == "during" else moment]:
        return "wrong", f"{answer.when}, {moment} the incident"
    if not any(answer.operation in operations and answer.cause in causes for operations, causes in true.answers):
        return ("unknown" if answer.cause == "unknown" else "wrong"), f"{answer.operation} because of {answer.cause}"
    missing = [what for what in ("culprit", "victim") if getattr(answer, what) not in getattr(true, what + "s")]
    return ("unknown", "nobody as " + " and ".join(missing)) if missing else ("right", "")


class Counters:
    """What the kernel's own statistics say of each disk: mean latency in ms by operation, as iostat has it."""

    COLUMNS = {"read": (0, 3), "write": (4, 7), "discard": (11, 14), "flush": (15, 16)}

    def __init__(self, disks):
        self._disks = disks

    def read(self):
        return {name: [int(n) for n in Path(f"/sys/block/{disk.name}/stat").read_text().split()]
                for name, disk in self._disks.items()}

    def words(self, before, after, seconds):
        parts = []
        for name in before:
            for what, (ios, ticks) in self.COLUMNS.items():
                done, spent = (after[name][column] - before[name][column] for column in (ios, ticks))
                if done:
                    parts.append(f"{name} {what} {done / seconds:.0f}/s {spent / done:.1f} ms")
        return ", ".join(parts)


class Play:
    def __init__(self, stage, daemon, bench, options):
        self.stage, self.daemon, self.bench = stage, daemon, bench
        self.later, self.record = options.later, options.record
        self.events, self.counters = [], Counters(stage.disks)

    def ask(self):
        why = json.loads(metrics.fetch(self.daemon.port, "/api/v1/why", "application/json")[2])["why"]
        answer = Answer.of(why)
        for what in ("device", "culprit", "victim"):
            name = getattr(answer, what)
            setattr(answer, what, self.stage.names.get(name, name))
        return answer

    def _ask(self, event, moment):
        answer = event.answers[moment] = self.ask()
        print(f"     {moment:7} {answer.sentence}")

    def _late(self, since):
        """The seconds by which this host delayed the disks' own processes, by their log: then they were really slow."""
        lines = [line.split() for name in self.stage.disks for line in self._lines(name)]
        return max((float(late) for at, _, _, late in lines if float(at) >= since), default=0)

    def _lines(self, disk):
        log = self.stage.state / disk / "control.added"
        return log.read_text().splitlines() if log.exists() else []

    def incident(self, kind):
        event = Event(kind, usual=self.bench.median(time.time() - 60, time.time()))
        with KINDS[kind][0](self.stage) as process:
            event.began, counted = time.time(), self.counters.read()
            print(f"{time.strftime('%H:%M:%S')} {len(self.events) + 1}: {kind}")
            time.sleep(INTO)
            event.short = process is not None and process.poll() is not None
            self._ask(event, "during")
            end = event.began + INCIDENT_SECONDS
            while time.time() < end if process is None else process.poll() is None and time.time() < end + 60:
                time.sleep(0.1)
        event.ended = time.time()
        seen = self.counters.words(counted, self.counters.read(), event.ended - event.began)
        time.sleep(AFTER)
        self._ask(event, "after")
        felt = self.bench.median(event.began + 1, event.ended)
        event.felt = felt / event.usual
        print(f"     lasted {event.ended - event.began:.1f} s; transactions {event.usual:.1f} -> {felt:.1f} ms; {seen}")
        time.sleep(max(0, event.ended + self.later - time.time()))
        self._ask(event, "later")
        print(f"     the disks themselves were late by {self._late(event.began):.2f} s at most")
        for moment, answer in event.answers.items():
            event.grades[moment] = grade(answer, moment, event, self.events)
            if event.grades[moment][0] != "right":
                print(f"     {moment}: {' '.join(event.grades[moment])}")
        self.events.append(event)


@contextmanager
def recording(play, kind):
    """The ticks of an incident and of what was usual before it, for tests that play them again, and what may be said."""
    if not play.record:
        yield
        return
    play.record.mkdir(parents=True, exist_ok=True)
    file = play.record / ("postgresql_" + kind.replace("'", "").replace(" ", "_"))
    disks = play.stage.disks
    recorder = subprocess.Popen([rig.BUILD / "ssdpulse_tick_recorder", f"{file}.ticks.gz", *(disk.name for disk in disks.values())],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(RECORDED_BEFORE_SECONDS)
        yield
        time.sleep(2)  # the last question is about a tick of the recording
    finally:
        recorder.terminate()
        recorder.wait()
    event = play.events[-1]
    Path(f"{file}.expect").write_text("\n".join(expectations(event, disks)) + "\n", "ascii")


def expectations(event, disks):
    """Lines for tests/fixtures/ticks: from what was done, not from what was said. Words for a cause are added by hand."""
    true = event.truth
    others = {"/neighbour", "/batch", "/backup", "/maintenance"} - {f"/{name}" for name in true.culprits}
    yield f"# {event.began:.1f} PostgreSQL on slow disks: {event.kind}, for {event.ended - event.began:.1f} s"
    for moment, at in (("during", event.began + INTO), ("after", event.ended + AFTER), ("later", event.ended + LATER)):
        parts = [f"at {at:.1f}"]
        if not true.devices:
            parts.append("device=none")
        elif not true.own_work:
            [device] = [disks[name].name for name in true.devices]
            names = [name for name in true.culprits | (true.victims if None not in true.victims else set()) if name]
            parts += [f"device={device}", *(["contains=" + ";".join(sorted(names))] if names else [])]
        yield " | ".join([*parts, f"lacks={';'.join(sorted(others))}"])


def table(events):
    for event in events:
        print(f"{time.strftime('%H:%M:%S', time.localtime(event.began))} {event.kind}, {event.ended - event.began:.0f} s, "
              f"transactions {event.felt:.1f} times as long")
        for moment in MOMENTS:
            result, reason = event.grades[moment]
            print(f"    {moment:7} {result:8}{reason and f'({reason}) '}{event.answers[moment].sentence}")


def order(seed, count, only):
    """Each kind once before any comes twice."""
    dice = random.Random(seed)
    chosen = []
    while len(chosen) < count:
        chosen += dice.sample(only, len(only))
    return chosen[:count]


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--count", type=int)
    parser.add_argument("--only", help="kinds, separated by commas")
    parser.add_argument("--gap", type=float, default=GAP_SECONDS, help="seconds between two incidents")
    parser.add_argument("--later", type=float, default=LATER, help="seconds after its end when is asked for the last time")
    parser.add_argument("--warm-up", type=float, default=WARM_UP_SECONDS)
    parser.add_argument("--record", type=Path, help="where a recording of each incident is to be kept, with what may be said")
    parser.add_argument("--keep", type=Path, help="where the logs are to be kept")
    return parser.parse_args()


@contextmanager
def stage_of(state, tells, disks):
    names = ("database", "neighbour", "batch", "backup", "maintenance")
    paths = {name: f"/ssdpulse-test/{name}" for name in names}
    with cgroups.named(*paths.values()) as made, postgresql.file_systems(disks["data"], disks["wal"]):
        groups = dict(zip(names, made))
        prepared = (load(DATA, "neighbour", rw="write", bs="1M", size="128M", direct=1, ioengine="psync"),
                    load(WAL, "storm", rw="write", bs="64k", size="1M", numjobs=12, ioengine="psync", thread=None, end_fsync=1))
        with postgresql.postgresql(state, groups["database"]) as server:
            for command in prepared:
                rig.run(*(word for word in command if word not in ("--time_based", "--runtime=3600")))
            rig.run("fstrim", DATA)  # later ones trim what has been freed since then
            stage = Stage(server, disks, tells, groups, state)
            stage.names = {path: name for name, path in paths.items()} | {disk.name: name for name, disk in disks.items()}
            yield stage


@contextmanager
def unthrottled(disk):
    """The kernel does not hold back what it writes in the background, so that a checkpoint is felt."""
    if not Path(f"/sys/block/{disk.name}/queue/wbt_lat_usec").exists():
        yield
        return
    disk.set_queue("wbt_lat_usec", 0)
    try:
        yield
    finally:
        disk.set_queue("wbt_lat_usec", -1)  # its default; a loop device keeps what it was set to


def main_test(check, state):
    options = parse()
    seed = options.seed or rig.fresh_seed()
    only = options.only.split(",") if options.only else list(KINDS)
    kinds = only if options.only and not options.count else order(seed, options.count or INCIDENTS, only)
    postgresql.programs()
    os.setpriority(os.PRIO_PROCESS, 0, -10)  # nothing else on this host may make the disks slow
    state.chmod(0o755)
    with ExitStack() as stack:
        disks, tells = {}, {}
        for name, size in (("data", 2 << 30), ("wal", 2 << 30)):
            (state / name).mkdir()
            disks[name], tells[name] = stack.enter_context(controlled_disk(state / name, FAST, size, "keep=1"))
            stack.enter_context(unthrottled(disks[name]))
        stage = stack.enter_context(stage_of(state, tells, disks))
        bench = stage.server.bench(state / "pgbench.log")
        stack.callback(bench.stop)
        stage.heal()
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
            stack.callback(lambda: [shutil.copy(file, options.keep) for file in state.glob("*.log")])
        time.sleep(20)  # a server that has just started is no healthy load, and would become the usual level
        daemon = stack.enter_context(rig.daemon(state, list(disks.values()), settings=f"spikes: {{floor: {FLOOR}}}\n"))
        time.sleep(options.warm_up)
        play = Play(stage, daemon, bench, options)
        for kind in kinds:
            with recording(play, kind):
                play.incident(kind)
            time.sleep(max(0, play.events[-1].ended + options.gap - time.time()))
        table(play.events)
    spoilt = [f"{event.kind}: {event.usual:.0f} ms, {event.felt:.1f} times" for event in play.events
              if event.usual > HEALTHY_MS or (event.felt < FELT and event.must_be_felt)]
    check.equal(spoilt, [], "incidents before which the database was not well, or which it did not feel")
    grades = [result for event in play.events for result, _ in event.grades.values()]
    counts = {result: grades.count(result) for result in ("right", "unknown", "wrong")}
    check.that(counts["right"] >= ENOUGH * len(grades), f"right in {counts['right']} of {len(grades)}")
    check.equal(counts["wrong"], 0, "wrong")


if parse().list:
    print("\n".join(KINDS))
else:
    postgresql.in_own_mounts()
    rig.main(main_test)
