# SPDX-License-Identifier: Apache-2.0
"""A daemon whose pages are protected, and what its clients need: certificates, passwords, requests."""
import base64
import ctypes
import fcntl
import http.client
import json
import os
import re
import socket
import ssl
import struct
import subprocess
import sys
import time
from contextlib import contextmanager

from lib import rig

ELSEWHERE = "198.51.100.2"  # RFC 5737
SIOCSIFFLAGS, SIOCSIFADDR, SIOCSIFNETMASK, IFF_UP, IFF_RUNNING = 0x8914, 0x8916, 0x891C, 0x1, 0x40

def bcrypt(password, cost=8):
    """Hashes with the system's own crypt(3)."""
    library = ctypes.CDLL("libcrypt.so.1")
    library.crypt.restype = ctypes.c_char_p
    return library.crypt(password.encode(), f"$2b${cost:02}$abcdefghijklmnopqrstuu".encode()).decode()


class Authority:
    """A certificate authority in a directory; names must be unique there."""

    def __init__(self, directory, name):
        self.directory, self.name = directory, name
        self.certificate, self.key = directory / f"{name}.crt", directory / f"{name}.key"
        self._openssl("req", "-x509", *self._new_key(self.key), "-days", "30", "-subj", f"/CN={name}",
                      "-out", self.certificate)

    @staticmethod
    def _openssl(*arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)

    @staticmethod
    def _new_key(file):
        return "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", file

    def issue(self, name, san, usage="serverAuth"):
        """Returns (certificate, key), both files."""
        certificate, key = self.directory / f"{name}.crt", self.directory / f"{name}.key"
        request, extensions = self.directory / f"{name}.csr", self.directory / f"{name}.ext"
        extensions.write_text(f"subjectAltName={san}\nextendedKeyUsage={usage}\n")
        self._openssl("req", *self._new_key(key), "-subj", f"/CN={name}", "-out", request)
        self._openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial",
                      "-days", "30", "-extfile", extensions, "-out", certificate)
        return certificate, key


def basic(user, password):
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def in_own_network():
    """Starts this program again in a network of its own, in which addresses from ELSEWHERE on are clients elsewhere: to
    the daemon, all of 127.0.0.0/8 is one client. The network ends with its last process."""
    if os.environ.get("SSDPULSE_OWN_NETWORK") != str(os.getpid()):
        os.environ["SSDPULSE_OWN_NETWORK"] = str(os.getpid())
        os.execvp("unshare", ["unshare", "--net", sys.executable, *sys.argv])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        def set_(request, value, name=b"lo"):
            fcntl.ioctl(control, request, struct.pack("16s16s8x", name, value))

        def address(text):
            return struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(text))

        set_(SIOCSIFFLAGS, struct.pack("h14x", IFF_UP | IFF_RUNNING))
        # The kernel takes the whole network of a loopback address for its own.
        set_(SIOCSIFADDR, address(ELSEWHERE), b"lo:1")
        set_(SIOCSIFNETMASK, address("255.255.255.0"), b"lo:1")


class Client:
    """Requests over separate connections, from the address `source`; over TLS if there is a `ca`."""

    def __init__(self, port, headers=None, ca=None, certificate=None, source="127.0.0.1"):
        self.port, self.headers, self.context, self.source = port, headers or {}, None, (source, 0)
        if ca:
            self.context = ssl.create_default_context(cafile=ca)
            if certificate:
                self.context.load_cert_chain(*certificate)

    def connect(self, timeout=10):
        if self.context:
            return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=self.context,
                                               source_address=self.source)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout, source_address=self.source)

    def get(self, path="/metrics", headers=None, timeout=10, method="GET"):
        """(status, headers, body)."""
        connection = self.connect(timeout)
        try:
            connection.request(method, path, headers=self.headers if headers is None else headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def metric(self, name):
        """The value of the only sample with this name and these labels, written as on the page."""
        body = self.get()[2].decode()
        match = re.search(rf"^{re.escape(name)} (\S+)$", body, re.M)
        return float(match[1]) if match else None


class Daemon:
    def __init__(self, port, process, log):
        self.port, self.process, self.log = port, process, log


def wait_until(true, seconds=10):
    deadline = time.monotonic() + seconds
    while not (holds := true()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return holds


def command(state, port, *options):
    config = state / "config.yaml"
    config.write_text(f"web:\n  listen_address: 127.0.0.1:{port}\ndevices:\n  include: [\"loop*\"]\n  exclude: []\n"
                      f"history:\n  directory: \"\"\n")
    return [rig.BINARY, "run", "--config", config, *options]


@contextmanager
def daemon(state, options=(), client=None):
    """`ssdpulse run`; `client(port)` makes the client that waits until the daemon is ready."""
    port = rig._free_port()
    log = state / "daemon.log"
    with open(log, "a") as out:
        process = subprocess.Popen(command(state, port, *options), stdout=out, stderr=subprocess.STDOUT)
    try:
        ready = (client or Client)(port)

        def is_ready():
            try:
                return process.poll() is not None or ready.get("/-/ready")[0] == 200
            except OSError:
                return False

        if not wait_until(is_ready, 30) or process.poll() is not None:
            raise RuntimeError("the daemon was not ready in time")
        yield Daemon(port, process, log)
    except BaseException:
        print("--- the daemon's log ---", log.read_text(), "---", sep="\n", file=sys.stderr)
        raise
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def write(path, text):
    """Atomically, as a tool that rotates files does it."""
    new = path.with_suffix(".new")
    new.write_text(text if isinstance(text, str) else json.dumps(text, indent=1))  # JSON is YAML
    new.rename(path)
