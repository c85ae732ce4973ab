# SPDX-License-Identifier: Apache-2.0
"""The kernel does not compile programs: where it interprets ours, they cost many times as much, and the daemon does
less at the same load and limit; where it refuses them, the daemon says what to set."""
import re

import machine
from devices import Nvme
from lib import metrics

INTERPRETS, REFUSES = "5.10", "6.12"
KERNELS = (INTERPRETS, REFUSES)
KERNELS_IN_CI = ()
SECONDS = 600
JIT = "/proc/sys/net/core/bpf_jit_enable"
RATIO, LEVEL = "ssdpulse_estimated_bpf_cpu_ratio", "ssdpulse_cpu_limit_level"
LOAD = {"rw": "randread", "bs": "4k", "rate_iops": 300}
TIMES = 2.5  # an interpreted program costs at least this many times as much
DOWN_AND_UP = ["essentials", "completions", "essentials", "everything"]  # levels 1, 2, 1, 0, as the log has them
WAY_OUT = "sysctl -w net.core.bpf_jit_enable=1"
KERNEL = 4  # exit status


def devices():
    return [Nvme("loaded")]


def start(vm, limit, name):
    vm.sh(f"printf 'nvme: {{ poll_interval: 1h }}\\nhistory: {{ directory: \"\" }}\\nlimits: {{ cpu: {limit.replace('%', '%%')}, after: 3s }}\\n' "
          ">/tmp/limits.yaml")
    return machine.Daemon(vm, "--config", "/tmp/limits.yaml", log=f"daemon-{name}.log")


def cost(vm, disk, name):
    """The reported cost of the load, as a share of all CPUs' time, without a limit."""
    daemon = start(vm, "0%", name)
    end = vm.background_fio(disk, time_based=None, runtime=20, **LOAD)
    looks = [daemon.at_rest(1).value(RATIO) for _ in range(5)]
    end(90)
    daemon.stop()
    return sum(looks) / len(looks)


def levels_of(vm, disk, daemon):
    """The levels seen during the load, and the number of its reads."""
    end = vm.background_fio(disk, time_based=None, runtime=20, **LOAD)
    levels = {int(daemon.at_rest(1).value(LEVEL)) for _ in range(6)}
    return levels, end(90)["read"]["total_ios"]


def interpreted(vm, check, disk):
    compiled = cost(vm, disk, "compiled")
    vm.sh(f"echo 0 >{JIT}")
    slow = cost(vm, disk, "interpreted")
    print(f"TABLE slow_programs: {compiled:.2e} of the CPUs' time compiled, {slow:.2e} interpreted")
    check.that(slow > TIMES * compiled, "the daemon knows that interpreted programs cost more")
    limit = f"{100 * slow * 0.75:.6f}%"  # level 1 costs nine tenths, level 2 three fifths
    daemon = start(vm, limit, "limited")
    before = daemon.at_rest()
    levels, done = levels_of(vm, disk, daemon)
    print(f"interpreted, with a limit of {limit}: levels {levels} during the load", flush=True)
    after = daemon.wait_for(lambda scrape: scrape.value(LEVEL) == 0, "it does all again", 90)
    said = re.findall(r"limits\.cpu: .* effort=(\w+)", daemon.words())
    check.equal(said, DOWN_AND_UP, f"with a limit of {limit} it does less, and all again once there is no load")
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


def refused(vm, check, disk):
    vm.sh(f"echo 0 >{JIT}; printf 'history: {{ directory: \"\" }}\\n' >/tmp/refused.yaml")
    code, output = vm.run("timeout 120 ssdpulse run --devices.include '*' --config /tmp/refused.yaml", 180)
    words = output.decode(errors="replace").strip()
    print(words, flush=True)
    check.that(code == KERNEL and WAY_OUT in words.splitlines()[-1], f"refused: exit code {code}, {words.splitlines()[-1]}")
    one = machine.doctor(vm, "--address 127.0.0.1:1 --config /tmp/refused.yaml").get(("bpf-jit", ""), {})
    check.equal((one.get("verdict"), one.get("change")), ("advise", WAY_OUT), "the doctor says so, too")
    vm.sh(f"echo 1 >{JIT}")  # the effect of that; there is no sysctl here
    check.that(("bpf-jit", "") not in machine.doctor(vm, "--address 127.0.0.1:1 --config /tmp/refused.yaml"), "gone")
    daemon = start(vm, "0%", "compiled")
    daemon.wait_for(lambda scrape: scrape.series("ssdpulse_device_info", device=disk), f"{disk} is measured")
    daemon.stop()


def run(vm, check):
    disk = vm.disk("loaded")
    check.equal(vm.sh(f"cat {JIT}"), "1", "programs are compiled")
    (interpreted if vm.name == INTERPRETS else refused)(vm, check, disk)
