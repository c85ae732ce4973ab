#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Does each sabotage still apply? A row whose line is gone from the code breaks nothing, and so proves nothing.

Only that it would change exactly one line, as the runner requires; the level `mutate` checks whether a test notices.
"""
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(os.environ.get("SSDPULSE_SOURCE") or Path(__file__).resolve().parents[2])
sys.path.insert(0, str(ROOT / "tests/runner"))
sys.dont_write_bytecode = True

import sabotages  # noqa: E402


def flaw(sabotage):
    """The flaw in words; empty if there is none."""
    file = ROOT / sabotage.file
    if not file.is_file():
        return f"there is no {sabotage.file}"
    text = file.read_text("utf-8")
    for edit in sabotage.edits:
        done = subprocess.run(["sed", edit], input=text, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return done.stderr.strip()
        if changed_lines(text, done.stdout) != 1:
            return f"does not change exactly one line of {sabotage.file}: {edit}"
        text = done.stdout
    return ""


def changed_lines(before, after):
    before, after = before.splitlines(), after.splitlines()
    if len(before) != len(after):  # a line was removed or split in two
        return 1 if len(before) - len(after) in (1, -1) else 2
    return sum(old != new for old, new in zip(before, after))


def main():
    rows = sabotages.load(ROOT)
    names = [sabotage.name for sabotage in rows]
    flaws = [f"{sabotage.area}: {sabotage.name}: {words}" for sabotage in rows if (words := flaw(sabotage))]
    flaws += [f"two sabotages are called {name}" for name in sorted(set(names)) if names.count(name) > 1]
    for words in flaws:
        print(f"FAIL: {words}")
    print(f"{len(rows)} sabotages")
    sys.exit(1 if flaws or not rows else 0)


main()
