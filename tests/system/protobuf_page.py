# SPDX-License-Identifier: Apache-2.0
"""The protobuf form of a /metrics page, with native histograms, written without a protobuf library."""
import struct

CONTENT = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
SCHEMA = 3


def varint(value):
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def field(number, payload):
    """Protobuf: bytes, a whole number or a double."""
    if isinstance(payload, bytes):
        return varint(number << 3 | 2) + varint(len(payload)) + payload
    if isinstance(payload, float):
        return varint(number << 3 | 1) + struct.pack("<d", payload)
    return varint(number << 3) + varint(payload)


def zigzag(value):
    return value << 1 if value >= 0 else (-value << 1) - 1


def native_histogram(first, counts, total):
    """Of consecutive buckets; `first` is the index of the first one."""
    deltas = [after - before for before, after in zip([0, *counts], counts)]
    return (field(1, sum(counts)) + field(2, float(total)) + field(5, zigzag(SCHEMA)) + field(6, 1e-9) + field(7, 0)
            + field(12, field(1, zigzag(first)) + field(2, len(counts)))
            + b"".join(field(13, zigzag(delta)) for delta in deltas))


def family(name, kind, samples):
    """samples: ([(label, value)], a number or, of a histogram, native_histogram())."""
    message = field(1, name.encode()) + field(3, {"counter": 0, "gauge": 1, "histogram": 4}[kind])
    for labels, value in samples:
        metric = b"".join(field(1, field(1, key.encode()) + field(2, text.encode())) for key, text in labels)
        metric += (field(7, value) if kind == "histogram"
                   else field(3 if kind == "counter" else 2, field(1, float(value))))
        message += field(4, metric)
    return varint(len(message)) + message
