# SPDX-License-Identifier: Apache-2.0
"""One guest: started by QEMU, controlled through a virtio port (lib/init), rearranged through QMP, always ended."""
import base64
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "kernel"))
from lib import metrics  # noqa: E402  (tests/kernel/lib)

ROOT_PARTITION = "73736470-01"
BOOT_SECONDS = 100  # on a busy host; it is 3 s on a quiet one
LOOK_SECONDS = 0.2  # at most, from the first to the last count that the daemon reads in one sampling
LATEST_LOOK_SECONDS = 10


class GuestError(RuntimeError):
    pass


class EmulatorDied(GuestError):
    """QEMU aborted. Emulating several processors at once, 10.0 does so occasionally (iotlb_to_section)."""


class Machine:
    """`files`: kernel, qemu (a command prefix), and initrd, or root (an image). Everything it writes lies in `state`. `qemu`:
    more arguments. `own_time`: the guest's clock counts its instructions, a nanosecond each, and skips whatever time it is idle.
    So it is exact on a starved host, but goes on while the host only waits; no disk may be served by another process."""

    def __init__(self, state, files, devices, name="", long=False, cpus=2, memory="1G", append="", qemu=(), own_time=False):
        self.state, self.name, self.long = Path(state), name, long
        self.devices = {device.serial: device for device in devices}
        self._numbers = {device.serial: number for number, device in enumerate(devices)}
        self._files, self._cpus, self._memory, self._append, self._more = files, cpus, memory, append, qemu
        self._accelerator = os.environ.get("SSDPULSE_VM_ACCELERATOR", "tcg,thread=multi")
        self._own_time = own_time
        if own_time:
            self._accelerator, self._more = "tcg,thread=single", ("-icount", "shift=0,sleep=off", *qemu)
        self._process = self._agent = self._qmp = None
        self.started = False

    def start(self):
        """Returns when the guest accepts commands; call close() in any case."""
        began, self.started = time.monotonic(), True
        arguments = []
        for serial, device in self.devices.items():
            arguments += device.start(self.state, self._numbers[serial])
        # The fewer features it has, the less there is to emulate; today's programs need no more than this.
        cpu = "Nehalem" if self._accelerator.startswith("tcg") else "host"
        command = ["setpriv", "--pdeathsig", "KILL", *self._files.qemu, "-accel", self._accelerator, "-cpu", cpu,
                   "-M", "q35,usb=off", "-smp", str(self._cpus), "-m", self._memory, "-nodefaults",
                   "-no-user-config", "-display", "none", "-no-reboot",
                   "-kernel", self._files.kernel, *self._root(), "-append",
                   "console=ttyS0 panic=-1 mitigations=off nowatchdog no_timer_check random.trust_cpu=on rdinit=/init "
                   f"root=PARTUUID={ROOT_PARTITION} rw loglevel=5 " + self._append,
                   "-serial", f"file:{self.state / 'console'}", "-device", "virtio-serial-pci",
                   "-chardev", f"socket,id=agent,path={self.state / 'agent'},server=on,wait=off",
                   "-device", "virtserialport,chardev=agent,name=agent",
                   "-qmp", f"unix:{self.state / 'qmp'},server=on,wait=off", *self._more, *arguments]
        with open(self.state / "qemu.log", "w") as log:
            log.write(" ".join(map(str, command)) + "\n")
            log.flush()
            self._process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=log,
                                             stderr=subprocess.STDOUT)
        deadline = began + BOOT_SECONDS * (3 if self._own_time else 1)
        self._agent = self._connect("agent", deadline)
        self._agent_file = self._agent.makefile("rb")
        if self._read_line(deadline) != "0 0":
            raise GuestError("the guest greets wrongly")
        qmp = self._connect("qmp", deadline)
        self._qmp = qmp.makefile("rwb")
        self._qmp.readline()  # its greeting
        self.qmp("qmp_capabilities")
        self.boot_seconds = time.monotonic() - began

    def _root(self):
        """An archive in memory, or a partition of the guest's own drive: both need only built-in drivers."""
        if hasattr(self._files, "initrd"):
            return ["-initrd", self._files.initrd]
        return ["-blockdev", f"driver=file,node-name=root,filename={self._files.root},cache.no-flush=on",
                "-device", "nvme,serial=root,drive=root,dbcs=off"]

    def _connect(self, name, deadline):
        while True:
            channel = socket.socket(socket.AF_UNIX)
            try:
                channel.connect(str(self.state / name))
                return channel
            except OSError:
                channel.close()
                self._still_there(deadline, f"QEMU opens no {name}")
                time.sleep(0.02)

    def _still_there(self, deadline, what):
        if self._process.poll() is not None:
            self._gone(f"QEMU ended with exit code {self._process.returncode}: {self.state / 'qemu.log'}")
        if time.monotonic() > deadline:
            console = self.state / "console"
            text = console.read_text(errors="replace") if console.exists() else ""
            said = [line.strip() for line in text.splitlines() if line.strip()]
            raise GuestError(f"{what} in time; its console ends: {' | '.join(said[-3:]) or 'empty'}")

    def _gone(self, what):
        if self._process.returncode == -signal.SIGABRT:
            words = (self.state / "qemu.log").read_text(errors="replace").splitlines()[1:]  # after the command
            raise EmulatorDied(words[-1] if words else "it said nothing")
        raise GuestError(what)

    def _read_line(self, deadline):
        return self._read(deadline, self._agent_file.readline).decode().strip()

    def _read(self, deadline, read, size=1):
        self._agent.settimeout(max(0.1, deadline - time.monotonic()))
        try:
            data = read()
        except TimeoutError:
            self._still_there(0, "the guest does not answer")
        except ConnectionError:
            data = b""
        if len(data) < size:
            self._hung_up()
        return data

    def _hung_up(self):
        """The other end of a channel is closed: reports why."""
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired as error:
            raise GuestError("QEMU closed a channel, but goes on") from error
        self._gone(f"the guest has ended: {self.state / 'console'}")

    def run(self, script, seconds=60):
        """(exit code, output) of a shell script in the guest, as bytes."""
        began = time.monotonic()
        try:
            self._agent.sendall(base64.b64encode(script.encode()) + b"\n")
        except ConnectionError:
            self._hung_up()
        deadline = began + seconds
        line = self._read_line(deadline).split()
        if len(line) != 2:
            self._hung_up()
        code, size = map(int, line)
        output = self._read(deadline, lambda: self._agent_file.read(size), size) if size else b""
        with open(self.state / "commands", "a") as log:
            log.write(f"$ {script}\n[{code}, {time.monotonic() - began:.2f} s] {output[:2000]!r}\n")
        return code, output

    def sh(self, script, seconds=60):
        """The output of a script that must succeed."""
        code, output = self.run(script, seconds)
        if code != 0:
            raise GuestError(f"in the guest: {script}: exit {code}: {output.decode(errors='replace')[-2000:]}")
        return output.decode(errors="replace").strip()

    def wait_for(self, script, seconds=10):
        """Waits until the script succeeds."""
        self.sh(f"n=0; until {{ {script}; }} >/dev/null 2>&1; do n=$((n + 1)); [ $n -lt {int(seconds * 10)} ] || "
                "{ echo 'never came true'; exit 1; }; sleep 0.1; done", seconds * 3 + 10)

    def sleep(self, seconds):
        """For so long by the guest's clock."""
        if self._own_time:
            self.sh(f"sleep {seconds}", 60 + 10 * seconds)
        else:
            time.sleep(seconds)

    def clock(self):
        """The guest's wall clock. Busybox's `date` has no fractions, and Debian has no `adjtimex`."""
        text = self.sh("date +%s.%N | grep -v N || adjtimex")
        if re.fullmatch(r"[\d.]+", text.strip()):
            return float(text)
        seconds, microseconds = re.findall(r"time\.tv_u?sec: +(\d+)", text)
        return int(seconds) + int(microseconds) / 1e6

    def disk(self, serial, seconds=20):
        """The kernel's name of the disk with this serial number, once it appears."""
        return self.sh(f"for n in $(seq {seconds * 20}); do for d in $(ls -d /sys/block/* 2>/dev/null); do "
                       f"case \"$(cat $d/serial $d/device/serial $d/device/../serial 2>/dev/null | head -n 1)\" in "
                       f"{serial}|{serial}\\ *) case $d in */nvme*c*n*) ;; *) echo ${{d##*/}}; exit;; esac;; esac; "
                       "done; sleep 0.05; done; ls /sys/block; exit 1", seconds * 3)

    def unplug(self, identity, seconds=20):
        """Asks the guest to let go of a device; returns when it has."""
        self.qmp("device_del", id=identity)
        deadline = time.monotonic() + seconds
        while any(entry["name"] == identity for entry in self.qmp("qom-list", path="/machine/peripheral")):
            if time.monotonic() > deadline:
                raise GuestError(f"the guest keeps {identity}")
            time.sleep(0.05)

    def plug(self, serial):
        """Puts an unplugged NVMe drive back."""
        deadline = time.monotonic() + 30
        while True:
            try:
                self.qmp("device_add", **self.devices[serial].plug_arguments(self._numbers[serial]))
                return
            except GuestError as error:  # I/O of the unplugged drive may still be on its way to the backend
                if "Permission conflict" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def fio(self, disk, seconds=60, **options):
        """Runs a fio with one job on the disk and returns that job. An option of None has no value."""
        out = self.sh(_fio_command(disk, **options), seconds)
        return json.loads(out[out.index("{"):])["jobs"][0]

    def trace(self, disk, events):
        """Counts these block events of the disk from now on; call the result to get {event: count}."""
        major, minor = self.sh(f"cat /sys/block/{disk}/dev").split(":")
        self.sh("cd /sys/kernel/tracing && echo 0 >tracing_on && echo >trace && echo 20000 >buffer_size_kb && " +
                " && ".join(f"echo 'dev == {int(major) << 20 | int(minor)}' >events/block/{event}/filter && "
                            f"echo 1 >events/block/{event}/enable" for event in events) + " && echo 1 >tracing_on")

        def end():
            lines = self.sh("cd /sys/kernel/tracing && echo 0 >tracing_on && " + "; ".join(
                f"echo 0 >events/block/{event}/enable; echo {event} $(grep -c ' {event}: ' trace)" for event in events))
            return {line.split()[0]: int(line.split()[1]) for line in lines.splitlines()}
        return end

    def background_fio(self, disk, **options):
        """A fio in the background, which already has I/O in flight; call the result for its job once it has ended."""
        command = _fio_command(disk, output="/tmp/fio.json", **options)
        # In Linux 6.12.117 the `stat` of a whole disk does not count what is in flight on its partitions.
        figures = "cat /sys/block/*/stat /sys/block/*/inflight"
        pid = self.sh(f"{figures} >/tmp/idle; {command} >/tmp/fio.log 2>&1 & echo $!")
        self.wait_for(f"! {{ {figures}; }} | cmp -s - /tmp/idle")

        def end(seconds=60):
            self.wait_for(f"! kill -0 {pid}", seconds)
            out = self.sh("cat /tmp/fio.json")
            return json.loads(out[out.index("{"):])["jobs"][0]
        return end

    def collect(self):
        """Saves the logs of the guest's daemons, for the analysis of a failure."""
        try:
            (self.state / "daemon.log").write_bytes(self.run("cat /tmp/daemon*.log 2>/dev/null", 10)[1])
            (self.state / "dmesg").write_bytes(self.run("dmesg", 10)[1])
            page = self.run(f"curl -s -m 5 http://127.0.0.1:{Daemon.PORT}/metrics", 10)[1]
            if page:
                (self.state / "metrics.txt").write_bytes(page)
        except (GuestError, OSError):
            pass  # the guest is what failed

    def qmp(self, command, **arguments):
        try:
            self._qmp.write(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
            self._qmp.flush()
        except ConnectionError:
            self._hung_up()
        while True:
            line = self._qmp.readline()
            if not line.endswith(b"\n"):
                self._hung_up()
            answer = json.loads(line)
            if "error" in answer:
                raise GuestError(f"QMP {command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]

    def restart(self):
        """As after a power cut: what is not on a disk is gone."""
        self.close()
        self.start()

    def kernel_complaints(self):
        """Messages that no kernel may print."""
        text = (self.state / "console").read_text(errors="replace")
        return [line for line in text.splitlines()
                if re.search(r"BUG:|WARNING:|Oops|Kernel panic|blocked for more than|general protection", line)]

    def close(self):
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for channel in (self._agent, self._qmp):
            if channel is not None:
                channel.close()
        for device in self.devices.values():
            device.stop()


def _fio_command(disk, **options):
    options = {"name": "job", "filename": f"/dev/{disk}", "direct": 1, "ioengine": "libaio", "norandommap": None,
               "randrepeat": 0, "lat_percentiles": 1, "thread": None, "output-format": "json", **options}
    return "fio " + " ".join(f"--{key}" if value is None else f"--{key}={value}" for key, value in options.items())


class Daemon:
    """The daemon in the guest. `preload` makes libbpf print the verifier's figures; `environment`: words before the command."""

    PORT = 10936

    def __init__(self, vm, *options, preload=False, log="daemon.log", environment=""):
        self.vm, self.log = vm, f"/tmp/{log}"
        if "--config" not in options:
            # Scenarios that are not about wear read no logs: those commands would be counted, too.
            vm.sh("printf 'nvme: { poll_interval: 1h }\nhistory: { directory: \"\" }\n' >/tmp/daemon.yaml")
            options = (*options, "--config", "/tmp/daemon.yaml")
        # A program run takes many times as long on an emulated processor, but nothing may be left out because of that.
        file = options[options.index("--config") + 1] if "--config" in options else ""
        if file.startswith("/tmp/"):
            vm.sh(f"grep -q ^limits: {file} || echo 'limits: {{ cpu: 0% }}' >>{file}")
        include = "" if "--devices.include" in options else "--devices.include '*' --devices.exclude none"
        environment = f"LD_PRELOAD=/usr/lib/libverifier_stats.so {environment} " if preload else environment + " "
        began = time.monotonic()
        self.pid = int(vm.sh(f"{environment}ssdpulse run {include} {' '.join(options)} >{self.log} 2>&1 & echo $!"))
        try:
            vm.sh(f"until curl -sf -o /dev/null http://127.0.0.1:{self.PORT}/-/ready; do "
                  f"kill -0 {self.pid} 2>/dev/null || exit 1; sleep 0.2; done", 180)  # the verifier, emulated
        except GuestError as error:
            raise GuestError(f"the daemon does not start: {self.words()}") from error
        self.start_seconds = time.monotonic() - began

    def words(self):
        return self.vm.run(f"cat {self.log}")[1].decode(errors="replace")

    def text(self):
        body = self.vm.run(f"curl -s http://127.0.0.1:{self.PORT}/metrics")[1]
        (self.vm.state / "metrics.txt").write_bytes(body)
        return body.decode()

    def scrape(self, query=""):
        code, body = self.vm.run(f"curl -sf -H 'Accept: {metrics.PROTOBUF}' "
                                 f"'http://127.0.0.1:{self.PORT}/metrics{query}'")
        if code != 0:
            raise GuestError(f"no answer from /metrics: {self.words()[-1000:]}")
        return metrics.Scrape.from_protobuf(body)

    def at_rest(self, seconds=2.5):
        """A scrape that includes everything that ended before the call.

        A starved guest reads its counters less often than each second: what ended before the call would count as later.
        """
        called = self.vm.clock()
        self.vm.sleep(seconds)
        deadline = time.monotonic() + LATEST_LOOK_SECONDS
        # A sampling records its time at its end, and may have begun before the call.
        while (scrape := self.scrape()).value("ssdpulse_snapshot_timestamp_seconds") < called + LOOK_SECONDS:
            if time.monotonic() > deadline:
                break  # the guest's clock was set back, or a scenario holds the daemon up: it gets what there is
            time.sleep(0.2)
        return scrape

    def wait_for(self, true, what, seconds=40):
        """The first scrape for which `true` holds."""
        deadline = time.monotonic() + seconds
        while not true(scrape := self.scrape()):
            if time.monotonic() > deadline:
                raise GuestError(f"not in {seconds} s: {what}; the daemon says: {self.words()[-1000:]}")
            time.sleep(0.5)
        return scrape

    def when_drives_were_read(self, drives, after, seconds=40):
        """The first scrape in which this many NVMe drives were read later than `after` by the guest's clock."""
        return self.wait_for(lambda scrape: drives <= sum(when > after for when in scrape.series(
            "ssdpulse_nvme_last_poll_timestamp_seconds").values()), f"{drives} drives are read", seconds)

    def stop(self, signal="TERM", seconds=10):
        """Its exit code is not available (it is no child of this script); checks that it ends."""
        self.text()
        self.vm.sh(f"kill -{signal} {self.pid}")
        self.vm.wait_for(f"! kill -0 {self.pid}", seconds)


def doctor(vm, *options, how=""):
    """{(id, device): finding} of the doctor's findings that are not ok. `how`: words before the command."""
    code, words = vm.run(f"{how} ssdpulse doctor --json {' '.join(options)} 2>/dev/null", 60)
    if code not in (0, 1):
        raise GuestError(f"ssdpulse doctor: exit {code}: {words.decode(errors='replace')}")
    return {(one["id"], one["device"]): one for one in json.loads(words)["findings"] if one["verdict"] != "ok"}


def wall_seconds(text):
    """Seconds since the epoch, from a time as the log writes it."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%f%z").timestamp()


def bpf_objects(vm):
    """Names of the tracing programs and of the maps in the kernel: nothing but the daemon has any."""
    programs = json.loads(vm.sh("bpftool -j prog show") or "[]")
    maps = json.loads(vm.sh("bpftool -j map show") or "[]")
    return (sorted(p.get("name", "?") for p in programs if p["type"] in ("tracing", "raw_tracepoint")),
            sorted(m.get("name", "?") for m in maps))


def bpf_left(vm, seconds=5):
    """What is still there once the kernel has had time to free what nothing holds."""
    deadline = time.monotonic() + seconds
    while (left := bpf_objects(vm)) != ([], []) and time.monotonic() < deadline:
        time.sleep(0.2)
    return left
