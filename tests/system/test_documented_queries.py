#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Does every query in the documents return something, with native histograms and with classic ones?

Real servers scrape the made-up page, which has every family. A query in a document is code that has a metric of ours and
more than names. One that returns something with one kind of histogram only must have the word "native" or "classic" next
to it (before it in a sentence, behind it in a block), and the query for the other kind in the same paragraph.
"""
import re
import time
from collections import Counter
from pathlib import Path

import dashboards
import made_up
import prometheus
from lib import rig

SOURCE = Path(__file__).resolve().parents[2]
FORMS = ("native", "classic")
OURS = re.compile(r"\b(?:ssdpulse|process)_[a-z]\w*")
NAME_OR_PATTERN = re.compile(r"[\w:*]+")
CONTINUED = re.compile(r"\s*([-+*/)<>]|[=!]=|(and|or|unless|by|without)\b)")
COMPARED = re.compile(r"\{[^{}]*\}|[<>]=?|[=!]=")
LITERAL = re.compile(r"^\.Li (\S+(?: \S+)*?)(?: [.,:;])?$", re.M)
SECONDS_OF_SCRAPES = 15


def documents():
    yield from (SOURCE / name for name in ("README.md", "CHANGELOG.md"))
    for pattern in ("docs/*.md", "runbooks/*.md", "man/*"):
        yield from sorted((SOURCE / "deploy").glob(pattern))


def form_in(words):
    """The only form that these words are about; "" if they name both or none."""
    named = [form for form in FORMS if form in words.lower()]
    return named[0] if len(named) == 1 else ""


def queries_of_block(lines):
    """(query, form) of an indented block: a query continues on lines that begin with an operator."""
    found = []
    for line in lines:
        code, _, comment = line.partition(" # ")
        if found and CONTINUED.match(code):
            found[-1] = f"{found[-1][0]} {code.strip()}", found[-1][1] or form_in(comment)
        else:
            found.append((code.strip(), form_in(comment)))
    return found


def queries_of_sentences(text):
    """(query, form): the form is named between the code before and this one, in this list item or sentence."""
    end = 0
    for code in re.finditer(r"`([^`]+)`", text):
        before = re.split(r"[.;|]\s|\n- ", text[end:code.start()])[-1]
        end = code.end()
        yield " ".join(code[1].split()), form_in(before)


def paragraphs(file):
    """(queries of a block or of sentences) for each paragraph; what follows a block directly belongs to the same."""
    text = file.read_text()
    if file.suffix != ".md":
        for code in LITERAL.findall(text):
            yield [(code.replace(r"\(dq", '"'), "")]
        return
    for paragraph in re.split(r"\n\s*\n", text):
        lines = paragraph.split("\n")
        if all(line.startswith("    ") for line in lines if line):
            yield queries_of_block(lines)
        else:
            yield list(queries_of_sentences(paragraph))


def is_query(code):
    return bool(OURS.search(code)) and not NAME_OR_PATTERN.fullmatch(code)


def never_empty(query):
    """Comparisons return 0 or 1 instead of leaving out what does not hold: empty is then only what reads nothing."""
    return COMPARED.sub(lambda found: found[0] if found[0].startswith("{") else f"{found[0]} bool", query)


def test(check, state):
    asked = [(file.relative_to(SOURCE), [one for one in paragraph if is_query(one[0])])
             for file in documents() for paragraph in paragraphs(file)]
    asked = [(where, queries) for where, queries in asked if queries]
    check.that(len(asked) > 40, f"{sum(len(queries) for _, queries in asked)} queries in {len({one for one, _ in asked})} documents")
    for where, queries in asked:
        counted = Counter(form for _, form in queries)
        check.that(counted["native"] == counted["classic"],
                   f"{where}: each query for one kind of histogram is beside that for the other")
    binary = prometheus.fetch(state, "trixie", "prometheus") / "usr/bin/prometheus"
    with made_up.server() as port, prometheus.servers(state, [(form, binary, form) for form in FORMS], port) as servers:
        for server in servers:
            server.wait_scraped(SECONDS_OF_SCRAPES)
        at = time.time()
        for where, queries in asked:
            for query, form in queries:
                for server in servers:
                    answer = dashboards.ask(server, "query", never_empty(query), time=at)
                    wanted = form in ("", server.name)
                    check.that(not isinstance(answer, str) and bool(answer) == wanted,
                               f"{where}: {server.name}{'' if wanted else ', where it has none'}: {answer} for {query}")


rig.main(test)
