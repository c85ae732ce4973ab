#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does each promise of the security page name a test that exists?

The last section of the page is a table: words of the page that make a promise, and the tests that attack it. Each
paragraph, list item and table row above it needs a row there, or is listed below with why it promises nothing.
"""
import os
import re
import sys
from pathlib import Path

ROOT = Path(os.environ.get("SSDPULSE_SOURCE") or Path(__file__).resolve().parents[2])
PAGE = ROOT / "deploy/docs/security.md"
TABLE = "## Which test attacks what"

# The beginning of each block that promises nothing about the program.
PROMISE_NOTHING = {
    "Not defended against": "says what is not promised",
    "To report a vulnerability": "how to report",
    "We removed each privilege": "introduces a table",
    "Once the last program": "introduces a list",
    "What remains": "says what is left",
    "What no filter can check": "says what is left",
    "The units bound": "introduces a table",
    "On a host with more drives": "advice",
    "Tested in guests": "introduces a table",
    "What others can name or cause": "introduces a table",
}


def blocks(text):
    """Paragraphs, list items and table rows; each with its lines joined."""
    for part in re.split(r"\n\s*\n", text):
        lines = [line for line in part.split("\n") if line and not line.startswith("#")]
        if not lines:
            continue
        if lines[0].startswith("|"):
            yield from lines[2:]  # without the head
        else:
            yield from (" ".join(item.split()) for item in re.split(r"\n(?=- )", "\n".join(lines)))


def exists(test):
    level, _, name = test.partition(".")
    if level == "unit":
        return (ROOT / f"tests/unit/{name}.cpp").exists() and f"ssdpulse_unit_test({name} " in (ROOT / "tests/unit/CMakeLists.txt").read_text("utf-8")
    if level == "vm":
        return (ROOT / f"tests/vm/scenarios/{name}.py").exists()
    if level == "fuzz":
        return any((ROOT / "tests/fuzz").glob(f"{name}.*"))
    if level == "guest":
        return (ROOT / f"tests/package/lib/{name}.py").exists()
    if level == "faults":  # of package.test_debian_12, in its long form
        return f"\ndef {name}(" in (ROOT / "tests/package/lib/faults.py").read_text("utf-8")
    return any((ROOT / "tests" / level / f"{name}.{suffix}").exists() for suffix in ("py", "sh"))


def flaws():
    page, _, table = PAGE.read_text("utf-8").partition(TABLE)
    if not table:
        yield f"{PAGE.name}: no section \"{TABLE}\""
        return
    promises = list(blocks(page))
    rows = [[cell.strip() for cell in row.strip("|").split(" | ")] for row in blocks(table) if row.startswith("|")]
    quotes = []
    for row in rows:
        quotes.append(row[0])
        said = sum(row[0] in " ".join(block.split()) for block in promises)
        if said != 1:
            yield f"the page has {said} promises of these words, not one: {row[0]}"
        tests = re.findall(r"`([\w.]+)`", row[-1])
        if not tests:
            yield f"names no test: {row[0]}"
        for test in tests:
            if not exists(test):
                yield f"no such test: {test} (of: {row[0]})"
    for block in promises:
        promised = any(quote in " ".join(block.split()) for quote in quotes)
        exempt = [begin for begin in PROMISE_NOTHING if block.startswith(begin)]
        if promised and exempt:
            yield f"is said to promise nothing, and has a test: {block[:60]}"
        if not promised and not exempt:
            yield f"a promise without a test: {block[:120]}"
    for begin in PROMISE_NOTHING:
        if not any(block.startswith(begin) for block in promises):
            yield f"nothing begins so any more: {begin}"


def main():
    found = list(flaws())
    for flaw in found:
        print(f"FAIL: {flaw}")
    sys.exit(1 if found else 0)


main()
