#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# tier: long
# timeout-long: 3600
"""Do the dashboards of databases get their answers from real databases, their real exporters, and our daemon?

For Debian 12 and 13: PostgreSQL and MariaDB of the suite on one disk, lightly loaded, and trimmed. A real
Prometheus scrapes both exporters and the daemon; each query must return something, unless it is empty while all is well.
The names that the queries use and a suite's exporters have are tests/fixtures/prometheus/exporters.txt, by which the
names are checked without databases; SSDPULSE_TEST_GOLDEN=write writes it. (Whether Grafana draws them is not tried here.)
"""
import os
import re
import time
from contextlib import contextmanager
from pathlib import Path

import dashboards
import databases
import prometheus
from lib import cgroups, rig

SOURCE = Path(os.environ.get("SSDPULSE_SOURCE", "."))
RECORD = SOURCE / "tests/fixtures/prometheus/exporters.txt"
SUITES = ("bookworm", "trixie")
SECONDS = 25
SHORT = {"__rate_interval": "15s", "__interval": "15s", "__range": "20s"}
# While all is well, and nothing lies on a volume: system.test_dashboards has these on its made-up page.
MAY_BE_EMPTY = {"Slow now", "Slow times of the drives, and why", "Latency spikes", "Volumes: p99"}

# Debian has no MySQL: these of its names are from its manual (MariaDB 10.11 does not have them).
BY_MANUAL = {f"mysql_global_status_innodb_os_log_{name}" for name in ("fsyncs", "pending_fsyncs")}


@contextmanager
def mounted(device, place):
    rig.run("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", device)
    rig.run("mount", device, place)
    try:
        yield
    finally:
        rig.run("umount", "-l", place, check=False)


def host_of(server, name, address):
    """What the variable Host has for a database at this address."""
    [variable] = [one for one in dashboards.board(SOURCE, name)["templating"]["list"] if one["name"] == "instance"]
    query = re.fullmatch(r"query_result\((.*)\)", variable["query"]["query"], re.S)[1]
    answer = server.ask("query", query=query.replace("$server", address).replace("$job", "ssdpulse"))["result"]
    texts = ["{" + ", ".join(f'{label}="{value}"' for label, value in sorted(one["metric"].items())) + "} 1" for one in answer]
    return sorted(re.search(variable["regex"].strip("/"), text)[1] for text in texts)


def choice_of_host(check, server, name, port, ours):
    check.equal(host_of(server, name, f"127.0.0.1:{port}"), [f"127.0.0.1:{ours}"], f"{name}: the host of a database at 127.0.0.1:{port}")
    check.equal(host_of(server, name, "elsewhere:9"), ["(choose)", f"127.0.0.1:{ours}"], f"{name}: the hosts of one that has no host here")


def judge(check, server, suite, name, exported):
    silent, asked, theirs = [], 0, set()
    for where, expression, _ in dashboards.panels(SOURCE):
        if not where.startswith(f"{name}: "):
            continue
        asked += 1
        theirs |= set(dashboards.THEIRS.findall(expression))
        have = dashboards.ask(server, "query", dashboards.filled(expression, **SHORT))
        expected = where.split(": ", 1)[1] not in MAY_BE_EMPTY
        print(f"     {suite} {where}: {have if isinstance(have, str) else f'{have} series'}: {' '.join(expression.split())[:110]}")
        if isinstance(have, str) or not have and expected:
            silent.append(where)
    check.that(asked > 10 and not silent, f"{suite}: all {asked} queries of {name} are answered {silent}")
    return theirs & exported


def on_suite(check, state, suite, binary):
    """{name that the queries use: whether it is there}, and who was asked."""
    root = databases.make_root(state, suite)
    used = set()
    with rig.ram_disks(state, size="1G", filled=False) as [disk], mounted(disk.path, root / databases.PLACE), \
            cgroups.cgroups("database") as [group], databases.running(state, root, group) as exporters, \
            rig.daemon(state, [disk]) as daemon:
        jobs = "\n".join(f"  - {{job_name: {one.name.split()[0]}, static_configs: [{{targets: ['127.0.0.1:{one.port}']}}]}}"
                         for one in exporters)
        with prometheus.servers(state, [(suite, binary, "native")], daemon.port, jobs=jobs) as [server]:
            server.wait_scraped(SECONDS)
            rig.run("fstrim", root / databases.PLACE)
            time.sleep(5)
            exported = set().union(*(one.names() for one in exporters))
            for name, one in zip(("postgresql", "mysql"), exporters):
                choice_of_host(check, server, name, one.port, daemon.port)
                used |= judge(check, server, suite, name, exported)
    return used, f"{databases.server_versions(root)}, {', '.join(one.name for one in exporters)}"


def test(check, state):
    binary = prometheus.fetch(state, "trixie", "prometheus") / "usr/bin/prometheus"
    found = {suite: on_suite(check, state, suite, binary) for suite in SUITES}
    lines = ["# SPDX-License-Identifier: Apache-2.0",
             "# Which series of the exporters do the dashboards of databases read, and where are they? From real scrapes: written by",
             "# SSDPULSE_TEST_GOLDEN=write tests/system/test_databases.py."]
    lines += [*(f"# {suite}: {versions}" for suite, (_, versions) in found.items()), "# manual: MySQL 8.4, by its manual"]
    lines += [f"{name} manual" for name in sorted(BY_MANUAL)]
    for name in sorted(set().union(*(used for used, _ in found.values())) - BY_MANUAL):
        lines.append(" ".join([name, *(suite for suite, (used, _) in found.items() if name in used)]))
    text = "\n".join(lines) + "\n"
    if os.environ.get("SSDPULSE_TEST_GOLDEN") == "write":
        RECORD.write_text(text)
    recorded, seen = ({line for line in one.splitlines() if not line.startswith("#")} for one in (RECORD.read_text(), text))
    check.that(recorded == seen, f"the {len(seen)} recorded names are those of {' and of '.join(versions for _, versions in found.values())} "
               f"{sorted(recorded ^ seen)}")


rig.main(test)
