#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is the page as small as it promises?

All of its files gzipped, as the daemon serves them, with its texts and the table of metrics that explains figures.
"""
import gzip
import sys
from pathlib import Path

MOST_BYTES = 150_000
METRICS_BYTES = 25_000  # of /api/v1/metrics, which the page asks for once somebody wants to know what a figure means
ASSETS = Path("exporters/page/assets")
CATALOGUE = ("exporters/words/page.json", "exporters/words/shared.json")  # served as catalogue.js


def main():
    sizes = {path.name: len(gzip.compress(path.read_bytes(), 6)) for path in sorted(ASSETS.iterdir())}
    sizes["catalogue.js"] = len(gzip.compress(b"".join(Path(path).read_bytes() for path in CATALOGUE), 6))
    for name, size in sizes.items():
        print(f"{name:20}{size:8}")
    total = sum(sizes.values()) + METRICS_BYTES
    print(f"{'all, gzipped':20}{total:8}  limit {MOST_BYTES}")
    if total > MOST_BYTES:
        sys.exit("FAIL: the page is too large")


main()
