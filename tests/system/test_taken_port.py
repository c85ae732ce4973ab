#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
"""A local user listens on the daemon's port before it does, and answers what a daemon would. The daemon must measure,
keep its history, say so and take the port once it is free; a second daemon must still end; and no command may show what
that user answers.
"""
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import web
from lib import metrics, rig

MALLORY, OTHER = 65534, 65533
FORGED = "forged0n1"
SERVER = f"""
import http.server, socketserver, sys
class Forger(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = b'{{"devices": [{{"name": "{FORGED}", "state": "measured"}}], "why": {{"sentence": "{FORGED}"}}, "findings": []}}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_POST = do_GET
    def log_message(self, *_): pass
socketserver.ThreadingTCPServer.allow_reuse_address = True
server = socketserver.ThreadingTCPServer(("127.0.0.1", int(sys.argv[1])), Forger)
print("listening", flush=True)
server.serve_forever()
"""


def as_user(number):
    return ["setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups"]


@contextmanager
def forger(port):
    process = subprocess.Popen([*as_user(MALLORY), "/usr/bin/python3", "-c", SERVER, str(port)], stdout=subprocess.PIPE,
                               text=True, cwd="/")
    try:
        assert process.stdout.readline() == "listening\n"
        yield process
    finally:
        process.kill()
        process.wait()


class Manager(threading.Thread):
    """A service manager: what was it notified of?"""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.socket, self.heard = path, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), ""
        self.socket.bind(str(path))
        self.start()

    def run(self):
        while True:
            self.heard += self.socket.recv(4096).decode() + "\n"


class Host:
    def __init__(self, state, disk):
        self.state, self.port, self.other = state, rig._free_port(), rig._free_port()
        self.socket, self.config, self.open_config = state / "web.socket", state / "config.yaml", state / "open.yaml"
        settings = f'devices: {{include: ["{disk.name}"], exclude: []}}\nhistory: {{directory: {state}/history}}\n'
        # The same port on another address is the daemon's own, and nobody's else.
        listen = f'listen_address: ["127.0.0.1:{self.port}", "127.0.0.2:{self.port}", "127.0.0.1:{self.other}"]'
        self.config.write_text(f"web: {{{listen}, socket: {self.socket}}}\n{settings}")
        # What a client sees that may not use the unix socket.
        self.open_config.write_text(f"web: {{{listen}}}\nhistory: {{directory: ''}}\n")
        self.config.chmod(0o644)
        self.open_config.chmod(0o644)

    def second_config(self, history):
        """Without the unix socket; in the same directory, or without a history."""
        config = self.state / "second.yaml"
        directory = self.state / history if history else "''"
        config.write_text(f"web: {{listen_address: '127.0.0.1:{self.port}'}}\nhistory: {{directory: {directory}}}\n")
        return config

    def daemon(self, log, **environment):
        return subprocess.Popen([rig.BINARY, "run", "--config", self.config], stdout=log, stderr=subprocess.STDOUT,
                                env={**os.environ, **environment})

    def ask(self, *arguments, config=None, prefix=()):
        """(exit status, output and complaints)."""
        command, *options = arguments
        done = subprocess.run([*prefix, rig.BINARY, command, "--config", config or self.open_config, *options], text=True,
                              capture_output=True, timeout=30, check=False, cwd="/")
        return done.returncode, done.stdout + done.stderr

    def over_socket(self, path):
        done = subprocess.run(["curl", "-s", "--max-time", "5", "--unix-socket", self.socket, f"http://localhost{path}"],
                              text=True, capture_output=True, check=False)
        return done.stdout

    def source_up(self):
        return 'ssdpulse_source_up{source="web"} 1' in self.over_socket("/metrics")


def measures_without_it(check, host, disk, process, log, manager):
    ready = web.wait_until(lambda: process.poll() is not None or "ready" in host.over_socket("/-/ready"), 30)
    check.that(ready and process.poll() is None, "it runs although the port is taken")
    words = f"cannot listen on 127.0.0.1:{host.port}: the port is taken by user nobody ({MALLORY})"
    check.that(words in log.read_text(), f"the log says: {words}")
    check.that(web.wait_until(lambda: "READY=1" in manager.heard), "the service manager hears that it is ready")
    check.that(f"another program listens on 127.0.0.1:{host.port}" in manager.heard, "and in its status why it is not served")
    check.that(web.wait_until(lambda: 'ssdpulse_source_up{source="web"} 0' in host.over_socket("/metrics")), "source_up is 0")
    ready = host.over_socket("/-/ready")
    check.that(ready.startswith("ready\n") and f"web: another program listens on 127.0.0.1:{host.port}" in ready, f"/-/ready: {ready!r}")
    rig.fio(disk, 1, rw="randread", bs="4k", size="1M", number_ios=10)
    measured = f'ssdpulse_io_latency_seconds_count{{device="{disk.name}",'
    check.that(web.wait_until(lambda: measured in host.over_socket("/metrics"), 20), "it measures")
    check.that(web.wait_until(lambda: list((host.state / "history").glob("ssdpulse.db*")), 20), "it keeps the history")
    status = metrics.fetch(host.other, "/-/healthy", "*/*")[0]
    check.equal(status, 200, "its other address is served")
    found = host.ask("doctor", config=host.config)[1]
    check.that("source web is down" in found, "doctor says so")
    check.that(web.wait_until(lambda: 'errors_total{source="web",kind="listen"} ' in host.over_socket("/metrics").replace(
        'listen"} 0', ""), 15), "it tries again")


def shows_nothing_forged(check, host):
    """Neither as root nor as somebody else; by the unix socket, the daemon answers."""
    for words, prefix in (("root", ()), ("another user", as_user(OTHER))):
        for arguments in (["why"], ["top", "--once"], ["top", "--json"], ["doctor"], ["what-if"], ["mark", "a change"],
                          ["history"], ["history", "--device", FORGED], ["audit"]):
            if words == "root" and arguments[0] == "top":
                continue
            code, said = host.ask(*arguments, prefix=prefix)
            check.that((code != 0 or arguments == ["audit"]) and f"user nobody ({MALLORY}) listens on http://127.0.0.1:{host.port}" in said and
                       "--address" in said and FORGED not in said,
                       f"{words}: {' '.join(arguments)}: exit {code}, {said.strip()[:200]!r}")
    code, said = host.ask("top", "--json")
    check.that(code == 0 and "top measures by itself" in said and FORGED not in said, f"root's top measures by itself: exit {code}")
    code, said = host.ask("why", "--address", f"127.0.0.1:{host.port}")
    check.that(FORGED in said and "warning: user nobody" in said, f"an address that is named is asked, with a warning: {said!r}")
    code, said = host.ask("top", "--once", config=host.config)
    check.that(code == 0 and FORGED not in said, "by the unix socket the daemon answers")


def forged_socket(check, host):
    """A unix socket in a directory of everybody's."""
    public = Path("/tmp") / f"ssdpulse-{os.getpid()}"
    public.mkdir()
    os.chown(public, MALLORY, MALLORY)
    path = public / "web.socket"
    code = f"import socket, time; s = socket.socket(socket.AF_UNIX); s.bind({str(path)!r}); s.listen(); time.sleep(60)"
    process = subprocess.Popen([*as_user(MALLORY), "/usr/bin/python3", "-c", code], cwd="/")
    config = host.state / "public.yaml"
    config.write_text(f"web: {{socket: {path}}}\n")
    try:
        web.wait_until(path.exists)
        code, said = host.ask("why", config=config)
        check.that(code != 0 and f"user nobody ({MALLORY}) listens on {path}" in said, f"a forged unix socket: {said.strip()[:200]!r}")
    finally:
        process.kill()
        process.wait()
        path.unlink(missing_ok=True)
        public.rmdir()


def test(check, state):
    state.chmod(0o755)
    with rig.ram_disks(state, size="16M") as [disk]:
        host = Host(state, disk)
        manager, log = Manager(state / "notify"), state / "daemon.log"
        with forger(host.port) as mallory, log.open("w") as out:
            process = host.daemon(out, NOTIFY_SOCKET=str(manager.path))
            try:
                measures_without_it(check, host, disk, process, log, manager)
                shows_nothing_forged(check, host)
                forged_socket(check, host)
                second = subprocess.run([rig.BINARY, "run", "--config", host.second_config("history")], timeout=20, text=True,
                                        capture_output=True, check=False)
                check.that(second.returncode == 5 and "another ssdpulse is running" in second.stderr,
                           f"a second daemon: exit {second.returncode}, {second.stderr.strip()[-200:]!r}")
                mallory.send_signal(signal.SIGKILL)
                mallory.wait()
                begin = time.monotonic()
                check.that(web.wait_until(host.source_up, 20), "once the port is free, it is the daemon's")
                check.figure(f"after {time.monotonic() - begin:.1f} s")
                check.equal(metrics.fetch(host.port, "/-/healthy", "*/*")[0], 200, "and served")
                code, said = host.ask("why")
                check.that(code in (0, 6) and "listens on" not in said, f"commands ask there again: exit {code} {said!r}")
                third = subprocess.run([rig.BINARY, "run", "--config", host.second_config("")],
                                       timeout=20, text=True, capture_output=True, check=False)
                check.that(third.returncode == 5 and "another ssdpulse is running" in third.stderr,
                           f"a second daemon with no history: exit {third.returncode}")
            except BaseException:
                print(log.read_text(), file=sys.stderr)
                raise
            finally:
                process.terminate()
                process.wait(15)
        check.equal(process.returncode, 0, "exit status")
        check.that(log.read_text().count("is free again") == 1, "the log says that the address is free")


rig.main(test)
