# SPDX-License-Identifier: Apache-2.0
"""A healthy host gets no advice and no warning from `ssdpulse audit`, and each rule can judge its disk."""
import json
import re

import machine
from devices import Backend, Nvme

KERNELS_IN_CI = ("newest",)  # the long form has all
MACHINE = {"append": "nvme_core.multipath=N"}  # a multipath head has no scheduler and no queue
SHARES_GUEST = True
CONFIG = "/tmp/healthy.yaml"
UNDECIDED = {"N4", "F1", "F2", "F3", "F4", "F21"}  # need a day, systemd (not in the guest), many I/Os during log reads
SECONDS_OF_LOAD = 6
FIO = ("fio --name=load --filename=/mnt/healthy/data --size=32M --rw=randrw --bs=4k --ioengine=psync --direct=1 --fsync=32 "
       f"--thread --time_based --runtime={SECONDS_OF_LOAD} --output=/dev/null")


def devices():
    return [Nvme("healthy", Backend("256M", data=True))]


def audit(vm, check, what, *options):
    """Its findings; checks that its exit code is the one the manual gives for them."""
    code, words = vm.run(f"ssdpulse audit -c {CONFIG} --json {' '.join(options)} 2>/tmp/audit.words", 120)
    try:
        findings = json.loads(words)["findings"]
    except ValueError as error:
        raise machine.GuestError(f"{what}: exit {code}, no JSON: {words!r} {vm.sh('cat /tmp/audit.words')}") from error
    to_do = [one for one in findings if one["verdict"] in ("advise", "danger")]
    check.equal(code, int(bool(to_do)), f"{what}: exit code")
    check.equal(vm.sh("cat /tmp/audit.words"), "", f"{what}: words on stderr")
    return findings


def brief(findings, *verdicts):
    return [f"{one['id']} {one['device']}: {one['found']}: {one['why']}" for one in findings if one["verdict"] in verdicts]


def run(vm, check):
    disk = vm.disk("healthy")
    vm.sh(f"modprobe -q ext4; mkdir -p /mnt/healthy; mke2fs -q -F -t ext4 -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 "
          f"/dev/{disk} && mount -t ext4 /dev/{disk} /mnt/healthy")
    vm.sh(f"printf 'nvme: {{ poll_interval: 10s }}\\nhistory: {{ directory: \"\" }}\\n' >{CONFIG}")
    daemon = machine.Daemon(vm, "--config", CONFIG)
    vm.sh(FIO, 60)
    daemon.when_drives_were_read(1, 0)
    daemon.at_rest()
    findings = audit(vm, check, "after a short load")
    check.equal(brief(findings, "advise", "danger"), [], "what is advised on a healthy host")
    # Seconds of an emulated drive, taken for a day, may seem slow: only settings are judged.
    hasty = audit(vm, check, "taken for a day", "--min-observation", "0.001")
    check.equal(brief(hasty, "danger"), [], "what is a danger there")
    print(f"TABLE advised of a minute taken for a day: {brief(hasty, 'advise')}")
    rules = set(re.findall(r"^\| ([A-Z]\d+) \|", vm.sh("ssdpulse audit --rules"), re.M))
    said = {one["id"] for one in findings if one["device"] in (disk, "/mnt/healthy", "")}
    check.that(said and said <= rules, f"of {len(rules)} rules {len(said)} speak of the disk, its mount and the host")
    unknown = [one for one in findings if one["verdict"] == "unknown" and one["device"] in (disk, "/mnt/healthy", "")
               and one["id"] not in UNDECIDED]
    check.equal({one["id"] for one in unknown}, set(), f"what this kernel does not show: {brief(unknown, 'unknown')}")
    daemon.stop()
    vm.sh(f"umount /mnt/healthy; rm -f {CONFIG}")
