# SPDX-License-Identifier: Apache-2.0
"""What is left of a series in the fleet profile, according to deploy/docs/fleet.md?

Shares nothing with the program's own table: tests compare its pages, and the alerts' cases, with this one.
"""
WHOLE = {"ssdpulse_" + name for name in (
    "host_wait_active", "host_io_pressure_seconds_total", "device_info", "device_size_bytes", "nvme_info", "nvme_namespace_info", "nvme_critical_warning", "nvme_endurance_group_warning",
    "nvme_percentage_used_ratio", "nvme_available_spare_ratio", "nvme_available_spare_threshold_ratio",
    "nvme_endurance_group_available_spare_ratio", "nvme_endurance_group_available_spare_threshold_ratio", "nvme_media_errors_total",
    "nvme_media_written_bytes_total", "nvme_life_remaining_seconds", "nvme_life_remaining_window_seconds",
    "nvme_thermal_management_seconds_total", "nvme_thermal_management_transitions_total", "nvme_thermal_throttle_seconds_total",
    "nvme_thermal_throttle_events_total", "nvme_thermal_throttle_level", "nvme_last_poll_timestamp_seconds",
    "nvme_poll_interval_seconds", "write_amplification_source_info", "volume_degraded_members",
    "device_latency_of_siblings_ratio", "device_slower_than_siblings",
    "device_member_info", "volume_member_info")}
READS_AND_WRITES = {"ssdpulse_" + name for name in (
    "io_device_latency_seconds", "io_queue_latency_seconds", "io_latency_seconds", "volume_latency_seconds", "io_bytes_total", "latency_spikes_total",
    "latency_excess_seconds_total", "latency_spike_pending_excess_seconds", "accounting_drift_ios")}
ONLY = {"ssdpulse_write_amplification_lower_ratio": ("window", ("1h", "24h")),
        "ssdpulse_write_amplification_upper_ratio": ("window", ("7d",)),
        "ssdpulse_write_amplification_covered_seconds": ("window", ("24h", "7d")),
        "ssdpulse_audit_finding_info": ("verdict", ("danger",))}
NO_SPIKE_CAUSE = {"ssdpulse_latency_spikes_total", "ssdpulse_latency_excess_seconds_total"}
IO_ERRORS = ("io", "timeout", "transport", "target", "offline", "protection", "nospace")
CLASSIC_EXPONENTS = (-11, -9, -7, -6, -5, -3)  # the bounds in seconds, as powers of two
STATES = {"ssdpulse_host_wait_active", "ssdpulse_nvme_critical_warning", "ssdpulse_nvme_endurance_group_warning",
          "ssdpulse_volume_degraded_members", "ssdpulse_device_slower_than_siblings"}  # omitted while 0


def _spike(labels):
    if labels["operation"] == "commit":
        return {**labels, "cause": "other"}
    if labels["operation"] in ("read", "write"):
        return labels if labels["cause"] in ("gc", "unknown") else {**labels, "cause": "other"}
    return None


def _error(labels):
    kept = {name: value for name, value in labels.items() if name != "operation"}
    if labels["error"] == "medium":
        return kept
    if labels["operation"] in ("read", "write", "flush") and labels["error"] in IO_ERRORS:
        return {**kept, "error": "io"}
    return None


def _loss(labels):
    if labels["cause"] in ("clock", "unstamped"):
        return None
    kept = {name: value for name, value in labels.items() if name != "program"}
    return {**kept, "cause": "other"} if "device" in labels else kept


SPECIAL = {"ssdpulse_latency_spike_seconds_total": _spike, "ssdpulse_latency_spike_active": _spike,
           "ssdpulse_io_errors_total": _error, "ssdpulse_lost_events_total": _loss}


def reduced(family, labels, of_daemon=False):
    """Its labels in the profile; None if it is omitted. `of_daemon`: a metric about the daemon itself is kept whole."""
    labels = dict(labels)
    if family in SPECIAL:
        return SPECIAL[family](labels)
    if family in READS_AND_WRITES:
        if family in NO_SPIKE_CAUSE:
            labels.pop("cause", None)
        return labels if labels["operation"] in ("read", "write") else None
    if family in ONLY:
        label, values = ONLY[family]
        return labels if labels[label] in values else None
    if family in WHOLE:
        if family.startswith("ssdpulse_nvme_thermal_management_"):
            labels.pop("level", None)
        return labels
    return labels if of_daemon else None
