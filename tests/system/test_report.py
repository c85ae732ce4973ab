#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Does `ssdpulse report` report what was put into a history?

ssdpulse_simulated_history writes hours before and after a change of scheduler that multiplies every latency of one
drive; another drive stays as it was.
"""
import json
import os
import re
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

BINARY = os.environ["SSDPULSE_BINARY"]
WRITER = Path(os.environ["SSDPULSE_BUILD"]) / "ssdpulse_simulated_history"
STATE = Path(os.environ["SSDPULSE_TEST_STATE"])
failures = []


def expect(true, what):
    print(("ok   " if true else "FAIL: ") + what)
    if not true:
        failures.append(what)


def history(name, hours, ratio, load=1):
    directory = STATE / name
    directory.mkdir()
    subprocess.run([WRITER, directory, str(hours), str(ratio), str(load)], check=True)
    return directory


def report(directory, *options):
    command = [BINARY, "report", "--history.directory", directory, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def devices_of(run):
    return {one["device"]: {row["id"]: row for row in one["rows"]} for one in json.loads(run.stdout)["devices"]}


def check_change(directory, ratio, verdict):
    run = report(directory, "--change", "last", "--json")
    expect(run.returncode == 0, f"ratio {ratio}: {run.stderr.strip()}")
    answer = json.loads(run.stdout)
    rows = devices_of(run)
    p99 = rows["nvme0n1"]["read.p99"]
    change = p99["change"]
    expect(p99["verdict"] == verdict, f"ratio {ratio}: reads p99 are {p99['verdict']} ({change})")
    expect(change["lower"] <= ratio <= change["upper"], f"the interval {change['lower']:.3f} to {change['upper']:.3f} holds {ratio}")
    expect(all(row["verdict"] == "same" for row in rows["sda"].values()), "the other drive is the same")
    drive = next(one for one in answer["devices"] if one["device"] == "nvme0n1")
    setting = [(one["name"], one["before"], one["after"]) for one in drive["settings"]]
    expect(setting == [("queue.scheduler", "mq-deadline", "none")], f"what changed: {setting}")
    expect("one-setting" in [note["id"] for note in drive["notes"]], "one setting differs")
    expect([mark["text"] for mark in answer["marks"]] == ["scheduler <none> | try"], "the mark")


def check_answer(directory):
    """The first line is the answer: half as long, in at most twenty words. Then come at most eight rows; --all has the rest."""
    text = report(directory, "--change", "last").stdout
    first = text.split("\n")[0]
    said = re.match(r"Better: reads p99 on nvme0n1 fell by \d+ % \(95 %: (\d+) to (\d+)\), from [\d.]+ [mu]s to [\d.]+ [mu]s\.$", first)
    expect(said and int(said[1]) <= 50 <= int(said[2]) and len(first.split()) <= 20, f"the answer: {first}")
    expect("The same within 10 %: sda." in text.split("\n")[1], "and what did not change")
    table = [line for line in text.split("\n") if line.endswith(("  better", "  same", "  worse"))]
    expect(len(table) == 8 and len(text.split("\n")) <= 40, f"{len(table)} rows in {len(text.split())} words")
    picture = text.split("Reads on nvme0n1 by latency\n")[1].split("\n")
    highest = [line.find("█" if "█" in text else "@") for line in picture[:2]]
    expect(highest[1] < highest[0], f"the picture: what is twice as fast lies further to the left: {picture[:3]}")
    everything = report(directory, "--change", "last", "--all").stdout
    expect(all(everything.count(what) == 2 for what in ("reads, share of queue", "discarded")), "--all: all rows of both disks")


def check_few_minutes():
    """Three minutes on each side of a change that makes reads three times slower; the hours before it say how sure that is."""
    slower = history("slower", 6, 3)
    run = report(slower, "--change", "last", "--json")
    after = next(one for one in json.loads(run.stdout)["devices"] if one["device"] == "nvme0n1")["after"]["from"]
    before = json.loads(run.stdout)["devices"][0]["before"]["to"]

    def window(begin, end):
        return "..".join(datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ") for at in (begin, end))
    windows = ("--before", window(before - 180, before), "--after", window(after, after + 180))
    run = report(slower, *windows, "--json")
    expect(run.returncode == 0, f"three minutes: {run.stderr.strip()}")
    rows = devices_of(run)
    p50 = rows["nvme0n1"]["read.p50"]
    expect(p50["verdict"] == "worse" and p50["interval_from"] == "last day", f"three minutes: reads p50 {p50}")
    expect(p50["change"]["lower"] <= 3 <= p50["change"]["upper"], "the interval of three minutes holds 3")
    wrong = [row["id"] for row in rows["sda"].values() if row["verdict"] in ("better", "worse")]
    expect(not wrong, f"the other drive in three minutes: {wrong}")
    text = report(slower, *windows, "--device", "nvme0n1").stdout
    expect(" times (" in text and "of the day before" in text, f"three minutes, as text:\n{text}")


def main():
    better = history("better", 8, 0.5)
    check_change(better, 0.5, "better")
    expect(report(better, "--change", "last", "--fail-on", "worse").returncode == 0, "better is no failure")
    check_answer(better)
    page = STATE / "report.html"
    run = report(better, "--change", "last", "--html", page)
    text = page.read_text(encoding="utf-8")
    expect(run.returncode == 0 and len(text) <= 300_000 and "<script" not in text and "<b>" not in text,
           f"one page of {len(text)} bytes, without script or a name's markup")
    answer = text[text.index("<h1>"):text.index("<details>")]
    expect(answer.count("<tr>") <= 12 and answer.count("<svg") == 1 and "better" in answer, "it begins with the answer, one picture, and few rows")
    run = report(better, "--last", "2h")
    expect(run.returncode == 0 and "verdict" not in run.stdout and "reads p99" in run.stdout, "one window has no verdicts")
    run = report(better, "--before", "2h", "--after", "-1h..", "--device", "S2")
    expect(run.returncode == 0 and "sda" in run.stdout and "nvme0n1" not in run.stdout, "a drive by its serial number")

    check_few_minutes()

    worse = history("worse", 8, 2)
    check_change(worse, 2, "worse")
    expect(report(worse, "--change", "last", "--fail-on", "worse").returncode == 1, "--fail-on worse")

    run = report(history("load", 1, 1, 5), "--change", "last", "--json")
    verdicts = {row["verdict"] for row in devices_of(run)["nvme0n1"].values()}
    expect(verdicts == {"not comparable"}, f"five times the load is {verdicts}")

    for what, code, options in [
        ("a window without data", 6, ("--before", "-400d..-399d", "--after", "-300d..-299d")),
        ("another drive", 6, ("--change", "last", "--device", "nvme9n1")),
        ("a window that ends before it begins", 2, ("--before", "-1h..-2h", "--after", "1h")),
        ("no window", 2, ()),
        ("half of the windows", 2, ("--before", "1h")),
        ("no time", 2, ("--change", "soon")),
        ("two forms", 2, ("--last", "1h", "--json", "--markdown")),
    ]:
        run = report(better, *options)
        expect(run.returncode == code and run.stderr and not run.stdout, f"{what}: {run.returncode} {run.stderr.strip()[:150]}")
    empty = STATE / "empty"
    empty.mkdir()
    run = report(empty, "--last", "1h")
    expect(run.returncode == 1 and "ssdpulse.db" in run.stderr, f"no history: {run.stderr.strip()[:150]}")
    sys.exit(len(failures) > 0)


main()
