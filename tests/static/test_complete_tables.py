#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Does a cause or a configuration key that lacks one of its parts fail to compile?

Compiles the tables as they are, then with one part taken out, and expects an error each time.
"""
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(os.environ.get("SSDPULSE_SOURCE") or Path(__file__).resolve().parents[2])
CAUSES, WAITS, KEYS = "daemon/model/spike_cause.h", "daemon/model/host_signals.h", "daemon/config/keys.cpp"
# What is taken out or broken -> where, a pattern, what replaces it.
SABOTAGES = {
    **{f"a cause without its {part}": (CAUSES, rf"\n +\.{part} = (?:\"[^\"]*\"\s*)+,", "")
       for part in ("name", "noun", "letter", "legend", "colour", "shown_by", "because", "next")},
    "a cause without its runbook": (CAUSES, r",\s*\.runbook = \"[^\"]*\"", ""),
    "a cause with an empty letter": (CAUSES, r"\.letter = \"D\"", '.letter = ""'),
    "a cause without an entry": (CAUSES, r"thermal, error, unknown \};", "thermal, error, unknown, vibration };"),
    "a cause in another's entry": (CAUSES, r"\.cause = SpikeCause::gc", ".cause = SpikeCause::flush"),
    "a cause without a sentence for commits": (CAUSES, r"\.operations = \"rwfc\"", '.operations = "rwf"'),
    "a cause with two sentences for one spike": (CAUSES, r"\.loads = \"u\"", '.loads = "um"'),
    "what holds up I/O, without a next step": (WAITS, r"\n +\.next = (?:\"[^\"]*\"\s*)+,", ""),
    "what holds up I/O, without an entry": (WAITS, r"\n  pressure, ", "\n  vibration,\n  pressure, "),
    "a key without its help": (KEYS, r"\.help = (?:\"(?:[^\"\\]|\\.)*\"\s*)+,", ""),
    "a key without its manual": (KEYS, r"\.manual = R\"\([^)]*\)\",", ""),
    "a key without examples": (KEYS, r",\s*\.examples = R\"\([^)]*\)\"", ""),
    "a key without a default": (KEYS, r"DurationWithin\{10s, 1h\},\s*30s,", "DurationWithin{10s, 1h},"),
    "a key without a range": (KEYS, r"DurationWithin\{10s, 1h\}, ", ""),
    "a key with a default of another type": (KEYS, r"(DurationWithin\{10s, 1h\},\s*)30s,", r'\1"30",'),
}


def compiles(text):
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as file:
        file.write(text)
        file.flush()
        done = subprocess.run(["g++", "-std=c++20", "-fsyntax-only", "-w", "-x", "c++", "-I", str(ROOT), file.name], capture_output=True,
                              text=True, check=False)
    return done.returncode == 0, done.stderr


def judge(case):
    name, (path, pattern, replacement) = case
    text = (ROOT / path).read_text(encoding="utf-8")
    changed, count = re.subn(pattern, replacement, text, count=1)
    if count != 1:
        return f"{name}: {path} has nothing like {pattern}"
    return f"{name} compiles ({path})" if compiles(changed)[0] else None


def main():
    for path in (CAUSES, WAITS, KEYS):
        fine, errors = compiles((ROOT / path).read_text(encoding="utf-8"))
        if not fine:
            sys.exit(f"FAIL: {path} does not compile as it is: {errors[:2000]}")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        failures = [flaw for flaw in pool.map(judge, SABOTAGES.items()) if flaw]
    for flaw in failures:
        print(f"FAIL: {flaw}")
    print(f"{len(SABOTAGES)} incomplete tables")
    sys.exit(1 if failures else 0)


main()
