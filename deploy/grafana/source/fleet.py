# SPDX-License-Identifier: Apache-2.0
"""Dashboard Fleet: which of all drives need attention, and what has changed?"""
from house import BLUE, GREEN, RED, YELLOW, choice, lines, listing, number, one_of, page, worst
from queries import DEVICE, HOST, increase, of_drive, of_model, per_device, quantile, rate

LATENCY = "ssdpulse_io_latency_seconds"
# No latency is good or bad for every drive: red marks what is slow for this one, see "Slow for" and "against before".
PLAIN = ((None, BLUE),)
EACH = "job, instance, device"
DRIVE = "job, instance, controller"
WAF = ((None, GREEN), (2, YELLOW), (4, RED))
LIFE = ((None, RED), (90 * 86400, YELLOW), (365 * 86400, GREEN))
MORE = ((None, GREEN), (1.5, YELLOW), (3, RED))
USED = ((None, GREEN), (0.8, YELLOW), (0.95, RED))

DETAIL = "/d/ssdpulse-device?${datasource:queryparam}&${__url_time_range}"
TO_DEVICE = {"Device": {
    "title": "This device",
    "url": DETAIL + "&var-job=${__data.fields.Job}&var-instance=${__data.fields.Host}&var-device=${__value.text}",
}}
DEVICES = (("instance", "Host"), ("device", "Device"))
DRIVES = (("instance", "Host"), ("controller", "Drive"))


def tail(operation):
    """Only devices that had such I/O: the comparison drops those whose quantile is not a number."""
    return of_model(f"""({quantile(0.99, LATENCY, EACH, f'{DEVICE},operation="{operation}"', "$__range")})\n>= 0""")


def waf(window, bound=""):
    return of_drive(
        f'max by ({DRIVE}) (ssdpulse_write_amplification_{bound}ratio{{{HOST},window="{window}"}})'
    )


LIFE_REMAINING = of_drive(f"min by ({DRIVE}) (ssdpulse_nvme_life_remaining_seconds{{{HOST}}})")
LIFE_USED = of_drive(f"max by ({DRIVE}) (ssdpulse_nvme_percentage_used_ratio{{{HOST}}})")


WRITE_RATE = rate("ssdpulse_io_bytes_total", EACH, f'{DEVICE},operation="write"', "1h")


def top(count, expression):
    return f"topk({count}, {expression})"


def against_before(expression):
    """The current value as a multiple of the earlier one: one window ends now, the other $compare ago."""
    return f"({expression})\n/\n(({expression.replace(']', '] offset $compare')}) > 0)"


def tail_before(operation):
    metric = quantile(0.99, LATENCY, EACH, f'{DEVICE},operation="{operation}"', "1h")
    return top(10, of_model(against_before(metric)))


AT_A_GLANCE = [
    number("Answering", "Daemons that Prometheus could scrape just now.", "short",
           (f"sum(up{{{HOST}}})", "up"), span=3),
    number("Silent", "Daemons that Prometheus could not scrape. What their drives do is not known.", "short",
           (f"count(up{{{HOST}}} == 0) or vector(0)", "down"), ((None, GREEN), (1, RED)), span=3),
    number("Devices", "Devices of the chosen hosts and models that ssdpulse measures.", "short",
           (f'count(ssdpulse_device_info{{{DEVICE},model=~"$model"}})', "devices"), span=3),
    number("Slow now", "Devices whose read or write tail is above its own normal at this moment.", "short",
           (f"count(max by ({EACH}) (ssdpulse_latency_spike_active{{{DEVICE}}}) > 0) or vector(0)", "slow"),
           ((None, GREEN), (1, RED)), span=3),
    number("Discarding", "Devices that are processing a burst of discards (fstrim, online discard, ...) now.",
           "short", (f"count(max by ({EACH}) (ssdpulse_discard_burst_active{{{DEVICE}}}) > 0) or vector(0)", "burst"),
           ((None, GREEN), (1, YELLOW)), span=3),
    number("Warning", "Drives with a critical warning set, by their own health page or that of one of their "
           "endurance groups.", "short",
           (f"count(max by ({DRIVE}) ({{__name__=~\"ssdpulse_nvme_critical_warning|"
            f'ssdpulse_nvme_endurance_groups_warning",{HOST}}}) > 0) or vector(0)', "warn"),
           ((None, GREEN), (1, RED)), span=3),
    number("Worn out in", "Least remaining life of any drive, at the current rate.", "s",
           (f"min({LIFE_REMAINING})", "left"), LIFE, span=3, nothing="n/a"),
    number("WAF, 24 h", "Highest write amplification of any drive over the last 24 hours.", "none",
           (f"max({waf('24h')})", "WAF"), WAF, span=3, decimals=2, nothing="n/a"),
]

WORST = [
    worst("Slowest reads", "99th percentile of total read latency over the shown time: allocation of the request to "
          "its completion, queueing included. Click a device to see it.", "s",
          top(8, tail("read")), PLAIN, DEVICES, links=TO_DEVICE, nothing="nothing was read"),
    worst("Slowest writes", "99th percentile of total write latency over the shown time, queueing included.", "s",
          top(8, tail("write")), PLAIN, DEVICES, links=TO_DEVICE, nothing="nothing was written"),
    worst("Most write amplification, 24 h", "Bytes written to the media per byte that the host wrote, over 24 hours. A "
          "drive whose counters do not show it is not listed.", "none",
          top(8, waf("24h")), WAF, DRIVES, nothing="no drive reports it"),
    worst("Worn out first", "Time until the rated endurance is used up, at the current rate; the shortest "
          "first.", "s", f"bottomk(8, {LIFE_REMAINING})", LIFE, DRIVES, reverse=True,
          nothing="no drive reports it"),
]

TABLE = [
    listing("All devices", "One row a device, over the time shown; what a drive does not report is empty. Click a device "
            "to see it.",
            [("Size", "decbytes", of_model(f"sum by ({EACH}) (ssdpulse_device_size_bytes{{{DEVICE}}})"), None),
             ("Read p99", "s", tail("read"), None),
             ("Write p99", "s", tail("write"), None),
             ("Commit p99", "s", tail("commit"), None),
             ("Written", "decbytes", of_model(increase("ssdpulse_io_bytes_total", EACH,
                                                       f'{DEVICE},operation="write"', "$__range")), None),
             ("Slow for", "s", of_model(increase("ssdpulse_latency_spike_seconds_total", EACH, window="$__range")),
              ((None, GREEN), (1, YELLOW), (60, RED))),
             ("Waited beyond usual", "s",
              of_model(increase("ssdpulse_latency_excess_seconds_total", EACH,
                                f'{DEVICE},operation=~"read|write|flush"', "$__range")), None),
             ("Discarding for", "s", of_model(increase("ssdpulse_discard_burst_seconds_total", EACH,
                                                       window="$__range")), None),
             ("WAF 24 h", "none", of_model(per_device(waf("24h"))), WAF),
             ("Life used", "percentunit", of_model(per_device(LIFE_USED)), USED),
             ("Life left", "s", of_model(per_device(LIFE_REMAINING)), LIFE)],
            order=("instance", "device"), sort="Read p99", height=9, links=TO_DEVICE),
]

CHANGED = [
    worst("Read tail against before", "99th percentile of reads over the last hour, as a multiple of the hour that "
          "ended the chosen time earlier. 1: as before.", "x", tail_before("read"),
          MORE, DEVICES, links=TO_DEVICE, span=6, height=7, nothing="nothing to compare with"),
    worst("Write tail against before", "99th percentile of writes over the last hour, as a multiple of the hour that "
          "ended the chosen time earlier.", "x", tail_before("write"),
          MORE, DEVICES, links=TO_DEVICE, span=6, height=7, nothing="nothing to compare with"),
    worst("Amplification against 7 days", "Write amplification of the last hour, as a multiple of the drive's own over "
          "seven days.", "x",
          top(10, f"{waf('1h')}\n/ on ({DRIVE})\n({waf('7d')})"),
          MORE, DRIVES, span=6, height=7, nothing="no drive reports it"),
    worst("Write rate against before", "Bytes written over the last hour, as a multiple of the hour that ended the "
          "chosen time earlier. A change of load explains much else.", "x",
          top(10, of_model(against_before(WRITE_RATE))),
          MORE, DEVICES, links=TO_DEVICE, span=6, height=7, nothing="nothing to compare with"),
    lines("Slow time by cause", "How long latency spikes lasted, counted when they have ended, by cause, all devices "
          "together.", "s",
          (f'{increase("ssdpulse_latency_spike_seconds_total", "cause", window="$__interval")} > 0', "{{cause}}"),
          "cause", bars=True, stack="normal", nothing="no spike has ended"),
    lines("Discards by trigger", "Bytes discarded in bursts, by who sent them, all devices together.", "Bps",
          (f'{rate("ssdpulse_discard_burst_bytes_total", "trigger")} > 0', "{{trigger}}"), "trigger", stack="normal",
          nothing="no discards"),
    lines("Failed I/O", "Requests that completed with an error, by kind, all devices together.", "reqps",
          (f'{rate("ssdpulse_io_errors_total", "error")} > 0', "{{error}}"), stack="normal", nothing="none failed"),
    listing("New, replaced or re-configured devices", "Devices whose identity (serial, firmware, scheduler, cache "
            "mode) is not what it was the chosen time ago.",
            [("", "short", f'ssdpulse_device_info{{{DEVICE},model=~"$model"}} unless ssdpulse_device_info{{{DEVICE}}} '
              "offset $compare", None)], hide=("wwid", "iostats", "rotational", "discard"),
            order=("instance", "device", "model", "firmware", "serial", "scheduler"), span=16, height=6,
            nothing="none"),
    lines("Restarts and resets", "Restarts of daemons, and resets of a drive's write counters.", "short",
          [(f"sum(changes(process_start_time_seconds{{{HOST}}}[$__interval]))", "daemon restarts"),
           (f"sum(increase(ssdpulse_nvme_write_epochs_total{{{HOST}}}[$__interval]))", "counter resets")],
          bars=True, height=6),
]

STANDING = [
    listing("Online discard and fstrim both in use", "File systems that fstrim trimmed within seven days while they were "
            "mounted with online discard. One of the two is enough.",
            [("Trimmed, 7 d", "decbytes",
              f'increase(ssdpulse_filesystem_discard_bytes_total{{{HOST},discard="true",trigger="fstrim"}}[7d]) > 0',
              ((None, YELLOW),))], hide=("discard", "trigger"), order=("instance", "mountpoint", "volume"), span=12,
            height=6, nothing="none"),
    listing("Where write hints end", "How far a lifetime hint travels: what the kernel does with it, "
            "and whether the drive can tell streams apart.",
            [("", "short", f"max by (job, instance, device, kernel, drive) (ssdpulse_write_hint_path_info{{{DEVICE}}})",
              None)], order=("instance", "device", "kernel", "drive"), span=12, height=6, nothing="not known"),
    listing("Arrays and what carries them", "md and dm devices, the drives below them, and whether a burst of discards "
            "to the array is under way.",
            [("Discarding", "bool_yes_no",
              f"sum by (job, instance, array, device, kind, name) (ssdpulse_device_member_info{{{DEVICE}}}) * on (job, "
              f"instance, array) group_left () (max by (job, instance, array) "
              f"(ssdpulse_array_discard_burst_active{{{HOST}}}))", ((None, GREEN), (1, RED)))],
            order=("instance", "array", "name", "kind", "device"), span=12, height=6, nothing="no arrays"),
    listing("Degraded arrays", "md arrays that lack members: missing, failed, or still being rebuilt.",
            [("Missing", "short",
              f"(ssdpulse_volume_degraded_members{{{HOST}}} > 0) * on (job, instance, volume) group_left (kind, name) "
              f"ssdpulse_volume_info{{{HOST}}}", ((None, GREEN), (1, RED)))],
            order=("instance", "volume", "name", "kind"), span=12, height=6, nothing="none"),
    worst("Misaligned writes", "Share of written bytes whose requests begin or end off the drive's preferred granularity. "
          "It must read, modify and write.", "percentunit",
          top(8, of_model(f'{increase("ssdpulse_write_misaligned_bytes_total", EACH, window="$__range")}\n/\n('
                          + increase("ssdpulse_io_bytes_total", EACH, f'{DEVICE},operation="write"', "$__range")
                          + " > 0)")), ((None, GREEN), (0.1, YELLOW), (0.5, RED)), DEVICES,
          span=12, height=6, links=TO_DEVICE, nothing="nothing was written"),
]


def build():
    known = f"ssdpulse_device_info{{{HOST}}}"
    variables = [
        choice("job", "Job", "label_values(ssdpulse_build_info, job)", all_value=".*"),
        choice("instance", "Host", 'label_values(ssdpulse_build_info{job=~"$job"}, instance)', all_value=".*"),
        choice("model", "Model", f"label_values({known}, model)", all_value=".*"),
        choice("device", "Device", f'label_values({known[:-1]},model=~"$model"}}, device)', all_value=".*"),
        one_of("compare", "Compare with", ["1h", "1d", "7d"], "1d"),
    ]
    rows = [
        ("Now", AT_A_GLANCE),
        ("Worst devices", WORST + TABLE),
        ("What changed", CHANGED),
        ("Standing findings", STANDING),
    ]
    return page("ssdpulse: Fleet", "ssdpulse-fleet",
                "Which of all drives need a look: slowest, most amplified, soonest worn out, and what has changed.",
                variables, rows, time_from="now-6h", refresh="1m")
