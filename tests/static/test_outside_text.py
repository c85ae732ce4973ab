#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the fuzzer of text from outside know all of it?

Its list of sources must be the members of daemon/model that are OutsideText, its list of sinks the functions that clean
for one. RAW lists who may ask for the bytes as they are: whoever compares them, takes them apart, looks something up by
them or opens a file. Nobody shows or stores them.
"""
import re
import sys
from pathlib import Path

# Sources of the fuzzer that are no members of the model.
OTHERS = {"a server's answer", "a field of a request"}
RAW = {
    "daemon/advice/array_rules.cpp": "a speed, of which for_shell() makes a word; numbers",
    "daemon/advice/audit.cpp": "patterns of accepted findings",
    "daemon/advice/device_evidence.cpp": "names of enumerators",
    "daemon/advice/doctor.cpp": "the name of a disk that was found",
    "daemon/advice/drive_rules.cpp": "patterns of bad firmware; numbers",
    "daemon/advice/host_rules.cpp": "a command line that is taken apart",
    "daemon/advice/rule.cpp": "udev's pattern, which is checked",
    "daemon/advice/trim_cost.cpp": "times, and names of file systems",
    "daemon/cli/audit_command.cpp": "statfs",
    "daemon/flash/flash_input.cpp": "keys, of which names of files are hashed",
    "daemon/history/database_file.cpp": "the schema, and a heading that is cut off",
    "daemon/history/device_rows.cpp": "the key of a row",
    "daemon/history/history.cpp": "lengths",
    "daemon/history/history_reader.h": "the key of a row",
    "daemon/history/past_reader.cpp": "keys of rows, and a number",
    "daemon/history/past_views.cpp": "keys of rows",
    "daemon/history/setting_changes.cpp": "options that become OutsideText",
    "daemon/history/sqlite.cpp": "names that are checked",
    "daemon/history/store.cpp": "the key of a row",
    "daemon/host/disks.cpp": "a serial number in an identifier",
    "daemon/host/filesystems.cpp": "where a swap file lies",
    "daemon/host/settings_record.cpp": "names and values that become OutsideText",
    "daemon/model/device_identity.h": "parts of a model",
    "daemon/model/device_title.cpp": "how deep a mount point is",
    "daemon/model/host_settings.h": "numbers, and the choice in brackets",
    "daemon/nvme/drive_monitor.cpp": "keys",
    "daemon/nvme/polled_drive.cpp": "keys",
    "daemon/nvme_pages/item_list_pages.cpp": "a model that is compared",
    "daemon/runtime/sampler.cpp": "statfs, and files of a cgroup",
    "daemon/spikes/host_waits.cpp": "keys, and which cgroup is below which; a key",
    "daemon/spikes/past_spikes.cpp": "evidence that is taken apart",
    "daemon/tenants/cgroup_paths.cpp": "a path that becomes OutsideText",
    "daemon/tenants/tenant_names.cpp": "patterns, and the path that is taken apart",
}
BLOCK = re.compile(r"^(?:struct|class) (\w+)[^;]*\{$")
MEMBER = re.compile(r"^ +[^(/]*util::OutsideText[> ,\w:]* (\w+)(?: = \{\})?(?:\{\})?;")
ALIAS = re.compile(r"^using (\w+) = .*util::OutsideText")


def members():
    """Struct.member of each text from outside in the model."""
    found = set()
    for header in sorted(Path("daemon/model").glob("*.h")):
        blocks = []
        for line in header.read_text("utf-8").splitlines():
            text = line.strip()
            if match := BLOCK.match(text):
                blocks.append(match[1])
            elif blocks and re.match(r"^ {%d}\};" % (2 * len(blocks) - 2), line):
                blocks.pop()
            elif match := ALIAS.match(text):
                found.add(match[1])
            elif blocks and (match := MEMBER.match(line)):
                found.add(f"{blocks[-1]}.{match[1]}")
    return found


def compare(what, known, there):
    return [f"{what} {name} is missing" for name in sorted(there - known)] + [
        f"{what} {name} does not exist" for name in sorted(known - there)]


def main():
    fuzzer = Path("tests/unit/outside_text_test.cpp").read_text("utf-8")
    header = Path("daemon/base/outside_text.h").read_text("utf-8")
    sources = set(re.findall(r'Source\{"([^"]+)"', fuzzer)) - OTHERS
    sinks = set(re.findall(r"^ +for_(\w+) = 1U", fuzzer, re.M))
    functions = set(re.findall(r"^std::\S+ for_(\w+)\(", header, re.M))
    users = {str(path) for room in ("daemon", "exporters") for path in Path(room).rglob("*")
             if path.suffix in (".h", ".cpp") and not str(path).startswith("daemon/base/outside_text.")
             and ".raw()" in path.read_text("utf-8")}
    errors = compare("in the fuzzer's sources,", sources, members()) + compare("in the fuzzer's sinks,", sinks, functions)
    errors += compare("in RAW,", set(RAW), users)
    print("\n".join(errors))
    print(f"{len(sources)} members, {len(functions)} sinks, {len(users)} files that ask for the bytes")
    if errors or not sources or not functions:
        sys.exit(f"FAIL: {len(errors)} entries of the lists are wrong")


main()
