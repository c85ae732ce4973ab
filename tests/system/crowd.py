# SPDX-License-Identifier: Apache-2.0
"""Many clients at once, each asking again and again over its own connection. How long does a scrape take meanwhile?"""
import selectors
import socket
import statistics
import threading
import time
from collections import Counter

from lib import metrics


class Client:
    def __init__(self, port, source, first):
        self.port, self.source, self.due, self.socket = port, source, first, None
        self.buffer, self.sent = bytearray(), None

    def ask(self, path):
        if self.socket is None:
            self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=10, source_address=(self.source, 0))
            self.socket.setblocking(False)
        self.buffer.clear()
        self.sent = time.monotonic()
        self.socket.send(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept-Encoding: gzip\r\n\r\n".encode("latin-1"))

    def answer(self):
        """The status once the answer is complete; None before that; "closed" if the other end closed the connection."""
        try:
            data = self.socket.recv(1 << 18)
        except BlockingIOError:
            return None
        except OSError:
            return "closed"
        if not data:
            return "closed"
        self.buffer += data
        head = self.buffer.find(b"\r\n\r\n")
        if head < 0:
            return None
        length = 0
        for line in bytes(self.buffer[:head]).split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return int(self.buffer[9:12]) if len(self.buffer) >= head + 4 + length else None

    def close(self):
        if self.socket:
            self.socket.close()
        self.socket = None


def crowd(port, clients, every, seconds, path_of, addresses=1):
    """(Counter of statuses, seconds each answer took). In a network of web.in_own_network(). Paths come from `path_of(client number, question number)`."""
    begin = time.monotonic()
    all_ = [Client(port, f"198.51.100.{2 + i % addresses}", begin + every * i / clients) for i in range(clients)]
    numbers = {client: i for i, client in enumerate(all_)}
    asked, statuses, took = Counter(), Counter(), []
    with selectors.DefaultSelector() as selector:
        while (now := time.monotonic()) < begin + seconds:
            for client in all_:
                if client.sent is None and client.due <= now:
                    client.due += every
                    try:
                        known = client.socket is not None
                        client.ask(path_of(numbers[client], asked[client]))
                        if not known:
                            selector.register(client.socket, selectors.EVENT_READ, client)
                        asked[client] += 1
                    except OSError as error:
                        statuses[type(error).__name__] += 1
                        if client.socket:
                            selector.unregister(client.socket) if client.socket in selector.get_map() else None
                        client.close()
                        client.sent = None
            for key, _ in selector.select(0.01):
                client = key.data
                status = client.answer()
                if status is None:
                    continue
                statuses[status] += 1
                took.append(time.monotonic() - client.sent)
                client.sent = None
                if status == "closed" or status == 503:
                    selector.unregister(client.socket)
                    client.close()
    for client in all_:
        client.close()
    return statuses, took


class Scrapes:
    """Scrapes regularly, in a thread: how long does each scrape take, and are ticks missed?"""

    def __init__(self, port, every=0.5):
        self._port, self._every, self._stop = port, every, threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.took, self.missed, self.stamps, self.failed = [], [], [], 0

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _run(self):
        while not self._stop.wait(self._every):
            begin = time.monotonic()
            try:
                scrape = metrics.scrape(self._port)
            except OSError:
                self.failed += 1
                continue
            self.took.append(time.monotonic() - begin)
            self.missed.append(scrape.value("ssdpulse_missed_ticks_total"))
            self.stamps.append(scrape.value("ssdpulse_snapshot_timestamp_seconds"))

    @property
    def median(self):
        return statistics.median(self.took)

    def ticks_are_kept(self, check):
        stamps = sorted(set(self.stamps))
        gap = max(b - a for a, b in zip(stamps, stamps[1:]))
        missed = self.missed[-1] - self.missed[0]
        check.that(gap < 2.6, f"no two ticks in a row were missed: at most {gap:.2f} s between snapshots, {missed:.0f} missed of {stamps[-1] - stamps[0]:.0f}")
        check.that(missed <= 0.02 * (stamps[-1] - stamps[0]) + 1, f"{missed:.0f} ticks were late")
