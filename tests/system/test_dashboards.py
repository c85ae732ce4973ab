#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
"""Does every query of every panel work, and does it return something if the daemon has something to report?

A daemon measures a disk under load, real servers scrape it: some accept native histograms, one does not. Each
expression is queried as Grafana would query it, with the variables filled in. An expression that names only metrics
which the daemon exports on this host must return something. What this host cannot produce (drives, bursts, spikes) is
on a made-up page that has every family: there every expression must return something.
"""
import os
import time
from contextlib import closing
from pathlib import Path

import dashboards
import made_up
import prometheus
from lib import rig

SOURCE = Path(os.environ.get("SSDPULSE_SOURCE", "."))
SHORT = {"compare": "5s", "__rate_interval": "10s", "__interval": "10s", "__range": "15s"}
SCRAPED_SECONDS = 16  # a rate and what it is compared with
# Empty while all is well.
HEALTHY_IS_EMPTY = {
    "Failed I/O", "Errors", "Lost events by cause", "Drift against the kernel", "Failed attempts of sources",
    "Requeues, failovers, never issued", "New, replaced or re-configured devices",
    "Slow now, because of", "Latency spikes by cause", "Latency spikes", "Slow time by cause", "Spikes by cause",
    "Slow now", "Slow times of the drives, and why",
    "Held up, and by what", "Waited beyond usual, by cause", "Online discard and fstrim both in use",
}
# Empty on a page where nothing changes for longer than a test may take, or that is less than an hour old.
UNCHANGED_IS_EMPTY = {"New, replaced or re-configured devices"}


def judge(check, server, at, may_be_empty, exported=None):
    """exported: the families that exist; None: all of them."""
    refused, silent, answers = [], [], []
    form = "classic" if "classic" in server.name else "native"
    for where, expression, kind in dashboards.panels(SOURCE):
        expression = dashboards.filled(expression, **SHORT)
        have = dashboards.ask(server, "query", expression, time=at)
        answers.append(have)
        if isinstance(have, str):
            refused.append(f"{where}: {have}")
        elif (not have and kind in ("", form) and where.split(": ")[1] not in may_be_empty and not dashboards.THEIRS.search(expression)
              and (exported is None or dashboards.names(expression) <= exported)):
            silent.append(f"{where}: {expression}")
    check.that(len(answers) > 200 and not refused, f"{server.name} understands all {len(answers)} queries "
               f"{refused[:5]}")
    check.that(not silent, f"{server.name} answers {len([one for one in answers if one])} of {len(answers)}, and all "
               "that it can")
    for one in silent:
        print(f"     no answer: {one}")


def under_load(check, state, seed):
    suites = {suite: prometheus.fetch(state, suite, "prometheus") / "usr/bin/prometheus"
              for suite in ("bookworm", "trixie")}
    wanted = [("trixie native", suites["trixie"], "native"), ("trixie classic", suites["trixie"], "classic"),
              ("bookworm native", suites["bookworm"], "native")]
    with rig.ram_disks(state, size="256M") as [disk], rig.daemon(state, [disk]) as daemon:
        jobs = [{"rw": "randrw", "bs": "4k", "iodepth": 8, "ioengine": "libaio"},
                {"rw": "randwrite", "bs": "16k", "fsync": 4, "ioengine": "psync", "rate_iops": 200},
                {"rw": "randtrim", "bs": "64k", "ioengine": "psync", "rate_iops": 50}]
        # Until it is ended: a panel of what happens now, as a burst of discards, is empty when it is over.
        load = rig.fio_command(disk, seed, jobs, size="200M", time_based=None, runtime=3600, rate_iops=2000)
        with closing(rig.Load(load)), prometheus.servers(state, wanted, daemon.port) as servers:
            for server in servers:
                server.wait_scraped(SCRAPED_SECONDS)
            at = time.time()
            scrape = daemon.scrape()
            exported = {name for name, _ in [*scrape.values, *scrape.histograms]}
            check.figure(f"{len(exported)} families are exported on this host")
            for server in servers:
                judge(check, server, at, HEALTHY_IS_EMPTY, exported)


def with_everything(check, state):
    binary = prometheus.fetch(state, "trixie", "prometheus") / "usr/bin/prometheus"
    with made_up.server() as port:
        with prometheus.servers(state, [("classic, made-up page", binary, "classic")], port) as [server]:
            server.wait_scraped(SCRAPED_SECONDS)
            judge(check, server, time.time(), UNCHANGED_IS_EMPTY)


def test(check, state):
    with_everything(check, state)
    under_load(check, state, rig.fresh_seed())


rig.main(test)
