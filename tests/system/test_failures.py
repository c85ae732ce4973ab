#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
"""Does each failure produce one line with the reason and the remedy, its own exit code, and leave nothing behind?

Not here: a kernel that is locked down. Lockdown cannot be undone before the next boot, so it needs a machine of its own
(tests/vm/scenarios/lockdown.py).
"""
import json
import os
import re
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import host
from lib import metrics, rig

STOPPED, USAGE, NOT_PERMITTED, KERNEL, ADDRESS, OPEN_FILES = 0, 2, 3, 4, 5, 7
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
LOG_LINE = re.compile(r"\d{4}-\d\d-\d\dT[\d:.+-]+ (\w+) (.*)")
BAD = """\
web:
  listen_address: nonsense
  listen_adress: 1
devices:
  include: 5
latency:
  mode: half
  mode: full
"""
BAD_LINES = (r"2:19: .*'nonsense'.* expected HOST:PORT", r"3:3: .*'listen_adress'.* expected one of listen_address",
             r"5:12: .* expected a list of patterns", r"7:9: .* expected full or completion-only, got 'half'",
             r"8:3: .*mode")
NO_BPF = [r"not permitted to load BPF programs; run as root, or with CAP_BPF and CAP_PERFMON"]


class Subject:
    """The binary as a descriptor: another user can run it wherever it is."""

    def __init__(self, check, state):
        self.check, self.state = check, state
        self.fd = os.open(rig.BINARY, os.O_RDONLY)
        self.binary = f"/proc/self/fd/{self.fd}"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.address = f"--web.listen-address=127.0.0.1:{self.port}"

    def run(self, *arguments, prefix=()):
        """(exit code, stdout, lines on stderr except those that are only information)."""
        done = subprocess.run([*prefix, self.binary, *map(str, arguments)], pass_fds=[self.fd], text=True, timeout=20,
                              capture_output=True, check=False, stdin=subprocess.DEVNULL)
        lines = []
        for line in done.stderr.splitlines():
            logged = LOG_LINE.match(line)
            if not logged:
                lines.append(line)
            elif logged[1] != "info":
                lines.append(logged[2])
        return done.returncode, done.stdout, lines

    def says(self, words, *arguments):
        """The log of a running daemon, until it contains these words, and slightly longer."""
        log = self.state / "said.log"
        with log.open("w") as out:
            process = subprocess.Popen([self.binary, "run", self.address, f"--history.directory={self.state}/history",
                                        *arguments], pass_fds=[self.fd], stderr=out)
        try:
            for _ in range(100):
                if words in log.read_text() or process.poll() is not None:
                    break
                time.sleep(0.1)
            time.sleep(1.5)
        finally:
            process.terminate()
            process.wait()
        return log.read_text()

    def fails(self, what, code, patterns, *arguments, prefix=()):
        """It must exit with this code and exactly one line for each pattern; nothing stays behind."""
        before = host.bpf_all()
        have, out, lines = self.run(*arguments, prefix=prefix)
        good = len(lines) == len(patterns) and all(map(re.search, patterns, lines))
        self.check.that(have == code and good and not out, f"{what}: exit {have}, {lines} {out!r}"
                        + ("" if have == code and good else f"; expected exit {code}, {patterns}"))
        left = host.bpf_left(host.bpf_all() - before - host.bpf_held_by_anybody())
        self.check.that(not left and not host.listening(self.port), f"{what}: nothing is left {left or ''}")


def addresses(subject):
    subject.fails("name without address", ADDRESS,
                  [r"no\.such\.host\.invalid:1: the name has no address .*; name an address"],
                  "run", "--web.listen-address=no.such.host.invalid:1")
    subject.fails("not an address of this host", ADDRESS,
                  [r"192\.0\.2\.1:1234: this host does not have that address; "],
                  "run", "--web.listen-address=192.0.2.1:1234")
    subject.fails("port out of range", USAGE, [r"--web.listen-address: '127\.0\.0\.1:99999' .*expected HOST:PORT"],
                  "run", "--web.listen-address=127.0.0.1:99999")
    subject.fails("path for a pattern", USAGE, [r"--devices.include: '/dev/nvme0n1' contains a slash"],
                  "run", "--devices.include=/dev/nvme0n1")
    with open("/proc/sys/net/ipv4/ip_unprivileged_port_start", encoding="ascii") as start:
        if int(start.read()) > 81:
            subject.fails("privileged port", ADDRESS,
                          [r"127\.0\.0\.1:81: not permitted; choose a port of 1024 or above"],
                          "run", "--web.listen-address=127.0.0.1:81", prefix=NOBODY)


def open_files(subject):
    """Each of these stops another call: of sysfs, of a map, of a program, of a link, of a socket."""
    for few in (8, 10, 16, 20, 24, 28, 32, 40, 63):
        subject.fails(f"{few} open files", OPEN_FILES, [rf"only {few} are allowed \(RLIMIT_NOFILE\).*raise LimitNOFILE="],
                      "run", subject.address, prefix=("prlimit", f"--nofile={few}"))


def privileges(subject):
    subject.fails("unprivileged user", NOT_PERMITTED, NO_BPF, "run", subject.address, prefix=NOBODY)
    subject.fails("root without capabilities", NOT_PERMITTED, NO_BPF, "run", subject.address,
                  prefix=("setpriv", "--bounding-set=-all", "--inh-caps=-all"))
    # By number: CAP_SYS_ADMIN 21 includes both, CAP_PERFMON 38, CAP_BPF 39.
    for name, number in (("CAP_BPF", 39), ("CAP_PERFMON", 38)):
        subject.fails(f"root without {name}", NOT_PERMITTED, NO_BPF, "run", subject.address,
                      prefix=("setpriv", f"--bounding-set=-cap_21,-cap_{number}"))


def advice(subject):
    """The privileges that the message asks for are sufficient."""
    caps = "+cap_38,+cap_39"
    process = subprocess.Popen([*NOBODY, f"--inh-caps={caps}", f"--ambient-caps={caps}", subject.binary, "run",
                                subject.address], pass_fds=[subject.fd], stderr=subprocess.PIPE, text=True)
    try:
        ready = None
        for _ in range(100):
            with suppress(OSError):
                ready = metrics.fetch(subject.port, "/-/ready", "*/*")[0]
            if ready or process.poll() is not None:
                break
            time.sleep(0.05)
        subject.check.equal(ready, 200, "ready as nobody with CAP_BPF and CAP_PERFMON")
        subject.check.equal(host.status(process.pid, "CapPrm"), "0" * 16, "and then without them")
    finally:
        process.terminate()
        subject.check.figure(f"its log: {process.communicate()[1].splitlines()[-1:]}")


def configuration(subject):
    state, check = subject.state, subject.check
    files = {"bad": BAD, "worse": "web: [\n", "good": "latency: { mode: full }\n", "secret": "latency: {}\n"}
    for name, text in files.items():
        (state / name).write_text(text)
    (state / "secret").chmod(0o600)
    bad = [f"^{re.escape(str(state / 'bad'))}:{line}" for line in BAD_LINES]
    subject.fails("config with several errors", USAGE, bad, "run", subject.address, "--config", state / "bad")
    subject.fails("check-config of it", USAGE, bad, "check-config", state / "bad")
    subject.fails("print-config of it", USAGE, bad, "print-config", "--config", state / "bad")
    subject.fails("config that is no YAML", USAGE, [r"worse:\d+:\d+: invalid YAML"], "check-config", state / "worse")
    subject.fails("no such config", USAGE, [r"absent: cannot be opened: No such file"], "run", "--config",
                  state / "absent")
    subject.fails("directory as config", USAGE, [r": is a directory; expected a file"], "run", "--config", state)
    subject.fails("unreadable config", USAGE, [r"^[^:]*secret: cannot be read: Permission denied$"], "run", "--config", state / "secret",
                  prefix=NOBODY)

    # Which features are missing depends on the host, but this device is missing on any host.
    (state / "good").write_text('latency: { mode: full }\ndevices: { include: ["*", no_such_disk] }\n')
    code, out, lines = subject.run("check-config", state / "good")
    gap = 'warning: devices.include: "no_such_disk" matches no block device of this host'
    check.that((code, out) == (STOPPED, f"{state / 'good'}: ok\n") and gap in lines
               and all(line.startswith("warning: ") for line in lines), f"check-config {code} {out} {lines}")
    for text, expected, words in (("latency: { mode: full }\n", STOPPED, "standard input: ok"),
                                  ("latency: { mode: half }\n", USAGE, "standard input:1:18: ")):
        done = subprocess.run([os.environ["SSDPULSE_BINARY"], "check-config", "-"], input=text, text=True,
                              capture_output=True, timeout=10, check=False)
        check.that(done.returncode == expected and words in done.stdout + done.stderr, f"check-config - {done}")
    devices_as_json(check, subject)
    code, out, lines = subject.run("print-config", "--devices.include=nvme*", "--web.listen-address=:1234")
    check.that(code == STOPPED and not lines and '["nvme*"]' in out and '[":1234"]' in out, "print-config with options")
    (state / "printed").write_text(out)
    check.equal(subject.run("print-config", "--config", state / "printed"), (STOPPED, out, []),
                "what it prints, it reads")


def empty_loops():
    """Each with the number that the kernel changes at every attach: other tests attach and detach loop devices."""
    return {(path.name, (path / "diskseq").read_text()) for path in Path("/sys/block").glob("loop*")
            if not (path / "loop/backing_file").exists()}


def devices_as_json(check, subject):
    before = empty_loops()
    code, out, lines = subject.run("devices", "--config", "", "--json")
    listed = json.loads(out)
    names = {one["device"] for one in listed["devices"]}
    empty = {name for name, _ in before & empty_loops()}  # the whole time
    check.that(code == STOPPED and not lines and set(listed) == {"devices", "drives", "drives_failure", "stacks", "layers"},
               "devices --json")
    check.that(names and not names & empty, f"lists {len(names)} devices, and none of {len(empty)} empty loops")
    check.that({one["state"] for one in listed["devices"]} <= {"measured", "excluded", "stacked", "empty"},
               "says whether they are measured")


def command_line(subject):
    check = subject.check
    # The command line parser adds a second line that says where the help is.
    for what, pattern, arguments in (("unknown option", "--frobnicate", ("run", "--frobnicate")),
                                     ("unknown subcommand", "frobnicate", ("frobnicate",)),
                                     ("no subcommand", "subcommand is required", ()),
                                     ("option without value", "--config", ("run", "--config"))):
        subject.fails(what, USAGE, [pattern, "--help"], *arguments)
    for what, meant, arguments in (("a letter too many in a command", "why", ("whyy",)),
                                   ("two letters exchanged in an option", "--log.level", ("run", "--log.levle=info"))):
        subject.fails(what, USAGE, [arguments[-1].partition("=")[0], "--help", f"Did you mean {meant}\\?"], *arguments)
    subject.fails("unknown log format", USAGE, [r"--log.format: .*\"xml\": expected text or json"],
                  "run", "--log.format=xml")
    subject.fails("unknown log level", USAGE, [r"--log.level: .*\"loud\": expected debug, info, warning or error"],
                  "run", "--log.level=loud")
    for arguments, expected in ((("--version",), r"^ssdpulse \d+\.\d+\.\d+ \(.+\)\n$"),
                                (("--help",), r"(?s)run.*Exit status"),
                                (("run", "--help"), r"(?s)--config.*Exit status"), (("devices",), r"^DEVICE +SIZE")):
        code, out, lines = subject.run(*arguments, prefix=NOBODY)
        check.that(code == STOPPED and re.search(expected, out) and not lines,
                   f"{' '.join(arguments)}: exit {code} {lines}")


def kernel(subject):
    empty = subject.state / "empty"
    empty.mkdir()
    subject.fails("no BTF", KERNEL, [r"no type information \(BTF\) at /sys/kernel/btf/vmlinux; use a kernel built with "
                                     r"CONFIG_DEBUG_INFO_BTF=y[^:]*$"], "run", subject.address,
                  prefix=("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /sys/kernel/btf && exec "$@"',
                          str(empty)))


def nothing_to_measure(subject):
    """Without statistics, the kernel gives requests no start time, and completion alone yields no latency."""
    with rig.ram_disks(subject.state, size="8M") as [disk]:
        disk.set_queue("iostats", 0)
        try:
            (subject.state / "cheap").write_text("latency: { mode: completion-only }\n")
            subject.fails("completion-only without iostats", KERNEL, [r"every device has queue/iostats set to 0.*write 1"],
                          "run", subject.address, "--config", subject.state / "cheap",
                          f"--devices.include={disk.name}", "--devices.exclude=none")
            said = subject.says("queue/iostats is 0", f"--devices.include={disk.name}", "--devices.exclude=none")
            pattern = rf"warning device={disk.name} has no total and queue latency, .*queue/iostats is 0; write 1 to it"
            subject.check.equal(len(re.findall(pattern, said)), 1, f"of a drive without statistics it warns once {said!r}")
        finally:
            disk.set_queue("iostats", 1)
        # The defaults exclude this kind of device.
        said = subject.says("no device", f"--devices.include={disk.name}*")
        pattern = rf"no device is measured: .*include \[{disk.name}\*\] .*exclude \[loop\* .*'ssdpulse devices'"
        subject.check.that(re.search(pattern, said) is not None, f"a daemon that measures nothing says so {said!r}")
        said = subject.says("measuring", f"--devices.include={disk.name}", "--devices.include=nothing")
        subject.check.that("measuring devices=1 " in said and "excluded" not in said,
                           f"a disk that is named is measured whatever its kind {said!r}")
        subject.check.that("warning device=nothing is included by name and not measured: there is no such disk" in said,
                           "one that is not there is not passed over in silence")


def test(check, state):
    state.chmod(0o755)
    subject = Subject(check, state)
    addresses(subject)
    open_files(subject)
    privileges(subject)
    advice(subject)
    configuration(subject)
    command_line(subject)
    kernel(subject)
    nothing_to_measure(subject)


rig.main(test)
