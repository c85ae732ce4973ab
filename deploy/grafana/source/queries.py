# SPDX-License-Identifier: Apache-2.0
"""How is ssdpulse queried? PromQL for histograms of both kinds, rates, and the joins from a drive to its devices.

A server that ingests native histograms has no `_bucket` series, and one that does not has only those, so each query is
written both ways; `or` takes the side that has an answer.
"""
RANGE = "$__rate_interval"
HOST = 'job=~"$job",instance=~"$instance"'
DEVICE = f'{HOST},device=~"$device"'
CONTROLLER = f'{HOST},controller=~"$controller"'


def rate(metric, by, where=DEVICE, window=RANGE, function="rate"):
    return f"sum by ({by}) ({function}({metric}{{{where}}}[{window}]))"


def increase(metric, by, where=DEVICE, window=RANGE):
    return rate(metric, by, where, window, "increase")


def either(native, classic):
    return f"{native}\nor\n{classic}"


def quantile(level, metric, by, where=DEVICE, window=RANGE):
    return either(
        f"histogram_quantile({level}, {rate(metric, by, where, window)})",
        f"histogram_quantile({level}, {rate(f'{metric}_bucket', f'{by}, le', where, window)})",
    )


def count_rate(metric, by, where=DEVICE, window=RANGE):
    """Observations per second."""
    return either(f"histogram_count({rate(metric, by, where, window)})", rate(f"{metric}_count", by, where, window))


def sum_rate(metric, by, where=DEVICE, window=RANGE):
    return either(f"histogram_sum({rate(metric, by, where, window)})", rate(f"{metric}_sum", by, where, window))


def mean(metric, by, where=DEVICE, window=RANGE):
    return f"({sum_rate(metric, by, where, window)})\n/\n({count_rate(metric, by, where, window)} > 0)"


def share(metric, by, where=DEVICE, window=RANGE):
    """One family's rate relative to another's: numerator and denominator are summed separately."""
    part, whole = metric
    return f"{rate(part, by, where, window)}\n/\n({rate(whole, by, where, window)} > 0)"


def of_model(expression):
    """Only devices of the chosen models: only the info metric carries the identity."""
    return f'({expression})\nand on (job, instance, device)\nssdpulse_device_info{{{DEVICE},model=~"$model"}}'


def of_drive(expression):
    """Only drives of the chosen models."""
    return f'({expression})\nand on (job, instance, controller)\nssdpulse_nvme_info{{{HOST},model=~"$model"}}'


def per_device(expression):
    """A drive's value, repeated for each of its namespaces. The expression has only job, instance and controller."""
    return (
        f"sum by (job, instance, device) (ssdpulse_nvme_namespace_info{{{DEVICE}}} * on (job, instance, controller) "
        f"group_left () ({expression}))"
    )
