# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL of a test's own, its data and its WAL on disks of the test, in a cgroup of the test, under pgbench.

pgbench is the oracle of what the database felt: it prints the latency of the transactions of each second. Everything
that the daemon says about the disks can be held against it.
"""
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

from lib import rig

MOUNT = Path("/var/lib/postgresql")  # only in our own mount namespace: the user postgres can get here everywhere
DATA, WAL = MOUNT / "data", MOUNT / "wal"
SCALE = 30  # some 450 MB
TRANSACTIONS_PER_SECOND = 25
SETTINGS = {
    "unix_socket_directories": "", "listen_addresses": "127.0.0.1", "fsync": "on", "autovacuum": "off", "jit": "off",
    "shared_buffers": "128MB", "wal_compression": "on", "checkpoint_timeout": "1h", "max_wal_size": "1GB",
    "min_wal_size": "800MB", "max_connections": "40", "bgwriter_lru_maxpages": "0",
    "checkpoint_flush_after": "0", "logging_collector": "off",
}


def in_own_mounts():
    """Runs the script again in a mount namespace of its own, where what is mounted over MOUNT hides nothing."""
    if os.environ.get("SSDPULSE_OWN_MOUNTS") != str(os.getpid()):
        os.environ["SSDPULSE_OWN_MOUNTS"] = str(os.getpid())
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv])


def programs():
    """The directory of the newest server's programs, which are installed if there is none."""
    def found():
        return sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: float(path.parts[4]))

    if not found():
        rig.run(Path(__file__).resolve().parents[2] / "deploy/install-packages.sh", "database")
    return found()[-1].parent


@contextmanager
def file_systems(data, wal):
    """ext4 with small groups on the data's disk: it sends one trim per group for its free space, as a large one would."""
    rig.run("mount", "-t", "tmpfs", "-o", "size=1M,mode=755", "ssdpulse-test", MOUNT)
    mounted = []
    try:
        for disk, mount, options in ((data, DATA, ("-g", "8192")), (wal, WAL, ())):
            rig.run("mkfs.ext4", "-q", "-F", "-N", "4096", *options, "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0",
                    disk.path)
            mount.mkdir()
            rig.run("mount", "-o", "noatime", disk.path, mount)
            mounted.append(mount)
        yield
    finally:
        for mount in (*mounted, MOUNT):
            rig.run("umount", "-l", mount, check=False)


class Bench:
    """A pgbench at a fixed rate of transactions; those that are 2 s late are left out, so that no backlog remains after an
    incident. `seconds`: [(time of the end, transactions, mean latency in ms)]"""

    LINE = re.compile(r"progress: ([\d.]+) s, ([\d.]+) tps, lat ([\d.naNA-]+) ms")

    def __init__(self, command, log):
        self.seconds, self._log = [], log
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        with open(self._log, "w", encoding="utf-8") as log:
            for line in self._process.stderr:
                log.write(line)
                if match := self.LINE.match(line):
                    rate = float(match[2])
                    self.seconds.append((float(match[1]), rate, float(match[3]) if rate else None))

    def between(self, begin, end):
        return [one for one in self.seconds if begin < one[0] <= end]

    def median(self, begin, end):
        """The median of the seconds' latencies in ms; a second without a transaction counts as a second of waiting."""
        waits = [1000 if latency is None else latency for _, _, latency in self.between(begin, end)]
        return statistics.median(waits) if waits else None

    def stop(self):
        self._process.terminate()
        self._process.wait()


def as_owner(*command):
    """From the root directory, as the owner may be unable to read ours."""
    return ["env", "-C", "/", "setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", *map(str, command)]


class Server:
    def __init__(self, state, cgroup):
        self.bin, self.state, self.cgroup = programs(), state, cgroup
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.directory = DATA / "cluster"
        self._process = None

    def start(self):
        for mount in (DATA, WAL):
            shutil.chown(mount, "postgres", "postgres")
        rig.run(*as_owner(self.bin / "initdb", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync",
                          "-D", self.directory, "-X", WAL / "pg_wal"))
        options = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
        command = as_owner(self.bin / "postgres", "-D", self.directory, "-p", self.port, *options)
        with open(self.state / "postgresql.log", "wb") as log:
            self._process = subprocess.Popen(self.cgroup.command(command), stdout=log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 60
        while subprocess.run(self.client("pg_isready", "-q"), check=False).returncode != 0:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the server did not start: " + (self.state / "postgresql.log").read_text()[-2000:])
            time.sleep(0.1)

    def stop(self):
        self._process.send_signal(3)  # at once, without a checkpoint
        self._process.wait()

    def client(self, program, *arguments):
        return as_owner(self.bin / program, "-h", "127.0.0.1", "-p", self.port, *arguments)

    def sql(self, *statements):
        commands = [word for statement in statements for word in ("-c", statement)]
        return rig.run(*self.client("psql", "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", *commands, "postgres"))

    def fill(self):
        """The tables of pgbench, and as many WAL files as will be needed: a new one would be filled with zeroes first."""
        rig.run(*self.client("pgbench", "-i", "-q", "-s", SCALE, "postgres"))
        for _ in range(40):
            self.sql("SELECT pg_switch_wal()", "SELECT pg_logical_emit_message(true, 'ssdpulse', 'a word')")
        self.sql("CHECKPOINT")
        self.sql("CHECKPOINT")

    def bench(self, log):
        return Bench(self.client("pgbench", "-n", "-c", 8, "-j", 1, "-R", TRANSACTIONS_PER_SECOND, "-L", 2000,
                                 "-T", 86400, "-P", 1, "--progress-timestamp", "postgres"), log)


FORGETFUL = """
import os, sys, time
while True:
    for directory, _, names in os.walk(sys.argv[1]):
        for name in names:
            try:
                file = os.open(os.path.join(directory, name), os.O_RDONLY)
            except OSError:
                continue
            if os.fstat(file).st_size > 1 << 20:
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(file)
    time.sleep(0.5)
"""


@contextmanager
def larger_than_memory(server):
    """The server's tables do not stay in the page cache: as if they were larger than the host's memory.

    Runs as a part of the server, as it also begins to write back what is dirty.
    """
    process = subprocess.Popen(server.cgroup.command([sys.executable, "-c", FORGETFUL, server.directory / "base"]))
    try:
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def postgresql(state, cgroup):
    server = Server(state, cgroup)
    server.start()
    try:
        server.fill()
        with larger_than_memory(server):
            yield server
    finally:
        server.stop()
