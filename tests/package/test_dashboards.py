#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Are the dashboards complete, and do they show what is exported?

Every panel says what it shows and in which unit; every query asks for the chosen hosts and for metrics that exist;
every metric is used by a panel or a rule, except at most a tenth, which deploy/grafana/ad-hoc-metrics.txt names.
Those of databases also ask the chosen database for what its exporter has: a recorded list of real scrapes has the name.
The dashboard of a whole fleet reads only what rules/fleet.yml records, and of single hosts only the worst ten.
What the expressions return is judged by a real Prometheus, in the level `system`.
"""
import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

GRAFANA = Path("deploy/grafana")
WANTED_VARIABLES = {
    "fleet": {"datasource", "job", "instance", "device", "model"},
    "device": {"datasource", "job", "instance", "device", "model"},
    "daemon": {"datasource", "job", "instance"},
    "postgresql": {"datasource", "server", "job", "instance", "mountpoint", "device"},
    "mysql": {"datasource", "server", "job", "instance", "mountpoint", "device"},
}
# What a server reports about its own scrapes.
OF_PROMETHEUS = {"up", "scrape_duration_seconds"}
# Shown as they are: totals over the drive's life.
LIFETIMES = {"ssdpulse_nvme_media_written_bytes_total", "ssdpulse_nvme_power_on_seconds_total"}
GRAFANA_VARIABLES = {"__rate_interval", "__interval", "__range", "__url_time_range"}
# The dashboard that must stay cheap whatever the size of the fleet, and the rules that it reads.
OVERVIEW = "overview"
FLEET_RULES = Path("deploy/prometheus/rules/fleet.yml")
METRIC = re.compile(r"\b(?:ssdpulse_|process_)\w+")
# Of the exporters of databases, and where they were really seen (system.test_databases).
THEIRS = re.compile(r"\b(?:pg_|mysql_)\w+")
SEEN = {line.split()[0] for line in Path("tests/fixtures/prometheus/exporters.txt").read_text().splitlines() if line[0] != "#"}
SELECTOR = re.compile(r"([a-z_]\w*)?\{([^{}]*)\}")

problems = []


def wrong(text):
    problems.append(text)
    print(text)


def exported():
    """Every family, from the program's own list."""
    done = subprocess.run([os.environ["SSDPULSE_BINARY"], "metrics", "--json"], check=True, capture_output=True)
    return {metric["name"] for metric in json.loads(done.stdout)["metrics"]}


def family(name, known):
    """ssdpulse_x_bucket belongs to the histogram ssdpulse_x."""
    base = re.sub(r"_(bucket|count|sum)$", "", name)
    return name if name in known or base not in known else base


def panels_of(dashboard):
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            yield from panel.get("panels") or []
        else:
            yield panel


def check_panel(where, panel):
    if not panel.get("title") or not re.search(r"\w{3}.*\.$", panel.get("description") or "", re.S):
        wrong(f"{where}: no title, or no description that is a sentence")
    if not panel.get("fieldConfig", {}).get("defaults", {}).get("unit"):
        wrong(f"{where}: no unit")
    if not panel.get("targets") or not all(target.get("expr") for target in panel["targets"]):
        wrong(f"{where}: no query")
    if panel.get("datasource", {}).get("uid") != "$datasource":
        wrong(f"{where}: the data source is not the chosen one")
    if panel["type"] == "heatmap":
        for target in panel["targets"]:
            classic = "_bucket" in target["expr"]
            if target.get("format") != ("heatmap" if classic else "time_series"):
                wrong(f"{where}: a heatmap of this kind is drawn from another format than {target.get('format')}")


def check_places(name, dashboard):
    """Nothing overlaps or leaves the grid, and ids are unique."""
    ids = [panel["id"] for panel in panels_of(dashboard)]
    if len(set(ids)) != len(ids):
        wrong(f"{name}: two panels have the same id")
    folded = [row["panels"] for row in dashboard["panels"] if row["type"] == "row" and row.get("panels")]
    for group in [dashboard["panels"], *folded]:
        for one, other in itertools.combinations([panel["gridPos"] | {"of": panel["title"]} for panel in group], 2):
            if (one["x"] < other["x"] + other["w"] and other["x"] < one["x"] + one["w"]
                    and one["y"] < other["y"] + other["h"] and other["y"] < one["y"] + one["h"]):
                wrong(f"{name}: {one['of']} and {other['of']} overlap")
        for panel in group:
            if panel["gridPos"]["x"] + panel["gridPos"]["w"] > 24:
                wrong(f"{name}: {panel['title']} leaves the grid")


def check_expression(where, expression, known, variables):
    for metric in METRIC.findall(expression) + THEIRS.findall(expression):
        if family(metric, known) not in known | SEEN:
            wrong(f"{where}: no such metric: {metric}")
        if metric.endswith("_total") and metric not in LIFETIMES:
            if not re.search(r"(rate|increase|changes)\($", expression.split(metric)[0]):
                wrong(f"{where}: counter without rate or increase: {metric}")
    for metric, matchers in SELECTOR.findall(expression):
        wanted = {'instance=~"$server"'} if THEIRS.fullmatch(metric) else {'job=~"$job"', 'instance=~"$instance"'}
        if not wanted <= set(matchers.split(",")):
            wrong(f"{where}: {metric} is not asked of the chosen job and host, or database")
        if metric and metric not in OF_PROMETHEUS | SEEN and not METRIC.fullmatch(metric):
            wrong(f"{where}: whose metric is {metric}?")
    for metric in [name for kind in (METRIC, THEIRS) for name in kind.findall(re.sub(r'"[^"]*"', "", expression))]:
        if not re.search(rf"{metric}\{{", expression):
            wrong(f"{where}: {metric} is asked of all hosts")
    for variable in re.findall(r"\$\{?(\w+)", expression):
        if variable not in variables | GRAFANA_VARIABLES:
            wrong(f"{where}: no such variable: ${variable}")


def check_dashboard(name, dashboard, known):
    """Returns every text in which metrics are named."""
    variables = {variable["name"] for variable in dashboard["templating"]["list"]}
    if missing := WANTED_VARIABLES[name] - variables:
        wrong(f"{name}: no variable {', '.join(sorted(missing))}")
    if any(variable["id"] != variable["name"] for variable in dashboard["templating"]["list"]):
        wrong(f"{name}: variables whose ids are not their names: Grafana would take them for one")
    check_places(name, dashboard)
    texts = []
    for panel in panels_of(dashboard):
        where = f"{name}: {panel.get('title')}"
        check_panel(where, panel)
        for target in panel.get("targets", []):
            check_expression(where, target["expr"], known, variables)
            texts.append(target["expr"])
    for annotation in dashboard["annotations"].get("list", []):
        check_expression(f"{name}: annotation {annotation['name']}", annotation["expr"], known, variables)
        texts.append(annotation["expr"])
    for variable in dashboard["templating"]["list"]:
        query = (variable.get("query") or {}).get("query", "") if variable["type"] == "query" else ""
        for metric in METRIC.findall(query):
            if metric not in known:
                wrong(f"{name}: variable {variable['name']} names no metric of ours: {metric}")
    return texts


def check_overview():
    """Only recorded series of the chosen jobs, none of them with one series per device. Returns its uid."""
    dashboard = json.loads((GRAFANA / f"dashboards/{OVERVIEW}.json").read_text())
    recorded = set(re.findall(r"- record: (job\S*)", FLEET_RULES.read_text()))
    asked = set()
    check_places(OVERVIEW, dashboard)
    for panel in panels_of(dashboard):
        where = f"{OVERVIEW}: {panel.get('title')}"
        check_panel(where, panel)
        for target in panel.get("targets", []):
            selectors = re.findall(r"([\w:]+)\{([^{}]*)\}", target["expr"])
            rest = re.sub(r'"[^"]*"', "", re.sub(r"[\w:]+\{[^{}]*\}", "", target["expr"]))
            if not selectors or METRIC.search(rest) or ":" in rest or "[" in rest:
                wrong(f"{where}: asks for more than recorded series of the chosen jobs")
            for name, matchers in selectors:
                asked.add(name)
                if name not in recorded:
                    wrong(f"{where}: {name} is not recorded by {FLEET_RULES}, or is one series a device")
                if 'job=~"$job"' not in matchers.split(","):
                    wrong(f"{where}: {name} is not asked of the chosen job")
    for name in sorted(recorded - asked):
        wrong(f"{FLEET_RULES}: {name} is read by no panel of {OVERVIEW}")
    print(f"{OVERVIEW}: {len(list(panels_of(dashboard)))} panels, {len(asked)} recorded series")
    return dashboard["uid"]


def check_use(texts, families):
    used = {family(metric, families) for text in texts for metric in METRIC.findall(text)}
    listed = [line.split()[0] for line in (GRAFANA / "ad-hoc-metrics.txt").read_text().splitlines()
              if line and not line.startswith("#")]
    for name in sorted(families - used - set(listed)):
        wrong(f"no panel and no rule uses {name}")
    for name in listed:
        if name not in families or name in used:
            wrong(f"ad-hoc-metrics.txt: {name} is {'used' if name in used else 'not exported'}")
    if len(listed) * 10 > len(families):
        wrong(f"ad-hoc-metrics.txt: {len(listed)} of {len(families)} metrics: more than a tenth")
    print(f"{len(families)} families: {len(families & used)} used, {len(listed)} for ad-hoc use")


def main():
    families = exported()
    texts, uids = [], set()
    for name in WANTED_VARIABLES:
        dashboard = json.loads((GRAFANA / f"dashboards/{name}.json").read_text())
        uids.add(dashboard["uid"])
        texts += check_dashboard(name, dashboard, families)
        print(f"{name}: {len(list(panels_of(dashboard)))} panels")
    uids.add(check_overview())
    if len(uids) != len(WANTED_VARIABLES) + 1:
        wrong("two dashboards have the same uid")
    print(f"{len(texts)} expressions")
    for name in sorted(SEEN - {name for text in texts for name in THEIRS.findall(text)}):
        wrong(f"exporters.txt: no panel reads {name}")
    rules = [file.read_text() for file in sorted(Path("deploy/prometheus/rules").glob("*.yml"))]
    check_use(texts + rules, families)
    if problems:
        sys.exit(f"FAIL: {len(problems)} problems of the dashboards, the first: {problems[0]}")


main()
