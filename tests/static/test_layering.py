#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does every include point in an allowed direction, and is every room in its namespace?

ROOMS lists which room may include which; there may be no cycles, and no room knows a sibling that is not listed.
The table of rooms is printed. Third-party headers: each library has one room that may include it; a library that is
not listed here is an error, so that whoever adds one decides where it belongs. Tests may include anything.
"""
import collections
import graphlib
import os
import re
import subprocess
import sys

BASE = ["daemon/model", "daemon/util", "bpf/abi"]
# Room -> rooms it may include besides itself, or single files of them. A file belongs to the room with the longest
# matching path.
ROOMS = {
    "bpf/abi": [],
    "bpf/kernel": ["bpf/abi"],
    "bpf/block": ["bpf/abi", "bpf/kernel"],
    "bpf": ["bpf/abi", "bpf/kernel", "bpf/block"],
    "daemon/util": [],
    "daemon/model": ["daemon/util", "bpf/abi"],
    "daemon/config": BASE,
    "daemon/confinement": ["daemon/util"],
    "daemon/sources": BASE,  # what several sources share
    "daemon/sources/inventory": ["daemon/sources", *BASE],
    "daemon/sources/block": ["daemon/sources", *BASE],
    "daemon/sources/cgroups": ["daemon/sources", *BASE],
    "daemon/sources/host": ["daemon/sources", *BASE],
    "daemon/sources/process": BASE,
    "daemon/sources/probe": ["daemon/sources", *BASE],
    "daemon/sources/settings": ["daemon/sources", *BASE],
    "daemon/sources/nvme/pages": BASE,
    "daemon/nvme_reader": ["daemon/confinement", "daemon/sources/nvme/pages", "daemon/util"],
    "daemon/sources/nvme": ["daemon/nvme_reader/protocol.h", "daemon/sources", "daemon/sources/nvme/pages", *BASE],
    "daemon/analysis": ["daemon/sources/nvme/pages", *BASE],
    "daemon/analysis/comparison": BASE,
    "daemon/history": BASE,
    "daemon/drives": ["daemon/analysis", "daemon/sources/nvme", "daemon/sources/nvme/pages", *BASE],
    "daemon/stages": ["daemon/analysis", "daemon/history/rows.h", *BASE],
    "daemon/flash": ["daemon/analysis", "daemon/stages/tick.h", *BASE],
    "daemon/live": ["daemon/analysis", *BASE],
    "daemon/doctor": BASE,
    "daemon/audit": BASE,
    "daemon/audit/gathering": ["daemon/audit", "daemon/history/reader.h", *BASE],
    "daemon/service": ["daemon/util"],
    "exporters/coding": BASE,  # what several exporters share
    "exporters/prometheus": ["exporters/coding", *BASE],
    "exporters/findings": ["exporters/terminal", *BASE],
    "exporters/page": ["exporters/coding", "exporters/findings", "daemon/doctor", "daemon/live", *BASE],
    "exporters/http": ["daemon/util"],
    "exporters/terminal": BASE,
    "exporters/terminal/top": ["daemon/util"],
    "exporters/report": ["daemon/analysis/comparison", "exporters/coding", "exporters/terminal", *BASE],
    "daemon/web": ["daemon/audit", "daemon/config", "daemon/history/reader.h", "daemon/service", "exporters/coding", "exporters/http",
                   "exporters/page", *BASE],
    "daemon/client": ["daemon/analysis/comparison", "daemon/audit", "daemon/audit/gathering", "daemon/config", "daemon/doctor", "daemon/history/file_tools.h", "daemon/history/reader.h",
                      "daemon/sources/host", "daemon/sources/inventory", "daemon/sources/probe", "daemon/sources/settings", "exporters/coding", "exporters/findings",
                      "exporters/page", "exporters/report", "exporters/terminal/table.h", "exporters/terminal/top", *BASE],
}
ROOMS["daemon/runtime"] = [room for room in ROOMS if room == "bpf/abi" or not room.startswith("bpf")]
ROOMS["daemon/runtime"].remove("daemon/nvme_reader")
ROOMS["daemon/simulation"] = ["daemon/analysis", "exporters/terminal", *BASE]
ROOMS["daemon/commands"] = [*ROOMS["daemon/runtime"], "daemon/runtime", "daemon/simulation", "daemon/nvme_reader/process.h"]
ROOMS["deploy/release"] = []  # what its libraries lack on hosts with an older glibc
ROOMS["daemon"] = ["daemon/commands", *BASE]  # the table of commands

# It may include everything, so it stays small.
MOST_FILES_OF_RUNTIME = 14

# A room's namespace is the name of its folder, except for these.
NAMESPACES = {
    "daemon/sources": "sources::sysfs",
    "daemon/sources/nvme/pages": "nvme",
    "daemon/analysis/comparison": "analysis::comparison",
    "exporters/prometheus": "exposition",  # the library is called prometheus
    "daemon/util": "util|log",
}
NAMESPACE = re.compile(r"^namespace ssdpulse::([a-z_:]+) \{")

LIBRARIES = {
    r"bpf/(libbpf|bpf|btf)\.h|.*\.skel\.h": ["daemon/sources/block"],
    r"bpf/bpf_\w+\.h": ["bpf", "bpf/kernel", "bpf/block"],
    r"yaml-cpp/.*": ["daemon/config"],
    r"gnutls/crypto\.h": ["daemon/util", "exporters/http"],
    r"microhttpd\.h|gnutls/(?!crypto).*|crypt\.h": ["exporters/http"],
    r"protozero/(varint|exception|buffer_string)\.hpp": ["daemon/util", "exporters/prometheus"],
    r"prometheus/.*|protozero/(?!varint|exception|buffer_string).*": ["exporters/prometheus"],
    r"libdeflate\.h": ["daemon/history", "exporters/coding"],
    r"nlohmann/.*": ["daemon/util", "daemon/config", "daemon/audit", "exporters/prometheus", "exporters/findings", "exporters/page", "exporters/report",
                     "exporters/terminal", "exporters/terminal/top", "daemon/client"],
    r"curl/.*|dlfcn\.h|langinfo\.h": ["daemon/client"],
    r"ncurses\.h": ["exporters/terminal/top"],
    r"utf8\.h": ["daemon/util", "daemon/config"],
    r"libnvme\.h|nvme/.*": ["daemon/nvme_reader"],
    r"sqlite3\.h": ["daemon/history"],
    r"spdlog/.*|seccomp\.h": ["daemon/util"],
    r"CLI/.*": ["daemon", "daemon/commands"],
    r"tl/expected\.hpp": ["daemon/util"],
    r"sys/capability\.h": ["daemon/confinement"],
    r"systemd/.*": ["daemon/service"],
    r"fmt/.*": list(ROOMS),  # text formatting, as common as std::string
}
# What the C++ library (no extension), libc and the kernel's user-space headers offer.
SYSTEM = re.compile(
    r"[a-z_0-9]+|(linux|asm|arpa|net|netinet|sys)/.*"
    r"|(dirent|endian|errno|fcntl|fnmatch|ftw|getopt|glob|grp|limits|malloc|mntent|netdb|poll|pthread|pwd|sched|signal|spawn"
    r"|std(def|int|lib)|string|strings|sysexits|syslog|termios|time|unistd)\.h"
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
        allowed = there == room or there in ROOMS[room] or header in ROOMS[room]
        return None if allowed else f"{room} may not include {there or 'a room ' + UNLISTED}"
    for pattern, rooms in LIBRARIES.items():
        if re.fullmatch(pattern, header):
            return None if room in rooms else f"only {' and '.join(rooms)} may include this library"
    return None if SYSTEM.fullmatch(header) else f"this library is {UNLISTED}"


def in_wrong_namespace(room, namespace):
    return not re.fullmatch(NAMESPACES.get(room, room.split("/")[-1]), namespace)


def find_circle():
    """Rooms whose allowed includes lead back to themselves, or None."""
    arrows = {room: {there if there in ROOMS else room_of(there) for there in ROOMS[room]} for room in ROOMS}
    try:
        graphlib.TopologicalSorter(arrows).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return None


def arrows_in_words(room):
    rooms = [there for there in ROOMS[room] if there not in BASE]
    return " ".join([*(["base"] if set(BASE) <= set(ROOMS[room]) else sorted(set(BASE) & set(ROOMS[room]))), *rooms])


def print_rooms(files, lines):
    """`base`: the model, util and the kernel side's ABI."""
    print(f"{'ROOM':28}{'FILES':>6}{'LINES':>7}  MAY INCLUDE")
    for room in ROOMS:
        print(f"{room:28}{files[room]:6}{lines[room]:7}  {arrows_in_words(room) or '-'}")


def main():
    command = ["tests/lib/sources.sh", "*.h", "*.c", "*.cpp"]
    sources = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    checked = errors = 0
    files, lines = collections.Counter(), collections.Counter()
    for file in sources:
        if file.startswith("tests/"):
            continue
        files[room_of(file)] += 1
        with open(file, encoding="utf-8") as text:
            for number, line in enumerate(text, 1):
                lines[room_of(file)] += 1
                if match := INCLUDE.match(line):
                    checked += 1
                    if error := find_error(file, match[1], set(sources)):
                        print(f"{file}:{number}: {match[1]}: {error}")
                        errors += 1
                if (match := NAMESPACE.match(line)) and in_wrong_namespace(room_of(file), match[1]):
                    print(f"{file}:{number}: {match[1]} is not the namespace of {room_of(file)}")
                    errors += 1
    print_rooms(files, lines)
    print(f"{checked} includes")
    if circle := find_circle():
        sys.exit(f"FAIL: rooms in a circle: {' -> '.join(circle)}")
    if files["daemon/runtime"] > MOST_FILES_OF_RUNTIME:
        sys.exit(f"FAIL: daemon/runtime has {files['daemon/runtime']} sources: what is not wiring has a room of its own")
    if errors:
        sys.exit(f"FAIL: {errors} includes or namespaces are wrong")


main()
