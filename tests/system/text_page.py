# SPDX-License-Identifier: Apache-2.0
"""Reads /metrics in the text format."""
import re

SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def types(page):
    """{family: type}."""
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", page, re.M))


def samples(page):
    """(family, part, labels, value) of each sample; part: bucket, sum or count of a histogram, otherwise empty."""
    kinds = types(page)
    for line in page.splitlines():
        if line.startswith("#"):
            continue
        name, text, value = SAMPLE.match(line).groups()
        family, _, part = name.rpartition("_")
        if kinds.get(family) != "histogram":
            family, part = name, ""
        yield family, part, dict(LABEL.findall(text or "")), float(value)
