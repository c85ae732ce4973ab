#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Is the list of what to touch (deploy/docs/contributing.md) true, for everything of that kind that there is?

Each file that the list names exists, and there are as many as it says. Every configuration key, cause of latency spikes,
log page, field of the API and check of the doctor is in each of its files, so nobody who follows the list is surprised by
another; and no other source keeps a list of causes, pages, fields or checks. No table of constants is sized by a count
kept by hand, by which a missing entry would become an empty one.
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
# Besides whoever obeys the key or reads the value.
MAX_BY_HAND = {"a metric": 3, "a configuration key": 4, "a cause of latency spikes": 6, "a log page of a vendor": 7,
               "a field of the API": 5, "a check of `ssdpulse doctor`": 2, "a rule of `ssdpulse audit`": 3}
PATH = re.compile(r"(?:daemon|exporters|deploy|tests|bpf)/[\w./-]+|CMakeLists\.txt|CHANGELOG\.md")
PLACEHOLDER = re.compile(r"[A-Z]{2,}")  # families_TOPIC.cpp
# Of causes; the others' names are also those of operations and of much else.
DISTINCTIVE = ("gc", "saturation", "thermal")
# The table of evidence: what each measurement speaks for. A cause needs none of its own.
MAY_NAME_CAUSES = {"daemon/spikes/spike_words.cpp"}
HAND_COUNTED = re.compile(r"constexpr std::array<[^;{}]*, *\w[\w:]*> +k\w+ *[{=]")
failures = []


def expect(true, what):
    if not true:
        print("FAIL: " + what)
        failures.append(what)


def text(path):
    return (ROOT / path).read_text(encoding="utf-8")


def rows():
    """What somebody wants to add -> how many files the list says, and which."""
    found = re.findall(r"(?m)^\| (an? [^|]+|something [^|]+|firmware [^|]+|text [^|]+) \| ?(\d*) ?\| (.+) \|$", text(DOCUMENT))
    return {what: (int(number or 0), cell) for what, number, cell in found}


def files_in(cell):
    return [token for token in re.findall(r"`([^`]+)`", cell) if PATH.fullmatch(token)]


def sources():
    listed = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "daemon", "exporters", "deploy/grafana/source"], check=True,
                            capture_output=True, text=True, cwd=ROOT).stdout.split()
    return [path for path in listed if path.endswith((".h", ".cpp", ".js", ".py", ".json")) and (ROOT / path).exists()]


def by_hand(cells, what):
    number, cell = cells.get(what, (0, ""))
    files = files_in(cell.partition(GENERATED)[0])
    expect(0 < number == len(files) <= MAX_BY_HAND[what], f"{what}: {number} files, and these: {', '.join(files)}")
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
                expect(re.search(rf"SpikeCause::{value}\b|\"{name}\"|, {value}, -1\)", text(path)), f"{path} lacks the cause {name}")
        expect(f'\n  "{name}": ' in script, f"the page has no cause {name}")
        expect(f"\n| `{name}` |" in text("deploy/docs/causes.md"), f"causes.md has no cause {name}")
    generated = set(files_in(cells["a cause of latency spikes"][1].partition(GENERATED)[2].partition("`")[2]))
    for path in sources():
        words = text(path)
        if path not in MAY_NAME_CAUSES | generated | set(files):
            named = [name for name in DISTINCTIVE if re.search(rf"SpikeCause::{name}\b|[\"'`]{name}[\"'`]", words)]
            expect(len(named) < len(DISTINCTIVE), f"{path} keeps a list of causes: take it from daemon/model/spike_cause.h")
    return len(entries)


def log_pages(cells):
    files = by_hand(cells, "a log page of a vendor")
    listed = re.findall(r"  page\(k(\w+)\)", text("daemon/nvme_pages/log_page.cpp"))
    decoders = {path: text(path) for path in sources() if path.startswith("daemon/nvme_pages/")}
    defined = re.findall(r"(?m)^(?:extern )?const LogPage k(\w+)", "".join(decoders.values()))
    expect(sorted(listed) == sorted(defined), f"log_page.cpp has other pages than are defined: {set(listed) ^ set(defined)}")
    names = re.findall(r'(?:\.name = |_page\(\s*)"(\w+)"', "".join(decoders.values()))
    registered = re.findall(r'(?m)^    \("(\w+)", (?:command|of_groups)\(', text("tests/fixtures/nvme/registry.py"))
    expect(sorted(names) == sorted(registered), f"registry.py has other pages than are defined: {set(names) ^ set(registered)}")
    for path in subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "daemon", "exporters", "tests", "deploy"], check=True, capture_output=True, text=True, cwd=ROOT).stdout.split():
        # The files of the decoders may define several pages each.
        if path.endswith((".h", ".cpp", ".py")) and path not in {*files, *decoders} and (ROOT / path).exists():
            named = [name for name in names if f'"{name}"' in text(path)]
            expect(len(named) < 9, f"{path} keeps a list of log pages: iterate over nvme::log_pages()")
    return len(names)


def api_fields(cells):
    by_hand(cells, "a field of the API")
    schema = json.loads(text("exporters/page/assets/api.schema.json"))["$defs"]
    known = {name for definition in schema.values() for name in definition.get("properties", {})}
    fields = 0
    for path in sources():
        if re.fullmatch(r"exporters/page/\w+_json\.cpp", path):
            for table in re.findall(r"constexpr Field<[^\n]*\[\] = \{\n(.*?)\n\};", text(path), re.S):
                names = re.findall(r'(?m)^    \{"(\w+)",', table)
                fields += len(names)
                expect(set(names) <= known, f"the schema lacks fields of {path}: {sorted(set(names) - known)}")
    return fields


def checks(cells):
    files = by_hand(cells, "a check of `ssdpulse doctor`")
    ids = [name for path in sources() if re.fullmatch(r"daemon/advice/\w+_checks\.cpp", path)
           for name in re.findall(r'(?m)^    \{"([a-z0-9-]+)",', text(path))]
    tested = text("tests/unit/doctor_test.cpp")
    expect("tests/unit/doctor_test.cpp" in files, f"{DOCUMENT} says that a check needs a test")
    for name in ids:
        expect(f'"{name}"' in tested, f"tests/unit/doctor_test.cpp has no finding of {name}")
    return len(ids)


def counts_by_hand():
    for path in sources():
        for found in HAND_COUNTED.findall(text(path)) if path.endswith((".h", ".cpp")) else ():
            expect(False, f"{path}: {found} ...: use util::names or std::to_array, which need no count")


def main():
    cells = rows()
    for what, (_, cell) in cells.items():
        for path in files_in(cell):
            expect(PLACEHOLDER.search(path.rpartition("/")[2].partition(".")[0]) or (ROOT / path).exists(), f"{DOCUMENT}, {what}: there is no {path}")
    for what in ("a metric", "a rule of `ssdpulse audit`"):
        by_hand(cells, what)
    found = {"keys": keys(cells), "causes": causes(cells), "log pages": log_pages(cells), "fields of the API": api_fields(cells),
             "checks": checks(cells)}
    counts_by_hand()
    if failures:
        sys.exit(f"FAIL: {len(failures)} of these do not hold; the first: {failures[0]}")
    print(f"{len(cells)} rows, " + ", ".join(f"{number} {what}" for what, number in found.items()))
    if min(len(cells), *found.values()) < 8 or found["fields of the API"] < 150:
        sys.exit("FAIL: too little was found to check")


main()
