#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Does the package work on its own Debian, with its kernel and its systemd? One guest, from installation to purge.

Usage: debian_guest.py DIRECTORY [OLD_PACKAGE] NEW_PACKAGE; DIRECTORY has kernel and root.img. QEMU_COMMAND as for
tests/vm. With one package: the short form, without upgrade and faults.
"""
import os
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path
from types import SimpleNamespace

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "vm/lib"), str(HERE.parents[1] / "kernel")]
# pylint: disable=wrong-import-position
import machine  # noqa: E402
from devices import Backend, Nvme, NvmeSubsystem  # noqa: E402
from lib.rig import Check  # noqa: E402

import faults  # noqa: E402
import life  # noqa: E402
import sandbox  # noqa: E402
import tenants  # noqa: E402
from service import Service  # noqa: E402

machine.BOOT_SECONDS = 300
LONG = os.environ.get("SSDPULSE_TEST_LONG") == "1"


def drives():
    return [Nvme("first", Backend("128M", data=True)),
            Nvme("unplugged", Backend("64M")),
            Nvme("history", Backend("64M", data=True)),
            NvmeSubsystem("second", Backend("128M"), fdp="fdp.runs=1M,fdp.nrg=1,fdp.nruh=4", ocp=True)]


class Steps:
    """Prints how long each took."""

    def __init__(self):
        self._began = time.monotonic()

    def __call__(self, what):
        print(f"---- {time.monotonic() - self._began:6.1f} s  {what}", flush=True)



def live(vm, check, packages):
    step = Steps()
    service = Service(vm)
    check.figure(f"{vm.sh('. /etc/os-release; echo $PRETTY_NAME')}, Linux {vm.sh('uname -r')}, "
                 f"{vm.sh('systemctl --version').splitlines()[0]}; ready {vm.boot_seconds:.0f} s after power-on")
    before = life.traces(vm)
    numbers = [package.name.split("_")[1].split("+")[0] for package in packages]

    def install():
        life.install(vm, f"/packages/{packages[0].name}")
        life.starts(vm, check, service, numbers[0])
        vm.sh(f"sed -i 's/poll_interval: 30s/poll_interval: {life.POLL}s/' /etc/ssdpulse/ssdpulse.yaml && systemctl reload ssdpulse || "
              "{ journalctl -q --no-pager -n 4 -o cat -u ssdpulse | tr '\\n' ' '; exit 1; }", 90)

    begin = [(f"install {numbers[0]}", install),
             ("measure", lambda: life.measures(vm, check, service)),
             ("units and containers", lambda: tenants.named(vm, check, service)),
             ("logs of the drives", lambda: life.reads_logs(vm, check, service, 5)),
             ("the sandboxes, from inside", lambda: sandbox.run(vm, check, service))]
    more = [("a minute of history", lambda: service.until(service.history, "rows of the history", 150)),
            ("names hashed", lambda: tenants.hashed(vm, check, service)),
            ("restart", lambda: life.restarts(vm, check, service)),
            (f"upgrade to {numbers[-1]}",
             lambda: life.upgrades(vm, check, service, f"/packages/{packages[-1].name}", numbers[-1])),
            ("an upgrade while systemd listens",
             lambda: life.keeps_the_web_socket(vm, check, service, f"/packages/{packages[-1].name}")),
            ("faults", lambda: faults.run(vm, check, service)),
            ("what was kept", lambda: life.kept(vm, check)),
            (f"downgrade to {numbers[0]}",
             lambda: life.downgrades(vm, check, service, f"/packages/{packages[0].name}", numbers[0])),
            ("a history of a newer version", lambda: life.sets_a_newer_history_aside(
                vm, check, service, f"/packages/{packages[-1].name}", numbers[-1])),
            ("a history of a build before 1.0.0", lambda: life.sets_an_earlier_history_aside(vm, check, service)),
            ("measure again", lambda: life.measures(vm, check, service))]
    for what, do in [*begin, *(more if len(packages) > 1 else []),
                     ("purge", lambda: life.is_purged(vm, check, before))]:
        step(what)
        try:
            do()
        except Exception as error:  # pylint: disable=broad-exception-caught  # the rest is still of interest
            check.that(False, f"{what}: {traceback.format_exc().strip().splitlines()[-1]}; "
                              f"{traceback.extract_tb(error.__traceback__)[-1]}")
    step("done")
    for line in vm.kernel_complaints():
        check.that(False, f"the kernel complains: {line}")


def main():
    directory, *packages = map(Path, sys.argv[1:])
    state = Path(tempfile.mkdtemp(prefix="ssdpulse-vm-"))
    files = SimpleNamespace(qemu=os.environ["QEMU_COMMAND"].split(), kernel=directory / "kernel", root=directory / "root.img")
    vm = machine.Machine(state, files, drives(), name="debian", long=LONG, memory="2G", append="systemd.show_status=0 quiet")
    check = Check()
    try:
        vm.start()
        live(vm, check, packages)
    except machine.GuestError as error:
        check.that(False, str(error))
    finally:
        if check.failures and vm.started:
            try:
                (directory / "journal").write_bytes(vm.run("journalctl --no-pager -b", 60)[1])
            except (machine.GuestError, OSError):
                pass
        vm.close()
        for name in ("commands", "console", "qemu.log"):
            if (state / name).exists():
                shutil.copy(state / name, directory)
        shutil.rmtree(state)
    if check.failures:
        sys.exit(f"FAIL: {check.failures} of these do not hold")


if __name__ == "__main__":
    main()
