# SPDX-License-Identifier: Apache-2.0
"""Dashboard Device: how slow is this drive, why, and how worn is it? The drive's own pages are in drive.py."""
import drive
from house import GREEN, RED, YELLOW, Episode, choice, latency_heatmap, lines, listing, number, one_of, page, states
from queries import CONTROLLER, DEVICE, HOST, RANGE, count_rate, increase, mean, quantile, rate, share, sum_rate

DEVICE_TIME = "ssdpulse_io_device_latency_seconds"
QUEUE_TIME = "ssdpulse_io_queue_latency_seconds"
TOTAL_TIME = "ssdpulse_io_latency_seconds"
BY_OPERATION = "{{operation}}"


def of(operation):
    return f'{DEVICE},operation="{operation}"'


def active(metric, by):
    """The states that hold now; where the value is 0 there is no series."""
    return f"max by ({by}) ({metric}{{{DEVICE}}}) > 0"


NOW = [
    listing("Mounted from it", "What is mounted from this device, also through volumes, and whether with online discard.",
            [("", "short", f"max by (mountpoint, device, fstype, discard) (ssdpulse_filesystem_info{{{DEVICE}}})", None)],
            order=("mountpoint", "device", "fstype", "discard"), height=4, nothing="nothing known is mounted from it"),
    number("Slow now, because of", "Cause of the latency spike that is under way. It may change until the spike "
           "has ended and the drive was polled.", "short",
           (active("ssdpulse_latency_spike_active", "operation, cause"), "{{operation}}: {{cause}}"),
           ((None, GREEN), (1, RED)), names=True, texts={"1": ("now", RED)}, nothing="no spike", span=4),
    number("Discarding now", "Who sent the burst of discards that is under way.", "short",
           (active("ssdpulse_discard_burst_active", "trigger"), "{{trigger}}"), ((None, GREEN), (1, RED)),
           names=True, texts={"1": ("now", RED)}, nothing="no burst", span=4),
    number("Read p99", "99th percentile of total read latency: allocation of the request to its completion.", "s",
           (quantile(0.99, TOTAL_TIME, "device", of("read")), "read"), span=3),
    number("Write p99", "99th percentile of total write latency: allocation of the request to its completion.", "s",
           (quantile(0.99, TOTAL_TIME, "device", of("write")), "write"), span=3),
    number("Commit p99", "99th percentile of what a caller of fsync waits for: flush sequences as a whole, and FUA "
           "writes.", "s", (quantile(0.99, TOTAL_TIME, "device", of("commit")), "commit"), span=3),
    number("WAF, 1 h", "Bytes written to the media per byte that the host wrote, over the last hour.", "none",
           (f'max(ssdpulse_write_amplification_ratio{{{CONTROLLER},window="1h"}})', "WAF"),
           ((None, GREEN), (2, YELLOW), (4, RED)), nothing="n/a", span=3, decimals=2),
    number("Life left", "Time until the rated endurance is used up, at the current rate.", "s",
           (f"min(ssdpulse_nvme_life_remaining_seconds{{{CONTROLLER}}})", "left"),
           ((None, RED), (90 * 86400, YELLOW), (365 * 86400, GREEN)), nothing="n/a", span=4),
]

LATENCY = [
    latency_heatmap("Read latency in the device", "How many reads took how long, from issue to the driver until "
                    "completion. Needs native histograms; without them see the last row.",
                    (f'sum(rate({DEVICE_TIME}{{{of("read")}}}[{RANGE}]))', "read")),
    latency_heatmap("Write latency in the device", "How many writes took how long, from issue to the driver until "
                    "completion. Needs native histograms; without them see the last row.",
                    (f'sum(rate({DEVICE_TIME}{{{of("write")}}}[{RANGE}]))', "write")),
    *(lines(f"p{percent} by operation", f"Total latency that {percent} % of the requests stay below: allocation of the "
            "request to its completion, queueing included.", "s",
            (quantile(level, TOTAL_TIME, "operation"), BY_OPERATION), "operation", log=10)
      for percent, level in (("50", 0.5), ("99", 0.99), ("99.9", 0.999))),
]

COMMIT = "A commit is what a caller of fsync waits for: a whole flush sequence, or a FUA write."
COMMITS = [
    latency_heatmap("Commit latency", f"How many commits took how long. {COMMIT} Needs native histograms.",
                    (f'sum(rate({TOTAL_TIME}{{{of("commit")}}}[{RANGE}]))', "commit")),
    lines("Commit latency: quantiles", f"Half, 99 % and 99.9 % of the commits take no longer. {COMMIT}", "s",
          [(quantile(level, TOTAL_TIME, "operation", of("commit")), name)
           for name, level in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999))], log=10, span=12, height=8,
          nothing="no commits"),
    lines("Commits and flushes", "Commits, and the flush requests that the drive got for them. Commits at a time share "
          "one, a FUA write needs none.", "reqps",
          [(count_rate(TOTAL_TIME, "operation", of(operation)), BY_OPERATION) for operation in ("commit", "flush")],
          "operation", span=12, nothing="no commits"),
    lines("Waiting for commits", "Time that callers waited for commits, in seconds per second: 2 means that two are "
          "always waiting.", "none", (sum_rate(TOTAL_TIME, "operation", of("commit")), BY_OPERATION), "operation",
          span=12, nothing="no commits"),
]

DURING = ("In flight on the same drive at some time during the request: neither (none), a discard, a flush, or both.")
INTERFERENCE = [
    *(lines(f"{operation.capitalize()}s, with and without interference", f"Device latency at the chosen quantile, "
            f"by what else was in flight. {DURING}", "s",
            (quantile("$quantile", DEVICE_TIME, "during", of(operation)), "{{during}}"), "during", log=10, span=9)
      for operation in ("read", "write")),
    lines("How much interference costs", "Device latency of requests that overlap a discard or a flush, as a multiple of "
          "that of undisturbed ones. 1: it costs nothing. Requests that overlap both are "
          "left out.", "x",
          [(f'({quantile("$quantile", DEVICE_TIME, "operation", f"{DEVICE},during={chr(34)}{during}{chr(34)}")})'
            f'\n/\n({quantile("$quantile", DEVICE_TIME, "operation", f"{DEVICE},during={chr(34)}none{chr(34)}")})',
            during + ", {{operation}}") for during in ("discard", "flush")], "interference", span=6,
          nothing="nothing overlapped a discard or a flush"),
    *(lines(f"{operation.capitalize()}s by what else was in flight", f"Share of the requests. {DURING}", "percentunit",
            (count_rate(DEVICE_TIME, "during", of(operation)), "{{during}}"), "during", stack="percent", span=6)
      for operation in ("read", "write")),
    lines("Discards by trigger", "Bytes discarded in bursts, by who sent them.", "Bps",
          (f'{rate("ssdpulse_discard_burst_bytes_total", "trigger")} > 0', "{{trigger}}"), "trigger", stack="normal",
          span=6, nothing="no discards"),
    lines("Time in bursts of discards", "Share of the time in which a burst lasted, by who sent it.", "percentunit",
          (f'{rate("ssdpulse_discard_burst_seconds_total", "trigger")} > 0', "{{trigger}}"), "trigger", span=6,
          nothing="no discards"),
]

SPIKES = [
    states("Latency spikes by cause", "When reads, writes, flushes or commits were slower than the drive's own normal, and why. The "
           "cause may change until the spike has ended and the drive was polled.",
           (f"max by (cause, operation) (ssdpulse_latency_spike_active{{{DEVICE}}}) and on (cause, operation) "
            f"(max by (cause, operation) (max_over_time(ssdpulse_latency_spike_active{{{DEVICE}}}[$__range])) > 0)",
            "{{cause}} {{operation}}"), "cause", height=7, nothing="no spikes"),
    lines("Slow time by cause", "How long latency spikes lasted, counted when they have ended and their cause is "
          "final.", "s",
          (f'{increase("ssdpulse_latency_spike_seconds_total", "cause", window="$__interval")} > 0', "{{cause}}"),
          "cause", bars=True, stack="normal", span=6, nothing="no spike has ended"),
    lines("Spikes by cause", "Latency spikes that ended, by cause.", "short",
          (f'{increase("ssdpulse_latency_spikes_total", "cause", window="$__interval")} > 0', "{{cause}}"), "cause",
          bars=True, stack="normal", span=6, nothing="no spike has ended"),
    lines("Waited beyond usual, by cause", "How long all I/Os together waited beyond what is usual, counted when the "
          "cause of their spike is final. Outside spikes (unknown): single slow I/Os. Adds up over any "
          "time.", "s",
          (f'{increase("ssdpulse_latency_excess_seconds_total", "operation, cause", window="$__interval")} > 0',
           "{{operation}}: {{cause}}"), "cause", bars=True, stack="normal", span=24, nothing="nothing waited"),
]

QUEUE = [
    lines("In the queue: p99", "99th percentile of the time from a request's allocation to its first issue to the "
          "driver: scheduler and "
          "dispatch.", "s", (quantile(0.99, QUEUE_TIME, "operation"), BY_OPERATION), "operation", log=10),
    lines("In the device: p99", "99th percentile of the time from issue to the driver until completion.", "s",
          (quantile(0.99, DEVICE_TIME, "operation"), BY_OPERATION), "operation", log=10),
    lines("Against its siblings", "Median time in the device, as a multiple of what like drives take at equal load, with "
          "its bounds: members of one array, or drives of one model. 1.5: red if the lower bound stays above it.", "x",
          [(f"max by (operation, group) (ssdpulse_device_latency_of_siblings_{name}ratio{{{DEVICE}}})",
            f"{{{{operation}}}}, {{{{group}}}}{what}")
           for name, what in (("", ""), ("lower_", ": at least"), ("upper_", ": at most"))], "operation",
          nothing="no like drives under the same load"),
    lines("Where the mean request waits", "Mean time of reads and writes in the queue and in the device, one on top of "
          "the other.", "s",
          [(mean(metric, "device", f'{DEVICE},operation=~"read|write"'), side)
           for metric, side in ((QUEUE_TIME, "queue"), (DEVICE_TIME, "device"))], "side", stack="normal"),
    lines("In flight", "Requests issued to the driver and not yet completed, at the time of the scrape.", "short",
          (f"sum by (operation) (ssdpulse_io_in_flight{{{DEVICE}}})", BY_OPERATION), "operation"),
    lines("Depth", "Requests in flight, sampled once a second: their 50th and 99th percentiles. Known to a power of two.",
          "short", [(quantile(q, "ssdpulse_device_depth_ios", "device"), f"p{100 * q:.0f}") for q in (0.5, 0.99)], "quantile", log=2),
    lines("Time at full depth", "Share of the time in which a request waited because all tags of the device were taken.",
          "percentunit", (rate("ssdpulse_io_queue_full_seconds_total", "operation"), BY_OPERATION), "operation"),
    lines("Requeues, failovers, never issued", "Requests that the driver gave back, or that moved to another path. "
          "Never issued: ended without reaching the driver (parents of flush sequences).", "reqps",
          [(f'{rate("ssdpulse_io_requeues_total", "reason")} > 0', "requeued: {{reason}}"),
           (rate("ssdpulse_io_unissued_completions_total", "operation"), "{{operation}} never issued")]),
]

WITH_DATA = f'{DEVICE},operation!="flush"'
LOAD = [
    lines("Throughput", "Bytes completed.", "Bps", (rate("ssdpulse_io_bytes_total", "operation"), BY_OPERATION),
          "operation"),
    lines("Requests", "Requests completed.", "reqps",
          (count_rate(TOTAL_TIME, "operation", f'{DEVICE},operation!="commit"'), BY_OPERATION), "operation"),
    lines("Size of requests", "Mean size as the drive received them, after merging and splitting.", "decbytes",
          (mean("ssdpulse_io_size_bytes", "operation", WITH_DATA), BY_OPERATION), "operation", log=10),
    lines("Large requests: p99 of size", "99th percentile of the size. Sizes are known to a power of two.", "decbytes",
          (quantile(0.99, "ssdpulse_io_size_bytes", "operation", WITH_DATA), BY_OPERATION), "operation", log=10),
    lines("Sequential share", "Share of the bytes that were issued exactly where an earlier request had ended, also "
          "among interleaved streams.", "percentunit",
          (share(("ssdpulse_io_sequential_bytes_total", "ssdpulse_io_bytes_total"), "operation",
                 f'{DEVICE},operation=~"read|write"'), BY_OPERATION), "operation", maximum=1),
    lines("Errors", "Requests that completed with an error, by kind.", "reqps",
          (f'{rate("ssdpulse_io_errors_total", "operation, error")} > 0', "{{operation}}: {{error}}"),
          nothing="no errors"),
]

ABOVE = [
    states("Held up, and by what", "What holds up I/O above the drives.",
           (f"max by (cause) (ssdpulse_host_wait_active{{{HOST}}}) > 0", "{{cause}}"), texts={"1": ("held up", RED)},
           nothing="nothing is held up"),
    lines("Waiting for I/O", "Share of the time in which tasks of the host waited for I/O. full: all that were not "
          "idle.", "percentunit", (rate("ssdpulse_host_io_pressure_seconds_total", "kind", HOST), "{{kind}}"), "kind", span=6,
          maximum=1),
    lines("Held up, by cause", "Share of the time in which something above the drives held up I/O, and how often it began.",
          "percentunit", [(rate("ssdpulse_host_wait_seconds_total", "cause", HOST), "{{cause}}"),
                          (increase("ssdpulse_host_waits_total", "cause", HOST), "{{cause}}: times")], "cause", span=6),
    lines("Busy", "Share of the time in which anything was in flight, as iostat shows it.", "percentunit",
          (rate("ssdpulse_device_busy_seconds_total", "device"), "{{device}}"), "device", maximum=1),
    lines("Waiting for I/O, by tenant", "Share of the time in which a task of the tenant waited for I/O.", "percentunit",
          (rate("ssdpulse_tenant_io_pressure_seconds_total", "tenant", HOST), "{{tenant}}"), "tenant", maximum=1),
    lines("Room", "Share of each file system that is left.", "percentunit",
          (f"min by (mountpoint) (ssdpulse_filesystem_available_bytes{{{HOST}}} / "
           f"ssdpulse_filesystem_size_bytes{{{HOST}}})", "{{mountpoint}}"), "mountpoint", maximum=1),
    lines("Files left", "Share of each file system's inodes that are left.", "percentunit",
          (f"min by (mountpoint) (ssdpulse_filesystem_available_inodes{{{HOST}}} / ssdpulse_filesystem_inodes{{{HOST}}})",
           "{{mountpoint}}"), "mountpoint", maximum=1),
    lines("Dirty pages", "Dirty or being written back, and what is allowed.", "bytes",
          [(f"sum(ssdpulse_host_dirty_bytes{{{HOST}}})", "dirty"),
           (f"sum(ssdpulse_host_dirty_threshold_bytes{{{HOST}}})", "allowed")]),
    lines("Checks and rebuilds", "How far they have come.", "percentunit",
          (f"max by (array, action) (ssdpulse_array_resync_progress_ratio{{{HOST}}})", "{{array}}: {{action}}"), "array",
          maximum=1, nothing="none runs"),
]

WRITTEN = f'{DEVICE},operation="write"'
WRITES = [
    lines("Written, by hint", "Bytes written under each lifetime hint; not_set: none was declared, unknown: this kernel "
          "does not "
          "tell.", "Bps", (rate("ssdpulse_write_hint_bytes_total", "hint"), "{{hint}}"), "hint", stack="normal"),
    lines("Requests by hint", "Writes under each lifetime hint.", "reqps",
          (rate("ssdpulse_write_hint_ios_total", "hint"), "{{hint}}"), "hint"),
    lines("Latency by hint: p99", "99th percentile of device latency of writes under each lifetime hint.", "s",
          (quantile(0.99, "ssdpulse_write_hint_latency_seconds", "hint"), "{{hint}}"), "hint", log=10),
    lines("Written, by stream", "Bytes written with a write stream; streams separate data inside the drive.", "Bps",
          (rate("ssdpulse_write_stream_bytes_total", "stream"), "stream {{stream}}"), stack="normal",
          nothing="no streams"),
    lines("Written, by class", "Bytes written, by what they are to the host: journal, metadata, page cache writeback, "
          "direct I/O, swap; other: unknown.", "Bps",
          (rate("ssdpulse_write_class_bytes_total", "class"), "{{class}}"), "class", stack="normal"),
    lines("Misaligned and small", "Share of the written bytes that begin or end off the drive's preferred granularity, "
          "or are smaller. The drive must read, modify and write.", "percentunit",
          [(share((f"ssdpulse_write_{kind}_bytes_total", "ssdpulse_io_bytes_total"), "device")
            .replace(f"ssdpulse_io_bytes_total{{{DEVICE}", f"ssdpulse_io_bytes_total{{{WRITTEN}"), kind)
           for kind in ("misaligned", "small")], maximum=1),
    lines("Write ladder", "Bytes written on each rung of the way to the media, of the whole host: what applications write, what file systems send, what "
          "reaches drives with all that volumes add, what NVMe drives say they received, and what they wrote to their media.", "Bps",
          (rate("ssdpulse_write_ladder_bytes_total", "rung", HOST), "{{rung}}"), "rung", span=24),
    listing("Where hints end", "What this kernel does with a lifetime hint for this device, and whether the drive can "
            "tell streams apart.",
            [("", "short", f"max by (device, kernel, drive) (ssdpulse_write_hint_path_info{{{DEVICE}}})", None)],
            order=("device", "kernel", "drive"), height=4),
]

BY_TENANT, BY_PATH = "{{tenant}}", "{{path}} {{access}}"
READ_OR_WRITE = f'{DEVICE},operation=~"read|write"'
MOST = 10  # tenants that a panel shows


def tenants(what, where=READ_OR_WRITE, window=RANGE):
    return rate(f"ssdpulse_tenant_{what}_total", "tenant", where, window)


def most(expression):
    return f"topk({MOST}, {expression} > 0)"


def per_io(of_what, by, where, window=RANGE):
    """Mean device time of one I/O, by tenant or by path."""
    return share((f"ssdpulse_{of_what}_device_seconds_total", f"ssdpulse_{of_what}_ios_total"), by, where, window)


NOBODY = "nothing was counted"
TENANTS = [
    lines("Read and written, by tenant", f"Bytes of reads and writes of the {MOST} tenants with most of them. /: what the kernel "
          "charges to no one, such as a journal. other: those without a series of their own.", "Bps",
          (most(tenants("bytes")), BY_TENANT), stack="normal", nothing=NOBODY),
    lines("Time in the device, by tenant", "Time that requests spent in the device, in seconds per second: how much of the "
          "drive each tenant takes.", "none", (most(tenants("device_seconds")), BY_TENANT), stack="normal", nothing=NOBODY),
    lines("Mean device latency, by tenant", "Mean time of a read or write in the device, of the tenants that take most of its time.",
          "s", (f'({per_io("tenant", "tenant", READ_OR_WRITE)})\nand on (tenant)\n{most(tenants("device_seconds"))}', BY_TENANT),
          log=10, nothing=NOBODY),
    lines("Who is slowed", "Mean device latency of each tenant's reads and writes, as a multiple of its own over the last day. 1: as "
          "usual.", "x",
          (f'topk({MOST}, ({per_io("tenant", "tenant", READ_OR_WRITE)})\n/\n({per_io("tenant", "tenant", READ_OR_WRITE, "1d")}))',
           BY_TENANT), log=10, nothing=NOBODY),
    lines("Requests, by tenant", "Reads and writes completed.", "reqps", (most(tenants("ios")), BY_TENANT), nothing=NOBODY),
    lines("Commits and discards, by tenant", "Commits (fsync), and bytes discarded per second in MiB.", "none",
          [(most(tenants("commits", DEVICE)), "{{tenant}}: commits"),
           (f'{most(tenants("bytes", of("discard")))} / 1048576', "{{tenant}}: MiB discarded")], nothing=NOBODY),
    listing("Tenants", "Whose I/O was seen on this host, and its directory.",
            [("", "short", f"max by (tenant, kind, cgroup) (ssdpulse_tenant_info{{{HOST}}})", None)],
            order=("tenant", "kind", "cgroup"), span=14),
    listing("Tenants that are gone", "I/O of tenants whose series have ended.",
            [(heading, unit, f"sum by (operation) (ssdpulse_tenant_departed_{what}{{{DEVICE}}})", None)
             for heading, unit, what in (("I/Os", "short", "ios"), ("Bytes", "decbytes", "bytes"),
                                         ("Device time", "s", "device_seconds"))], order=("operation",), span=10,
            nothing="none is gone"),
]

PATHS = [
    lines("Read and written, by path", "Bytes of reads and writes, by how they entered the kernel. raw: of the device itself, "
          "without a file system.", "Bps",
          (f'{rate("ssdpulse_path_bytes_total", "path, access", READ_OR_WRITE)} > 0', BY_PATH), stack="normal", nothing=NOBODY),
    lines("Time in the device, by path", "Time that requests spent in the device, in seconds per second.", "none",
          (f'{rate("ssdpulse_path_device_seconds_total", "path, access", READ_OR_WRITE)} > 0', BY_PATH), stack="normal",
          nothing=NOBODY),
    *(lines(f"Mean device latency of {operation}s, by path", f"Mean time of a {operation} in the device.", "s",
            (per_io("path", "path, access", of(operation)), BY_PATH), log=10, span=4, nothing=NOBODY)
      for operation in ("read", "write")),
]

CLASSIC = [
    latency_heatmap(f"{operation.capitalize()} latency, classic buckets", "How many requests took how long in the "
                    "device, by powers of two. For servers that do not take native histograms.",
                    (f'sum by (le) (rate({DEVICE_TIME}_bucket{{{of(operation)}}}[{RANGE}]))', "{{le}}"), classic=True)
    for operation in ("read", "write")
]

EPISODES = [
    Episode("Latency spikes", f"max by (operation, cause) (ssdpulse_latency_spike_active{{{DEVICE}}}) > 0", "#FF9830",
            "{{operation}} slow: {{cause}}", "A latency spike; its cause may change until it is over.",
            "operation,cause"),
    Episode("Discard bursts", f"max by (trigger) (ssdpulse_discard_burst_active{{{DEVICE}}} + "
            f"increase(ssdpulse_discard_bursts_total{{{DEVICE}}}[{RANGE}])) > 0", RED,
            "discards: {{trigger}}", "A burst of discards, by who sent it.", "trigger"),
]

VOLUMES = [
    lines("Volumes: latency", "How long bios of volumes (LVM, LUKS, md) take, from their submission to their end.", "s",
          (quantile("$quantile", "ssdpulse_volume_latency_seconds", "volume, operation", HOST), "{{volume}} {{operation}}"),
          log=10, span=12, nothing="no volumes"),
    lines("Volumes and what lies below: mean", "Mean time of bios of volumes, and of the disks and partitions directly below "
          "them. The difference is spent in the volume itself.", "s",
          [(mean("ssdpulse_volume_latency_seconds", "volume, operation", HOST), "{{volume}} {{operation}}"),
           (mean("ssdpulse_volume_member_latency_seconds", "member, operation", HOST), "{{member}} {{operation}}")],
          log=10, span=12, nothing="no volumes"),
    lines("Volumes: throughput", "Bytes submitted to volumes, and to the disks and partitions directly below them.", "Bps",
          [(rate("ssdpulse_volume_bytes_total", "volume, operation", HOST), "{{volume}} {{operation}}"),
           (rate("ssdpulse_volume_member_bytes_total", "member, operation", HOST), "{{member}} {{operation}}")], span=6,
          nothing="no volumes"),
    lines("Volumes: I/Os", "Bios submitted to volumes, in a second.", "iops",
          (rate("ssdpulse_volume_ios_total", "volume, operation", HOST), "{{volume}} {{operation}}"), span=6,
          nothing="no volumes"),
    lines("Volumes: errors, and without an end", "Bios that ended with an error, and those that have not ended: also those that a "
          "suspended volume holds.", "short",
          [(increase("ssdpulse_volume_errors_total", "volume, operation", HOST), "{{volume}} {{operation}}: errors"),
           (f"sum by (volume) (ssdpulse_volume_in_flight{{{HOST}}})", "{{volume}}: in flight")], span=6,
          nothing="no volumes"),
    lines("Volumes: what is not measured", "Bios of volumes, and of what lies directly below them, without a latency; bytes that the "
          "kernel counts otherwise, and volumes for which there is no room.", "short",
          [(increase("ssdpulse_volume_losses_total", "volume, cause", HOST), "{{volume}}: {{cause}}"),
           (increase("ssdpulse_volume_member_losses_total", "member, cause", HOST), "{{member}}: {{cause}}"),
           (f"ssdpulse_volume_accounting_drift_bytes{{{HOST}}}", "{{volume}} {{operation}}: drift in bytes"),
           (f"ssdpulse_volumes_left_out{{{HOST}}}", "left out")], span=6, minimum=None, nothing="no volumes"),
]


def build():
    known = f"ssdpulse_device_info{{{HOST}}}"
    variables = [
        choice("job", "Job", "label_values(ssdpulse_build_info, job)", several=False),
        choice("instance", "Host", 'label_values(ssdpulse_build_info{job=~"$job"}, instance)', several=False),
        choice("model", "Model", f"label_values({known}, model)", all_value=".*"),
        choice("device", "Device", f'label_values({known[:-1]},model=~"$model"}}, device)', several=False),
        choice("controller", "Controller", f"label_values(ssdpulse_nvme_namespace_info{{{DEVICE}}}, controller)",
               several=False, hidden=True),
        one_of("quantile", "Quantile", ["0.5", "0.9", "0.99", "0.999"], "0.99"),
        one_of("window", "WAF window", ["5m", "1h", "24h", "7d", "lifetime"], "1h"),
    ]
    rows = [
        ("Now", NOW),
        ("Latency", LATENCY),
        ("Commits: what fsync waits for", COMMITS),
        ("Interference: what discards and flushes cost", INTERFERENCE),
        ("Spikes and their causes", SPIKES),
        ("Tenants: whose I/O it is", TENANTS),
        ("Paths: how it enters the kernel", PATHS),
        ("Queue against device", QUEUE),
        ("Above the drives", ABOVE),
        ("Volumes: LVM, LUKS, md", VOLUMES, "folded"),
        ("Load", LOAD),
        ("Write amplification", drive.AMPLIFICATION),
        ("Write amplification, modelled", drive.MODELLED, "folded"),
        ("What is written", WRITES),
        ("Wear and temperature", drive.WEAR),
        ("Data placement (FDP)", drive.PLACEMENT, "folded"),
        ("The drive's own log: errors and media", drive.ERRORS, "folded"),
        ("The drive's own log: work, power and link", drive.WORK, "folded"),
        ("Endurance groups", drive.GROUPS, "folded"),
        ("Cloud volume", drive.VOLUME, "folded"),
        ("Identity", drive.IDENTITY, "folded"),
        ("Latency without native histograms", CLASSIC, "folded"),
    ]
    return page("ssdpulse: Device", "ssdpulse-device",
                "How slow is this drive, why, and how is it worn? Red bands are bursts of discards, orange ones "
                "latency spikes.",
                variables, rows, EPISODES, [title for title, *_ in rows[1:9]] + ["Load"])
