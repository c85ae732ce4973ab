# SPDX-License-Identifier: Apache-2.0
"""What a real Prometheus and Alertmanager must report about a drive in trouble, and when; for alert scenarios."""
import re
import time


class Trouble:
    """Something goes wrong with a drive; its alert must fire, and end."""

    def __init__(self, servers, check, alert, device):
        self._servers, self._check, self._key = servers, check, (alert, device)
        self._began = self._ended = time.monotonic()

    def fires(self, within, said):
        def texts():
            return [text for text in self._servers.descriptions(*self._key) if re.search(said, text)]
        seconds = wait(within, texts, self._began)
        text = next(iter(texts()), f"not {said}: {self._servers.descriptions(*self._key)}")
        self._check.that(seconds is not None, f"{self._key} fires {after(seconds)}, and says: {text}")
        seconds = wait(60, lambda: self._servers.notified().get(self._key) == "active", self._began)
        self._check.that(seconds is not None, f"{self._key} is active in Alertmanager {after(seconds)}")
        print(f"TABLE {self._key[0]}: notified {after(seconds)}: {text}")

    def ends(self):
        self._ended = time.monotonic()

    def resolves(self, within):
        seconds = wait(within, lambda: self._key not in self._servers.firing(), self._ended)
        self._check.that(seconds is not None, f"{self._key} is resolved {after(seconds)}")
        notified = wait(60, lambda: self._key not in self._servers.notified(), self._ended)
        self._check.that(notified is not None, f"{self._key} is resolved in Alertmanager {after(notified)}")
        print(f"TABLE {self._key[0]}: resolved {after(seconds)}")


def wait(seconds, good, began=None):
    """When `good` became true, in seconds since `began` (or since now), if within `seconds` from now; else None."""
    now = time.monotonic()
    while time.monotonic() - now < seconds:
        if good():
            return time.monotonic() - (began or now)
        time.sleep(1)
    return None


def after(seconds):
    return "never" if seconds is None else f"after {seconds:.0f} s"


def fired(servers, begin, end):
    """{(alert, device or drive): (first, last) time that it fired}, in seconds since `begin`."""
    answer = servers.server.ask("query_range", query='ALERTS{alertstate="firing"}', start=begin, end=end, step=5)
    found = {}
    for line in answer["result"]:
        labels, times = line["metric"], [when - begin for when, _ in line["values"]]
        found.setdefault((labels["alertname"], labels.get("device", labels.get("controller"))), []).extend(times)
    return {key: (min(times), max(times)) for key, times in found.items()}
