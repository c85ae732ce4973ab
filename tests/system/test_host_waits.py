#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# alone: dirty pages and their threshold are those of the whole host
"""What holds up I/O above the drives: a limit of a cgroup, dirty pages at their threshold, a full file system. And a disk that
a backup keeps busy, which is said before anything is slow.

Each is named within NAMED seconds, is gone GONE seconds after its end, and is never claimed before it. What is true is
what fio, df and the kernel's own files say.
"""
import json
import os
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

from lib import cgroups, metrics, rig

NAMED, GONE = (5, 10) if rig.LONG else (8, 12)  # in CI, other work may hold up the host
WRITES_PER_SECOND = 40
BLOCK = 4096
SLOW_BYTES_PER_SECOND = 8 << 20  # of the disk on which dirty pages gather


def why(daemon):
    return json.loads(metrics.fetch(daemon.port, "/api/v1/why", "application/json")[2])["why"]


def watch(daemon, seconds):
    """The answers of these seconds: [(seconds since now, answer)]."""
    began, answers = time.monotonic(), []
    while time.monotonic() - began < seconds:
        answers.append((time.monotonic() - began, why(daemon)))
        time.sleep(0.5)
    return answers


def causes(answers):
    return {answer["cause"] for _, answer in answers if answer["when"] == "now" and answer["wait"]}


@contextmanager
def load(cgroup, *command):
    process = subprocess.Popen(cgroup.command(command), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                               start_new_session=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, 2)
        process.wait()


def fio(file, **options):
    given = {"filename": file, "size": "32M", "bs": BLOCK, "ioengine": "psync", "direct": 1, "time_based": None, "runtime": 60,
             "output-format": "json", **options}
    return ["fio", "--name=job", *(f"--{key}" if value is None else f"--{key}={value}" for key, value in given.items())]


def named_and_gone(check, daemon, cause, begin, end, seconds=12):
    """Between begin() and end(), this cause is named, and no other wait is; the answers meanwhile."""
    begin()
    during = watch(daemon, seconds)
    end()
    after = watch(daemon, GONE + 2)
    first = next((at for at, answer in during if answer["cause"] == cause), None)
    check.that(first is not None and first <= NAMED, f"{cause}: named after {first} s")
    check.equal(causes(during) - {cause}, set(), f"{cause}: other waits that were claimed")
    last = max((at for at, answer in after if answer["when"] == "now" and answer["cause"] == cause), default=0)
    check.that(last <= GONE, f"{cause}: gone {last:.1f} s after its end")
    answers = [answer for _, answer in during if answer["cause"] == cause]
    if answers:
        print(f"     {answers[-1]['sentence']}\n     {answers[-1]['next']}")
    return answers[-1] if answers else {"sentence": "", "victim": None, "device": None}


def limit(check, daemon, disk, mount, cgroup):
    numbers = Path(f"/sys/block/{disk.name}/dev").read_text().strip()
    old = cgroup.path / "blkio.throttle.write_iops_device"
    file, limited, free = ((old, f"{numbers} {WRITES_PER_SECOND}", f"{numbers} 0") if old.exists() else
                           (cgroup.path / "io.max", f"{numbers} wiops={WRITES_PER_SECOND}", f"{numbers} wiops=max"))
    with load(cgroup, *fio(mount / "limited", rw="randwrite", rate_iops=400)) as process:
        check.equal(causes(watch(daemon, 8)), set(), "waits claimed beside a load without a limit")
        answer = named_and_gone(check, daemon, "cgroup_limit", lambda: file.write_text(limited), lambda: file.write_text(free))
        os.killpg(process.pid, 2)
        job = json.loads("{" + process.communicate()[0].partition("{")[2])["jobs"][0]["write"]
    print(f"     fio: {job['clat_ns']['mean'] / 1e6:.1f} ms in the mean, {job['clat_ns']['max'] / 1e6:.0f} ms at most")
    check.that(job["clat_ns"]["max"] > 20e6, "fio's writes waited for the limit")
    check.that(f"{WRITES_PER_SECOND} writes a second" in answer["sentence"], "the sentence has the limit")
    check.equal((answer["victim"], answer["device"]), (f"/{cgroup.path.name}", disk.name), "who is held up, and where")


def full(check, daemon, mount):
    filler, rest = mount / "filler", mount / "rest"

    def fill():
        space = os.statvfs(mount)
        rig.run("fallocate", "-l", space.f_bavail * space.f_frsize - (4 << 20), filler)
        written = subprocess.run(["dd", "if=/dev/zero", f"of={rest}", "bs=64k"], capture_output=True, text=True, check=False)
        check.that("No space left" in written.stderr, "dd: no space left")

    answer = named_and_gone(check, daemon, "full", fill, lambda: (filler.unlink(), rest.unlink()))
    check.that(str(mount) in answer["sentence"], "the sentence has the mount point")


def dirty(check, daemon, mount, cgroup):
    threshold, background = Path("/proc/sys/vm/dirty_bytes"), Path("/proc/sys/vm/dirty_background_bytes")
    ratios = [(path, path.read_text()) for path in (Path("/proc/sys/vm/dirty_ratio"), Path("/proc/sys/vm/dirty_background_ratio"))]
    threshold.write_text(str(24 << 20))
    background.write_text(str(8 << 20))
    running = []

    def write():
        running.append(load(cgroup, *fio(mount / "dirty", rw="write", bs="64k", direct=0, size="64M")))
        running[0].__enter__()

    try:
        named_and_gone(check, daemon, "dirty_throttling", write, lambda: running[0].__exit__(None, None, None), 20)
    finally:
        for path, text in ratios:
            path.write_text(text)


def backup(check, daemon, mount, cgroup, disk):
    """One reader that always waits for the disk: by its own counters, the disk has no time left."""
    stat = Path(f"/sys/block/{disk.name}/stat")
    busy_ms = lambda: int(stat.read_text().split()[9])  # noqa: E731
    time.sleep(4)
    before, began = busy_ms(), time.monotonic()
    with load(cgroup, *fio(mount / "dirty", rw="read", bs="256k", size="64M")):
        during = watch(daemon, 12)
        share = (busy_ms() - before) / 1e3 / (time.monotonic() - began)
    after = watch(daemon, GONE)
    said = [at for at, answer in during if f"({disk.name}) is busy" in answer["sentence"] or f"{disk.name} is busy" in answer["sentence"]]
    check.that(share > 0.9, f"backup: the kernel says that the disk was busy {100 * share:.0f} % of the time")
    check.that(said and said[0] <= NAMED, f"backup: said to be busy after {said[:1]} s")
    check.that("is busy" not in after[-1][1]["sentence"], "backup: nothing is said of it afterwards")
    check.equal(causes(during), set(), "backup: waits that were claimed")
    print(f"     {during[-1][1]['sentence']}")


@contextmanager
def mounted(state, disk, name):
    mount = state / name
    mount.mkdir()
    rig.run("mkfs.ext4", "-q", "-F", "-E", "nodiscard", "-m", "0", disk.path)
    rig.run("mount", disk.path, mount)
    try:
        yield mount
    finally:
        rig.run("umount", "-l", mount, check=False)


def test(check, state):
    name = f"/waits-{os.getpid()}"
    slowly = (["rate"], f"rate={8 * SLOW_BYTES_PER_SECOND}")
    with rig.loop_disk(state / "disk", "256M", direct=True) as disk, mounted(state, disk, "mount") as mount, \
            rig.fuse_disk(state, "256M", *slowly) as slow, mounted(state, slow, "slow-mount") as slow_mount, \
            cgroups.named(name) as [cgroup], rig.daemon(state, [disk, slow]) as daemon:
        time.sleep(20)
        check.equal(causes(watch(daemon, 3)), set(), "waits claimed on an idle host")
        stories = {"limit": lambda: limit(check, daemon, disk, mount, cgroup), "full": lambda: full(check, daemon, mount),
                   "dirty": lambda: dirty(check, daemon, slow_mount, cgroup),
                   "backup": lambda: backup(check, daemon, slow_mount, cgroup, slow)}
        for story in os.environ.get("SSDPULSE_TEST_STORIES", "limit,full,dirty,backup").split(","):
            print(story)
            stories[story]()
        print("\n".join(line for line in daemon.log.read_text().splitlines() if "held up" in line))


rig.main(test)
