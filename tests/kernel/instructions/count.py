#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How many instructions does an I/O cost? count.py OBJECT [--where CASE [--lines]]: by case, or by function of one case."""
import argparse
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from bpf_object import CALL  # noqa: E402
from made_up_kernel import CPU_NUMBER, LOOK_UP, MadeUpKernel  # noqa: E402

BYTES, REPEATED, QUEUED_NS, DEVICE_NS, PAUSE_NS = 4096, 3, 3_000, 90_000, 50_000
PATHS = ("io_uring", "libaio", "sync", "unrecognised")
OLDEST, NEWEST = (5, 10), (6, 18)
# What the kernel executes instead of one instruction, counted in the programs that Linux 6.18 made of these for x86-64
# (`bpftool prog dump xlated`, and the compiled code). Any other call is one; its own time is not in here.
WEIGHTS = {
    LOOK_UP: 6,  # in an array: array_map_gen_lookup() in kernel/bpf/arraymap.c, with CAP_PERFMON
    CPU_NUMBER: 3,  # a load of a variable of the CPU: do_misc_fixups() in kernel/bpf/verifier.c
}
GUARDED_LOAD = 8  # is it a kernel address? BPF_PROBE_MEM in arch/x86/net/bpf_jit_comp.c


@dataclass
class Case:
    operation: str
    path: str = "io_uring"
    modelled: bool = False
    attribution: bool = True
    issue_seen: bool = True
    version: tuple = NEWEST

    @property
    def bytes(self):
        return 0 if self.operation == "flush" else BYTES

    @property
    def name(self):
        how = "unattributed" if not self.attribution else self.path if self.operation in ("read", "write") else ""
        return "-".join(filter(None, (
            self.operation, "modelled" if self.modelled else "", "" if self.issue_seen else "completion-only", how,
            f"on-{self.version[0]}.{self.version[1]}" if self.version != NEWEST else "")))


def cases():
    for operation in ("read", "write"):
        for modelled in (False, True) if operation == "write" else (False,):
            yield from (Case(operation, path, modelled) for path in PATHS)
            yield Case(operation, modelled=modelled, attribution=False)
        yield from (Case(operation, path, issue_seen=False) for path in PATHS)
        yield Case(operation, issue_seen=False, attribution=False)
        yield from (Case(operation, issue_seen=seen, version=OLDEST) for seen in (True, False))
    for operation in ("flush", "discard"):
        yield from (Case(operation, attribution=attribution) for attribution in (True, False))


HEADING = f"{'case':40}{'issue':>7}{'weighted':>10}{'completion':>12}{'weighted':>10}"


def weight(kernel, address):
    one = kernel.program.instructions[address]
    if one.opcode == CALL and not one.function and not one.kernel_function:
        return WEIGHTS.get(one.immediate, 1)
    return GUARDED_LOAD if address in kernel.guarded else 1


def weighted(kernel, executed):
    return sum(times * weight(kernel, address) for address, times in executed.items())


def row(case, kernel, issue, completion):
    """The weights are those of the newest kernel."""
    heavy = [weighted(kernel, executed) if case.version == NEWEST else 0 for executed in (issue, completion)]
    return f"{case.name:40}{issue.total() or '-':>7}{heavy[0] or '-':>10}{completion.total():>12}{heavy[1] or '-':>10}"


def measure(path, case):
    """(kernel, issue, completion) after some I/Os; the last two are {address: executions} of the last I/O."""
    kernel = MadeUpKernel(path, case.version, case.attribution, case.modelled)
    issue = Counter()
    for number in range(REPEATED):
        kernel.now_ns += PAUSE_NS
        kernel.request(case.operation, case.path, 123456 + number * 8000, case.bytes, kernel.now_ns - QUEUED_NS)
        if case.issue_seen:
            issue = kernel.issue()
        kernel.start()
        kernel.now_ns += DEVICE_NS
        completion = kernel.complete("on_complete" if case.issue_seen else "on_complete_only", case.bytes)
    return kernel, issue, completion


def inlined(program):
    """Address -> functions around it, the outermost first: from the object's debug information, because .BTF.ext does not
    name functions that were inlined.
    """
    names = [f"llvm-dwarfdump{version}" for version in ("-14", "-16", "-19", "")]
    tool = next(filter(shutil.which, names), None) or sys.exit(f"needs one of {' '.join(names)}")
    around, base = defaultdict(list), 0
    for entry in subprocess.run([tool, "--debug-info", program.path], check=True, capture_output=True, text=True).stdout.split("\n\n"):
        if not re.match(r"0x\w+: +DW_TAG_(subprogram|inlined_subroutine)\n", entry):
            continue
        name = re.search(r'DW_AT_(?:abstract_origin|name)\s+\((?:0x\w+ )?"(\w+)"\)', entry)[1]
        ranges = re.findall(r"(?:\[|DW_AT_low_pc\s+\()0x(\w+)(?:, |\)\s+DW_AT_high_pc\s+\()0x(\w+)", entry)
        if "DW_TAG_subprogram" in entry and ranges:
            base = program.functions[name] - int(ranges[0][0], 16)
        for begin, end in ranges:
            for address in range(base + int(begin, 16), base + int(end, 16), 8):
                around[address].append(name)
    return around


def print_functions(kernel, executed):
    """A tree of calls, inlined or not: instructions of each function with those it calls, the same weighted, and its own."""
    around, total, heavy, own = inlined(kernel.program), Counter(), Counter(), Counter()
    for address, times in executed.items():
        chain = tuple(around[address])
        own[chain] += times
        for depth in range(len(chain)):
            total[chain[:depth + 1]] += times
            heavy[chain[:depth + 1]] += times * weight(kernel, address)
    print("  total weighted    own")
    for chain in sorted(total, key=lambda chain: [(-total[chain[:depth + 1]], chain[depth]) for depth in range(len(chain))]):
        print(f"{total[chain]:7}{heavy[chain]:9}{own[chain]:7}  {'  ' * len(chain)}{chain[-1]}")


def print_lines(program, executed):
    places = Counter()
    for address, times in executed.items():
        file, line, text = program.line_of(address)
        places[f"{Path(file).name}:{line}: {text}"] += times
    for place, times in places.most_common():
        print(f"{times:6} {place}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("object")
    parser.add_argument("--where", metavar="CASE")
    parser.add_argument("--lines", action="store_true", help="with --where: by line")
    options = parser.parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # of `| head`
    if not options.where:
        print(HEADING)
        for case in cases():
            print(row(case, *measure(options.object, case)))
        return
    kernel, issue, completion = measure(options.object, next(case for case in cases() if case.name == options.where))
    for name, executed in (("issue", issue), ("completion", completion)):
        print(f"{name}: {executed.total()}")
        if options.lines:
            print_lines(kernel.program, executed)
        else:
            print_functions(kernel, executed)


if __name__ == "__main__":
    main()
