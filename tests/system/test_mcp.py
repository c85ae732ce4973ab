#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Can an assistant ask what a person would, over the Model Context Protocol, and nothing else?

The messages are those of the specification's own examples, and hostile ones. The history is made up; no daemon runs.
"""
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

BINARY = os.environ["SSDPULSE_BINARY"]
WRITER = Path(os.environ["SSDPULSE_BUILD"]) / "ssdpulse_simulated_history"
STATE = Path(os.environ["SSDPULSE_TEST_STATE"])
TOOLS = ["why", "report", "audit", "doctor", "cost", "devices", "history"]
failures = []


def expect(true, what):
    print(("ok   " if true else "FAIL: ") + what)
    if not true:
        failures.append(what)


class Client:
    def __init__(self, *options):
        self.process = subprocess.Popen([BINARY, "mcp", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
        self.number = 0

    def send(self, line):
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def answer(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, method, **params):
        self.number += 1
        self.send(json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}).encode())
        answer = self.answer()
        expect((answer["jsonrpc"], answer["id"]) == ("2.0", self.number), f"{method}: the answer to this request")
        return answer

    def call(self, tool, **arguments):
        return self.ask("tools/call", name=tool, arguments=arguments)

    def tool(self, name, **arguments):
        """(what it says, whether that is an error, what it complains about)"""
        answer = self.call(name, **arguments)["result"]
        texts = [one["text"] for one in answer["content"] if one["type"] == "text"]
        expect(len(texts) == len(answer["content"]) and 1 <= len(texts) <= 2, f"{name}: texts")
        return texts[0], answer["isError"], texts[1:]

    def end(self):
        self.process.stdin.close()
        return self.process.wait(20)


def protocol(client):
    for version, agreed in (("2024-11-05", "2024-11-05"), ("2025-06-18", "2025-06-18"), ("2025-03-26", "2025-11-25"), ("1999-01-01", "2025-11-25")):
        answer = client.ask("initialize", protocolVersion=version, capabilities={}, clientInfo={"name": "test", "version": "1"})["result"]
        expect(answer["protocolVersion"] == agreed, f"a client of {version} and this server speak {agreed}")
    expect(answer["serverInfo"]["name"] == "ssdpulse" and "tools" in answer["capabilities"], "who it is, and what it has")
    client.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')  # no answer: the next one is to the next request
    expect(client.ask("ping")["result"] == {}, "ping")
    tools = client.ask("tools/list")["result"]["tools"]
    expect([one["name"] for one in tools] == TOOLS, "the tools")
    expect(all(one["annotations"]["readOnlyHint"] and one["inputSchema"]["additionalProperties"] is False for one in tools),
           "they only read, and say what they take")
    expect(client.ask("server/discover")["error"]["code"] == -32601, "a newer client learns that it must initialize")


def tools(client):
    text, is_error, complaints = client.tool("report", change="last")
    expect(not is_error and json.loads(text)["devices"], "a report of the history that the configuration names")
    expect([mark["text"] for mark in json.loads(text)["marks"]] == ["scheduler <none> | try"], "with its mark")
    text, is_error, complaints = client.tool("report", last="a while")
    expect(is_error and "a while" in text, f"a wrong window: {text.strip()[:80]}")
    text, is_error, complaints = client.tool("devices")
    expect(not is_error and "devices" in json.loads(text), "the devices")
    text, is_error, complaints = client.tool("why", at="-10m")
    expect(is_error and "127.0.0.1:1" in text, f"no daemon: {text.strip()[:100]}")
    for name in ("doctor", "audit"):
        text, is_error, complaints = client.tool(name)
        expect(not is_error and "findings" in json.loads(text), f"{name} also answers without a daemon")
    expect("no daemon answers" in "".join(complaints), f"and says so: {complaints}")


def hostile(client):
    wrong = {"no JSON": (b"{", -32700, None), "a binary line": (b"\xff\x00\x01", -32700, None),
             "too deep": (b"[" * 5000 + b"]" * 5000, -32700, None),
             "too long": (b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * (2 << 20) + b'"}', -32700, None),
             "a batch": (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None), "a number": (b"7", -32600, None),
             "no method": (b'{"jsonrpc":"2.0","id":7}', -32600, 7), "no id that may be": (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
             "null as an id": (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None)}
    for what, (line, code, number) in wrong.items():
        client.send(line)
        answer = client.answer()
        expect((answer["error"]["code"], answer["id"]) == (code, number), what)
    client.send(b'{"jsonrpc":"2.0","id":1,"result":{}}')
    client.send(b" \t\r")
    expect(client.ask("no/such")["error"]["code"] == -32601, "an answer to nothing gets none, nor does an empty line; an unknown method does")
    file = STATE / "made"
    for arguments in ({"at": "now", "backup": str(file)}, {"backup": str(file)}, {"device": ["a"]}, {"device": ""}, {"device": "a\0b"},
                      {"device": "x" * 5000}):
        text, is_error, _ = client.tool("history", **arguments)
        expect(is_error and ("it has: device, from, to, points" in text or "expected a string" in text), f"refused: {json.dumps(arguments)[:60]}")
    text, is_error, _ = client.tool("history", device=f"--backup={file}")
    expect(is_error and not file.exists(), f"a device is no option: {text.strip()[:80]}")
    text, is_error, _ = client.tool("report", change="last", device=None)
    expect(not is_error, "null is as good as absent")
    answer = client.call("mark", text="x")
    expect(answer["error"]["code"] == -32602 and "why, report" in answer["error"]["message"], "no tool changes anything; those that there are are named")


def command_of(pid):
    """The child that runs the command; another one may look whether the configuration's file system answers."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return next((one for one in children if b"--json" in Path(f"/proc/{one}/cmdline").read_bytes()), None)


def a_daemon_that_does_not_answer(listener):
    """Somebody accepts, and says nothing: pings are answered, a call can be cancelled, and nothing is left behind."""
    client = Client("--address", f"127.0.0.1:{listener.getsockname()[1]}")

    def begin(number):
        client.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "why"}}).encode())
        deadline = time.monotonic() + 10
        while not (child := command_of(client.process.pid)) and time.monotonic() < deadline:
            time.sleep(0.02)
        return child

    def is_gone(pid):
        deadline = time.monotonic() + 5
        while os.path.exists(f"/proc/{pid}") and time.monotonic() < deadline:
            time.sleep(0.02)
        return not os.path.exists(f"/proc/{pid}")
    child = begin("first")
    expect(client.ask("ping")["result"] == {}, "a ping is answered meanwhile")
    client.send(b'{"jsonrpc":"2.0","id":"later","method":"tools/list"}')
    client.send(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"first"}}')
    expect(client.answer()["id"] == "later", "a call that is cancelled has no answer; what was asked after it has")
    expect(is_gone(child), "and its process is gone")
    child = begin("second")
    client.process.kill()
    client.process.wait()
    expect(is_gone(child), "a process ends with the server")


def main():
    history = STATE / "history"
    history.mkdir()
    subprocess.run([WRITER, history, "8", "2", "1"], check=True)
    config = STATE / "config.yaml"
    config.write_text(f'history: {{ directory: "{history}" }}\nweb: {{ listen_address: 127.0.0.1:1 }}\n')
    client = Client("--config", str(config))
    protocol(client)
    tools(client)
    hostile(client)
    expect(client.end() == 0, "it ends with its input")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        a_daemon_that_does_not_answer(listener)
    wrong = subprocess.run([BINARY, "mcp", "--config", "/no/such/file"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    expect(wrong.returncode == 2 and "/no/such/file" in wrong.stderr, "a wrong configuration is noticed at once")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
