#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does each panel of the fleet's overview that the fleet profile leaves empty say so, and no other?

By the program's own table of the profile: what a panel reads is followed through the recorded series to metrics.
"""
import json
import re
import sys
from pathlib import Path

RULES = Path("deploy/prometheus/rules")
SAYS_SO = "metrics.profile"
RECORD = re.compile(r"record: (\S+)\n((?:(?!\s*- record:|\s*- name:).*\n)*)")
NAME = re.compile(r"[a-z_0-9]*:?ssdpulse_[a-z_0-9:]+")


def in_profile():
    table = re.search(r"kProfile\[\] = \{(.*?)\n\};", Path("exporters/prometheus/families.cpp").read_text(), flags=re.S)[1]
    of_daemon = Path("exporters/prometheus/families_self.cpp").read_text()
    return set(re.findall(r'\{"(ssdpulse_\w+)"', table)) | set(re.findall(r'\{"(ssdpulse_\w+)"', of_daemon))


def made_of():
    """{recorded name: [the names that each of its rules reads]}"""
    rules = {}
    for file in sorted(RULES.glob("*.yml")):
        for record, expression in RECORD.findall(re.sub(r" *#.*", "", file.read_text())):
            rules.setdefault(record, []).append(set(NAME.findall(expression)))
    return rules


def main():
    profile, rules = in_profile(), made_of()

    def is_known(name, suffix=re.compile(r"_(?:bucket|count|sum)$")):
        if name in rules:
            return any(all(is_known(one) for one in names) for names in rules[name])
        return name in profile or suffix.sub("", name) in profile

    panels = json.loads(Path("deploy/grafana/dashboards/overview.json").read_text())["panels"]
    panels += [panel for row in panels for panel in row.get("panels", [])]
    wrong, read = [], 0
    for panel in panels:
        names = {name for target in panel.get("targets", []) for name in NAME.findall(target.get("expr", ""))}
        read += bool(names)
        if names and any(map(is_known, names)) == (SAYS_SO in panel.get("description", "")):
            wrong.append(f"FAIL: '{panel['title']}' is {'not ' if any(map(is_known, names)) else ''}empty in the fleet profile: {sorted(names)}")
    if read < 10 or len(profile) < 60 or len(rules) < 60:
        wrong.append(f"FAIL: read {read} panels, {len(profile)} metrics, {len(rules)} recorded series")
    print("\n".join(wrong))
    return bool(wrong)


sys.exit(main())
