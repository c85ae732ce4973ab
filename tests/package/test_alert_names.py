#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Do rules, runbooks and metrics agree?

Each alert has a page, and each page an alert and every section; no rule and no page names a metric that is not
exported; no rule reads a recorded series that no rule records, and none is recorded that nobody uses: a rule or a
dashboard reads it, or the documentation offers it to people; both forms of the latency rules record the same. No alert
that matters reads what deploy/docs/fleet.md says may be left out.
"""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

DEPLOY = Path("deploy")
RULES = DEPLOY / "prometheus/rules"
SECTIONS = ["What it means", "Confirm", "What to do", "False positives"]
METRIC = re.compile(r"(?<![\w:.])(?:ssdpulse|process)_\w+(?![\w:]*:)")
RECORDED = re.compile(r"\w+(?::\w+){2}")
errors = []


def expect(good, what):
    if not good:
        errors.append(what)


def exported():
    """{metric: its group}"""
    done = subprocess.run([os.environ["SSDPULSE_BINARY"], "metrics", "--json"], check=True, capture_output=True)
    return {metric["name"]: metric["group"] for metric in json.loads(done.stdout)["metrics"]}


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
    drawn = "".join(file.read_text() for file in (DEPLOY / "grafana/dashboards").glob("*.json"))
    documented = "".join(file.read_text() for file in (DEPLOY / "docs").glob("*.md"))
    for name, file in recorded.items():
        expect(name in read or name in drawn or f"`{name}`" in documented, f"{file}: nothing reads {name}, nor is it documented")


def check_forms():
    """The classic rules are the native ones, written for buckets."""
    native, classic = (re.findall(r"- record: (.*)\n(?: +labels: (.*)\n)?", (RULES / f"latency_{form}.yml").read_text())
                       for form in ("native", "classic"))
    expect(native and native == classic, f"latency_native.yml and latency_classic.yml record different series: "
                                         f"{set(native) ^ set(classic)}")


def check_left_out(metrics):
    """The groups that deploy/docs/fleet.md leaves out."""
    [listed] = re.findall(r"^ +exclude: \[(.*)\]$", (DEPLOY / "docs/fleet.md").read_text(), flags=re.M)
    left_out = set(listed.split(", "))
    expect(left_out < set(metrics.values()), f"fleet.md leaves out groups that are none: {left_out - set(metrics.values())}")
    expressions = {}
    for file in sorted(RULES.glob("*.yml")):
        for record, expression in re.findall(r"- record: (\S+)\n(.*?)(?=\n *- record: |\n *- name: |\Z)", without_comments(file), flags=re.S):
            expressions[record] = expressions.get(record, "") + expression
    alerts = re.findall(r"- alert: (\w+)\n(.*?)(?=\n *annotations:)", without_comments(RULES / "alerts.yml"), flags=re.S)
    read = 0
    for alert, body in alerts:
        seen, todo = set(), [] if "severity: info" in body else [body]
        while todo:
            text = todo.pop()
            for name in set(RECORDED.findall(text)) - seen:
                seen.add(name)
                todo.append(expressions.get(name, ""))
            for name in METRIC.findall(text):
                group = metrics.get(name) or metrics.get(re.sub("_(bucket|count|sum)$", "", name))
                read += group is not None
                expect(group not in left_out, f"{alert} reads {name} of the group {group}, which fleet.md leaves out")
    expect(read > 40, f"only {read} metrics are read by alerts: does this test still read the rules?")


def check_runbooks():
    text = "\n".join((RULES / name).read_text() for name in ("alerts.yml", "modelled.yml"))
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
    metrics = exported()
    check_metrics(metrics)
    check_left_out(metrics)
    check_recorded()
    check_forms()
    check_runbooks()
    for error in errors:
        print(error)
    if errors:
        sys.exit(f"FAIL: {len(errors)} names do not fit together")


main()
