# SPDX-License-Identifier: Apache-2.0
"""What does a case look like to a server that scrapes the fleet profile?"""
from dataclasses import dataclass, replace

import fleet_profile
from alerts.series import Latency, Samples
from lib import metric_list


def _sum(a, b):
    return None if a is None and b is None else (a or 0) + (b or 0)


@dataclass
class FewerBounds(Latency):
    @staticmethod
    def exponents(_used):
        return fleet_profile.CLASSIC_EXPONENTS


def _reduced(series):
    of_daemon = {metric["name"] for metric in metric_list.metrics() if metric["group"] == "self"}
    numbers = {}
    for one in series:
        labels = one.labels
        if one.name.startswith("ssdpulse_"):
            labels = fleet_profile.reduced(one.name, one.labels, one.name in of_daemon)
        if labels is None:
            continue
        if isinstance(one, Latency):
            yield FewerBounds(one.name, labels, one.phases)
            continue
        key = one.name, tuple(sorted(labels.items()))
        before = numbers.get(key)
        values = one.values if before is None else [_sum(a, b) for a, b in zip(before.values, one.values)]
        numbers[key] = Samples(one.name, labels, values)
    yield from numbers.values()


def _alert_labels(alert, labels):
    """Where the profile adds series up, the alert has the label of the sum."""
    labels = dict(labels)
    if alert == "SsdpulseIoErrors":
        labels["error"] = "io"
    elif alert == "SsdpulseLosingEvents" or labels.get("operation") == "commit" and "cause" in labels:
        labels["cause"] = "other"
    return labels


def in_profile(case):
    fires = {(when, tuple(sorted(_alert_labels(case.alert, labels).items()))) for when, labels, _ in case.fires}
    return replace(case, series=list(_reduced(case.series)), fires=tuple((when, dict(labels), "") for when, labels in sorted(fires)))


def without_words(rule):
    """The descriptions mention labels that the profile omits."""
    return {**rule, "annotations": {}}
