#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Takes the pictures of the page for README and docs; run by hand, as root: page_pictures.py DIRECTORY
[SECONDS [NAME...]].

A database's disk is read and written, a second one is under load, a third is idle. After SECONDS (default: 240, which
the drive's picture shows) the volume and the tenant are taken, then an fstrim stalls the reads of the first. With NAMEs,
only these pictures. Only the disk's slowness is artificial: it is a loop
device over a program that lets no read pass a trim (controlled_disk.py). Needs SSDPULSE_BUILD and Debian's python3.

With --matrix before DIRECTORY, every view in every state, width and theme, for fresh eyes: index.html shows them all.
It fails if a view is wider than its window, or if the browser complains. States that no disk here can be in are made by
page_states.py, the page itself is that of this tree.
"""
import base64
import os
import struct
import subprocess
import sys
import threading
import time
import zlib
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

from browser import browser
from controlled_disk import controlled_disk
from lib import cgroups, rig
from page_states import pages

HEIGHT = 1400
WIDTHS = {"overview": 1280, "device": 1180, "volume": 1180, "tenant": 1180}  # wide enough to show every column of the overview
MOST_BYTES = 150_000  # of one picture
MATRIX_WIDTHS = (360, 768, 1280, 1920)
MATRIX_HEIGHT = 2400  # pixels: what is below repeats itself
# Most commands are quick, some take longer, as on any drive.
HEALTHY = {"read": 0.0006, "write": 0.0004, "flush": 0.002, "trim": 0.45, "reads_wait_for_trim": True,
           "added": [{"kind": "read", "seconds": 0.0008, "share": 0.3}, {"kind": "read", "seconds": 0.003, "share": 0.04},
                     {"kind": "write", "seconds": 0.001, "share": 0.2}]}
MOUNT = Path("/mnt/database")  # in this script's own mount namespace


def chunks(data):
    """(name, bytes) of each chunk of a PNG."""
    at = 8
    while at < len(data):
        size, name = struct.unpack(">I4s", data[at:at + 8])
        yield name, data[at + 8:at + 8 + size]
        at += 12 + size


def rows(data, width):
    """The rows of an RGB PNG, with their filters undone."""
    pixels, stride = zlib.decompress(b"".join(part for name, part in chunks(data) if name == b"IDAT")), 3 * width
    prior = bytearray(stride)
    for start in range(0, len(pixels), stride + 1):
        kind, row = pixels[start], bytearray(pixels[start + 1:start + 1 + stride])
        for i in range(stride if kind else 0):
            left, corner = (row[i - 3], prior[i - 3]) if i >= 3 else (0, 0)
            base = left + prior[i] - corner
            guess = (left, prior[i], (left + prior[i]) >> 1,
                     min((left, prior[i], corner), key=lambda one, base=base: abs(base - one)))[kind - 1]
            row[i] = (row[i] + guess) & 255
        yield row
        prior = row


def with_palette(data):
    """The same PNG with its 256 most frequent colours, a third of the size: other colours become the nearest ones."""
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    if (depth, kind) != (8, 2):
        raise ValueError("not a PNG of red, green and blue")
    pixels = [list(zip(row[0::3], row[1::3], row[2::3])) for row in rows(data, width)]
    seen = Counter(pixel for row in pixels for pixel in row)
    palette = [colour for colour, _ in seen.most_common(256)]
    nearest = {}
    for colour in seen:
        distance = lambda i, colour=colour: sum((a - b) ** 2 for a, b in zip(palette[i], colour))  # noqa: E731
        nearest[colour] = min(range(len(palette)), key=distance)
    lines = b"".join(b"\0" + bytes(nearest[pixel] for pixel in row) for row in pixels)
    made = ((b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)), (b"PLTE", b"".join(map(bytes, palette))),
            (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return data[:8] + b"".join(struct.pack(">I", len(part)) + name + part + struct.pack(">I", zlib.crc32(name + part))
                               for name, part in made)


def shot(chrome, name, last):
    """A PNG from the top of the page to the end of the element `last`."""
    bottom = chrome.run("return document.querySelector(arguments[0]).getBoundingClientRect().bottom + scrollY", last)
    clip = {"x": 0, "y": 0, "width": WIDTHS[name], "height": int(bottom) + 12, "scale": 1}
    answer = chrome.driver.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
    return base64.b64decode(answer["data"])


def write(directory, name, data):
    file = directory / f"{name}.png"
    file.write_bytes(with_palette(data))
    size = file.stat().st_size
    print(f"{file}: {size} bytes")
    return size <= MOST_BYTES


@contextmanager
def file_system(disk):
    """ext4 with small groups: it sends one trim per group for its free space, and a large drive has thousands."""
    rig.run("mkfs.ext4", "-q", "-F", "-g", "8192", "-N", "512", "-E", "nodiscard,lazy_itable_init=0", disk.path)
    rig.run("mount", "-t", "tmpfs", "ssdpulse-pictures", "/mnt")
    MOUNT.mkdir()
    rig.run("mount", disk.path, MOUNT)
    try:
        file = MOUNT / "table"
        rig.run("fio", "--name=fill", f"--filename={file}", "--rw=write", "--bs=1M", "--size=64M", "--direct=1")
        yield file
    finally:
        rig.run("umount", "-l", MOUNT, check=False)
        rig.run("umount", "-l", "/mnt", check=False)


@contextmanager
def loads(*commands):
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
    try:
        yield
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait()


def fio(file, rates, *options):
    return ["fio", "--name=load", f"--filename={file}", "--rw=randrw", "--bs=4k", "--size=64M", "--direct=1",
            "--ioengine=psync", "--time_based", "--runtime=3600", f"--rate_iops={rates}", "--rate_process=poisson", "--numjobs=3", "--thread",
            *options]


@contextmanager
def database_host(state):
    """(the slow disk, how to tell it what to do, the cgroup that trims, the daemon), under load."""
    with controlled_disk(state, HEALTHY, 1 << 30, "keep=1") as (slow, tell), file_system(slow) as table, \
            rig.ram_disks(state, 2, "64M") as (busy, idle), \
            cgroups.named("system.slice/database.service", "system.slice/fstrim.service") as (database, trimmer), \
            rig.daemon(state, [slow, busy, idle]) as daemon, \
            loads(database.command(fio(table, "60,20", "--fsync=10")), fio(busy.path, "120,40")):
        yield slow, tell, trimmer, daemon


def trimming(trimmer):
    fstrim = threading.Thread(target=subprocess.run, args=(trimmer.command(["fstrim", MOUNT]),))
    fstrim.start()
    return fstrim


def quiet_views(chrome, served, slow, seconds):
    """A volume, which is made up as this host may have no device-mapper, and a tenant."""
    served.show("as it is", "fitting volumes")
    for name, view in (("volume", "volume/dm-1"), ("tenant", "tenant/database.service")):
        chrome.size(WIDTHS[name], HEIGHT)
        chrome.run("location.hash = arguments[0]", f"#/{view}?on={slow.name}&range={seconds}")
        chrome.wait(lambda: chrome.find("[data-subject] .facts li") and chrome.run("return document.querySelector('#heatmap')?.dataset.until"), 60)
        time.sleep(8)  # figures of a tenant need two answers
        yield name, shot(chrome, name, ".chart.wide details")
    served.show("as it is")
    chrome.run("location.hash = '#/'")
    chrome.size(WIDTHS["overview"], HEIGHT)


def take(state, before, wanted):
    """{name: PNG}."""
    with database_host(state) as (slow, _, trimmer, daemon), pages(daemon.port) as served, browser(WIDTHS["overview"], HEIGHT) as chrome:
        chrome.driver.get(f"http://127.0.0.1:{served.port}/")
        time.sleep(before)
        pictures = {}
        if not wanted or wanted & {"volume", "tenant"}:
            pictures = dict(quiet_views(chrome, served, slow, 60 if before < 240 else 300))
        if wanted and wanted <= pictures.keys():
            return pictures
        fstrim = trimming(trimmer)
        found = chrome.wait(lambda: chrome.find(f"tr[data-device={slow.name}][data-state=slow]"), 30)
        if not found:
            sys.exit("the disk never became slow")
        time.sleep(4)
        overview = shot(chrome, "overview", ".scroll")
        chrome.size(WIDTHS["device"], HEIGHT)
        chrome.run("location.hash = arguments[0]", f"#/device/{slow.name}?range={60 if before < 240 else 300}")
        time.sleep(4)
        device = shot(chrome, "device", ".marks")
        fstrim.join()
        return {**pictures, "overview": overview, "device": device}


def views_of(slow):
    """{name: fragment} of each kind of view."""
    drive = f"device/{slow.name}"
    return {"overview": "", "drive": drive, "day": f"{drive}?range=86400", "volume": "volume/dm-1", "file-system": "mount/%2Fmnt%2Fdatabase",
            "tenant": "tenant/database.service"}


def every_size(chrome, directory, name):
    """Takes what is shown in every width and theme; returns what is wrong with it."""
    wrong = []
    for width in MATRIX_WIDTHS:
        for theme in ("light", "dark"):
            chrome.size(width, 900, dark=theme == "dark")
            time.sleep(0.7)
            wide, tall = chrome.run("const page = document.scrollingElement; return [page.scrollWidth, page.scrollHeight]")
            clip = {"x": 0, "y": 0, "width": width, "height": min(tall, MATRIX_HEIGHT), "scale": 1}
            answer = chrome.driver.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
            (directory / f"{name}-{width}-{theme}.png").write_bytes(base64.b64decode(answer["data"]))
            wrong += [f"{name} at {width} pixels: {wide} wide"] if wide > width else []
    return wrong


def take_matrix(state, before, directory):
    """Returns what is wrong."""
    wrong = []
    with database_host(state) as (slow, tell, trimmer, daemon), pages(daemon.port) as served, browser() as chrome:
        views = views_of(slow)

        def take_state(name, state, wanted, seconds=4):
            served.show(state, "volumes")
            for view in wanted:
                chrome.driver.get("about:blank")
                chrome.driver.get(f"http://127.0.0.1:{served.port}/#/{views[view]}")
                time.sleep(seconds)
                wrong.extend(every_size(chrome, directory, f"{name}-{view}"))
                wrong.extend(f"{name}-{view}: {one}" for one in chrome.console() if "willReadFrequently" not in one and " 40" not in one)

        time.sleep(before)
        take_state("healthy", "as it is", views)
        for state in ("64 drives", "losses", "denied"):
            take_state(state.replace(" ", "-"), state, ["overview"])
        take_state("empty", "empty", ["overview", "drive", "day"])
        take_state("stale", "stale", ["overview", "drive"], 14)
        tell({**HEALTHY, "trim": 6})  # long enough for all of them
        fstrim = trimming(trimmer)
        time.sleep(10)
        take_state("ill", "as it is", views)
        tell({**HEALTHY, "trim": 0.01})
        fstrim.join()
    files = sorted(path.name for path in directory.glob("*.png"))
    (directory / "index.html").write_text("".join(f"<figure><figcaption>{name}</figcaption><img loading=lazy src='{name}'></figure>\n" for name in files))
    return wrong


def main():
    matrix = "--matrix" in sys.argv[1:]
    arguments = [one for one in sys.argv[1:] if one != "--matrix"]
    if not arguments or set(arguments[2:]) - WIDTHS.keys() or os.geteuid() != 0:
        sys.exit(__doc__)
    if "SSDPULSE_PICTURES" not in os.environ:  # run again in a mount namespace of our own
        os.environ["SSDPULSE_PICTURES"] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv])
    directory = Path(arguments[0])
    directory.mkdir(parents=True, exist_ok=True)
    before = int(arguments[1]) if len(arguments) > 1 else 240
    with rig.state_directory() as state:
        if matrix:
            wrong = take_matrix(state, before, directory)
            print(*wrong, sep="\n")
            sys.exit(bool(wrong))
        wanted = set(arguments[2:])
        pictures = take(state, before, wanted)
    if not all([write(directory, name, data) for name, data in pictures.items() if not wanted or name in wanted]):
        sys.exit(f"a picture is larger than {MOST_BYTES} bytes")


main()
