# SPDX-License-Identifier: Apache-2.0
"""A made-up /metrics page with every family of the contract, for what this host's hardware cannot produce.

Its tables are independent of the program (test_metric_list compares the two), except for the log page fields and the
causes of spikes. Counters and histograms grow with time; gauges have values at which every finding of a dashboard is
present. A server that accepts native histograms gets them alone, any other one classic histograms.
"""
import itertools
import re
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import protobuf_page
from lib import metric_list

IO, DRIVE = "device=nvme0n1 operation=read,write", "controller=nvme0"
OPERATIONS = f"{IO},flush,discard,write_zeroes,secure_erase,zone,passthrough"
COVERED = f"{DRIVE} source=ocp window=5m,1h,24h,7d"
RATIO = f"{COVERED},lifetime"
DISCARD = "device=nvme0n1 trigger=fstrim,online,blkdiscard,mkfs,other"
CAUSES = re.findall(r'(?m)^  "(\w+)":', (Path(__file__).resolve().parents[2] / "exporters/page/assets/causes.js").read_text())
SPIKE = f"device=nvme0n1 operation=read,write,flush,commit cause={','.join(CAUSES)}"
TENANT = "device=nvme0n1 operation=read,write,discard tenant=/,db.service,backup.service,docker/0123456789ab,other"
PATH = ("device=nvme0n1 operation=read,write,discard path=io_uring,sqpoll,libaio,sync,direct,buffered_read,writeback,journal,"
        "metadata,swap,loop,stacked,other access=file,raw")
HINT = "device=nvme0n1 hint=not_set,none,short,medium,long,extreme,unknown"
BOTH = "controller=nvme0 | device=sda"
POLICIES = "policy=any,greedy_gc_frontier,greedy,cost_benefit"
MODELLED = (f"{DRIVE} {POLICIES} overprovisioning=fitted,typical,0.28 discards=honoured,ignored "
            "placement=none,hints,last_lifetime window=24h,7d,drive_write | device=sda policy=any overprovisioning=typical "
            "discards=honoured placement=none window=24h")
SILENCES = ("rotational,zoned,virtual,compression,no_size,too_small,no_memory,partly_measured,written_elsewhere,warming_up,"
            "few_writes,events_lost,wide_bounds,unknown_pages")
HINTS = "not_set,none,short,medium,long,extreme,unknown"
BIOS = "read,write,flush,discard,write_zeroes,secure_erase,zone"
SIBLING = f"{IO} group=md0"
VOLUME, MEMBER = f"volume=dm-0,md0 operation={BIOS}", f"member=nvme0n1p1,sda1 operation={BIOS}"
HISTOGRAMS = {
    "ssdpulse_io_device_latency_seconds": f"{OPERATIONS} during=none,discard,flush,both",
    "ssdpulse_io_queue_latency_seconds": OPERATIONS, "ssdpulse_io_latency_seconds": f"{OPERATIONS},commit",
    "ssdpulse_io_size_bytes": OPERATIONS, "ssdpulse_device_depth_ios": "device=nvme0n1",
    "ssdpulse_write_hint_latency_seconds": HINT,
    "ssdpulse_volume_latency_seconds": VOLUME, "ssdpulse_volume_member_latency_seconds": MEMBER,
}
WAITS = "cause=suspended,frozen,full,cgroup_limit,layer,dirty_throttling,pressure"
LIMITS = "tenant=db.service device=nvme0n1 operation=read,write"
COUNTERS = {
    "ssdpulse_device_busy_seconds": "device=nvme0n1", "ssdpulse_host_waits": WAITS, "ssdpulse_host_wait_seconds": WAITS,
    "ssdpulse_host_io_pressure_seconds": "kind=some,full", "ssdpulse_tenant_io_pressure_seconds": "tenant=db.service",
    "ssdpulse_volume_ios": VOLUME, "ssdpulse_volume_bytes": VOLUME, "ssdpulse_volume_errors": VOLUME,
    "ssdpulse_volume_losses": f"{VOLUME} cause=untimed,missed", "ssdpulse_volume_member_bytes": MEMBER,
    "ssdpulse_volume_member_losses": f"{MEMBER} cause=untimed,missed",
    "ssdpulse_io_bytes": OPERATIONS, "ssdpulse_io_sequential_bytes": IO, "ssdpulse_io_queue_full_seconds": OPERATIONS,
    "ssdpulse_io_errors": f"{OPERATIONS} error=io,medium,timeout,nospace,transport,target,again,offline,protection,"
                          "unsupported,other",
    "ssdpulse_io_requeues": f"{OPERATIONS} reason=driver,failover",
    "ssdpulse_io_unissued_completions": OPERATIONS, "ssdpulse_io_diskless_requests": "",
    "ssdpulse_nvme_host_written_bytes": f"{DRIVE} source=ocp",
    "ssdpulse_nvme_media_written_bytes": f"{DRIVE} source=ocp",
    "ssdpulse_nvme_write_epochs": DRIVE, "ssdpulse_nvme_idle_media_written_bytes": DRIVE,
    "ssdpulse_nvme_polls": DRIVE,
    "ssdpulse_lost_events": "device=nvme0n1 cause=completion_missed,stray,slot_collision,clock,unstamped | "
                            "cause=device_table_full,device_pending,queue_id_range,freeze_events | cause=recursion program=issue",
    "ssdpulse_source_errors": f"source=inventory,history,web_config kind=read | source=web kind=listen | source=history kind=dropped_row,contradiction | "
                              f"source=nvme {DRIVE} kind=timeout,reader_gone,impossible,unconfirmed",
    "ssdpulse_history_rows": "table=device_minute,drive_minute,mark fate=written,replaced,refused,surplus",
    "ssdpulse_history_rows_deleted": "table=device_minute,device_hour,tenant_minute,drive_minute,latency_spike reason=age,size,hour,repeated,unreadable,clock", "ssdpulse_missed_ticks": "",
    "ssdpulse_log_lines_suppressed": "",
    "ssdpulse_cpu_limit_steps": "direction=down,up",
    "ssdpulse_bpf_runs": "program=issue,complete", "ssdpulse_bpf_run_seconds": "program=issue,complete",
    "ssdpulse_web_answers": "", "ssdpulse_web_refusals": "reason=requests,logins,unread,users",
    "ssdpulse_web_connections_cut": "", "ssdpulse_web_accept_errors": "",
    "ssdpulse_web_failed_handshakes": "",
    "process_cpu_seconds": "",
    "ssdpulse_write_hint_bytes": HINT, "ssdpulse_write_hint_ios": HINT,
    "ssdpulse_write_stream_bytes": "device=nvme0n1 stream=1,2",
    "ssdpulse_write_class_bytes": "device=nvme0n1 class=journal,metadata,writeback,direct,swap,other",
    "ssdpulse_write_misaligned_bytes": "device=nvme0n1", "ssdpulse_write_small_bytes": "device=nvme0n1",
    "ssdpulse_write_ladder_bytes": "rung=application device= class=page_cache | rung=application device=nvme0n1 class=direct,swap | "
                                   "rung=file_system device=nvme0n1 class=journal,metadata,writeback,direct,swap,other | "
                                   "rung=drive device=nvme0n1 | rung=reported,media device=nvme0",
    "ssdpulse_discard_bursts": DISCARD, "ssdpulse_discard_burst_bytes": DISCARD,
    "ssdpulse_discard_burst_seconds": DISCARD,
    "ssdpulse_filesystem_discard_bytes": "volume=nvme0n1p1 mountpoint=/data discard=true,false "
                                        "trigger=fstrim,online,blkdiscard,mkfs,other",
    "ssdpulse_latency_spikes": SPIKE, "ssdpulse_latency_spike_seconds": SPIKE,
    "ssdpulse_latency_excess_seconds": SPIKE,
    "ssdpulse_tenant_ios": TENANT, "ssdpulse_tenant_bytes": TENANT, "ssdpulse_tenant_device_seconds": TENANT,
    "ssdpulse_tenant_commits": "device=nvme0n1 tenant=/,db.service,other",
    "ssdpulse_path_ios": PATH, "ssdpulse_path_bytes": PATH, "ssdpulse_path_device_seconds": PATH,
    "ssdpulse_model_sampled_writes": BOTH, "ssdpulse_model_lost_events": f"{DRIVE} kind=write,discard | device=sda kind=write",
    "ssdpulse_model_overflowed_events": "", "ssdpulse_model_state_failures": "kind=rejected,not_written",
}
GAUGES = {
    "ssdpulse_host_wait_active": WAITS, "ssdpulse_host_dirty_bytes": "", "ssdpulse_host_dirty_threshold_bytes": "",
    "ssdpulse_filesystem_size_bytes": "mountpoint=/data", "ssdpulse_filesystem_available_bytes": "mountpoint=/data",
    "ssdpulse_filesystem_filling_bytes_per_second": "mountpoint=/data",
    "ssdpulse_filesystem_inodes": "mountpoint=/data", "ssdpulse_filesystem_available_inodes": "mountpoint=/data",
    "ssdpulse_volume_suspended": "volume=dm-0", "ssdpulse_array_resync_progress_ratio": "array=md0 action=check",
    "ssdpulse_tenant_io_limit_bytes_per_second": LIMITS, "ssdpulse_tenant_io_limit_ios_per_second": LIMITS,
    "ssdpulse_volume_in_flight": VOLUME, "ssdpulse_volumes_left_out": "",
    "ssdpulse_volume_accounting_drift_bytes": "volume=dm-0,md0 operation=read,write,discard",
    "ssdpulse_io_in_flight": OPERATIONS, "ssdpulse_device_size_bytes": "device=nvme0n1",
    "ssdpulse_device_info": "device=nvme0n1 model=Example serial=S1 firmware=F1 wwid=w transport=pcie scheduler=none "
                            "rotational=false write_back_cache=false discard=true iostats=true medium=drive | "
                            "device=sda model=Example serial=S2 firmware=F1 wwid=w2 transport=sata scheduler=none "
                            "rotational=false write_back_cache=true discard=true iostats=false medium=drive",
    "ssdpulse_device_unseen": "device=nvme0n1 | device=sda", "ssdpulse_devices_left_out": "",
    "ssdpulse_filesystems_unnamed": "", "ssdpulse_setting_changes_waiting": "", "ssdpulse_history_rows_waiting": "table=device_minute,mark",
    "ssdpulse_device_member_info": "array=md0 device=nvme0n1 kind=md name=data",
    "ssdpulse_device_latency_of_siblings_ratio": SIBLING, "ssdpulse_device_latency_of_siblings_lower_ratio": SIBLING,
    "ssdpulse_device_latency_of_siblings_upper_ratio": SIBLING, "ssdpulse_device_slower_than_siblings": SIBLING,
    "ssdpulse_volume_info": "volume=md0 kind=raid1 name=data", "ssdpulse_volume_member_info": "volume=md0 member=nvme0n1p1,sda1",
    "ssdpulse_volume_degraded_members": "volume=md0",
    "ssdpulse_audit_finding_info": "id=F7 device=/data verdict=danger | id=F1 device=/data verdict=advise",
    "ssdpulse_filesystem_info": "device=nvme0n1 mountpoint=/data fstype=ext4 discard=true",
    "ssdpulse_nvme_info": f"{DRIVE} model=Example serial=S1 firmware=F1 transport=pcie vendor_id=0x1234 "
                          "nvme_version=2.0.0 subsystem_nqn=nqn",
    "ssdpulse_nvme_namespace_info": f"device=nvme0n1 {DRIVE} nsid=1 endurance_group=1",
    "ssdpulse_nvme_block_size_rank": f"device=nvme0n1 {DRIVE} block_bytes=512,4096",
    "ssdpulse_nvme_host_memory_buffer_bytes": f"{DRIVE} amount=preferred,minimum",
    "ssdpulse_write_amplification_ratio": RATIO, "ssdpulse_write_amplification_lower_ratio": RATIO,
    "ssdpulse_write_amplification_upper_ratio": RATIO, "ssdpulse_write_amplification_covered_seconds": COVERED,
    "ssdpulse_write_amplification_age_seconds": RATIO,
    "ssdpulse_write_amplification_source_info": f"{DRIVE} source=ocp reason=none",
    "ssdpulse_nvme_host_written_drift_bytes": DRIVE, "ssdpulse_nvme_host_written_drift_lower_bytes": DRIVE,
    "ssdpulse_nvme_host_written_drift_upper_bytes": DRIVE,
    "ssdpulse_nvme_life_remaining_seconds": f"{DRIVE} basis=percentage_used,endurance_estimate",
    "ssdpulse_nvme_life_remaining_window_seconds": f"{DRIVE} basis=percentage_used,endurance_estimate",
    "ssdpulse_nvme_last_poll_timestamp_seconds": DRIVE, "ssdpulse_nvme_last_poll_duration_seconds": DRIVE,
    "ssdpulse_nvme_poll_interval_seconds": DRIVE, "ssdpulse_nvme_log_read_latency_effect_ratio": DRIVE,
    "ssdpulse_nvme_refused_page_info": f"{DRIVE} page=fdp reason=refused",
    "ssdpulse_accounting_drift_ios": f"{IO},flush,discard",
    "ssdpulse_source_up": f"source=block,inventory,history,audit,web_config,web | source=nvme {DRIVE}",
    "ssdpulse_history_size_bytes": "", "ssdpulse_history_begin_timestamp_seconds": "resolution=minute,hour",
    "ssdpulse_kernel_memory_bytes": "use=cells,slots,tables,attribution,samples,volumes",
    "ssdpulse_kernel_feature_info": "feature=skipped_runs decision=counted | feature=io_path decision=exact | "
                                    "feature=io_accounting decision=unknown | feature=freezes decision=freeze_super",
    "ssdpulse_latency_mode_info": "mode=full",
    "ssdpulse_build_info": "version=0.1.0 revision=r", "ssdpulse_snapshot_timestamp_seconds": "",
    "ssdpulse_web_connections": "",
    "ssdpulse_config_last_reload_successful": "", "ssdpulse_config_last_reload_success_timestamp_seconds": "",
    "ssdpulse_estimated_bpf_cpu_ratio": "", "ssdpulse_cpu_limit_ratio": "", "ssdpulse_cpu_limit_level": "",
    "process_resident_memory_bytes": "", "process_virtual_memory_bytes": "", "process_open_fds": "",
    "process_max_fds": "", "process_threads": "", "process_start_time_seconds": "",
    "ssdpulse_write_ladder_gap_info": "rung=media device=sda reason=no_counter",
    "ssdpulse_write_hint_path_info": "device=nvme0n1 kernel=block_layer drive=none",
    "ssdpulse_discard_burst_active": DISCARD, "ssdpulse_array_discard_burst_active": "array=md0 trigger=fstrim,online,blkdiscard,mkfs,other",
    "ssdpulse_latency_spike_active": SPIKE,
    "ssdpulse_latency_spike_pending_excess_seconds": "device=nvme0n1 operation=read,write,flush,commit",
    "ssdpulse_tenant_departed_ios": "device=nvme0n1 operation=read,write,discard",
    "ssdpulse_tenant_departed_bytes": "device=nvme0n1 operation=read,write,discard",
    "ssdpulse_tenant_departed_device_seconds": "device=nvme0n1 operation=read,write,discard",
    "ssdpulse_tenant_info": "tenant=/ kind=root cgroup=/ | tenant=db.service kind=unit cgroup=/system.slice/db.service | "
                            "tenant=backup.service kind=unit cgroup=/system.slice/backup.service | "
                            "tenant=docker/0123456789ab kind=container cgroup=/docker/0123456789ab",
    "ssdpulse_modelled_write_amplification_ratio": MODELLED, "ssdpulse_modelled_write_amplification_lower_ratio": MODELLED,
    "ssdpulse_modelled_write_amplification_upper_ratio": MODELLED,
    "ssdpulse_modelled_write_amplification_silence_info":
        f"{DRIVE} window=24h,7d,drive_write reason={SILENCES} | device=sda window=24h reason=zoned",
    "ssdpulse_model_effective_overprovisioning_ratio": f"{DRIVE} basis=size,media_counter | device=sda basis=size",
    "ssdpulse_model_effective_overprovisioning_lower_ratio": f"{DRIVE} basis=size,media_counter | device=sda basis=size",
    "ssdpulse_model_effective_overprovisioning_upper_ratio": f"{DRIVE} basis=size,media_counter | device=sda basis=size",
    "ssdpulse_model_drift_ratio": BOTH, "ssdpulse_model_drift_lower_ratio": BOTH, "ssdpulse_model_drift_upper_ratio": BOTH,
    "ssdpulse_model_written_drive_writes": BOTH, "ssdpulse_model_unknown_pages_ratio": BOTH,
    "ssdpulse_model_lost_events_ratio": f"{DRIVE} kind=write,discard | device=sda kind=write",
    "ssdpulse_model_block_bytes": BOTH,
    "ssdpulse_write_lifetime_bytes": f"{DRIVE} hint={HINTS} share=0.1,0.5,0.9 | device=sda hint=short share=0.5",
    "ssdpulse_write_lifetime_alive_ratio": f"{DRIVE} hint={HINTS} | device=sda hint=short",
    "ssdpulse_write_hint_order_violation": f"{DRIVE} shorter={HINTS} longer={HINTS} | device=sda shorter=short longer=long",
    "ssdpulse_written_since_full_discard_bytes": BOTH, "ssdpulse_collection_begins_lower_bytes": BOTH,
    "ssdpulse_collection_begins_upper_bytes": BOTH, "ssdpulse_model_memory_bytes": "",
    "ssdpulse_model_memory_limit_bytes": "",
    "ssdpulse_model_scale_info": "scale=all,fewer_what_ifs,smaller_samples,fewer_drives",
}


def log_fields(metrics):
    """({counter: labels}, {gauge: labels}) of the fields of the drives' log pages, from `ssdpulse metrics --json`."""
    kinds = {"counter": {}, "gauge": {}}
    for metric in metrics:
        if metric["topic"].endswith("log pages"):
            labels = [label["name"] for label in metric["labels"] if label["name"] != "controller"]
            kinds[metric["type"]][metric["name"].removesuffix("_total")] = " ".join([DRIVE, *(f"{name}=1" for name in labels)])
    return kinds["counter"], kinds["gauge"]


def series(labels):
    """Every combination of `name=value,value ...`, as text; ` | ` separates label sets."""
    for words in labels.split(" | "):
        names = [word.split("=", 1) for word in words.split()]
        for values in itertools.product(*(value.split(",") for _, value in names)):
            yield ",".join(f'{name}="{value}"' for (name, _), value in zip(names, values))


def families(metrics, age):
    """(name, type, [(labels as text, value)]); the value of a histogram is the number of its I/Os."""
    counters, gauges = log_fields(metrics)
    for name, labels in ({**COUNTERS, **counters}).items():
        yield f"{name}_total", "counter", [(one, (index + 1) * age) for index, one in enumerate(series(labels))]
    for name, labels in ({**GAUGES, **gauges}).items():
        yield name, "gauge", [(one, time.time() if "timestamp" in name else 1) for one in series(labels)]
    for name, labels in HISTOGRAMS.items():
        yield name, "histogram", [(one, int(age * 10)) for one in series(labels)]


def page(metrics, age):
    lines = []
    for name, kind, samples in families(metrics, age):
        lines.append(f"# TYPE {name} {kind}")
        for one, value in samples:
            if kind != "histogram":
                lines.append(f"{name}{{{one}}} {value}")
                continue
            for bound, count in (("0.001", value * 9 // 10), ("0.002", value), ("+Inf", value)):
                lines.append(f'{name}_bucket{{{one},le="{bound}"}} {count}')
            lines += [f"{name}_sum{{{one}}} {value / 1000}", f"{name}_count{{{one}}} {value}"]
    return "\n".join(lines) + "\n"


def protobuf(metrics, age):
    body = b""
    for name, kind, samples in families(metrics, age):
        body += protobuf_page.family(name, kind, [
            (re.findall(r'(\w+)="([^"]*)"', one),
             protobuf_page.native_histogram(-80, [value * 9 // 10, value - value * 9 // 10], value / 1000)
             if kind == "histogram" else value) for one, value in samples])
    return body


@contextmanager
def server():
    """Serves the page on a free port; yields the port."""
    begin, metrics = time.time() - 1000, metric_list.metrics()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            native, age = "application/vnd.google.protobuf" in self.headers.get("Accept", ""), time.time() - begin
            self.send_response(200)
            self.send_header("Content-Type",
                             protobuf_page.CONTENT if native else "text/plain; version=0.0.4; charset=utf-8")
            self.end_headers()
            self.wfile.write(protobuf(metrics, age) if native else page(metrics, age).encode())

        def log_message(self, *_):
            pass

    web = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    try:
        yield web.server_address[1]
    finally:
        web.shutdown()
