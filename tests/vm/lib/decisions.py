# SPDX-License-Identifier: Apache-2.0
"""What an operator does: runs the load, runs `ssdpulse audit`, makes the change it advises, runs `ssdpulse report`.

Time is scaled: the wall clock of the daemon and of these commands runs 60 times as fast as the guest's, so that a second is a
minute of history. What takes a second is still measured as a second.
"""
import json

import machine

SCALE = 60
CONFIG = "/tmp/decisions.yaml"
HISTORY = "/tmp/history"


class Host:
    """The daemon with its history, and the commands."""

    def __init__(self, vm, reads_drives=False):
        self._vm = vm
        begin = int(vm.clock())
        self._clock = (f"LD_PRELOAD=/usr/lib/libfast_clock.so SSDPULSE_TIME_SCALE={SCALE} "
                       f"SSDPULSE_TIME_SCALE_FROM={begin}")
        poll = "10s" if reads_drives else "1h"
        vm.sh(f"mkdir -p {HISTORY}; printf 'nvme: {{ poll_interval: {poll} }}\\nhistory: {{ directory: {HISTORY} }}\\n' "
              f">{CONFIG}")
        self.daemon = machine.Daemon(vm, "--config", CONFIG, environment=self._clock)

    def ask(self, command, *options, codes=(0, 1)):
        code, output = self._vm.run(f"{self._clock} ssdpulse {command} -c {CONFIG} {' '.join(options)} 2>/tmp/ask", 120)
        words = output.decode(errors="replace")
        if code not in codes:
            raise machine.GuestError(f"ssdpulse {command} {options}: exit {code}: {words} {self._vm.sh('cat /tmp/ask')}")
        return words

    def audit(self, *options):
        """A little history is enough to judge these minutes."""
        return self.ask("audit", "--min-observation", "0.005", *options)

    def findings(self):
        return json.loads(self.audit("--json"))["findings"]

    def finding(self, rule, device):
        for one in self.findings():
            if (one["id"], one["device"]) == (rule, device):
                return one
        raise machine.GuestError(f"no finding {rule} of {device}")

    def mark(self, text):
        self.ask("mark", f"'{text}'", codes=(0,))

    def report(self, *options):
        return self.ask("report", *options, codes=(0,))

    def rows(self, device, *options):
        """{id of the row: the row}"""
        for one in json.loads(self.report("--json", *options))["devices"]:
            if one["device"] == device:
                return {row["id"]: row for row in one["rows"]}
        raise machine.GuestError(f"no report of {device}")


def show(title, words):
    """As a user sees it."""
    print(f"--- {title}")
    for line in words.rstrip().splitlines():
        print(f"     {line}")
