# SPDX-License-Identifier: Apache-2.0
"""What do dashboards, rules and alerts query from a Prometheus, and what does it answer?

Expressions are queried as Grafana would query them, with the variables filled in. An alert is silent while all is well,
so the series that it reads are queried instead, including those of its annotations.
"""
import json
import re
import urllib.error

import yaml

FILLED = {"job": "ssdpulse", "instance": ".*", "device": ".*", "model": ".*", "controller": ".*", "quantile": "0.99",
          "window": "1h", "server": ".*", "mountpoint": ".*"}
OURS = re.compile(r"\b(?:ssdpulse|process)_\w+")
THEIRS = re.compile(r"\b(?:pg|mysql)_\w+")  # of the exporters of databases, which only test_databases has
SELECTOR = re.compile(r"(?<![\w:])(?:[a-z_]+:)?(?:ssdpulse_|process_|working_hours)[\w:]*(?:\{[^{}]*\})?|\bup\{[^{}]*\}")


RECORDED = "overview"  # reads only recorded series: a server without rules/fleet.yml has no answer


def board(source, name):
    return json.loads((source / f"deploy/grafana/dashboards/{name}.json").read_text())


def panels(source, recorded=False):
    """(where, expression, kind of histogram needed) for every panel and annotation."""
    for file in sorted((source / "deploy/grafana/dashboards").glob("*.json")):
        if (file.stem == RECORDED) != recorded:
            continue
        dashboard = json.loads(file.read_text())
        for panel in dashboard["panels"]:
            for one in [panel, *(panel.get("panels") or [])]:
                for target in one.get("targets") or []:
                    kind = {"heatmap": "classic", "time_series": "native"}.get(target.get("format"), "")
                    yield f"{file.stem}: {one['title']}", target["expr"], kind
        for annotation in dashboard["annotations"].get("list", []):
            yield f"{file.stem}: {annotation['name']}", annotation["expr"], ""


def red(source, name, title):
    """An expression that is 1 while this single-value panel is red, else 0."""
    [panel] = [one for one in board(source, name)["panels"] if one["title"] == title]
    limit = panel["fieldConfig"]["defaults"]["thresholds"]["steps"][-1]["value"]
    return f"({filled(panel['targets'][0]['expr'])}) >= bool {limit}"


def rules(source, form):
    """(where, expression) for every recording rule, and for every series that an alert reads."""
    for name in (f"latency_{form}.yml", "recording.yml", "alerts.yml"):
        for group in yaml.safe_load((source / "deploy/prometheus/rules" / name).read_text())["groups"]:
            for rule in group["rules"]:
                if "record" in rule:
                    yield f"rule {rule['record']}", rule["expr"]
                else:
                    text = re.sub(r"=%q", '=~".+"', " ".join([rule["expr"], *rule["annotations"].values()]))
                    for selector in sorted(set(SELECTOR.findall(text))):
                        yield f"alert {rule['alert']}", selector


def filled(expression, **variables):
    values = {**FILLED, **variables}
    return re.sub(r"\$\{?(\w+)\}?", lambda match: values[match[1]], expression)


def ask(server, path, expression, **parameters):
    """How many series are returned, or the server's error message."""
    try:
        return len(server.ask(path, query=expression, **parameters)["result"])
    except urllib.error.HTTPError as error:
        return json.load(error)["error"]


def family(name):
    """The name of the histogram that a series belongs to, or the name itself."""
    return re.sub(r"_(bucket|count|sum)$", "", name)


def names(expression):
    """The metrics of ours that occur in the expression."""
    return {family(name) for name in OURS.findall(expression)}
