# SPDX-License-Identifier: Apache-2.0
"""What does /metrics report? Fetches it, decodes both formats by hand, and computes the difference of two scrapes.

The protobuf decoder knows the published field numbers of io.prometheus.client and nothing about the exporter.
"""
import struct
import urllib.request
from collections import Counter
from dataclasses import dataclass, field

from lib import buckets

PROTOBUF = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
COUNTER, GAUGE, SUMMARY, UNTYPED, HISTOGRAM = range(5)


@dataclass
class Histogram:
    count: int = 0
    sum: float = 0.0
    native: Counter = field(default_factory=Counter)  # native index or ZERO -> samples
    classic: dict = field(default_factory=dict)  # upper bound -> cumulative samples
    schema: int = None
    zero_threshold: float = 0.0

    def minus(self, other):
        native = Counter(self.native)
        native.subtract(other.native)
        return Histogram(self.count - other.count, self.sum - other.sum,
                         Counter({b: n for b, n in native.items() if n}),
                         {le: n - other.classic.get(le, 0) for le, n in self.classic.items()},
                         self.schema, self.zero_threshold)


def _fields(data):
    """(number, value) of each field of one message: int, float, or bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
        elif kind == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        elif kind == 2:
            length, at = _varint(data, at)
            value, at = data[at:at + length], at + length
        else:
            raise ValueError(f"wire type {kind}")
        yield key >> 3, value


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def _zigzag(value):
    return value >> 1 ^ -(value & 1)


def _packed(values):
    """A repeated sint: one field per value, or all values packed into one field."""
    for value in values:
        if isinstance(value, int):
            yield _zigzag(value)
        else:
            at = 0
            while at < len(value):
                one, at = _varint(value, at)
                yield _zigzag(one)


def _histogram(data):
    result = Histogram()
    spans, deltas = [], []
    for number, value in _fields(data):
        if number == 1:
            result.count = value
        elif number == 2:
            result.sum = value
        elif number == 3:
            bucket = dict(_fields(value))
            result.classic[bucket[2]] = bucket.get(1, 0)
        elif number == 5:
            result.schema = _zigzag(value)
        elif number == 6:
            result.zero_threshold = value
        elif number == 7 and value:
            result.native[buckets.ZERO] = value
        elif number == 12:
            span = dict(_fields(value))
            spans.append((_zigzag(span.get(1, 0)), span.get(2, 0)))
        elif number == 13:
            deltas.append(value)
    deltas = iter(list(_packed(deltas)))
    index = population = 0
    for offset, length in spans:
        index += offset
        for _ in range(length):
            population += next(deltas)
            if population:
                result.native[index] = population
            index += 1
    if next(deltas, None) is not None:
        raise ValueError("more deltas than the spans hold")
    return result


class Scrape:
    """Values and histograms, each {(name, frozenset of (label, value)): ...}."""

    def __init__(self):
        self.values, self.histograms = {}, {}

    @classmethod
    def from_protobuf(cls, body):
        scrape, at = cls(), 0
        while at < len(body):
            length, at = _varint(body, at)
            scrape._family(body[at:at + length])
            at += length
        return scrape

    def _family(self, data):
        fields = list(_fields(data))
        name = next(value for number, value in fields if number == 1).decode()
        for metric in (value for number, value in fields if number == 4):
            labels, value = set(), None
            for number, content in _fields(metric):
                if number == 1:
                    pair = dict(_fields(content))
                    labels.add((pair[1].decode(), pair.get(2, b"").decode()))
                elif number == 7:
                    self.histograms[name, frozenset(labels)] = _histogram(content)
                elif number in (2, 3, 5):
                    value = dict(_fields(content)).get(1, 0.0)
            if value is not None:
                self.values[name, frozenset(labels)] = value

    def value(self, name, **labels):
        """The sum over all series that carry these labels; None if there are none."""
        found = [v for (n, have), v in self.values.items() if n == name and labels.items() <= set(have)]
        return sum(found) if found else None

    def series(self, name, **labels):
        return {have: v for (n, have), v in self.values.items() if n == name and labels.items() <= set(have)}

    def histogram(self, name, **labels):
        """The one histogram with exactly these labels; an empty one if there is none."""
        return self.histograms.get((name, frozenset(labels.items())), Histogram())

    def histogram_names(self, **labels):
        return {n for n, have in self.histograms if labels.items() <= set(have)}


class Difference:
    """What happened between two scrapes. A series that was absent before counts from 0."""

    def __init__(self, before, after):
        self.before, self.after = before, after

    def value(self, name, **labels):
        return (self.after.value(name, **labels) or 0) - (self.before.value(name, **labels) or 0)

    def histogram(self, name, **labels):
        return self.after.histogram(name, **labels).minus(self.before.histogram(name, **labels))


def fetch(port, path="/metrics", accept=PROTOBUF, timeout=60):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        return answer.status, answer.headers.get("Content-Type", ""), answer.read()


def scrape(port):
    _, content_type, body = fetch(port)
    if "protobuf" not in content_type:
        raise ValueError(f"asked for protobuf, got {content_type}")
    return Scrape.from_protobuf(body)
