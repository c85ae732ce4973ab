#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Does each sabotage still apply? A row whose line is gone from the code breaks nothing, and so proves nothing.

Only that it would change exactly one line, by the runner's own rule; the level `mutate` checks whether a test notices.
"""
import os
import sys
from pathlib import Path

ROOT = Path(os.environ.get("SSDPULSE_SOURCE") or Path(__file__).resolve().parents[2])
sys.path.insert(0, str(ROOT / "tests/runner"))
sys.dont_write_bytecode = True

import sabotages  # noqa: E402


def why_it_does_not_apply(sabotage):
    """In words; empty if it does."""
    file = ROOT / sabotage.file
    if not file.is_file():
        return f"there is no {sabotage.file}"
    text = file.read_text("utf-8")
    for edit in sabotage.edits:
        text, why = sabotages.edited(text, edit)
        if why:
            return f"{sabotage.file}: {why}"
    return ""


def main():
    rows = sabotages.load(ROOT)
    names = [sabotage.name for sabotage in rows]
    flaws = [f"{sabotage.area}: {sabotage.name}: {words}" for sabotage in rows if (words := why_it_does_not_apply(sabotage))]
    flaws += [f"two sabotages are called {name}" for name in sorted(set(names)) if names.count(name) > 1]
    for words in flaws:
        print(f"FAIL: {words}")
    print(f"{len(rows)} sabotages")
    sys.exit(1 if flaws or not rows else 0)


main()
