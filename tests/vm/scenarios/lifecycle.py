# SPDX-License-Identifier: Apache-2.0
"""Started in the middle of a load, started twice, killed and started again: right each time, the kernel left clean."""
import figures
import machine
from devices import Nvme, Slow
from lib import metrics

KERNELS_IN_CI = ("5.10",)  # the long form has all
MACHINE = {"append": "nvme_core.multipath=N"}
SHARES_GUEST = True
DELAY = 0.005
DEPTH = 8


def devices():
    return [Nvme("ours", Slow("256M"))]


def run(vm, check):
    vm.devices["ours"].backend.set(read=DELAY, write=DELAY)
    disk = vm.disk("ours")
    end = vm.background_fio(disk, rw="randrw", bs="4k", iodepth=DEPTH, number_ios=100000, time_based=None, runtime=6)
    daemon = machine.Daemon(vm)
    code, output = vm.run(f"ssdpulse run --web.listen-address 127.0.0.1:{daemon.PORT}", 30)
    check.equal(code, 5, "started twice: the second one's exit code")
    check.that(str(daemon.PORT) in output.decode() and "taken" in output.decode(),
               f"started twice: it says why not: {output.decode().strip().splitlines()[-1]}")
    check.that(daemon.scrape().value("ssdpulse_source_up", source="block") == 1, "started twice: the first one goes on")
    end()
    scrape = daemon.at_rest(6)
    lost, skipped = figures.lost(scrape, disk), figures.skipped_runs(scrape)
    check.that(set(lost) <= {"stray", "completion_missed", "recursion"} and
               lost.get("stray", 0) <= DEPTH + skipped["on_issue"] and
               lost.get("completion_missed", 0) <= skipped["on_complete"],
               f"started under load: at most what was in flight then is missed: {lost}, runs skipped: {skipped}")
    flying = scrape.series("ssdpulse_io_in_flight", device=disk)
    check.that(flying and not any(flying.values()), "started under load: nothing in flight at the end")

    end = vm.background_fio(disk, rw="randrw", bs="4k", iodepth=DEPTH, number_ios=100000, time_based=None, runtime=4)
    daemon.stop("KILL")
    check.equal(machine.bpf_left(vm), ([], []), "killed: programs and maps")
    again = machine.Daemon(vm, log="daemon-again.log")
    end()
    before = again.at_rest(2)
    job = vm.fio(disk, rw="randrw", bs="4k", iodepth=DEPTH, number_ios=100)
    difference = metrics.Difference(before, again.at_rest(6))
    for operation in ("read", "write"):
        check.equal(figures.ios(difference, disk, operation), job[operation]["total_ios"], f"after: {operation} I/Os")
    drift = figures.drift(difference.after, disk)
    check.that(drift and not any(drift.values()), f"after: drift against diskstats: {drift}")
    again.stop()
    check.equal(machine.bpf_left(vm), ([], []), "stopped: programs and maps")
