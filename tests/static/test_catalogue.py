#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Are all texts for people of the terminal, the report and the page in their catalogue (exporters/words), each once, in
sentences of at most 20 words, and is each of them used, by the page with as many values as it has places for?

A literal of the rooms that reads like words is an error; ALLOWED lists what only looks so, and what is for programs. That
C++ names what exists, and gives it its values, the compiler checks.
"""
import json
import re
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "lib"))
import reading_list  # noqa: E402

WORDS = 20  # of a sentence
CATALOGUE = Path("exporters/words")
ROOMS = {
    "terminal": ["exporters/terminal/*.h", "exporters/terminal/*.cpp"],
    "report": ["exporters/report/*.h", "exporters/report/*.cpp"],
    "page": ["exporters/page/*.h", "exporters/page/*.cpp", "exporters/page/assets/*.js", "exporters/page/assets/*.html"],
}
COMMENT = re.compile(r"(?m)^[ \t]*//.*$")
# Their tables say what the fields of an answer mean, for api.schema.json.
FIELDS = re.compile(r"(?m)^constexpr (?:Field<[^\n]*\[\] = \{\n(?s:.*?)\n\};|Object<(?s:.*?)\};)")
# What is no text in any room: markup, entities, codes of a time's format, units and percentiles.
SYMBOLS = re.compile(r"<[^<>]*>|&[a-z]+;|%[A-Za-z]|\b(?:[kMGTP]?B|[num]?s|min|h|C|UTC|p\d[\d.]*)\b")
# What stands before a literal that is compared, a class, a font or an error of ours.
CODE = re.compile(r"(?:\bcase |[=!]= |\bclass: [^,}]*|\bfont = |\bmatchMedia\(|\bError\()`?$")
# What reads like words and is none, or is not for people, by file.
ALLOWED = {
    "exporters/page/assets/app.js": "Esc|Tab",  # keys
    "exporters/page/assets/brush.js": "not comparable|cannot tell",  # verdicts of an answer
    "exporters/page/assets/causes.js": ".*",  # made from daemon/model/spike_cause.h
    "exporters/page/assets/index.html": "light dark|This page needs JavaScript.*|has the first line, and|all numbers\\.",  # nothing fills it in
    "exporters/page/assets/markdown.js": ".*",  # patterns, which are no literals
    "exporters/page/assets/overview.js": "strip quarter|strip day",  # classes
    "exporters/page/history_json.cpp": "It was stamped .*",  # what a field means
    "exporters/page/page_documents.cpp": "Ssdpulse",  # what names of runbooks begin with
    "exporters/page/page_json.h": '"min.*',  # of a schema
    "exporters/report/report_forms.h": "default-src .*",  # a policy for browsers
    "exporters/report/report_heatmap.cpp": r"svg\(<rect .*",
    "exporters/report/report_html.cpp": r"<!doctype .*|</title> <style>.*",
    "exporters/report/report_json.cpp": "last day|few minutes",  # values of interval_from
    "exporters/terminal/top_screen.cpp": "d v t",  # keys
}


def reads_like_words(text):
    plain = " ".join(SYMBOLS.sub(" ", text).split())
    return reading_list.is_for_people(plain, False) or re.fullmatch(r"[A-Z][a-z]{2,}", plain)


def literals(path, source):
    """(line, text) of each that is in a source instead of the catalogue."""
    for at, text in reading_list.texts_in(source, path.suffix):
        is_code = CODE.search(source[source.rfind("\n", 0, at) + 1:at])
        if reads_like_words(text) and not is_code and not re.fullmatch(ALLOWED.get(str(path), "(?!)"), text):
            yield source.count("\n", 0, at) + 1, text


def arguments(script, at):
    """Of the call whose parenthesis opens before `at`."""
    found, begin, closing = [], at, []
    while True:
        sign, inside = script[at], closing[-1] if closing else ""
        if inside and inside in '"`':
            if sign == "\\":
                at += 1
            elif sign == inside:
                closing.pop()
            elif inside == "`" and script.startswith("${", at):
                closing.append("}")
                at += 1
        elif sign in '"`':
            closing.append(sign)
        elif sign in "([{":
            closing.append(")]}"["([{".index(sign)])
        elif sign == inside:
            closing.pop()
        elif not inside and sign in ",)":
            found.append(script[begin:at].strip())
            begin = at + 1
            if sign == ")":
                return found
        at += 1


def uses(source, is_cpp, room):
    """(catalogue, key, how many values) of each use; unknown in C++."""
    if is_cpp:
        for alias, of in re.findall(r"namespace (\w+) = words::(\w+);", source):
            source = re.sub(rf"(?<![:\w]){alias}::k", f"words::{of}::k", source)
        yield from ((of, key[0].lower() + key[1:], None) for of, key in re.findall(r"\bwords::(\w+)::k(\w+)", source))
    for call in () if is_cpp else re.finditer(r"(?<!function )(?<![.\w])text\(", source):
        first, *values = arguments(source, call.end())
        keys = re.findall(r'"(\w+)"', first.rpartition(" ? ")[2])  # one of two, with the same values
        yield from ((room, key, len(values)) for key in keys or ([] if ".dataset." in first else [first]))
    yield from ((room, key, 0) for key in re.findall(r'\bdata-(?:text|label)="(\w+)"', source))


def flaws_of_sources(catalogues):
    used = {catalogue: set() for catalogue in catalogues}
    for room, patterns in ROOMS.items():
        for path in sorted(path for pattern in patterns for path in Path().glob(pattern)):
            source = COMMENT.sub("", path.read_text("utf-8"))
            for line, text in literals(path, FIELDS.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)):
                yield f"{path}:{line}: not in {CATALOGUE}/{room}.json: {text}"
            for catalogue, key, values in uses(source, path.suffix in (".h", ".cpp"), room):
                # A script asks for a text by its key alone: the page's own, or what is shared.
                of = catalogue if values is None or key in catalogues[room] else "shared"
                text = catalogues[of].get(key)
                if text is None or of not in (room, "shared"):
                    yield f"{path}: neither {CATALOGUE}/{room}.json nor shared.json has {key}"
                elif values is not None and text.count("{}") != values:
                    yield f"{path}: {key} has {values} values: {text}"
                used[of].add(key)
    for catalogue, texts in catalogues.items():
        yield from (f"{CATALOGUE}/{catalogue}.json: nothing uses {key}" for key in sorted(texts.keys() - used[catalogue]))


def flaws_of_texts(catalogues):
    where = {}
    for catalogue, texts in catalogues.items():
        for key, text in texts.items():
            for sentence in re.split(r"(?<=[.:;?!])\s", text):
                if len(sentence.split()) > WORDS:
                    yield f"{CATALOGUE}/{catalogue}.json: {key} has a sentence of {len(sentence.split())} words: {sentence}"
            if text in where:
                yield f"{CATALOGUE}: {where[text]} and {catalogue}.{key} have the same text: {text}"
            where[text] = f"{catalogue}.{key}"
    yield from (f"{CATALOGUE}: {key} is in page.json and in shared.json" for key in catalogues["page"] if key in catalogues["shared"])


def main():
    catalogues = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(CATALOGUE.glob("*.json"))}
    if catalogues.keys() != {*ROOMS, "shared"} or min(map(len, catalogues.values())) < 20:
        sys.exit(f"FAIL: a room has no catalogue, or hardly any texts: {', '.join(catalogues)}")
    flaws = [*flaws_of_sources(catalogues), *flaws_of_texts(catalogues)]
    print("\n".join(flaws))
    print(", ".join(f"{len(texts)} texts of {catalogue}" for catalogue, texts in catalogues.items()))
    if flaws:
        sys.exit(f"FAIL: {len(flaws)} texts are not where they belong, or not as they should be")


main()
