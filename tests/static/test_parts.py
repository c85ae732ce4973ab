#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Does each test of the long tier have a part? One without a part runs only when somebody names it."""
import os
import sys
from pathlib import Path

ROOT = Path(os.environ.get("SSDPULSE_SOURCE") or Path(__file__).resolve().parents[2])
sys.path.insert(0, str(ROOT / "tests/runner"))
sys.dont_write_bytecode = True

from catalogue import LEVELS, Catalogue  # noqa: E402
from parts import PARTS, missing  # noqa: E402


def main():
    names = [test.name for level in LEVELS for test in Catalogue(ROOT, long=True).tests(level)]
    left_out = missing(names)
    for name in left_out:
        print(f"FAIL: in no part of the long tier: {name}")
    print(f"{len(names)} tests in {len(PARTS)} parts")
    sys.exit(1 if left_out or not names else 0)


main()
