#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 600
"""Does a real Grafana accept the provisioning files and the dashboards, and do its own queries work?

A Prometheus scrapes a made-up page that has every family; each panel's query is sent to Grafana as its page does.
Needs a Grafana: SSDPULSE_GRAFANA is its home directory. Without one it skips.
"""
import json
import sys
import time

import grafana
import made_up
import prometheus
from lib import rig

SKIPPED = 77
RUN_SECONDS = 45


def panels(dashboard):
    for panel in dashboard["panels"]:
        yield from panel.get("panels") or [panel]


def query(target, now):
    """One target as the page sends it, except for variables, which the page fills in."""
    expression = target["expr"]
    for name, value in (("job", "ssdpulse"), ("instance", ".*"), ("device", ".*"), ("model", ".*"), ("controller", ".*"),
                        ("quantile", "0.99"), ("window", "1h"), ("compare", "5s"), ("server", ".*"),
                        ("mountpoint", ".*")):
        expression = expression.replace(f"${name}", value).replace(f"${{{name}}}", value)
    return {"queries": [{**target, "refId": "A", "expr": expression, "datasource": {"uid": query.uid}, "intervalMs": 1000,
                         "maxDataPoints": 500}], "from": str(int((now - RUN_SECONDS) * 1000)), "to": str(int(now * 1000))}


def judge(check, server):
    health = server.ask("health")
    check.that(health["database"] == "ok", f"Grafana {health['version']} runs")
    [source] = server.ask("datasources")
    check.equal((source["name"], source["type"], source["isDefault"], source["jsonData"]),
                ("ssdpulse", "prometheus", True, {"timeInterval": "15s", "httpMethod": "POST"}), "the data source")
    query.uid = source["uid"]
    found = {one["uid"]: one for one in server.ask("search?type=dash-db")}
    shipped = {file.stem: json.loads(file.read_text()) for file in grafana.SHIPPED.glob("dashboards/*.json")}
    check.equal(sorted(found), sorted(one["uid"] for one in shipped.values()), "dashboards")
    check.equal({one["folderTitle"] for one in found.values()}, {"ssdpulse"}, "their folder")
    asked, failed = 0, []
    for name, dashboard in shipped.items():
        taken = server.ask(f"dashboards/uid/{dashboard['uid']}")
        titles = [[one["title"] for one in panels(board)] for board in (dashboard, taken["dashboard"])]
        check.that(taken["meta"]["provisioned"] and titles[0] == titles[1], f"{name}: {len(titles[1])} panels and rows")
        for panel in panels(dashboard):
            for target in panel.get("targets") or []:
                answer = server.ask("ds/query", query(target, time.time()))["results"]["A"]
                asked += 1
                if answer.get("error"):
                    failed.append(f"{name}: {panel['title']}: {answer['error']}")
    check.equal(failed, [], f"of {asked} queries through Grafana: failed")
    check.equal(server.complaints(), [], "complaints about the provisioning files")


def test(check, state):
    if grafana.home() is None:
        print("no Grafana: SSDPULSE_GRAFANA names none")
        sys.exit(SKIPPED)
    binary = prometheus.fetch(state, "trixie", "prometheus") / "usr/bin/prometheus"
    with made_up.server() as port, \
            prometheus.servers(state, [("made-up page", binary, "classic")], port) as [source], \
            grafana.server(state, source.port) as server:
        time.sleep(RUN_SECONDS)
        judge(check, server)


rig.main(test)
