#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How many instructions does an I/O cost? count.py OBJECT [--where CASE [--lines]]: by case, or by function of one case."""
import argparse
import re
import sys
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

from made_up_kernel import MadeUpKernel  # noqa: E402

BYTES, REPEATED, DEVICE_NS, PAUSE_NS = 4096, 3, 90_000, 50_000
PATHS = ("io_uring", "libaio", "sync", "unrecognised")


@dataclass
class Case:
    operation: str
    path: str = "io_uring"
    modelled: bool = False
    attribution: bool = True
    issue_seen: bool = True
    version: tuple = (6, 18)

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
        return "-".join(parts)


def cases():
    for operation in ("read", "write"):
        for modelled in (False, True) if operation == "write" else (False,):
            yield from (Case(operation, path, modelled) for path in PATHS)
            yield Case(operation, modelled=modelled, attribution=False)
        yield from (Case(operation, path, issue_seen=False) for path in PATHS)
        yield Case(operation, issue_seen=False, attribution=False)
    for operation in ("flush", "discard"):
        yield from (Case(operation, attribution=attribution) for attribution in (True, False))


def measure(path, case):
    """(kernel, issue, completion) after some I/Os; the last two are {address: executions} of the last I/O."""
    kernel = MadeUpKernel(path, case.version, case.attribution, case.modelled)
    size = 0 if case.operation == "flush" else BYTES
    issue = Counter()
    for number in range(REPEATED):
        kernel.now_ns += PAUSE_NS
        kernel.request(case.operation, case.path, 123456 + number * 8000, size)
        if case.issue_seen:
            issue = kernel.issue()
        kernel.start()
        kernel.now_ns += DEVICE_NS
        completion = kernel.complete("on_complete" if case.issue_seen else "on_complete_only", size)
    return kernel, issue, completion


@lru_cache(maxsize=None)
def functions_of(file):
    """(line, name) of each function's beginning. The object does not name those that were inlined; they begin in column 0."""
    found, name = [], None
    for number, line in enumerate(Path(file).read_text("utf-8").split("\n"), 1):
        if match := re.match(r"(?:\w[\w ]*[ *])?(\w+)\(", line):
            name = match[1] if match[1] != "BPF_PROG" else line[match.end():].split(",")[0]
            start = number
        if line == "{" and name:
            found.append((start, name))
    return found


def function_at(file, line):
    return next((name for start, name in reversed(functions_of(file)) if start <= line), "?")


def print_where(kernel, executed, lines):
    places = Counter()
    for address, times in executed.items():
        file, line, text = kernel.program.line_of(address)
        place = f"{Path(file).name}: {function_at(file, line)}"
        places[f"{place}:{line}: {text}" if lines else place] += times
    for place, times in places.most_common():
        print(f"{times:6} {place}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("object")
    parser.add_argument("--where", metavar="CASE")
    parser.add_argument("--lines", action="store_true", help="with --where: by line")
    options = parser.parse_args()
    if not options.where:
        print(f"{'case':36}{'issue':>7}{'completion':>12}")
        for case in cases():
            _, issue, completion = measure(options.object, case)
            print(f"{case.name:36}{issue.total() or '-':>7}{completion.total():>12}")
        return
    kernel, issue, completion = measure(options.object, next(case for case in cases() if case.name == options.where))
    for name, executed in (("issue", issue), ("completion", completion)):
        print(f"{name}: {executed.total()}")
        print_where(kernel, executed, options.lines)


if __name__ == "__main__":
    main()
