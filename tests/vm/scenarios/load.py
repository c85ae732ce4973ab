# SPDX-License-Identifier: Apache-2.0
"""Every program loads and attaches, the kernel's features are detected correctly, and nothing is left at the end."""
import re

import machine

OLD = {"issue_tracepoint": "request", "skipped_runs": "not_reported", "disk_identity": "device_number",
       "disk_of_request": "request", "flush_sequence_flag": "macro_bit", "request_operations": "req_opf",
       "start_time": "zero_if_unknown", "tag_waiters": "pointer", "write_hint": "bio", "write_stream": "absent",
       "discard_submitters": "blkdev_issue_discard_with_flags", "io_accounting": "unknown", "io_cgroup": "bio",
       "freezes": "freeze_super", "io_path": "engine_unknown", "volume_times": "absent"}
MIDDLE = {**OLD, "discard_submitters": "blkdev_issue_discard", "skipped_runs": "counted", "disk_identity": "diskseq",
          "disk_of_request": "queue", "request_operations": "req_op", "tag_waiters": "embedded", "write_hint": "page"}
NEW = {**MIDDLE, "flush_sequence_flag": "enum_bit", "start_time": "io_stat_flag",
       "discard_submitters": "bio_chain_and_submit", "write_hint": "bio_or_page", "io_path": "exact"}
NEWEST = {**NEW, "write_hint": "bio", "write_stream": "bio"}
FEATURES = {"5.10": OLD, "6.1": MIDDLE, "6.12": NEW, "6.12-modular": NEW, "newest": NEWEST}
FULL = {"write_class": "end_functions"}
DISCARDS = {"blkdev_issue_discard_with_flags": "on_discard_5_18", "blkdev_issue_discard": "on_discard",
            "bio_chain_and_submit": "on_discard_bio"}
FREEZES = ("on_frozen", "on_thawed")
SHARES_GUEST = True
BOTH = ["on_complete", "on_issue"]
# What is set besides the defaults, and how the features then differ.
MODES = {"full": ("", BOTH, {}), "completion-only": ("latency: { mode: completion-only }", ["on_complete_only"], {}),
         "always": ("writes: { page_hints: always }", BOTH, {"page_hints": "always"}),
         "never": ("writes: { page_hints: never }", BOTH, {"page_hints": "never"}),
         "volume": ("", BOTH, {"volume_times": "every_bio"})}
VOLUME_PROGRAMS = ("on_volume_submit", "on_volume_end", "on_volume_request_end")
OLD_VOLUME_PROGRAMS = ("on_volume_submit_hash_5_10", "on_volume_end_hash", "on_volume_request_end_hash")
# Run once at the start to measure what a run costs, and never attached.
STAND_INS = ("completion_alike", "issue_alike")


def devices():
    return []


def run(vm, check):
    print(f"TABLE kernel: {vm.sh('uname -r')}")
    for mode, (settings, programs, more) in MODES.items():
        programs = sorted([*programs, *FREEZES, DISCARDS[FEATURES[vm.name]["discard_submitters"]]])
        if mode == "volume":
            vm.sh("modprobe dm_mod && echo 0 2048 error | dmsetup create error")
            programs = sorted([*programs, *(OLD_VOLUME_PROGRAMS if vm.name == "5.10" else VOLUME_PROGRAMS)])
        vm.sh(f"echo '{settings}' >/tmp/{mode}.yaml")
        daemon = machine.Daemon(vm, "--config", f"/tmp/{mode}.yaml", preload=True, log=f"daemon-{mode}.log")
        attached, maps = machine.bpf_objects(vm)
        check.equal(attached, programs, f"{mode}: programs in the kernel")
        check.that(maps, f"{mode}: {len(maps)} maps")
        verified = dict(re.findall(r"verifier: (\w+): processed (\d+)", daemon.words()))
        check.equal(sorted(verified), sorted([*programs, *STAND_INS]), f"{mode}: programs that the verifier told of")
        for program, instructions in verified.items():
            print(f"TABLE {program}: {instructions} instructions verified")
        scrape = daemon.scrape()
        features = {dict(labels)["feature"]: dict(labels)["decision"]
                    for labels in scrape.series("ssdpulse_kernel_feature_info")}
        wanted = {**FEATURES[vm.name], **(FULL if mode != "completion-only" else {}), **more}
        check.equal(features, wanted, f"{mode}: features")
        check.that(scrape.value("ssdpulse_source_up", source="block") == 1, f"{mode}: the block source is up")
        check.that("ssdpulse_build_info" in daemon.text(), f"{mode}: /metrics as text")
        daemon.stop()
        check.equal(machine.bpf_left(vm), ([], []), f"{mode}: programs and maps after SIGTERM")
    vm.sh("dmsetup remove error")
    for feature, decision in features.items():
        print(f"TABLE {feature}: {decision}")
