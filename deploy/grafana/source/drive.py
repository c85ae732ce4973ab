# SPDX-License-Identifier: Apache-2.0
"""What an NVMe drive reports about itself: amplification, wear, temperature, placement, errors. Part of Device.

What a drive does not report has no series: its panel says that it is not known.
"""
from functools import partial

import house
from house import ALARM
from queries import CONTROLLER, DEVICE, HOST

lines, listing, states = (partial(panel, nothing="not known") for panel in (house.lines, house.listing, house.states))


def legend(*words):
    return " ".join(word for word in words if word)


def growth(name, text, *labels):
    """A counter of the drive, per second."""
    return f"rate(ssdpulse_nvme_{name}_total{{{CONTROLLER}}}[$__rate_interval])", legend(text, *labels)


def added(name, text, *labels):
    """How much a rare counter grew from one bar to the next; a bar is a minute or more."""
    return f"increase(ssdpulse_nvme_{name}_total{{{CONTROLLER}}}[$__interval])", legend(text, *labels)


def gauge(name, text, *labels):
    """A current value of the drive; the legend shows the labels that distinguish its series."""
    return f"ssdpulse_nvme_{name}{{{CONTROLLER}}}", legend(text, *labels)


AREA, GROUP, OPERATION = "{{area}}", "{{endurance_group}}", "{{operation}}"

AMPLIFICATION = [
    lines("Write amplification by window", "Bytes written to the media per byte that the host wrote. Absent while the "
          "counters' granularity leaves more than 20 % of doubt.", "none",
          (f"max by (window) (ssdpulse_write_amplification_ratio{{{CONTROLLER}}})", "{{window}}"), "window", span=8),
    lines("Write amplification, $window, with its bounds", "The ratio, and its bounds, which allow for the rounding of "
          "the drive's counters.", "none",
          [(f'max(ssdpulse_write_amplification_{name}{{{CONTROLLER},window="$window"}})', text)
           for name, text in (("upper_ratio", "upper"), ("ratio", "ratio"), ("lower_ratio", "lower"))], "bound",
          span=8),
    lines("Host against media", "Bytes that the host wrote, and that the drive wrote to its media. idle: while the host "
          "wrote nothing.", "Bps",
          [growth("host_written_bytes", "host"), growth("media_written_bytes", "media"),
           growth("idle_media_written_bytes", "idle media")], "side", span=8),
    lines("Window and age of the ratio, $window", "How much of the window the ratio was computed over, and how long "
          "before the newest reading it ends.", "s",
          [(f'max(ssdpulse_write_amplification_covered_seconds{{{CONTROLLER},window="$window"}})', "covered"),
           (f'max(ssdpulse_write_amplification_age_seconds{{{CONTROLLER},window="$window"}})', "age")], height=6),
    lines("What the host wrote: drive against kernel", "The drive's own host counter minus what the block layer wrote to "
          "it, with its bounds. Away from 0: someone else writes, or a counter is wrong.", "bytes",
          [gauge(f"host_written_drift_{bound}bytes", text)
           for bound, text in (("upper_", "upper"), ("", "drift"), ("lower_", "lower"))], "bound", minimum=None, span=8,
          height=6),
    listing("Source of the ratio", "Which of the drive's counters is used, and why no better one.",
            [("", "short", f"ssdpulse_write_amplification_source_info{{{CONTROLLER}}}", None)],
            hide=("instance",), order=("controller", "source", "reason"), span=8, height=6),
]

MODELLED = [
    lines("Modelled write amplification", "What the drive writes per byte of the host, by the model of its load: one "
          "answer and its bounds. Modelled, not measured.", "none",
          [(f'max(ssdpulse_modelled_write_amplification_{name}{{{CONTROLLER},window="24h",'
            f'overprovisioning=~"fitted|typical"}})', text)
           for name, text in (("upper_ratio", "upper"), ("ratio", "modelled"), ("lower_ratio", "lower"))] +
          [(f'max(ssdpulse_write_amplification_ratio{{{CONTROLLER},window="24h"}})', "measured")], "bound", span=8),
    lines("With more spare flash, without discards, with hints", "What the drive would write per byte of the host with "
          "more over-provisioning, without discards, or with hints kept apart.", "none",
          (f'max by (policy, overprovisioning, discards, placement) (ssdpulse_modelled_write_amplification_ratio{{'
           f'{CONTROLLER},window="24h",overprovisioning!~"fitted|typical"}})',
           "{{overprovisioning}} {{policy}} {{discards}} {{placement}}"), span=8),
    listing("Why nothing is modelled", "By window, the reason why there is no modelled write amplification.",
            [("", "short", f"ssdpulse_modelled_write_amplification_silence_info{{{CONTROLLER}}}", None)],
            hide=("instance",), order=("controller", "window", "reason"), span=8, height=6, nothing="none known"),
    lines("Spare flash that the model assumes", "Over-provisioning by the size of the drive, or fitted to its media "
          "counter, with its bounds.", "percentunit",
          [(f"max by (basis) (ssdpulse_model_effective_overprovisioning_{name}{{{CONTROLLER}}})", f"{text} {{{{basis}}}}")
           for name, text in (("upper_ratio", "upper"), ("ratio", ""), ("lower_ratio", "lower"))], span=8),
    lines("The model against the drive's counter", "Modelled divided by measured write amplification, minus 1, with "
          "bounds. Away from 0: the drive works differently from the model.", "percentunit",
          [(f"max(ssdpulse_model_drift_{name}{{{CONTROLLER}}})", text)
           for name, text in (("upper_ratio", "upper"), ("ratio", "drift"), ("lower_ratio", "lower"))], "bound",
          minimum=None, span=8),
    lines("How much the model knows", "Share of the drive about which nothing is known, and of the events that were lost.",
          "percentunit",
          [(f"ssdpulse_model_unknown_pages_ratio{{{CONTROLLER}}}", "unknown pages"),
           (f"ssdpulse_model_lost_events_ratio{{{CONTROLLER}}}", "lost {{kind}} events")], span=8),
    lines("Drive writes that the model has seen", "What the host wrote since the model started, divided by what the "
          "drive holds. The model is steady from 2 on.", "short",
          (f"ssdpulse_model_written_drive_writes{{{CONTROLLER}}}", "drive writes"), span=8),
    lines("Lifetime of what is written, by hint", "How much the host writes until half of what was written with this "
          "hint is overwritten or discarded.", "decbytes",
          (f'ssdpulse_write_lifetime_bytes{{{CONTROLLER},share="0.5"}}', "{{hint}}"), span=8),
    lines("Until garbage collection begins", "What the host wrote since the last full discard, and the range in which "
          "collection begins.", "decbytes",
          [(f"ssdpulse_written_since_full_discard_bytes{{{CONTROLLER}}}", "written"),
           (f"ssdpulse_collection_begins_lower_bytes{{{CONTROLLER}}}", "begins, at the earliest"),
           (f"ssdpulse_collection_begins_upper_bytes{{{CONTROLLER}}}", "at the latest")], span=8),
]

WEAR = [
    lines("Life used", "Rated life that is used up, by the drive's own estimates; may exceed 100 %.", "percentunit",
          [gauge("percentage_used_ratio", "drive"),
           gauge("endurance_group_percentage_used_ratio", "endurance group", GROUP),
           gauge("system_area_used_ratio", "system area"),
           (f"1 - ssdpulse_nvme_erase_cycles_remaining_ratio{{{CONTROLLER}}}", "erase cycles")]),
    lines("Life left", "Time until the rated endurance is used up at the current rate, by what it is computed "
          "from. window: of that rate.", "s",
          [gauge("life_remaining_seconds", "left, by", "{{basis}}"),
           gauge("life_remaining_window_seconds", "window of", "{{basis}}")], log=10),
    lines("Spare capacity", "What is left to replace blocks that go bad, and where the drive begins to warn.",
          "percentunit",
          [gauge("available_spare_ratio", "spare"), gauge("available_spare_threshold_ratio", "warns below"),
           gauge("endurance_group_available_spare_ratio", "endurance group", GROUP),
           gauge("endurance_group_available_spare_threshold_ratio", "endurance group warns below", GROUP)], maximum=1),
    lines("Temperature", "Temperature of the drive, composite or by sensor.", "celsius",
          gauge("temperature_celsius", "", "{{sensor}}"), minimum=None),
    lines("Slowed down by heat", "Share of the time that the drive throttled to stay cool or was above a temperature "
          "threshold. Drives count whole minutes.", "percentunit",
          [growth("thermal_management_seconds", "thermal management", "{{level}}"),
           growth("thermal_throttle_seconds", "throttled"),
           growth("temperature_exceeded_seconds", "above threshold", "{{threshold}}")]),
    lines("Thermal events", "Times that the drive throttled to stay cool, and how much it does so now (0: not at all).", "short",
          [added("thermal_management_transitions", "transitions", "{{level}}"),
           added("thermal_throttle_events", "throttle events"),
           gauge("thermal_throttle_level", "level now")], bars=True),
    states("Warnings of the drive", "What the drive, or one of its endurance groups, warns about.",
           [gauge("critical_warning", "{{warning}}"), gauge("endurance_groups_warning", "a group:", "{{warning}}"),
            gauge("endurance_group_warning", "group", GROUP, "{{warning}}")], texts=ALARM, span=16, height=7),
    lines("Bytes that the drive is good for", "What can be written over the drive's life by its own estimate, and what "
          "was written to the media.", "decbytes",
          [gauge("endurance_estimate_bytes", "estimate"),
           gauge("endurance_group_endurance_estimate_bytes", "estimate of group", GROUP),
           gauge("media_written_bytes_total", "written to the media")]),
]

PLACEMENT = [
    lines("Host against media under placement", "Bytes that hosts wrote and that went to the media while flexible data "
          "placement was on, and media erased.", "Bps",
          [growth("fdp_host_written_bytes", "host", GROUP), growth("fdp_media_written_bytes", "media", GROUP),
           growth("fdp_media_erased_bytes", "erased", GROUP)], "side"),
    states("Use of reclaim unit handles", "Who writes through each handle: no one, the host, or the drive itself.",
           gauge("fdp_handle_use", "handle", "{{handle}}"), span=8, height=7,
           texts={"0": ("unused", "#2B2F36"), "1": ("host", "#5794F2"), "2": ("controller", "#FF9830")}),
    lines("Placement events", "Events in the drive's placement log, among its first 63: reclaim units left unfilled, "
          "invalid identifiers, media moved.", "short", gauge("fdp_events", "", "{{type}}")),
    listing("Configuration", "How the drive divides its media: reclaim groups, handles, the size of a reclaim unit. "
            "Time limit: after it, a unit is left unfilled.",
            [(heading, unit, f"max by (controller, endurance_group, configuration) (ssdpulse_nvme_fdp_{name}{{"
              f"{CONTROLLER}}})", None)
             for heading, unit, name in (("Reclaim unit", "bytes", "reclaim_unit_bytes"),
                                         ("Groups", "short", "reclaim_groups"),
                                         ("Handles", "short", "reclaim_unit_handles"),
                                         ("Identifiers", "short", "placement_identifiers"),
                                         ("Time limit", "s", "reclaim_unit_time_limit_seconds"))], height=5),
]

ERRORS = [
    lines("Errors of the media", "Unrecovered errors, and reads that error correction or the drive's parity had to "
          "save.",
          "short",
          [added("media_errors", "media errors"), added("uncorrectable_reads", "uncorrectable reads", AREA),
           added("soft_ecc_errors", "soft ECC"), added("xor_recoveries", "rebuilt from parity"),
           added("end_to_end_errors", "end to end", "{{result}}"),
           added("error_log_entries", "entries of the error log"),
           added("endurance_group_media_errors", "group", GROUP, "media errors"),
           added("endurance_group_error_log_entries", "group", GROUP, "error log")], bars=True),
    lines("Failing blocks", "Programs and erases of the media that failed, and dies.", "short",
          [added("program_failures", "program", AREA), added("erase_failures", "erase", AREA),
           added("die_failures", "dies"), added("command_timeouts", "timeouts", OPERATION)], bars=True),
    lines("Blocks out of use and in reserve", "Bad blocks, blocks set aside to replace them, and dies by "
          "state.", "short",
          [gauge("bad_blocks", "bad", AREA), gauge("reserved_blocks", "reserve", "{{state}}"),
           gauge("dies", "dies", "{{state}}")]),
    lines("Erases of a block", "Erases of the least, the average and the most erased block.", "short",
          [gauge(f"block_erases_{which}", which, "{{cells}}") for which in ("min", "mean", "max")]),
    lines("Room to move", "Free blocks that garbage collection has left, and blocks before too many are bad. Back pressure: "
          "how much background work slows the host down.", "percentunit",
          [gauge("free_blocks_ratio", "free blocks", AREA), gauge("bad_blocks_normalized_ratio", "good blocks", AREA),
           gauge("back_pressure_ratio", "back pressure")]),
    lines("Media read and erased", "Bytes read from and erased of the media, for the host and for the drive itself.",
          "Bps", [growth("media_read_bytes", "read"), growth("media_erased_bytes", "erased")]),
]

WORK = [
    lines("Commands of hosts", "Commands completed by the drive's own count, trims, and writes that made it read, "
          "modify and write.", "ops",
          [growth("host_commands", "", OPERATION), growth("deallocate_commands", "deallocate"),
           growth("unaligned_ios", "unaligned")]),
    lines("Bytes of hosts", "Bytes read and written by the drive's health page.", "Bps",
          [growth("data_units_read_bytes", "read"), growth("data_units_written_bytes", "write")], "operation"),
    lines("Busy", "Share of the time with commands outstanding, by the drive's own count of whole minutes.",
          "percentunit", growth("controller_busy_seconds", "busy")),
    lines("Work of its own", "What the drive did to its media of its own accord: refreshes and the like.", "ops",
          [growth("refreshes", "refreshes"), growth("background_operations", "", OPERATION)]),
    lines("Power", "Power cycles, losses of power without notice, and what the power-loss protection did.", "short",
          [added("power_cycles", "cycles"), added("unsafe_shutdowns", "unsafe shutdowns"),
           added("incomplete_shutdowns", "incomplete shutdowns"),
           added("power_loss_protection_starts", "protection used"), added("power_state_changes", "power states")],
          bars=True),
    lines("Charge of the power-loss protection", "Charge relative to what it needs; below 100 % a loss of power may lose "
          "data.", "percentunit", gauge("capacitor_health_ratio", "charge")),
    lines("PCI Express link", "Errors and retrainings of the link between host and drive.", "short",
          [added("pcie_correctable_errors", "correctable"), added("pcie_crc_errors", "CRC"),
           added("pcie_link_retrainings", "retrainings")], bars=True),
    lines("Powered on", "Time powered on over the drive's life, in whole hours.", "s",
          gauge("power_on_seconds_total", "powered on")),
]

GROUPS = [
    lines("Bytes of endurance groups", "Bytes that hosts read and wrote, and that went to the media, by endurance "
          "group.",
          "Bps",
          [growth("endurance_group_read_bytes", "read", GROUP), growth("endurance_group_written_bytes", "write", GROUP),
           growth("endurance_group_media_written_bytes", "media", GROUP)]),
    lines("Commands of endurance groups", "Read and write commands completed, by endurance group.", "ops",
          growth("endurance_group_host_commands", GROUP, OPERATION)),
    lines("Capacity of endurance groups", "Capacity, and how much of it belongs to no namespace.", "decbytes",
          [gauge("endurance_group_capacity_bytes", "capacity", GROUP),
           gauge("endurance_group_unallocated_bytes", "unallocated", GROUP)]),
]

VOLUME = [
    lines("Operations of the volume", "Reads and writes completed, by the cloud volume's own count.", "ops",
          growth("volume_operations", "", OPERATION)),
    lines("Bytes of the volume", "Bytes read and written, by the cloud volume's own count.", "Bps",
          growth("volume_bytes", "", OPERATION)),
    lines("Mean time in the volume", "Time spent on reads and writes divided by their number, by the volume's own count.", "s",
          (f"rate(ssdpulse_nvme_volume_io_seconds_total{{{CONTROLLER}}}[$__rate_interval]) / "
           f"(rate(ssdpulse_nvme_volume_operations_total{{{CONTROLLER}}}[$__rate_interval]) > 0)", OPERATION)),
    lines("Above the limits", "Share of the time in which hosts requested more than the volume or the instance allows.",
          "percentunit", growth("volume_limit_exceeded_seconds", "", "{{limit}}")),
    lines("Outstanding in the volume", "Reads and writes outstanding, by the volume's own count.", "short",
          gauge("volume_queue_length", "queue length")),
    lines("Slow requests of the volume", "Reads and writes by the least bound of latency that they did not "
          "exceed.", "ops",
          [growth("volume_reads_by_latency", "read up to", "{{up_to_seconds}} s"),
           growth("volume_writes_by_latency", "write up to", "{{up_to_seconds}} s")]),
]

IDENTITY = [
    listing("Device", "The device as the kernel knows it.",
            [("Size", "decbytes", f"ssdpulse_device_info{{{DEVICE}}} * on (job, instance, device) group_left () "
              f"ssdpulse_device_size_bytes{{{DEVICE}}}", None)], hide=("instance",), order=("device", "model"),
            height=4),
    listing("Drive", "The drive as it identifies itself.",
            [("", "short", f"ssdpulse_nvme_info{{{CONTROLLER}}}", None)], hide=("instance",),
            order=("controller", "model", "serial", "firmware"), height=4),
    listing("Namespaces", "Block devices that are namespaces of the same drive, with their endurance group.",
            [("", "short", f"ssdpulse_nvme_namespace_info{{{CONTROLLER}}}", None)], hide=("instance",),
            order=("device", "controller", "nsid", "endurance_group"), span=12, height=5),
    listing("Arrays on this device", "md and dm devices that this device carries, at any depth.",
            [("", "short", f"ssdpulse_device_member_info{{{DEVICE}}}", None)], hide=("instance",),
            order=("array", "kind", "name", "device"), span=12, height=5),
    listing("Volumes of the host", "Each volume, array and RAM disk of this host, and what lies directly below it: read downwards, this "
            "is the stack from a file system to its drives.",
            [("", "short", f"ssdpulse_volume_member_info{{{HOST}}} * on (job, instance, volume) group_left (kind, name) "
              f"ssdpulse_volume_info{{{HOST}}}", None)], hide=("instance",), order=("volume", "kind", "name", "member"),
            height=6),
]
