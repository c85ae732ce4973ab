#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Is /metrics valid for every version of promtool, and do text, gzip and protobuf agree, sample for sample?

promtool reads the live page and that of the unit tests, which has every family, including drives and arrays. The
protobuf body is decoded by code that protoc generates from the published definition, the text by a separate parser.
"""
import gzip
import importlib
import math
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import prometheus
from lib import metrics, rig

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures/prometheus"
DEFINITION = FIXTURES / "metrics.proto"
EVERY_FAMILY = FIXTURES / "small_snapshot.txt"
TEXT = "text/plain; version=0.0.4; charset=utf-8"
PROTOBUF = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"(?:,|$)')
ACCEPTS = (  # what is asked for, what is answered
    ("", TEXT),
    ("*/*", TEXT),
    ("text/plain", TEXT),
    (metrics.PROTOBUF + ";q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", PROTOBUF),
    ("text/plain;version=0.0.4;q=0.6," + metrics.PROTOBUF + ";q=0.1", TEXT),
)
FAMILIES = {  # operation: families that must have samples of it
    "read": ("ssdpulse_io_device_latency_seconds", "ssdpulse_io_queue_latency_seconds", "ssdpulse_io_latency_seconds"),
    "write": ("ssdpulse_io_latency_seconds", "ssdpulse_io_size_bytes"),
    "flush": ("ssdpulse_io_device_latency_seconds", "ssdpulse_io_latency_seconds"),
    "discard": ("ssdpulse_io_latency_seconds", "ssdpulse_io_size_bytes"),
}


def fetch(port, accept, encoding="identity"):
    request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics",
                                     headers={"Accept": accept, "Accept-Encoding": encoding})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.headers, answer.read()


def one_snapshot(daemon):
    """Text, gzipped text, protobuf and gzipped protobuf of one snapshot, each (headers, body as sent)."""
    for _ in range(50):
        pages = [fetch(daemon.port, accept, encoding) for accept in ("text/plain", metrics.PROTOBUF)
                 for encoding in ("identity", "gzip")]
        if pages[0][1] == fetch(daemon.port, "text/plain")[1]:  # the snapshot's own timestamp is among the samples
            return pages
    raise RuntimeError("four scrapes never fell between two ticks")


def unescape(text):
    return re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], text)


def samples_of_text(body):
    """({(name, labels): value}, {family: type}, {family: help}); `le` is a number."""
    samples, types, helps = {}, {}, {}
    for line in body.decode().splitlines():
        if line.startswith("# TYPE "):
            _, _, name, types[name] = line.split(" ")
        elif line.startswith("# HELP "):
            _, _, name, helps[name] = line.split(" ", 3)
        else:
            name, labels, value = SAMPLE.match(line).groups()
            pairs = [(key, unescape(text)) for key, text in LABEL.findall(labels or "")]
            key = name, frozenset((k, float(v) if k == "le" else v) for k, v in pairs)
            if key in samples:
                raise ValueError(f"twice: {key}")
            samples[key] = float(value)
    return samples, types, helps


def families_of_protobuf(state, body):
    """Decoded with the published message definition: {name: MetricFamily}."""
    rig.run("protoc", f"--proto_path={DEFINITION.parent}", f"--python_out={state}", DEFINITION)
    sys.path.insert(0, str(state))
    published = importlib.import_module("metrics_pb2")
    families, at = {}, 0
    while at < len(body):
        length, shift = 0, 0
        while True:
            byte = body[at]
            length, shift, at = length | (byte & 127) << shift, shift + 7, at + 1
            if byte < 128:
                break
        family = published.MetricFamily.FromString(body[at:at + length])
        if family.FindInitializationErrors() or family.name in families:
            raise ValueError(f"family {family.name} is incomplete or there twice")
        families[family.name] = family
        at += length
    return families, published


def samples_of_protobuf(families, published):
    """In the same shape as samples_of_text()."""
    samples, types, helps = {}, {}, {}
    for name, family in families.items():
        types[name] = published.MetricType.Name(family.type).lower()
        helps[name] = family.help
        for metric in family.metric:
            labels = frozenset((pair.name, pair.value) for pair in metric.label)
            if metric.HasField("histogram"):
                histogram = metric.histogram
                samples[f"{name}_count", labels] = float(histogram.sample_count)
                samples[f"{name}_sum", labels] = histogram.sample_sum
                bounds = {bucket.upper_bound: bucket.cumulative_count for bucket in histogram.bucket}
                bounds.setdefault(math.inf, histogram.sample_count)
                for bound, count in bounds.items():
                    samples[f"{name}_bucket", labels | {("le", bound)}] = float(count)
            else:
                samples[name, labels] = (metric.counter if metric.HasField("counter") else metric.gauge).value
    return samples, types, helps


def same(text, protobuf):
    """The text serializer writes 16 significant digits; a double may need 17."""
    if isinstance(text, float) and isinstance(protobuf, float):
        return text == float(f"{protobuf:.16g}")
    return text == protobuf


def native_agrees(check, families):
    """Each native histogram's buckets add up to its sample count."""
    wrong, seen = [], 0
    for name, family in families.items():
        for metric in family.metric:
            if not metric.HasField("histogram"):
                continue
            seen += 1
            histogram, population, total = metric.histogram, 0, metric.histogram.zero_count
            for delta in histogram.positive_delta:
                population += delta
                total += population
            slots = sum(span.length for span in histogram.positive_span)
            if total != histogram.sample_count or slots != len(histogram.positive_delta) \
                    or not histogram.HasField("created_timestamp"):
                wrong.append((name, total, histogram.sample_count, slots))
    check.that(seen and not wrong, f"{seen} native histograms hold what they count, with a created timestamp {wrong}")


def promtool_is_silent(check, tool, pages):
    version = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True).stdout.split(" (")[0]
    for what, page in pages.items():
        done = subprocess.run([tool, "check", "metrics"], input=page, capture_output=True, check=False,
                              env={**os.environ, "NO_COLOR": "1"})
        check.equal((done.returncode, done.stdout + done.stderr), (0, b""), f"{version}: {what}")


def some_io(disk, seed):
    rig.fio(disk, seed, rw="randrw", bs="4k", iodepth=8, ioengine="libaio", number_ios=4000, size="128M")
    rig.fio(disk, seed, rw="randwrite", bs="16k", fsync=4, ioengine="psync", number_ios=200, size="128M")
    rig.fio(disk, seed, rw="randtrim", bs="64k", ioengine="psync", number_ios=200, size="128M")


def test(check, state):
    seed = rig.fresh_seed()
    with rig.ram_disks(state, size="128M") as [disk], rig.daemon(state, [disk]) as daemon:
        some_io(disk, seed)
        scrape = daemon.at_rest()
        for operation, families in FAMILIES.items():
            have = {name for name in families for (n, labels), h in scrape.histograms.items()
                    if n == name and {("device", disk.name), ("operation", operation)} <= labels and h.count}
            check.equal(have, set(families), f"filled by a {operation}")

        for accept, expected in ACCEPTS:
            headers, _ = fetch(daemon.port, accept)
            check.equal(headers["Content-Type"], expected, f"asked for {accept!r}")
        (text_headers, text), (packed_headers, packed), (_, protobuf), (_, packed_protobuf) = one_snapshot(daemon)
        check.equal(text_headers["Content-Encoding"], None, "asked for identity")
        check.equal(packed_headers["Content-Encoding"], "gzip", "asked for gzip")
        check.that(gzip.decompress(packed) == text,
                   f"gzipped text ({len(packed)} bytes) is the text ({len(text)} bytes)")
        check.that(gzip.decompress(packed_protobuf) == protobuf,
                   f"gzipped protobuf is the protobuf ({len(protobuf)} bytes)")

        families, published = families_of_protobuf(state, protobuf)
        of_text, of_protobuf = samples_of_text(text), samples_of_protobuf(families, published)
        for what, left, right in zip(("samples", "types", "helps"), of_text, of_protobuf):
            differ = [(key, left.get(key), right.get(key)) for key in left.keys() | right.keys()
                      if not same(left.get(key), right.get(key))]
            check.that(left and not differ, f"{len(left)} {what} are the same in text and protobuf {differ[:5]}")
        check.that(all(family.help and family.metric for family in families.values()),
                   "every family has help and samples")
        native_agrees(check, families)

        pages = {"the live page": text, "every family": EVERY_FAMILY.read_bytes()}
        check.that(samples_of_text(pages["every family"])[1].keys() >= families.keys(),
                   f"of the live page's {len(families)} families none is missing from {EVERY_FAMILY.name}")
        for suite in prometheus.SUITES:
            promtool_is_silent(check, prometheus.promtool(state, suite), pages)


rig.main(test)
