# SPDX-License-Identifier: Apache-2.0
"""Real Prometheus servers, obtained and started by tests/lib, and queried from Python."""
import json
import os
import re
import signal
import subprocess
import time
import urllib.parse
import urllib.request
from contextlib import contextmanager
from pathlib import Path

SHELL = Path(__file__).resolve().parents[1] / "lib"
SUITES = ("bookworm", "trixie", "sid")  # Prometheus 2.42, 2.53 and 3.5


def shell(state, script, *arguments):
    """A bash with tests/lib loaded; its output can be read while it runs."""
    environment = {**os.environ, "SSDPULSE_TEST_STATE": str(state)}
    return subprocess.Popen(["bash", "-c", f'set -euo pipefail; cd "$1"; shift; {script}', "-", SHELL,
                             *map(str, arguments)],
                            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)


def fetch(state, suite, *packages):
    """Where this suite's packages are unpacked; kept between runs."""
    cache = Path(os.environ.get("SSDPULSE_TEST_CACHE") or Path.home() / ".cache/ssdpulse")
    directory = cache / f"prometheus-{suite}"
    process = shell(state, 'source ./debian_suite.sh; fetch_from_suite "$@"', suite, *packages, directory)
    out, _ = process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"cannot fetch {packages} of {suite}")
    print(out, end="")
    return directory


def promtool(state, suite):
    """Debian 12 has promtool in the server's package, later suites in a package of its own."""
    package = "prometheus" if suite == "bookworm" else "promtool"
    return fetch(state, suite, package) / "usr/bin/promtool"


class Server:
    def __init__(self, name, port, log):
        self.name, self.port, self.log = name, port, log

    def ask(self, path, **parameters):
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=120) as answer:
            return json.load(answer)["data"]

    def query(self, expression, at=None):
        """Instant query: {frozenset of (label, value): value}."""
        result = self.ask("query", query=expression, time=at or time.time())["result"]
        return {frozenset(one["metric"].items()): float(one["value"][1]) for one in result}

    def target(self):
        return self.ask("targets")["activeTargets"][0]

    def wait_scraped(self, seconds):
        """Until it has scraped the target for so long; on a busy host one scrape or two may be missing."""
        deadline = time.monotonic() + 60
        while min(self.query(f'sum_over_time(up{{job="ssdpulse"}}[{seconds}s])').values(), default=0) < seconds - 2:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.name} misses scrapes: {self.target()}")
            time.sleep(0.2)

    def complaints(self):
        return [line for line in self.log.read_text().splitlines() if re.search("level=(warn|error)", line, re.I)]


@contextmanager
def servers(state, binaries, target_port, keys=None, jobs=""):
    """One server for each (name, binary, "native" or "classic"), started together, all scraping every second.

    `keys`: additional scrape configuration for each; `jobs`: more that all scrape, lines of YAML.
    """
    script = ('source ./prometheus.sh; start_prometheus "$@"; echo "$PROMETHEUS_PORT $PROMETHEUS_LOG $PROMETHEUS_PID"; '
              'read -r || true; stop_prometheus')
    processes = [shell(state, script, binary, target_port, form, more, jobs)
                 for (_, binary, form), more in zip(binaries, keys or [""] * len(binaries))]
    try:
        started = []
        for (name, _, _), process in zip(binaries, processes):
            words = process.stdout.readline().split()
            if len(words) != 3:
                raise RuntimeError(f"{name} did not start: {' '.join(words)} {process.stdout.read()}")
            started.append(Server(name, int(words[0]), Path(words[1])))
        yield started
    finally:
        for process in processes:
            process.stdin.close()
        for process in processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
