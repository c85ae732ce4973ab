#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# tier: long
"""Does axe-core find any accessibility problem in the page: names, roles, contrasts, sizes, order?

All drives and one drive, with help, tables and an explanation, light and dark, wide and 320 pixels narrow. axe-core is
downloaded from npm for this test alone, as exactly the file with the checksum below; it is kept between runs.
"""
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import urllib.request
from pathlib import Path

from selenium.webdriver.common.keys import Keys

from browser import browser
from lib import rig

VERSION = "4.10.3"
SHA256 = "0f2b4d7dcdf7d1219df8d1959ad68e565f51d14c3f0d88bb71cd59abeb956292"  # of npm's archive
SKIPPED = 77
RUN = """
const done = arguments[arguments.length - 1];
const told = (one) => [one.id, one.help, one.nodes.map((node) => node.html.slice(0, 200))];
// Not in the middle of a change from light to dark.
Promise.all(document.getAnimations().map((one) => one.finished)).then(
  () => axe.run(document, {resultTypes: ["violations"]})).then(
  (found) => done(JSON.stringify(found.violations.map(told))),
  (error) => done(JSON.stringify([["error", String(error), []]])));
"""


def registry():
    """The registry that npm is configured to use; None if there is neither npm nor its setting."""
    told = os.environ.get("npm_config_registry")
    if not told and shutil.which("npm"):
        told = subprocess.run(["npm", "config", "get", "registry"], text=True, capture_output=True, check=False).stdout.strip()
    return told.rstrip("/") if told else None


def axe():
    """axe-core's source, or None if no registry can be reached."""
    kept = Path(os.environ["SSDPULSE_TEST_CACHE"]) / f"axe-core-{VERSION}.tgz"
    if not kept.exists():
        source = registry()
        if source is None:
            return None
        try:
            with urllib.request.urlopen(f"{source}/axe-core/-/axe-core-{VERSION}.tgz", timeout=60) as answer:
                data = answer.read()
        except OSError as error:
            print(f"{source}: {error}")
            return None
        new = kept.with_suffix(f".{os.getpid()}")
        new.write_bytes(data)
        new.rename(kept)
    data = kept.read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != SHA256:
        kept.unlink()
        raise RuntimeError(f"axe-core {VERSION} has the checksum {found}, not {SHA256}")
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return archive.extractfile("package/axe.min.js").read().decode()


def judge(check, chrome, script, words):
    if not chrome.run("return typeof axe === 'object'"):
        chrome.run(script)
    violations = json.loads(chrome.driver.execute_async_script(RUN))
    for name, help_text, nodes in violations:
        print(f"     {name}: {help_text}", *nodes[:3], sep="\n       ")
    check.equal([name for name, *_ in violations], [], f"violations, {words}")


def test(check, state):
    script = axe()
    if script is None:
        print("axe-core is on npm alone, and no registry can be reached")
        sys.exit(SKIPPED)
    with rig.ram_disks(state, 2, "16M") as (busy, idle), \
            rig.daemon(state, [busy, idle]) as daemon, browser() as chrome:
        load = rig.Load(rig.fio_command(busy, 1, [{}], rw="randrw", bs="4k", ioengine="psync", runtime=100,
                                        time_based=None, rate_iops="100,50"), may_fail=True)
        try:
            chrome.driver.get(f"http://127.0.0.1:{daemon.port}/")
            check.that(chrome.wait(lambda: len(chrome.find("tr[data-device]")) == 2), "both drives are there")
            check.that(chrome.wait(lambda: chrome.find("#not-measured")), "and what is not measured")
            judge(check, chrome, script, "all drives")
            chrome.find("tr[data-device] .state button")[0].click()
            check.that(chrome.wait(lambda: chrome.find("tr.details")), "a line is open")
            judge(check, chrome, script, "all drives, one of them with all that is known of it")
            chrome.size(320, 640, dark=True)
            judge(check, chrome, script, "all drives, narrow and dark")
            chrome.run("document.querySelector('#help').click()")
            judge(check, chrome, script, "help, narrow and dark")
            chrome.run("document.querySelector('#dialog').close(); location.hash = arguments[0]",
                       f"#/device/{busy.name}?range=60")
            drawn = "return document.querySelector('#heatmap')?.dataset.until"
            check.that(chrome.wait(lambda: chrome.run(drawn)), "the heatmap is drawn")
            judge(check, chrome, script, "one drive, narrow and dark")
            chrome.size(1280, 900)
            chrome.run("document.querySelectorAll('.chart details').forEach((one) => { one.open = true; });"
                       "document.querySelector('#heatmap').focus()")
            chrome.keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT, Keys.ENTER)
            check.that(chrome.wait(lambda: chrome.find(".explain")), "a second is explained")
            judge(check, chrome, script, "one drive, with tables and an explanation")
            chrome.run("location.hash = arguments[0]; document.querySelector('.times').open = true", f"#/device/{busy.name}?range=86400")
            check.that(chrome.wait(lambda: "no paths" in chrome.text("main") or "not keep paths" in chrome.text("main")), "a day is shown")
            judge(check, chrome, script, "a day of one drive")
            chrome.size(320, 640, dark=True)
            judge(check, chrome, script, "a day of one drive, narrow and dark")
        finally:
            load._process.terminate()
            load._process.communicate()


rig.main(test)
