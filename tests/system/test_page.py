#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
"""Does the page for people, in a real browser, show what the daemon measured, and nothing else?

A drive whose reads a test can slow down, one in memory under load from a cgroup whose name is markup, and an idle one
with such a mount point. Numbers are computed again from the two /metrics pages of the snapshots that the page names;
pixels of the heatmap are read back; nothing but the daemon is contacted, in the long tier for ten minutes. Uses
Debian's python3, as another one in the path would lack selenium.
"""
import gzip
import http.client
import itertools
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(SOURCE / "tests/kernel"), str(SOURCE / "tests/system")]
import jsonschema  # noqa: E402  pylint: disable=wrong-import-position
from browser import browser  # noqa: E402  pylint: disable=wrong-import-position
from controlled_disk import controlled_disk  # noqa: E402  pylint: disable=wrong-import-position
from heatmap import painted  # noqa: E402  pylint: disable=wrong-import-position
from lib import buckets, cgroups, rig  # noqa: E402  pylint: disable=wrong-import-position
from page_words import latency_text, megabytes, milliseconds_text, per_second, rounded, scaled, short  # noqa: E402  pylint: disable=wrong-import-position
from selenium.webdriver.common.keys import Keys  # noqa: E402  pylint: disable=wrong-import-position

FAST = {"read": 0.0005, "write": 0.0005}
SLOW_READ, SLOW_TIMES = 0.25, 6  # seconds; but a spike is four times what is usual, also where the host itself is slow
HEIGHTS = "return [...document.querySelectorAll('tr[data-device]')].map((row) => row.getBoundingClientRect().height)"
MARKUP = "<img src=x onerror=alert(1)>"  # a permitted name for a directory
TENANT = f"<img><u>{os.getpid()}.service"
HINTS = ("not_set", "none", "short", "medium", "long", "extreme", "unknown")
CLASSES = ("journal", "metadata", "writeback", "direct", "swap", "other")
BYTES = (" B", " kB", " MB", " GB")
WATCHED = 600 if rig.LONG else 0  # seconds for which the page is only watched


def fetch(port, path, headers=None):
    """(status, headers, body as received)."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


@contextmanager
def mounted(state, disk):
    """A file system on it, with markup as the name of the mount point."""
    mountpoint = state / MARKUP
    mountpoint.mkdir()
    rig.run("mkfs.ext4", "-q", "-F", "-E", "nodiscard", disk.path)
    rig.run("mount", disk.path, mountpoint)
    try:
        yield
    finally:
        rig.run("umount", mountpoint, check=False)


class Pages:
    """Keeps a /metrics page of every snapshot."""

    def __init__(self, daemon):
        self._daemon, self._pages, self._stop = daemon, {}, threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _run(self):
        while not self._stop.wait(0.3):
            try:
                scrape = self._daemon.scrape()
                self._pages[round(scrape.value("ssdpulse_snapshot_timestamp_seconds"), 3)] = scrape
            except OSError:
                pass

    def at(self, seconds):
        return next((page for time_, page in list(self._pages.items()) if abs(time_ - seconds) < 0.0015), None)


def p99(histogram):
    """Upper bound of the native bucket that contains the 99th percentile."""
    rank, seen = -(-99 * histogram.count // 100), 0
    for index in sorted(histogram.native, key=lambda index: -10**9 if index == buckets.ZERO else index):
        seen += histogram.native[index]
        if seen >= rank:
            return float(f"{2 ** (index / 8):.4g}")
    raise ValueError("no samples")


def numbers_are_written_as_here(check, chrome):
    """The page's own formatting of numbers, which must match the one used for the comparisons below."""
    values = [0, 0.004, 0.05, 0.5, 1, 1.004, 1.6, 9.996, 10, 10.04, 16.08, 99.96, 100, 100.5, 160, 999.4, 1600, 1604, 16000, 160000, 1.6e9]
    shown = chrome.run("return import('/words.js').then((words) => arguments[0].map((one) => [words.short(one), words.latency(one / 1e4), words.count(one)]))",
                       values)
    check.equal(shown, [[short(one), latency_text(one / 1e4), scaled(one, ["", " k", " M", " G"])] for one in values], "how numbers are written")
    shown = chrome.run("return import('/words.js').then((words) => arguments[0].map((one) => [words.milliseconds(one / 1e4), words.perSecond(one), words.megabytes(one)]))",
                       values[1:])
    check.equal(shown, [[milliseconds_text(one / 1e4), per_second(one), megabytes(one)] for one in values[1:]], "and in columns")


def numbers_are_those_of_metrics(check, chrome, pages, name):
    row = "tr[data-device='%s']" % name
    seen = chrome.wait(lambda: next(
        (found for found in [chrome.run(
            "const r = document.querySelector(arguments[0]);"
            "return r && r.dataset.begin ? [Number(r.dataset.begin), Number(r.dataset.end),"
            " Object.fromEntries([...r.querySelectorAll('.number')].map((c) => [c.classList[1], c.innerText.trim()]))] : null",
            row)] if found and pages.at(found[0]) and pages.at(found[1])), None))
    check.that(bool(seen), "the page names snapshots whose metrics are known")
    if not seen:
        return
    begin, end, cells = seen
    before, after, length = pages.at(begin), pages.at(end), round(end - begin, 3)

    def grown(metric, **labels):
        return after.value(metric, device=name, **labels) - before.value(metric, device=name, **labels)

    for kind in ("read", "write"):
        def histogram(page, kind=kind):
            return page.histogram("ssdpulse_io_latency_seconds", device=name, operation=kind)
        difference = histogram(after).minus(histogram(before))
        # The API rounds to four digits, so the last digit shown may differ by one.
        wanted, shown = p99(difference), cells[kind]
        check.that(shown in {milliseconds_text(wanted * factor) for factor in (0.9995, 1, 1.0005)},
                   f"p99 of {kind}s as in /metrics: {shown} ms, {milliseconds_text(wanted)}")
        check.equal(cells[f"{kind}-ios"], per_second(difference.count / length), f"{kind}s a second")
        check.equal(cells[f"{kind}-bytes"], megabytes(grown("ssdpulse_io_bytes_total", operation=kind) / length), f"megabytes of {kind}s a second")


def writes_are_told_apart(check, chrome, pages, name):
    chrome.run("location.hash = arguments[0]", f"#/device/{name}")
    seen = chrome.wait(lambda: next(
        (found for found in [chrome.run(
            "const w = document.querySelector('#writes'); if (!w?.dataset.end) return null;"
            "const rows = (id) => [...w.querySelectorAll(`[data-bars=${id}] tbody tr`)].map((row) => [...row.children].map((cell) => cell.textContent));"
            "return [Number(w.dataset.begin), Number(w.dataset.end), rows('hints'), rows('classes'), rows('streams')]")]
         if found and found[2] and pages.at(found[0]) and pages.at(found[1])), None), 20)
    check.that(bool(seen), "the page says of which snapshots its hints are")
    if not seen:
        return
    begin, end, hints, classes, streams = seen
    before, after, length = pages.at(begin), pages.at(end), end - begin

    def grown(metric, **labels):
        return after.value(metric, device=name, **labels) - before.value(metric, device=name, **labels)

    def device_time(hint):
        return after.histogram("ssdpulse_write_hint_latency_seconds", device=name, hint=hint).sum - before.histogram(
            "ssdpulse_write_hint_latency_seconds", device=name, hint=hint).sum

    wanted = [[hint.replace("_", " "), rounded(grown("ssdpulse_write_hint_ios_total", hint=hint) / length, 1),
               scaled(grown("ssdpulse_write_hint_bytes_total", hint=hint) / length, BYTES) + "/s",
               short(device_time(hint) / length * 100) + " %"]
              for hint in HINTS if grown("ssdpulse_write_hint_ios_total", hint=hint) > 0]
    check.equal([row[:4] for row in hints], wanted, "writes by hint as in /metrics")
    wanted = [[one, scaled(grown("ssdpulse_write_class_bytes_total", **{"class": one}) / length, BYTES) + "/s"]
              for one in CLASSES if grown("ssdpulse_write_class_bytes_total", **{"class": one}) > 0]
    check.equal(classes, wanted, "writes by class as in /metrics")
    check.equal(streams, [], "no write named a stream")
    chrome.run("document.querySelector('#writes').closest('details').open = true")
    check.that("named a stream" in chrome.text("[data-bars=streams]"), "and the page says so")
    known = after.value("ssdpulse_write_hint_path_info", device=name) is not None
    check.that(("Hints: " if known else "not known yet") in chrome.text("#writes"), "where hints end is said")


def overview_fits_its_width(check, chrome):
    chrome.run("location.hash = '#/'")
    chrome.wait(lambda: chrome.find("tr[data-device]"))
    for width in (320, 760, 1270, 1271, 1400, 3840):
        chrome.size(width, 900)
        time.sleep(0.3)
        table, room, page = chrome.run("const s = document.querySelector('.drives').closest('.scroll');"
                                       "return [s.scrollWidth, s.clientWidth, document.scrollingElement.scrollWidth]")
        check.that(table <= room and page <= width, f"all columns of the overview are in sight at {width} pixels: {table} of {room}")
        tallest = max(chrome.run(HEIGHTS))
        check.that(tallest <= (28 if width > 760 else 52), f"and a drive takes one line, or two in a narrow window: {tallest} pixels")
    chrome.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
    chrome.size(1280, 900)
    check.that(chrome.wait(lambda: min(chrome.run(HEIGHTS)) >= 44, 3), f"fingers hit a line: {min(chrome.run(HEIGHTS))} pixels")
    chrome.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})


def no_column_is_empty(check, chrome):
    columns = chrome.run("return [...document.querySelectorAll('.drives th.number')].map((head) => [head.innerText.replace(/\\s+/g, ' '),"
                         " [...document.querySelectorAll(`.drives td.${head.classList[1]}`)].map((cell) => cell.innerText.trim())])")
    check.equal([name for name, cells in columns if not any(re.search(r"\d|none", cell) for cell in cells)], [], "columns that nothing fills")
    names = [name for name, _ in columns]
    check.that("Read p99 ms" in names and not {"Write ampl.", "Life % left", "Life years left"} & set(names), f"no drive here reports its wear: {names}")


def a_line_opens_to_all_that_is_known(check, chrome, name):
    """By a click anywhere on it; a second one closes it."""
    chrome.find(f"tr[data-device='{name}'] td.number")[0].click()
    check.that(chrome.wait(lambda: chrome.find(f"tr.details[data-of='{name}']"), 3), "a click opens the line")
    facts = chrome.run("return Object.fromEntries([...document.querySelectorAll('tr.details [data-fact]')].map((one) => [one.dataset.fact, one.innerText.split('\\n')]))")
    check.equal(chrome.text("tr.details .unknown"), "Not known of this drive: write amplification, life.", "what is not known is said there, once")
    check.that(name in facts["drive"][1] and any("in flight" in one for one in facts["ios"]) and len(facts) == 7, f"with all figures: {facts}")
    chrome.find(f"tr[data-device='{name}'] td.number")[0].click()
    check.that(chrome.wait(lambda: not chrome.find("tr.details"), 3), "and closes it")


def the_first_line_is_in_parts(check, chrome):
    """What each verdict shows, and what it does not."""
    script = ("return Promise.all([import('/drive_facts.js'), import('/words.js')]).then(([facts, words]) => ["
              "...arguments[0].map((states) => facts.calmWords(states.map((state, i) => ({ state, name: 'sd' + i })))), words.momentLink('a b', 'write', 1000.5, 1010.2)])")
    found = chrome.run(script, [["ok"], ["ok", "idle"], ["ok", "high", "unseen"], ["high"] * 5])
    check.equal(found, ["The drive is as usual.", "All 2 drives are as usual.", "No drive is slow; 1 of 3 as usual. Higher than usual: sd1. Not known: sd2.",
                        "No drive is slow; 0 of 5 as usual. Higher than usual: sd0, sd1, sd2 and 2 more.", "#/device/a%20b?heat=write&from=940&to=1071"],
                "when no drive is slow, and the link to a moment")


def stacks_are_a_tree(check, chrome, name):
    """The mounted one is at its bottom; nothing is asked for while the section is closed."""
    chrome.run("location.hash = '#/'; performance.clearResourceTimings()")
    chrome.wait(lambda: chrome.find("details.stacks > summary"))
    asked = "return performance.getEntriesByType('resource').filter((one) => one.name.endsWith('/stacks')).length"
    time.sleep(2.5)
    check.equal(chrome.run(asked), 0, "stacks are asked for only when they are looked at")
    chrome.run("document.querySelector('details.stacks > summary').click()")
    place = f"details.stacks section li [data-place='{name}']"
    check.that(chrome.wait(lambda: chrome.find(place)), "the mounted disk is in the tree")
    check.equal(chrome.run("return document.querySelector(arguments[0] + ' .kind').textContent", place), "ramdisk" if name.startswith("ram") else "disk",
                "with its kind")
    check.that(chrome.run("return document.querySelector('details.stacks h3').textContent"), "below its mount point")
    # No volume here adds anything: a drive gets what it is sent.
    rungs = chrome.wait(lambda: chrome.run(
        "return [...document.querySelectorAll('details.stacks [data-ladder]')].map((one) => [one.dataset.ladder, ...[...one.querySelectorAll('li')]"
        ".map((row) => [...row.querySelectorAll('.who, .much')].map((cell) => cell.textContent))])") or None)
    wrong = [one for one in rungs if [who for who, _ in one[1:]] != ["File systems", "Drives"] or one[2][1] != one[1][1] + " × 1"]
    check.that(not wrong, f"ladders of drives without volumes: {rungs}")
    check.equal(chrome.run("return [...document.querySelectorAll('details.stacks [data-host-ladder] .who')].map((one) => one.textContent)"),
                ["Applications", "File systems"], "the ladder of the whole host")
    chrome.run("document.querySelector('details.stacks > summary').click()")


def beyond_usual(check, port, name):
    """Seconds that are a spike on this host: the daemon says what is usual here, once it has learned it."""
    for _ in range(300):
        devices = json.loads(fetch(port, "/api/v1/devices")[2])["devices"]
        [usual] = [one["baseline_p99"]["read"] for one in devices if one["name"] == name]
        if usual is not None:
            break
        time.sleep(0.1)
    check.that(usual is not None, f"the daemon has learned what is usual for reads: {usual} s")
    return max(SLOW_READ, SLOW_TIMES * (usual or 0))


def slow_seconds(port, name, low):
    """[(begin, end)] of the columns in which the daemon counted reads of `low` seconds or more, by its API."""
    live = json.loads(fetch(port, f"/api/v1/devices/{name}/live?since=0&heat=read")[2])
    found, at = [], live["begin"]
    for milliseconds, levels in zip(live["columns"]["milliseconds"], live["heat"]["levels"]):
        first, _, counts = (levels or "").partition(":")
        slow = [word for word, level in enumerate(counts, int(first or 0)) if level != "0" and live["bounds_seconds"][word] >= low]
        found += [(at, at + milliseconds / 1000)] if slow else []
        at += milliseconds / 1000
    return found


def heatmap_shows_what_was_injected(check, chrome, port, tell, name, slow_read):
    low, high = 0.88 * slow_read, 1.8 * slow_read
    chrome.run("location.hash = arguments[0]", f"#/device/{name}?range=60")
    check.that(chrome.wait(lambda: "reads" in chrome.text("#heatmap ~ .summary, .chart.wide .head")), "the heatmap is there")
    chrome.find("#lines")[0].click()
    before = [one for one in painted(chrome) if one[1] > low]
    tell({**FAST, "read": slow_read})
    slow_from = time.time()
    time.sleep(4)
    tell(FAST)
    slow_until = time.time() + slow_read
    chrome.wait(lambda: float(chrome.run("return document.querySelector('#heatmap').dataset.until")) > slow_until + 1.5)
    slow = [one for one in painted(chrome) if one[1] > low]
    inside = [one for one in slow if slow_from - 1.3 <= one[0] <= slow_until + 1.3]
    check.figure(f"{len(before)} pixels above {low:.2f} s before, {len(slow)} after; {len(inside)} of them when reads were slowed")
    check.that(len(inside) > 100, "pixels changed where reads were slow")
    # Other processes may delay this host for a moment: then the daemon has measured that, too.
    measured = slow_seconds(port, name, 0.75 * low)  # a row of pixels may be one bucket off
    # The dashed line at which a slow time begins is a pixel wide, and may have a colour of the scale on what it crosses.
    cells = [(at, latency) for at, latency in slow if any(latency == other and 0 < abs(at - when) < 0.15 for when, other in slow)]
    check.equal([one for one in cells if not any(begin - 0.2 <= one[0] <= end + 0.2 for begin, end in measured)], [],
                "and nowhere where no slow read was measured")
    rows = [seconds for _, seconds in inside if seconds < high]
    check.that(len(rows) >= 0.8 * len(inside), f"and in the rows of that latency, up to {max(s for _, s in inside):.2f} s")
    mid = [moment for moment, _ in inside]
    check.that(bool(mid) and min(mid) < slow_from + 1.5 and max(mid) > slow_until - 1.5, "over the whole time")
    check.that(not [one for one in painted(chrome) if one[1] < 0.8 * slow_read and slow_from + 1.5 < one[0] < slow_until - 1.5],
               "and no quick read was painted meanwhile")


def spike_is_explained(check, chrome):
    found = chrome.wait(lambda: chrome.find(".marks button[data-mark^=read]"), 20)
    check.that(bool(found), "the slow time is a mark")
    if found:
        chrome.run("document.querySelectorAll('.marks button[data-mark^=read]').forEach((b, i) => i == 0 && b.click())")
        words = chrome.text(".explain")
        causes = "return [...new Set([...document.querySelectorAll(arguments[0])].map((one) => one.dataset.cause))].sort()"
        check.equal(chrome.run(causes, "#marks-legend [data-cause]"), chrome.run(causes, ".marks [data-cause]"), "each cause is in the legend")
        check.that(all(len(one) > 5 for one in chrome.run("return [...document.querySelectorAll('#marks-legend span')].map((one) => one.innerText)")), "spelled out")
        check.that("Evidence for it" in words and "What was ruled out" in words, "its evidence is said in sentences")
        others = chrome.run("return document.querySelector('.explain details.others')?.textContent ?? ''")
        check.that("in flight" in others, f"figures that decided nothing are folded: {others}")
        check.that("What gave no clue" in words and "no log pages" in words, "and what is missing")
        chrome.run("document.querySelector('.explain [data-runbook]').click()")
        check.that(chrome.wait(lambda: len(chrome.text("#dialog-text")) > 200), "its runbook is served")
        title = chrome.text("#dialog-title")
        check.that(title and title not in chrome.text("#dialog-text").split("\n")[0], "its title is there once")
        chrome.size(1280, 300)
        chrome.run("const d = document.querySelector('#dialog'); d.scrollTop = d.scrollHeight; document.querySelector('.explain [data-runbook]').click()")
        check.that(chrome.wait(lambda: chrome.run("return document.querySelector('#dialog').scrollTop") == 0, 3), "another one begins at its beginning")
        chrome.size(1280, 900)
        chrome.keys(Keys.ESCAPE)


def what_decided_comes_first(check, chrome):
    """What an explanation shows of a spike with all kinds of evidence, and of one from before there were kinds."""
    script = ("return import('/happened.js').then(({ Happened }) => { const place = document.createElement('div');"
              "Happened.prototype.explain.call(Object.assign(Object.create(Happened.prototype), { view: { time: String }, app: { runbookButton: () => '' }, explanation: place }), arguments[0], false);"
              "return [...place.querySelectorAll('p strong, summary, li')].map((one) => (one.closest('details') ? '+' : '') + one.textContent); })")
    spike = {"id": "read-1", "kind": "spikes", "operation": "read", "words": "because", "begin": 1, "end": 2, "peak_seconds": 0.02,
             "baseline_seconds": None, "next": "wait", "runbook": None, "evidence": ["decided"], "missing": ["log pages"]}
    check.equal(chrome.run(script, {**spike, "ruled_out": ["no flush"], "other": ["load 1.1"]}),
                ["Evidence for it:", "decided", "What was ruled out:", "no flush", "What gave no clue:", "log pages",
                 "+Other figures (1)", "+load 1.1", "If it happens again:"], "what decided, what was ruled out, the rest folded")
    check.equal(chrome.run(script, {**spike, "missing": []}), ["Evidence for it:", "decided", "If it happens again:"], "and only what there is")


def links_lead_to_the_slow_operation(check, chrome):
    spikes = [{"operation": "read", "excess_seconds": 1}, {"operation": "commit", "excess_seconds": 3}]
    found = chrome.run("return import('/words.js').then((words) => { const worst = words.slowOperation({ spikes: arguments[0] });"
                       "return [worst, words.deviceLink('a b', worst), words.deviceLink('sda', 'read'), words.deviceLink('sda', words.slowOperation(null))]; })",
                       spikes)
    check.equal(found, ["commit", "#/device/a%20b?heat=commit", "#/device/sda", "#/device/sda"], "links to a slow drive")


def in_words(markdown):
    """What is left of a runbook without its markup, its title and the targets of its links."""
    text = re.sub(r"<!--.*?-->", "", markdown, flags=re.S).split("\n", 1)[1]
    text = re.sub(r"^\|[-|]+\|$", "", text, flags=re.M)
    return re.findall(r"\w+", re.sub(r"\]\([^)]*\)", "]", re.sub(r"^\d+\. ", "", text, flags=re.M)))


def runbooks_are_rendered(check, chrome):
    script = ("return import('/markdown.js').then(({ markdown }) => { const place = document.createElement('div');"
              "place.append(...markdown(arguments[0], arguments[1], () => 0)); place.style.whiteSpace = 'pre';"
              "const count = (what) => place.querySelectorAll(what).length; const all = [...place.querySelectorAll('h3, h4, p, li, th, td, pre')];"
              "const bare = place.cloneNode(true); bare.querySelectorAll('code').forEach((one) => one.remove());"
              "return [all.map((one) => one.textContent).join(' '), bare.textContent, count('h3, h4'), count('li'), count('tr'), count('[data-runbook]'), count('img, a, script')]; })")
    wrong = []
    for file in sorted((SOURCE / "deploy/runbooks").glob("*.md")):
        text = file.read_text()
        words, bare, headings, items, rows, links, _ = chrome.run(script, text, file.stem)
        wanted = [len(re.findall(pattern, text, flags=re.M)) for pattern in (r"^#+ ", r"^(?:[-*]|\d+\.) ", r"^\|(?!-)", r"\]\(\w+\.md\)")]
        found = [headings + 1, items, rows, links]  # the title is that of the dialog
        if found != wanted or re.findall(r"\w+", words) != in_words(text) or re.search(r"`|\*\*|\]\(|^#", bare):
            wrong.append(f"{file.stem}: {found} for {wanted}")
    check.equal(wrong, [], "runbooks whose markup is shown, or whose words are not")
    hostile = "# T\n<img src=x onerror=alert(1)> [x](javascript:alert(1)) [y](../etc/passwd) `<script>`\n\n|a|\n|---|\n|<img>|\n- <a href=x>"
    check.equal(chrome.run(script, hostile, "T")[5:], [0, 0], "elements that text of a runbook became")


def it_says_whose_and_by_which_way(check, chrome):
    check.that(chrome.wait(lambda: "sync" in chrome.run("return [...document.querySelectorAll('.bars')].map((one) => one.innerText).join()"), 20),
               "the path of this load is a bar: " + chrome.run("return [...document.querySelectorAll('.bars ~ .summary')].map((one) => one.innerText).join()"))


def names_are_never_markup(check, chrome, busy, odd):
    """Names that any user of the host can choose: of a mount point, and of a cgroup."""
    for view, place, name in (("#/", f"tr[data-device='{odd}'] .name", MARKUP), (f"#/device/{odd}", ".facts", MARKUP),
                              (f"#/device/{busy}", ".bars", TENANT)):
        chrome.run("location.hash = arguments[0]", view)
        check.that(chrome.wait(lambda place=place, name=name: name in chrome.text(place), 20), f"{view} has {name} as text")
        check.equal(chrome.run("return [...document.querySelectorAll('img, u, [onerror]')].map((one) => one.outerHTML)"), [],
                    f"{view}: elements that were made of it")


def keyboard_is_enough(check, chrome, name):
    chrome.run("location.hash = '#/'; document.activeElement.blur()")
    chrome.wait(lambda: chrome.find("tr[data-device]"))
    chrome.keys("?")
    check.that(chrome.wait(lambda: "pause" in chrome.text("#dialog-text")), "? shows the keys")
    chrome.keys(Keys.ESCAPE)
    chrome.keys("/")
    chrome.keys(name)
    check.that(chrome.wait(lambda: len(chrome.find("tr[data-device]")) == 1), "/ filters")
    chrome.keys(Keys.TAB, Keys.TAB, Keys.ENTER)
    check.that(chrome.wait(lambda: chrome.find("tr.details")), "Enter on the state opens the line")
    time.sleep(1.5)
    check.equal(chrome.run("return document.activeElement.ariaExpanded"), "true", "and keeps the focus")
    chrome.keys(Keys.ENTER)
    check.that(chrome.wait(lambda: not chrome.find("tr.details")), "and closes it")
    chrome.driver.switch_to.active_element.send_keys(Keys.SHIFT, Keys.TAB)
    chrome.keys(Keys.ENTER)
    check.that(chrome.wait(lambda: chrome.find("#heatmap")), "Enter opens the drive")
    chrome.wait(lambda: chrome.run("return document.querySelector('#heatmap').dataset.until"))
    for _ in range(40):
        if chrome.run("return document.activeElement.id") == "heatmap":
            break
        chrome.keys(Keys.TAB)
    check.equal(chrome.run("return document.activeElement.id"), "heatmap", "Tab reaches the heatmap")
    words = chrome.text(".chart.wide .head")
    chrome.keys(*[Keys.ARROW_LEFT] * 3)
    check.that(chrome.wait(lambda: chrome.text(".chart.wide .head") != words), "arrows move the time cursor")
    chrome.keys(Keys.ENTER)
    check.that(chrome.wait(lambda: chrome.find(".explain")), "Enter explains")
    chrome.run("document.activeElement.blur()")
    chrome.keys("p")
    check.that(chrome.wait(lambda: "to=" in chrome.run("return location.hash")), "p pauses, and the URL says so")
    chrome.keys("p")
    chrome.keys(Keys.ESCAPE)
    check.that(chrome.wait(lambda: chrome.find("#filter")), "Esc goes back")
    chrome.run("const f = document.querySelector('#filter'); f.value = ''; f.dispatchEvent(new Event('input'))")


def fits_320_pixels(check, chrome, name):
    chrome.size(320, 640)
    for view, there in (("#/", "tr[data-device]"), (f"#/device/{name}", "#heatmap")):
        chrome.run("location.hash = arguments[0]", view)
        chrome.wait(lambda there=there: chrome.find(there))
        time.sleep(0.5)
        check.that(chrome.run("return document.scrollingElement.scrollWidth") <= 320, f"{view} fits 320 pixels")
    chrome.size(1280, 900)


def watched_for_long(chrome, name):
    """All drives, one drive, and an hour of it, in turn."""
    views, end = itertools.cycle(("#/", f"#/device/{name}", f"#/device/{name}?range=3600")), time.monotonic() + WATCHED
    while time.monotonic() < end:
        chrome.run("location.hash = arguments[0]", next(views))
        time.sleep(30)


def survives_a_restart(check, chrome, daemon, state):
    chrome.run("location.hash = '#/'")
    daemon.process.terminate()
    daemon.process.wait(10)
    check.that(chrome.wait(lambda: "no answer since" in chrome.text("#connection")), "the page says since when nobody answers")
    check.that("No answer from the daemon since" in chrome.text("#sentence"), "and its first line claims nothing about now")
    process = subprocess.Popen([rig.BINARY, "run", "--config", state / "config.yaml"], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        check.that(chrome.wait(lambda: "restarted" in chrome.text("#connection"), 20), "and that the daemon is back, restarted")
        check.that("live" in chrome.text("#connection"), "live again")
    finally:
        process.terminate()
        process.wait(10)


def answers_fit_the_schema(check, port, name):
    schema = json.loads(fetch(port, "/api.schema.json")[2])

    def validate(path, definition):
        status, headers, body = fetch(port, path, {"Accept-Encoding": "gzip"})
        text = gzip.decompress(body) if headers.get("Content-Encoding") == "gzip" else body
        try:
            jsonschema.validate(json.loads(text), {"$ref": f"#/$defs/{definition}", "$defs": schema["$defs"]})
            check.that(status == 200, f"{path} fits the schema ({len(body)} bytes)")
        except jsonschema.ValidationError as error:
            check.that(False, f"{path} fits the schema: {error.message[:300]} at {list(error.absolute_path)}")
        return json.loads(text), len(body)

    validate("/api/v1/devices", "devices")
    validate("/api/v1/stacks", "stacks")
    validate("/api/v1/status", "status")
    validate("/api/v1/doctor", "doctor")
    validate("/api/v1/cost", "cost")
    validate("/api/v1/why", "why_answer")
    validate("/api/v1/day", "day")
    validate("/api/v1/measured", "measured")
    validate(f"/api/v1/why?at={int(time.time()) - 5}", "why_answer")
    live, _ = validate(f"/api/v1/devices/{name}/live", "live")
    for heat in ("write", "flush", "discard", "commit"):
        validate(f"/api/v1/devices/{name}/live?heat={heat}", "live")
    validate(f"/api/v1/devices/{name}/tenants", "tenants")
    validate(f"/api/v1/devices/{name}/column?snapshot={live['to']}", "column")
    for question in ("", "?op=7,12.5&window=24h"):
        validate(f"/api/v1/devices/{name}/what-if{question}", "what_if")
    _, size = validate(f"/api/v1/devices/{name}/live?since={live['to']}", "live")
    check.that(size <= 2048, "an answer that goes on has at most 2 KB")


def only_known_hosts_are_answered(check, port):
    for path, host, status in (("/", "evil.example", 421), ("/api/v1/devices", f"evil.example:{port}", 421),
                               ("/app.js", "127.0.0.1.evil.example", 421), ("/", f"localhost:{port}", 200),
                               ("/metrics", "evil.example", 421), ("/metrics", "127.0.0.1", 200), ("/-/healthy", "evil.example", 200)):
        check.equal(fetch(port, path, {"Host": host})[0], status, f"{path} for {host}")
    _, headers, _ = fetch(port, "/")
    policy = headers.get("Content-Security-Policy", "")
    check.that("default-src 'none'" in policy and "require-trusted-types-for 'script'" in policy and "unsafe" not in policy,
               "the page has a strict policy")
    etag = fetch(port, "/app.js")[1]["ETag"]
    check.equal(fetch(port, "/app.js", {"If-None-Match": etag})[0], 304, "a file that is known")


def test(check, state):
    with controlled_disk(state, FAST) as (slow, tell), rig.ram_disks(state, 1, "128M") as (busy,), \
            rig.ram_disks(state, 1, "16M") as (odd,), mounted(state, odd), cgroups.named(f"/batch.slice/{TENANT}") as (cgroup,), \
            rig.daemon(state, [slow, busy, odd]) as daemon, browser() as chrome:
        loads = [rig.Load(rig.fio_command(slow, 1, [{}], rw="randread", bs="4k", ioengine="psync", runtime=150 + WATCHED,
                                          time_based=None, rate_iops=12), may_fail=True),
                 rig.Load(cgroup.command(rig.fio_command(busy, 2, [{}], rw="randrw", bs="4k", ioengine="psync",
                                                         runtime=150 + WATCHED, time_based=None, rate_iops="400,200",
                                                         fsync=50)), may_fail=True)]
        try:
            base = f"http://127.0.0.1:{daemon.port}/"
            chrome.driver.get(base)
            check.that(chrome.wait(lambda: len(chrome.find("tr[data-device]")) == 3), "all drives are there")
            paint = chrome.run("return performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null")
            check.figure(f"first picture after {paint} ms")
            check.equal(chrome.text("#host"), f"on {socket.gethostname()}", "the host's name")
            check.that("log pages are read only from NVMe drives" in chrome.run("return document.querySelector('main').textContent"), "the page says what is not measured")
            numbers_are_written_as_here(check, chrome)
            what_decided_comes_first(check, chrome)
            links_lead_to_the_slow_operation(check, chrome)
            the_first_line_is_in_parts(check, chrome)
            runbooks_are_rendered(check, chrome)
            with Pages(daemon) as pages:
                time.sleep(11)
                numbers_are_those_of_metrics(check, chrome, pages, busy.name)
                no_column_is_empty(check, chrome)
                a_line_opens_to_all_that_is_known(check, chrome, busy.name)
                writes_are_told_apart(check, chrome, pages, busy.name)
            heatmap_shows_what_was_injected(check, chrome, daemon.port, tell, slow.name, beyond_usual(check, daemon.port, slow.name))
            spike_is_explained(check, chrome)
            it_says_whose_and_by_which_way(check, chrome)
            names_are_never_markup(check, chrome, busy.name, odd.name)
            answers_fit_the_schema(check, daemon.port, busy.name)
            only_known_hosts_are_answered(check, daemon.port)
            keyboard_is_enough(check, chrome, busy.name)
            fits_320_pixels(check, chrome, slow.name)
            overview_fits_its_width(check, chrome)
            stacks_are_a_tree(check, chrome, odd.name)
            if not check.failures:
                watched_for_long(chrome, busy.name)
            # About our reading of pixels, and of a drive that the history does not know yet, which a runbook asks for.
            said = [one for one in chrome.console() if "willReadFrequently" not in one and not ("/api/v1/history/" in one and "404" in one)]
            check.equal(said, [], "console messages and violations of the policy")
            others = {url for url in chrome.requested() if not url.startswith((base, "data:"))}
            check.equal(others, set(), "requests to another host")
            survives_a_restart(check, chrome, daemon, state)
        finally:
            for load in loads:
                load.close()


rig.main(test)
