# SPDX-License-Identifier: Apache-2.0
"""A made-up page of metrics, served as the daemon serves its page: as text, and as protobuf with native histograms."""
import http.server
import math
import threading
import time
from contextlib import contextmanager

PROTOBUF = "application/vnd.google.protobuf"


class Replay:
    """Histograms grow at a set rate: {(name, ((label, value), ...)): {n: I/Os per second just below 2^n s}}."""

    def __init__(self, published):
        self._published = published  # the generated module of metrics.proto
        self._lock = threading.Lock()
        self._counts, self._rates, self._gauges, self._since = {}, {}, {}, time.monotonic()

    def set(self, rates, gauges):
        with self._lock:
            self._advance()
            self._rates, self._gauges = rates, gauges

    def _advance(self):
        now = time.monotonic()
        for series, rates in self._rates.items():
            counts = self._counts.setdefault(series, {})
            for exponent, rate in rates.items():
                counts[exponent] = counts.get(exponent, 0) + rate * (now - self._since)
        self._since = now

    def _state(self):
        """The state, the same for both formats: ({series: {exponent: whole count}}, {series: value})."""
        with self._lock:
            self._advance()
            counts = {series: {e: math.floor(n) for e, n in sorted(c.items())} for series, c in self._counts.items()}
            clock = {("ssdpulse_snapshot_timestamp_seconds", ()): time.time()}
            return counts, {**self._gauges, **clock}

    def text(self):
        counts, gauges = self._state()
        lines = [f"{name}{{{_labels(labels)}}} {value}" for (name, labels), value in gauges.items()]
        for (name, labels), by_exponent in counts.items():
            below = 0
            for exponent in range(min(by_exponent) - 1, max(by_exponent) + 1):
                below += by_exponent.get(exponent, 0)
                lines.append(f"{name}_bucket{{{_labels((*labels, ('le', 2.0 ** exponent)))}}} {below}")
            lines += [f"{name}_bucket{{{_labels((*labels, ('le', '+Inf')))}}} {below}",
                      f"{name}_sum{{{_labels(labels)}}} {_sum(by_exponent)}", f"{name}_count{{{_labels(labels)}}} {below}"]
        return "".join(line + "\n" for line in lines).encode()

    def protobuf(self):
        counts, gauges = self._state()
        families = {}
        for name, labels in [*counts, *gauges]:
            family = families.setdefault(name, self._published.MetricFamily(name=name))
            metric = family.metric.add()
            for key, value in labels:
                metric.label.add(name=key, value=value)
            if (name, labels) in gauges:
                family.type = self._published.GAUGE
                metric.gauge.value = gauges[name, labels]
                continue
            family.type = self._published.HISTOGRAM
            histogram, by_exponent = metric.histogram, counts[name, labels]
            histogram.sample_count, histogram.sample_sum = sum(by_exponent.values()), _sum(by_exponent)
            histogram.schema, histogram.zero_threshold = 3, 2.0 ** -30
            last_index = last_count = 0
            for exponent, count in by_exponent.items():
                histogram.positive_span.add(offset=8 * exponent - last_index, length=1)
                histogram.positive_delta.append(count - last_count)
                last_index, last_count = 8 * exponent + 1, count
        return b"".join(_varint(len(data)) + data for data in (f.SerializeToString() for f in families.values()))


def _sum(by_exponent):
    return sum(count * 2.0 ** exponent * 0.95 for exponent, count in by_exponent.items())


def _labels(labels):
    return ",".join(f'{key}="{value}"' for key, value in labels)


def _varint(value):
    data = b""
    while value > 127:
        data, value = data + bytes([value & 127 | 128]), value >> 7
    return data + bytes([value])


@contextmanager
def serving(replay):
    """Serves the page; yields its port."""
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            wants_protobuf = self.headers.get("Accept", "").startswith(PROTOBUF)
            body = replay.protobuf() if wants_protobuf else replay.text()
            self.send_response(200)
            self.send_header("Content-Type", f"{PROTOBUF}; proto=io.prometheus.client.MetricFamily; encoding=delimited"
                             if wants_protobuf else "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
