# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus and a real Alertmanager with the project's own files: rules, alerts, inhibitions.

The shipped files wait for minutes. They are used as they are, or hurried: then only the waiting times are shortened.
"""
import json
import re
import shutil
import socket
import subprocess
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import prometheus

SHIPPED = Path(__file__).resolve().parents[3] / "deploy/prometheus"
INSTANCE = "db1"
INTERVAL = "2s"  # of scrapes and rules
PATIENCE = "10s"  # of alerts that are shipped with `for: 5m` and longer


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


@contextmanager
def started(command, log, ready, seconds=30):
    """Runs a server: the block begins when `ready` answers, and the server stops at its end."""
    with log.open("w") as output, \
            subprocess.Popen(list(map(str, command)), stdout=output, stderr=subprocess.STDOUT) as process:
        try:
            deadline = time.monotonic() + seconds
            while True:
                try:
                    urllib.request.urlopen(ready, timeout=5).close()
                    break
                except OSError as error:
                    if process.poll() is not None or time.monotonic() > deadline:
                        raise RuntimeError(f"{command[0]} did not start: {log.read_text()[-2000:]}") from error
                    time.sleep(0.2)
            yield
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def hasten(text):
    text = re.sub(r"\binterval: \w+", f"interval: {INTERVAL}", text)  # of rule groups
    text = re.sub(r"_interval: 15s", f"_interval: {INTERVAL}", text)
    return re.sub(r"\bfor: (?!30s)\w+", f"for: {PATIENCE}", text)


def native_option(binary, config):
    """Options that enable native histograms, and the configuration that does; see prometheus.yml."""
    said = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True)
    version = tuple(map(int, re.search(r"version (\d+)\.(\d+)", said.stdout + said.stderr).groups()))
    if version >= (3, 8):
        return [], config.replace("# scrape_native_histograms", "scrape_native_histograms")
    return ["--enable-feature=native-histograms"], config


# Debian's Alertmanager expects its templates under /usr/share: they are put there, in a mount namespace of its own.
IN_PLACE = ["unshare", "--mount", "sh", "-c",
            'mount -t overlay overlay -o "lowerdir=$0:/usr/share" /usr/share && exec "$@"']


class Stack:
    def __init__(self, prometheus_port, alertmanager_port, log):
        self.server = prometheus.Server("prometheus", prometheus_port, log)
        self.log = log
        self._alertmanager = f"http://127.0.0.1:{alertmanager_port}/api/v2/alerts"

    def firing(self):
        """{(alert, device): rest of the alert}, as Prometheus sees them."""
        return {(alert["labels"]["alertname"], alert["labels"].get("device")): alert
                for alert in self.server.ask("alerts")["alerts"] if alert["state"] == "firing"}

    def descriptions(self, alert, device):
        """The descriptions of all firing alerts of this name for this device: reads and writes have one each."""
        return [one["annotations"]["description"] for one in self.server.ask("alerts")["alerts"] if one["state"] == "firing"
                and (one["labels"]["alertname"], one["labels"].get("device")) == (alert, device)]

    def notified(self):
        """{(alert, device): "active" or "suppressed"}, as Alertmanager sees them; those that have ended are gone. If
        reads and writes have one each, it is active if either is."""
        alerts = sorted(get(self._alertmanager), key=lambda alert: alert["status"]["state"], reverse=True)
        return {(alert["labels"]["alertname"], alert["labels"].get("device")): alert["status"]["state"] for alert in alerts}

    def notify(self, labels):
        """Sends Alertmanager an alert, as Prometheus does."""
        body = json.dumps([{"labels": labels}]).encode()
        request = urllib.request.Request(self._alertmanager, body, {"Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=10).close()


@contextmanager
def stack(state, suite, form, target_port, hurried=True):
    """form: "native" or "classic"; the target is scraped as job "ssdpulse", and its instance is INSTANCE."""
    root = prometheus.fetch(state, suite, "prometheus", "prometheus-alertmanager") / "usr/bin"
    place = state / f"{suite}-{form}"
    shutil.copytree(SHIPPED, place)
    config = (place / "prometheus.yml").read_text()
    if hurried:
        config = hasten(config)
        for file in place.glob("rules/*.yml"):
            file.write_text(hasten(file.read_text()))
    port, alertmanager = free_port(), free_port()
    config = config.replace("latency_native.yml ", f"latency_{form}.yml ")
    for shipped, here in ((9093, alertmanager), (10936, target_port)):
        config = config.replace(f"127.0.0.1:{shipped}", f"127.0.0.1:{here}")
    target = f'["127.0.0.1:{target_port}"]'
    config = config.replace(target, f"{target}\n        labels: {{instance: {INSTANCE}}}")
    options = []
    if form == "native":
        options, config = native_option(root / "prometheus", config)
    (place / "prometheus.yml").write_text(config)
    with started([*IN_PLACE, root.parent / "share", root / "prometheus-alertmanager",
                  f"--config.file={place / 'alertmanager.example.yml'}", f"--storage.path={place / 'alertmanager'}",
                  f"--web.listen-address=127.0.0.1:{alertmanager}", "--cluster.listen-address="], place / "alertmanager.log",
                 f"http://127.0.0.1:{alertmanager}/-/ready"), \
            started([root / "prometheus", f"--config.file={place / 'prometheus.yml'}",
                     f"--storage.tsdb.path={place / 'data'}", f"--web.listen-address=127.0.0.1:{port}", *options],
                    place / "prometheus.log", f"http://127.0.0.1:{port}/-/ready"):
        yield Stack(port, alertmanager, place / "prometheus.log")
