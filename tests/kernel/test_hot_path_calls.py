#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Does an I/O call anything but the clock and the CPU number? Reads what the kernel made of the programs.

A helper that the kernel inlined is no longer a call. Subprograms of the ordinary way are held to the same; the others
that it may call are for rare cases: whatever is not an ordinary read or write, a cgroup's first I/O, writes with a hint,
a full queue, reads and writes during a discard or a flush, and the one of many writes that the flash model follows.
unit.block_programs_test shows the rest.
"""
import json
import re
from pathlib import Path

from lib import rig

ALLOWED = {"bpf_ktime_get_ns", "bpf_get_smp_processor_id"}
# Not inlined, but what all reads or writes of some kind pass: whose issue was left out, of a modelled drive, not direct.
ORDINARY = {"complete_untimed", "sample_write", "record_write", "path_slowly"}
# The flash model's sample: what happens for one of many writes, and the only place that may call the ring buffer.
SAMPLED = "send_sample"
RARE = {"issue_rare", "complete_rare", "complete_only_rare", "attribute_slowly", "queue_full_slowly", "record_hinted",
        "interference_in_flight", "record_merged", SAMPLED}
RING = "bpf_ringbuf_output"
CLOCK_READS = {"on_issue": 1, "on_complete": 1, "on_complete_only": 1}
# One of these programs asks who submits discards, with whatever helpers it needs.
EVERY_BIO = {"on_bio_queue", "on_bio_5_10"}
DISCARDS = {"on_discard_bio", "on_discard", "on_discard_5_18"} | EVERY_BIO
PROGRAMS = {"full": ("on_issue", "on_complete"), "completion-only": ("on_complete_only",)}


def programs_of(process):
    """Ids of the programs that the daemon itself holds open, by name."""
    found = {}
    for file in Path(f"/proc/{process.pid}/fdinfo").iterdir():
        try:
            info = file.read_text()
        except FileNotFoundError:  # a file or a connection that the daemon has closed since the listing
            continue
        program_id = re.search(r"^prog_id:\s*(\d+)", info, re.MULTILINE)
        if program_id and "link_type" not in info:
            program = json.loads(rig.run("bpftool", "-j", "prog", "show", "id", program_id.group(1)))
            found[program["name"]] = program["id"]
    return found


def calls_of(program_id):
    """{function: [called names]} of a program and its subprograms."""
    functions, current = {}, None
    for line in rig.run("bpftool", "prog", "dump", "xlated", "id", program_id).splitlines():
        header = re.match(r"^\w.*\b(\w+)\(.*\):$", line)
        if header:
            current = header.group(1)
            functions[current] = []
        call = re.search(r"\(85\) call (\S+)", line)
        if call:
            functions[current].append(re.sub(r"^pc[+-]\d+#bpf_prog_[0-9a-f]+_", "", call.group(1)).split("#")[0])
    return functions


def test(check, state):
    for mode, wanted in PROGRAMS.items():
        with rig.ram_disks(state, size="64M") as [disk], rig.daemon(state, [disk], mode) as daemon:
            ids = programs_of(daemon.process)
            check.equal(sorted(set(ids) - DISCARDS), sorted(wanted), f"{mode}: programs loaded")
            discards = set(ids) & DISCARDS
            if mode == "completion-only":
                check.that(len(discards - EVERY_BIO) <= 1 and not discards & EVERY_BIO,
                           f"{mode}: programs of discards, none that every bio passes: {discards}")
            else:
                check.equal(len(discards), 1, f"{mode}: programs of discards")
            for name in wanted:
                functions = calls_of(ids[name])
                ordinary = {function: calls for function, calls in functions.items() if function in ORDINARY | {name}}
                check.that(ordinary.get(name), f"{name} was found, with its calls")
                for function, calls in ordinary.items():
                    check.that(set(calls) <= ALLOWED | ORDINARY | RARE, f"{name}: {function} calls {calls}")
                ringing = sorted(function for function, calls in functions.items() if RING in calls)
                check.equal(ringing, [] if name == "on_issue" else [SAMPLED], f"{name}: functions that call the ring buffer")
                clocks = sum(calls.count("bpf_ktime_get_ns") for calls in ordinary.values())
                check.equal(clocks, CLOCK_READS[name], f"{name}: places that read the clock")
            daemon.at_rest()


rig.main(test)
