#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How many instructions does an I/O cost? count.py OBJECT [CASE]: each case, or by source line of one."""
import signal
import sys
from collections import Counter
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


def sector(number):
    return 123456 + number * 8000


def weight(kernel, address):
    one = kernel.program.instructions[address]
    if one.opcode == CALL and not one.function and not one.kernel_function:
        return WEIGHTS.get(one.immediate, 1)
    return GUARDED_LOAD if address in kernel.interpreter.guarded else 1


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
        kernel.request(case.operation, case.path, sector(number), case.bytes, kernel.now_ns - QUEUED_NS)
        if case.issue_seen:
            issue = kernel.run("on_issue")
        kernel.start()
        kernel.now_ns += DEVICE_NS
        completion = kernel.run("on_complete" if case.issue_seen else "on_complete_only", 0, case.bytes)
    return kernel, issue, completion


def print_lines(program, executed):
    places = Counter()
    for address, times in executed.items():
        places[":".join(map(str, program.line_of(address)))] += times
    for place, times in places.most_common():
        print(f"{times:6} {place}")


def main():
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # of `| head`
    if len(sys.argv) == 2:
        print(HEADING)
    for case in cases():
        if len(sys.argv) == 2:
            print(row(case, *measure(sys.argv[1], case)))
        elif case.name == sys.argv[2]:
            kernel, *both = measure(sys.argv[1], case)
            for name, executed in zip(("issue", "completion"), both):
                print(f"{name}: {executed.total()}")
                print_lines(kernel.program, executed)


if __name__ == "__main__":
    main()
