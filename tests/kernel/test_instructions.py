#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How many BPF instructions does an I/O execute? As many as instructions/counts.txt says, case by case.

An interpreter runs the programs on a made-up kernel: no root, no I/O, the same numbers everywhere. What the programs
counted is compared completely, so that neither a wrong interpreter nor a wrong request can yield a number.
SSDPULSE_TEST_GOLDEN=write rewrites the file. With the name of a case: which lines of the source take its instructions.
"""
import os
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from lib import buckets, rig

HERE = Path(__file__).resolve().parent / "instructions"
sys.path.insert(0, str(HERE))

import made_up_kernel as made_up  # noqa: E402
from bpf_object import CALL  # noqa: E402
from interpreter import Fault  # noqa: E402
from made_up_kernel import CONSTANTS, CPU, CPUS, DEVICE, SERIAL  # noqa: E402

OBJECT, COUNTS = rig.BUILD / "bpf/block_io.bpf.o", HERE / "counts.txt"
BYTES, IOS, QUEUED_NS, DEVICE_NS, PAUSE_NS = 4096, 3, 3_000, 90_000, 50_000
TOTAL_NS = QUEUED_NS + DEVICE_NS
PATHS = {"io_uring": "PATH_IO_URING", "libaio": "PATH_LIBAIO", "sync": "PATH_SYNC", "unrecognised": "PATH_OTHER"}
OLDEST, NEWEST = (5, 10), (6, 18)
# Of a device, by what the daemon leaves out to spare the host (model::Effort, whose costs model::kRunShares has).
EFFORTS = {"everything": (), "essentials": ("DEVICE_UNATTRIBUTED",), "completions": ("DEVICE_UNATTRIBUTED", "DEVICE_UNTIMED")}
# What the kernel executes instead of one instruction, counted in the programs that Linux 6.18 made of these for x86-64
# (`bpftool prog dump xlated`, and the compiled code). Any other call is one; its own time is not in here.
WEIGHTS = {
    made_up.LOOK_UP: 6,  # in an array: array_map_gen_lookup() in kernel/bpf/arraymap.c, with CAP_PERFMON
    made_up.CPU_NUMBER: 3,  # a load of a variable of the CPU: do_misc_fixups() in kernel/bpf/verifier.c
}
GUARDED_LOAD = 8  # is it a kernel address? BPF_PROBE_MEM in arch/x86/net/bpf_jit_comp.c
HEADING = f"{'case':40}{'issue':>7}{'weighted':>10}{'completion':>12}{'weighted':>10}"


@dataclass
class Case:
    operation: str
    path: str = "io_uring"
    modelled: bool = False
    attribution: bool = True
    issue_seen: bool = True
    version: tuple = NEWEST
    effort: str = "everything"

    @property
    def attributed(self):
        return self.attribution and self.effort == "everything"

    @property
    def timed(self):
        return self.issue_seen and self.effort != "completions"

    @property
    def bytes(self):
        return 0 if self.operation == "flush" else BYTES

    @property
    def class_number(self):
        return CONSTANTS[made_up.OPERATIONS[self.operation][1]]

    @property
    def is_hot(self):
        return self.class_number < CONSTANTS["HOT_CLASSES"]

    @property
    def name(self):
        how = "unattributed" if not self.attribution else self.path if self.is_hot else ""
        return "-".join(filter(None, (
            self.operation, "modelled" if self.modelled else "", "" if self.issue_seen else "completion-only", how,
            f"effort-{self.effort}" if self.effort != "everything" else "",
            f"on-{self.version[0]}.{self.version[1]}" if self.version != NEWEST else "")))


def cases():
    for operation in ("read", "write"):
        for options in ({}, {"modelled": True}, {"issue_seen": False}) if operation == "write" else ({}, {"issue_seen": False}):
            yield from (Case(operation, path, **options) for path in PATHS)
            yield Case(operation, attribution=False, **options)
        yield from (Case(operation, issue_seen=seen, version=OLDEST) for seen in (True, False))
        yield from (Case(operation, effort=effort) for effort in EFFORTS if effort != "everything")
    for operation in ("flush", "discard"):
        yield from (Case(operation, attribution=attribution) for attribution in (True, False))


def sector(number):
    return 123456 + number * 8000


def measure(case):
    """(kernel, issue, completion) after some I/Os; the last two are {address: executions} of the last I/O."""
    flags = sum(CONSTANTS[flag] for flag in EFFORTS[case.effort])
    kernel, issue = made_up.MadeUpKernel(OBJECT, case.version, case.attribution, case.modelled, flags), Counter()
    for number in range(IOS):
        kernel.now_ns += PAUSE_NS
        kernel.request(case.operation, case.path, sector(number), case.bytes, kernel.now_ns - QUEUED_NS)
        if case.issue_seen:
            issue = kernel.run("on_issue")
        kernel.start()
        kernel.now_ns += DEVICE_NS
        completion = kernel.run("on_complete" if case.issue_seen else "on_complete_only", 0, case.bytes)
    return kernel, issue, completion


def weight(kernel, address):
    one = kernel.program.instructions[address]
    if one.opcode == CALL and not one.function and not one.kernel_function:
        return WEIGHTS.get(one.immediate, 1)
    return GUARDED_LOAD if address in kernel.interpreter.guarded else 1


def row(case, kernel, *both):
    """The weights are those of the newest kernel."""
    heavy = [sum(times * weight(kernel, address) for address, times in executed.items() if case.version == NEWEST) for executed in both]
    return f"{case.name:40}{both[0].total() or '-':>7}{heavy[0] or '-':>10}{both[1].total():>12}{heavy[1] or '-':>10}"


def print_lines(case):
    kernel, *both = measure(case)
    for name, executed in zip(("issue", "completion"), both):
        places = Counter()
        for address, times in executed.items():
            places[":".join(map(str, kernel.program.line_of(address)))] += times
        print(f"{name}: {executed.total()}", *(f"{times:6} {place}" for place, times in places.most_common()), sep="\n")


def latency(name, nanoseconds):
    """A histogram with all the I/Os, and the word beside it with their sum; `name` may end in an index."""
    word = CONSTANTS["LATENCY_FIRST_NATIVE_WORD"] + buckets.latency_bucket(nanoseconds) - CONSTANTS["LATENCY_FIRST_NATIVE_INDEX"]
    stem, _, index = name.partition(".")
    return {f"{stem}_sum_ns{index and '.'}{index}": IOS * nanoseconds, f"{name}.{word}": IOS}


def path_of(case):
    """Where kernels let nothing be followed, direct I/O is of no known engine."""
    return CONSTANTS["PATH_DIRECT" if case.version < (6, 2) and case.path != "unrecognised" else PATHS[case.path]]


def expected_cell(case):
    """What the I/Os of this case add to the cells of their device."""
    cell = {"completions" if case.timed or not case.issue_seen else "untimed": IOS, "bytes": IOS * case.bytes,
            "size_sum_bytes": IOS * case.bytes, **latency("total", TOTAL_NS),
            f"size.{1 + buckets.size_bucket(case.bytes) if case.bytes else 0}": IOS}
    if case.timed:
        cell |= {"issues": IOS, **latency("queue", QUEUED_NS), **latency("device.0", DEVICE_NS)}
    hot, classes = CONSTANTS["HOT_CLASSES"], CONSTANTS["CLASSES"]
    return {f"hot_cells.{DEVICE * CPUS + CPU}.of.{case.class_number}" if case.is_hot else
            f"cold_cells.{DEVICE * (classes - hot) + case.class_number - hot}": cell}


def expected_ends(case):
    """Where the I/Os ended, for the next ones to be sequential."""
    ends = [sector(number) + case.bytes // 512 for number in range(IOS)]
    return {f"end.{((end >> 7) * 2654435761 & 0xffffffff) >> 21 ^ end >> 3 & 15}": end + 1 + (case.class_number << 31) for end in ends}


def expected_write(case):
    known = "WRITE_OTHER" if case.path == "unrecognised" and case.attribution else "WRITE_DIRECT"
    return {f"class_bytes.{CONSTANTS[known]}": IOS * case.bytes, "hint_bytes.0": IOS * case.bytes, "hint_ios.0": IOS,
            "hint_pages.0": IOS * case.modelled}


def expected_attribution(case):
    """The cell of the cgroup, which was free, and the announcement of its name."""
    operation = {"flush": CONSTANTS["ATTRIBUTED_COMMIT"], "discard": CONSTANTS["ATTRIBUTED_DISCARD"]}.get(case.operation, case.class_number)
    key = (SERIAL << CONSTANTS["ATTRIBUTION_SERIAL_SHIFT"] | DEVICE << CONSTANTS["ATTRIBUTION_DEVICE_SHIFT"] | CONSTANTS["ATTRIBUTION_TAKEN"]
           | (path_of(case) if case.is_hot else CONSTANTS["PATH_OTHER"]) | operation << CONSTANTS["ATTRIBUTION_OPERATION_SHIFT"])
    cell, known = (number * 0x9e3779b97f4a7c15 & (1 << 64) - 1 for number in (key, SERIAL))
    name = {f"name.{at}": byte for at, byte in enumerate(made_up.CGROUP_NAME)}
    return {f"attributions.{CPU * made_up.SETS + (cell >> 32) * made_up.SETS // (1 << 32)}": {
                "cell.0.key": key, "cell.0.ios": IOS, "cell.0.bytes": IOS * case.bytes,
                "cell.0.device_ns": IOS * DEVICE_NS if case.issue_seen and case.operation != "flush" else 0},
            f"announcement_states.{CPU}": {"written": 1, "taken": 1, f"known.{known >> 57}": SERIAL},
            f"announced_cgroups.{CPU * made_up.ANNOUNCED}": {"serial": SERIAL, "cgroup": made_up.CGROUP, **name}}


def expected_interference(case, kernel):
    """What a flush or a discard leaves for reads and writes to see; a flush of its own is a commit, too."""
    kinds = {"flush": "flushes", "discard": "discards"}[case.operation]
    words = {f"{kinds}_started": IOS, f"{kinds}_ended": IOS, f"{case.operation}_last_start_ns": kernel.now_ns - DEVICE_NS,
             f"{case.operation}_last_end_ns": kernel.now_ns}
    if case.operation == "discard":
        return {f"device_states.{DEVICE}": words}
    commits = {"commits": IOS, **{name.replace("latency_", ""): value for name, value in latency("latency", TOTAL_NS).items()}}
    events = {f"of.{case.class_number}.count.{CONSTANTS['EVENT_LONE_FLUSH']}": IOS}
    return {f"device_states.{DEVICE}": words, f"rare_events.{DEVICE}": events, f"commit_cells.{DEVICE * CPUS + CPU}": commits}


def expected(case, kernel):
    found = expected_cell(case) | ({f"streams.{DEVICE}": expected_ends(case)} if case.is_hot else expected_interference(case, kernel))
    if case.operation == "write" and case.timed:
        found[f"write_cells.{DEVICE * CPUS + CPU}"] = expected_write(case)
    if case.timed:
        recognised = case.attributed and case.is_hot and case.path != "unrecognised"
        path = path_of(case) if recognised else CONSTANTS["PATH_UNKNOWN"]
        issued = case.class_number << CONSTANTS["SLOT_CLASS_SHIFT"] | path << CONSTANTS["SLOT_PATH_SHIFT"] | kernel.now_ns - DEVICE_NS
        slot = f"issue_slots.{made_up.HARDWARE_QUEUE * made_up.TAGS + made_up.TAG}"
        found[slot] = {"issued": issued, "request": kernel.request_address & 0xffffffff}
    if case.attributed:
        found |= expected_attribution(case)
    return {f"{place}.{path}": value for place, words in found.items() for path, value in words.items() if value}


def differences(found, wanted):
    return [f"{key} is {found.get(key)}, not {wanted.get(key)}" for key in sorted({**found, **wanted}) if found.get(key) != wanted.get(key)]


def by_case(lines):
    return {line.split()[0]: " ".join(line.split()[1:]) for line in lines}


def main():
    check, rows = rig.Check(), []
    for case in cases():
        try:
            kernel, *both = measure(case)
            check.equal(differences(kernel.counted(), expected(case, kernel)), [], f"{case.name}: what was counted")
            check.equal(kernel.events, [], f"{case.name}: events for the flash model")
            rows.append(row(case, kernel, *both))
        except Fault as fault:
            check.that(False, f"{case.name}: {fault}")
    compiler = made_up.read_object(OBJECT, NEWEST).compiler
    lines = ["# SPDX-License-Identifier: Apache-2.0", f"# {compiler}; SSDPULSE_TEST_GOLDEN=write tests/kernel/test_instructions.py rewrites this",
             HEADING, *rows]
    if os.environ.get("SSDPULSE_TEST_GOLDEN") == "write" and not check.failures:
        COUNTS.write_text("\n".join([*lines, ""]), "utf-8")
    found, wanted = by_case(lines), by_case(COUNTS.read_text("utf-8").splitlines())
    for case in sorted({**found, **wanted}):
        check.equal(found.get(case), wanted.get(case), f"{case}: instructions")
    sys.exit(check.failures != 0)


if len(sys.argv) > 1:
    print_lines(next(case for case in cases() if case.name == sys.argv[1]))
else:
    main()
