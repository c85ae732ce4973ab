#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Do the last lines of a run say what failed, and what was right at the second try only?

Of CI's output perhaps only the end is kept. The tests of this run are made up.
"""
import contextlib
import io
import os
import sys
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(os.environ.get("SSDPULSE_SOURCE") or Path(__file__).resolve().parents[2])
sys.path.insert(0, str(ROOT / "tests/runner"))
sys.dont_write_bytecode = True

import main  # noqa: E402
from catalogue import Test  # noqa: E402

END = 20  # lines
PASSES = "true"
MOODY = 'test -n "$SSDPULSE_TEST_SECOND_TRY" || { echo "FAIL: a bad moment"; exit 1; }'
WRONG = 'for n in $(seq 60); do echo "word $n"; done; exit 1'
BROKEN = 'echo "first word"; seq 1000; echo "FAIL: it is broken"; exit 1'
failures = 0


def expect(what, true):
    global failures
    print(f"{'ok' if true else 'FAIL:'} {what}")
    failures += not true


class Catalogue:
    """`scripts`: test -> what it does."""

    def __init__(self, scripts):
        self._tests = [Test(name, ["sh", "-c", script]) for name, script in scripts.items()]

    def wants(self, level):
        return bool(self.tests(level))

    def builds(self, _level):
        return []

    def tests(self, level):
        return [test for test in self._tests if test.level == level]


def run(scripts, names=()):
    """(exit code, lines)."""
    arguments = SimpleNamespace(long=False, names=list(names), part=None, no_build=True, jobs=None)
    with contextlib.redirect_stdout(io.StringIO()) as output:
        one = main.Run(Catalogue(scripts), arguments)
        one.everything()
        code = main.close(one, 1)
    return code, output.getvalue().splitlines()


def judge_failures():
    code, lines = run({"static.passes": PASSES, "unit.wrong": WRONG, "kernel.moody": MOODY, "kernel.broken": BROKEN})
    end = "\n".join(lines[-END:])
    expect("exit code", code == 1)
    expect("the count is last", lines[-1] == "2 passed, 2 failed, 0 skipped")
    expect("then the names", lines[-2] == "failed: unit.wrong kernel.broken")
    expect("what is moody", "MOODY, passed at the second try: kernel.moody: at first FAIL: a bad moment (" in end)
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
    expect("and nothing is said of it", not any("MOODY" in line or line.startswith(("failed", "----")) for line in lines))
    code, lines = run({"kernel.moody": MOODY}, ["kernel.moody"])
    expect("a test that was named has one try", code == 1 and lines[-2] == "failed: kernel.moody")


main.WORK = Path(os.environ["SSDPULSE_TEST_STATE"])
main.NEED_ROOT = ()
(main.WORK / "logs").mkdir()
judge_failures()
judge_others()
sys.exit(1 if failures else 0)
