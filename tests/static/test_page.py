#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is the page as small as it promises, and does it speak in sentences of at most 20 words?

All of its files gzipped, as the daemon serves them, and the table of metrics that explains figures.
"""
import gzip
import re
import sys
from pathlib import Path

MOST_BYTES = 150_000
METRICS_BYTES = 25_000  # of /api/v1/metrics, which the page asks for once somebody wants to know what a figure means
WORDS = 20
ASSETS = Path("exporters/page/assets")
TEXT = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`')
FILLED = re.compile(r"\$\{(?:[^{}]|\{[^{}]*\})*\}")  # one word each, mostly


def sentences(source):
    """What is said to people: texts of a script with a space in them, split into sentences."""
    for line in source.splitlines():
        if line.lstrip().startswith("//"):
            continue
        for plain, template in TEXT.findall(line):
            text = plain or FILLED.sub("X", template)
            if re.search(r"[A-Za-z]{2,} [a-z]", text):
                yield from re.split(r"(?<=[.:;?!]) ", text)


def main():
    sizes = {path.name: len(gzip.compress(path.read_bytes(), 6)) for path in sorted(ASSETS.iterdir())}
    for name, size in sizes.items():
        print(f"{name:20}{size:8}")
    total = sum(sizes.values()) + METRICS_BYTES
    print(f"{'all, gzipped':20}{total:8}  limit {MOST_BYTES}")
    long = [(path.name, one) for path in sorted(ASSETS.glob("*.js")) for one in sentences(path.read_text("utf-8")) if len(one.split()) > WORDS]
    for name, one in long:
        print(f"{name}: {len(one.split())} words: {one}")
    if total > MOST_BYTES or long:
        sys.exit("FAIL: the page is too large, or a sentence too long")


main()
