#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the page answer every query of a runbook, from the daemon where it knows, and from nowhere else?

A metric of ours has its values of now on /metrics. What a runbook asks of a time is answered from the history where
answers.js says so (KEPT), and what it names there exists in the API; else the metric must be listed below: a decision,
not an oversight. A metric of others is one that answers.js calls Prometheus's (FOREIGN).
"""
import json
import re
import sys
from pathlib import Path

ASSETS = Path("exporters/page/assets")
# What runbooks ask of a time and the history does not keep.
NEEDS_PROMETHEUS = {
    "ssdpulse_filesystem_discard_bytes_total", "ssdpulse_host_io_pressure_seconds_total", "ssdpulse_io_queue_full_seconds_total",
    "ssdpulse_missed_ticks_total", "ssdpulse_nvme_idle_media_written_bytes_total", "ssdpulse_nvme_thermal_management_seconds_total",
    "ssdpulse_volume_bytes_total", "process_start_time_seconds", "ssdpulse_volume_ios_total", "ssdpulse_write_hint_bytes_total",
}
CODE = re.compile(r"`([^`]+)`")
OURS = re.compile(r"\b(?:ssdpulse|process)_[a-z0-9_]*[a-z0-9]")
OVER_TIME = re.compile(r"\[\d+[smhd]\]|:\w+_rate\d+[smhd]")
QUERY = re.compile(r'\w\{\w+[=!]~?"|\w\[\d+[smhd]\]')
# Where the page puts no answer.
UNANSWERED = re.compile(r"^(#| {4}|\||```)")


def metrics_of(code):
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in OURS.findall(code)}


def kept(script, schema):
    """The metrics of KEPT, and what they name that the API does not have."""
    table = script.split("export const KEPT = {")[1].split("\n};")[0]
    entries = dict(re.findall(r"^  (ssdpulse_\w+): (.*),$", table, re.M))
    kind, points, wear, spike, burst = ({**schema[name]["properties"]} for name in ("history_kind", "history_points", "history_wear", "history_spike", "history_burst"))
    wrong = []
    for name, made in entries.items():
        wanted = [(kind, column) for column in re.findall(r'byOperation\(.*, "(\w+)"\)', made)]
        wanted += [(points, column) for column in re.findall(r"points\.(\w+)", made)] + [(wear, column) for column in re.findall(r'worn\("(\w+)"', made)]
        for what, labels, value in re.findall(r'listed\("(\w+)", \[([^\]]*)\](?:, "(\w+)")?\)', made):
            wanted += [({"spikes": spike, "bursts": burst}[what], one) for one in [*re.findall(r"\w+", labels), *filter(None, [value])]]
        wrong += [f"{name}: the history has no {column}" for table, column in wanted if column not in table]
    return entries, wrong


def main():
    script = (ASSETS / "answers.js").read_text("utf-8")
    schema = json.loads((ASSETS / "api.schema.json").read_text("utf-8"))["$defs"]
    foreign = re.compile(re.search(r"FOREIGN = /(.*)/g;", script)[1])
    exported = {name for path in Path("exporters/prometheus").glob("families*.cpp") for name in re.findall(r'\{"((?:ssdpulse|process)_\w+)"', path.read_text("utf-8"))}
    for kind, name in re.findall(r'FIELD\((\w+), (\w+),', Path("daemon/model/nvme_drive.h").read_text("utf-8")):
        exported.add("ssdpulse_nvme_" + name + ("_total" if kind == "counter" else ""))
    entries, wrong = kept(script, schema)
    named, asked, queries = set(), set(), 0
    for path in sorted(Path("deploy/runbooks").glob("*.md")):
        text = path.read_text("utf-8")
        for line in text.split("\n"):
            wrong += [f"{path.name}: the page answers nothing in a {kind}: {line.strip()}" for kind in UNANSWERED.findall(line) if OURS.search(line)]
        for code in CODE.findall(text):
            code = " ".join(code.split())
            names = metrics_of(code)
            queries += bool(names or foreign.search(code))
            named |= names
            asked |= names if OVER_TIME.search(code) else set()
            wrong += [f"{path.name}: {name} is no metric" for name in sorted(names - exported)]
            if not names and not foreign.search(code) and QUERY.search(code):
                wrong.append(f"{path.name}: neither ours nor Prometheus's: {code}")
    wrong += [f"{name} is kept, and no runbook asks for it" for name in sorted(set(entries) - named)]
    wrong += [f"{name} is asked of a time: answer it in KEPT, or list it here" for name in sorted(asked - set(entries) - NEEDS_PROMETHEUS)]
    wrong += [f"{name} is listed here for nothing" for name in sorted(NEEDS_PROMETHEUS - (asked - set(entries)))]
    print(f"{queries} queries of {len(named)} metrics: {len(named & set(entries))} with their past, {len(named - set(entries))} of now alone")
    for one in wrong:
        print(f"FAIL: {one}")
    sys.exit(bool(wrong or queries < 100))


main()
