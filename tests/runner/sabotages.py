# SPDX-License-Identifier: Apache-2.0
"""Would the tests notice? Applies one sabotage to a copy of the tree, rebuilds what its test needs, and runs that test.

tests/mutations/AREA.txt is the table of an area: paragraphs of "key: value" lines.
  name, what    what breaks
  file, edit    a sed command (basic expressions) that changes or deletes exactly one line of the file; edit may be repeated
  kill          the test that must fail: unit.NAME, kernel.NAME, ... or a scenario of the matrix: vm SCENARIO KERNEL
  tier          ci, or long if left out

The copy is an overlay in a mount namespace of its own: the tree and its builds appear in their usual place, changes
go to memory, and all of it disappears with the process. So the build is incremental, and nothing is cleaned up.
Exit code: 0 killed; 1 survived, did not apply, or did not build.
"""
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEYS = ("name", "what", "tier", "file", "edit", "kill")
FIRST_REASON = re.compile(r"FAIL: .*|^ +FAIL .*|^FAIL \S.*|\[  FAILED  \] \S+|[A-Za-z]*Error: .*|SIG[A-Z]+", re.M)
# One failure is enough: a test that uses rig.Check ends at once, a unit test after the case that failed.
ENDS_EARLY = {"SSDPULSE_TEST_FIRST_FAILURE_ENDS": "1", "GTEST_FAIL_FAST": "1"}
# What must be rebuilt for a test; a unit test is its own target, and the rest need everything but those.
EVERYTHING_BUT_UNIT_TESTS = ["daemon/all", "deploy/all", "tests/kernel/all", "tests/system/all"]


@dataclass
class Sabotage:
    area: str
    name: str
    what: str
    file: str
    kill: str
    edits: list
    tier: str = "long"


def load(root, area="*"):
    """All sabotages, by area and name."""
    return [_parse(path.stem, paragraph) for path in sorted((root / "tests/mutations").glob(f"{area}.txt"))
            for paragraph in re.split(r"\n{2,}", path.read_text("utf-8")) if not _is_comment(paragraph)]


def _is_comment(paragraph):
    return all(line.startswith("#") or not line for line in paragraph.splitlines())


def _parse(area, paragraph):
    lines = [line.split(":", 1) for line in paragraph.splitlines() if line]
    given = {key: value.removeprefix(" ") for key, value in lines if key != "edit"}
    edits = [value.removeprefix(" ") for key, value in lines if key == "edit"]
    unknown = {key for key, _ in lines} - set(KEYS)
    if unknown or not edits or not all(given.get(key) for key in ("name", "what", "file", "kill")):
        sys.exit(f"tests/mutations/{area}.txt: not a complete sabotage, or unknown keys {unknown}: {given}")
    return Sabotage(area, given["name"], given["what"], given["file"], given["kill"], edits, given.get("tier", "long"))


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **options)


def enter_copy():
    """From here on this process and its children see an overlay in the tree's place, and no other processes."""
    if os.environ.get("SSDPULSE_SABOTAGE_COPY") != "1":
        os.environ["SSDPULSE_SABOTAGE_COPY"] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child",
                              "--mount-proc", sys.executable, *sys.argv])
    memory = Path(os.environ["SSDPULSE_TEST_STATE"])
    for command in (["mount", "-t", "tmpfs", "ssdpulse-sabotage", memory],
                    ["mkdir", memory / "upper", memory / "work"],
                    ["mount", "-t", "overlay", "ssdpulse-sabotage", "-o",
                     f"lowerdir={ROOT},upperdir={memory}/upper,workdir={memory}/work", ROOT],
                    # The inner test command cleans up only its own tests.
                    ["mount", "-t", "tmpfs", "ssdpulse-sabotage", ROOT / "build-tests/state"]):
        done = run(*command)
        if done.returncode != 0:
            sys.exit(f"FAIL: a copy of the tree needs root and overlayfs: {' '.join(map(str, command))}: {done.stdout}")
    os.chdir(ROOT)


def edited(text, edit):
    """(the text after a sed command, why it does not apply or nothing)"""
    done = subprocess.run(["sed", edit], check=False, input=text, capture_output=True, encoding="utf-8")
    if done.returncode != 0:
        return text, done.stderr.strip()
    return done.stdout, "" if _lines_changed(text, done.stdout) == 1 else f"does not change exactly one line: {edit}"


def _lines_changed(before, after):
    """How many lines of `before` are changed or gone, with those between the first and the last of them."""
    before, after = before.splitlines(), after.splitlines()
    same = len(os.path.commonprefix([before, after]))
    before, after = before[same:], after[same:]
    return len(before) - len(os.path.commonprefix([before[::-1], after[::-1]]))


def apply(sabotage):
    """Why it does not apply, or nothing."""
    file = ROOT / sabotage.file
    for edit in sabotage.edits:
        before = file.read_text("utf-8")
        after, why = edited(before, edit)
        if why:
            return f"{sabotage.file}: {why}"
        file.write_text(after, "utf-8")
        print("\n".join(re.findall(r"^[<>].*", run("diff", "-", file, input=before).stdout, re.M)))
    return ""


def build(kill):
    if kill.startswith("static."):
        return run("true")
    targets = [kill.removeprefix("unit.")] if kill.startswith("unit.") else \
        ["ssdpulse"] if kill.startswith("vm ") else EVERYTHING_BUT_UNIT_TESTS
    # A sabotage may leave something unused: a mere warning must not save it.
    return run("tests/lib/build.sh", "gcc", *targets, env={**os.environ, "SSDPULSE_EXTRA_FLAGS": "-Wno-error"})


def killer(kill):
    """The command that must fail, and where its output is."""
    if kill.startswith("vm "):
        _, scenario, kernel = kill.split()
        return ["tests/vm/run.sh", kernel, scenario], None
    return ["tests/run.sh", "--no-build", kill], ROOT / "build-tests/logs" / f"{kill}.log"


def judge(sabotage):
    """0 if its test notices it."""
    if why := apply(sabotage):
        print(f"FAIL: {sabotage.name}: {why}")
        return 1
    built = build(sabotage.kill)
    if built.returncode != 0:
        print("\n".join(built.stdout.splitlines()[-30:]), f"\nFAIL: {sabotage.name} does not build")
        return 1
    command, log = killer(sabotage.kill)
    # A scenario of the matrix collects what its guest left after a failure.
    done = run(*command, env={**os.environ, **({} if sabotage.kill.startswith("vm ") else ENDS_EARLY)})
    if done.returncode == 1:
        output = log.read_text("utf-8", errors="replace") if log and log.exists() else done.stdout
        reason = FIRST_REASON.search(output)
        print(f"killed by {sabotage.kill}: {reason[0].strip() if reason else '(see its output)'}")
        return 0
    print(done.stdout[-3000:])
    print(f"FAIL: {sabotage.name} survived {sabotage.kill}: {sabotage.what}" if done.returncode == 0 else
          f"FAIL: {sabotage.name}: {sabotage.kill} could not run")
    return 1


def main():
    if len(sys.argv) != 2 or sys.argv[1].count(".") != 1:
        sys.exit("usage: tests/run.sh mutate.AREA.NAME")
    area, name = sys.argv[1].split(".")
    [sabotage] = [one for one in load(ROOT, area) if one.name == name] or sys.exit(f"no sabotage {area}.{name}")
    enter_copy()
    return judge(sabotage)


if __name__ == "__main__":
    sys.exit(main())
