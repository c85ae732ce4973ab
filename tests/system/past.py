# SPDX-License-Identifier: Apache-2.0
"""Writes a past into the history of a daemon that is not running, in the layout that the history's files document.

Shares no code with the daemon: numbers are packed here as described in daemon/history/load_codec.h.
"""
import sqlite3
from collections import Counter

from lib.history_pages import seal

MINUTE, HOUR, DAY = 60, 3600, 86400
READ, WRITE = 0, 1  # operations
READ_TOTAL, WRITE_TOTAL, READ_DEVICE_NONE, READ_QUEUE = 0, 1, 2, 10  # latencies


def word(seconds):
    """The bucket of an I/O that takes this long."""
    bound = 1
    while 2 ** ((bound - 161) / 8) < seconds:
        bound += 1
    return bound


def seconds(of_word):
    return 2 ** ((of_word - 161) / 8)


def number(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def masked(entries, pack):
    """{place: value}: a mask of the places, then the values in order."""
    return number(sum(1 << place for place in entries)) + b"".join(pack(entries[place]) for place in sorted(entries))


def histogram(words):
    return number(sum(int(seconds(one) * 1e9) * ios for one, ios in words.items())) + sparse(words)


def sparse(words):
    """How many buckets, and for each the distance to the one before, and its I/Os."""
    return number(len(words)) + b"".join(number(one - last) + number(words[one])
                                         for last, one in zip([0, *sorted(words)], sorted(words)))


def load(milliseconds, operations, latencies):
    """`operations`: {place: (I/Os, bytes)}; `latencies`: {place: {word: I/Os}}."""
    return (number(1) + number(milliseconds) +
            masked(operations, lambda one: number(one[0]) + number(one[1]) + number(0) * 3) + number(0) +
            masked(latencies, histogram))


def tenants(rows):
    """{id: {operation: (I/Os, bytes, ns)}}."""
    return number(len(rows)) + b"".join(number(one) + masked(what, lambda three: b"".join(map(number, three)))
                                       for one, what in rows.items())


def numbers(blob):
    """The numbers that number() has packed; the last one must be whole."""
    value = shift = 0
    for byte in blob:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield value
            value = shift = 0
    if shift:
        raise ValueError(f"ends within a number: {blob.hex()}")


def places(rest):
    mask = next(rest)
    return [place for place in range(64) if mask >> place & 1]


def counts_of_load(blob):
    """Everything in the bytes of a load, by what it is: loads are added up by adding these."""
    rest = numbers(blob)
    layout = next(rest)
    if layout != 1:
        raise ValueError(f"layout {layout}")
    counts = {"ms": next(rest)}
    for place in places(rest):
        counts.update({("operation", place, field): next(rest) for field in range(5)})
    counts.update({("loss", place): next(rest) for place in places(rest)})
    for place in places(rest):
        counts["sum", place] = next(rest)
        at = 0
        for _ in range(next(rest)):
            at += next(rest)
            counts["word", place, at] = next(rest)
    if list(rest):
        raise ValueError(f"goes on after its end: {blob.hex()}")
    return Counter(counts)


def counts_of_tenants(blob):
    """Likewise: (id, operation, field)."""
    rest = numbers(blob)
    counts = Counter()
    for _ in range(next(rest)):
        one = next(rest)
        counts.update({(one, place, field): next(rest) for place in places(rest) for field in range(3)})
    if list(rest):
        raise ValueError(f"goes on after its end: {blob.hex()}")
    return counts


def latencies(blob):
    """({place: {word: I/Os}}, milliseconds measured) from the bytes of a load."""
    counts = counts_of_load(blob)
    found = {key[1]: {} for key in counts if key[0] == "sum"}
    for key, ios in counts.items():
        if key[0] == "word":
            found[key[1]][key[2]] = ios
    return found, counts["ms"]


def minutes_between(file, device, begin, end):
    """What latencies() returns for each minute of a history that another process may be writing."""
    connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    try:
        rows = connection.execute(
            "SELECT load FROM device_minute, device WHERE name = ? AND at >= (device.id << 32 | ?) AND at < (device.id << 32 | ?)",
            (device, int(begin) // MINUTE, int(end) // MINUTE)).fetchall()
    finally:
        connection.close()
    return [latencies(blob) for (blob,) in rows]


class Past:
    """The file of a history, and the device that it has under this name."""

    def __init__(self, file, device):
        self._file = file
        self._connection = sqlite3.connect(file, isolation_level=None)
        self._connection.execute("BEGIN")
        (self._id,) = self._connection.execute("SELECT id FROM device WHERE name = ?", (device,)).fetchone()
        self._device = device

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._connection.execute("UPDATE account SET minutes_reach = (SELECT coalesce(min(at & 4294967295), 0) FROM device_minute), "
                                 "hours_reach = (SELECT coalesce(min(at & 4294967295), 0) FROM (SELECT at FROM device_hour UNION ALL SELECT at FROM device_minute))")
        self._connection.execute("COMMIT")
        self._connection.close()
        seal(self._file)

    def execute(self, sql, *values):
        self._connection.execute(sql, values)

    def key(self, at):
        return self._id << 32 | int(at) // MINUTE

    def minute(self, at, blob):
        self.execute("INSERT OR REPLACE INTO device_minute VALUES (?, ?, 0)", self.key(at), blob)

    def hour(self, at, blob):
        self.execute("INSERT OR REPLACE INTO device_hour VALUES (?, ?, 0)", self.key(at), blob)

    def tenants(self, table, at, blob):
        self.execute(f"INSERT OR REPLACE INTO tenant_{table} VALUES (?, ?, 0)", self.key(at), blob)

    def tenant(self, name):
        self.execute("INSERT OR IGNORE INTO tenant (name, last_measured) VALUES (?, 0)", name)
        return self._connection.execute("SELECT id FROM tenant WHERE name = ?", (name,)).fetchone()[0]

    def reaches(self, minutes_from, hours_to):
        self.execute("UPDATE device SET minutes_from = ?, hours_made_to = ? WHERE id = ?", int(minutes_from) // MINUTE,
                     int(hours_to) // MINUTE, self._id)

    def drive(self):
        """The drive that this device is a namespace of, as named in the ledger."""
        serial, model = self._connection.execute("SELECT serial, model FROM device WHERE id = ?", (self._id,)).fetchone()
        self.execute("INSERT INTO drive (nqn, serial, model, firmware, last_measured, state) VALUES ('', ?, ?, '', 0, NULL)", serial, model)
        return self._connection.execute("SELECT max(id) FROM drive").fetchone()[0]

    def drive_minute(self, drive, at, host, media, used, spare, celsius):  # pylint: disable=too-many-arguments
        """`host` in units of 512,000 bytes, `media` in bytes: totals over the drive's life."""
        self.execute("INSERT INTO drive_minute VALUES (?, ?, 0, 1, 'ocp', ?, 512000, 1, NULL, ?, 1, 0, ?, ?, ?, 0)",
                     int(at) // MINUTE, drive, host.to_bytes(16, "big"), media.to_bytes(16, "big"), used, spare, celsius)

    def spike(self, at, length, peak, baseline, excess, cause, evidence, missing=""):  # pylint: disable=too-many-arguments
        self.execute("INSERT OR REPLACE INTO latency_spike VALUES (?, ?, 'read', 0, ?, ?, ?, ?, 50, ?, ?, ?)", int(at * 1000),
                     self._device, length, peak, baseline, excess, cause, evidence, missing)

    def burst(self, at, length, trigger):
        self.execute("INSERT OR REPLACE INTO discard_burst VALUES (?, ?, ?, 0, ?, 1000000)", int(at * 1000), self._device,
                     trigger, length)

    def seconds(self, begin, columns, excess):
        """`columns`: (number of a snapshot, its end, bytes), one second each, packed as in daemon/history/recent_past.cpp."""
        blob = b"".join(number(one) + number(int(end * 1000)) + number(1000) + number(len(column)) + column for one, end, column in columns)
        self.execute("INSERT INTO spike_seconds (begin_ms, end_ms, device, excess_seconds, seconds, measured) VALUES (?, ?, ?, ?, ?, 0)",
                     int(begin * 1000), int(columns[-1][1] * 1000), self._device, excess, blob)


def column(words):
    """A second with only these reads: {word: I/Os}; all its quantiles are those of the slowest."""
    ios, most = sum(words.values()), max(words)
    tail = number(ios) + number(most) * 3
    return (number(1) + number(0) * 4 +  # reads alone; errors, losses, bursts, in a spike
            number(ios) + number(ios * 4096) + tail * 3 + number(0) + sparse(words) +
            number(0) * 8 +  # by what else was in flight: nothing
            number(0) * 4)   # reads during discards and flushes; ns in the queue, in the device
