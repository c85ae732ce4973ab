# SPDX-License-Identifier: Apache-2.0
"""The clock shows 1970, 2036 and a hundred years, for a minute each: nothing of the history is gone, hidden or mixed up."""
import json
import time

import machine
from devices import Nvme, Slow

KERNELS_IN_CI = ()  # several minutes of waiting, and the kernel has little influence on it
MACHINE = {"append": "nvme_core.multipath=N"}
SECONDS = 1500
HOUR, YEAR = 3600, 365 * 86400
# Where the clock goes, and whether the daemon starts meanwhile.
JUMPS = (("+1 h", HOUR, False), ("2036", 10 * YEAR, True), ("+75 years", 75 * YEAR, False), ("1970", None, True))
FAR = 7_999_999_999


def devices():
    return [Nvme("ours", Slow("256M", read=0.001, write=0.001))]


def set_clock(vm, seconds):
    vm.sh(f"date -s @{int(seconds)} >/dev/null")


def asked(vm, daemon, path):
    return json.loads(vm.sh(f"curl -sf 'http://127.0.0.1:{daemon.PORT}/api/v1/history{path}'"))


def mark(vm, daemon, text):
    vm.sh(f"curl -sf -X POST -H 'X-Ssdpulse: 1' -o /dev/null 'http://127.0.0.1:{daemon.PORT}/api/v1/marks?text={text}'")


def run(vm, check):
    disk = vm.disk("ours")
    vm.sh("mkdir -p /tmp/past && printf 'nvme: { poll_interval: 1h }\nhistory: { directory: /tmp/past, retention: 1d }\n' "
          ">/tmp/past.yaml")
    daemon = machine.Daemon(vm, "--config", "/tmp/past.yaml")
    end = vm.background_fio(disk, rw="randrw", bs="4k", iodepth=1, rate_iops=50, number_ios=10**9, time_based=None,
                            runtime=700)
    marks = []

    def for_a_minute(what):
        marks.append(what)
        mark(vm, daemon, what)
        time.sleep(75)

    began = int(vm.sh("date +%s"))
    for_a_minute("before")
    for what, jump, restart in JUMPS:
        right, since = int(vm.sh("date +%s")), time.monotonic()
        set_clock(vm, 300 if jump is None else right + jump)
        if restart:
            daemon.stop()
            daemon = machine.Daemon(vm, "--config", "/tmp/past.yaml", log="again.log")
        for_a_minute(f"wrong{len(marks)}")
        set_clock(vm, right + time.monotonic() - since)
        for_a_minute(f"right{len(marks)}")
        found = asked(vm, daemon, f"?from=0&to={FAR}")["marks"]
        check.equal(sorted(one["text"] for one in found), sorted(marks), f"{what}, restart {restart}: every mark is there")
        ahead = {one["text"] for one in found if one["clock_ahead"]}
        wrong = {one for one in marks if one.startswith("wrong")}
        check.that(ahead <= wrong and (jump is None or marks[-2] in ahead),
                   f"{what}, restart {restart}: what was stamped in the future is marked, and nothing else: {ahead}")
        deleted = daemon.scrape().series("ssdpulse_history_rows_deleted_total")
        check.that(deleted and not any(deleted.values()), f"{what}, restart {restart}: nothing is deleted")
    series = asked(vm, daemon, f"/{disk}?from={began}&to={int(vm.sh('date +%s'))}")
    check.that(len(series["points"]) > len(marks) // 2, f"the minutes of the right clock are there: {len(series['points'])}")
    check.equal(sum(one["name"] == disk for one in asked(vm, daemon, "")["devices"]), 1, "one device")
    daemon.stop()
    end()
