# SPDX-License-Identifier: Apache-2.0
"""The daemon as a systemd service in a guest: its state, its pages, its history, and its journal."""
import sqlite3
import time

import machine


class Service(machine.Daemon):
    """Asked like any daemon, but started, restarted and stopped by systemd."""

    UNIT = "ssdpulse.service"
    READER = "ssdpulse-nvme.service"
    HISTORY = "/var/lib/ssdpulse/ssdpulse.db"

    def __init__(self, vm):  # pylint: disable=super-init-not-called  # systemd starts it
        self.vm = vm

    def words(self):
        """The end of what both units wrote to the journal."""
        return self.vm.run("journalctl -u ssdpulse -u ssdpulse-nvme -o cat -n 15 --no-pager")[1].decode(errors="replace")

    def show(self, name, unit=UNIT):
        return self.vm.sh(f"systemctl show -P {name} {unit}")

    def state(self, unit=UNIT):
        """As systemd calls it, e.g. "active (running), restarts: 1, exit-code"; restarts and the result only if there is news."""
        active, sub, restarts, result = (self.show(name, unit) for name in ("ActiveState", "SubState", "NRestarts", "Result"))
        return f"{active} ({sub})" + (f", restarts: {restarts}" if restarts != "0" else "") + \
            ("" if result == "success" else f", {result}")

    def main_pid(self, unit=UNIT):
        """0 if no process of the unit runs."""
        return int(self.show("MainPID", unit))

    def ready(self):
        return self.vm.run(f"curl -sf -m 5 -o /dev/null http://127.0.0.1:{self.PORT}/-/ready", 20)[0] == 0

    def until(self, condition, what, seconds=60):
        """Waits until the condition holds, and returns how many seconds that took; `what` it is, for the error."""
        began = time.monotonic()
        while not condition():
            if time.monotonic() - began > seconds:
                raise machine.GuestError(f"not in {seconds} s: {what}; {self.state()}; {self.words()[-1500:]}")
            time.sleep(0.3)
        return time.monotonic() - began

    def until_ready(self, seconds=120):
        return self.until(self.ready, "the daemon is ready", seconds)

    def value_or_none(self, name, **labels):
        """As Scrape.value(), of the current page; None also while the daemon does not answer."""
        try:
            return self.scrape().value(name, **labels)
        except machine.GuestError:
            return None

    def keeps_history(self):
        """The history is open, and its last write succeeded. It opens only after the daemon is ready."""
        return self.value_or_none("ssdpulse_source_up", source="history") == 1

    def history(self):
        """{(minute, serial): the rest of the row} of all rows on the disk, read by Python's SQLite and not by the daemon's."""
        for suffix in ("", "-journal"):
            code, data = self.vm.run(f"cat {self.HISTORY}{suffix}")
            (self.vm.state / f"history.db{suffix}").write_bytes(data if code == 0 else b"")
        with sqlite3.connect(self.vm.state / "history.db") as database:
            if database.execute("PRAGMA integrity_check").fetchone() != ("ok",):
                raise machine.GuestError("the history is damaged")
            return {row[:2]: row[2:] for row in database.execute(
                "SELECT minute, serial, drive_minute.* FROM drive_minute JOIN drive ON drive = id")}
