#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
"""Do TLS and basic authentication admit the right clients, with curl and a real Prometheus, and nobody else? Do new
certificates and passwords take effect while the daemon is running, and is a bad file harmless? Does the page have the
headers that protect it from other sites, and is nothing of it left when it is turned off?
"""
import json
import os
import signal
import socket
import ssl
import subprocess
import time

import prometheus
import web
from lib import rig

PASSWORD, OLD, NEW = "correct horse", "old battery", "new staple"
COST = 10
SUITES = prometheus.SUITES if rig.LONG else ("trixie",)
SAN = "DNS:prometheus.example"
PAGE_HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin"}
PAGE_POLICY = {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"}
MEASURED = "/api/v1/measured"  # for `ssdpulse audit`
OF_THE_PAGE = ("/app.js", "/api.schema.json", "/api/v1/devices", "/api/v1/history")


class Files:
    """Everything that the daemon and its clients have; the clients' files are not in the daemon's configuration."""

    def __init__(self, state):
        self.state = state
        ours, others = web.Authority(state, "ours"), web.Authority(state, "others")
        self.authority = ours
        self.ca = ours.certificate
        self.server = ours.issue("server", "IP:127.0.0.1")
        self.client = ours.issue("client", SAN, "clientAuth")
        self.clients = {"of another authority": others.issue("stranger", SAN, "clientAuth"),
                        "with another name": ours.issue("other-name", "DNS:other.example", "clientAuth"),
                        "for servers": ours.issue("not-a-client", SAN, "serverAuth")}
        self.web = state / "web.yaml"

    def settings(self, password_of_bob=OLD):
        return {"tls_server_config": {"cert_file": "server.crt", "key_file": "server.key", "client_ca_file": "ours.crt",
                                      "client_auth_type": "RequireAndVerifyClientCert",
                                      "client_allowed_sans": ["prometheus.example"]},
                "http_server_config": {"headers": {"X-Frame-Options": "deny"}},
                "basic_auth_users": {"prometheus": web.bcrypt(PASSWORD, COST),
                                     "bob": web.bcrypt(password_of_bob, COST)}}

    def as_user(self, port, user="prometheus", password=PASSWORD):
        return web.Client(port, web.basic(user, password), self.ca, self.client)


def curl(port, *options, path="/metrics", scheme="https"):
    """The status that curl reports; 0 if there was no answer."""
    done = subprocess.run(["curl", "--silent", "--max-time", "10", "--output", os.devnull, "--write-out",
                           "%{http_code}", *map(str, options), f"{scheme}://127.0.0.1:{port}{path}"],
                          capture_output=True, text=True, check=False)
    return int(done.stdout)


def who_gets_in(check, files, port):
    trust = ("--cacert", files.ca)
    known = (*trust, "--cert", files.client[0], "--key", files.client[1])
    check.equal(curl(port, *known, "--user", f"prometheus:{PASSWORD}"), 200, "certificate and password")
    for words, options in (("no password", ()), ("a wrong password", ("--user", "prometheus:wrong")),
                           ("an unknown user", ("--user", f"nobody:{PASSWORD}")),
                           ("another's password", ("--user", f"bob:{PASSWORD}"))):
        for path in ("/metrics", "/", "/-/healthy", "/nowhere"):
            check.equal(curl(port, *known, *options, path=path), 401, f"{words}, {path}")
    password = ("--user", f"prometheus:{PASSWORD}")
    check.equal(curl(port, *trust, *password), 0, "no certificate")
    for words, (certificate, key) in files.clients.items():
        check.equal(curl(port, *trust, "--cert", certificate, "--key", key, *password), 0, f"a certificate {words}")
    check.equal(curl(port, *known, *password, "--tlsv1.0", "--tls-max", "1.1", "--ciphers", "DEFAULT@SECLEVEL=0"), 0,
                "TLS 1.1")
    check.equal(curl(port, *known, *password, "--tls-max", "1.2"), 200, "TLS 1.2")
    check.equal(curl(port, *password, scheme="http"), 0, "plain HTTP on the port of TLS")


def no_secrets(check, files, daemon):
    """Nothing from the daemon's settings, and no path on this host, is on a page."""
    secrets = [str(files.state), "server.key", PASSWORD, OLD, *files.settings()["basic_auth_users"].values()]
    client = files.as_user(daemon.port)
    pages = [client.get(path, headers) for path in ("/", "/metrics", "/-/healthy", "/-/ready", "/nowhere")
             for headers in (None, {}, {"Authorization": "Basic !"})]
    pages += [client.get("/metrics", method=method) for method in ("POST", "TRACE")]
    shown = [secret for secret in secrets if any(secret in f"{headers}{body}" for _, headers, body in pages)]
    check.equal(shown, [], f"secrets and paths on {len(pages)} pages")
    check.that(all(headers.get("X-Frame-Options") == "deny" for _, headers, _ in pages), "the header on every page")
    log = daemon.log.read_text()
    check.equal([secret for secret in secrets[2:] if secret in log], [], "secrets in the log")


def cheap_once_known(check, files, daemon):
    client = files.as_user(daemon.port)
    connection = client.connect()

    def ask(headers, path="/-/healthy"):
        begin = time.monotonic()
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status, time.monotonic() - begin

    ask(client.headers)  # the handshake
    known = sorted(ask(client.headers)[1] for _ in range(20))[10]
    wrong = sorted(ask(web.basic("prometheus", f"wrong {i}"))[1] for i in range(3))[1]
    unknown = sorted(ask(web.basic("nobody", f"wrong {i}"))[1] for i in range(3))[1]
    check.figure(f"a request of a known client takes {known * 1e3:.2f} ms; a wrong password {wrong * 1e3:.0f} ms, an "
                 f"unknown user {unknown * 1e3:.0f} ms")
    check.that(known * 5 < wrong, "a password that was right is not hashed again")
    check.that(unknown * 4 > wrong, "an unknown user is no quicker")


def serial_of(files, port):
    context = ssl.create_default_context(cafile=files.ca)
    context.load_cert_chain(*files.client)
    with socket.create_connection(("127.0.0.1", port), timeout=10) as plain, \
            context.wrap_socket(plain, server_hostname="127.0.0.1") as secured:
        return secured.getpeercert()["serialNumber"]


def rotation(check, files, daemon):
    """Certificate, key and a password are replaced, one file after another, without notifying the daemon."""
    port, before = daemon.port, serial_of(files, daemon.port)
    open_before = files.as_user(port)
    connection = open_before.connect()

    def ask():
        connection.request("GET", "/", headers=open_before.headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.getheader("Connection")

    check.equal(ask()[0], 200, "a connection that stays open")
    bob = {password: files.as_user(port, "bob", password) for password in (OLD, NEW)}
    check.equal(bob[OLD].get()[0], 200, "bob, before")
    check.equal(bob[NEW].get()[0], 401, "bob with the new password, before")
    certificate, key = files.authority.issue("next", "IP:127.0.0.1")
    web.write(files.server[1], key.read_text())
    time.sleep(0.5)
    web.write(files.server[0], certificate.read_text())
    web.write(files.web, files.settings(NEW))
    begin = time.monotonic()
    check.that(web.wait_until(lambda: bob[NEW].get()[0] == 200, 20), "the new password is right")
    check.figure(f"after {time.monotonic() - begin:.1f} s")
    check.that(web.wait_until(lambda: serial_of(files, port) != before, 10), "the new certificate is shown")
    check.equal(ask(), (200, "close"), "a connection from before ends with its next answer")
    check.equal(bob[OLD].get()[0], 401, "bob with the old password, which was known")
    check.equal(files.as_user(port).get()[0], 200, "who was not changed")


def bad_files(check, files, daemon):
    client, up = files.as_user(daemon.port), 'ssdpulse_source_up{source="web_config"}'
    check.equal(client.metric(up), 1, f"{up} with good files")
    good_key = files.server[1].read_text()
    key_as_name = files.settings()
    key_as_name["tls_server_config"]["key_file"] = " ".join(good_key.split())
    (files.state / "empty.crt").touch()
    of_nobody = files.settings()
    of_nobody["tls_server_config"]["client_ca_file"] = "empty.crt"
    user_and_password = files.settings()
    user_and_password["basic_auth_users"] = {f"carol:{NEW}": "x"}
    for words, path, text, complaint in (
            ("an empty file", files.web, "", "the file protects nothing"),
            ("no YAML", files.web, "a: [", "invalid YAML"),
            ("a key for its name", files.web, key_as_name, "is not a file name"),
            ("a password for a name", files.web, user_and_password, "cannot be a user name"),
            ("a pipe", files.server[1], None, "expected a regular file"),
            ("an empty authority", files.web, of_nobody, "empty.crt: is empty"),
            ("another key", files.server[1], files.client[1].read_text(), "hold no certificate with its key"),
            ("no TLS any more", files.web, {"basic_auth_users": files.settings()["basic_auth_users"]},
             "would be turned off")):
        before = len(daemon.log.read_text())
        if text is None:
            path.unlink()
            os.mkfifo(path)
        else:
            web.write(path, text)
        daemon.process.send_signal(signal.SIGHUP)
        check.that(web.wait_until(lambda: complaint in daemon.log.read_text()[before:]), f"{words}: the log says so")
        check.equal(client.get()[0], 200, f"{words}: served as before")
        check.equal(client.get(headers={})[0], 401, f"{words}: protected as before")
        check.that(web.wait_until(lambda: client.metric(up) == 0), f"{words}: {up} is 0")
        web.write(files.server[1], good_key)
        web.write(files.web, files.settings(NEW))
        daemon.process.send_signal(signal.SIGHUP)
        check.that(web.wait_until(lambda: client.metric(up) == 1), f"{words}: and mended")
    log, secrets = daemon.log.read_text(), [*good_key.split()[4:5], NEW, *files.settings(NEW)["basic_auth_users"].values()]
    check.equal([secret for secret in secrets if secret in log], [], f"of {len(secrets)} secrets in the log")


def scraped(check, files, daemon):
    """Servers (name, server) that know the password and must never fail to scrape; and one that does not know it."""
    tls = (f"scheme: https\n    tls_config: {{ca_file: {files.ca}, cert_file: {files.client[0]}, "
           f"key_file: {files.client[1]}}}")
    known = f"{tls}\n    basic_auth: {{username: prometheus, password: '{PASSWORD}'}}"
    wanted = [(f"{suite} {form}", prometheus.fetch(files.state, suite, "prometheus") / "usr/bin/prometheus", form, known)
              for suite in SUITES for form in ("native",)]
    wanted.append(("without password", wanted[0][1], "classic", tls))
    return prometheus.servers(files.state, [one[:3] for one in wanted], daemon.port, [one[3] for one in wanted])


def check_starts(check, files):
    """Exit 1, after which systemd restarts it: files may be half replaced. Exit 2, without restart: a bad web file."""
    def outcome():
        run = web.command(files.state, rig._free_port(), "--web.config.file", files.web)
        done = subprocess.run(run, capture_output=True, text=True, check=False, timeout=30)
        return done.returncode, done.stdout + done.stderr

    certificate = files.server[0].read_text()
    web.write(files.server[0], files.client[0].read_text())
    code, words = outcome()
    check.that(code == 1 and "hold no certificate with its key" in words, f"a start between two renames: exit {code}")
    web.write(files.server[0], certificate)
    web.write(files.web, "")
    code, words = outcome()
    check.that(code == 2 and words.count("the file protects nothing") == 1, f"a start with an empty file: exit {code}")
    check.that("kernel memory" not in words, "a start with an empty file: the kernel is not touched")
    settings = files.settings()
    settings["tls_server_config"]["cipher_suites"] = ["TLS_NOT_A_SUITE"]
    web.write(files.web, settings)
    code, words = outcome()
    check.that(code == 2 and "TLS_NOT_A_SUITE" in words, f"a start with a cipher suite that nobody knows: exit {code}")
    web.write(files.web, files.settings())


def check_config(check, files):
    config = files.state / "checked.yaml"
    config.write_text(f"web:\n  config_file: {files.web}\n")

    def outcome():
        done = subprocess.run(["timeout", "10", rig.BINARY, "check-config", config], capture_output=True, text=True,
                              check=False)
        return done.returncode, done.stdout + done.stderr

    check.equal(outcome(), (0, f"{config}: ok\n"), "check-config of good files")
    key = files.server[1].read_text()
    files.server[1].write_text("no key")
    code, words = outcome()
    check.that(code == 2 and "hold no certificate with its key" in words, f"check-config, no key: {code} {words.strip()}")
    files.server[1].unlink()
    os.mkfifo(files.server[1])
    code, words = outcome()
    check.that(code == 2 and "expected a regular file" in words, f"check-config, a pipe: {code} {words.strip()}")
    web.write(files.server[1], key)


def by_unix_socket(check, files, daemon, path):
    """Commands on this host need no certificate or password there; if it cannot be reached, they do."""
    check.equal(oct(path.stat().st_mode & 0o777), "0o660", "mode of the unix socket")
    config = files.state / "clients.yaml"

    def why(socket_path):
        config.write_text(f"web:\n  listen_address: 127.0.0.1:{daemon.port}\n  config_file: {files.web}\n"
                          f"  socket: {socket_path}\n")
        return subprocess.run([rig.BINARY, "why", "--config", config], capture_output=True, text=True, timeout=20,
                              check=False)

    done = why(path)
    check.that(done.returncode in (0, 6) and done.stdout,  # 6: it is too early to know what is usual
               f"why over the unix socket: {done.stdout}{done.stderr}".strip())
    done = why(files.state / "nothing.socket")
    check.that(done.returncode != 0 and f"https://127.0.0.1:{daemon.port}" in done.stderr,
               f"why without one asks the listen address: {done.stderr.strip()}")


def activated(check, state):
    """Sockets passed by systemd: those named web are served, and no other address."""
    with socket.socket() as passed:
        passed.bind(("127.0.0.1", 0))
        passed.listen()
        port = passed.getsockname()[1]

        def start(names):
            run = web.command(state, 0, "--web.systemd-socket")
            return subprocess.Popen(["sh", "-c", f'exec 3<&{passed.fileno()}; export LISTEN_PID=$$ LISTEN_FDS=1 '
                                     f'LISTEN_FDNAMES={names}; exec "$@"', "-", *run], pass_fds=[passed.fileno()],
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

        process = start("web")
        try:
            check.that(web.wait_until(lambda: curl(port, path="/-/ready", scheme="http") == 200, 20),
                       "the passed socket is served")
        finally:
            process.terminate()
            log, _ = process.communicate(timeout=20)
        check.equal(log.count("serving url="), 1, "sockets served")
        process = start("other")
        log, _ = process.communicate(timeout=20)
        check.that(process.returncode == 5 and "no socket named web (but other)" in log,
                   f"a socket of another name: exit {process.returncode}")


def the_page(check, state):
    """Its address is in the log, and it is protected."""
    with rig.daemon(state, []) as daemon:
        address = f"127.0.0.1:{daemon.port}"
        words = f'page url=http://{address}/ from_elsewhere="ssh -L {daemon.port}:{address} THIS_HOST"'
        check.that(words in daemon.log.read_text(), f"the log of a start says {words}")
        client = web.Client(daemon.port)
        deadline = time.monotonic() + 30
        while client.get("/api/v1/history")[0] == 503 and time.monotonic() < deadline:
            time.sleep(0.1)  # it is opened after the daemon is ready
        for path in ("/", *OF_THE_PAGE):
            status, headers, _ = client.get(path)
            check.equal((status, {name: headers.get(name) for name in PAGE_HEADERS}), (200, PAGE_HEADERS), path)
            policy = {one.strip() for one in headers.get("Content-Security-Policy", "").split(";")}
            check.that(PAGE_POLICY <= policy and not any("unsafe" in one for one in policy), f"{path}: a strict policy")


def no_page(check, state):
    """`web.page: false` leaves only what programs need."""
    with rig.daemon(state, [], web="  page: false\n") as daemon:
        client = web.Client(daemon.port)
        for path in OF_THE_PAGE:
            check.equal(client.get(path)[0], 404, f"without a page, {path}")
        status, _, body = client.get("/")
        check.that(status == 200 and b"<script" not in body and b'href="/metrics"' in body, "without a page, / only says where the metrics are")
        status, _, body = client.get()
        check.that(status == 200 and b"ssdpulse_build_info" in body, "without a page, /metrics is as ever")
        status, _, body = client.get(MEASURED)
        check.that(status == 200 and json.loads(body)["observed_seconds"] >= 0, "without a page, the audit's figures are there")
        check.equal(client.get(MEASURED, {"Host": "evil.example"})[0], 421, "but not by names of others")
        # A web site whose name points at 127.0.0.1 has the browser of this host ask by that name.
        check.equal([client.get(headers={"Host": name})[0] for name in ("evil.example", f"evil.example:{daemon.port}", "localhost", "127.0.0.1")],
                    [421, 421, 200, 200], "/metrics on loopback by names of others, and by its own")
        check.that("page url=" not in daemon.log.read_text(), "and the log names no page")


def test(check, state):
    files = Files(state)
    web.write(files.web, files.settings())
    check_config(check, files)
    check_starts(check, files)
    with web.daemon(state, ["--web.config.file", files.web, "--web.socket", files.state / "web.socket"], files.as_user) as daemon:
        client = files.as_user(daemon.port)
        check.equal(client.metric("ssdpulse_missed_ticks_total") is not None, True, "a page over TLS")
        who_gets_in(check, files, daemon.port)
        by_unix_socket(check, files, daemon, files.state / "web.socket")
        no_secrets(check, files, daemon)
        cheap_once_known(check, files, daemon)
        with scraped(check, files, daemon) as (*servers, stranger):
            check.that(all(server.target()["health"] == "up" for server in servers), "Prometheus scrapes over TLS")
            rotation(check, files, daemon)
            bad_files(check, files, daemon)
            time.sleep(2)
            for server in servers:
                check.equal(list(server.query('min_over_time(up[1h])').values()), [1.0],
                            f"{server.name}: no scrape failed meanwhile")
                check.figure(f"{server.name}: {list(server.query('count_over_time(up[1h])').values())} scrapes")
            check.that("401" in stranger.target()["lastError"], f"without password: {stranger.target()['lastError']}")
        check.equal(daemon.process.poll(), None, "the daemon runs on")
        refused = client.metric('ssdpulse_web_refusals_total{reason="users"}')
        check.that(refused > 20, f"refused users are counted: {refused:.0f}")
    activated(check, state)
    the_page(check, state)
    no_page(check, state)


rig.main(test)
