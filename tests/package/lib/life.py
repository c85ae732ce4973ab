# SPDX-License-Identifier: Apache-2.0
"""The life of an installed package: installed, measuring, restarted, upgraded, purged without a trace."""
import json
import re
import time

import figures
import machine
from lib import history_pages, metrics

POLL = 10  # seconds between readings of a drive's logs, set as an administrator would
# What belongs to dpkg itself, to the programs that manage users, or to no package.
NOT_OURS = r"^/(proc|sys|dev|run|tmp|var/tmp|var/cache|var/backups|var/log|var/lib/dpkg|var/lib/apt|var/lib/systemd/(timers|random-seed|catalog|rfkill)" \
           r"|etc/(passwd|group|shadow|gshadow|subuid|subgid)-$|etc/\.pwd\.lock$)"


def traces(vm):
    """Everything that could be a trace: file names, users, and what is in the kernel."""
    listed = vm.sh("find / -xdev | sort", 120).splitlines()
    people = vm.sh("cat /etc/passwd /etc/group /etc/shadow /etc/gshadow")
    return {name for name in listed if not re.search(NOT_OURS, name)}, people, machine.bpf_objects(vm)


def install(vm, package):
    return vm.sh(f"dpkg -i {package} 2>&1", 180)


def version(vm):
    package = vm.sh("dpkg-query -W -f '${Version}' ssdpulse")
    binary = vm.sh("ssdpulse --version").split()[1]
    return package, binary


def starts(vm, check, service, number):
    check.figure(f"ready {service.until_ready():.1f} s after dpkg was done: {service.state()}")
    programs = machine.bpf_objects(vm)[0]
    check.that(len(programs) >= 2, f"programs in the kernel: {programs}")
    package, binary = version(vm)
    scrape = service.scrape()
    [info] = scrape.series("ssdpulse_build_info")
    running = dict(info)["version"]
    check.equal((package.split("+")[0], binary, running), (number, number, number),
                f"version of the package ({package}), of the binary, and of the running daemon")
    check.equal(service.show("ActiveState", "ssdpulse-nvme.socket"), "active", "the log reader's socket")
    check.equal(vm.sh("grep -shw ssdpulse.socket /var/lib/dpkg/info/ssdpulse.preinst || true"), "",
                "what an upgrade would do to a web socket that nobody starts again")
    check.equal(vm.sh("stat -c '%U %a' /var/lib/ssdpulse"), "ssdpulse 750", "the directory of the history")
    code, output = vm.run("ss -ltn 2>/dev/null || grep -i ':2AB8 ' /proc/net/tcp /proc/net/tcp6")
    check.that(code == 0 and "0100007F:2AB8" in output.decode(), "listens on 127.0.0.1:10936, and nowhere else")
    pid = service.main_pid()
    entries = [json.loads(line) for line in vm.sh(f"journalctl -o json _PID={pid} SSDPULSE_MODE=full").splitlines()]
    fields = [(entry["_SYSTEMD_UNIT"], entry["SYSLOG_IDENTIFIER"], entry["PRIORITY"], entry["_TRANSPORT"],
               entry["MESSAGE"].split(" devices=")[0], entry.get("SSDPULSE_DEVICES", "").isdigit()) for entry in entries]
    check.equal(fields, [(service.UNIT, "ssdpulse", "6", "journal", "measuring", True)],
                "the line that says that it measures, found in the journal by its field mode")


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


def smart_log(vm, controller):
    """What nvme-cli reads from it."""
    words = vm.sh(f"nvme smart-log /dev/{controller}").lower()
    figure = lambda name: int(re.search(rf"^{name}\s*:\s*([\d,]+)", words, re.M)[1].replace(",", ""))  # noqa: E731
    return (figure("power_on_hours") * 3600, figure("host_read_commands"), figure("host_write_commands")), \
        int(re.search(r"\((\d+) ?k", words)[1]) - 273.15


def reads_logs(vm, check, service, drives):
    """The exported values lie between what nvme-cli reads before and after."""
    controllers = vm.sh("ls /sys/class/nvme").split()
    before = {name: smart_log(vm, name)[0] for name in controllers}
    scrape = service.when_drives_were_read(drives, float(vm.sh("date +%s")) + 1, 60)
    check.equal(len(controllers), drives, "controllers")
    for name in controllers:
        has = tuple(scrape.value(f"ssdpulse_nvme_{metric}", controller=name, **labels) for metric, labels in (
            ("power_on_seconds_total", {}), ("host_commands_total", {"operation": "read"}),
            ("host_commands_total", {"operation": "write"})))
        celsius = scrape.value("ssdpulse_nvme_temperature_celsius", controller=name, sensor="composite")
        after, temperature = smart_log(vm, name)
        check.that(all(low <= value <= high for low, value, high in zip(before[name], has, after)) and
                   abs(celsius - temperature) < 0.5, f"{name}: seconds, commands of reading and of writing: {has}, nvme-cli "
                   f"before {before[name]}, after {after}; {celsius:.0f} C, nvme-cli {temperature:.0f} C")
    down = [dict(labels) for labels, value in scrape.series("ssdpulse_source_up").items() if value != 1]
    check.equal(down, [], "sources that are not up")


def restarts(vm, check, service):
    pid = service.main_pid()
    rows = service.history()
    began = time.monotonic()
    vm.sh("systemctl restart ssdpulse", 90)
    check.figure(f"systemctl restart took {time.monotonic() - began:.1f} s")
    service.until_ready()
    check.that(service.main_pid() != pid and rows.keys() <= service.history().keys(),
               f"restarted: another process, and all {len(rows)} rows of the history")
    vm.sh("systemctl reload ssdpulse")
    check.that(service.ready() and service.main_pid() != 0, "reloaded")


def upgrades(vm, check, service, package, number):
    rows, config = service.history(), vm.sh("sha256sum /etc/ssdpulse/ssdpulse.yaml")
    pid = service.main_pid()
    install(vm, package)
    starts(vm, check, service, number)
    check.that(service.main_pid() != pid, "upgraded: the new one runs")
    check.equal(vm.sh("sha256sum /etc/ssdpulse/ssdpulse.yaml"), config, "upgraded: the administrator's configuration")
    check.that(rows and rows.keys() <= service.history().keys(), f"upgraded: all {len(rows)} rows of the history")


def downgrades(vm, check, service, package, number):
    """Back to the older version, which can read what the newer one left: the schema is the same."""
    rows, config = service.history(), vm.sh("sha256sum /etc/ssdpulse/ssdpulse.yaml")
    install(vm, package)
    starts(vm, check, service, number)
    check.equal(vm.sh("sha256sum /etc/ssdpulse/ssdpulse.yaml"), config, "downgraded: the administrator's configuration")
    check.that(rows and rows.keys() <= service.history().keys(), f"downgraded: all {len(rows)} rows of the history")


def sets_aside(vm, check, service, at, value, line):
    """Changes one byte of the header of the history while nobody writes it: the file waits, unchanged, under a dated name.
    Returns that name and the byte before."""
    file = service.HISTORY
    before = int(vm.sh(f"systemctl stop ssdpulse; od -A n -t u1 -j {at} -N 1 {file}").strip())
    rows = service.history()
    change_header(vm, file, at, value(before))
    digest = vm.sh(f"sha256sum <{file}")
    vm.sh("systemctl start ssdpulse", 90)
    service.until_ready()
    service.until(service.keeps_history, "a history of its own is open")
    aside = vm.sh(f"ls -t {file}.set-aside-* | head -n 1")
    check.equal(vm.sh(f"sha256sum <{aside}"), digest, f"a file that {line}: set aside, unchanged")
    check.that(line in vm.sh("journalctl -b -u ssdpulse -o cat --no-pager"), f"a file that {line}: the log says so")
    check.that(len(service.history()) < len(rows), f"a file that {line}: a history of its own")
    return aside, before, rows


def change_header(vm, file, at, value):
    """Writes a byte, and the checksum of its page: the file is not damaged."""
    size = 16384
    page = bytearray(vm.run(f"head -c {size} {file}")[1])
    page[at] = value
    end = size - history_pages.CHECKSUM
    for begin, data in ((at, [value]), (end, history_pages.checksum(1, bytes(page)))):
        octal = "".join(f"\\{byte:03o}" for byte in data)
        vm.sh(f"printf '{octal}' | dd of={file} bs=1 seek={begin} conv=notrunc status=none")


def sets_a_newer_history_aside(vm, check, service, newer, number):
    """A file of a schema that this version does not know waits until it is moved back after the upgrade."""
    schema = 60 + 3  # where SQLite keeps the file's user version
    aside, old, rows = sets_aside(vm, check, service, schema, lambda byte: byte + 1,
                                  "was written by a newer version of ssdpulse")
    install(vm, newer)
    starts(vm, check, service, number)
    file = service.HISTORY
    vm.sh(f"systemctl stop ssdpulse; mv {aside} {file}", 90)
    change_header(vm, file, schema, old)
    vm.sh("systemctl start ssdpulse", 90)
    service.until_ready()
    check.that(rows and rows.keys() <= service.history().keys(), f"upgraded, and the file moved back: all its {len(rows)} rows")


def sets_an_earlier_history_aside(vm, check, service):
    """What a build before 1.0.0 left."""
    kind = 68 + 3  # where SQLite keeps the file's application id
    sets_aside(vm, check, service, kind, lambda _: ord("P"), "was written by a build of ssdpulse from before 1.0.0")


def keeps_the_web_socket(vm, check, service, package):
    """systemd listens for the daemon, which then has no address except the one it is given."""
    override = "/etc/systemd/system/ssdpulse.service.d"
    vm.sh(f"mkdir {override}; {{ echo '[Service]'; echo ExecStart=; sed -n 's/^ExecStart=.*/& --web.systemd-socket/p' "
          f"$(systemctl show -P FragmentPath ssdpulse); }} >{override}/socket.conf; systemctl daemon-reload; "
          "systemctl stop ssdpulse; systemctl start ssdpulse.socket ssdpulse.service", 90)
    service.until_ready()
    install(vm, package)  # the same again: an upgrade, as dpkg sees it
    service.until_ready()
    check.equal((service.show("ActiveState", "ssdpulse.socket"), service.state()), ("active", "active (running)"),
                "upgraded while systemd listens: the web socket and the daemon")
    vm.sh(f"rm -r {override}; systemctl daemon-reload; systemctl stop ssdpulse.socket ssdpulse; systemctl start ssdpulse", 90)
    service.until_ready()


def kept(vm, check):
    """No start refused what an earlier run had left, however that run ended."""
    words = vm.sh("journalctl -b -u ssdpulse -o cat --no-pager").splitlines()
    starts = sum("history up" in line for line in words)
    check.that(starts > 3, f"starts with a history: {starts}")
    check.equal([line for line in words if "is unusable" in line or "set aside" in line], [], "what was kept and is not used")


def is_purged(vm, check, before):
    vm.sh("systemctl stop ssdpulse && systemctl start ssdpulse.socket")  # as a user may have done
    vm.sh("dpkg --purge ssdpulse 2>&1", 120)
    time.sleep(3)  # for the kernel to free what nothing holds
    names, people, kernel = traces(vm)
    check.equal((sorted(names - before[0]), sorted(before[0] - names)), ([], []),
                "purged: files that stay, files that are missing")
    check.equal(people == before[1], True, "purged: users and groups as before")
    check.equal(vm.sh("find /run -name '*ssdpulse*'; systemctl list-units --all --no-legend '*ssdpulse*'"), "",
                "purged: nothing of it in /run, in systemd, or running")
    check.equal(kernel, before[2], "purged: programs and maps in the kernel, as before")
