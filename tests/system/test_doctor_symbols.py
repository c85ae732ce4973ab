#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 60
# alone: changes kernel.kptr_restrict
"""Does `ssdpulse doctor` report that the kernel hides its symbols, with and without a daemon, until that is fixed?"""
import subprocess
from pathlib import Path

from doctor import doctor, until
from lib import rig

KPTR = Path("/proc/sys/kernel/kptr_restrict")


def symbols_hidden(check, state, disk):
    before = KPTR.read_text()
    try:
        KPTR.write_text("2")
        code, found = doctor("--address", "127.0.0.1:1")
        check.that(code == 1 and found[("kptr-restrict", "")]["verdict"] == "advise", "kptr_restrict, no daemon")
        with rig.daemon(state, [disk]) as daemon:
            where = ("--address", f"127.0.0.1:{daemon.port}")
            key = ("write-classes", "")
            one = until(lambda found: key in found, *where)[1].get(key, {})
            check.equal(one.get("verdict"), "advise", "kptr_restrict, a daemon")
        subprocess.run(["sh", "-c", found[("kptr-restrict", "")]["change"]], check=True, stdout=subprocess.DEVNULL)
        with rig.daemon(state, [disk]) as daemon:
            found = doctor("--address", f"127.0.0.1:{daemon.port}")[1]
            check.that(("write-classes", "") not in found, "gone after the change and a restart")
    finally:
        KPTR.write_text(before)


def test(check, state):
    with rig.ram_disks(state, size="64M", filled=False) as [disk]:
        symbols_hidden(check, state, disk)


rig.main(test)
