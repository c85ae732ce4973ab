# SPDX-License-Identifier: Apache-2.0
"""Programs that cost many times as much (the kernel interprets them) are noticed, and the daemon does less: the same load, the same limit."""
import machine
from devices import Nvme
from lib import metrics

KERNELS = ("6.12",)  # the steps are the same on each: system.test_cpu_limit
KERNELS_IN_CI = ()
SECONDS = 400
JIT = "/proc/sys/net/core/bpf_jit_enable"
RATIO, LEVEL = "ssdpulse_estimated_bpf_cpu_ratio", "ssdpulse_cpu_limit_level"
LOAD = {"rw": "randread", "bs": "4k", "rate_iops": 300}
TIMES = 2.5  # at least so many times as much does an interpreted program cost
CLOSED = 3  # the level at which programs are detached for good


def devices():
    return [Nvme("loaded")]


def start(vm, limit, name):
    vm.sh(f"printf 'nvme: {{ poll_interval: 1h }}\\nhistory: {{ directory: \"\" }}\\nlimits: {{ cpu: {limit.replace('%', '%%')}, after: 3s }}\\n' "
          ">/tmp/limits.yaml")
    return machine.Daemon(vm, "--config", "/tmp/limits.yaml", log=f"daemon-{name}.log")


def cost(vm, disk, name):
    """What the load is said to cost, of all CPUs' time, where nothing is limited."""
    daemon = start(vm, "0%", name)
    end = vm.background_fio(disk, time_based=None, runtime=20, **LOAD)
    looks = [daemon.at_rest(1).value(RATIO) for _ in range(5)]
    end(90)
    daemon.stop()
    return sum(looks) / len(looks)


def levels_of(vm, disk, daemon):
    """Those seen during the load, and the reads that it made."""
    end = vm.background_fio(disk, time_based=None, runtime=20, **LOAD)
    levels = {int(daemon.at_rest(1).value(LEVEL)) for _ in range(6)}
    return levels, end(90)["read"]["total_ios"]


def run(vm, check):
    disk = vm.disk("loaded")
    check.equal(vm.sh(f"cat {JIT}"), "1", "programs are compiled")
    compiled = cost(vm, disk, "compiled")
    vm.sh(f"echo 0 >{JIT}")
    interpreted = cost(vm, disk, "interpreted")
    print(f"TABLE slow_programs: {compiled:.2e} of the CPUs' time compiled, {interpreted:.2e} interpreted")
    check.that(interpreted > TIMES * compiled, "the daemon knows that interpreted programs cost more")
    limit = f"{100 * interpreted / 2:.6f}%"  # a third of the programs' work fits into that
    daemon = start(vm, limit, "limited")
    before = daemon.at_rest()
    levels, done = levels_of(vm, disk, daemon)
    check.that(max(levels) > 0 and CLOSED not in levels, f"interpreted, with a limit of {limit}, it does less: levels {levels}")
    after = daemon.wait_for(lambda scrape: scrape.value(LEVEL) == 0, "it does all again", 60)
    check.that("limits.cpu: " in daemon.words() and "effort=essentials" in daemon.words(), "the log says so")
    difference = metrics.Difference(before, after)
    counted = difference.histogram("ssdpulse_io_latency_seconds", device=disk, operation="read").count
    lost = sum(difference.value("ssdpulse_lost_events_total", device=disk, cause=cause) for cause in ("completion_missed", "stray"))
    check.equal(counted + lost, done, f"each read counted once: {counted}, {lost} reported as lost")
    daemon.stop()
    vm.sh(f"echo 1 >{JIT}")
    daemon = start(vm, limit, "quick")
    levels, _ = levels_of(vm, disk, daemon)
    check.equal(levels, {0}, "compiled, with the same load and limit, nothing is turned off")
    daemon.stop()
