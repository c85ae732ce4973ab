#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does every include point the allowed way?

Our own headers: util <- model <- {config, sources, analysis, exporters} <- runtime <- main, and no room knows a sibling.
Third-party headers: each library has one room that may include it; a library that is not listed here is an error, so
that whoever adds one decides where it lives. Tests may include anything.
"""
import os
import re
import subprocess
import sys

BASE = ["daemon/model", "daemon/util", "bpf/abi"]
# Room -> rooms it may include besides itself. A file belongs to the room with the longest matching path.
ROOMS = {
    "bpf/abi": [],
    "bpf/kernel": ["bpf/abi"],
    "bpf/block": ["bpf/abi", "bpf/kernel"],
    "bpf": ["bpf/abi", "bpf/kernel", "bpf/block"],
    "daemon/util": [],
    "daemon/model": ["daemon/util", "bpf/abi"],
    "daemon/config": BASE,
    "daemon/sources": BASE,  # what several sources share
    "daemon/sources/inventory": ["daemon/sources", *BASE],
    "daemon/sources/block": ["daemon/sources", *BASE],
    "daemon/sources/nvme": ["daemon/sources", "daemon/sources/nvme/pages", *BASE],
    "daemon/sources/nvme/pages": BASE,
    "daemon/analysis": BASE,
    "daemon/live": ["daemon/analysis", *BASE],
    "exporters": BASE,
    "exporters/coding": BASE,  # what several exporters share
    "exporters/prometheus": ["exporters/coding", *BASE],
    "exporters/page": ["exporters/coding", "daemon/live", *BASE],
    "exporters/http": ["daemon/util"],
    "exporters/terminal/top": ["daemon/util"],
    "daemon/client": ["daemon/config", "exporters/terminal/top", "daemon/util"],
}
ROOMS["daemon/runtime"] = [room for room in ROOMS if room == "bpf/abi" or not room.startswith("bpf")]
ROOMS["daemon"] = [*ROOMS["daemon/runtime"], "daemon/runtime"]  # main and the command line

LIBRARIES = {
    r"bpf/(libbpf|bpf|btf)\.h|.*\.skel\.h": ["daemon/sources/block"],
    r"bpf/bpf_\w+\.h": ["bpf", "bpf/kernel", "bpf/block"],
    r"yaml-cpp/.*": ["daemon/config"],
    r"microhttpd\.h|gnutls/.*|crypt\.h": ["exporters/http"],
    r"prometheus/.*|protozero/.*": ["exporters/prometheus"],
    r"libdeflate\.h": ["exporters/coding"],
    r"nlohmann/.*": ["exporters/page", "exporters/terminal/top", "daemon/client"],
    r"curl/.*|dlfcn\.h|langinfo\.h": ["daemon/client"],
    r"ncurses\.h": ["exporters/terminal/top"],
    r"utf8\.h": ["exporters/prometheus", "exporters/page", "daemon/config"],
    r"libnvme\.h|nvme/.*": ["daemon/sources/nvme"],
    r"sqlite3\.h": ["daemon/runtime"],
    r"spdlog/.*|seccomp\.h": ["daemon/util"],
    r"CLI/.*": ["daemon"],
    r"tl/expected\.hpp": ["daemon/util"],
    r"sys/capability\.h|systemd/.*": ["daemon/runtime"],
    r"fmt/.*": list(ROOMS),  # text formatting, as common as std::string
}
# What the C++ library (no extension), libc and the kernel's user-space headers offer.
SYSTEM = re.compile(
    r"[a-z_0-9]+|(linux|asm|arpa|net|netinet|sys)/.*"
    r"|(dirent|endian|errno|fcntl|fnmatch|ftw|getopt|glob|grp|limits|malloc|mntent|netdb|poll|pthread|pwd|sched|signal|spawn"
    r"|stdint|string|strings|sysexits|syslog|termios|time|unistd)\.h"
)
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
UNLISTED = "not listed in tests/static/test_layering.py"


def room_of(path):
    return max((room for room in ROOMS if path.startswith(room + "/")), key=len, default=None)


def find_error(file, header, known):
    """What is wrong with this include, or None."""
    room = room_of(file)
    if room is None:
        return f"the room of this file is {UNLISTED}"
    # BPF sources are compiled with bpf/ in the path and include their neighbours by name.
    neighbours = [os.path.normpath(f"{os.path.dirname(file)}/{header}"), f"bpf/{header}"]
    if room_of(header) is None and (own := next((path for path in neighbours if path in known), None)):
        if not room.startswith("bpf"):
            return "write the path from the root"
        header = own
    if header.split("/")[0] == "tests":
        return "only tests include tests"
    if header in known or header.startswith(("daemon/", "exporters/")):
        there = room_of(header)
        return None if there in (room, *ROOMS[room]) else f"{room} may not include {there or 'a room ' + UNLISTED}"
    for pattern, rooms in LIBRARIES.items():
        if re.fullmatch(pattern, header):
            return None if room in rooms else f"only {' and '.join(rooms)} may include this library"
    return None if SYSTEM.fullmatch(header) else f"this library is {UNLISTED}"


def main():
    command = ["tests/lib/sources.sh", "*.h", "*.c", "*.cpp"]
    files = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    checked = errors = 0
    for file in files:
        if file.startswith("tests/"):
            continue
        with open(file, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if match := INCLUDE.match(line):
                    checked += 1
                    if error := find_error(file, match[1], set(files)):
                        print(f"{file}:{number}: {match[1]}: {error}")
                        errors += 1
    print(f"{checked} includes")
    if errors:
        sys.exit(f"FAIL: {errors} includes point the wrong way")


main()
