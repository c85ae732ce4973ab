#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 600
"""Does every alert fire on its case, stay silent on the nearest healthy one, and resolve?

With promtool from every Debian suite, on series made up in alerts/: with the rules for classic histograms and, if a
case has latencies, with those for native ones. Debian 12's promtool cannot read native histograms in a rule test: it
does the classic form, Debian 13's the native one, sid's both. In CI only sid's runs the cases; all check the files.
"""
import os
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
GROUPS = ["ssdpulse_latency", "ssdpulse_medians", "ssdpulse_time_shares", "ssdpulse_drives", "alone"]
OF_THE_MODEL = {rule["alert"] for group in yaml.safe_load((RULES / "modelled.yml").read_text())["groups"] for rule in group["rules"]}
RED_WITH = {"SsdpulseAccountingDrift": ("daemon", "Drift within an hour")}
FORMS = {"bookworm": ["classic"], "trixie": ["native"], "sid": ["classic", "native"]}


def alert_rules():
    groups = [group for name in ("alerts.yml", "modelled.yml")
              for group in yaml.safe_load((RULES / name).read_text())["groups"]]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def promtool(tool, *arguments):
    done = subprocess.run([tool, *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          env={**os.environ, "NO_COLOR": "1"})
    return done.returncode, done.stdout


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


def test_files(state, rules, profile="full"):
    """{form: files}: the cases of one alert, with only this alert and the recording rules loaded."""
    files = defaultdict(list)
    for form in ("classic", "native"):
        for alert, rule in rules.items():
            cases = [case for case in CASES if case.alert == alert and (form == "classic" or case.has_latencies())]
            if profile == "fleet":
                cases, rule = [fleet.in_profile(case) for case in cases], fleet.without_words(rule)
            if not cases:
                continue
            alone, file = state / f"{alert}.{profile}.rules.yml", state / f"{alert}.{profile}.{form}.yml"
            alone.write_text(yaml.safe_dump({"groups": [{"name": GROUPS[-1], "rules": [rule]}]}))
            red = dashboards.red(RULES.parents[2], *RED_WITH[alert]) if alert in RED_WITH and profile == "full" else None
            [evaluation] = {case.evaluation for case in cases}
            file.write_text(yaml.safe_dump({
                "rule_files": [str(RULES / f"latency_{form}.yml"), str(RULES / "recording.yml"), str(alone)],
                "group_eval_order": GROUPS,
                "evaluation_interval": f"{evaluation}s",
                "tests": [case.test(form, rule, red) for case in cases]}, width=10**6))
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
            with ThreadPoolExecutor(2) as pool, \
                    closing(pool.map(lambda one: promtool(tool, "test", "rules", one[0]), files[form])) as done:
                # If the first failure ends this, closing the iterator cancels what has not begun.
                for (file, _), (code, output) in zip(files[form], done):
                    check.that(code == 0, f"promtool of {suite}: {file.name}{'' if code == 0 else ': ' + output}")
            check.figure(f"promtool of {suite}: {sum(n for _, n in files[form])} cases with {form} histograms")


rig.main(test)
