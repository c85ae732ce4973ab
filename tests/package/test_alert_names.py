#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Do rules, runbooks and metrics know each other?

Each alert has a page, each page an alert and every section; no rule and no page names a metric that is not exported; no
rule reads a recorded series that no rule records, and none is recorded in vain; both forms of the latency rules record the
same.
"""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

DEPLOY = Path("deploy")
RULES = DEPLOY / "prometheus/rules"
SECTIONS = ["What it means", "Confirm", "What to do", "When it is false"]
METRIC = re.compile(r"(?<![\w:.])(?:ssdpulse|process)_\w+(?![\w:]*:)")
RECORDED = re.compile(r"\w+(?::\w+){2}")
errors = []


def expect(good, what):
    if not good:
        errors.append(what)


def exported():
    done = subprocess.run([os.environ["SSDPULSE_BINARY"], "metrics", "--json"], check=True, capture_output=True)
    return {metric["name"] for metric in json.loads(done.stdout)["metrics"]}


def known(name, metrics):
    histogram = re.sub("_(bucket|count|sum)$", "", name)
    return name in metrics or histogram in metrics and histogram.endswith(("_seconds", "_bytes"))


def without_comments(file):
    return re.sub(r"^ *#.*$", "", file.read_text(), flags=re.M)


def check_metrics(metrics):
    named = {}
    for file in [*sorted(RULES.glob("*.yml")), *sorted((DEPLOY / "runbooks").glob("*.md"))]:
        text = without_comments(file) if file.suffix == ".yml" else file.read_text()
        text = re.sub(r"- name: ssdpulse_\w+", "", text)
        for name in METRIC.findall(text):
            named.setdefault(name, file)
    expect(len(named) > 30, f"only {len(named)} metrics are named: does this test still read the rules?")
    for name, file in named.items():
        expect(known(name, metrics), f"{file}: {name} is not exported")
    print(f"{len(named)} metrics are named, {len(metrics)} exported")


def check_recorded():
    recorded, read = {}, {}
    for file in sorted(RULES.glob("*.yml")):
        text = without_comments(file)
        for name in re.findall(r"record: (\S+)", text):
            recorded.setdefault(name, file)
        for name in RECORDED.findall(re.sub(r"record: .*", "", text)):
            read.setdefault(name, file)
    for name, file in read.items():
        expect(name in recorded, f"{file}: no rule records {name}")
    for name, file in recorded.items():
        expect(name in read, f"{file}: no rule reads {name}")


def check_forms():
    """The classic rules are the native ones, written for buckets."""
    native, classic = (re.findall(r"- record: (.*)\n(?: +labels: (.*)\n)?", (RULES / f"latency_{form}.yml").read_text())
                       for form in ("native", "classic"))
    expect(native and native == classic, f"latency_native.yml and latency_classic.yml record different series: "
                                         f"{set(native) ^ set(classic)}")


def check_runbooks():
    text = (RULES / "alerts.yml").read_text()
    alerts = re.findall(r"- alert: (\w+)\n(.*?)(?=\n *- alert: |\Z)", text, flags=re.S)
    expect(len(alerts) > 20, f"only {len(alerts)} alerts: does this test still read them?")
    for alert, body in alerts:
        page = DEPLOY / f"runbooks/{alert}.md"
        expect(f"runbook_url: {page}\n" in body + "\n", f"{alert}: runbook_url is not {page}")
        expect(re.search(r"severity: (critical|warning|info)\b", body), f"{alert}: no severity")
        expect(page.is_file(), f"{alert} has no page {page}")
    for page in sorted((DEPLOY / "runbooks").glob("*.md")):
        lines = page.read_text().splitlines()
        expect(page.stem in dict(alerts), f"{page}: no alert has this name")
        expect(lines[0] == f"# {page.stem}", f"{page}: its title is {lines[0]}")
        sections = [line[3:] for line in lines if line.startswith("## ")]
        expect(sections == SECTIONS, f"{page}: its sections are {sections}")
        for link in re.findall(r"\]\((\w+\.md)\)", page.read_text()):
            expect((page.parent / link).is_file(), f"{page}: no page {link}")
    print(f"{len(alerts)} alerts, each with a page")


def main():
    check_metrics(exported())
    check_recorded()
    check_forms()
    check_runbooks()
    for error in errors:
        print(error)
    if errors:
        sys.exit(f"FAIL: {len(errors)} names do not fit together")


main()
