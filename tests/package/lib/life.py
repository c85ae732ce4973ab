# SPDX-License-Identifier: Apache-2.0
"""The life of an installed package: installed, measuring, restarted, upgraded, purged without a trace."""
import re
import time

import figures
import machine
from lib import metrics

POLL = 10  # seconds between readings of a drive's logs, set as an administrator would
# What belongs to dpkg itself, to the programs that look after users, or to nobody.
NOT_OURS = r"^/(proc|sys|dev|run|tmp|var/tmp|var/cache|var/backups|var/log|var/lib/dpkg|var/lib/systemd/(timers|random-seed|catalog|rfkill)" \
           r"|etc/(passwd|group|shadow|gshadow|subuid|subgid)-$|etc/\.pwd\.lock$)"


def files(vm):
    """All that could be a trace: names, and who there is."""
    listed = vm.sh("find / -xdev | sort", 120).splitlines()
    people = vm.sh("cat /etc/passwd /etc/group /etc/shadow /etc/gshadow")
    return {name for name in listed if not re.search(NOT_OURS, name)}, people


def install(vm, package):
    return vm.sh(f"dpkg -i {package} 2>&1", 180)


def version(vm):
    package = vm.sh("dpkg-query -W -f '${Version}' ssdpulse")
    binary = vm.sh("ssdpulse --version").split()[1]
    return package, binary


def starts(vm, check, service, number):
    check.figure(f"ready {service.until_ready():.1f} s after dpkg was done: {service.state()}")
    package, binary = version(vm)
    scrape = service.scrape()
    [info] = scrape.series("ssdpulse_build_info")
    running = dict(info)["version"]
    check.equal((package.split("+")[0], binary, running), (number, number, number),
                f"version of the package ({package}), of the binary, and of the running daemon")
    check.equal(service.show("ActiveState", "ssdpulse-nvme.socket"), "active", "the log reader's socket")
    check.equal(vm.sh("stat -c '%U %a' /var/lib/ssdpulse"), "ssdpulse 750", "the directory of the history")
    code, output = vm.run("ss -ltn 2>/dev/null || grep -i ':2AB8 ' /proc/net/tcp /proc/net/tcp6")
    check.that(code == 0 and "0100007F:2AB8" in output.decode(), "listens on 127.0.0.1:10936, and nowhere else")


def measures(vm, check, service, serial="first"):
    disk = vm.disk(serial)
    for operation, command, count, size in (
            ("write", f"dd if=/dev/zero of=/dev/{disk} bs=4k count=500 oflag=direct", 500, 4096),
            ("read", f"dd if=/dev/{disk} of=/dev/null bs=16k count=300 iflag=direct", 300, 16384)):
        before = service.at_rest()
        vm.sh(f"{command} 2>&1; udevadm settle", 120)
        difference = metrics.Difference(before, service.at_rest())
        check.equal((figures.ios(difference, disk, operation), difference.value("ssdpulse_io_bytes_total", device=disk,
                                                                                operation=operation)),
                    (count, count * size), f"{operation}s of dd, and their bytes")
        lost = {key: value for key, value in difference.after.series("ssdpulse_lost_events_total", device=disk).items() if value}
        check.equal(lost, {}, f"{operation}s of dd: lost")


def reads_logs(vm, check, service, drives):
    scrape = service.when_drives_were_read(drives, float(vm.sh("date +%s")), 60)
    for labels in scrape.series("ssdpulse_nvme_last_poll_timestamp_seconds"):
        controller = dict(labels)["controller"]
        words = vm.sh(f"nvme smart-log /dev/{controller}")
        hours = int(re.search(r"power_on_hours\s*:\s*(\d+)", words)[1])
        kelvin = int(re.search(r"\((\d+) ?K", words)[1])
        has = (scrape.value("ssdpulse_nvme_power_on_seconds_total", controller=controller),
               scrape.value("ssdpulse_nvme_temperature_celsius", controller=controller, sensor="composite"))
        check.that(has[0] == hours * 3600 and has[1] is not None and abs(has[1] - kelvin + 273.15) < 0.5,
                   f"{controller}: hours in seconds and temperature: {has}; nvme-cli: {hours} h, {kelvin} K")
    check.equal(scrape.value("ssdpulse_source_up", source="nvme"), 1, "the source nvme is up")


def restarts(vm, check, service):
    pid = service.pid()
    rows = service.history()
    began = time.monotonic()
    vm.sh("systemctl restart ssdpulse", 90)
    check.figure(f"systemctl restart took {time.monotonic() - began:.1f} s")
    service.until_ready()
    check.that(service.pid() != pid and rows <= service.history(), f"restarted: another process, and all {len(rows)} rows of the history")
    vm.sh("systemctl reload ssdpulse")
    check.that(service.ready() and service.pid() != 0, "reloaded")


def upgrades(vm, check, service, package, number):
    rows, config = service.history(), vm.sh("sha256sum /etc/ssdpulse/ssdpulse.yaml")
    pid = service.pid()
    install(vm, package)
    starts(vm, check, service, number)
    check.that(service.pid() != pid, "upgraded: the new one runs")
    check.equal(vm.sh("sha256sum /etc/ssdpulse/ssdpulse.yaml"), config, "upgraded: the administrator's configuration")
    check.that(rows and rows <= service.history(), f"upgraded: all {len(rows)} rows of the history")


def is_purged(vm, check, before):
    vm.sh("dpkg --purge ssdpulse 2>&1", 120)
    names, people = files(vm)
    check.equal((sorted(names - before[0]), sorted(before[0] - names)), ([], []), "purged: files that stay, files that are missing")
    check.equal(people == before[1], True, "purged: users and groups as before")
    check.equal(vm.sh("find /run -name '*ssdpulse*'; systemctl list-units --all --no-legend '*ssdpulse*'"), "",
                "purged: nothing of it in /run, in systemd, or running")
    check.equal(machine.bpf_left(vm) if vm.run("command -v bpftool")[0] == 0 else ([], []), ([], []), "purged: nothing in the kernel")
