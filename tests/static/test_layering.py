#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does every include point in an allowed direction, and is every room in its namespace?

ROOMS lists which room may include which; there may be no cycles, and no room knows a sibling that is not listed.
The table of rooms is printed. Third-party headers: each library has rooms or files that may include it; a library that
is not listed here is an error, so that whoever adds one decides where it belongs. Tests may include anything. No two files
have the same name.
"""
import collections
import graphlib
import os
import re
import subprocess
import sys

# Room -> rooms, or single files of them, that it may include besides itself and those of BASE. From the bottom up.
BASE = ("bpf/abi", "daemon/base", "daemon/model")
ROOMS = {
    "bpf/abi": "",
    "bpf/kernel": "bpf/abi",
    "bpf/block": "bpf/abi bpf/kernel",
    "bpf": "bpf/abi bpf/kernel bpf/block",
    "daemon/base": "",
    "daemon/model": "bpf/abi daemon/base",
    "daemon/config": "",
    "daemon/nvme_pages": "",
    "daemon/nvme_reader": "daemon/nvme_pages",
    "daemon/host": "",
    "daemon/block": "",
    "daemon/nvme": "daemon/nvme_pages daemon/nvme_reader/reader_protocol.h daemon/nvme_reader/reader_process.h",
    "daemon/wear": "daemon/nvme_pages",
    "daemon/flash": "",
    "daemon/tenants": "",
    "daemon/discards": "",
    "daemon/volumes": "",
    "daemon/history": "",
    "daemon/spikes": "daemon/history/recent_past.h",
    "daemon/compare": "",
    "daemon/siblings": "daemon/compare",
    "daemon/advice": "daemon/config daemon/history/history_reader.h daemon/host",
    "exporters/coding": "",
    "exporters/words": "",  # texts for people, as headers made from JSON
    "exporters/prometheus": "exporters/coding",
    "exporters/terminal": "exporters/words",
    "exporters/page": "daemon/advice daemon/flash daemon/history/recent_past.h daemon/spikes exporters/coding exporters/terminal "
                      "exporters/words",
    "exporters/http": "",
    "exporters/report": "daemon/compare daemon/history/history_reader.h exporters/coding exporters/terminal "
                        "exporters/words",
    "daemon/serve": "daemon/advice daemon/config daemon/history/history_reader.h exporters/coding exporters/http exporters/page "
                   "exporters/prometheus exporters/report",
    "daemon/runtime": "daemon/* exporters/*",
    "daemon/cli": "daemon/* exporters/*",
    "deploy/release": "",  # what its libraries lack on hosts with an older glibc
    "daemon": "daemon/cli",  # the table of commands
}


def expand(room):
    """The rooms that it may include: `folder/*` stands for those of the folder that are listed before it."""
    names = list(ROOMS)
    before = names[:names.index(room)]
    allowed = [] if room.startswith(("bpf", "deploy")) else [base for base in BASE if names.index(base) < names.index(room)]
    for name in ROOMS[room].split():
        allowed += [one for one in before if one.startswith(name[:-1])] if name.endswith("*") else [name]
    return allowed


MAY_INCLUDE = {room: expand(room) for room in ROOMS}
# They may include everything, so what is not wiring has a room of its own.
MAX_FILES_OF_RUNTIME = 14

# A room's namespace is the name of its folder, except for these.
NAMESPACES = {
    "daemon/base": "util|log|service|confinement|sysfs",
    "daemon/nvme_pages": "nvme",
    "exporters/prometheus": "exposition",  # the library is called prometheus
}
NAMESPACE = re.compile(r"^namespace ssdpulse::([a-z_:]+) \{")

# Library -> rooms, or files, that may include it.
LIBRARIES = {
    r"bpf/(libbpf|bpf|btf)\.h|.*\.skel\.h": "daemon/block",
    r"bpf/bpf_\w+\.h": "bpf bpf/kernel bpf/block",
    r"yaml-cpp/.*": "daemon/config/yaml_document.cpp",
    r"gnutls/crypto\.h": "daemon/base exporters/http",
    r"microhttpd\.h|gnutls/(?!crypto).*|crypt\.h": "exporters/http",
    r"protozero/(varint|exception|buffer_string)\.hpp": "daemon/base/varints.cpp exporters/prometheus",
    r"prometheus/.*|protozero/(?!varint|exception|buffer_string).*": "exporters/prometheus",
    r"libdeflate\.h": "daemon/history/sqlite.cpp exporters/coding",
    r"nlohmann/.*": "daemon/base daemon/config daemon/advice daemon/cli exporters/prometheus exporters/page exporters/report exporters/terminal",
    r"curl/.*|dlfcn\.h|langinfo\.h": "daemon/cli",
    r"ncurses\.h": "exporters/terminal/curses_terminal.cpp",
    r"utf8\.h": "daemon/base daemon/config/yaml_document.cpp",
    r"libnvme\.h|nvme/.*": "daemon/nvme_reader",
    r"sqlite3\.h": "daemon/history",
    r"spdlog/.*": "daemon/base/log.cpp daemon/base/log_output.cpp",
    r"seccomp\.h|sys/capability\.h|systemd/.*": "daemon/base",
    r"CLI/.*": "daemon daemon/cli",
    r"tl/expected\.hpp": "daemon/base/result.h",
    r"fmt/.*": " ".join(ROOMS),  # text formatting, as common as std::string
}
# What the C++ library (no extension), libc and the kernel's user-space headers offer to everybody,
PURE = re.compile(r"(?!filesystem|fstream)[a-z_0-9]+|linux/types\.h|(errno|limits|std(def|int)|string|time)\.h")
# and what only those may use that talk to the operating system. All other files are pure: values in, values out.
SYSTEM = re.compile(
    r"filesystem|fstream|(linux|asm|arpa|net|netinet|sys)/.*"
    r"|(dirent|endian|fcntl|fnmatch|ftw|getopt|glob|grp|malloc|mntent|netdb|poll|pthread|pwd|sched|signal|spawn|stdlib|strings"
    r"|sysexits|syslog|termios|unistd)\.h"
)
USES_SYSTEM = re.compile(
    r"(daemon/(base|block|cli|config|history|host|nvme_reader|runtime|serve)|exporters/http|deploy/release|bpf)/.*"
    r"|daemon/advice/host_(checks|gaps)\.cpp|daemon/flash/(load_simulation|model_runner|model_set)\.cpp|daemon/nvme/(drive_monitor|reader_client)\.\w+"
    r"|daemon/tenants/(cgroup_paths|tenant_key)\.\w+|exporters/terminal/curses_terminal\.cpp"
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
        allowed = there == room or there in MAY_INCLUDE[room] or header in MAY_INCLUDE[room]
        return None if allowed else f"{room} may not include {there or 'a room ' + UNLISTED}"
    for pattern, rooms in LIBRARIES.items():
        if re.fullmatch(pattern, header):
            return None if {room, file} & set(rooms.split()) else f"only {rooms} may include this library"
    if PURE.fullmatch(header) or SYSTEM.fullmatch(header) and USES_SYSTEM.fullmatch(file):
        return None
    return "this file is pure, it uses nothing of the operating system" if SYSTEM.fullmatch(header) else f"this library is {UNLISTED}"


def in_wrong_namespace(room, namespace):
    return not re.fullmatch(NAMESPACES.get(room, room.split("/")[-1]), namespace)


def find_circle():
    """Rooms whose allowed includes lead back to themselves, or None."""
    arrows = {room: {there if there in ROOMS else room_of(there) for there in MAY_INCLUDE[room]} for room in ROOMS}
    try:
        graphlib.TopologicalSorter(arrows).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return None


def print_rooms(files, lines):
    print(f"{'ROOM':22}{'FILES':>6}{'LINES':>7}  MAY INCLUDE, BESIDES {' '.join(BASE)}")
    for room in ROOMS:
        print(f"{room:22}{files[room]:6}{lines[room]:7}  {ROOMS[room] or '-'}")


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
    if files["daemon/runtime"] > MAX_FILES_OF_RUNTIME:
        sys.exit(f"FAIL: daemon/runtime has {files['daemon/runtime']} sources: what is not wiring has a room of its own")
    if errors:
        sys.exit(f"FAIL: {errors} includes or namespaces are wrong")


main()
