# SPDX-License-Identifier: Apache-2.0
"""Malicious clients, each in a process of its own that yields to the daemon, as if it were on another host."""
import multiprocessing
import os
import random
import re
import select
import selectors
import socket
import ssl
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

# Permitted answers to a mangled request: never an internal error.
ANSWERS = {100, 200, 304, 400, 401, 404, 405, 411, 413, 414, 421, 431, 501, 503, 505}
CLIENT_HELLO = bytes.fromhex("16030100f5010000f10303")  # only its beginning


def _connect(port, timeout=10):
    return socket.create_connection(("127.0.0.1", port), timeout=timeout)


def _secure(plain):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(plain)


def slow_loris(port, tls, count, seconds, out, handshakes=100):
    """`count` connections that send a byte now and then and never finish a request; each one that is cut comes back.

    With TLS, most of them stop during their handshake, and some after it.
    """
    selector, opened, cut, most = selectors.DefaultSelector(), 0, 0, 0

    def open_one(with_handshake):
        with suppress(OSError):
            client = _connect(port, 5)
            if with_handshake:
                client.settimeout(5)
                client = _secure(client)
            client.setblocking(False)
            first = CLIENT_HELLO if tls and not with_handshake else b"GET /metrics HTTP/1.1\r\nHost: a\r\nX-A: "
            client.send(first)
            selector.register(client, selectors.EVENT_READ, with_handshake)
            return 1
        return 0

    for i in range(count):
        opened += open_one(tls and i < handshakes)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        gone = []
        for key, _ in selector.select(0.2):
            with suppress(BlockingIOError, ssl.SSLWantReadError):
                try:
                    if key.fileobj.recv(4096):
                        continue
                except (ConnectionError, ssl.SSLError):
                    pass
                gone.append(key)
        for key in gone:
            selector.unregister(key.fileobj)
            key.fileobj.close()
            cut += 1
            opened += open_one(key.data)
        held = list(selector.get_map().values())
        most = max(most, len(held))
        for key in random.sample(held, len(held) // 10):
            with suppress(OSError):
                key.fileobj.send(b"a")
    out.put(f"{opened} slow connections, at most {most} at a time, {cut} cut by the server")


def unread(port, count, seconds, out):
    """`count` connections that request page after page and read none; each one that is cut comes back."""
    asked = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 100
    resets, held, cut, most = select.poll(), {}, 0, 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(count - len(held)):
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.settimeout(5)
            with suppress(OSError):
                client.connect(("127.0.0.1", port))
                client.send(asked)
                resets.register(client, 0)
                held[client.fileno()] = client
        most = max(most, kernel_memory_of_sockets())
        for descriptor, _ in resets.poll(100):
            resets.unregister(descriptor)
            held.pop(descriptor).close()
            cut += 1
    out.put(f"{len(held)} connections that take no page, {cut} were cut by the server; at most {most >> 10} KiB in all "
            f"the host's sockets")


def kernel_memory_of_sockets():
    """Kernel memory of all TCP sockets of the host, in bytes."""
    text = Path("/proc/net/sockstat").read_text()
    return int(re.search(r"^TCP: .* mem (\d+)", text, re.M)[1]) * os.sysconf("SC_PAGE_SIZE")


def huge_header(port, tls, megabytes, out):
    """A single header that does not end."""
    client = _connect(port)
    client = _secure(client) if tls else client
    sent, answer = 0, b""
    with suppress(OSError):
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\nX-A: ")
        while sent < megabytes << 20:
            client.sendall(b"a" * 65536)
            sent += 65536
    with suppress(OSError):
        answer = client.recv(4096)
    client.close()
    out.put(f"a header of {megabytes} MB: {sent >> 10} KiB were taken, {answer[:12]!r} was answered")


def garbage(port, tls, count, seed, out):
    """Random bytes, below TLS as well as inside it."""
    rng, ends = random.Random(seed), Counter()
    for i in range(count):
        try:
            client = _connect(port)
            if tls and i % 4 == 0:
                client = _secure(client)
            client.settimeout(2)
            client.sendall(rng.randbytes(rng.choice((1, 100, 4000, 20000))))
            client.shutdown(socket.SHUT_WR)
            ends["answered" if client.recv(4096) else "closed"] += 1
        except TimeoutError:
            ends["silence"] += 1
        except OSError:
            ends["reset"] += 1
        finally:
            client.close()
    out.put(f"{count} x garbage: {dict(ends)}")


SEEDS = [
    b"GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: text/plain\r\nAccept-Encoding: gzip\r\n\r\n",
    b"HEAD /-/healthy HTTP/1.0\r\n\r\n",
    b"GET /api/v1/devices/loop0/live?since=7&heat=write&at=-1 HTTP/1.1\r\nHost: [::1]:80\r\nIf-None-Match: W/\"1-2\"\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Basic cHJvbWV0aGV1czp3cm9uZw==\r\n\r\n",
    b"POST /metrics HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n",
    b"GET http://a/metrics?x=%41&y#z HTTP/1.1\r\nHost: a\r\nCookie: a=b; c=d\r\nContent-Length: 3\r\n\r\nabc",
    b"GET /metrics HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 99999999999999999999\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nX: a\r\n folded\r\n\r\n",
]
WORDS = [b"\r\n", b"\n", b"\0", b"\r\n\r\n", b": ", b"%00", b"%", b"..", b"/", b"HTTP/1.1", b"Host: b\r\n", b"\xff" * 9,
         b"Content-Length: -1\r\n", b"Transfer-Encoding: chunked\r\n", b"A" * 3000, b"Authorization: Basic ", b"\t" * 50]


def mutate(rng):
    text = bytearray(b"".join(rng.choices(SEEDS, k=rng.choice((1, 1, 1, 2, 5)))))
    for _ in range(rng.choice((0, 1, 2, 4, 16))):
        at = rng.randrange(len(text) + 1)
        kind = rng.randrange(5)
        if kind == 0 and at < len(text):
            text[at] = rng.randrange(256)
        elif kind == 1:
            text[at:at] = rng.choice(WORDS)
        elif kind == 2:
            del text[at:at + rng.choice((1, 2, 10))]
        elif kind == 3:
            text[at:at] = text[at:at + rng.randrange(1, 60)]
        else:
            text[at:] = b""
        text = text or bytearray(b"\0")
    return bytes(text)


def fuzz(port, tls, seconds, seed, out):
    """Mangled requests. Complains about any answer that reports an internal error or has an unexpected status."""
    rng, statuses, requests, wrong = random.Random(seed), Counter(), 0, []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with suppress(OSError):
            client = _connect(port)
            client = _secure(client) if tls else client
            client.settimeout(0.05)
            for _ in range(20):
                request = mutate(rng)
                client.sendall(request)
                requests += 1
                if rng.random() < 0.5:
                    client.shutdown(socket.SHUT_WR)
                try:
                    answer = client.recv(1 << 18)
                except TimeoutError:
                    break  # it waits for the rest
                if not answer:
                    break
                line = re.match(rb"HTTP/1\.[01] (\d{3}) ", answer)
                if line:
                    statuses[int(line[1])] += 1
                    if int(line[1]) not in ANSWERS:
                        wrong.append((request, answer[:200]))
            client.close()
    out.put(f"fuzzer: {requests} requests, answers {dict(sorted(statuses.items()))}")
    out.put([f"{request!r} -> {answer!r}" for request, answer in wrong[:3]])


class Attack:
    """A process that calls `function` after begin(). said() returns the next item that the function put into its queue.

    It is a fork, so this process must have no other thread: a lock that a thread holds at that moment (OpenSSL has
    some) is never released in the child.
    """

    def __init__(self, function, *arguments):
        if threading.active_count() > 1:
            raise RuntimeError("an attack must be made before there are threads")
        context = multiprocessing.get_context("fork")
        self._go, self._out = context.Event(), context.Queue()
        self._process = context.Process(target=self._run, args=(function, arguments))
        self._process.start()

    def _run(self, function, arguments):
        os.nice(10)
        self._go.wait()
        function(*arguments, self._out)

    def begin(self):
        self._go.set()

    def wait(self, seconds=240):
        """Raises an error unless the function returns in time. Each takes a few seconds, in the long tier up to 150."""
        self._process.join(seconds)
        if self._process.exitcode != 0:
            raise RuntimeError(f"the attack is not over after {seconds} s" if self._process.exitcode is None else
                               f"the attack ended with {self._process.exitcode}")

    def said(self):
        return self._out.get(timeout=10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
