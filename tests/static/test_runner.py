#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Do the last lines of a run say what failed, and what passed only at the second try? Does what later levels need run
alongside guests, once, and nothing alongside a second try? Is CPU time counted?

CI may keep only the end of the output. The tests of these runs are made up.
"""
import contextlib
import io
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(os.environ.get("SSDPULSE_SOURCE") or Path(__file__).resolve().parents[2])
sys.path.insert(0, str(ROOT / "tests/runner"))
sys.dont_write_bytecode = True

import main  # noqa: E402
from catalogue import Catalogue as RealCatalogue  # noqa: E402
from catalogue import Test  # noqa: E402

END = 20  # lines
PASSES = "true"
BUSY = "python3 -c 'import time\nwhile time.process_time() < 0.55: pass'; true"
AGAIN = "echo 'AGAIN 5.10 load: the emulator died'"
FLAKY = 'test -n "$SSDPULSE_TEST_SECOND_TRY" || { echo "FAIL: a bad moment"; exit 1; }'
WRONG = 'for n in $(seq 60); do echo "word $n"; done; exit 1'
BROKEN = 'echo "first word"; seq 1000; echo "FAIL: it is broken"; exit 1'
failures = 0


def expect(what, true):
    global failures
    print(f"{'ok' if true else 'FAIL:'} {what}")
    failures += not true


class Catalogue:
    """`scripts`: test -> what it does; a name ending in ! marks a test that runs alone. The sanitizers' build is a
    script, too."""

    def __init__(self, scripts):
        self._tests = [Test(name.rstrip("!"), ["sh", "-c", script], 60, name.endswith("!")) for name, script in scripts.items()]

    def wants(self, level):
        return bool(self.tests(level))

    def builds(self, level):
        return ["address"] if level == "sanitize" and self.wants(level) else []

    def build(self, kind):
        return next(test for test in self._tests if test.name == f"build.{kind}")

    def tests(self, level):
        return [test for test in self._tests if test.level == level and level != "build"]


def run(scripts, names=(), no_build=True):
    """(exit code, lines)."""
    arguments = SimpleNamespace(long=False, names=list(names), part=None, no_build=no_build, jobs=None)
    with contextlib.redirect_stdout(io.StringIO()) as output:
        one = main.Run(Catalogue(scripts), arguments)
        one.everything()
        code = main.close(one, 1)
    return code, output.getvalue().splitlines()


def judge_failures():
    code, lines = run({"static.passes": PASSES, "unit.wrong": WRONG, "kernel.flaky": FLAKY, "kernel.broken": BROKEN})
    end = "\n".join(lines[-END:])
    expect("exit code", code == 1)
    expect("the count is last", lines[-1] == "2 passed, 2 failed, 0 skipped")
    expect("then the names", lines[-2] == "failed: unit.wrong kernel.broken")
    expect("what is flaky", "FLAKY, passed at the second try: kernel.flaky: at first FAIL: a bad moment (" in end)
    expect("what failed twice", "failed at both tries: kernel.broken: at first FAIL: it is broken (" in end)
    expect("unit tests have no second try", not any(line.startswith("AGAIN unit.") for line in lines))
    begin = lines.index("---- output of unit.wrong (exit code 1):") + 1
    expect("the whole output", lines[begin:begin + 60] == [f"word {n}" for n in range(1, 61)])
    rest = lines[lines.index("---- output of kernel.broken (exit code 1):") + 1:]
    expect("of a long output begin and end, and how much is left out", rest[0] == "first word" and
           rest[100].startswith("... 602 more lines in ") and rest[400] == "FAIL: it is broken")


def judge_others():
    code, lines = run({"static.passes": PASSES})
    expect("nothing failed", code == 0 and lines[-1] == "1 passed, 0 failed, 0 skipped")
    expect("and nothing is said of it", not any("FLAKY" in line or line.startswith(("failed", "----")) for line in lines))
    code, lines = run({"vm.matrix": AGAIN})
    expect("what was tried again within a test", code == 0 and
           lines[-2] == "tried again within vm.matrix: 5.10 load: the emulator died")
    code, lines = run({"kernel.flaky": FLAKY}, ["kernel.flaky"])
    expect("a test that was named has one try", code == 1 and lines[-2] == "failed: kernel.flaky")


def judge_cpu_time():
    """Waiting takes none, what a descendant does counts; of the level all its tests do."""
    _, lines = run({"unit.waits": "sleep 0.3", "unit.works": BUSY, "unit.works_too": BUSY})
    cpu = {match[1]: float(match[2]) for line in lines if (match := re.match(r"(?:pass )? +(unit\S*) .* ([0-9.]+) s CPU", line))}
    expect(f"CPU seconds {cpu}", cpu["unit.waits"] < 0.3 and all(0.5 <= cpu[name] < 1 for name in ("unit.works", "unit.works_too")))
    expect("CPU seconds of the level", 1 <= cpu["unit"] < 2)


def judge_what_runs_aside():
    """The guests wait for it; a sabotage that needs the host for itself waits for its level."""
    said = main.WORK / "said"
    tell, heard = f"echo %s >>{said}", f"n=0; until grep -q %s {said}; do n=$((n + 1)); [ $n -lt 600 ] || exit 1; sleep 0.05; done"
    # Where the scheduler groups sessions, this one's group weighs least.
    weighs_least = ("n=0; while grep -q autogroup- /proc/self/autogroup && ! grep -q 'nice 19' /proc/self/autogroup; "
                    "do n=$((n + 1)); [ $n -lt 100 ] || exit 1; sleep 0.05; done")
    scripts = {
        "vm.matrix!": f"{heard % 'tried'}; {tell % 'guests'}",
        "build.address": f"{weighs_least}; chrt -p $$ | grep -q SCHED_IDLE || exit 1; {tell % 'compiled'}",
        "sanitize.one": tell % "sanitized",
        "mutate.area.unit": tell % "tried",
        "mutate.area.kernel!": tell % "alone",
    }
    code, lines = run(scripts, no_build=False)
    expect("what later levels need runs beside guests", code == 0 and lines[-1].startswith("6 passed,"))
    expect("each once, in order", said.read_text().split() == ["compiled", "tried", "guests", "sanitized", "alone"])
    said.write_text("")
    scripts |= {"vm.matrix!": f'test -n "$SSDPULSE_TEST_SECOND_TRY" && {tell % "again"} || {{ {heard % "begun"}; exit 1; }}',
                "mutate.area.unit": f"{tell % 'begun'}; sleep 0.5; {tell % 'ended'}"}
    code, lines = run(scripts, no_build=False)
    expect("nothing runs beside a second try", code == 0 and said.read_text().split()[:4] == ["compiled", "begun", "ended", "again"])


def judge_a_file_that_cannot_run():
    """It is reported: a test that nobody runs looks as if it passed."""
    folder = main.WORK / "tree/tests/kernel"
    folder.mkdir(parents=True)
    (folder / "test_forgotten.py").write_text("")
    try:
        RealCatalogue(main.WORK / "tree").tests("kernel")
        said = ""
    except SystemExit as error:
        said = str(error)
    expect(f"a test that is not executable: {said}", "test_forgotten.py is a test that is not executable" in said)


main.Run._install = staticmethod(lambda: ["true"])
main.WORK = Path(os.environ["SSDPULSE_TEST_STATE"])
main.NEED_ROOT = ()
(main.WORK / "logs").mkdir()
judge_failures()
judge_others()
judge_cpu_time()
judge_what_runs_aside()
judge_a_file_that_cannot_run()
sys.exit(1 if failures else 0)
