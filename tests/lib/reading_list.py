#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints every text for people, for an editor to read in one go: where it is, and the words, by who shows it.

Terminal, page and report have theirs in a catalogue, exporters/words. Elsewhere a text is a literal of two words or more
(`--all`: also single words, such as heads of columns). Values that are put in while the program runs appear as {}. Literals
that follow each other are one text, as the compiler reads them.
"""
import argparse
import re
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
SUBJECTS = {
    "Terminal, page and report": ["exporters/words/shared.json"],
    "Terminal": ["exporters/words/terminal.json", "daemon/cli/*.cpp"],
    "Sentences: what is slow and why": ["daemon/spikes/*.cpp", "daemon/model/spike_cause.h", "daemon/siblings/*.cpp"],
    "Advice: doctor and audit": ["daemon/advice/*.cpp"],
    "Page": ["exporters/words/page.json", "exporters/page/assets/causes.js"],
    "Report": ["exporters/words/report.json", "daemon/compare/*.cpp"],
}
# A comment, or one literal after the other; what follows a backslash ends none.
CPP = re.compile(r'//[^\n]*|/\*.*?\*/|#include[^\n]*|\'(?:\\.|[^\'\\\n])\'|R"\((?P<raw>.*?)\)"|(?P<text>"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*)', re.S)
TEMPLATE = r"\\.|\$\{(?:[^{}`]|`(?:\\.|\$\{[^{}]*\}|[^`\\])*`|\{[^{}]*\})*\}|[^`\\]"  # one may be within another
JS = re.compile(rf'(?<!:)//[^\n]*|/\*.*?\*/|(?P<text>"(?:\\.|[^"\\\n])*")|`(?P<raw>(?:{TEMPLATE})*)`', re.S)
HTML = re.compile(r"<script.*?</script>|<[^>]*?(?:aria-label|title|placeholder|content)=(?P<text>\"[^\"]*\")[^>]*>|<[^>]*>|(?P<raw>[^<]+)", re.S)
JSON = re.compile(r'^  "\w+": (?P<text>"(?:\\.|[^"\\])*"),?(?P<raw>)$', re.M)
WORD = re.compile(r"[A-Za-z][a-z']*")
ESCAPES = {r"\n": " ", r"\t": " ", r'\"': '"', r"\\": "\\"}


def texts_in(source, suffix):
    """(position, words) of each literal."""
    pattern = {".js": JS, ".html": HTML, ".json": JSON}.get(suffix, CPP)
    for match in pattern.finditer(source):
        literal = match["text"] or match["raw"]
        if not literal:
            continue
        if match["text"]:
            literal = re.sub(r'"\s*"', "", literal[1:-1])
        if suffix == ".js":
            literal = re.sub(r"\$\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}", "{}", literal)
        for escape, plain in ESCAPES.items():
            literal = literal.replace(escape, plain)
        yield match.start("text" if match["text"] else "raw"), " ".join(re.sub(r"\{[^{} ]*\}", "{}", literal).split())


def texts(path):
    """(line, words) of each."""
    source = path.read_text("utf-8")
    return ((source.count("\n", 0, at) + 1, text) for at, text in texts_in(source, path.suffix))


def is_for_people(text, all_of_them):
    words = WORD.findall(text.replace("{}", ""))
    # Neither a selector, a path, a query nor a list of options.
    is_code = re.search(r"[=;]\S|::|_|^[-./#]|/api/|\{\} *\{\}$|^[a-z-]+(?: [a-z]+-[a-z-]+)+$", text)
    return len(words) > 1 and " " in text and not is_code or all_of_them and len(words) == 1 and text[:1].isupper() and text.isalpha()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--all", action="store_true", help="also single words")
    options = parser.parse_args()
    for subject, patterns in SUBJECTS.items():
        print(f"\n# {subject}")
        for path in sorted(path for pattern in patterns for path in SOURCE.glob(pattern)):
            found = [(line, text) for line, text in texts(path) if path.suffix == ".json" or is_for_people(text, options.all)]
            if found:
                print(f"\n## {path.relative_to(SOURCE)}\n")
            for line, text in found:
                print(f"{line:5}  {text}")


if __name__ == "__main__":
    main()
