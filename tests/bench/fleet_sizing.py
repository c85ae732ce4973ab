#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What does a fleet cost its Prometheus? Made-up hosts, a real server, native against classic histograms.

    tests/bench/fleet_sizing.py [--hosts 25] [--disks 8] [--seconds 180] [--full] [--profile]

Every host serves the made-up page of the tests for each of its disks, without what an ordinary disk lacks (RARE), so
that a disk has about as many series as deploy/docs/overhead.md measured; histograms have 24 filled classic buckets or 20 filled
native ones, and all values move. --full keeps everything: every value that any label can have. --profile: only what
metrics.profile: fleet keeps. Both servers (the newest of a Debian suite) run at the same
time, with all rules as shipped; CPU means processor time, so a busy host matters little. Prints a table as Markdown.
Needs SSDPULSE_BINARY (its list of metrics), SSDPULSE_TEST_STATE and SSDPULSE_TEST_CACHE, as tests do.
"""
import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(SOURCE / "tests/system"), str(SOURCE / "tests/kernel")]
import dashboards  # noqa: E402
import fleet_profile  # noqa: E402
import made_up  # noqa: E402
import prometheus  # noqa: E402
import protobuf_page  # noqa: E402
from alerts.stack import free_port  # noqa: E402
from lib import metric_list  # noqa: E402

SCRAPE_SECONDS = 15
WARM_UP_SECONDS = 30
BOUNDS = [2.0 ** exponent for exponent in range(-20, 4)]
NATIVE_BUCKETS, FIRST_BUCKET = 20, -110
# Tenants, paths and the model (which is on only where requested), operations that few disks see, errors, and hints.
RARE = re.compile(r"^ssdpulse_(tenant|path|model|modelled|write_lifetime|write_hint_order|collection|array|cloud|endurance)_"
                  r'|operation="(write_zeroes|secure_erase|zone|passthrough)"|during="(both|flush)"'
                  r'|hint="(short|medium|long|extreme|none|unknown)"|^ssdpulse_io_(errors|requeues)_total'
                  r'|operation="(flush|discard)".*during="discard"')
SUFFIX = re.compile(r"_(bucket|sum|count)$")
LINE = re.compile(r"(\w+)\{(.*)\} (\S+)$")


def template(disks, full=False):
    """{family: (type, [labels])} of a host: what belongs to the page's NVMe drive is repeated for each disk."""
    families, kind = {}, {}
    for line in made_up.page(metric_list.metrics(), 1000).splitlines():
        if line.startswith("# TYPE "):
            kind[line.split()[2]] = line.split()[3]
            continue
        name, labels, _ = LINE.match(line).groups()
        if not full and RARE.search(f"{name}{{{labels}"):
            continue
        base = SUFFIX.sub("", name) if kind.get(SUFFIX.sub("", name)) == "histogram" else name
        if base != name:
            labels = re.sub(r',?\ble="[^"]*"', "", labels)
        kept = families.setdefault(base, (kind[base], {}))[1]
        if re.search(r'"(nvme0|nvme0n1)"', labels):
            for disk in range(disks):
                kept[re.sub(r'"nvme0(n1)?"', lambda found, disk=disk: f'"nvme{disk}{found[1] or ""}"', labels)] = None
        elif "device=" not in labels and "controller=" not in labels and "array=" not in labels:
            kept[labels] = None
    return {name: (kind, list(labels)) for name, (kind, labels) in families.items() if labels}


def in_profile(families):
    """What the fleet profile keeps of such a host."""
    of_daemon = {metric["name"] for metric in metric_list.metrics() if metric["group"] == "self"}
    left = {}
    for name, (kind, series) in families.items():
        for labels in series:
            kept = fleet_profile.reduced(name, dict(re.findall(r'(\w+)="([^"]*)"', labels)), name in of_daemon)
            if kept is not None:
                left.setdefault(name, (kind, {}))[1][",".join(f'{key}="{value}"' for key, value in kept.items())] = None
    return {name: (kind, list(labels)) for name, (kind, labels) in left.items()}


class Pages:
    """One page for each scrape, counters growing from one to the next."""

    def __init__(self, families, form, bounds, seed=7):
        self._families, self._form, self._bounds, self._random = families, form, bounds, random.Random(seed)
        self._totals = {}

    def _grown(self, key, most):
        self._totals[key] = self._totals.get(key, 0) + self._random.randrange(most)
        return self._totals[key]

    def next(self):
        return self._protobuf() if self._form == "native" else self._text().encode()

    def _value(self, name, kind, labels):
        if kind == "counter":
            return float(self._grown((name, labels), 100000))
        return time.time() if "timestamp" in name else 1.0 if name.endswith("_info") else self._random.random() * 2

    def _text(self):
        lines = []
        for name, (kind, series) in self._families.items():
            lines.append(f"# TYPE {name} {kind}")
            for labels in series:
                if kind != "histogram":
                    lines.append(f"{name}{{{labels}}} {self._value(name, kind, labels)}")
                    continue
                below, comma = 0, "," if labels else ""
                for bound in self._bounds:
                    below += self._grown((name, labels, bound), 300)
                    lines.append(f'{name}_bucket{{{labels}{comma}le="{bound}"}} {below}')
                lines += [f'{name}_bucket{{{labels}{comma}le="+Inf"}} {below}', f"{name}_sum{{{labels}}} {below * 1e-3}",
                          f"{name}_count{{{labels}}} {below}"]
        return "\n".join(lines) + "\n"

    def _protobuf(self):
        return b"".join(protobuf_page.family(name, kind, [
            (re.findall(r'(\w+)="([^"]*)"', labels),
             self._native(name, labels) if kind == "histogram" else self._value(name, kind, labels))
            for labels in series]) for name, (kind, series) in self._families.items())

    def _native(self, name, labels):
        counts = [self._grown((name, labels, bucket), 300) for bucket in range(NATIVE_BUCKETS)]
        return protobuf_page.native_histogram(FIRST_BUCKET, counts, sum(counts) * 1e-3)


def serve(form, arguments):
    families, bounds = template(arguments.disks, arguments.full), BOUNDS
    if arguments.profile:
        families, bounds = in_profile(families), [2.0 ** exponent for exponent in fleet_profile.CLASSIC_EXPONENTS]
    source, scrapes = Pages(families, form, bounds), arguments.seconds // SCRAPE_SECONDS + 8
    pages = [source.next() for _ in range(scrapes)]
    begin = time.time()
    content = protobuf_page.CONTENT if form == "native" else "text/plain; version=0.0.4; charset=utf-8"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            page = pages[min(int((time.time() - begin) / SCRAPE_SECONDS), len(pages) - 1)]
            self.send_response(200)
            self.send_header("Content-Type", content)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_):
            pass

    web = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    return web.server_address[1], len(pages[0])


class Run:
    def __init__(self, state, binary, form, arguments):
        self.form, self.place = form, state / f"sizing-{form}"
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir(parents=True)
        target, self.page_bytes = serve(form, arguments)
        rules = SOURCE / "deploy/prometheus/rules"
        targets = "\n".join(f'      - {{targets: ["127.0.0.1:{target}"], labels: {{instance: host{host}, '
                            f'__metrics_path__: /host{host}}}}}' for host in range(arguments.hosts))
        (self.place / "prometheus.yml").write_text(
            f"global: {{scrape_interval: {SCRAPE_SECONDS}s, evaluation_interval: 15s}}\nrule_files:\n"
            + "".join(f"  - {rules / name}\n" for name in (f"latency_{form}.yml", "recording.yml", "alerts.yml", "fleet.yml"))
            + f"scrape_configs:\n  - job_name: ssdpulse\n    static_configs:\n{targets}\n")
        port = free_port()
        options = ["--enable-feature=native-histograms"] if form == "native" else []
        self.process = subprocess.Popen(
            [binary, f"--config.file={self.place / 'prometheus.yml'}", f"--storage.tsdb.path={self.place / 'data'}",
             f"--web.listen-address=127.0.0.1:{port}", "--web.enable-admin-api", *options],
            stdout=(self.place / "log").open("w"), stderr=subprocess.STDOUT)
        self.server = prometheus.Server(form, port, self.place / "log")

    def own(self, name):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.server.port}/metrics", timeout=30) as answer:
            return sum(float(value) for value in re.findall(rf"^{name}(?:\{{[^}}]*\}})? (\S+)$", answer.read().decode(), re.M))

    def samples(self):
        return self.own("prometheus_tsdb_head_samples_appended_total")

    def snapshot_bytes(self):
        """The size of the head as a block, as it would be stored."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.server.port}/api/v1/admin/tsdb/snapshot", method="POST")
        urllib.request.urlopen(request, timeout=1200).close()
        chunks = (self.place / "data/snapshots").rglob("chunks/*")
        index = (self.place / "data/snapshots").rglob("index")
        return sum(file.stat().st_size for file in chunks), sum(file.stat().st_size for file in index)


def queryable(run, recorded):
    """{panel: samples that its queries read}."""
    at, read = time.time(), {}
    short = {"compare": "1m", "__rate_interval": "1m", "__interval": "1m", "__range": "6h"}
    for where, expression, kind in dashboards.panels(SOURCE, recorded):
        if where.startswith(("fleet:", "overview:")) and kind in ("", run.form):
            answer = run.server.ask("query", query=dashboards.filled(expression, **short), time=at, stats="all")
            read[where] = read.get(where, 0) + answer["stats"]["samples"]["totalQueryableSamples"]
    return read


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--hosts", type=int, default=25)
    parser.add_argument("--disks", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=180)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    state = Path(os.environ["SSDPULSE_TEST_STATE"])
    binary = prometheus.fetch(state, "sid", "prometheus") / "usr/bin/prometheus"
    runs = [Run(state, binary, form, arguments) for form in ("native", "classic")]
    try:
        time.sleep(WARM_UP_SECONDS)
        before = [(time.time(), run.own("process_cpu_seconds_total"), run.samples()) for run in runs]
        time.sleep(arguments.seconds - WARM_UP_SECONDS)
        disks, figures = arguments.hosts * arguments.disks, {}
        for run, (begin, cpu, samples) in zip(runs, before):
            took = time.time() - begin
            figures[run.form] = {
                "page of a host, bytes": run.page_bytes,
                "series a disk, scraped": sum(run.server.query("sum(scrape_samples_post_metric_relabeling)").values()) / disks,
                "series a disk, with rules": run.own("prometheus_tsdb_head_series") / disks,
                "resident memory, MiB": run.own("process_resident_memory_bytes") / 2 ** 20,
                "CPU, share of a core": (run.own("process_cpu_seconds_total") - cpu) / took,
                "samples a second": (run.samples() - samples) / took,
                "failed scrapes": sum(run.server.query("count(up == 0) or vector(0)").values()),
            }
            print(f"{run.form}: {figures[run.form]}; writing its block", file=sys.stderr, flush=True)
            total = run.samples()
            chunks, index = run.snapshot_bytes()
            figures[run.form] |= {"bytes a sample in a block": chunks / total, "bytes of index a disk": index / disks}
        if any(one["failed scrapes"] for one in figures.values()):
            sys.exit(f"scrapes failed: the figures mean nothing {figures}")
        print(f"\n{arguments.hosts} hosts with {arguments.disks} disks each, {arguments.seconds} s, every {SCRAPE_SECONDS} s, "
              f"Prometheus {prometheus_version(runs[0])}\n\n| | native | classic |\n|---|---|---|")
        for name, native in figures["native"].items():
            print(f"| {name} | {native:,.2f} | {figures['classic'][name]:,.2f} |")
        print("\n| totalQueryableSamples of a panel | native | classic |\n|---|---|---|")
        read = [{**queryable(run, True), **queryable(run, False)} for run in runs]
        for where in sorted(set(read[0]) | set(read[1])):
            print(f"| {where} | {read[0].get(where, 0):,} | {read[1].get(where, 0):,} |")
    finally:
        for run in runs:
            run.process.terminate()
            run.process.wait(30)
            shutil.rmtree(run.place / "data", ignore_errors=True)


def prometheus_version(run):
    return run.server.ask("status/buildinfo")["version"]


main()
