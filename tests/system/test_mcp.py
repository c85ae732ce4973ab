#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Can an assistant ask what a person would, over the Model Context Protocol, and nothing else?

The messages are those of the specification's own examples, and hostile ones. The history is made up; no daemon runs.
"""
import json
import os
import subprocess
import sys
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
        """(what it says, whether that is an error)"""
        answer = self.call(name, **arguments)["result"]
        expect([one["type"] for one in answer["content"]] == ["text"], f"{name}: one text")
        return answer["content"][0]["text"], answer["isError"]

    def end(self):
        self.process.stdin.close()
        return self.process.wait(20)


def protocol(client):
    for version, agreed in (("2024-11-05", "2024-11-05"), ("2025-06-18", "2025-06-18"), ("1999-01-01", "2025-11-25")):
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
    text, is_error = client.tool("report", change="last")
    expect(not is_error and json.loads(text)["devices"], "a report of the history that the configuration names")
    expect([mark["text"] for mark in json.loads(text)["marks"]] == ["scheduler <none> | try"], "with its mark")
    text, is_error = client.tool("report", last="a while")
    expect(is_error and "a while" in text, f"a wrong window: {text.strip()[:80]}")
    text, is_error = client.tool("devices")
    expect(not is_error and "devices" in json.loads(text), "the devices")
    text, is_error = client.tool("why", at="-10m")
    expect(is_error and "127.0.0.1:1" in text, f"no daemon: {text.strip()[:100]}")
    for name in ("doctor", "audit"):
        text, is_error = client.tool(name)
        expect(not is_error and "findings" in json.loads(text), f"{name} also answers without a daemon")


def hostile(client):
    wrong = {"no JSON": (b"{", -32700), "a binary line": (b"\xff\x00\x01", -32700), "too deep": (b"[" * 5000 + b"]" * 5000, -32700),
             "too long": (b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * (2 << 20) + b'"}', -32700),
             "a batch": (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600), "a number": (b"7", -32600),
             "no method": (b'{"jsonrpc":"2.0","id":1}', -32600)}
    for what, (line, code) in wrong.items():
        client.send(line)
        expect(client.answer()["error"]["code"] == code, what)
    client.send(b'{"jsonrpc":"2.0","id":1,"result":{}}')
    expect(client.ask("no/such")["error"]["code"] == -32601, "an answer to nothing gets none; an unknown method does")
    file = STATE / "made"
    for arguments in ({"at": "now", "backup": str(file)}, {"backup": str(file)}, {"device": ["a"]}, {"device": ""}, {"device": "a\0b"},
                      {"device": "x" * 5000}):
        answer = client.call("history", **arguments)
        expect(answer.get("error", {}).get("code") == -32602, f"refused: {json.dumps(arguments)[:60]}")
    text, is_error = client.tool("history", device=f"--backup={file}")
    expect(is_error and not file.exists(), f"a device is no option: {text.strip()[:80]}")
    expect(client.call("mark", text="x")["error"]["code"] == -32602, "no tool changes anything")


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
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
