#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Is the list of what to touch (deploy/docs/contributing.md) true, for every key and every cause that there is?

Each file that the list names exists. For a configuration key and for a cause of latency spikes, each of them has every
key or cause, so nobody who follows the list is surprised by another; and no other source keeps a list of causes. No
table of constants is sized by a count kept by hand, by which a missing entry would become an empty one.
"""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(os.environ.get("SSDPULSE_SOURCE") or Path(__file__).resolve().parents[2])
DOCUMENT = "deploy/docs/contributing.md"
GENERATED = "`SSDPULSE_TEST_GOLDEN=write"  # what follows in a row is written by a test
MOST_BY_HAND = {"a configuration key": 4, "a cause of latency spikes": 6}  # besides whoever obeys the key
PATH = re.compile(r"(?:daemon|exporters|deploy|tests|bpf)/[\w./-]+|CMakeLists\.txt|CHANGELOG\.md")
# Of causes; the others' names are also those of operations and of much else.
DISTINCTIVE = ("gc", "saturation", "thermal")
# The table of evidence: what each measurement speaks for. A cause needs none of its own.
MAY_NAME_CAUSES = {"daemon/live/evidence_words.cpp"}
HAND_COUNTED = re.compile(r"constexpr std::array<[^;{}]*, *\w[\w:]*> +k\w+ *[{=]")
failures = []


def expect(true, what):
    if not true:
        print("FAIL: " + what)
        failures.append(what)


def text(path):
    return (ROOT / path).read_text(encoding="utf-8")


def rows():
    """What somebody wants to add -> what the list says to touch."""
    return dict(re.findall(r"(?m)^\| (an? [^|]+|something [^|]+|firmware [^|]+) \| (.+) \|$", text(DOCUMENT)))


def files_in(cell):
    return [token for token in re.findall(r"`([^`]+)`", cell) if PATH.fullmatch(token) and "TOPIC" not in token]


def sources():
    listed = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "daemon", "exporters", "deploy/grafana/source"], check=True,
                            capture_output=True, text=True, cwd=ROOT).stdout.split()
    return [path for path in listed if path.endswith((".h", ".cpp", ".js", ".py", ".json")) and (ROOT / path).exists()]


def by_hand(cells, what):
    expect(what in cells, f"{DOCUMENT} has no row for {what}")
    files = files_in(cells.get(what, "").partition(GENERATED)[0])
    expect(0 < len(files) <= MOST_BY_HAND[what], f"{what}: {len(files)} files by hand ({', '.join(files)})")
    return files


def keys(cells):
    files = by_hand(cells, "a configuration key")
    table = re.findall(r'key\("(\w+)",\s*"(\w+)",\s*&Config::\w+,\s*&\w+::(\w+)', text("daemon/config/keys.cpp"))
    schema = json.loads(text("deploy/config/schema.json"))["properties"]
    expect(len(table) == sum(len(section["properties"]) for section in schema.values()), "the table of keys and the schema have different keys")
    fields, values, manual = text("daemon/config/config.h"), text("tests/unit/config_test.cpp"), text("deploy/man/ssdpulse.yaml.5")
    users = "".join(text(path) for path in sources() if path.endswith(".cpp") and not path.startswith("daemon/config/"))
    for section, name, field in table:
        expect(re.search(rf"\b{field}(\{{\}})?;", fields), f"daemon/config/config.h has no field for {section}.{name}")
        expect(re.search(rf"\b{name}\b", values), f"tests/unit/config_test.cpp has no value of {section}.{name}")
        expect(re.search(rf"(\.|->){field}\b", users), f"nothing obeys {section}.{name}")
        expect(name in schema.get(section, {}).get("properties", {}), f"the schema has no {section}.{name}")
        expect(f"\n.It Cm {section}.{name}" in manual, f"the manual has no {section}.{name}")
    for path in ("daemon/config/keys.cpp", "daemon/config/config.h", "daemon/runtime/daemon.cpp", "tests/unit/config_test.cpp"):
        expect(path in files, f"{DOCUMENT} says that a key needs {path}")
    return len(table)


def causes(cells):
    files = by_hand(cells, "a cause of latency spikes")
    entries = re.findall(r"\.cause = SpikeCause::(\w+),\s*\.name = \"(\w+)\"", text("daemon/model/spike_cause.h"))
    script = text("exporters/page/assets/causes.js")
    for value, name in entries:
        for path in files:
            if path.endswith((".h", ".cpp", ".py")):
                expect(re.search(rf"SpikeCause::{value}\b|\"{name}\"", text(path)), f"{path} lacks the cause {name}")
        expect(f'\n  "{name}": ' in script, f"the page has no cause {name}")
        expect(f"\n| `{name}` |" in text("deploy/docs/causes.md"), f"causes.md has no cause {name}")
    generated = set(files_in(cells.get("a cause of latency spikes", "").partition(GENERATED)[2].partition("`")[2]))
    for path in sources():
        words = text(path)
        if path not in MAY_NAME_CAUSES | generated | set(files):
            named = [name for name in DISTINCTIVE if re.search(rf"SpikeCause::{name}\b|[\"'`]{name}[\"'`]", words)]
            expect(len(named) < len(DISTINCTIVE), f"{path} keeps a list of causes: take it from daemon/model/spike_cause.h")
    return len(entries)


def counts_by_hand():
    for path in sources():
        for found in HAND_COUNTED.findall(text(path)) if path.endswith((".h", ".cpp")) else ():
            expect(False, f"{path}: {found} ...: use util::names or std::to_array, which need no count")


def main():
    cells = rows()
    for what, cell in cells.items():
        for path in files_in(cell):
            expect((ROOT / path).exists(), f"{DOCUMENT}, {what}: there is no {path}")
    done = keys(cells), causes(cells)
    counts_by_hand()
    if failures:
        sys.exit(f"FAIL: {len(failures)} of these do not hold; the first: {failures[0]}")
    print(f"{len(cells)} rows, {done[0]} keys, {done[1]} causes")
    if min(len(cells), *done) < 8:
        sys.exit("FAIL: too little was found to check")


main()
