# SPDX-License-Identifier: Apache-2.0
"""Alerts about how well ssdpulse itself sees."""
from alerts.case import HOUR, MINUTE, Case
from alerts.series import Samples, counter, gauge, latency

DRIVE, DEVICE = {"controller": "nvme0"}, {"device": "nvme0n1"}
HOUR_OF_TROUBLE = [(60, 0), (60, 1), (60, 0)]
THEN, BOTH = 90 * MINUTE, (50 * MINUTE, 150 * MINUTE)


def case(alert, what, *series, **rest):
    return Case(f"Ssdpulse{alert}", what, list(series), step=MINUTE, evaluation=MINUTE, **rest)


def source_up(phases, source="nvme", **labels):
    return gauge("ssdpulse_source_up", phases, source=source, **labels)


def source_info(phases, source, reason):
    return gauge("ssdpulse_write_amplification_source_info", phases, **DRIVE, source=source, reason=reason)


def losing(cause, growth, *series, **rest):
    return case("LosingEvents", f"{growth} of 60000 I/Os a minute by {cause}",
                counter("ssdpulse_lost_events_total", [(60, 0), (60, growth), (60, 0)], cause=cause, **DEVICE),
                *([latency([(180, {-13: 60000})])]), *series, **rest)


def drift(growth, ios=60000, **rest):
    return case("AccountingDrift", f"{growth} I/Os of {ios} a minute",
                gauge("ssdpulse_accounting_drift_ios", [(60, 3), (120, 3 + growth)], **DEVICE, operation="read"),
                latency([(180, {-13: ios})]), **rest)


def losing_says(cause, share, ios):
    return (f"On db1:10936, {share} of the I/Os of the last 5 minutes were not measured (cause {cause}): "
            f"{ios} of them.")


def drift_says(ios):
    return f"On db1:10936, the count of reads on nvme0n1 drifted by {ios} I/Os from the kernel's within an hour."


def last_read(interval):
    """Last read an hour after the start, and never again."""
    return [gauge("ssdpulse_nvme_last_poll_timestamp_seconds", [(180, HOUR)], **DRIVE),
            gauge("ssdpulse_nvme_poll_interval_seconds", [(180, interval)], **DRIVE)]


def started(*minutes):
    """A daemon that started at these minutes, and is not seen for two minutes before each restart."""
    values = [max(start for start in minutes if start <= minute) * MINUTE for minute in range(180)]
    for start in minutes[1:]:
        values[start - 2:start] = [None, None]
    return Samples("process_start_time_seconds", {}, values)


NOT_ANSWERING = "On db1:10936, nvme0 does not answer; its log pages were last read 30m 0s ago."
READS = {**DEVICE, "operation": "read"}
IO = counter("ssdpulse_io_bytes_total", [(140, 60 * 2 ** 20), (40, 0)], **READS)
FRESH = gauge("ssdpulse_snapshot_timestamp_seconds", [(1, minute * 60.0 - 30) for minute in range(180)])
STOPPED = gauge("ssdpulse_snapshot_timestamp_seconds",
                [(1, min(minute * 60, HOUR) if minute < 120 else minute * 60) for minute in range(180)])

CASES = [
    case("DriveNotAnswering", "a drive that hangs", source_up([(60, 1), (60, 0), (60, 1)], **DRIVE), *last_read(30),
         silent=BOTH, fires=((THEN, {**DRIVE, "source": "nvme"}, NOT_ANSWERING),)),
    case("DriveNotAnswering", "three readings failed that are ten minutes apart", *last_read(600),
         source_up([(70, 1), (50, 0), (60, 1)], **DRIVE), silent=(80 * MINUTE, 94 * MINUTE, 130 * MINUTE),
         fires=((100 * MINUTE, {**DRIVE, "source": "nvme"}, NOT_ANSWERING.replace("30m", "40m")),)),
    case("DriveNotAnswering", "one of them failed that are an hour apart", *last_read(HOUR),
         source_up([(60, 1), (60, 0), (60, 1)], **DRIVE), silent=(THEN, 119 * MINUTE)),
    case("DriveNotAnswering", "it was never read", source_up([(60, None), (60, 0), (60, 1)], **DRIVE), silent=BOTH,
         fires=((THEN, {**DRIVE, "source": "nvme"}, "On db1:10936, nvme0 does not answer."),)),
    case("DriveNotAnswering", "slow for two minutes", source_up([(60, 1), (2, 0), (60, 1)], **DRIVE),
         silent=(61 * MINUTE, 65 * MINUTE)),
    case("DriveNotAnswering", "another source is down", source_up([(60, 1), (60, 0)]), silent=(THEN,)),

    case("WriteAmplificationSourceLost", "a log page went away",
         source_info([(60, 1), (60, None), (60, 1)], "ocp", ""), silent=BOTH,
         *[source_info([(60, None), (60, 1), (60, None)], "none", "no page counts media writes")],
         fires=((THEN, {**DRIVE, "source": "none", "reason": "no page counts media writes"},
                 "On db1:10936, media writes of nvme0 are no longer counted (no page counts media writes), although "
                 "they were within the last day. Write amplification is unknown."),)),
    case("WriteAmplificationSourceLost", "a drive that never had one",
         source_info([(180, 1)], "none", "no page counts media writes"), silent=(THEN,)),
    case("WriteAmplificationSourceLost", "from one page to another", source_info([(60, 1), (60, None)], "ocp", ""),
         source_info([(60, None), (60, 1)], "endurance_group", "ocp refused"), silent=(THEN,)),

    losing("stray", 600, fires=((THEN, {"cause": "stray"}, losing_says("stray", "1%", 3000)),), silent=BOTH),
    losing("stray", 90, latency([(180, {-13: 60000})], operation="commit"),  # also counted as writes and flushes
           fires=((THEN, {"cause": "stray"}, losing_says("stray", "0.15%", 450)),), silent=BOTH),
    losing("stray", 20, silent=(THEN,)),
    losing("clock", 600, silent=(THEN,)),

    drift(30000, fires=((THEN, READS, drift_says(30000)),), silent=(50 * MINUTE, 170 * MINUTE)),
    drift(30, ios=0, fires=((THEN, READS, drift_says(30)),), silent=(50 * MINUTE, 170 * MINUTE)),
    drift(0, silent=(THEN,)),
    drift(5, ios=0, silent=(THEN,)),
    drift(300, silent=(THEN,)),

    case("LatencyNotRecorded", "native histograms that the server does not store", IO,
         *[latency([(60, {-13: 60000})])],
         silent=(50 * MINUTE, 70 * MINUTE, 160 * MINUTE),
         fires=((THEN, {}, "db1:10936 reads and writes 1MiB a second, but no latency is recorded for it: alerts that need "
                           "latencies are silent."),)),
    case("LatencyNotRecorded", "all is recorded", IO, latency([(180, {-13: 60000})]), silent=(THEN,)),
    case("LatencyNotRecorded", "a host that does nothing", counter("ssdpulse_io_bytes_total", [(180, 0)], **READS),
         silent=(THEN,)),

    case("SourceDown", "nobody reads the drives", source_up([(60, 1), (60, 0), (60, 1)]), silent=BOTH,
         *[counter("ssdpulse_source_errors_total", [(60, 0), (60, 2), (60, 0)], source="nvme", kind="reader")],
         fires=((THEN, {"source": "nvme"},
                 "On db1:10936, the ssdpulse source nvme is down. Errors: reader 30."),)),
    case("SourceDown", "all are up", source_up([(180, 1)], "block"), source_up([(180, 1)], "inventory"), silent=(THEN,)),
    case("SourceDown", "one drive does not answer", source_up([(180, 1)]), source_up([(180, 0)], **DRIVE), silent=(THEN,)),
    case("SourceDown", "a restart of a minute", source_up([(60, 1), (1, 0), (60, 1)]), silent=(61 * MINUTE,)),

    case("ReloadFailed", "a file with a mistake", gauge("ssdpulse_config_last_reload_successful", [(60, 1), (60, 0), (60, 1)]),
         gauge("ssdpulse_config_last_reload_success_timestamp_seconds", [(180, 0)]), silent=BOTH,
         fires=((THEN, {}, "On db1:10936, the last reload was refused; the running configuration was loaded 1h 30m 0s "
                 "ago. The next start will fail."),)),
    case("ReloadFailed", "fixed at once", gauge("ssdpulse_config_last_reload_successful", [(60, 1), (3, 0), (60, 1)]),
         silent=(62 * MINUTE, 66 * MINUTE)),

    case("LimitingItself", "tenants are off", gauge("ssdpulse_cpu_limit_level", [(60, 0), (60, 1), (60, 0)]), silent=BOTH,
         fires=((THEN, {}, "On db1:10936, the BPF programs would use more CPU than limits.cpu allows: tenants, paths and "
                 "samples for the flash models are off."),)),
    case("LimitingItself", "issues are off", gauge("ssdpulse_cpu_limit_level", [(60, 0), (60, 2), (60, 0)]), silent=BOTH,
         fires=((THEN, {}, "On db1:10936, the BPF programs would use more CPU than limits.cpu allows: only total latency is "
                 "measured, as with latency.mode completion-only."),)),
    case("LimitingItself", "everything is off", gauge("ssdpulse_cpu_limit_level", [(60, 0), (120, 3)]), silent=(30 * MINUTE,),
         fires=((THEN, {}, "On db1:10936, the BPF programs would use more CPU than limits.cpu allows: no I/O is measured until "
                 "ssdpulse is restarted."),)),
    case("LimitingItself", "a burst", gauge("ssdpulse_cpu_limit_level", [(60, 0), (8, 1), (60, 0)]), silent=(69 * MINUTE,)),

    case("Absent", "a host that does not answer", gauge("up", [(60, 1), (60, 0), (60, 1)]), silent=BOTH,
         fires=((THEN, {}, "ssdpulse on db1:10936 has not answered for 5 minutes."),)),
    case("Absent", "no host at all", gauge("up", [(60, 1), (60, None), (60, 1)]), silent=BOTH, host={"job": "ssdpulse"},
         fires=((THEN, {}, "The job ssdpulse has had no target for 5 minutes."),)),
    case("Absent", "all answer", gauge("up", [(180, 1)]), silent=(THEN,)),
    case("Absent", "a restart", gauge("up", [(60, 1), (2, 0), (60, 1)]), silent=(61 * MINUTE, 66 * MINUTE)),

    case("Restarting", "it dies every six minutes", started(0, *range(66, 90, 6)), silent=(66 * MINUTE, 110 * MINUTE),
         fires=((85 * MINUTE, {}, "ssdpulse on db1:10936 restarted 4 times in the last 30 minutes."),)),
    case("Restarting", "an upgrade, and a new configuration", started(0, 66, 80), silent=(70 * MINUTE, 85 * MINUTE)),
    case("Restarting", "it runs", started(0), silent=(THEN,)),

    case("Stale", "sampling stands still", STOPPED, silent=BOTH,
         fires=((THEN, {}, "ssdpulse on db1:10936 answers, but its data is 30m 0s old."),)),
    case("Stale", "sampled half a minute ago", FRESH, silent=(THEN,)),
]
