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
ROOM = 2  # the limit is so many times what the load costs with compiled programs


def devices():
    return [Nvme("loaded")]


def cost_of(daemon, looks=5):
    return sum(daemon.at_rest(1).value(RATIO) for _ in range(looks)) / looks


def start(vm, limit):
    vm.sh(f"printf 'nvme: {{ poll_interval: 1h }}\\nhistory: {{ directory: \"\" }}\\nlimits: {{ cpu: {limit}, after: 3s }}\\n' "
          ">/tmp/limits.yaml")
    return machine.Daemon(vm, "--config", "/tmp/limits.yaml", log=f"daemon-{limit}.log")


def run(vm, check):
    disk = vm.disk("loaded")
    check.equal(vm.sh(f"cat {JIT}"), "1", "programs are compiled")
    daemon = start(vm, "0%")
    end = vm.background_fio(disk, time_based=None, runtime=15, **LOAD)
    compiled = cost_of(daemon)
    end()
    daemon.stop()
    limit = f"{100 * ROOM * compiled:.6f}%"
    daemon = start(vm, limit)
    end = vm.background_fio(disk, time_based=None, runtime=15, **LOAD)
    levels = {int(daemon.at_rest(1).value(LEVEL)) for _ in range(6)}
    end()
    check.equal(levels, {0}, f"compiled: {compiled:.2e} of the CPUs, nothing is turned off at {limit}")
    daemon.stop()
    vm.sh(f"echo 0 >{JIT}")
    daemon = start(vm, limit)
    before = daemon.at_rest()
    end = vm.background_fio(disk, time_based=None, runtime=40, **LOAD)
    interpreted = daemon.wait_for(lambda scrape: scrape.value(LEVEL) > 0, "it does less", 30).value(RATIO)
    done = end(90)["read"]["total_ios"]
    after = daemon.wait_for(lambda scrape: scrape.value(LEVEL) == 0, "it does all again", 60)
    print(f"TABLE slow_programs: {compiled:.2e} of the CPUs' time compiled, {interpreted:.2e} interpreted")
    check.that(interpreted > ROOM * compiled, "interpreted programs cost more, and the daemon knows")
    check.that("limits.cpu: " in daemon.words() and "effort=essentials" in daemon.words(), "the log says so")
    difference = metrics.Difference(before, after)
    counted = difference.histogram("ssdpulse_io_latency_seconds", device=disk, operation="read").count
    lost = sum(difference.value("ssdpulse_lost_events_total", device=disk, cause=cause) for cause in ("completion_missed", "stray"))
    check.equal(counted + lost, done, f"each read counted once: {counted}, {lost} told as lost")
    daemon.stop()
