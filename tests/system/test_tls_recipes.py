#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Does each recipe in deploy/docs/tls.md, run as written, admit its client and no other, and is each failed handshake
counted and logged with its reason?
"""
import os
import re
import subprocess
import time
from pathlib import Path

import web
from lib import rig

PAGE = Path(os.environ["SSDPULSE_SOURCE"]) / "deploy/docs/tls.md"
FAILED = "ssdpulse_web_failed_handshakes_total"


def recipes():
    """(title, commands, web.yaml, request) for each."""
    for section in PAGE.read_text().split("\n## ")[1:]:
        blocks = re.findall(r"^```(?:sh|yaml)\n(.*?)^```$", section, re.M | re.S)
        yield section.split("\n")[0], *blocks


def shell(directory, commands):
    return subprocess.run(["bash", "-ec", commands], cwd=directory, env=os.environ | {"HOST": "db1.example"},
                          capture_output=True, text=True, check=False)


def status(directory, request, port):
    """The status of the page's own request, with some options replaced; 0: no answer."""
    words = request.replace("10936", str(port)).replace("curl ", "curl -s -o /dev/null -w '%{http_code}' --max-time 10 ")
    return int(shell(directory, words).stdout or 0)


def failed(client):
    return client.metric(FAILED)


def mishaps(check, directory, request, daemon, client, mutual):
    """Mistakes made in practice: each adds one failure, with the reason as far as the server can know it."""
    without_tls = request.replace("https:", "http:")
    no_trust = re.sub(r"--cacert \S+", "", request)
    cases = [(without_tls, "spoke no TLS"), (no_trust, "may not trust ours")]
    if mutual:
        cases += [(re.sub(r"--cert \S+ --key \S+", "", request), "has no certificate"),
                  (request.replace("client.", "server."), "certificate was refused")]
    for asked, reason in cases:
        before = failed(client)
        check.equal(status(directory, asked, daemon.port), 0, f"no answer where the client's part is wrong: {reason}")
        check.that(web.wait_until(lambda: failed(client) == before + 1, 5), f"one more failure: {failed(client) - before:.0f}")
        check.that(re.search(rf"warning TLS handshake failed from=127\.0\.0\.1 reason=\"[^\"]*{reason}",
                             daemon.log.read_text()) is not None, f"the log says that {reason}")
    # A page is up to a second old.
    time.sleep(1.2)
    before = failed(client)
    for _ in range(3):
        status(directory, request, daemon.port)
    time.sleep(1.2)
    check.equal(failed(client), before, "whoever is served has not failed")


def test(check, state):
    found = list(recipes())
    check.equal(len(found), 3, "recipes")
    # The last one includes the others.
    for number, (title, commands, settings, request) in enumerate(found if rig.LONG else found[-1:]):
        directory = state / f"recipe-{number}"
        directory.mkdir()
        made = shell(directory, commands)
        check.that(made.returncode == 0, f"{title}: its commands {made.stderr if made.returncode else ''}")
        (directory / "web.yaml").write_text(settings)
        mutual = "client_ca_file" in settings
        authority = directory / re.search(r"--cacert (\S+)", request)[1]
        certificate = (directory / "client.crt", directory / "client.key") if mutual else None

        def client_of(port, authority=authority, certificate=certificate):
            return web.Client(port, ca=authority, certificate=certificate)

        with web.daemon(directory, ["--web.config.file", directory / "web.yaml"], client_of) as daemon:
            check.equal(status(directory, request, daemon.port), 200, f"{title}: its request")
            mishaps(check, directory, request, daemon, client_of(daemon.port), mutual)


rig.main(test)
