#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the dashboards' JSON from source/: generate.py [DIRECTORY] (default: dashboards/ next to this file).

Needs the package of requirements.txt, for instance
    python3 -m pip install --require-hashes --target build/grafana -r deploy/grafana/requirements.txt
    PYTHONPATH=build/grafana deploy/grafana/generate.py
Using the dashboards requires neither: the JSON is in the repository, and a test compares it with its source.
The JSON has one panel a line, so that a change of a panel is one line of a diff.
"""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "source"))
sys.dont_write_bytecode = True

import daemon  # noqa: E402
import device  # noqa: E402
import fleet  # noqa: E402
import mysql  # noqa: E402
import overview  # noqa: E402
import postgresql  # noqa: E402
from grafana_foundation_sdk.cog.encoder import JSONEncoder  # noqa: E402


def one_panel_a_line(value):
    if not isinstance(value, dict) or "panels" not in value:
        return json.dumps(value, sort_keys=True)
    members = [f"{json.dumps(key)}: " + (one_panel_a_line(value[key]) if key != "panels" else
                                         "[\n" + ",\n".join(map(one_panel_a_line, value[key])) + "\n]")
               for key in sorted(value)]
    return "{" + ", ".join(members) + "}"


def main():
    directory = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "dashboards"
    directory.mkdir(parents=True, exist_ok=True)
    for module in (overview, fleet, device, daemon, postgresql, mysql):
        dashboard = json.loads(JSONEncoder().encode(module.build().build()))
        (directory / f"{module.__name__}.json").write_text(one_panel_a_line(dashboard) + "\n", encoding="utf-8")


main()
