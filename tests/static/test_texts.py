#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the project mention only itself, do the links between its pages work, and does each header begin with what it has?

No file names a path of one machine or the host of a package registry; each relative link of a Markdown file leads to a file;
the README is short enough to be read; a header's first sentence says what its type is, which no question does.
"""
import itertools
import re
import subprocess
import sys
from pathlib import Path

README_LINES = 150

FORBIDDEN = {
    r"(?<![\w.])/(?:work|home|root|Users)/\w": "a path of one machine",
    r"https?://[\w.-]*(?:debian\.(?:org|net)|ubuntu\.com|pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|crates\.io"
    r"|proxy\.golang\.org|docker\.io|ghcr\.io|quay\.io)[/\w]": "the host of a package registry",
}
# systemd's own name for what a unit may not see; Debian's own name of a format.
ALLOWED = re.compile(r"^(?:(?:ProtectHome|InaccessiblePaths)=|Format: https://www.debian.org/doc/packaging-manuals/)")


def flaws_of_pages(files):
    for file in files:
        if file.endswith(".md"):
            for link in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", Path(file).read_text("utf-8")):
                if not (Path(file).parent / link).exists():
                    yield f"{file}: no file {link}"
    if (lines := len(Path("README.md").read_text("utf-8").splitlines())) > README_LINES:
        yield f"README.md: {lines} lines, more than {README_LINES}"


def flaws_of_headers(files):
    for file in files:
        if re.match(r"(daemon|exporters|bpf)/.*\.h$", file):
            comment = Path(file).read_text("utf-8").partition("\n")[2].partition("#pragma once")[0]
            first = re.match(r"[^.?]*(?:[.?](?!\s)[^.?]*)*[.?:]", comment)
            if not first or first[0].endswith("?"):
                yield f"{file}: begins with a question, or with nothing, instead of what the type is"


def main():
    files = subprocess.run(["tests/lib/sources.sh"], check=True, capture_output=True, text=True).stdout.split("\n")
    found = 0
    for file in filter(None, files):
        if file == "tests/static/test_texts.py":
            continue
        with open(file, encoding="utf-8", errors="replace") as lines:
            for number, line in enumerate(lines, 1):
                for pattern, what in FORBIDDEN.items():
                    if re.search(pattern, line) and not ALLOWED.match(line):
                        print(f"{file}:{number}: {what}: {line.strip()[:100]}")
                        found += 1
    files = [file for file in files if file]
    for flaw in itertools.chain(flaws_of_pages(files), flaws_of_headers(files)):
        print(flaw)
        found += 1
    if found:
        sys.exit("FAIL: forbidden texts, dead links, headers that begin with a question, or a long README")


main()
