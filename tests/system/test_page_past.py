#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
"""Do the page, `ssdpulse why --at` and `ssdpulse top --at` show the past as it was?

This test writes 80 days of history, with an fstrim that stalled reads last night, an hour without measurements, a
minute without I/O, and a drive that amplified its writes more after that fstrim. So the right answers are known. Uses
Debian's python3, as another one in the path would lack selenium.
"""
import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(SOURCE / "tests/kernel"), str(SOURCE / "tests/system")]
import jsonschema  # noqa: E402  pylint: disable=wrong-import-position
from browser import browser  # noqa: E402  pylint: disable=wrong-import-position
from heatmap import painted, shares  # noqa: E402  pylint: disable=wrong-import-position
from lib import rig  # noqa: E402  pylint: disable=wrong-import-position
from page_words import latency_text, scaled, short  # noqa: E402  pylint: disable=wrong-import-position
from past import (DAY, HOUR, MINUTE, READ, READ_DEVICE_NONE, READ_QUEUE, READ_TOTAL, WRITE, WRITE_TOTAL,  # noqa: E402
                  Past, column, load, minutes_between, seconds, tenants, word)  # pylint: disable=wrong-import-position
from selenium.webdriver.common.keys import Keys  # noqa: E402  pylint: disable=wrong-import-position

USUAL, SLOW = word(0.001), word(0.3)
READS, STALLED = 600, 50  # per minute
OUT_LIGHT = "d9dde3"  # style.css: --out
HATCH_LIGHT = "b9bec6"
BAD_LIGHT, BURST_LIGHT = "8a3b00", "00776b"  # --bad, --c4
QUARTER = 15 * MINUTE
UNIT = 512_000  # bytes; the host writes a thousand of them per minute


class Times:
    def __init__(self):
        self.now = int(time.time()) // MINUTE * MINUTE
        hour = self.now // HOUR * HOUR
        self.minutes_from, self.begin = hour - 26 * HOUR, hour - 80 * DAY
        self.stall = hour - 5 * HOUR + 7 * MINUTE  # its first minute
        self.gap = hour - 10 * HOUR  # and the hour from there on
        self.idle = hour - 3 * HOUR


def of_minute(times, at):
    if at == times.idle:
        return load(60000, {}, {})
    reads = {USUAL: READS - STALLED, SLOW: STALLED} if at == times.stall else {USUAL: READS}
    return load(60000, {READ: (READS, READS * 4096), WRITE: (60, 60 * 8192)},
                {READ_TOTAL: reads, WRITE_TOTAL: {USUAL: 60}, READ_DEVICE_NONE: reads, READ_QUEUE: {USUAL - 30: READS}})


def of_hour(times, at):
    minutes = 60
    slow = STALLED if at <= times.stall < at + HOUR else 0
    reads = {USUAL: minutes * READS - slow, **({SLOW: slow} if slow else {})}
    return load(minutes * 60000, {READ: (minutes * READS, minutes * READS * 4096)}, {READ_TOTAL: reads, READ_DEVICE_NONE: reads})


def amplification(times, at):
    """The write amplification of the minute before."""
    return 1.6 if at <= times.stall else 2.4


def worn(times, at):
    """(used, spare, degrees Celsius) as the drive reports them in that minute."""
    return 0.05 + (at - times.minutes_from) / DAY / 100, 0.98 if at <= times.stall else 0.97, 40 + at // MINUTE % 7


def write_wear(past, times):
    drive, host, media = past.drive(), 10**9, 10**15
    for at in range(times.minutes_from, times.now, MINUTE):
        host += 1000
        media += round(1000 * UNIT * amplification(times, at))
        past.drive_minute(drive, at, host, media, *worn(times, at))


def write_past(state, disk, times):
    with Past(state / "history/ssdpulse.db", disk.name) as past:
        who = {past.tenant(name): {READ: (reads, reads * 4096, reads * 1000000)}
               for name, reads in (("database.service", 500), ("backup.service", 100))}
        for at in range(times.minutes_from, times.now, MINUTE):
            if not times.gap <= at < times.gap + HOUR:
                past.minute(at, of_minute(times, at))
                past.tenants("minute", at, tenants(who))
        for at in range(times.begin, times.now // HOUR * HOUR, HOUR):
            if at != times.gap:
                past.hour(at, of_hour(times, at))
                past.tenants("hour", at, tenants({one: {READ: tuple(60 * part for part in what[READ])} for one, what in who.items()}))
        past.spike(times.stall + 5, 42, 0.3, 0.001, 15, "discard", "device_share=0.97 heaviest=backup.service:1200000000 "
                   "slowed=database.service:3.1", "no log page was read after the spike")
        past.burst(times.stall + 4, 44, "fstrim")
        past.seconds(times.stall - 55, [(i, times.stall - 55 + i, column({USUAL: 10, SLOW: 1} if 60 < i <= 102 else {USUAL: 10}))
                                        for i in range(1, 163)], 15)
        write_wear(past, times)
        past.reaches(times.minutes_from, times.now // HOUR * HOUR)


def utc(moment, form="%H:%M"):
    return time.strftime(form, time.gmtime(moment))


def commands_speak_of_one_moment(check, address, disk, times):
    def run(*words):
        return subprocess.run([rig.BINARY, *words, "--address", address], capture_output=True, text=True, check=False)

    def why(at):
        return run("why", "--at", f"@{at}")

    first = why(times.stall + 30)
    check.equal(first.returncode, 0, "exit status of an answer")
    day = "" if utc(times.stall, "%F") == utc(time.time(), "%F") else utc(times.stall, "%F ")
    check.equal(first.stdout, f"{disk.name}: reads took up to 300 ms, 300 times longer than usual (1 ms), from {day}{utc(times.stall)}:05 UTC "
                "for 42 s, because fstrim was trimming a file system on it. backup.service discarded 1.2 GB; database.service "
                "was slowed most (extra wait over all I/Os: reads 3.1 s).\nNext: It can be stopped (it runs in backup.service) and run again later: in "
                "quiet hours, or in smaller pieces (discard_max_bytes).\n",
                "why --at, of last night")
    for second in (0, 59):
        check.equal(why(times.stall + second).stdout, first.stdout, f"and at second {second} of that minute")
        table = run("top", "--once", "--at", f"@{times.stall + second}").stdout
        flat = " ".join(table.split())
        check.that("reads took up to 300 ms, 300 times longer" in flat, "top --at begins with the same line")
        row = next(line for line in table.splitlines() if line.startswith(disk.name + " "))
        check.that(" slow " in row and f" {seconds(SLOW) * 1000:.0f} " in row and " 10 " in row,
                   f"and its table is of that minute: p99 and reads a second: {row}")
    iso = time.strftime("%FT%TZ", time.gmtime(times.stall + 3))
    check.equal(run("why", "--at", iso).stdout, first.stdout, f"an ISO time: {iso}")
    for at, status, words in (
            (times.stall + MINUTE, 0, "No drive was slower than usual between"), (times.idle + 10, 0, "No drive had any I/O between"),
            (times.gap + 600, 6, "No data: nothing was recorded between"), (times.begin - DAY, 6, "Out of range: the history reaches back to"),
            (times.begin + DAY, 0, "No drive was slower than usual between")):
        said = why(at)
        check.that(said.returncode == status and said.stdout.startswith(words), f"at {utc(at, '%F %T')}: {said.returncode} {said.stdout.strip()}")
    check.that(f"until {utc(times.gap)}:00 UTC and from {utc(times.gap + HOUR)}:00 UTC on" in
               why(times.gap + 600).stdout.replace(utc(times.gap, "%F "), ""), "no data has its bounds")
    old = run("top", "--once", "--at", f"@{times.begin + DAY}").stdout
    row = next(line for line in old.splitlines() if line.startswith(disk.name + " "))
    check.that("figures of the hour" in old and " 10 " in row, f"where hours are left the table is of the hour: {row}")


def answers_fit_the_schema(check, base, disk, times):
    schema = json.load(urllib.request.urlopen(base + "api.schema.json"))
    for path, definition in ((f"history/{disk.name}?from={times.stall}&to={times.stall + HOUR}&heat=read&tenants=total", "history"),
                             (f"history/{disk.name}?heat=commit", "history"),
                             (f"history/{disk.name}?seconds=1&from={times.stall - 60}&to={times.stall + 120}", "history_seconds"), (f"why?at={times.stall}", "why_answer"),
                             (f"why?at={times.gap}", "why_answer"), ("why?at=1", "why_answer"), ("day", "day"), (f"devices/{disk.name}/tenants", "tenants")):
        answer = json.load(urllib.request.urlopen(base + "api/v1/" + path))
        try:
            jsonschema.validate(answer, {"$ref": f"#/$defs/{definition}", "$defs": schema["$defs"]})
        except jsonschema.ValidationError as error:
            check.that(False, f"{path} fits the schema: {error.message[:300]} at {list(error.absolute_path)}")


def slots_of(chrome, colour):
    """Quarters of an hour that have this colour in the pixels of the day's strip."""
    width, height, data = chrome.pixels("tr.details canvas.day")
    wanted = tuple(int(colour[i:i + 2], 16) for i in (0, 2, 4))
    return {int((x + 0.5) * 96 / width) for x in range(width) for y in range(height)
            if data[4 * (y * width + x) + 3] > 200
            and sum(abs(a - b) for a, b in zip(data[4 * (y * width + x):4 * (y * width + x) + 3], wanted)) < 24}


def the_day_is_a_strip(check, chrome, disk, times):
    chrome.size(1000, 900)  # wide strips, so that each slot has whole pixels
    seen = chrome.wait(lambda: chrome.run("return Number(document.querySelector('tr[data-device]')?.dataset.dayFrom ?? 0)"))
    check.that(bool(seen), "the page has the day")
    chrome.find("tr[data-device] .state button")[0].click()
    chrome.wait(lambda: chrome.find("tr.details"))
    begin, slot = seen or 0, lambda at: int(at - begin) // QUARTER
    check.equal(begin % QUARTER, 0, "slots begin with a quarter of an hour")
    wanted = ({slot(times.stall + 5)}, {slot(times.stall + 4)}, set(range(slot(times.gap), slot(times.gap + HOUR))))
    drawn = ()

    def is_drawn():
        nonlocal drawn
        drawn = tuple(slots_of(chrome, ink) for ink in (BAD_LIGHT, BURST_LIGHT, HATCH_LIGHT))
        return drawn == wanted
    chrome.wait(is_drawn, 10)
    check.equal(drawn, wanted, "slots with a slow time, with a burst, and without data")
    words = f"1 spike, worst {time.strftime('%H:%M', time.localtime(times.stall))} by discards; 1 burst; no data for 60 min"
    check.equal(chrome.text("tr.details .strips p:nth-of-type(2)"), "Last 24 hours: " + words, "the strip in words")
    check.equal(chrome.run("return document.querySelector('tr[data-device] canvas.day').getAttribute('aria-label')"), "Last 24 hours: " + words, "and for a screen reader")
    chrome.run("document.querySelector('tr.details .strips a[href$=\"86400\"]').focus()")
    time.sleep(2.5)  # the lines are updated every second
    check.equal(chrome.run("return document.activeElement.hash"), f"#/device/{disk.name}?range=86400", "it leads to the day of the drive, and keeps the focus")
    chrome.run("document.querySelector('#day-table').open = true")
    quarter = time.strftime("%F %H:%M", time.localtime(begin + slot(times.stall) * QUARTER))
    check.that(chrome.wait(lambda: quarter in chrome.text("#day-table")), "and as a table: " + chrome.text("#day-table").replace("\n", " | "))
    chrome.size(1280, 900)


def quantile(words, share):
    rank, seen = max(1, -int(-share * sum(words.values()) // 1)), 0
    for one in sorted(words):
        seen += words[one]
        if seen >= rank:
            return float(f"{seconds(one):.4g}")  # as the API rounds
    raise ValueError("no I/Os")


def the_last_hour_is_beside_now(check, chrome, file, disk):
    chrome.run("document.querySelector('#day-table').open = true")

    def shown():
        return chrome.run(
            "const row = document.querySelector('tr[data-device]'); const text = (one) => one.textContent.replaceAll('\\u00a0', ' ');"
            "return [Number(row.dataset.hourTo), [...document.querySelectorAll('tr.details small')].map(text).filter((one) => one.startsWith('1 h')),"
            " [...document.querySelectorAll('#day-table tr[data-hour]')].map((one) => [...one.children].map(text))]")

    def computed(to):
        sums = {READ_TOTAL: {}, WRITE_TOTAL: {}}
        for latencies, _ in minutes_between(file, disk.name, to - HOUR, to):
            for place, total in sums.items():
                for one, ios in latencies.get(place, {}).items():
                    total[one] = total.get(one, 0) + ios
        cells = [f"1 h: {latency_text(quantile(total, 0.99))}, n {scaled(sum(total.values()), ['', ' k', ' M'])}" for total in sums.values()]
        rows = [[disk.name, kind, f"{sum(total.values()):,}", *(latency_text(quantile(total, share)) for share in (0.5, 0.99, 0.999))]
                for kind, total in zip(("reads", "writes"), sums.values())]
        return cells, rows

    to, cells, rows = shown()
    wanted = computed(to)
    check.equal(cells, wanted[0], "p99 and number of reads and writes in the last hour, as in the file")
    check.equal([row[:6] for row in rows], wanted[1], "and its other quantiles in the table")


def wear_is_drawn_over_time(check, chrome, disk, times):
    begin, end = times.stall - 30 * MINUTE, times.stall + 30 * MINUTE
    open_window(chrome, disk.name, f"from={begin}&to={end}")
    chrome.run("document.querySelectorAll('#wear details').forEach((one) => { one.open = true; })")
    chrome.wait(lambda: chrome.run("return document.querySelectorAll('#wear table').length") == 3)
    tables = chrome.run("return [...document.querySelectorAll('#wear table')].map((table) => [...table.querySelectorAll('tbody tr')]"
                        ".map((row) => [...row.children].slice(1).map((cell) => cell.textContent)))")
    minutes = range(end - MINUTE, begin - 1, -MINUTE)
    # What was written before the first minute is not in this window.
    wanted = [[short(amplification(times, at)) if at > begin else "not known (too little written, or not counted)"] for at in minutes]
    check.equal(tables[0], wanted, "write amplification minute by minute")
    wear = [worn(times, at) for at in minutes]
    check.equal(tables[1], [[short(used * 100) + " %", short(spare * 100) + " %"] for used, spare, _ in wear], "life used and spare")
    check.equal(tables[2], [[f"{celsius:.0f} °C"] for _, _, celsius in wear], "temperature")
    legend = chrome.text("#wear .legend")
    chrome.run("document.querySelector('#wear .plot').focus()")
    chrome.keys(*[Keys.ARROW_LEFT] * 40)
    check.that(chrome.wait(lambda: chrome.text("#wear .legend") != legend), "the time cursor moves there")
    check.equal((legend, chrome.text("#wear .legend")), ("media by host writes: 2.4", "media by host writes: 1.6"), "what it says at the end, and before the fstrim")
    chrome.keys(Keys.ESCAPE)


def open_window(chrome, device, query):
    chrome.run("location.hash = arguments[0]", f"#/device/{device}?{query}")
    chrome.wait(lambda: chrome.run("return document.querySelector('#heatmap')?.dataset.until ?? ''") and
                "have I/Os" in chrome.text(".chart.wide .summary"))
    time.sleep(0.3)


def a_night_is_looked_at(check, chrome, disk, times):
    window = f"from={times.stall - 30 * MINUTE}&to={times.stall + 30 * MINUTE}"
    open_window(chrome, disk.name, window)
    chrome.find("#lines")[0].click()
    time.sleep(0.3)
    slow = [moment for moment, latency in painted(chrome) if latency > 0.2]
    check.that(bool(slow) and all(times.stall - 1 <= moment <= times.stall + MINUTE + 1 for moment in slow),
               f"slow reads are painted in their minute alone: {len(slow)} pixels")
    chrome.find("#lines")[0].click()
    check.that("60 of 60 minutes have I/Os" in chrome.text(".chart.wide .summary"), chrome.text(".chart.wide .summary"))
    chrome.find(".marks button[data-mark^=read]")[0].click()
    words = chrome.text(".explain")
    others = chrome.run("return document.querySelector('.explain details.others')?.textContent ?? ''")
    check.that("fstrim was trimming" in words and "97 % of the slow time was spent in the device" in others and "no log page was read" in words,
               f"the slow time is explained: {words[:300]}")
    chrome.find("#by-seconds")[0].click()
    check.that(chrome.wait(lambda: "seconds have I/Os" in chrome.text(".chart.wide .summary")), "its seconds are kept: " + chrome.text(".chart.wide .summary"))
    chrome.find("#lines")[0].click()
    time.sleep(0.3)
    slow = [moment for moment, latency in painted(chrome) if latency > 0.2]
    check.that(bool(slow) and abs(min(slow) - times.stall - 5) < 1.5 and abs(max(slow) - times.stall - 47) < 1.5,
               f"and painted second by second: from {min(slow, default=0) - times.stall:.1f} to {max(slow, default=0) - times.stall:.1f} s of that minute")
    chrome.find("#lines")[0].click()
    chrome.driver.back()
    chrome.wait(lambda: "minutes have I/Os" in chrome.text(".chart.wide .summary"))
    bars = chrome.text(".bars")
    check.that("database.service" in bars and "backup.service" in bars, f"tenants of that hour: {bars}")
    check.that("does not keep paths" in chrome.text("main"), "and that paths are not kept")


def ranges_and_the_way_back(check, chrome, disk, times):
    open_window(chrome, disk.name, "range=86400")
    summary = chrome.text(".chart.wide .summary")
    check.that("20 stretches of 3 min without data" in summary, f"the gap is counted: {summary}")
    chrome.find("button[data-range='21600']")[0].click()
    check.that(chrome.wait(lambda: "range=21600" in chrome.run("return location.hash")), "a range is in the URL")
    chrome.run("document.activeElement.blur()")
    chrome.keys("[")
    check.that(chrome.wait(lambda: "to=" in chrome.run("return location.hash")), "[ goes back in time, and the URL says so")
    chrome.keys("+")
    check.that(chrome.wait(lambda: "from=" in chrome.run("return location.hash")), "+ looks closer")
    for wanted in ("range=21600", "range=86400"):
        for _ in range(3):
            chrome.driver.back()
            if chrome.wait(lambda wanted=wanted: wanted in chrome.run("return location.hash") and "to=" not in chrome.run("return location.hash"), 1):
                break
        check.that(chrome.wait(lambda wanted=wanted: chrome.find(f"button[data-range='{wanted[6:]}'][aria-pressed=true]"), 3), f"back leads to {wanted}")
    chrome.run("document.querySelector('.times').open = true; for (const [name, at] of [['from', arguments[0]], ['to', arguments[1]]]) {"
               " const d = new Date(at * 1000 - new Date(at * 1000).getTimezoneOffset() * 60000);"
               " document.querySelector('#time-' + name).value = d.toISOString().slice(0, 16); }"
               "document.querySelector('#time-to').focus()", times.stall - HOUR, times.stall + HOUR)
    chrome.keys(Keys.ENTER)
    check.that(chrome.wait(lambda: f"from={times.stall - HOUR}&to={times.stall + HOUR}" in chrome.run("return location.hash")),
               f"from and to can be written: {chrome.run('return location.hash')}")


def three_states(check, chrome, disk, times):
    open_window(chrome, disk.name, f"from={times.gap - HOUR}&to={times.gap + 2 * HOUR}")
    chrome.wait(lambda: shares(chrome, times.gap, times.gap + HOUR, HATCH_LIGHT) > 0.05)
    hatched = shares(chrome, times.gap, times.gap + HOUR, HATCH_LIGHT)
    check.that(hatched > 0.05 and shares(chrome, times.gap - HOUR, times.gap, HATCH_LIGHT) < 0.01, f"no data is hatched: {hatched:.2f}")
    check.that(not [moment for moment, _ in painted(chrome) if times.gap + 60 < moment < times.gap + HOUR - 60], "and nothing is painted there")
    open_window(chrome, disk.name, "range=7776000")
    now = time.time()
    # The summary of the window before holds until this one has come.
    chrome.wait(lambda: shares(chrome, now - 90 * DAY, times.begin - DAY / 2, OUT_LIGHT) > 0.9)
    out = shares(chrome, now - 90 * DAY, times.begin - DAY / 2, OUT_LIGHT)
    check.that(out > 0.9 and shares(chrome, times.begin + DAY, now - DAY, OUT_LIGHT) < 0.05, f"what is not kept is grey: {out:.2f}")


def fits_320_pixels(check, chrome):
    chrome.size(320, 640)
    time.sleep(0.5)
    check.that(chrome.run("return document.scrollingElement.scrollWidth") <= 320, "90 days fit 320 pixels")
    chrome.size(1280, 900)


def test(check, state):
    times = Times()
    with rig.ram_disks(state, 1, "16M") as (disk,):
        with rig.daemon(state, [disk]) as daemon:
            rig.fio(disk, 1, rw="randread", bs="4k", size="1M", number_ios=10)
            daemon.after_ticks(2)
        write_past(state, disk, times)
        with rig.daemon(state, [disk]) as daemon, browser() as chrome:
            base = f"http://127.0.0.1:{daemon.port}/"
            commands_speak_of_one_moment(check, f"127.0.0.1:{daemon.port}", disk, times)
            answers_fit_the_schema(check, base, disk, times)
            chrome.driver.get(base)
            check.that(chrome.wait(lambda: chrome.find("tr[data-device]")), "the page is there")
            the_day_is_a_strip(check, chrome, disk, times)
            the_last_hour_is_beside_now(check, chrome, state / "history/ssdpulse.db", disk)
            a_night_is_looked_at(check, chrome, disk, times)
            wear_is_drawn_over_time(check, chrome, disk, times)
            ranges_and_the_way_back(check, chrome, disk, times)
            three_states(check, chrome, disk, times)
            fits_320_pixels(check, chrome)
            said = [one for one in chrome.console() if "willReadFrequently" not in one]
            check.equal(said, [], "console messages and violations of the policy")
            asked = [url for url in chrome.requested() if "/history/" in url]
            check.that(len(asked) <= 20, f"{len(asked)} questions to the history")


rig.main(test)
