# SPDX-License-Identifier: Apache-2.0
"""How much of the C++ do the unit tests hold fast? Breaks it in hundreds of small ways at random, and counts those noticed.

A mutant is one place in a function of daemon/ or exporters/ with another operator, number or condition, or without a
statement. They are in a few files drawn at random, so that a run compiles only those. All are compiled at once, each
behind a question to the environment, in the overlay that sabotages use; those that do not compile are taken out again.
One run of each unit test then records which of them it reaches, and each mutant is judged by the tests that reach it,
quickest first, until one fails, or takes three times as long as before, twice: once may be the host's doing.

The seed is the run's (SSDPULSE_TEST_SEED); SSDPULSE_MUTANTS says how many are judged. Exit code: 1 if the share of those
killed is below MIN_KILLED, or more than MAX_LEFT_OUT tests fail without a mutant.
"""
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from sabotages import ENDS_EARLY, ROOT, enter_copy

ROOMS = ("daemon", "exporters")
BUILD = ROOT / "build-tests/gcc"
MIN_KILLED = 60  # percent; 69.7 with seed 20262
FILES = 48  # of some 230
MAX_LEFT_OUT = 3  # tests: a busy host is no reason to judge nothing
TESTS_SEED = "20261"  # CI_SEED of main.py
SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&", "+": "-", "-": "+"}
# What ends an operand, from what binds least to what binds most.
LEVELS = (("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "return", "case", "throw", "else"), ("?", ":"), ("||",),
          ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", ">", "<=", ">="), ("<<", ">>"), ("+", "-"), ("*", "/", "%"))
BINDS = {token: level for level, tokens in enumerate(LEVELS) for token in tokens}
# The house style puts spaces around operators, and around nothing that only looks like one.
TOKEN = re.compile(r"(?<=\s)(?:&&|\|\||[<>=!]=|<<=?|>>=?|[-+*/%&|^]=|[-+*/%&|^<>?:=])(?=\s)|\b(?:return|case|throw|else)\b")
# Literals, comments and what the preprocessor reads, of which nothing is changed.
OPAQUE = re.compile(r"""R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-f])'(?:\\[^'\n]+|[^'\\\n])'|//[^\n]*|/\*.*?\*/|^ *#[^\n]*""",
                    re.S | re.M)
STATEMENT = re.compile(r"^( +)(?!return|throw|static_cast|delete|using|goto)"
                       r"((?:[\w:.*\[\]]|->)+(?:<\w+>)?(?:\(.*\)| [-+*/|&]?= .*);)$", re.M)
# What a mutant asks. The page of those reached is shared, so that a process which ends in any way has recorded them.
HEADER = """#pragma once
#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>
#include <type_traits>
inline const int mutant_on = [] { const char* on = std::getenv("SSDPULSE_MUTANT"); return on ? std::atoi(on) : -1; }();
inline char* const mutants_reached = [] {
  const char* file = std::getenv("SSDPULSE_MUTANTS_REACHED");
  return file ? static_cast<char*>(::mmap(nullptr, SIZE, PROT_WRITE, MAP_SHARED, ::open(file, O_RDWR | O_CLOEXEC), 0)) : nullptr;
}();
constexpr bool mutant(int number) {
  if (std::is_constant_evaluated()) return false;
  if (mutants_reached) mutants_reached[number] = 1;
  return number == mutant_on;
}
"""


@dataclass(frozen=True)
class Mutant:
    kind: str
    file: Path
    line: int
    begin: int
    end: int
    old: str
    new: str
    code: str  # with @ where it asks

    def __str__(self):
        old, new = (" ".join(text.split()) for text in (self.old, self.new))
        return f"{self.file.relative_to(ROOT)}:{self.line}: {old}  ->  {new or '(nothing)'}"


def functions(masked):
    """(begin, end, header) of what looks like a function by its indentation."""
    begin, opened, at = None, False, 0
    for line in masked.splitlines(keepends=True):
        text = line.rstrip()
        if begin is None and re.match(r"(?!namespace|using|struct|class|enum)[A-Za-z\[]", text):
            begin, opened, body = at, False, at
        if begin is not None:
            if not opened and text.endswith("{"):
                opened, body = True, at + len(line)
            ends = text.startswith("}") if opened else text.endswith((";", "}"))
            if ends:
                if text == "}" if opened else text.endswith("}") and "(" in text:
                    yield begin, at + len(text), masked[begin:body if opened else at + len(text)]
                begin = None
        at += len(line)


def operand(masked, tokens, at, step, binds):
    """Where the operand that ends (step -1) or begins (step 1) at `at` has its other end; None if that is unclear."""
    opening, closing = ("([", ")]") if step > 0 else (")]", "([")
    depth = 0
    while 0 <= at < len(masked):
        char = masked[at]
        if char in opening or (char == "{" and step > 0 and masked[at - 1] not in " \n") or (
                char == "}" and step < 0 and masked[at + 1] != "\n"):
            depth += 1
        elif char in closing or char in "{}":
            if depth == 0:
                return at
            depth -= 1
        elif depth == 0 and char in ",;":
            return at
        elif depth == 0 and at in tokens and (tokens[at] < binds or (step > 0 and tokens[at] == binds)):
            return at
        at += step
    return None


def places(file):
    """All mutants of a file."""
    text = file.read_text("utf-8")
    masked = OPAQUE.sub(lambda found: re.sub(r"[^\n]", '"' if found[0][0] in "\"R'" else "\1", found[0]), text)
    tokens = list(TOKEN.finditer(masked))
    begins, ends = {one.start(): BINDS[one[0]] for one in tokens}, {one.end() - 1: BINDS[one[0]] for one in tokens}
    found = []

    def add(kind, begin, end, new, code="(@ ? ({new}) : ({old}))"):
        old = text[begin:end]
        if "\1" not in masked[begin:end] and "constexpr" not in text[text.rfind("\n", 0, begin):text.find("\n", end)]:
            found.append(Mutant(kind, file, text.count("\n", 0, begin) + 1, begin, end, old, new,
                                code.replace("{new}", new).replace("{old}", old)))

    for first, last, header in functions(masked):
        for one in TOKEN.finditer(masked, first, last):
            if one[0] in SWAPS:
                left = operand(masked, ends, one.start() - 1, -1, BINDS[one[0]])
                right = operand(masked, begins, one.end(), 1, BINDS[one[0]])
                if left and right and not (one[0] == "+" and '"' in masked[left:right]):
                    left += 1 + len(masked[left + 1:right]) - len(masked[left + 1:right].lstrip())
                    right = left + len(masked[left:right].rstrip())
                    add(one[0], left, right, text[left:one.start()] + SWAPS[one[0]] + text[one.end():right])
        for one in re.compile(r"(?<![<\w])(true|false)\b").finditer(masked, first, last):
            add("truth", *one.span(), "false" if one[1] == "true" else "true")
        for one in re.compile(r"(?<![\w.'<\"])\d+(?![\w.'>])").finditer(masked, first, last):
            add("number", *one.span(), str(int(one[0]) + 1))
            add("number", *one.span(), str(int(one[0]) - 1))
        for one in re.compile(r"(\+\+|--)([A-Za-z_](?:[\w.]|->|\[\w+\])*)(?=[;),])").finditer(masked, first, last):
            add("step", *one.span(), ("--" if one[1] == "++" else "++") + one[2])
        for one in re.compile(r"\b(?:if|while) \(((?:(?! = )[^;\n])*)\) \{$", re.M).finditer(masked, first, last):
            add("condition", *one.span(1), f"!({text[one.start(1):one.end(1)]})", "@ != !!({old})")
        for one in STATEMENT.finditer(masked, first, last):
            before = masked[:one.start()].rstrip("\1 \n")[-1]
            if before in ";{}" and one[2].count("(") == one[2].count(")"):
                add("statement", *one.span(2), "", "if (!@) { {old} }")
                if before != "{" and one[1] == "  ":
                    # A constructor has no type before its name.
                    leaves = "return;" if header.startswith("void ") or " " not in header.split("(")[0] else "return {};"
                    add("return", *one.span(2), leaves, "if (@) { {new} } {old}")
    return found


def pick(count, rng):
    """As many of each kind, in the order in which they are judged; no two overlap."""
    kinds, chosen, used = defaultdict(list), [], defaultdict(list)
    files = sorted(file for room in ROOMS for file in (ROOT / room).rglob("*.cpp"))
    for file in rng.sample(files, FILES):
        for place in places(file):
            kinds[place.kind].append(place)
    print(f"{sum(map(len, kinds.values()))} places: {', '.join(f'{len(of)} {kind}' for kind, of in sorted(kinds.items()))}")
    for of in kinds.values():
        rng.shuffle(of)
    while len(chosen) < count and any(kinds.values()):
        of = kinds[rng.choice(sorted(kind for kind in kinds if kinds[kind]))]
        one = of.pop()
        if all(one.end <= other.begin or other.end <= one.begin for other in used[one.file]):
            used[one.file].append(one)
            chosen.append(one)
    return chosen


def write(files, mutants, originals):
    for file in files:
        text = originals.setdefault(file, file.read_text("utf-8"))
        for number, one in sorted(mutants.items(), key=lambda item: -item[1].begin):
            if one.file == file:
                # Lines keep their numbers, for the compiler's messages.
                code = one.code.replace("@", f"mutant({number})").replace("\n", " ") + "\n" * one.old.count("\n")
                text = text[:one.begin] + code + text[one.end:]
        file.write_text(f'#include "{ROOT}/mutant.h" {text}' if text.startswith("//") else text, "utf-8")


def compile_all(mutants, tests):
    """Takes out those that do not compile, and returns them."""
    (ROOT / "mutant.h").write_text(HEADER.replace("SIZE", str(len(mutants))), "utf-8")
    originals, refused = {}, []
    environment = {**os.environ, "SSDPULSE_EXTRA_FLAGS": "-w -Wno-narrowing -O1 -g0", "CCACHE_READONLY": "1", "NINJAFLAGS": ""}
    files = {one.file for one in mutants.values()}
    while True:
        write(files, mutants, originals)
        done = subprocess.run(["tests/lib/build.sh", "gcc", "-k", "0", *tests], check=False, text=True, capture_output=True,
                              env=environment)
        if done.returncode == 0:
            return refused
        lines = defaultdict(set)
        for file, line in re.findall(r"^(\S+?):(\d+):\d+: +(?:error|fatal error|required from)", done.stdout, re.M):
            lines[Path(file)].add(int(line))
        files = {file for file in lines if any(one.file == file for one in mutants.values())}
        for file in files:
            here = {number: one for number, one in mutants.items() if one.file == file}
            wrong = {number for number, one in here.items()
                     if lines[file] & set(range(one.line, one.line + one.old.count("\n") + 1))} or set(here)
            refused += [mutants.pop(number) for number in wrong]
        if not files:
            sys.exit(f"FAIL: the mutants do not build: {done.stdout[-3000:]}")


def passes(test, limit, output=subprocess.DEVNULL, **environment):
    """As nobody, and with bounds: what a mutant does is not known."""
    command = ["timeout", "--kill-after=1", str(limit), "prlimit", f"--as={8 << 30}", f"--fsize={1 << 30}", "--core=0", "setpriv",
               "--reuid=65534", "--regid=65534", "--clear-groups", BUILD / "tests" / test]
    return subprocess.run(command, check=False, cwd=BUILD / "tests/unit", stdin=subprocess.DEVNULL, stdout=output,
                          stderr=subprocess.STDOUT, env={**os.environ, **ENDS_EARLY, **environment}).returncode == 0


def reach(test, count):
    """(seconds, test, the mutants that it reaches); None if it fails without any."""
    page, log = Path(f"/tmp/{test}.reached"), Path(f"/tmp/{test}.log")
    page.write_bytes(bytes(count))
    page.chmod(0o666)
    for _ in range(2):
        began = time.monotonic()
        with open(log, "wb") as output:
            passed = passes(test, 600, output, SSDPULSE_MUTANTS_REACHED=str(page))
        if passed:
            break
    else:
        print(f"left out, as it fails without a mutant: {test}: {log.read_text('utf-8', 'replace')[-1000:]}", flush=True)
        return None
    return time.monotonic() - began, test, {number for number, byte in enumerate(page.read_bytes()) if byte}


def lives(mutant, number, runs):
    """Whether no unit test that reaches it notices. Prints the verdict at once: a run takes long."""
    for seconds, test, reached in runs:
        if number in reached and not any(passes(test, 3 * seconds + 10, SSDPULSE_MUTANT=str(number)) for _ in range(2)):
            print(f"killed by {test}: {mutant}", flush=True)
            return False
    print(f"survived: {mutant}", flush=True)
    return True


def main():
    enter_copy()
    for directory in ("/tmp", "/dev/shm"):
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "ssdpulse-mutants", directory], check=True)
    seed, wanted = os.environ["SSDPULSE_TEST_SEED"], int(os.environ.get("SSDPULSE_MUTANTS", "300"))
    # The tests' own choices are those of CI, with which they pass; the seed chooses the mutants.
    os.environ.update(SSDPULSE_TEST_LONG="", SSDPULSE_TEST_SEED=TESTS_SEED, RC_PARAMS=f"seed={TESTS_SEED}")
    listing = subprocess.run(["ctest", "--test-dir", BUILD, "-N"], check=True, text=True, capture_output=True).stdout
    tests = re.findall(r"^ *Test *#\d+: unit\.(\S+)$", listing, re.M)
    mutants = dict(enumerate(pick(wanted * 3 // 2, random.Random(int(seed)))))
    count, times = len(mutants), [time.monotonic()]
    refused = compile_all(mutants, tests)
    times.append(time.monotonic())
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = sorted(run for run in pool.map(lambda test: reach(test, count), tests) if run)
        if len(tests) - len(runs) > MAX_LEFT_OUT:
            sys.exit(f"FAIL: {len(tests) - len(runs)} tests fail without a mutant")
        times.append(time.monotonic())
        reached = set().union(*(reached for _, _, reached in runs))
        judged = [number for number in mutants if number in reached][:wanted]
        survived = pool.map(lambda number: lives(mutants[number], number, runs), judged)
        survivors = [mutants[number] for number, survives in zip(judged, survived) if survives]
    times.append(time.monotonic())
    for title, of in (("did not compile", refused), ("survived", survivors)):
        print(f"{title}:", *sorted(f"  {one}" for one in of), sep="\n")
    kinds, lost = Counter(mutants[number].kind for number in judged), Counter(one.kind for one in survivors)
    print("killed, by kind:", ", ".join(f"{kind} {number - lost[kind]} of {number}" for kind, number in sorted(kinds.items())))
    share = 100 - 100 * len(survivors) / max(1, len(judged))
    print(f"seed {seed}, {count} mutants: {len(refused)} did not compile, {len(set(mutants) - reached)} are reached by no unit test")
    print(f"of {len(judged)} others {len(judged) - len(survivors)} were killed, {len(survivors)} survived: {share:.1f} % killed")
    build, test, judge = (after - before for before, after in zip(times, times[1:]))
    used = os.times().children_user + os.times().children_system
    print(f"{build:.0f} s to build, {test:.0f} s for the unit tests, {judge:.0f} s for the mutants: {used / max(1, len(judged)):.1f} s "
          "of CPU time a mutant")
    if share < MIN_KILLED:
        sys.exit(f"FAIL: fewer than {MIN_KILLED} % were killed")


if __name__ == "__main__":
    main()
