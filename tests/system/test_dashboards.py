#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
"""Does every query of every panel work, and does it answer where the daemon has something to say?

A daemon measures a disk under load, real servers scrape it: one takes native histograms, one does not. Each expression
is asked as Grafana would ask it, with the variables filled in. One that names only metrics which the daemon exports
on this host must answer; drives are not there, so theirs only have to be understood.
"""
import json
import os
import re
import time
import urllib.error
from pathlib import Path

import prometheus
from lib import rig

DASHBOARDS = Path(os.environ.get("SSDPULSE_SOURCE", ".")) / "deploy/grafana/dashboards"
RUN_SECONDS = 20
FILLED = {"job": "ssdpulse", "instance": ".*", "device": ".*", "model": ".*", "controller": ".*", "quantile": "0.99",
          "window": "1h", "compare": "5s", "__rate_interval": "10s", "__interval": "10s", "__range": "15s"}
# What is empty as long as all is well.
HEALTHY_IS_EMPTY = {
    "Failed I/O", "Errors", "Lost events by cause", "Drift against the kernel", "Failed attempts of sources", "Slow now, because of",
    "Discarding now, sent by", "New, replaced or re-configured devices", "Online discard and fstrim both in use",
    "Latency spikes by cause", "Latency spikes", "Discard bursts", "Arrays and what carries them",
}
HEALTHY_IS_EMPTY_EXPRESSIONS = re.compile(r"ssdpulse_io_requeues_total|ssdpulse_accounting_drift_ios")


def questions():
    """(where, title, expression) of every panel and annotation, and the metric names of every variable's query."""
    for file in sorted(DASHBOARDS.glob("*.json")):
        dashboard = json.loads(file.read_text())
        for panel in dashboard["panels"]:
            for one in [panel, *(panel.get("panels") or [])]:
                for target in one.get("targets") or []:
                    yield file.stem, one["title"], target["expr"], target.get("format") == "heatmap"
        for annotation in dashboard["annotations"].get("list", []):
            yield file.stem, annotation["name"], annotation["expr"], False


def filled(expression):
    return re.sub(r"\$\{?(\w+)\}?", lambda match: FILLED[match[1]], expression)


def ask(server, expression, at):
    """How many series answer, or what the server says against the question."""
    try:
        return len(server.ask("query", query=filled(expression), time=at)["result"])
    except urllib.error.HTTPError as error:
        return f"{json.load(error)['error']}"


def names(expression):
    return set(re.findall(r"\b((?:ssdpulse|process)_\w+?)(?:_bucket|_count|_sum)?\b(?=[{|\"])", expression))


def judge(check, server, at, exported, native):
    refused, silent, asked, answered = [], [], 0, 0
    for where, title, expression, classic_only in questions():
        have = ask(server, expression, at)
        asked += 1
        if isinstance(have, str):
            refused.append(f"{where}: {title}: {have}")
        elif have:
            answered += 1
        elif (names(expression) <= exported and title not in HEALTHY_IS_EMPTY and not (native and classic_only)
              and not (not native and "latency" in title and "classic" not in title and "_bucket" not in expression)
              and not HEALTHY_IS_EMPTY_EXPRESSIONS.search(expression)):
            silent.append(f"{where}: {title}: {filled(expression)}")
    check.that(asked > 200 and not refused, f"{server.name} understands all {asked} queries {refused[:5]}")
    for one in silent:
        check.that(False, f"{server.name} has no answer: {one}")
    check.that(answered > 80, f"{server.name} answers {answered} of {asked}")


def test(check, state):
    seed = rig.fresh_seed()
    binary = prometheus.fetch(state, "trixie", "prometheus") / "usr/bin/prometheus"
    oldest = prometheus.fetch(state, "bookworm", "prometheus") / "usr/bin/prometheus"
    wanted = [("trixie native", binary, "native"), ("trixie classic", binary, "classic"),
              ("bookworm native", oldest, "native")]
    with rig.ram_disks(state, size="256M") as [disk], rig.daemon(state, [disk]) as daemon:
        jobs = [{"rw": "randrw", "bs": "4k", "iodepth": 8, "ioengine": "libaio"},
                {"rw": "randwrite", "bs": "16k", "fsync": 4, "ioengine": "psync", "rate_iops": 200},
                {"rw": "randtrim", "bs": "64k", "ioengine": "psync", "rate_iops": 50}]
        load = rig.Load(rig.fio_command(disk, seed, jobs, size="200M", time_based=None, runtime=RUN_SECONDS + 20,
                                        rate_iops=2000))
        time.sleep(3)
        with prometheus.servers(state, wanted, daemon.port) as servers:
            time.sleep(RUN_SECONDS)
            at = time.time()
            scrape = daemon.scrape()
            exported = {name for name, _ in [*scrape.values, *scrape.histograms]}
            check.figure(f"{len(exported)} families are exported on this host")
            for server in servers:
                judge(check, server, at, exported, "native" in server.name)
        load.jobs()


rig.main(test)
