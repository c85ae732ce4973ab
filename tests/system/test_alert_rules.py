#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 600
"""Does every alert fire on its case, stay silent on the nearest healthy one, and resolve?

With promtool from every Debian suite, on series made up in alerts/: with the rules for classic histograms and, if a
case has latencies, with those for native ones. Debian 12's promtool cannot read native histograms in a rule test: it
does the classic form, Debian 13's the native one, sid's both. In CI only sid's runs the cases; all check the files.

promtool evaluates every rule at every step of a case, so it gets only those that could do something there.
"""
import json
import os
import re
import subprocess
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import dashboards
import prometheus
import yaml
from alerts import CASES, fleet
from lib import rig

RULES = Path(__file__).resolve().parents[2] / "deploy/prometheus/rules"
# promtool does not order groups by itself.
GROUPS = ["ssdpulse_latency", "ssdpulse_medians", "ssdpulse_time_shares", "ssdpulse_drives", "ssdpulse_write_ladder", "alone"]
OF_THE_MODEL = {rule["alert"] for group in yaml.safe_load((RULES / "modelled.yml").read_text())["groups"] for rule in group["rules"]}
RED_WITH = {"SsdpulseAccountingDrift": ("daemon", "Drift within an hour")}
NAME = re.compile(r"[a-zA-Z_:][\w:]*")
BATCH = 8  # files for one promtool: its start costs as much as a small file, but nothing stops it after a failure
FORMS = {"bookworm": ["classic"], "trixie": ["native"], "sid": ["classic", "native"]}


def alert_rules():
    groups = [group for name in ("alerts.yml", "modelled.yml")
              for group in yaml.safe_load((RULES / name).read_text())["groups"]]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def promtool(tool, *arguments):
    done = subprocess.run([tool, *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          env={**os.environ, "NO_COLOR": "1", "GOGC": "400"})  # memory is cheap
    return done.returncode, done.stdout


def verdicts(tool, files):
    """[(file, exit code, output)]. promtool does not name the file that failed: then each is tested alone."""
    code, output = promtool(tool, "test", "rules", *files)
    return [(file, *((code, output) if code == 0 else promtool(tool, "test", "rules", file))) for file in files]


def every_alert_has_its_cases(check, rules):
    counted = defaultdict(Counter)
    for case in CASES:
        counted[case.alert]["fires" if case.fires else "silent"] += 1
        if case.fires:
            last = max(when for when, _, _ in case.fires)
            counted[case.alert]["resolves"] += any(when > last for when in case.silent)
    lacking = [name for name in rules if not all(counted[name][kind] for kind in ("fires", "silent", "resolves"))]
    check.that(not lacking, f"{len(rules)} alerts have a case that fires, a healthy one, and one that resolves {lacking}")
    check.equal(set(counted) - set(rules), set(), "alerts that only the cases know")


def recording_rules(form):
    return [group for name in (f"latency_{form}.yml", "recording.yml")
            for group in yaml.safe_load((RULES / name).read_text())["groups"]]


def of_interest(groups, present, asked):
    """The groups without the rules that have no result in a case: those that read neither a series that is `present` nor a
    rule that does. What is `asked` for, by name, is kept with all that it reads."""
    reads = {rule["record"]: set(NAME.findall(rule["expr"])) for group in groups for rule in group["rules"]}
    present, asked = set(present), set(asked)
    for _ in reads:  # no chain is longer
        present |= {name for name, names in reads.items() if names & present}
        asked |= set().union(*(names for name, names in reads.items() if name in asked))
    kept = [{**group, "rules": [rule for rule in group["rules"] if rule["record"] in present | asked]} for group in groups]
    return [group for group in kept if group["rules"]]


def differs_in_profile(case, reduced, form):
    """Where the profile changes nothing in a case, it has been tried."""
    def shape(one):
        return (sorted(line for series in one.series for line in series.lines(form)),
                sorted((when, sorted(labels.items())) for when, labels, _ in one.fires))
    return shape(case) != shape(reduced)


def test_files(state, rules, profile="full"):
    """{form: files}: the cases of one alert, with only this alert and the recording rules that these cases concern."""
    files = defaultdict(list)
    for form in ("classic", "native"):
        recorded = recording_rules(form)
        for alert, rule in rules.items():
            cases = [case for case in CASES if case.alert == alert and (form == "classic" or case.has_latencies())]
            if profile == "fleet":
                cases = [reduced for case in cases if differs_in_profile(case, reduced := fleet.in_profile(case), form)]
                rule = fleet.without_words(rule)
            if not cases:
                continue
            loaded, file = state / f"{alert}.{profile}.{form}.rules.yml", state / f"{alert}.{profile}.{form}.yml"
            red = dashboards.red(RULES.parents[2], *RED_WITH[alert]) if alert in RED_WITH and profile == "full" else None
            [evaluation] = {case.evaluation for case in cases}
            tests = [case.test(form, rule, red) for case in cases]
            present = {NAME.match(series["series"])[0] for test in tests for series in test["input_series"]}
            groups = of_interest(recorded, present, NAME.findall(f"{json.dumps(rule)} {red}"))
            # JSON is YAML, and written in a fraction of the time.
            loaded.write_text(json.dumps({"groups": [*groups, {"name": GROUPS[-1], "rules": [rule]}]}))
            file.write_text(json.dumps({
                "rule_files": [str(loaded)], "group_eval_order": GROUPS, "evaluation_interval": f"{evaluation}s", "tests": tests}))
            files[form].append((file, len(cases)))
    return files


def urgent(rules):
    return {name: rule for name, rule in rules.items()
            if rule["labels"]["severity"] in ("critical", "warning") and name not in OF_THE_MODEL}


def test(check, state):
    rules = alert_rules()
    every_alert_has_its_cases(check, rules)
    files = test_files(state, rules)
    for form, of_profile in test_files(state, urgent(rules), "fleet").items():
        files[form] += of_profile
    for suite, forms in FORMS.items():
        tool = prometheus.promtool(state, suite)
        for file in sorted(RULES.glob("*.yml")):
            code, output = promtool(tool, "check", "rules", file)
            check.that(code == 0 and "FAILED" not in output and "duplicate" not in output,
                       f"promtool of {suite}: {file.name}{'' if code == 0 else ': ' + output}")
        code, output = promtool(tool, "check", "config", RULES.parent / "prometheus.yml")
        check.that(code == 0, f"promtool of {suite}: prometheus.yml{'' if code == 0 else ': ' + output}")
        for form in forms if rig.LONG or suite == "sid" else ():
            batches = [[file for file, _ in files[form][begin:begin + BATCH]] for begin in range(0, len(files[form]), BATCH)]
            with ThreadPoolExecutor(2) as pool, closing(pool.map(lambda batch: verdicts(tool, batch), batches)) as done:
                # If the first failure ends this, closing the iterator cancels what has not begun.
                for file, code, output in (one for batch in done for one in batch):
                    check.that(code == 0, f"promtool of {suite}: {file.name}{'' if code == 0 else ': ' + output}")
            check.figure(f"promtool of {suite}: {sum(n for _, n in files[form])} cases with {form} histograms")


rig.main(test)
