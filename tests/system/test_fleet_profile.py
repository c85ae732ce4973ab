#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Is the fleet profile as documented, and as small: 60 series per disk in the native form, 120 in the classic form?

Two pairs of pages, full and profile: those of the unit tests, which have an NVMe drive and every family, and those of a
daemon with a busy disk; the guests' `wear` counts an NVMe drive's. fleet_profile.py has independent rules.
"""
import urllib.request
from collections import Counter
from pathlib import Path

import fleet_profile
from lib import metric_list, rig
from text_page import samples

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures/prometheus"
MOST = {"native": 60, "classic": 120}


def key(family, part, labels):
    return family, part, tuple(sorted(labels.items()))


def expected(page):
    """{key: value} of the profile, from the full page. Histogram values are not added up: none are merged."""
    of_daemon = {metric["name"] for metric in metric_list.metrics() if metric["group"] == "self"}
    bounds = {2.0 ** exponent for exponent in fleet_profile.CLASSIC_EXPONENTS} | {float("inf")}
    found = Counter()
    for family, part, labels, value in samples(page):
        left = fleet_profile.reduced(family, labels, family in of_daemon)
        if part == "bucket" and float(labels["le"]) not in bounds or family in fleet_profile.STATES and value == 0:
            continue
        if left is not None:
            found[key(family, part, left)] += value
    return found


def shown(page):
    return {key(family, part, labels): value for family, part, labels, value in samples(page)}


def series_of(page, names):
    """{form: number of series} of one disk, whose device or controller has one of these names."""
    result = Counter()
    for family, part, labels, _ in samples(page):
        if names & {labels.get("device"), labels.get("controller")}:
            result["classic"] += 1
            result["native"] += part in ("", "count")
    return result


def is_small(check, what, full, profile, names):
    before, after = series_of(full, names), series_of(profile, names)
    for form, most in MOST.items():
        check.that(0 < after[form] <= most, f"{what}: {after[form]} series in the {form} form instead of {before[form]}, at most {most}")


def of_unit_tests(check):
    full, profile = ((FIXTURES / f"small_snapshot{suffix}.txt").read_text() for suffix in ("", "_fleet"))
    wrong = dict(shown(profile).items() ^ expected(full).items())
    check.that(not wrong, f"the profile of the unit tests' page: {sorted(wrong)[:5]}")


def of_now(check, have, before, after, what):
    """A tick between two pages may add a series, or end one."""
    wrong = (before & after) - have | have - (before | after)
    check.that(not wrong, f"{what}: {sorted(wrong)[:5]}")


def of_a_daemon(check, state):
    with rig.ram_disks(state, size="64M") as [disk], rig.daemon(state, [disk], settings="metrics: {profile: fleet}\n") as daemon:
        rig.fio(disk, rig.fresh_seed(), rw="randrw", bs="4k", ioengine="psync", number_ios=2000, size="32M", fsync=50)
        daemon.at_rest()

        def page(query=""):
            with urllib.request.urlopen(f"http://127.0.0.1:{daemon.port}/metrics{query}", timeout=10) as answer:
                return answer.read().decode()

        full, profile = page("?collect[]=all"), page()
        wanted, seen, later = dict(expected(full)), shown(profile), expected(page("?collect[]=all"))
        of_now(check, set(seen), set(wanted), set(later), f"the {len(seen)} series of a daemon in the profile")
        io = [one for one in seen if one[0].startswith("ssdpulse_io_") and disk.name in str(one)]
        wrong = [one for one in io if seen[one] != wanted.get(one)]
        check.that(io and not wrong, f"values of its {len(io)} series of I/O: {wrong[:5]}")
        asked = set(shown(page("?collect[]=fleet")))
        of_now(check, asked, set(seen), set(shown(page())), "asked for by collect[]=fleet")
        more = {one[0] for one in shown(page("?collect[]=fleet&collect[]=tenants"))}
        check.that("ssdpulse_tenant_bytes_total" in more and "ssdpulse_io_size_bytes" not in more, "and with tenants beside it")
        is_small(check, "a busy disk", full, profile, {disk.name})


def test(check, state):
    of_unit_tests(check)
    of_a_daemon(check, state)


rig.main(test)
