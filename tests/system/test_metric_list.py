#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Is `ssdpulse metrics --json` what pages show: no name, type, label or enumerated value missing on either side?

The pages: that of the unit tests, which the exporter made from every family; the made-up one, with tables of its own;
and the live one of a daemon. None may show anything that the list lacks, and together they show all of it.
"""
import urllib.error
import urllib.request
from collections import defaultdict
from pathlib import Path

import made_up
import text_page
from lib import metric_list, rig

GOLDEN = Path(__file__).resolve().parents[1] / "fixtures/prometheus/small_snapshot.txt"


def shown(page):
    """({family: type}, {(family, label): values}) of a page."""
    labels = defaultdict(set)
    for family, _, of_sample, _ in text_page.samples(page):
        for label, value in of_sample.items():
            if label != "le":
                labels[family, label].add(value)
    return text_page.types(page), labels


def page_of(daemon, query=""):
    """(status, page)."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{daemon.port}/metrics{query}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def live_page(check, state, listed):
    """The whole page of a daemon whose configuration omits groups, which a scrape may still ask for."""
    groups = {metric["name"]: metric["group"] for metric in listed}
    with rig.ram_disks(state, size="64M") as [disk], \
            rig.daemon(state, [disk], settings="metrics: {exclude: [tenants, writes]}\n") as daemon:
        rig.fio(disk, rig.fresh_seed(), rw="randrw", bs="4k", ioengine="psync", number_ios=200, size="32M")
        daemon.at_rest()

        def shows(query):
            return {groups[name] for name in shown(page_of(daemon, query)[1])[0]}

        everything = shows("?collect[]=all")
        check.that({"io", "tenants", "writes", "self"} <= everything, f"asked for all: {everything}")
        check.equal(shows(""), everything - {"tenants", "writes"}, "without what the configuration leaves out")
        check.equal(shows("?collect[]=tenants&collect%5B%5D=web"), {"tenants", "web"}, "asked for two")
        status, words = page_of(daemon, "?collect[]=tenant")
        check.that(status == 400 and "tenants" in words, f"a group that is none: {status} {words.strip()}")
        return page_of(daemon, "?collect[]=all")[1]


def unlisted(metrics, types, labels):
    """What a page shows that is not in the list."""
    yield from (f"{name} {kind}" for name, kind in types.items() if metrics.get(name, {}).get("type") != kind)
    for (name, label), values in labels.items():
        listed = {one["name"]: one["values"] for one in metrics[name]["labels"]} if name in metrics else {}
        if label not in listed:
            yield f"{name}{{{label}}}"
        elif listed[label] is not None:
            yield from (f"{name}{{{label}={value}}}" for value in values - set(listed[label]))


def unseen(metrics, types, labels):
    """What is in the list and on no page. Info metrics have only one value of each label at a time."""
    for name, metric in metrics.items():
        if name not in types:
            yield name
        for label in metric["labels"]:
            values = labels[name, label["name"]]
            if not values:
                yield f"{name}{{{label['name']}}}"
            if not name.endswith("_info"):
                yield from (f"{name}{{{label['name']}={value}}}" for value in set(label["values"] or ()) - values)


def test(check, state):
    listed = metric_list.metrics()
    metrics = {metric["name"]: metric for metric in listed}
    check.equal(len(metrics), len(listed), "each metric is listed once")
    incomplete = [metric["name"] for metric in listed if not metric["help"].endswith(".")
                  or not all(label["meaning"] for label in metric["labels"])
                  or metric["unit"] and not metric["name"].removesuffix("_total").endswith(metric["unit"])]
    check.that(not incomplete, f"each has help, each label a meaning, each name its unit {incomplete}")
    types, labels = {}, defaultdict(set)
    for what, page in (("unit tests", GOLDEN.read_text()), ("made-up", made_up.page(listed, 1000)), ("live", live_page(check, state, listed))):
        of_page = shown(page)
        wrong = list(unlisted(metrics, *of_page))
        check.that(of_page[0] and not wrong, f"{what}: all of the page's {len(of_page[0])} families are as listed {wrong[:5]}")
        types |= of_page[0]
        for key, values in of_page[1].items():
            labels[key] |= values
    missing = list(unseen(metrics, types, labels))
    check.that(not missing, f"all of the {len(metrics)} listed metrics are on a page, with every label and value {missing[:5]}")


rig.main(test)
