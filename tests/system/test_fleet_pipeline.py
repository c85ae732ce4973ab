#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# tier: long
"""Do the examples of deploy/prometheus/fleet carry a fleet's series from one real Prometheus to another?

For Prometheus 2.53 and 3.5: an edge and an agent scrape the made-up page; one of two central servers receives remote
writes, the other queries the edge. Only ports, waiting times and the form of histograms differ from the shipped files.
"""
import os
import re
import shutil
import subprocess
import time
import urllib.error
from contextlib import ExitStack, contextmanager
from pathlib import Path

import dashboards
import made_up
import prometheus
import yaml
from alerts.stack import free_port
from lib import rig

SOURCE = Path(os.environ.get("SSDPULSE_SOURCE", "."))
SHIPPED = SOURCE / "deploy/prometheus"
SECONDS = 60
RECORDED = re.compile(r"job[a-z_]*:ssdpulse_.+")
# The page never has a spike or an error that ends, and no alert has been pending long enough.
MAY_BE_EMPTY = {"Alerts that fire"}


def hurried(text):
    text = re.sub(r"(scrape_interval|evaluation_interval|interval): \w+", r"\1: 1s", text)
    return text.replace("latency_native.yml", "latency_classic.yml").replace("params: {histograms: [native]}", "")


@contextmanager
def server(binary, place, name, ports, *options):
    """Runs deploy/prometheus/fleet/NAME.yml; ports: those of the files -> those of this test."""
    config = place / f"fleet/{name}.yml"
    text = config.read_text()
    for shipped, here in ports.items():
        text = text.replace(f"127.0.0.1:{shipped}", f"127.0.0.1:{here}")
    mine = config.with_name(f"{name}-{free_port()}.yml")
    mine.write_text(text)
    port, log = free_port(), mine.with_suffix(".log")
    storage = "--storage.agent.path" if name == "agent" else "--storage.tsdb.path"
    with log.open("w") as out:
        process = subprocess.Popen([binary, f"--config.file={mine}", f"{storage}={mine.with_suffix('.data')}",
                                    f"--web.listen-address=127.0.0.1:{port}", *options], stdout=out, stderr=out)
    try:
        yield prometheus.Server(f"{name} ({mine.stem})", port, log)
    finally:
        process.terminate()
        process.wait(20)


def wait_ready(one):
    for _ in range(60):
        try:
            return one.ask("status/buildinfo")
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    raise RuntimeError(f"{one.name} did not start: {one.log.read_text()[-2000:]}")


def names(one, matcher):
    return {series["__name__"] for series in one.ask("series", **{"match[]": matcher})}


def through(check, state, suite, page_port):
    binary = prometheus.fetch(state, suite, "prometheus") / "usr/bin/prometheus"
    place = state / f"fleet-{suite}"
    shutil.copytree(SHIPPED, place)
    for file in place.glob("*/*.yml"):
        file.write_text(hurried(file.read_text()))
    agent = "--enable-feature=agent" if suite == "trixie" else "--agent"
    with ExitStack() as running:
        written = running.enter_context(server(binary, place, "central", {}, "--web.enable-remote-write-receiver"))
        ports = {10936: page_port, 9092: written.port}
        edge = running.enter_context(server(binary, place, "edge", ports))
        running.enter_context(server(binary, place, "agent", ports, agent))
        asking = running.enter_context(server(binary, place, "central", {9091: edge.port}))
        version = wait_ready(asking)["version"]
        time.sleep(SECONDS)

        sent = names(written, '{cluster="edge1"}')
        wanted = {name for name in names(edge, '{__name__=~"job.*:ssdpulse_.+"}')}
        check.that(len(wanted) > 15 and sent == wanted, f"{version}: the edge writes {len(sent)} of {len(wanted)} recorded "
                   f"names, and nothing else {sorted(sent ^ wanted)[:5]}")
        asked = {name for name in names(asking, '{cluster="edge1"}') if not name.startswith("ALERTS")}
        check.that(asked == wanted, f"{version}: federation brings {len(asked)} of {len(wanted)} "
                   f"{sorted(asked ^ wanted)[:5]}")
        from_agent = names(written, '{cluster="agent1",__name__!~"ALERTS.*|.*:.*"}')
        dropped = {name for name in from_agent if re.match(r"ssdpulse_(tenant|path|model)_", name)}
        check.that(len(from_agent) > 150 and not dropped,
                   f"{version}: the agent sends {len(from_agent)} names, none that is dropped {sorted(dropped)[:5]}")
        for one in (edge, written, asking):
            silent = []
            for where, expression, _ in dashboards.panels(SOURCE, recorded=True):
                have = dashboards.ask(one, "query", dashboards.filled(expression))
                if not isinstance(have, int) or (not have and where.split(": ", 1)[1] not in MAY_BE_EMPTY):
                    silent.append(f"{where}: {have or 'empty'}")
            check.that(not silent, f"{version}: every panel of the overview answers on {one.name} {silent[:6]}")


def nothing_needed_is_dropped(check):
    """No rule and no alert expression reads what the examples drop."""
    for name in ("edge", "agent"):
        config = yaml.safe_load((SHIPPED / f"fleet/{name}.yml").read_text())
        [rule] = config["scrape_configs"][0]["metric_relabel_configs"]
        needed = {metric for file in (SHIPPED / "rules").glob("*.yml") for group in yaml.safe_load(file.read_text())["groups"]
                  for one in group["rules"] for metric in dashboards.OURS.findall(one["expr"])}
        lost = sorted(metric for metric in needed if re.fullmatch(rule["regex"], metric))
        check.that(needed and not lost, f"{name}.yml drops nothing that {len(needed)} rules read {lost[:5]}")


def test(check, state):
    nothing_needed_is_dropped(check)
    with made_up.server() as port:
        for suite in ("trixie", "sid"):
            through(check, state, suite, port)


rig.main(test)
