# SPDX-License-Identifier: Apache-2.0
"""What does the kernel report about a process: memory, descriptors, privileges, and what it left behind?"""
import json
import re
import subprocess
import time
from contextlib import suppress
from pathlib import Path


def status(pid, field):
    """A field of /proc/PID/status, as text."""
    text = Path(f"/proc/{pid}/status").read_text()
    return re.search(rf"^{field}:\s*(.*)$", text, re.M)[1]


def rss_anon(pid):
    """Bytes of anonymous memory."""
    return int(status(pid, "RssAnon").split()[0]) * 1024


def rss(pid):
    """Bytes of memory, with what the process shares with others."""
    return int(status(pid, "VmRSS").split()[0]) * 1024


def open_fds(pid):
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def bpf_of(pid):
    """{(kind, id)} of the BPF programs, maps and links that the process holds."""
    held = set()
    with suppress(OSError):  # the process is gone, or we may not look into it
        for file in Path(f"/proc/{pid}/fdinfo").iterdir():
            with suppress(FileNotFoundError):  # closed since the listing
                for kind, number in re.findall(r"^(prog|map|link)_id:\s*(\d+)$", file.read_text(), re.M):
                    held.add((kind, int(number)))
    return held


def bpf_all():
    """The BPF objects that exist in the kernel."""
    present = set()
    for kind in ("prog", "map", "link"):
        done = subprocess.run(["bpftool", "--json", kind, "show"], capture_output=True, text=True, check=False)
        # An object that disappears during the listing is an error for bpftool, but the list is good.
        present |= {(kind, one["id"]) for one in json.loads(done.stdout or "[]") if "id" in one}
    return present


def bpf_left(candidates, seconds=3):
    """Which of these are still in the kernel? It removes them some time after their last user has gone."""
    deadline = time.monotonic() + seconds
    while True:
        left = candidates & bpf_all()
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.1)


def bpf_held_by_anybody():
    return set().union(*(bpf_of(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()))


def listening(port):
    """Is anything listening on this TCP port?"""
    sockets = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
    return any(int(match[1], 16) == port for match in re.finditer(r":([0-9A-F]{4}) [0-9A-F]+:0000 0A ", sockets))
