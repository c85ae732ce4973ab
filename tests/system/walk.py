# SPDX-License-Identifier: Apache-2.0
"""Does a run's Prometheus answer everything that dashboards, rules and alerts query, at some time during that run?

What this run cannot have is listed, each with its reason. The list is kept true: a listed metric that exists, or a
listed query that returns something, is an error. Conversely, every metric of ours in Prometheus must be used somewhere.
"""
from pathlib import Path

import dashboards

SOURCE = Path(__file__).resolve().parents[2]
STEP = 15
# Grafana's own variables at this scrape interval; bars query at least a minute.
VARIABLES = {"compare": "1m", "__rate_interval": "1m", "__interval": "1m"}


def prefixed(*names):
    return [f"ssdpulse_{name}" for name in names]


# Metrics that this run does not have, by reason.
ABSENT = {
    "a cloud's own volumes alone have them": prefixed(*(f"nvme_volume_{name}" for name in (
        "operations_total", "bytes_total", "io_seconds_total", "limit_exceeded_seconds_total", "queue_length",
        "reads_by_latency_total", "writes_by_latency_total"))),
    "on a page or in a field that the emulated drives do not have": prefixed(*(f"nvme_{name}" for name in (
        "erase_cycles_remaining_ratio", "thermal_throttle_seconds_total", "endurance_estimate_bytes",
        "endurance_group_endurance_estimate_bytes", "fdp_reclaim_unit_time_limit_seconds", "die_failures_total",
        "reserved_blocks", "block_erases_mean", "back_pressure_ratio", "media_erased_bytes_total",
        "deallocate_commands_total", "background_operations_total", "pcie_crc_errors_total",
        "endurance_group_read_bytes_total", "endurance_group_written_bytes_total",
        "endurance_group_media_written_bytes_total", "endurance_group_capacity_bytes",
        "endurance_group_unallocated_bytes"))),
    "minutes do not wear out a drive": prefixed("nvme_life_remaining_seconds", "nvme_life_remaining_window_seconds"),
    "readings of the logs that met enough I/O are too few": prefixed("nvme_log_read_latency_effect_ratio"),
    "no drive refuses a page": prefixed("nvme_refused_page_info"),
    "this kernel has no write streams": prefixed("write_stream_bytes_total"),
}
# Queries that return nothing although their metrics exist, by reason.
EMPTY = {
    "no I/O fails": ["device: Errors", "fleet: Failed I/O"],
    "nothing is requeued": ["device: Requeues, failovers, never issued"],
    "no drive is trimmed in two ways": ["fleet: Online discard and fstrim both in use"],
    "no array here has parity": ["rule instance_volume:ssdpulse_volume_parity_read_bytes:ratio1h"],
    "drives here place by handle or do not say": ['alert SsdpulseHintsNotArriving: ssdpulse_write_hint_path_info{drive="none"}'],
}
# The same, but a busy host may make them return something.
MAY_BE_EMPTY = {
    "a drive that is written to counts no media writes": [
        *(f"rule {name}:ssdpulse_write_ladder:ratio1d" for name in ("instance_step", "instance")),
        *(f"rule instance:ssdpulse_write_ladder_counted_bytes:{name}" for name in ("rate5m", "avg1d_rate5m"))],
    "what lies below volumes is quick": [
        f"{where} instance_volume_operation:ssdpulse_volume_latency_seconds:max_below_of_usual_ratio"
        for where in ("rule", "alert SsdpulseVolumeLatencyHigh:")],
    "nothing is lost": ["daemon: Lost events by cause"],
    "nothing drifts": ["daemon: Drift against the kernel", "daemon: Drift of drives' host counters"],
    "every drive tells, from its first reading on": [
        'alert SsdpulseWriteAmplificationSourceLost: ssdpulse_write_amplification_source_info{source="none"}'],
    "every attempt succeeds": ["daemon: Failed attempts of sources"],
}


def judge(check, server, form, begin, end):
    span = {"start": begin, "end": end, "step": STEP}
    questions = [(where, dashboards.filled(expression, **VARIABLES, __range=f"{end - begin:.0f}s"))
                 for where, expression, kind in dashboards.panels(SOURCE)
                 if kind in ("", form) and not dashboards.THEIRS.search(expression)]
    questions += dashboards.rules(SOURCE, form)
    answers = [(where, expression, dashboards.ask(server, "query_range", expression, **span))
               for where, expression in questions]
    refused = [f"{where}: {words}" for where, _, words in answers if isinstance(words, str)]
    check.equal(refused, [], "queries that Prometheus does not understand")

    present = {dashboards.family(name) for name in server.ask("label/__name__/values", start=begin, end=end)}
    absent = set(sum(ABSENT.values(), []))
    check.equal(sorted(absent & present), [], "metrics that are there, though they are listed as absent")
    silent = [(where, expression) for where, expression, have in answers
              if not have and not dashboards.names(expression) & absent]
    listed, may = sum(EMPTY.values(), []), sum(MAY_BE_EMPTY.values(), [])
    stale = set(listed)
    unexpected = []
    for where, expression in silent:
        entry = next((one for one in (where, f"{where}: {expression}") if one in listed + may), None)
        stale.discard(entry)
        if entry is None:
            unexpected.append(where)
            print(f"     no answer: {where}: {expression}")
    check.equal(unexpected, [], "queries without an answer")
    check.equal(sorted(stale), [], "queries that answer, though they are listed as empty")
    answered = sum(bool(have) for _, _, have in answers)
    print(f"TABLE queries: {answered} of {len(answers)} answer; for the others there is a reason")

    used = set().union(*(dashboards.names(expression) for _, expression in questions))
    adhoc = {line.split()[0] for line in (SOURCE / "deploy/grafana/ad-hoc-metrics.txt").read_text().splitlines()
             if line and not line.startswith("#")}
    ours = {name for name in present if dashboards.OURS.fullmatch(name)}
    check.equal(sorted(ours - used - adhoc), [], f"of {len(ours)} metrics of ours in Prometheus: not used")
