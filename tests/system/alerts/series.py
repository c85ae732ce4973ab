# SPDX-License-Identifier: Apache-2.0
"""Made-up series, written in the format of promtool's rule tests.

A series is given in phases: (number of samples, what happens). Samples are one STEP of the case apart.
"""
from dataclasses import dataclass

HOST = {"job": "ssdpulse", "instance": "db1:10936"}


def selector(name, labels):
    return name + "{" + ",".join(f'{key}="{value}"' for key, value in labels.items()) + "}"


def number(value):
    return "_" if value is None else f"{value:.17g}"


@dataclass
class Samples:
    """A counter or gauge; None means a scrape without it."""
    name: str
    labels: dict
    values: list

    def lines(self, _form):
        return [(selector(self.name, {**HOST, **self.labels}), " ".join(map(number, self.values)))]


def gauge(name, phases, **labels):
    return Samples(name, labels, [value for samples, value in phases for _ in range(samples)])


def counter(name, phases, start=0, **labels):
    """Phases of (samples, growth per sample). The first sample is `start`, before the phases begin."""
    values = [start]
    for samples, growth in phases:
        for _ in range(samples):
            values.append(values[-1] + growth)
    return Samples(name, labels, values)


@dataclass
class Latency:
    """A histogram of latencies: phases of (samples, {n: I/Os per sample that take just less than 2^n seconds}).

    Exponents are whole: both forms have a bound there, so both find the same quantile to two digits.
    """
    name: str
    labels: dict
    phases: list

    def cumulative(self):
        counts = {exponent: 0 for _, growth in self.phases for exponent in growth}
        yield dict(counts)
        for samples, growth in self.phases:
            for _ in range(samples):
                for exponent, ios in growth.items():
                    counts[exponent] += ios
                yield dict(counts)

    def lines(self, form):
        labels, states = {**HOST, **self.labels}, list(self.cumulative())
        count = [sum(state.values()) for state in states]
        total = [sum(ios * 2.0 ** exponent * 0.95 for exponent, ios in state.items()) for state in states]
        if form == "native":
            return [(selector(self.name, labels), " ".join(map(self.native, states, count, total)))]
        below = [(f"{2.0 ** bound:g}", [sum(n for e, n in state.items() if e <= bound) for state in states])
                 for bound in self.exponents(states[0])]
        lines = [(selector(f"{self.name}_bucket", {**labels, "le": bound}), values)
                 for bound, values in [*below, ("+Inf", count)]]
        lines += [(selector(f"{self.name}_count", labels), count), (selector(f"{self.name}_sum", labels), total)]
        return [(series, " ".join(map(number, values))) for series, values in lines]

    @staticmethod
    def exponents(used):
        """Exponents of the classic bounds."""
        return range(min(used) - 1, max(used) + 1)

    @staticmethod
    def native(state, count, total):
        if not count:
            return "{{schema:3 sum:0 count:0}}"
        low, high = min(state), max(state)
        buckets = [0] * (8 * (high - low) + 1)
        for exponent, ios in state.items():
            buckets[8 * (exponent - low)] = ios
        return (f"{{{{schema:3 sum:{total:.17g} count:{count} offset:{8 * low} "
                f"buckets:[{' '.join(map(str, buckets))}]}}}}")


def device_latency(phases, device="nvme0n1", operation="read", during="none"):
    return Latency("ssdpulse_io_device_latency_seconds",
                   {"device": device, "operation": operation, "during": during}, phases)


def volume_latency(phases, volume="dm-0", operation="read"):
    return Latency("ssdpulse_volume_latency_seconds", {"volume": volume, "operation": operation}, phases)


def latency(phases, device="nvme0n1", operation="read", part="io"):
    """part: io (the total latency) or io_queue."""
    return Latency(f"ssdpulse_{part}_latency_seconds", {"device": device, "operation": operation}, phases)
