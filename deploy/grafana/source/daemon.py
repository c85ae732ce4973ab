# SPDX-License-Identifier: Apache-2.0
"""Dashboard Daemon: how well does ssdpulse itself see, and what does it cost?"""
from house import GREEN, LIMIT_LEVELS, RED, UP, YELLOW, choice, lines, listing, number, page, states
from queries import HOST, RANGE, count_rate, increase, rate

HOST_OF = "{{instance}}"
ANY = ((None, GREEN), (1, RED))
# The server stamps a scrape when it begins; values may be slightly newer.
AGE = (f"clamp_min(timestamp(ssdpulse_snapshot_timestamp_seconds{{{HOST}}}) - "
       f"ssdpulse_snapshot_timestamp_seconds{{{HOST}}}, 0)")
# As in SsdpulseAccountingDrift: what moves within an hour, and by more than a thousandth of the hour's I/Os.
DRIFT, COUNTED = f"ssdpulse_accounting_drift_ios{{{HOST}}}", "job, instance, device, operation"
MOVED = f"max by ({COUNTED}) (max_over_time({DRIFT}[1h]) - min_over_time({DRIFT}[1h]))"
FEW = f'0.001 * 3600 * ({count_rate("ssdpulse_io_latency_seconds", COUNTED, HOST, "1h")})'


def poll(name, text):
    return f"ssdpulse_nvme_{name}{{{HOST}}}", "{{instance}} {{controller}}" + text


NOW = [
    number("Answering", "Daemons that Prometheus could scrape, of those it knows.", "percentunit",
           (f"avg(up{{{HOST}}})", "up"), ((None, RED), (1, GREEN)), span=4),
    number("Sources down", "Sources that deliver no data: the block layer's programs, a drive that does not answer.",
           "short", (f"count(ssdpulse_source_up{{{HOST}}} == 0) or vector(0)", "down"), ANY, span=4),
    number("Lost events", "I/Os that could not be measured, all causes, over the time shown.", "short",
           (f"sum(increase(ssdpulse_lost_events_total{{{HOST}}}[$__range]))", "lost"), ((None, GREEN), (1, YELLOW)),
           span=4, decimals=0),
    number("Drift within an hour", "Largest number of I/Os by which our count drifted from the kernel's own within an "
           "hour. Less than a thousandth of the hour's I/Os counts as none; 0 is right.", "short",
           (f"max(({MOVED} unless {MOVED} <= {FEW}) or 0 * {MOVED})", "drift"), ((None, GREEN), (10, RED)), span=4,
           nothing="n/a"),
    number("Age of the values", "Oldest sample that is being served: scrape time minus the time it was taken. About a "
           "second is normal.", "s",
           (f"max({AGE})", "age"), ((None, GREEN), (5, YELLOW), (30, RED)), span=4,
           decimals=1),
    number("CPU, worst host", "Processor time of the daemon, as a share of one CPU, on the host where it is highest. The "
           "programs in the kernel add to this.", "percentunit",
           (f"max(rate(process_cpu_seconds_total{{{HOST}}}[{RANGE}]))", "CPU"), ((None, GREEN), (0.05, YELLOW)), span=4,
           decimals=2),
]

SEEING = [
    lines("Lost events by cause", "I/Os that could not be measured. completion_missed: its end was not seen. stray: "
          "its beginning was not. recursion: the kernel skipped a run of a program. Others: see ssdpulse-metrics(7).", "reqps",
          (f'{rate("ssdpulse_lost_events_total", "cause", HOST)} > 0', "{{cause}}"), stack="normal",
          nothing="none lost"),
    lines("Drift against the kernel", "Our count of I/Os minus that in the kernel's diskstats, whenever both are idle; 0 "
          "is right.", "short",
          (f"sum by (instance, device, operation) (ssdpulse_accounting_drift_ios{{{HOST}}}) != 0",
           "{{instance}} {{device}} {{operation}}"), minimum=None, nothing="no drift"),
    lines("Drift of drives' host counters", "The drive's own count of written bytes minus what the block layer wrote. "
          "Only what neither rounding nor other commands explain.", "bytes",
          [(f"ssdpulse_nvme_host_written_drift_bytes{{{HOST}}} and "
            f"(ssdpulse_nvme_host_written_drift_lower_bytes{{{HOST}}}"
            f" > 0 or ssdpulse_nvme_host_written_drift_upper_bytes{{{HOST}}} < 0)", "{{instance}} {{controller}}")],
          minimum=None, nothing="no drift"),
    lines("Devices of which no request is seen", "Nothing of them is measured, although they do I/O or may do so: their "
          "number. The doctor names them.", "short", (f"sum by (instance) (ssdpulse_device_unseen{{{HOST}}})", HOST_OF), span=6),
    lines("Beyond the limits", "What is only counted, because there is more than the daemon has room for. Devices that appeared after "
          "its start, file systems, changes of settings that wait, lines that are not in the log.",
          "short", [(f"ssdpulse_devices_left_out{{{HOST}}}", "{{instance}} devices"),
                    (f"ssdpulse_filesystems_unnamed{{{HOST}}}", "{{instance}} file systems"),
                    (f"ssdpulse_setting_changes_waiting{{{HOST}}}", "{{instance}} changes"),
                    (increase("ssdpulse_log_lines_suppressed_total", "instance", HOST, "$__interval"),
                     "{{instance}} lines of the log")], span=6, nothing="nothing"),
    states("Sources", "Whether each source delivers data; with a controller: whether that drive answers.",
           (f"ssdpulse_source_up{{{HOST}}}", "{{instance}} {{source}} {{controller}}"), texts=UP, span=6, height=7),
    lines("Failed attempts of sources", "Failed attempts of a source to read something, by kind.", "ops",
          (f'{rate("ssdpulse_source_errors_total", "source, kind", HOST)} > 0', "{{source}}: {{kind}}"), span=6,
          nothing="none failed"),
    lines("Requests without a disk", "NVMe admin commands, SCSI probing: they are in no other series.", "reqps",
          (rate("ssdpulse_io_diskless_requests_total", "instance", HOST), HOST_OF), span=6),
]

COST = [
    lines("CPU of the daemon", "Processor time of the daemon, as a share of one CPU.", "percentunit",
          (rate("process_cpu_seconds_total", "instance", HOST), HOST_OF)),
    lines("Share of the host's CPUs, estimated", "Time of the BPF programs, as a share of the time of all CPUs, and the limit "
          "(limits.cpu). Their runs times the cost of one on the host.", "percentunit",
          [(f"ssdpulse_estimated_bpf_cpu_ratio{{{HOST}}}", "{{instance}}"),
           (f"ssdpulse_cpu_limit_ratio{{{HOST}}}", "{{instance}} limit")], nothing="not known"),
    states("What is turned off", "What the daemon does not measure, to stay below limits.cpu.",
           (f"ssdpulse_cpu_limit_level{{{HOST}}}", HOST_OF), texts=LIMIT_LEVELS, span=8, height=7),
    lines("Cost in the kernel per run", "Mean time of a run of each BPF program. Only while "
          "kernel.bpf_stats_enabled is on.",
          "s", (f'{rate("ssdpulse_bpf_run_seconds_total", "program", HOST)}\n/\n'
                f'({rate("ssdpulse_bpf_runs_total", "program", HOST)} > 0)', "{{program}}"), nothing="kernel.bpf_stats_enabled is off"),
    lines("Cost in the kernel", "Processor time of the BPF programs, as a share of one CPU. Only while "
          "kernel.bpf_stats_enabled is on.", "percentunit",
          (rate("ssdpulse_bpf_run_seconds_total", "program", HOST), "{{program}}"), stack="normal",
          nothing="kernel.bpf_stats_enabled is off"),
    lines("Memory of the daemon", "Resident memory, and address space.", "bytes",
          [(f"process_resident_memory_bytes{{{HOST}}}", "{{instance}} resident"),
           (f"process_virtual_memory_bytes{{{HOST}}}", "{{instance}} virtual")], log=10),
    lines("Memory in the kernel", "Memory of the BPF maps, by what they hold; fixed at startup.", "bytes",
          (f"max by (use) (ssdpulse_kernel_memory_bytes{{{HOST}}})", "{{use}}"), stack="normal"),
    lines("Descriptors and threads", "Open file descriptors as a share of those allowed, and threads.", "short",
          [(f"process_open_fds{{{HOST}}}", "{{instance}} open"), (f"process_max_fds{{{HOST}}}", "{{instance}} allowed"),
           (f"process_threads{{{HOST}}}", "{{instance}} threads")], log=10),
]

PUNCTUAL = [
    lines("Age of the values", "Time of the scrape minus the time that its values were taken.", "s",
          (AGE, HOST_OF)),
    lines("Late samplings", "Samplings that began more than half an interval late.", "short",
          (increase("ssdpulse_missed_ticks_total", "instance", HOST, "$__interval"), HOST_OF), bars=True),
    lines("Duration of a scrape", "How long Prometheus took to scrape the daemon.", "s",
          (f"scrape_duration_seconds{{{HOST}}}", HOST_OF)),
    lines("History on the disk", "Size of the database of one row per drive and minute.", "bytes",
          (f"ssdpulse_history_size_bytes{{{HOST}}}", HOST_OF)),
    lines("Rows of history", "Rows written, and rows deleted: beyond retention or size, and minutes that became hours.",
          "cps", [(rate("ssdpulse_history_rows_total", "instance, fate", HOST), "{{instance}} {{fate}}"),
                  (rate("ssdpulse_history_rows_deleted_total", "instance", HOST), "{{instance}} deleted")]),
    lines("Running since", "Time since the daemon started.", "s",
          (f"time() - process_start_time_seconds{{{HOST}}}", HOST_OF)),
]

POLLS = [
    lines("Age of the drives' logs", "Time since the logs of each drive were last read successfully.", "s",
          (f"time() - ssdpulse_nvme_last_poll_timestamp_seconds{{{HOST}}}", "{{instance}} {{controller}}")),
    lines("Duration of a reading", "How long the drive took for the commands of the last reading of its logs.", "s",
          poll("last_poll_duration_seconds", ""), log=10),
    lines("Interval of readings", "Time between two readings of a drive's logs; longer than configured where reading "
          "hurts.", "s", poll("poll_interval_seconds", "")),
    lines("Readings", "Readings of a drive's logs that were started.", "ops",
          (f"rate(ssdpulse_nvme_polls_total{{{HOST}}}[{RANGE}])", "{{instance}} {{controller}}")),
    lines("What reading does to latency", "99th percentile of reads and writes within 50 ms of a log read, divided by "
          "that of the others. 1: no effect.", "x", poll("log_read_latency_effect_ratio", ""), nothing="not known yet"),
    listing("Refused pages", "Log pages that a drive refused, or that are something other than their numbers say.",
            [("", "short", f"ssdpulse_nvme_refused_page_info{{{HOST}}}", None)],
            order=("instance", "controller", "page", "reason"), span=8, height=7, nothing="none refused"),
]

WHO = [
    listing("Builds and modes", "Version of each daemon, and the latency mode it runs in.",
            [("", "short", f"ssdpulse_build_info{{{HOST}}} * on (job, instance) group_left (mode) "
              f"ssdpulse_latency_mode_info{{{HOST}}}", None)],
            order=("instance", "version", "revision", "mode"), span=10, height=8),
    listing("What the kernels offer", "What each kernel's type information offers, and what was decided from it.",
            [("", "short", f"ssdpulse_kernel_feature_info{{{HOST}}}", None)],
            order=("instance", "feature", "decision"), span=14, height=8),
]


def build():
    variables = [
        choice("job", "Job", "label_values(ssdpulse_build_info, job)", all_value=".*"),
        choice("instance", "Host", 'label_values(ssdpulse_build_info{job=~"$job"}, instance)', all_value=".*"),
    ]
    rows = [
        ("Now", NOW),
        ("How well it sees", SEEING),
        ("What it costs", COST),
        ("Punctuality and history", PUNCTUAL),
        ("Reading the drives", POLLS),
        ("Builds, modes, kernels", WHO),
    ]
    return page("ssdpulse: Daemon", "ssdpulse-daemon",
                "How well ssdpulse itself sees (losses, drift, drives that do not answer), and what it costs.",
                variables, rows, refresh="1m")
