# SPDX-License-Identifier: Apache-2.0
"""The page of this tree in front of a running daemon, whose answers are changed on the way: states that no test can
provoke at will, such as 64 drives, volumes on a host without device-mapper, or a daemon that has stopped measuring.
"""
import copy
import http.client
import json
import mimetypes
import threading
import urllib.parse
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import jsonschema

SOURCE = Path(__file__).resolve().parents[2]
ASSETS = SOURCE / "exporters/page/assets"
RUNBOOKS = SOURCE / "deploy/runbooks"
WORDS = SOURCE / "exporters/words"
DRIVES = 64
YEAR = 31557600  # seconds, as the page has it


# Each change takes the path below /api/v1/ and the answer, or None of what is no answer, and returns it as the page gets it.


class Denied(Exception):
    """(status, text): what the daemon would say to somebody without a password, or by a name that it does not know."""


def many(path, answer):
    """Copies of the last drive, as NVMe drives, so that every column is there. The last of them wears out first."""
    if path == "devices" and answer:
        last, known = answer["devices"][-1], json.loads((ASSETS / "api.schema.json").read_text())["$defs"]
        for number in range(len(answer["devices"]), DRIVES):
            one = copy.deepcopy(last)
            one.update(name=f"nvme{number}n1", title=f"nvme{number}n1", use="", mounts=[], nvme={
                "controller": f"nvme{number}", "up": True, "reason": "", "used_ratio": number / 100, "life_seconds": (DRIVES + 2 - number) * YEAR,
                "spare_ratio": 1, "temperature_celsius": 41,
                "write_amplification": {"lower": 2.3, "upper": 2.5, "ratio": 2.4, "window": "1h", "source": "ocp", "reason": ""}})
            answer["devices"].append(one)
        jsonschema.validate(answer["devices"][-1], {"$ref": "#/$defs/device", "$defs": known})
    return answer


def layer(name, title, kind, members, seconds, bytes_):
    now = {"ios_per_second": bytes_ / 4096, "bytes_per_second": bytes_, "p50_seconds": seconds / 2, "p99_seconds": seconds}
    return {"name": name, "title": title, "kind": kind, "members": members, "health": "", "bad": False, "suspended": False,
            "missing_members": None, "consistency_policy": None, "latency_p50_seconds": seconds / 2,
            "latency_p99_seconds": seconds, "added_latency_seconds": seconds / 20, "bytes_per_second": bytes_, "read": now, "write": now}


def volumes(path, answer):
    """A logical volume on an encrypted mirror below the first mount point."""
    if path == "stacks" and answer and answer["stacks"]:
        stack = answer["stacks"][0]
        drive = stack["places"][-1]["name"]
        place = {"shared": False, "cut": False}
        stack["places"] = [{"name": "dm-1", "kind": "lvm", "floor": 0, **place}, {"name": "dm-0", "kind": "crypt", "floor": 1, **place},
                           {"name": "md0", "kind": "raid1", "floor": 2, **place}, {"name": drive, "kind": "disk", "floor": 3, **place}]
        answer["layers"] = [layer("md0", "data", "raid1", [drive], 0.0039, 400_000), layer("dm-0", "luks-data", "crypt", ["md0"], 0.0041, 400_000), layer("dm-1", "vg0-data", "lvm", ["dm-0"], 0.0043, 400_000)]
    return answer


class FittingVolumes:
    """The same volumes, with figures that fit those of the drive below: each floor adds a little."""

    def __init__(self):
        self._drives = {}

    def __call__(self, path, answer):
        if path == "devices" and answer:
            self._drives = {device["name"]: device["now"] for device in answer["devices"]}
        answer = volumes(path, answer)
        drive = self._drives.get(answer["stacks"][0]["places"][-1]["name"]) if path == "stacks" and answer and answer["stacks"] else None
        for floor, one in enumerate(answer["layers"] if drive else [], 1):
            for kind in ("read", "write"):
                of, seconds = drive[kind], drive["seconds"]
                one[kind] = {"ios_per_second": of["ios"] / seconds, "bytes_per_second": of["bytes"] / seconds,
                             **{f"{name}_seconds": of[name] and of[name] + floor * 0.00012 for name in ("p50", "p99")}}
            one.update(added_latency_seconds=0.00008 + 0.00001 * floor, bytes_per_second=sum(one[kind]["bytes_per_second"] for kind in ("read", "write")),
                       **{f"latency_{name}_seconds": max(one[kind][f"{name}_seconds"] or 0 for kind in ("read", "write")) for name in ("p50", "p99")})
        return answer


def empty(path, answer):
    """No history, and nothing seen yet."""
    if path.startswith("history"):
        raise Denied(404, "no such page")
    if path == "day" and answer:
        return {**answer, "reason": "no history is kept here: history.directory is empty", "day": None, "hour": None, "oldest": None, "devices": []}
    if path == "devices" and answer:
        for device in answer["devices"]:
            device.update(now=None, spikes=[], above_baseline=None, spike_seconds=0, state="unknown", baseline_p99=dict.fromkeys(device["baseline_p99"]))
            device["strip"].update(p99=[], marks=[])
        answer["why"].update(verdict="unknown", summary="Nothing is known yet: the daemon has just started.", remarks="", past="", runbook=None, device=None)
    return answer


def denied(_path, _answer):
    raise Denied(401, "this page is for those with a password")


class Stale:
    """The same snapshot for ever: the daemon answers, and measures no more."""

    def __init__(self):
        self._kept = {}

    def __call__(self, path, answer):
        if path == "devices" or path.endswith("/live"):
            return copy.deepcopy(self._kept.setdefault(path, answer))
        return answer


def cut(path, answer):
    """More happened than the history's answer lists; the newest is a slow time of half a minute."""
    if path.startswith("history/") and answer:
        spike = {"begin": answer["to"] - 120, "seconds": 30, "operation": "read", "cause": "discard", "words": "because fstrim was trimming a file system on it",
                 "peak_seconds": 0.4, "baseline_seconds": 0.002, "excess_seconds": 9, "ios": 300, "evidence": "", "sentences": [], "ruled_out": [], "other": [],
                 "missing": "", "next": "It can be stopped.", "runbook": "SsdpulseTailLiftedByDiscard", "has_columns": False, "clock_ahead": False}
        known = json.loads((ASSETS / "api.schema.json").read_text())["$defs"]
        jsonschema.validate(spike, {"$ref": "#/$defs/history_spike", "$defs": known})
        answer.update(cut=True, spikes=[*answer["spikes"], spike])
    return answer


def slow(path, answer):
    """The first drive has been slow for half a minute."""
    if path == "devices" and answer:
        begin = answer["taken_at"] - 30
        spike = {"id": f"read-{begin * 1000:.0f}", "operation": "read", "cause": "discard", "words": "because fstrim is trimming a file system on it",
                 "short_words": "trim by fstrim.service", "begin": begin, "end": None, "seconds": 30, "peak_seconds": 0.4, "baseline_seconds": 0.002,
                 "excess_seconds": 9, "ios": 300, "evidence": [], "ruled_out": [], "other": [], "missing": [], "heaviest": [], "slowed": [],
                 "next": "It can be stopped.", "runbook": "SsdpulseTailLiftedByDiscard"}
        answer["devices"][0].update(spikes=[spike], spike_seconds=30, state="slow")
        known = json.loads((ASSETS / "api.schema.json").read_text())["$defs"]
        jsonschema.validate(answer["devices"][0], {"$ref": "#/$defs/device", "$defs": known})
    return answer


def losses(path, answer):
    """Events that the programs in the kernel could not deliver."""
    if path == "status" and answer:
        answer["not_measured"].insert(0, {"what": "loop7: some I/Os were not measured", "why": "completion_missed: 45", "change": "see the runbook SsdpulseLosingEvents"})
        answer["missed_ticks"] = 7
    return answer


def held_up(over):
    """Whether a volume is suspended, or was until just now: no drive is slow."""
    def change(path, answer):
        if path == "devices" and answer:
            now = answer["taken_at"]
            wait = {"cause": "suspended", "words": f"vg0-data, dm-1 {'was' if over else 'is'} suspended, and all I/O to it {'waited' if over else 'waits'}",
                    "subject": "dm-1", "begin": now - 20, "end": now - 5 if over else None, "source": "dm/suspended", "command": None, "evidence": {}}
            sentence = "No drive is slower than usual." if over else f"{wait['words']}, since 03:11:27 UTC (20 s)."
            for device in answer["devices"]:  # a busy host makes a disk slow, and its own page would then name itself first
                device.update(spikes=[], spike_seconds=0, above_baseline=None, state="ok" if device["state"] in ("slow", "high") else device["state"])
            answer["why"].update(verdict="ok" if over else "slow", sentence=sentence, summary=sentence, remarks="", past="",
                                 next="Find out who suspended it.", runbook="SsdpulseIoHeldUp", device=None, operation=None, cause="suspended",
                                 culprit=None, victim=None, when="ended" if over else "now", incident=None, wait=wait)
            known = json.loads((ASSETS / "api.schema.json").read_text())["$defs"]
            jsonschema.validate(answer["why"], {"$ref": "#/$defs/why", "$defs": {**known, "why_wait": {**known["why_wait"], "additionalProperties": False}}})
        return answer
    return change


CHANGES = {"as it is": lambda _path, answer: answer, "64 drives": many, "volumes": volumes, "fitting volumes": FittingVolumes(), "empty": empty, "denied": denied, "stale": None, "losses": losses, "slow": slow, "cut": cut,
           "held up": held_up(False), "was held up": held_up(True)}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, kind, body):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        path = urllib.parse.urlsplit(self.path).path
        if path.startswith("/api/") or path == "/metrics":
            self.forward(path)
            return
        name = Path(path).name or "index.html"
        file = (RUNBOOKS if path.startswith("/runbooks/") else ASSETS) / name
        if name == "catalogue.js":
            rooms = ", ".join(f'"{room}": {(WORDS / f"{room}.json").read_text()}' for room in ("page", "shared"))
            self.answer(200, "text/javascript", f"export const catalogue = {{{rooms}}};\n".encode())
        elif file.is_file():
            self.answer(200, mimetypes.guess_type(name)[0] or "text/plain", file.read_bytes())
        else:
            self.answer(404, "text/plain", b"no such page\n")

    def forward(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.daemon_port, timeout=30)
        try:
            connection.request("GET", self.path)
            answer = connection.getresponse()
            status, kind, body = answer.status, answer.getheader("Content-Type"), answer.read()
        except OSError:
            self.close_connection = True  # as if nobody listened
            return
        finally:
            connection.close()
        try:
            known = json.loads(body) if kind == "application/json" and status == 200 else None
            for change in (self.server.change, *self.server.also):
                known = change(path.removeprefix("/api/v1/"), known)
            body = body if known is None else json.dumps(known).encode()
        except Denied as refusal:
            status, kind, body = refusal.args[0], "text/plain", refusal.args[1].encode()
        self.answer(status, kind or "text/plain", body)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """A browser that left."""


class Pages:
    """`show(state)`: what the page meets from now on; `also` is changed besides."""

    def __init__(self, server):
        self._server, self.port = server, server.server_address[1]

    def show(self, state, *also):
        self._server.change = Stale() if state == "stale" else CHANGES[state]
        self._server.also = [CHANGES[one] for one in also]


@contextmanager
def pages(daemon_port, port=0):
    server = Server(("127.0.0.1", port), Handler)
    server.daemon_port = daemon_port
    subject = Pages(server)
    subject.show("as it is")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield subject
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
