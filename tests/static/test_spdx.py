#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Does every file state its licence in its first line (or second, after a #! or #compdef line), and do those in bpf/
state the one that the kernel's verifier is given? Exempt: data that cannot contain a comment, and documents.
"""
import os
import re
import subprocess
import sys
from fnmatch import fnmatch

EXEMPT = ("*.md", "*.json", "*.png", "LICENSE*", "*.bin", "*.golden", "*.txt.gz", "tests/fixtures/*", ".gitignore", "deploy/debian/*")
KERNEL = "BSD-2-Clause OR GPL-2.0-only"
# The first match applies.
LICENCES = {
    "bpf/*.h": KERNEL,
    "bpf/*.c": KERNEL,
    "bpf/*.py": f"(Apache-2.0|{KERNEL})",
    "tests/*.bpf.[ch]": f"(Apache-2.0|{KERNEL})",
    "tests/kernel/trace/*.h": f"(Apache-2.0|{KERNEL})",
    "*": "Apache-2.0",
}


def flaw(file):
    """The flaw in words; empty if there is none."""
    with open(file, encoding="utf-8", errors="replace") as text:
        lines = text.read(1000).splitlines()
    if not lines:
        return "" if file.endswith(".py") else "empty"
    licence = next(licence for pattern, licence in LICENCES.items() if fnmatch(file, pattern))
    line = next((line for line in lines if not line.startswith(("#!", "#compdef "))), "") or "".join(lines[1:2])
    if re.search(rf"SPDX-License-Identifier: {licence}( \*/| -->)?$", line):
        return ""
    return f"expected SPDX-License-Identifier: {licence}, found: {line}"


def main():
    os.chdir(os.environ.get("SSDPULSE_SOURCE", "."))
    files = subprocess.run(["tests/lib/sources.sh"], check=True, capture_output=True, text=True).stdout.splitlines()
    files = [file for file in files if not any(fnmatch(file, pattern) for pattern in EXEMPT)]
    flaws = [f"{file}: {words}" for file in files if (words := flaw(file))]
    print("\n".join([*flaws, f"{len(files)} files"]))
    if flaws or not files:
        sys.exit("FAIL: licence lines")


main()
