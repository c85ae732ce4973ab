#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How many instructions does an I/O cost? count.py OBJECT [--where CASE [--lines]]: by case, or by function of one case."""
import argparse
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

from made_up_kernel import MadeUpKernel  # noqa: E402

BYTES, REPEATED, QUEUED_NS, DEVICE_NS, PAUSE_NS = 4096, 3, 3_000, 90_000, 50_000
PATHS = ("io_uring", "libaio", "sync", "unrecognised")
OLDEST, NEWEST = (5, 10), (6, 18)


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
        parts = [self.operation]
        if self.modelled:
            parts.append("modelled")
        if not self.issue_seen:
            parts.append("completion-only")
        if self.operation in ("read", "write"):
            parts.append(self.path if self.attribution else "unattributed")
        elif not self.attribution:
            parts.append("unattributed")
        return "-".join([*parts, *(f"on-{major}.{minor}" for major, minor in [self.version] if self.version != NEWEST)])


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


HEADING = f"{'case':36}{'issue':>7}{'completion':>12}"


def row(case, issue, completion):
    return f"{case.name:36}{issue.total() or '-':>7}{completion.total():>12}"


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


def inlined(path, program):
    """Address -> functions around it, the outermost first: from the object's debug information, because .BTF.ext does not
    name functions that were inlined.
    """
    tool = next(filter(shutil.which, (f"llvm-dwarfdump{version}" for version in ("-14", "-16", "-19", ""))))
    around, base = defaultdict(list), 0
    for entry in subprocess.run([tool, "--debug-info", path], check=True, capture_output=True, text=True).stdout.split("\n\n"):
        if not re.match(r"0x\w+: +DW_TAG_(subprogram|inlined_subroutine)\n", entry):
            continue
        name = re.search(r'DW_AT_(?:abstract_origin|name)\s+\((?:0x\w+ )?"(\w+)"\)', entry)[1]
        ranges = re.findall(r"\[0x(\w+), 0x(\w+)\)", entry) or re.findall(r"DW_AT_low_pc\s+\(0x(\w+)\)\s+DW_AT_high_pc\s+\(0x(\w+)\)", entry)
        if "DW_TAG_subprogram" in entry and ranges:
            base = program.functions[name] - int(ranges[0][0], 16)
        for begin, end in ranges:
            for address in range(base + int(begin, 16), base + int(end, 16), 8):
                around[address].append(name)
    return around


def print_functions(path, program, executed):
    """A tree of calls, inlined or not: instructions of each function with those it calls, and its own."""
    around, total, own = inlined(path, program), Counter(), Counter()
    for address, times in executed.items():
        chain = tuple(around[address])
        own[chain] += times
        for depth in range(len(chain)):
            total[chain[:depth + 1]] += times
    print("  total    own")
    for chain in sorted(total, key=lambda chain: [(-total[chain[:depth + 1]], chain[depth]) for depth in range(len(chain))]):
        print(f"{total[chain]:7}{own[chain]:7}  {'  ' * len(chain)}{chain[-1]}")


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
    if not options.where:
        print(HEADING)
        for case in cases():
            print(row(case, *measure(options.object, case)[1:]))
        return
    kernel, issue, completion = measure(options.object, next(case for case in cases() if case.name == options.where))
    for name, executed in (("issue", issue), ("completion", completion)):
        print(f"{name}: {executed.total()}")
        if options.lines:
            print_lines(kernel.program, executed)
        else:
            print_functions(options.object, kernel.program, executed)


if __name__ == "__main__":
    main()
