# SPDX-License-Identifier: Apache-2.0
"""What do dashboards, rules and alerts ask of a Prometheus, and what does it answer?

Expressions are asked as Grafana would ask them, with the variables filled in. Of an alert, which is silent as long as all
is well, the series are asked for that it reads, those of its annotations included.
"""
import json
import re
import urllib.error

import yaml

FILLED = {"job": "ssdpulse", "instance": ".*", "device": ".*", "model": ".*", "controller": ".*", "quantile": "0.99",
          "window": "1h"}
OURS = re.compile(r"\b(?:ssdpulse|process)_\w+")
SELECTOR = re.compile(r"(?<![\w:])(?:[a-z_]+:)?(?:ssdpulse_|process_|working_hours)[\w:]*(?:\{[^{}]*\})?|\bup\{[^{}]*\}")


RECORDED = "overview"  # reads recorded series alone: a server without rules/fleet.yml has no answer


def panels(source, recorded=False):
    """(where, expression, which kind of histogram it needs) of every panel and annotation."""
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
    """An expression that is 1 while this panel with one value is red, else 0."""
    dashboard = json.loads((source / f"deploy/grafana/dashboards/{name}.json").read_text())
    [panel] = [one for one in dashboard["panels"] if one["title"] == title]
    limit = panel["fieldConfig"]["defaults"]["thresholds"]["steps"][-1]["value"]
    return f"({filled(panel['targets'][0]['expr'])}) >= bool {limit}"


def rules(source, form):
    """(where, expression) of every recording rule, and of every series that an alert reads."""
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
    """How many series answer, or what the server says against the question."""
    try:
        return len(server.ask(path, query=expression, **parameters)["result"])
    except urllib.error.HTTPError as error:
        return json.load(error)["error"]


def family(name):
    """Its histogram's name, if it is a series of one."""
    return re.sub(r"_(bucket|count|sum)$", "", name)


def names(expression):
    """The metrics of ours that are named."""
    return {family(name) for name in OURS.findall(expression)}
