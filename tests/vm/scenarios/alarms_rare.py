# SPDX-License-Identifier: Apache-2.0
"""Slow commits, a freeze every 40 s, rare slow reads: each fires its alert in a real Prometheus, as shipped.

All three drives get into trouble at once, after some minutes of health, and stay in it until each alert has fired.
"""
import sys
import threading
import time
from pathlib import Path

import machine
import story_cases
from devices import Nvme, Slow, Way
from troubles import Trouble, fired, wait

sys.path.append(str(Path(__file__).resolve().parents[2] / "system"))
from alerts.stack import INSTANCE, stack  # noqa: E402

KERNELS = ("6.12",)  # what is judged does not depend on the kernel
PART = "alarms"  # half an hour; CI has the rules' cases, on made-up series
MACHINE = {"append": "nvme_core.multipath=N", "nice": -10}  # as for the scenario `alarms`
SECONDS = 3000
SUITE, FORM = "sid", "native"
HEALTHY = 150  # seconds
COMMITS, STALLS, RARE = (f"Ssdpulse{name}" for name in ("CommitsSlow", "RepeatedStalls", "RareSlowIo"))
# They look back 5 and 10 minutes, and 15 minutes; the first is for drives whose slow commits no other alert reports.
# The cost of rare outliers is booked when their spike is accepted, after ten minutes.
COMMITS_WITHIN, STALLS_WITHIN, RARE_WITHIN, COMMITS_END = 180, 600, 1500, 420
MEANWHILE = "SsdpulseTailSpikeUnexplained"  # true of all three
EVERY, FROZEN = 40, 0.8
LOADS = {"log": (story_cases.READERS, story_cases.LOG), "frozen": (story_cases.READERS, story_cases.WRITERS),
         "rare": ({**story_cases.READERS, "thinktime": 130},)}
# Enough that one spike continues (the end of each is a stall for another alert), and too few for the 99th percentile.
OUTLIERS = {"kind": "read", "share": 0.007, "seconds": 0.45}


def devices():
    return [Nvme(serial, Slow("256M", read=0.002, write=0.005, flush=0.005), ocp="on") for serial in LOADS] + [
        Way("way", machine.Daemon.PORT)]


class Freezes:
    """One after the other, until the block ends."""

    def __init__(self, backend):
        self._backend, self._end = backend, threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        while not self._end.is_set():
            self._backend.stall(FROZEN)
            self._end.wait(EVERY)

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()


def run(vm, check):
    disks = {serial: vm.disk(serial) for serial in LOADS}
    vm.devices["way"].open(vm)
    # The guest is occasionally held up by its host, for less than the floor.
    vm.sh("printf 'spikes: { floor: 300ms }\\nhistory: { directory: \"\" }\\n' >/tmp/alarms.yaml")
    daemon = machine.Daemon(vm, "--config", "/tmp/alarms.yaml", f"--web.listen-address 0.0.0.0:{machine.Daemon.PORT}")
    for serial, jobs in LOADS.items():
        vm.sh(story_cases.fio(serial, disks[serial], jobs, 3600))
    backends = {serial: vm.devices[serial].backend for serial in LOADS}
    with stack(vm.state, SUITE, FORM, vm.devices["way"].port, hurried=False) as servers:
        check.that(wait(60, lambda: servers.server.query('up{job="ssdpulse"} == 1')) is not None, "the guest is scraped")
        begin = time.time()
        time.sleep(HEALTHY)
        check.equal(fired(servers, begin, time.time()), {}, f"{HEALTHY} s of healthy load: what fires")
        commits, stalls, rare = (Trouble(servers, check, alert, disks[serial])
                                 for alert, serial in ((COMMITS, "log"), (STALLS, "frozen"), (RARE, "rare")))
        backends["log"].set(flush=1.5)
        backends["rare"].set(added=[OUTLIERS])
        with Freezes(backends["frozen"]):
            commits.fires(COMMITS_WITHIN, f"On {INSTANCE}, commits on {disks['log']} were slow in .*cause: flush.* "
                                          r"they waited [0-9.]+ s longer than usual in 15 minutes")
            backends["log"].set(flush=0.005)
            commits.ends()
            stalls.fires(STALLS_WITHIN, f"On {INSTANCE}, (read|write)s on {disks['frozen']} stalled [0-9]+ times in 10 minutes")
            rare.fires(RARE_WITHIN, f"On {INSTANCE}, [0-9.]+% of the time that reads on {disks['rare']} waited")
        commits.resolves(COMMITS_END)
        time.sleep(15)  # an evaluation: what has just fired is in no series yet
        spans = fired(servers, begin, time.time())
        print(f"     fired, in seconds from begin: {spans}")
        expected = {(COMMITS, disks["log"]), (STALLS, disks["frozen"]), (RARE, disks["rare"])}
        check.equal({key for key in spans if key[0] != MEANWHILE}, expected, "all that fired")
        check.equal(servers.server.complaints(), [], "complaints of Prometheus")
    vm.sh("kill $(pidof fio); true")
    daemon.stop()
