#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Takes the README's pictures; run by hand: screenshots.py ARCHIVE DIRECTORY, with SSDPULSE_GRAFANA and a Chromium.

ARCHIVE is the prometheus.tar.gz of a kept run of the scenario `alarms` (tests/vm/run.sh --keep 6.12 alarms): the
pictures show what its Prometheus had seen by the time that the fstrim stalled reads.
"""
import subprocess
import sys
import tarfile
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import grafana
import prometheus
from alerts.stack import free_port, native_option, started

SUITE = "sid"
BEFORE = 5 * 60  # seconds shown
AFTER = -8  # seconds after the stall's alert: the fstrim is stopped soon after it
# file: (dashboard, its variables, first and last row of pixels)
PICTURES = {
    "fleet": ("ssdpulse-fleet", {}, 0, 1310),
    "device": ("ssdpulse-device", {"device": "nvme0n1", "window": "5m"}, 0, 1860),
    "wear": ("ssdpulse-device", {"device": "nvme1n1", "window": "5m"}, 2980, 3520),
    "daemon": ("ssdpulse-daemon", {}, 0, 1460),
}
WIDTH = 1366


@contextmanager
def past(state, archive):
    """A Prometheus with what was scraped then; it scrapes nothing itself."""
    with tarfile.open(archive) as file:
        file.extractall(state)
    binary = prometheus.fetch(state, SUITE, "prometheus") / "usr/bin/prometheus"
    config, port = state / "empty.yml", free_port()
    options, text = native_option(binary, "{}")
    config.write_text(text)
    with started([binary, f"--config.file={config}", f"--storage.tsdb.path={state / 'prometheus/data'}",
                  f"--web.listen-address=127.0.0.1:{port}", *options], state / "prometheus.log",
                 f"http://127.0.0.1:{port}/-/ready"):
        yield prometheus.Server("past", port, state / "prometheus.log")


def stalled(server):
    """When the stall's alert began to fire."""
    now = time.time()
    for hours in (1, 11, 240):  # a query may have 11,000 points
        lines = server.ask("query_range", query='ALERTS{alertname="SsdpulseTailLiftedByDiscard",alertstate="firing"}',
                           start=now - hours * 3600, end=now, step=max(5, hours * 3600 / 10000))["result"]
        if lines:
            return min(line["values"][0][0] for line in lines)
    sys.exit("no alert of a stall in the archive")


def browse(url, file, height, state):
    subprocess.run(["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                    f"--user-data-dir={state / 'chromium'}", "--hide-scrollbars", f"--window-size={WIDTH},{height}",
                    "--virtual-time-budget=30000", f"--screenshot={file}", url], check=True, timeout=300,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def take(url, file, top, bottom, state):
    """Pixel rows `top` to `bottom` of the page. If `top` is not 0, they are cut out of a picture of the whole page."""
    whole, page = state / "whole.png", state / "page.html"
    browse(url, whole if top else file, bottom, state)
    if top:
        page.write_text(f"<body style='margin: 0; background: url(whole.png) 0 -{top}px no-repeat'>")
        browse(page.as_uri(), file, bottom - top, state)


def main():
    if len(sys.argv) < 3 or grafana.home() is None:
        sys.exit(__doc__)
    archive, directory = sys.argv[1], Path(sys.argv[2])
    wanted = sys.argv[3:] or list(PICTURES)
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ssdpulse-") as temporary:
        state = Path(temporary)
        with past(state, archive) as source, grafana.server(state, source.port) as server:
            when = stalled(source)
            for name in wanted:
                uid, variables, top, bottom = PICTURES[name]
                span = f"from={int(when - BEFORE) * 1000}&to={int(when + AFTER) * 1000}"
                choices = "".join(f"&var-{key}={value}" for key, value in variables.items())
                take(f"{server.url}/d/{uid}?{span}{choices}", directory / f"{name}.png", top, bottom, state)
                print(f"{directory / name}.png")


main()
