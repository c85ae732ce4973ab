#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 420
"""Does the page say what is so in each state, and is it quiet about all else?

A real daemon, whose answers are changed on the way (page_states.py): a daemon that measures no more, events that were
lost, a suspended volume, no history, no permission, 64 drives. Views of a volume, a file system and a tenant keep the
range and the cursor of a drive's; a brushed range is compared; figures are explained; queries of a runbook are answered;
the ladder adds up. Uses Debian's python3, as another one would lack selenium.
"""
import json
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(SOURCE / "tests/kernel"), str(SOURCE / "tests/system")]
from browser import browser  # noqa: E402  pylint: disable=wrong-import-position
from lib import cgroups, rig  # noqa: E402  pylint: disable=wrong-import-position
from page_states import DRIVES, pages  # noqa: E402  pylint: disable=wrong-import-position
from page_words import latency_text, scaled  # noqa: E402  pylint: disable=wrong-import-position
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402  pylint: disable=wrong-import-position
from selenium.webdriver.common.keys import Keys  # noqa: E402  pylint: disable=wrong-import-position

TENANT = "/database.slice/database.service"
# Of a page that says that all is well: what is bold, and its words, at one moment.
HEALTHY = ("if (document.querySelector('#why').dataset.verdict !== 'ok' || document.querySelector('tr[data-state=slow]')) return null;"
           " return [[...document.querySelectorAll('main *, #why *')].filter((one) => one.offsetParent && getComputedStyle(one).fontWeight >= 600"
           " && !one.closest('th, h2, h3, summary') && [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim())).map((one) => one.innerText),"
           " document.querySelector('main').innerText]")


class Subject:
    """The page in a browser, and what it meets."""

    def __init__(self, check, chrome, served):
        self.check, self.chrome, self._served, self.port = check, chrome, served, served.port

    def open(self, *state, view="#/"):
        self._served.show(*state)
        self.chrome.driver.get("about:blank")  # else only the fragment would change
        self.chrome.driver.get(f"http://127.0.0.1:{self.port}/{view}")

    def meet(self, *state):
        """From now on, without loading anything again."""
        self._served.show(*state)

    def says(self, words, place="#why", seconds=15):
        self.check.that(self.chrome.wait(lambda: words in self.chrome.text(place), seconds), f"{place} says: {words} ({self.chrome.text(place)[:200]!r})")


def healthy_is_quiet(subject, name):
    for view in ("#/", f"#/device/{name}"):
        subject.open("as it is", view=view)
        subject.chrome.wait(lambda: subject.chrome.find("tr[data-device], .facts li"))
        found = subject.chrome.wait(lambda: subject.chrome.run(HEALTHY), 10)  # nothing, where a busy host makes the disk slow
        if found:
            bold, words = found
            subject.check.equal(bold, [], f"what is bold in {view}")
            subject.check.that("not known" not in words, "and nothing is said to be unknown there")
        else:
            print(f"     {view} never said that all is well")


def states_are_designed(subject, name):
    subject.open("stale")
    subject.says("live", "#connection")
    subject.says("answers, but has measured nothing since", seconds=20)
    subject.says("nothing new since", "#connection")
    subject.meet("as it is")
    subject.says("live", "#connection")
    subject.open("denied")
    subject.says("You may not see this page.")
    subject.says("not permitted", "#connection")
    subject.check.that(not subject.chrome.run("return document.querySelector('main').checkVisibility()"), "and nothing is shown besides")
    subject.meet("as it is")
    subject.check.that(subject.chrome.wait(lambda: subject.chrome.find("tr[data-device]")), "and it is back once it may")
    subject.open("losses")
    subject.says("Some I/Os of loop7", "#losses")
    subject.chrome.run("document.querySelector('#losses button').click()")
    subject.says("What it means", "#dialog-text")
    subject.open("held up")
    subject.says("vg0-data, dm-1 is suspended, and all I/O to it waits.", "#sentence")
    subject.says("20 s", "#facts")
    subject.check.that(subject.chrome.wait(lambda: subject.chrome.find("tr[data-device]")), "and the drives are there")
    subject.open("held up", view=f"#/device/{name}")
    subject.says("is suspended", "#aside")
    subject.open("as it is", view="#/device/nosuch")
    subject.chrome.wait(lambda: subject.chrome.find("#compare-shown"))
    subject.chrome.run("document.querySelector('#compare-shown').click()")
    subject.check.equal(subject.chrome.run("return location.hash"), "#/device/nosuch", "what is not known is compared with nothing")
    subject.open("was held up")
    subject.says("vg0-data, dm-1 was suspended, and all I/O to it waited.", "#past")
    subject.open("empty")
    subject.says("no history is kept here", "main")
    subject.check.equal(subject.chrome.find("th.day"), [], "columns for a history that is not kept")
    subject.open("empty", view=f"#/device/{name}?range=3600")
    subject.says("The past cannot be shown: no history is kept here.", "main")
    subject.check.that("Nothing was slow" not in subject.chrome.text("main"), "and nothing is said of what is not known")
    now = int(time.time())
    for window in ("range=86400", f"range=3600&to={now}"):
        subject.open("slow", view=f"#/device/{name}?{window}")
        subject.says("reads have been slow for", ".marks")
    subject.meet("as it is")
    subject.says("reads were slow for", ".marks")
    subject.open("slow", view=f"#/device/{name}?from={now - 7200}&to={now - 3600}")
    subject.check.that(not subject.chrome.wait(lambda: "have been slow" in subject.chrome.text(".marks"), 3), "what began later is not in an earlier window")
    subject.open("held up", view=f"#/device/{name}?range=86400")
    subject.says("all I/O to it waits", ".marks")
    subject.open("64 drives")
    subject.check.that(subject.chrome.wait(lambda: len(subject.chrome.find("tr[data-device]")) == DRIVES), f"{DRIVES} drives")
    subject.says(f"first to wear out: nvme{DRIVES - 1}n1, in 3 years", ".bar [role=status]")
    subject.check.that(subject.chrome.run("const one = document.querySelector('.scroll'); return one.scrollWidth <= one.clientWidth"
                                          " && [...document.querySelectorAll('.drives th')].filter((head) => head.offsetWidth > 0).length >= 14"), "all columns fit")
    subject.meet("as it is")
    subject.check.that(subject.chrome.wait(lambda: len(subject.chrome.find("tr[data-device]")) < DRIVES), "fewer drives again")
    subject.check.that("wear" not in subject.chrome.text(".bar [role=status]"), "of which none says how long it lasts")


def views_share_range_and_cursor(subject, name, mount):
    at = int(time.time()) - 20
    subject.open("volumes", view=f"#/device/{name}?range=60&heat=write&at={at}")
    chrome = subject.chrome
    chrome.wait(lambda: chrome.find("details.stacks > summary"))
    chrome.run("document.querySelector('details.stacks > summary').click()")
    volume = "details.stacks a[href*='volume/dm-1']"
    subject.check.that(chrome.wait(lambda: chrome.find(volume)), "a volume is a link")
    chrome.run("document.querySelector(arguments[0]).click()", volume)
    subject.says("vg0-data", "[data-subject=volume] h2")
    subject.says("4.3 ms", "[data-subject=volume] .facts")
    kept = {"range": "60", "heat": "write", "at": str(at)}
    query = "return Object.fromEntries(new URLSearchParams(location.hash.split('?')[1]))"
    subject.check.equal(chrome.run(query), kept, "its view has the same range, operation and cursor")
    subject.check.that(chrome.wait(lambda: chrome.run("return document.querySelector('#heatmap')?.dataset.until")), "and the charts of the drive below it")
    chrome.run("document.querySelector(\"[data-subject] a[href*='mount/']\").click()")
    subject.says(str(mount), "[data-subject=mount] h2")
    subject.check.equal(chrome.run(query), kept, "and so does that of the file system")
    tenant = ".bars a[href*='tenant/database.service']"
    subject.check.that(chrome.wait(lambda: chrome.find(tenant), 20), "a tenant is a link")
    chrome.run("document.querySelector(arguments[0]).click()", tenant)
    subject.says("/s", "[data-subject=tenant] .facts", 20)
    subject.check.equal(chrome.run(query), {**kept, "on": name}, "and so does that of the tenant")


def a_range_is_compared(subject, name, began):
    """By pointer and by keys; what the page shows is what the API says of the first two whole minutes."""
    chrome = subject.chrome
    subject.open("as it is", view=f"#/device/{name}?range=300")
    chrome.wait(lambda: chrome.run("return document.querySelector('#heatmap')?.dataset.until"))
    heatmap = chrome.find("#heatmap")[0]
    ActionChains(chrome.driver).move_to_element_with_offset(heatmap, 100, 40).click_and_hold().move_by_offset(40, 0).move_by_offset(60, 0).release().perform()
    subject.says("Selected:", ".brush:not([hidden])")
    subject.check.that("select=" in chrome.run("return location.hash"), "the range is in the URL")
    heatmap.send_keys(Keys.ESCAPE)
    subject.check.that(chrome.wait(lambda: not chrome.text(".brush:not([hidden])")), "Esc clears it")
    chrome.find("#compare-shown")[0].click()
    subject.says("Compare with the same time the day before", ".brush:not([hidden])")
    subject.check.that("against=yesterday" in chrome.run("return location.hash"), "all that is shown is compared with yesterday")
    chrome.run("document.querySelector('#brush-clear').click()")
    heatmap.send_keys("s", *[Keys.ARROW_LEFT] * 20, "s")
    subject.says("Selected:", ".brush:not([hidden])")
    end = int(began) // 60 * 60 + 180
    time.sleep(max(0, end + 5 - time.time()))
    chrome.run("location.hash = arguments[0]", f"#/device/{name}?range=300&select={end - 60}-{end}&against=before")
    path = f"/api/v1/compare/{name}?from={end - 60}&to={end}&against=before"
    base = chrome.run("return location.origin")
    answer = None
    for _ in range(30):  # minutes are written a while after their end
        try:
            with urllib.request.urlopen(base + path, timeout=20) as opened:
                answer = json.load(opened)["devices"][0]
            break
        except OSError as error:  # not yet there, or a host too busy to answer in time
            print(f"     {error.read().decode().strip() if isinstance(error, urllib.error.HTTPError) else error}")
            time.sleep(5)
    subject.check.that(answer is not None, "two minutes can be compared")
    if answer is None:
        return
    subject.check.equal((answer["before"], answer["after"]), ({"from": end - 120, "to": end - 60}, {"from": end - 60, "to": end}), "with the minute before")
    subject.open("as it is", view=f"#/device/{name}?range=300&select={end - 60}-{end}&against=before")
    judged = [row for row in answer["rows"] if row["verdict"] not in ("too few", "no data")]
    subject.check.that(chrome.wait(lambda: len(chrome.find(".brush tbody tr")) == len(judged), 20), f"each of its {len(judged)} verdicts is a row")
    shown = chrome.run("return [...document.querySelectorAll('.brush tbody tr')].map((row) => row.dataset.verdict)")
    subject.check.equal(sorted(shown), sorted(row["verdict"] for row in judged), "with that verdict")
    for query, status in (("from=1&to=2", 400), (f"from={end - 60}&to={end}&against=tomorrow", 400), (f"from={end - 8 * 3600}&to={end}&against=before", 400),
                          (f"from={end - 60}&to={end}&against=yesterday", 404)):
        try:
            found = urllib.request.urlopen(f"{base}/api/v1/compare/{name}?{query}", timeout=20).status
        except urllib.error.HTTPError as error:
            found = error.code
        subject.check.equal(found, status, f"comparing {query}")


def figures_are_explained(subject, name):
    """By the daemon's own table."""
    chrome = subject.chrome
    subject.open("as it is", view=f"#/device/{name}")
    chrome.wait(lambda: chrome.find("[data-help=latency]"))
    metrics = {one["name"]: one["help"] for one in json.loads(rig.run(rig.BINARY, "metrics", "--json"))["metrics"]}
    chrome.run("document.querySelector('.facts [data-help=latency] [tabindex]').focus()")
    subject.says(metrics["ssdpulse_io_latency_seconds"], "#help-of-figure")
    chrome.keys(Keys.ESCAPE)
    subject.check.that(chrome.wait(lambda: not chrome.text("#help-of-figure:not([hidden])")) and "#/device" in chrome.run("return location.hash"), "Esc closes it, and nothing else")
    names = chrome.run("return import('/help.js').then(({ FIGURES }) => Object.values(FIGURES).map(([name]) => name))")
    subject.check.equal([one for one in names if one not in metrics], [], "figures that are of no metric")


BYTES = (" B", " kB", " MB", " GB", " TB")
# Below the texts of a runbook: the cell of a metric, of labels and of a span ("now", "hour", "day").
CELL = ("const [metric, labels, span] = arguments; const row = [...document.querySelectorAll('.answers tr[data-metric]')].find((one) =>"
        " one.dataset.metric === metric && one.querySelector('th').innerText.trim() === labels); return row?.querySelector(`[data-span=${span}]`)?.innerText ?? ''")
OPENED = ("const made = document.createElement('button'); made.dataset.runbook = arguments[0]; document.getElementById('why').append(made); made.click(); made.remove()")


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=20):
            return True
    except OSError:
        return False


def runbook_is_answered(subject, name):
    """What the history and /metrics say of this drive is below what the runbook asks; what nothing keeps is not there."""
    chrome = subject.chrome

    def opened(state, runbook):
        subject.open(state, view=f"#/device/{name}")
        chrome.wait(lambda: chrome.find(".facts li"))
        chrome.run("performance.clearResourceTimings()")
        chrome.run(OPENED, runbook)
        subject.check.that(chrome.wait(lambda: chrome.find(".answers td[data-span=now]"), 20), f"{runbook} is answered ({state})")

    base = f"http://127.0.0.1:{subject.port}/api/v1/history/{name}"
    subject.check.that(chrome.wait(lambda: answers(base), 150), "the history has a minute of the drive")
    opened("as it is", "SsdpulseTailLatencyHigh")
    urls = chrome.run("return performance.getEntriesByType('resource').map(({ name }) => name).filter((one) => one.includes('/history/'))")
    for url, span, seconds in zip(urls, ("hour", "day"), (3600, 86400)):
        with urllib.request.urlopen(url, timeout=20) as answer:
            past = json.load(answer)
        subject.check.equal(past["to"] - past["from"], seconds, f"the {span} that is asked for")
        sizes = past["points"].get("read", {"bytes": []})["bytes"]
        wanted = (scaled(sum(sizes), BYTES) if sum(sizes) else "none") if sizes else "no data"
        subject.check.equal(chrome.run(CELL, "ssdpulse_io_bytes_total", "operation read", span), wanted, f"bytes read in the last {span}")
        longest = [one for one in past["points"].get("read", {"queue_p99": []})["queue_p99"] if one is not None]
        if longest:
            subject.check.that(latency_text(max(longest)) in chrome.run(CELL, "ssdpulse_io_queue_latency_seconds", "operation read", span), f"the longest p99 in the queue of that {span}")
    subject.check.equal(len(urls), 2, "questions to the history")
    errors = chrome.run(CELL, "ssdpulse_io_requeues_total", "all 6", "now")
    subject.check.equal((errors.split("\n")[0], chrome.run(CELL, "ssdpulse_io_requeues_total", "all 6", "hour")), ("0", ""), "what is zero is zero, what is not kept is absent")
    subject.says("The daemon keeps no past of ssdpulse_io_requeues_total: only Prometheus has it.", "#dialog-text")
    subject.says("in the last", "#dialog-text", 40)
    opened("cut", "SsdpulseTailLatencyHigh")
    subject.says("at least 30 s", "tr[data-metric=ssdpulse_latency_spike_seconds_total] [data-span=hour]")
    sums = chrome.run("return [...document.querySelectorAll('tr[data-metric=ssdpulse_latency_spike_seconds_total] [data-span=hour]')].map((cell) => cell.innerText)")
    subject.check.equal([one for one in sums if one != "no data" and not one.startswith("at least ")], [], "sums of a list that is cut")
    subject.open("cut", view=f"#/device/{name}?range=86400")
    subject.says("More happened earlier in this range", ".marks")
    now = int(time.time())
    subject.open("as it is", view=f"#/device/{name}?from={now - 200000}&to={now - 190000}")
    subject.says("No data in this range.", ".marks")
    subject.says("No data in this range.", ".chart.wide .summary")
    opened("empty", "SsdpulseTailLatencyHigh")
    subject.says("The last hour and day are not known: no history is kept here.", "#dialog-text")
    subject.check.equal(chrome.find(".answers [data-span=hour], .answers [data-span=day]"), [], "columns for a history that is not kept")
    opened("as it is", "SsdpulseThermalThrottling")
    subject.check.equal(chrome.run(CELL, "ssdpulse_nvme_temperature_celsius", "", "now"), "no such series", "the temperature of a drive that has none")


BEGIN, SECOND = 1_000_000, 10  # of two answers about stacks
LADDER = ("return Promise.all([import('/ladder.js'), import('/words.js')]).then(([{ Ladders }]) => { const [answers, devices] = arguments;"
          " const made = new Ladders(); answers.forEach((one) => made.update(one, new Map(devices), () => true));"
          " return [...made.root.querySelectorAll('[data-ladder]')].map((one) => [[...one.querySelectorAll('li')].map((row) =>"
          " [row.querySelector('.who').textContent, row.querySelector('.much').textContent]), one.querySelector('p').textContent]); })")


def stacks_answer(at, rungs, volume=None, gaps=()):
    """`rungs`: {(rung, device): (bytes, counts since)}; `volume`: of md0, on all drives: (sent, below, read, read below)."""
    fields = ("written_bytes", "members_written_bytes", "read_bytes", "members_read_bytes")
    layers = [{"name": "md0", "title": "data", "kind": "raid5", "counts_since": 0, **dict(zip(fields, volume))}] if volume else []
    drives = sorted({device for rung, device in rungs if rung == "drive"})
    return {"run": "r", "snapshot": at, "taken_at": BEGIN + at, "host_rungs": [], "host_gaps": [], "layers": layers, "ladders": [{
        "drives": drives, "volumes": ["md0"] if volume else [], "gaps": [dict(zip(("rung", "device", "reason"), gap)) for gap in gaps],
        "rungs": [{"rung": rung, "device": device, "class": "", "bytes": size, "counts_since": since} for (rung, device), (size, since) in rungs.items()]}]}


def ladder_adds_up(subject):
    """What the picture of the ladder says of two made-up answers, ten seconds apart."""
    subject.open("as it is")
    file_system, first, second = ("file_system", "md0"), ("drive", "sda"), ("drive", "sdb")
    before = {file_system: (5_000, 0), first: (7_000, 0), second: (9_000, 0)}
    after = {file_system: (1_005_000, 0), first: (1_507_000, 0), second: (509_000, 0)}
    nvme = [["sda", {"nvme": {"write_amplification": {"ratio": 2}}}], ["sdb", {"nvme": {"write_amplification": {"ratio": 4}}}]]
    no_media, rates = " Not every one of these drives counts what it writes to its media.", "In the last 10 s."
    for words, answers, devices, rows, note in (
            ("a raid5, its reads and its media", [stacks_answer(0, before, (1_000, 2_000, 50, 50)), stacks_answer(SECOND, after, (1_001_000, 2_002_000, 100, 800_100))],
             nvme, [["File systems", "100 kB/s"], ["data (raid5)", "200 kB/s × 2"], ["data: extra reads", "80 kB/s"], ["Drives", "200 kB/s × 2"],
                    ["Media", "500 kB/s × 2.5"]], rates + " From file systems to media: × 5."),
            ("without the media of one drive", [stacks_answer(0, before), stacks_answer(SECOND, after)], nvme[:1],
             [["File systems", "100 kB/s"], ["Drives", "200 kB/s × 2"]], rates + no_media),
            ("a drive that came meanwhile was written to since", [stacks_answer(0, {key: before[key] for key in (file_system, first)}),
                                                                   stacks_answer(SECOND, {**after, second: (500_000, BEGIN + 4)})], [],
             [["File systems", "100 kB/s"], ["Drives", "200 kB/s × 2"]], rates + no_media),
            ("of a drive that was there before it was counted, only what is new", [stacks_answer(0, {key: before[key] for key in (file_system, first)}),
                                                                                   stacks_answer(SECOND, {**after, second: (500_000, BEGIN - 4)})], [],
             [["File systems", "100 kB/s"], ["Drives", "150 kB/s × 1.5"]], rates + no_media),
            ("a volume that was made again: part of its bytes is not known", [stacks_answer(0, before), stacks_answer(SECOND, {**after, file_system: (1_000_000, BEGIN + 4)})], [],
             [["File systems", "100 kB/s"], ["Drives", "200 kB/s"]], rates + no_media + " Not compared, as something is lacking: md0 (volume not measured)."),
            ("a drive that has gone", [stacks_answer(0, before), stacks_answer(SECOND, {key: after[key] for key in (file_system, first)})], [],
             [["File systems", "100 kB/s"], ["Drives", "150 kB/s"]], rates + no_media + " Not compared, as something is lacking: sdb (drive not measured)."),
            ("a gap of the daemon's", [stacks_answer(0, before), stacks_answer(SECOND, after, gaps=[("file_system", "md0", "volume_not_timed")])], [],
             [["File systems", "100 kB/s"], ["Drives", "200 kB/s"]], rates + no_media + " Not compared, as something is lacking: md0 (volume not timed).")):
        subject.check.equal(subject.chrome.run(LADDER, answers, devices), [[rows, note]], f"ladder: {words}")


def test(check, state):
    with rig.ram_disks(state, 1, "64M") as (disk,), cgroups.named(TENANT) as (cgroup,):
        mount = state / "database"
        mount.mkdir()
        rig.run("mkfs.ext4", "-q", "-F", disk.path)
        rig.run("mount", disk.path, mount)
        load = None
        try:
            with rig.daemon(state, [disk]) as daemon, pages(daemon.port) as served, browser() as chrome:
                command = ["fio", "--name=load", f"--filename={mount}/table", "--rw=randrw", "--bs=4k", "--size=16M", "--direct=1", "--ioengine=psync",
                           "--time_based", "--runtime=600", "--rate_iops=200,100", "--output-format=json"]
                load = rig.Load(cgroup.command(command), may_fail=True)
                began = time.time()
                subject = Subject(check, chrome, served)
                states_are_designed(subject, disk.name)
                healthy_is_quiet(subject, disk.name)
                ladder_adds_up(subject)
                views_share_range_and_cursor(subject, disk.name, mount)
                figures_are_explained(subject, disk.name)
                runbook_is_answered(subject, disk.name)
                a_range_is_compared(subject, disk.name, began)
        finally:
            if load:
                load.close()
            rig.run("umount", "-l", mount, check=False)


rig.main(test)
