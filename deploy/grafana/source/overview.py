# SPDX-License-Identifier: Apache-2.0
"""Dashboard Fleet overview: how is a fleet, of any size? Reads only what deploy/prometheus/rules/fleet.yml records."""
from house import GREEN, RED, YELLOW, choice, lines, listing, number, page, worst

JOB = 'job=~"$job"'
NO_RULES = "rules/fleet.yml is not loaded"
FULL = " Not of hosts whose metrics.profile is fleet."
ALARM = ((None, GREEN), (1, RED))
MORE = ((None, GREEN), (1.5, YELLOW), (3, RED))
WAF = ((None, GREEN), (2, YELLOW), (4, RED))
LIFE = ((None, RED), (90 * 86400, YELLOW), (365 * 86400, GREEN))
USED = ((None, GREEN), (0.8, YELLOW), (0.95, RED))


def recorded(name, more=""):
    return f"{name}{{{JOB}{more}}}"


def total(name, more=""):
    return f"sum({recorded(name, more)})"


DETAIL = "/d/ssdpulse-device?${datasource:queryparam}&${__url_time_range}"
TO_DEVICE = {"Device": {
    "title": "This device",
    "url": DETAIL + "&var-job=${__data.fields.Job}&var-instance=${__data.fields.Host}&var-device=${__value.text}",
}}
OF_USUAL = "job_operation:ssdpulse_io_latency_seconds:worst10_p99_rate5m_of_median1d"

NOW = [
    number("Answering", "Daemons that Prometheus could scrape.", "short", (total("job:ssdpulse_up:sum"), "up"), span=3,
           nothing=NO_RULES),
    number("Silent", "Daemons that Prometheus could not scrape. What their drives do is not known.", "short",
           (f"{total('job:ssdpulse_up:count')} - {total('job:ssdpulse_up:sum')}", "down"), ALARM, span=3,
           nothing=NO_RULES),
    number("Devices", "Devices that ssdpulse measures.", "short",
           (total("job_model:ssdpulse_device_info:count"), "devices"), span=3, nothing=NO_RULES),
    number("Slow now", "Devices with a latency spike under way.", "short",
           (total("job:ssdpulse_latency_spike_active:count"), "slow"), ALARM, span=3, nothing=NO_RULES),
    number("Reads above usual", "Devices whose 99th percentile of reads is at least three times their own median of a "
           "day.", "short",
           (total("job_operation:ssdpulse_io_latency_seconds:count_above_3x_median1d", ',operation="read"'), "reads"),
           ALARM, span=3, nothing="no reads yet"),
    number("Discarding", "Devices that are processing a burst of discards." + FULL, "short",
           (total("job:ssdpulse_discard_burst_active:count"), "burst"), ((None, GREEN), (1, YELLOW)), span=3,
           nothing=NO_RULES),
    number("Warning", "Drives with a critical warning set.", "short",
           (total("job:ssdpulse_nvme_critical_warning:count"), "warn"), ALARM, span=3, nothing="no NVMe drives"),
    number("Worn out in", "Least remaining life of any drive, at the current rate.", "s",
           (f"min({recorded('job:ssdpulse_nvme_life_remaining_seconds:min')})", "left"), LIFE, span=3, nothing="n/a"),
]

WORST = [
    *(worst(f"Furthest above usual: {operation}s", f"99th percentile of {operation}s over 5 minutes, as a multiple of the "
            "device's own median of the last day. 1: as usual. Click a device to see it.", "x",
            recorded(OF_USUAL, f',operation="{operation}"'), MORE, (("instance", "Host"), ("device", "Device")), span=8,
            links=TO_DEVICE, nothing=f"no {operation}s") for operation in ("read", "write", "commit")),
    listing("Alerts that fire", "Alerts of ssdpulse that are firing now, and for how many drives or hosts.",
            [("Firing", "short", recorded("job_alertname_severity:ssdpulse_alerts:count"), ((None, RED),))],
            order=("alertname", "severity"), sort="Firing", span=12, height=7, nothing="none"),
    lines("Slow time by cause", "Latency spikes of all devices, in seconds per second: how many are slow on average. "
          "Counted when a spike has ended.", "none",
          (f"sum by (cause) ({recorded('job_cause:ssdpulse_latency_spike_seconds:rate5m')}) > 0", "{{cause}}"), "cause",
          stack="normal", span=12, nothing="no spike has ended"),
]

MODELS = [
    *(lines(f"{operation.capitalize()} p99 by model, {name}", f"99th percentile of {operation}s over 5 minutes: the "
            f"{name} drive of each model.", "s",
            (recorded(f"job_model_operation:ssdpulse_io_latency_seconds:{what}_p99_rate5m",
                      f',operation="{operation}"'), "{{model}}"), log=10, span=6, nothing=f"no {operation}s")
      for operation in ("read", "write") for what, name in (("median", "median"), ("p95", "95th percentile"))),
    *(worst(f"Furthest above their siblings: {operation}s", f"Median of {operation}s, as a multiple of what the drive's "
            "siblings on its host take at equal load. 1: as they do.", "x",
            recorded("job_operation:ssdpulse_device_latency_of_siblings_ratio:worst10", f',operation="{operation}"'), MORE,
            (("instance", "Host"), ("device", "Device"), ("model", "Model"), ("firmware", "Firmware")), span=12,
            links=TO_DEVICE, nothing="no drive has siblings under the same load") for operation in ("read", "write")),
    listing("Models", "Drives, write amplification over 24 hours and wear of each model; what its drives do not report "
            "is empty.",
            [("Devices", "short", recorded("job_model:ssdpulse_device_info:count"), None),
             ("WAF, median", "none", recorded("job_model:ssdpulse_write_amplification_ratio:median_24h"), WAF),
             ("WAF, highest", "none", recorded("job_model:ssdpulse_write_amplification_ratio:max_24h"), WAF),
             ("Most used", "percentunit", recorded("job_model:ssdpulse_nvme_percentage_used_ratio:max"), USED)],
            order=("model",), sort="Devices", span=12, height=8, nothing=NO_RULES),
    worst("Where bytes multiply", "Bytes that reach the media for each that file systems send, over a day: the ten highest "
          "hosts. Where a step is not known, there is none." + FULL, "x", recorded("job:ssdpulse_write_ladder:worst10_ratio1d"),
          WAF, (("instance", "Host"),), span=6, nothing="no host knows every step"),
    lines("Drives near their end", "Drives whose rated endurance is used up within 90 days or a year, at the current rate.",
          "short", (f"sum by (within) ({recorded('job_within:ssdpulse_nvme_life_remaining_seconds:count')})",
                    "within {{within}}"), span=6, height=8, nothing="no drive reports it"),
]

SUMS = [
    lines("Throughput", "Bytes completed, all devices together.", "Bps",
          (f"sum by (operation) ({recorded('job_operation:ssdpulse_io_bytes:rate5m')})", "{{operation}}"), "operation",
          span=6),
    lines("Requests", "Requests completed, all devices together.", "reqps",
          (f"sum by (operation) ({recorded('job_operation:ssdpulse_io_latency_seconds:count_rate5m')})", "{{operation}}"),
          "operation", span=6),
    lines("Waited beyond usual, by cause", "How long all I/Os together waited beyond what is usual, in seconds per second.",
          "none", (f"sum by (cause) ({recorded('job_operation_cause:ssdpulse_latency_excess_seconds:rate15m')}) > 0",
                   "{{cause}}"), "cause", stack="normal", span=6, nothing="nothing waited"),
    lines("Discards by trigger", "Bytes discarded in bursts, by who sent them." + FULL, "Bps",
          (f"sum by (trigger) ({recorded('job_trigger:ssdpulse_discard_burst_bytes:rate5m')}) > 0", "{{trigger}}"),
          "trigger", stack="normal", span=6, nothing="no discards"),
    lines("Failed I/O", "Requests that completed with an error, by kind.", "reqps",
          (f"sum by (error) ({recorded('job_error:ssdpulse_io_errors:rate5m')}) > 0", "{{error}}"), stack="normal",
          nothing="none failed"),
    lines("Lost events", "I/Os that could not be measured, by cause.", "reqps",
          (f"sum by (cause) ({recorded('job_cause:ssdpulse_lost_events:rate5m')}) > 0", "{{cause}}"), stack="normal",
          nothing="none lost"),
    lines("Versions", "Daemons by version: how far a roll-out is.", "short",
          (f"sum by (version) ({recorded('job_version:ssdpulse_build_info:count')})", "{{version}}"), stack="normal",
          nothing=NO_RULES),
]


def build():
    variables = [choice("job", "Job", "label_values(job:ssdpulse_up:count, job)", all_value=".*")]
    rows = [("Now", NOW), ("Worst, and why", WORST), ("By model", MODELS), ("All together", SUMS)]
    return page("ssdpulse: Fleet overview", "ssdpulse-overview",
                "A fleet of any size: reads only the few series that rules/fleet.yml records.", variables, rows,
                time_from="now-6h", refresh="1m")
