# SPDX-License-Identifier: Apache-2.0
"""Cgroups that the block layer charges, on either hierarchy: created here, and always removed again."""
import os
import shlex
import time
from contextlib import contextmanager
from pathlib import Path

V1 = Path("/sys/fs/cgroup/blkio")
V2 = Path("/sys/fs/cgroup")


class Cgroup:
    def __init__(self, path):
        self.path = path
        self.id = path.stat().st_ino
        self.parent = path.parent.stat().st_ino

    def command(self, command):
        """The same command, run by a member of the cgroup."""
        return ["sh", "-c", f'echo $$ > {shlex.quote(str(self.path))}/cgroup.procs && exec "$@"', "sh", *map(str, command)]

    def remove(self):
        for _ in range(100):
            try:
                self.path.rmdir()
                return
            except FileNotFoundError:
                return
            except OSError:  # a member is just exiting
                time.sleep(0.02)
        raise RuntimeError(f"{self.path} cannot be removed")


def _root(v1=V1, controller="io"):
    if v1.is_dir():
        return v1
    control = V2 / "cgroup.subtree_control"
    if controller not in control.read_text().split():
        control.write_text(f"+{controller}")
    return V2


def make(name):
    path = _root() / f"ssdpulse-test-{os.getpid()}-{name}"
    path.mkdir()
    return Cgroup(path)


@contextmanager
def cgroups(*names):
    made = []
    try:
        for name in names:
            made.append(make(name))
        yield made
    finally:
        for cgroup in made:
            cgroup.remove()


@contextmanager
def limited_memory(name, limit):
    """Where the kernel kills a member when all together need more than this many bytes."""
    path = _root(V1.with_name("memory"), "memory") / f"ssdpulse-test-{os.getpid()}-{name}"
    path.mkdir()
    cgroup = Cgroup(path)
    try:
        for file in "memory.max", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes":
            if (cgroup.path / file).exists():
                (cgroup.path / file).write_text(str(limit))
        if (cgroup.path / "memory.swap.max").exists():
            (cgroup.path / "memory.swap.max").write_text("0")
        yield cgroup
    finally:
        cgroup.remove()


@contextmanager
def named(*paths):
    """Cgroups with these paths from the root. Their parents, which others may use, are left in place if not empty."""
    root = _root()
    made = []
    try:
        for path in paths:
            place = root
            for part in path.strip("/").split("/"):
                control = place / "cgroup.subtree_control"
                if control.exists() and "io" not in control.read_text().split():
                    control.write_text("+io")
                place = place / part
                place.mkdir(exist_ok=True)
            made.append(Cgroup(place))
        yield made
    finally:
        for cgroup in made:
            cgroup.remove()
            for above in cgroup.path.parents:
                if above == root or not _remove_empty(above):
                    break


def _remove_empty(directory):
    try:
        directory.rmdir()
    except OSError:
        return False
    return True
