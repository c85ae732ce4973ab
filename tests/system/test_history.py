#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Does the history know what was measured, across a restart, and does it report that to people and to programs?

The oracle is /metrics: the history's totals must equal the counters at the end of each daemon's life, added up.
Also: who may set a mark, and what does `ssdpulse history` do when no daemon answers?
"""
import csv
import http.client
import io
import json
import subprocess
import time

import jsonschema

from lib import rig

DIRECTIONS = ("read", "write")


def ask(port, path, method="GET", headers=None, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(method, path, body=body, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def command(state, *words):
    return subprocess.run([rig.BINARY, words[0], "-c", state / "config.yaml", *words[1:]], capture_output=True, text=True,
                          check=False)


def load(disk, seed):
    rig.fio(disk, seed, rw="randrw", bs="4k", ioengine="psync", size="4M", number_ios=500)


def counted(scrape, disk):
    return {direction: scrape.value("ssdpulse_io_bytes_total", device=disk.name, operation=direction)
            for direction in DIRECTIONS}


def kept(state, disk):
    run = command(state, "history", "--device", disk.name, "--from", "-1h", "--json")
    points = json.loads(run.stdout)["points"]
    return {direction: sum(points[direction]["bytes"]) for direction in DIRECTIONS}, run


def marks(check, port):
    own = {"X-Ssdpulse": "test"}
    for status, what, arguments in (
            (200, "a mark", ("/api/v1/marks?text=by%20hand", "POST", own)),
            (403, "without the header, as a page of another site", ("/api/v1/marks?text=x", "POST")),
            (421, "under another name", ("/api/v1/marks?text=x", "POST", own | {"Host": "evil.example"})),
            (400, "with a control character", ("/api/v1/marks?text=a%0Ab", "POST", own)),
            (400, "too long", ("/api/v1/marks?text=" + 129 * "a", "POST", own)),
            (400, "not UTF-8", ("/api/v1/marks?text=%ff", "POST", own)),
            (413, "with a body", ("/api/v1/marks?text=x", "POST", own, "text=x")),
            (405, "by GET", ("/api/v1/marks?text=x", "GET", own)),
            (405, "anywhere else", ("/api/v1/history", "POST", own))):
        check.equal(ask(port, *arguments)[0], status, f"POST {what}")


def answers(check, port, disk):
    schema = json.loads(ask(port, "/api.schema.json")[1])
    now = int(time.time())
    for path, definition in (("history", "history_list"), (f"history/{disk.name}", "history"),
                             (f"history/{disk.name}?points=2000&from={now - 90 * 86400}", "history"),
                             (f"history/{disk.name}?minutes=1", "history_minutes")):
        status, body = ask(port, "/api/v1/" + path)
        check.equal(status, 200, path)
        try:
            jsonschema.validate(json.loads(body), {"$ref": f"#/$defs/{definition}", "$defs": schema["$defs"]})
        except jsonschema.ValidationError as error:
            check.that(False, f"{path} fits the schema: {error.message[:300]} at {list(error.absolute_path)}")
    for path, status in (("nothing", 404), (f"{disk.name}?points=2001", 400), (f"{disk.name}?points=x", 400),
                         (f"{disk.name}?from={now}&to=1", 400), (f"{disk.name}?minutes=1&from=1", 400),
                         (f"{disk.name}?from=99999999999999999999", 400)):
        check.equal(ask(port, "/api/v1/history/" + path)[0], status, path)


def test(check, state):
    settings = "  size: 64MiB\n"
    with rig.ram_disks(state, 1, "64M") as (disk,):
        read_ahead = disk.queue("read_ahead_kb")
        with rig.daemon(state, [disk], settings=settings) as daemon:
            load(disk, 1)
            before = counted(daemon.at_rest(), disk)
            check.equal(command(state, "mark", "deployed 4.2").returncode, 0, "ssdpulse mark")
            marks(check, daemon.port)
        disk.set_queue("read_ahead_kb", 516)
        with rig.daemon(state, [disk], settings=settings) as daemon:
            load(disk, 2)
            after = counted(daemon.at_rest(), disk)
            answers(check, daemon.port, disk)
            listed = command(state, "history")
            check.that(disk.name in listed.stdout and "deployed 4.2" in listed.stdout and "by hand" in listed.stdout,
                       f"ssdpulse history lists devices and marks: {listed.stdout}")
            check.that(f"read_ahead_kb: {read_ahead} -> 516" in listed.stdout, "a setting changed while nobody looked")
        found, run = kept(state, disk)
        check.that("no daemon answers: read from" in run.stderr, "without a daemon the file is read")
        check.equal(found, {direction: before[direction] + after[direction] for direction in DIRECTIONS},
                    "bytes of both daemons' lives")
        table = list(csv.DictReader(io.StringIO(command(state, "history", "--device", disk.name, "--csv").stdout)))
        check.equal(sum(int(row["read_bytes"]) for row in table), found["read"], "and as CSV")
        by_tenant = ("history", "--device", disk.name, "--by", "tenant")
        table = list(csv.DictReader(io.StringIO(command(state, *by_tenant, "--csv").stdout)))
        check.equal(sum(int(row["read_bytes"]) for row in table), found["read"], "and by tenant")
        check.that("TENANT" in command(state, *by_tenant).stdout, f"as a table: {command(state, *by_tenant).stdout}")
        check.that(command(state, "mark", "nobody").returncode == 1, "without a daemon there are no marks")
        wrong = command(state, "history", "--device", "nothing")
        check.that(wrong.returncode == 1 and "no device of that name" in wrong.stderr, "a device that nobody knows")


rig.main(test)
