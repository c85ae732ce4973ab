# SPDX-License-Identifier: Apache-2.0
"""Which tests are there? Each level lists its tests; nothing is run here.

A line "# KEY: VALUE" in a test file sets: `timeout` and `timeout-long` (seconds), `tier: long` (only in the long tier,
or when named), `alone: REASON` (nothing else runs at the same time).
"""
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import sabotages

# Levels in order. Those of one batch run side by side: the guest of `package` is one more besides those of `vm`.
BATCHES = (("static",), ("build",), ("unit",), ("kernel",), ("system",), ("package", "vm"), ("sanitize",), ("fuzz",), ("flash",),
           ("mutate",))
LEVELS = tuple(level for batch in BATCHES for level in batch)
# Daemons, their clients and guests mostly wait: during these levels, whenever a CPU is idle, what `sanitize` needs is
# compiled, and sabotages that need nothing from the host are tried.
IDLE_LEVELS = ("system", "package", "vm")
# How many tests of a batch run at once. Those of kernel, system and package mostly wait; the matrix has jobs of its own.
JOBS = {"static": 2, "unit": 2, "sanitize": 2, "fuzz": 2, "kernel": 3, "system": 5, "package": 2, "flash": 1, "mutate": 2}
TIMEOUT, LONG_TIMEOUT = 300, 14400
NEED_ROOT = ("kernel", "system", "package", "vm")
SANITIZERS = {"address": "address", "thread": "thread"}


@dataclass
class Test:
    name: str
    command: list
    timeout: int = TIMEOUT
    alone: bool = False
    environment: dict = field(default_factory=dict)

    @property
    def level(self):
        return self.name.split(".")[0]


class Catalogue:
    """`names`: what was requested; everything if empty; "-NAME" leaves one test out. `long`: the long tier."""

    def __init__(self, root, names=(), long=False):
        self.root, self.long = Path(root), long
        self.names = [name for name in names if not name.startswith("-")]
        self.left_out = [name.removeprefix("-") for name in names if name.startswith("-")]

    def wants(self, name):
        """Was this level or test requested? A level counts if any test of it was."""
        return name not in self.left_out and (not self.names or any(
            name == asked or name.startswith(asked + ".") or asked.startswith(name + ".") for asked in self.names))

    def named(self, name):
        return name in self.names

    def builds(self, level):
        """The builds that a level needs. clang compiles the sanitizers' build anyway; its own is in the long tier."""
        if level == "build":
            return ["gcc", *(["clang"] if self.long or self.named("build.clang") else [])]
        if level == "sanitize":
            return [kind for kind in SANITIZERS
                    if self.wants(f"sanitize.{kind}") and (kind == "address" or self.long or self.names)]
        return {"fuzz": ["address"], "static": []}.get(level, ["gcc"])

    def build(self, kind):
        """The test that builds it. If tests of a sanitizer's build were named, only those are built."""
        prefix = f"sanitize.{kind}."
        targets = [name.removeprefix(prefix) for name in self.names if name.startswith(prefix)]
        return Test(f"build.{kind}", ["tests/lib/build.sh", kind, *targets], 3600)

    def tests(self, level):
        found = {"build": lambda: [], "unit": lambda: self._unit("unit", "gcc"), "sanitize": self._sanitized,
                 "vm": self._machines, "mutate": self._sabotages}.get(level, lambda: self._directory(level))()
        return [test for test in found if self.wants(test.name)]

    def _unit(self, prefix, kind):
        """Every unit test that ctest knows in this build."""
        build = self.root / "build-tests" / kind
        if not (build / "build.ninja").exists():
            return []
        label = [] if kind == "gcc" or self.long or any(n.startswith(prefix + ".") for n in self.names) else ["-L", kind]
        listing = subprocess.run(["ctest", "--test-dir", build, "-N", *label], text=True, capture_output=True, check=True)
        # This version of ThreadSanitizer cannot cope with the address randomisation of newer kernels.
        return [Test(f"{prefix}.{name}",
                     ["setarch", "-R", "ctest", "--test-dir", str(build), "-V", "-R", f"^unit\\.{re.escape(name)}$"],
                     LONG_TIMEOUT if self.long else 600)
                for name in re.findall(r"^ *Test *#\d+: unit\.(\S+)$", listing.stdout, re.M)]

    def _sanitized(self):
        """No test in its long form: what a sanitizer finds takes one pass and not a million, each ten times slower.
        Named in the CI tier, they are as in `unit`."""
        found = [test for kind in self.builds("sanitize") for test in self._unit(f"sanitize.{kind}", kind)]
        options = re.sub(r" ?max_success=\d+", "", os.environ.get("RC_PARAMS", ""))
        for test in found if self.long or not self.names else []:
            test.environment = {"SSDPULSE_TEST_LONG": "", "RC_PARAMS": f"{options} max_success={500 if self.long else 20}"}
        return found

    def _directory(self, level):
        """The scripts tests/LEVEL/test_*. One that is not executable is an error, or nobody would miss it."""
        found = []
        for path in sorted((self.root / "tests" / level).glob("test_*")):
            if path.suffix not in (".py", ".sh"):
                continue
            if not os.access(path, os.X_OK):
                sys.exit(f"{path} is a test that is not executable")
            says = dict(re.findall(r"^# (timeout|timeout-long|tier|alone): (.*)$", path.read_text("utf-8"), re.M))
            name = f"{level}.{path.stem}"
            if says.get("tier") == "long" and not self.long and not self.named(name):
                continue
            default = LONG_TIMEOUT if self.long else TIMEOUT
            limit = int(says.get("timeout-long" if self.long else "timeout", default))
            found.append(Test(name, [str(path)], limit, "alone" in says))
        return found

    def _machines(self):
        """The matrix of virtual machines: in CI one test, in the long tier one for each kernel and each long story."""
        script = str(self.root / "tests/vm/run.sh")
        if not self.long:
            return [Test("vm.matrix", [script], 1800)]
        listing = subprocess.run([script, "--list-long"], text=True, capture_output=True, check=True)
        return [Test(f"vm.{name}", [script, "--long", *arguments.split()], LONG_TIMEOUT, alone=True)
                for name, arguments in (line.split(" ", 1) for line in listing.stdout.splitlines())]

    def _sabotages(self):
        """Those by hand, and the operators that are swapped at random, which use every CPU."""
        everything = self.long or any(name.startswith("mutate.") for name in self.names)
        runner = self.root / "tests/runner"
        return [Test(f"mutate.{sabotage.area}.{sabotage.name}",
                     ["python3", str(runner / "sabotages.py"), f"{sabotage.area}.{sabotage.name}"], 3600,
                     sabotage.kill.split(".")[0] not in ("unit", "static"))
                for sabotage in sabotages.load(self.root) if everything or sabotage.tier == "ci"] + \
            ([Test("mutate.operators", ["python3", str(runner / "operators.py")], LONG_TIMEOUT, True)] if everything else [])
