#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the project mention only itself and speak the field's language, and do its pages and headers lead the reader on?

No file names a path of one machine or the host of a package registry; no word of a private vocabulary is in the product
or in a test's name; each relative link of a Markdown file leads to a file; the README is short enough to be read; a
header's first sentence says what its type is, which no question does.
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

# What the product once said in a language of its own, and what to write instead.
PRODUCT = re.compile(r"(?:bpf|daemon|exporters|deploy)/|README\.md$")
WORDS = {
    r"\bk(?:Most|Least)(?:[A-Z]\w*)?\b|\bk(?:Much|Many|Near|Apart)\b": "say of what it is a limit: kMaxSpikes, kMinRecheckInterval",
    r"\bkPatience\b|\bpatience\b|\bkOverdue\b": "say of what it is the timeout or delay: kShutdownTimeout, kStuckAfter",
    r"\b(?:struct|class|enum class|using) (?:Known|Told|Places?|Look|Brief|Glance|Seen|Kept|Beside|Onsets|Timed)\b":
        "say what it is: a state, a row, a slot, a summary, a reading",
    r"\blook(?:_again|_once|_at|_for_\w+)?\(|\w_a_look\b|\bone_look\b|\bAccountLook\b":
        "say what it does: observe(), sample(), evaluate(), check(), read_*(), *_slow_path()",
    r"\bbrief_of\b|\bglance\b": "write summarize(), summaries()",
    r"\b(?:give_(?:up|back)|take_back)\w*": "say what happens then: exit_with(), abandon(), mark_missed(), release_cgroups()",
    r"\btold\b(?! apart| otherwise)|\btold_|_told\b|untold|UNTOLD|\btells of\b": "write reported, known, logged, pending",
    r"\bbelieved?\b": "write accepted, plausible, trusted",
    r"\bhomeless\b": "write unplaced",
    r"\banew\b|\bmend(?:s|ed)?\b": "write again, restarts, fixes",
    r"\bLatencyWords\b|\bquantile_word\b|\blatency_words_of\b": "write LatencyBuckets, quantile_bucket(), latency_buckets_of()",
    r"\b(?:latency|duration|factor|count|size|clock|minute)_words\b": "call a function that makes text format_*",
    r"\bflaw_of_\w+": "call it validate_*: it returns the error",
    r"\b(?:kept_key|KeptKey)\b": "write persistent_key",
    r"\b(?:DevicePast|PastAge|read_pasts|telling_errors|something_\w+)\b":
        "write DeviceEvidence, EvidenceRefresh, read_history_evidence(), device_errors(), has_*()",
    r"\b(?:\w+_)?beside_(?:discards?|flush(?:es)?)\b|\busual_p99\b|\bnormal_write_amplification\b":
        "write `during` for what else was in flight, `baseline` for what is usual",
}
MESSAGES = {r'^(?!\s*//).*"[^"]*(?<![Tt]here )\b(?:is|are) no (?!longer\b)\w+': "write 'is not a ...', as a native speaker does"}
TEST_NAMES = {r"^TEST(?:_F|_P)?\(\w+, \w*(?:[tT]old|Tells|_tells|tells_|[bB]eliev|[aA]new|[lL]ook(?!ed_?[uU]p)|IsNone)":
              "say what holds, in common terms: reports, accepts, checks, restarts"}


def words_to_replace(file, line):
    """Each word of the private vocabulary in the line, and what to write instead."""
    patterns = {}
    if PRODUCT.match(file):
        patterns = WORDS | (MESSAGES if file.endswith((".cpp", ".h")) else {})
    elif file.startswith("tests/unit/"):
        patterns = TEST_NAMES
    yield from ((found[0], instead) for pattern, instead in patterns.items() if (found := re.search(pattern, line)))


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
                for word, instead in words_to_replace(file, line):
                    print(f"{file}:{number}: not '{word.strip()[-60:]}': {instead}")
                    found += 1
    files = [file for file in files if file]
    for flaw in itertools.chain(flaws_of_pages(files), flaws_of_headers(files)):
        print(flaw)
        found += 1
    if found:
        sys.exit("FAIL: forbidden texts or words, dead links, headers that begin with a question, or a long README")


main()
