# SPDX-License-Identifier: Apache-2.0
"""Secure Boot locks kernels down: with `integrity` everything is measured; with `confidentiality` the start says what
prevents it, and a daemon that was already running continues to measure."""
import machine
from devices import Nvme
from lib import compare

KERNELS = ("6.12", "newest")
LOCKDOWN = "/sys/kernel/security/lockdown"
IOS = 50


def devices():
    return [Nvme("locked")]


def reads(daemon, disk):
    return daemon.at_rest().histogram(compare.DEVICE, device=disk, operation="read", during="none").count


def run(vm, check):
    vm.sh("mount -t securityfs security /sys/kernel/security")
    disk = vm.disk("locked")
    load = f"dd if=/dev/{disk} of=/dev/null bs=4k count={IOS} iflag=direct 2>/dev/null"
    vm.sh(f"echo integrity >{LOCKDOWN}")
    daemon = machine.Daemon(vm)
    features = {dict(labels)["feature"]: dict(labels)["decision"]
                for labels in daemon.scrape().series("ssdpulse_kernel_feature_info")}
    check.equal(features["write_class"], "end_functions", "with integrity, write classes")
    check.that(features["discard_submitters"] != "not_hooked", f"discards: {features['discard_submitters']}")
    before = reads(daemon, disk)
    vm.sh(load)
    check.equal(reads(daemon, disk) - before, IOS, "with integrity, reads counted")
    check.that(("lockdown", "") not in machine.doctor(vm, "--address 127.0.0.1:1"), "with integrity, the doctor sees nothing in the way")

    vm.sh(f"echo confidentiality >{LOCKDOWN}")
    before = reads(daemon, disk)
    vm.sh(load)
    check.equal(reads(daemon, disk) - before, IOS, "reads counted by who started before confidentiality")
    daemon.stop()
    one = machine.doctor(vm, "--config /tmp/daemon.yaml").get(("lockdown", ""), {})
    check.equal((one.get("verdict"), one.get("change")), ("danger", "boot with lockdown=integrity, or without"),
                "with confidentiality, the doctor names it")
    code, words = vm.run("timeout 30 ssdpulse run --devices.include '*' --config /tmp/daemon.yaml", 60)
    words = words.decode(errors="replace").strip()
    check.that(code == 4 and "locked down (confidentiality)" in words.splitlines()[-1],
               f"with confidentiality: exit code {code}, {words.splitlines()[-1]}")
