#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How many BPF instructions does an I/O execute? As many as instructions/counts.txt says, case by case.

An interpreter runs the programs on a made-up kernel: no root, no I/O, the same numbers everywhere. What the programs
counted is compared completely, so that neither a wrong interpreter nor a wrong request can yield a number.
SSDPULSE_TEST_GOLDEN=write rewrites the file; instructions/count.py shows which lines take them.
"""
import os
import sys
from pathlib import Path

from lib import buckets, rig

sys.path.insert(0, str(Path(__file__).resolve().parent / "instructions"))

import count  # noqa: E402
import made_up_kernel as made_up  # noqa: E402
from interpreter import Fault  # noqa: E402
from made_up_kernel import CONSTANTS, CPU, DEVICE  # noqa: E402

OBJECT = rig.BUILD / "bpf/block_io.bpf.o"
COUNTS = Path(count.__file__).with_name("counts.txt")
IOS, TOTAL_NS = count.REPEATED, count.QUEUED_NS + count.DEVICE_NS
PATHS = {"io_uring": "PATH_IO_URING", "libaio": "PATH_LIBAIO", "sync": "PATH_SYNC", "unrecognised": "PATH_OTHER"}


def latency_word(nanoseconds):
    return CONSTANTS["LATENCY_FIRST_NATIVE_WORD"] + buckets.latency_bucket(nanoseconds) - CONSTANTS["LATENCY_FIRST_NATIVE_INDEX"]


def path_of(case):
    """Where kernels let nothing be followed, direct I/O is of no known engine."""
    return CONSTANTS["PATH_DIRECT" if case.version < (6, 2) and case.path != "unrecognised" else PATHS[case.path]]


def expected_cell(case, class_number):
    """What the I/Os of this case add to the cells of their device."""
    size_word = 1 + buckets.size_bucket(case.bytes) if case.bytes else 0
    cell = {"completions": IOS, "bytes": IOS * case.bytes, "size_sum_bytes": IOS * case.bytes, f"size.{size_word}": IOS,
            "total_sum_ns": IOS * TOTAL_NS, f"total.{latency_word(TOTAL_NS)}": IOS}
    if case.issue_seen:
        cell |= {"issues": IOS, "queue_sum_ns": IOS * count.QUEUED_NS, f"queue.{latency_word(count.QUEUED_NS)}": IOS,
                 "device_sum_ns.0": IOS * count.DEVICE_NS, f"device.0.{latency_word(count.DEVICE_NS)}": IOS}
    if class_number < CONSTANTS["HOT_CLASSES"]:
        return f"hot_cells.{DEVICE * made_up.CPUS + CPU}.of.{class_number}", cell
    cold = CONSTANTS["CLASSES"] - CONSTANTS["HOT_CLASSES"]
    return f"cold_cells.{DEVICE * cold + class_number - CONSTANTS['HOT_CLASSES']}", cell


def expected_write(case):
    known = "WRITE_OTHER" if case.path == "unrecognised" and case.attribution else "WRITE_DIRECT"
    return {f"class_bytes.{CONSTANTS[known]}": IOS * case.bytes, "hint_bytes.0": IOS * case.bytes, "hint_ios.0": IOS,
            **({"hint_pages.0": IOS} if case.modelled else {})}


def expected_attribution(case, class_number):
    """The cell of the cgroup, which was free, and the announcement of its name."""
    operation = {"flush": "ATTRIBUTED_COMMIT", "discard": "ATTRIBUTED_DISCARD"}.get(case.operation)
    path = CONSTANTS["PATH_OTHER"] if operation else path_of(case)
    key = (made_up.SERIAL << CONSTANTS["ATTRIBUTION_SERIAL_SHIFT"] | DEVICE << CONSTANTS["ATTRIBUTION_DEVICE_SHIFT"]
           | CONSTANTS["ATTRIBUTION_TAKEN"] | path
           | (CONSTANTS[operation] if operation else class_number) << CONSTANTS["ATTRIBUTION_OPERATION_SHIFT"])
    cell = CPU * made_up.SETS + ((key * 0x9e3779b97f4a7c15 & (1 << 64) - 1) >> 32) * made_up.SETS // (1 << 32)
    device_ns = IOS * count.DEVICE_NS if case.issue_seen and case.operation != "flush" else 0
    known = (made_up.SERIAL * 0x9e3779b97f4a7c15 & (1 << 64) - 1) >> 57
    name = {f"name.{at}": byte for at, byte in enumerate(made_up.CGROUP_NAME)}
    return {f"attributions.{cell}": {"cell.0.key": key, "cell.0.ios": IOS, "cell.0.bytes": IOS * case.bytes, "cell.0.device_ns": device_ns},
            f"announcement_states.{CPU}": {"written": 1, "taken": 1, f"known.{known}": made_up.SERIAL},
            f"announced_cgroups.{CPU * made_up.ANNOUNCED}": {"serial": made_up.SERIAL, "cgroup": made_up.CGROUP, **name}}


def expected_interference(case, kernel):
    """What a flush or a discard leaves for reads and writes to see; a flush of its own is a commit, too."""
    kinds = {"flush": "flushes", "discard": "discards"}[case.operation]
    words = {f"{kinds}_started": IOS, f"{kinds}_ended": IOS, f"{case.operation}_last_start_ns": kernel.now_ns - count.DEVICE_NS,
             f"{case.operation}_last_end_ns": kernel.now_ns}
    if case.operation == "discard":
        return {f"device_states.{DEVICE}": words}
    events = {f"of.{CONSTANTS['CLASS_FLUSH']}.count.{CONSTANTS['EVENT_LONE_FLUSH']}": IOS}
    commits = {"commits": IOS, "sum_ns": IOS * TOTAL_NS, f"latency.{latency_word(TOTAL_NS)}": IOS}
    return {f"device_states.{DEVICE}": words, f"rare_events.{DEVICE}": events, f"commit_cells.{DEVICE * made_up.CPUS + CPU}": commits}


def expected_ends(class_number, size):
    """Where the I/Os ended, for the next ones to be sequential."""
    ends = [count.sector(number) + size // 512 for number in range(IOS)]
    return {f"end.{((end >> 7) * 2654435761 & 0xffffffff) >> 21 ^ end >> 3 & 15}": end + 1 + (class_number << 31) for end in ends}


def expected(case, kernel):
    class_number = CONSTANTS[made_up.OPERATIONS[case.operation][1]]
    found = dict([expected_cell(case, class_number)])
    if case.operation == "write" and case.issue_seen:
        found[f"write_cells.{DEVICE * made_up.CPUS + CPU}"] = expected_write(case)
    if class_number < CONSTANTS["HOT_CLASSES"]:
        found[f"streams.{DEVICE}"] = expected_ends(class_number, case.bytes)
    else:
        found |= expected_interference(case, kernel)
    if case.issue_seen:
        recognised = case.attribution and class_number < CONSTANTS["HOT_CLASSES"] and case.path != "unrecognised"
        path = path_of(case) if recognised else CONSTANTS["PATH_UNKNOWN"]
        issued = class_number << CONSTANTS["SLOT_CLASS_SHIFT"] | path << CONSTANTS["SLOT_PATH_SHIFT"] | kernel.now_ns - count.DEVICE_NS
        slot = f"issue_slots.{made_up.HARDWARE_QUEUE * made_up.TAGS + made_up.TAG}"
        found[slot] = {"issued": issued, "request": kernel.request_address & 0xffffffff}
    if case.attribution:
        found |= expected_attribution(case, class_number)
    return {f"{place}.{path}": value for place, words in found.items() for path, value in words.items() if value}


def compare(check, found, wanted, what):
    differences = [f"{key} is {found.get(key)}, not {wanted.get(key)}" for key in sorted({**found, **wanted})
                   if found.get(key) != wanted.get(key)]
    check.that(not differences, f"{what}{': ' if differences else ''}{'; '.join(differences)}")


def by_case(lines):
    return {line.split()[0]: " ".join(line.split()[1:]) for line in lines}


def main():
    check, rows = rig.Check(), []
    for case in count.cases():
        try:
            kernel, *executed = count.measure(OBJECT, case)
            compare(check, kernel.counted(), expected(case, kernel), f"{case.name}: what was counted")
            check.equal(kernel.events, [], f"{case.name}: events for the flash model")
            rows.append(count.row(case, kernel, *executed))
        except Fault as fault:
            check.that(False, f"{case.name}: {fault}")
    compiler = made_up.read_object(OBJECT, count.NEWEST).compiler
    lines = ["# SPDX-License-Identifier: Apache-2.0", f"# {compiler}; SSDPULSE_TEST_GOLDEN=write tests/kernel/test_instructions.py rewrites this",
             count.HEADING, *rows]
    if os.environ.get("SSDPULSE_TEST_GOLDEN") == "write" and not check.failures:
        COUNTS.write_text("\n".join([*lines, ""]), "utf-8")
    found, wanted = by_case(lines), by_case(COUNTS.read_text("utf-8").splitlines())
    for case in sorted({**found, **wanted}):
        check.equal(found.get(case), wanted.get(case), f"{case}: instructions")
    sys.exit(check.failures != 0)


main()
