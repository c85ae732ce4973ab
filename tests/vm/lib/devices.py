# SPDX-License-Identifier: Apache-2.0
"""Which disks can a scenario ask for? Each becomes QEMU arguments; start() and stop() run what serves it on the host.

A disk is found in the guest by its serial number (machine.Machine.disk). Disks that a kernel makes by itself
(null_blk, scsi_debug, loop) are not here: modprobe makes them in the guest.
"""
import json
import os
import re
import socket
import subprocess
import time
from pathlib import Path

import nvme_tcp


class Backend:
    """Storage that holds nothing and takes no time; `data=True` keeps what is written, in a sparse file."""

    def __init__(self, size="256M", data=False):
        self._size, self._data = size, data

    def start(self, state, node):
        if not self._data:
            return ["-blockdev", f"null-co,node-name={node},size={_bytes(self._size)},read-zeroes=on"]
        path = state / f"{node}.img"
        if not path.exists():  # it survives a restart of the guest
            with open(path, "wb") as file:
                file.truncate(_bytes(self._size))
        return ["-blockdev", f"driver=file,node-name={node},filename={path},discard=unmap,cache.direct=off,"
                             "cache.no-flush=on"]

    def stop(self):
        pass


class Logged:
    """Storage in memory that keeps what is written, and its own log of each command."""

    def __init__(self, size="256M"):
        self._size, self._process, self._log = size, None, None

    def start(self, state, node):
        self._log = state / f"{node}.commands"
        door = state / f"{node}.nbd"
        with open(state / f"{node}.log", "w") as words:
            self._process = subprocess.Popen(["nbdkit", "--exit-with-parent", "--foreground", "--unix", str(door),
                                              "--filter=log", "memory", self._size, f"logfile={self._log}"],
                                             stderr=words)
        _wait_for_socket(self._process, door, state / f"{node}.log")
        return ["-blockdev", f"driver=nbd,node-name={node},server.type=unix,server.path={door},discard=unmap"]

    def trimmed(self):
        """Bytes of all trims so far."""
        return sum(int(size, 16) for size in re.findall(r" Trim id=\d+ offset=\S+ count=(0x[0-9a-f]+)",
                                                        self._log.read_text()))

    def commands(self):
        """[(write, trim or zero, offset, bytes)] so far, in the order they arrived."""
        return [(kind.lower(), int(offset, 16), int(size, 16)) for kind, offset, size in re.findall(
            r" (Write|Trim|Zero) id=\d+ offset=(0x[0-9a-f]+) count=(0x[0-9a-f]+)", self._log.read_text())]

    def stop(self):
        if self._process is not None:
            self._process.kill()
            self._process.wait()


class Slow:
    """Our own storage (lib/slow_disk.py), which takes as long for each kind of command as was last set; `data=True`
    keeps what is written, in memory."""

    def __init__(self, size="256M", data=False, **seconds):
        self._size, self._data, self._seconds, self._process, self._control = size, data, seconds, None, None

    def start(self, state, node):
        self._control = state / f"{node}.control"
        door = state / f"{node}.nbd"
        self.set(**self._seconds)
        self._process = subprocess.Popen(
            ["nbdkit", "--exit-with-parent", "--foreground", "--threads", "64", "--unix", str(door), "python",
             str(Path(__file__).with_name("slow_disk.py")), f"control={self._control}", f"size={_bytes(self._size)}",
             *(["keep=1"] if self._data else [])],
            stderr=open(state / f"{node}.log", "w"))
        _wait_for_socket(self._process, door, state / f"{node}.log")
        return ["-blockdev", f"driver=nbd,node-name={node},server.type=unix,server.path={door},discard=unmap"]

    def set(self, **seconds):
        """read=, write=, trim=, flush=: seconds each takes from now on; for more see slow_disk.py."""
        self._seconds.update(seconds)
        new = self._control.with_suffix(".new")
        new.write_text(json.dumps(self._seconds))
        os.replace(new, self._control)

    def forget_seen(self):
        self._control.with_name(self._control.name + ".seen").unlink(missing_ok=True)

    def seen(self):
        """When it had the first and the last command that a 4-KiB load of reads and writes does not send, by the host's
        wall clock."""
        times = self._control.with_name(self._control.name + ".seen").read_text().split()
        return float(times[0]), float(times[-1])

    def forget_added(self):
        self._control.with_name(self._control.name + ".added").unlink(missing_ok=True)

    def added(self):
        """[(end by the host's wall clock, kind, seconds, seconds late)] of all commands that were held up."""
        path = self._control.with_name(self._control.name + ".added")
        lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        return [(float(end), kind, float(seconds), float(late)) for end, kind, seconds, late in lines]

    def stall(self, seconds):
        """No command ends for this long from now on; 0 ends a stall."""
        self.set(stall_until=time.time() + seconds)

    def stop(self):
        if self._process is not None:
            self._process.kill()
            self._process.wait()


# Shadow doorbells are a feature of the emulator: few drives have them, and Linux before 5.17 does not clear them when
# it resets a controller, so that its I/O hangs.
NVME = {"dbcs": "off"}


class Nvme:
    """A controller with one namespace of its own. It sits in a slot that can be unplugged: QMP id `serial`."""

    def __init__(self, serial, backend=None, **options):
        self.serial, self.backend = serial, backend or Backend()
        self._options = _options({**NVME, **options})

    def start(self, state, number):
        return [*self.backend.start(state, f"{self.serial}-data"), *_port(number), "-device", self.plug(number)]

    def plug(self, number):
        return f"nvme,id={self.serial},serial={self.serial},drive={self.serial}-data,bus=port{number}{self._options}"

    def plug_arguments(self, number):
        """For QMP device_add."""
        driver, *pairs = self.plug(number).split(",")
        switches = {"on": True, "off": False}
        return {"driver": driver, **{key: switches.get(value, value)
                                     for key, value in (pair.split("=", 1) for pair in pairs)}}

    def stop(self):
        self.backend.stop()


class NvmeNamespaces:
    """A controller with a namespace for each backend, numbered from 1. `options`: of the namespaces."""

    def __init__(self, serial, *backends, **options):
        self.serial, self.backends, self._options = serial, backends, _options(options)

    def start(self, state, number):
        arguments = [*_port(number), "-device", f"nvme,id={self.serial},serial={self.serial},bus=port{number}"
                                                f"{_options(NVME)}"]
        for index, backend in enumerate(self.backends, 1):
            node = f"{self.serial}-data{index}"
            arguments = [*backend.start(state, node), *arguments,
                         "-device", f"nvme-ns,drive={node},bus={self.serial},nsid={index}{self._options}"]
        return arguments

    def stop(self):
        for backend in self.backends:
            backend.stop()


class NvmeSubsystem:
    """Controllers (QMP ids SERIAL-1, SERIAL-2, ...) that share one namespace; FDP and the OCP log on request."""

    def __init__(self, serial, backend=None, controllers=1, fdp="", ocp=False):
        self.serial, self.backend = serial, backend or Backend()
        self._controllers, self._fdp = controllers, fdp
        self._options = _options({**NVME, "ocp": "on"} if ocp else NVME)

    def start(self, state, number):
        node = f"{self.serial}-data"
        fdp = f",fdp=on,{self._fdp}" if self._fdp else ""
        arguments = [*self.backend.start(state, node), "-device", f"nvme-subsys,id={self.serial}-subsys,"
                                                                  f"nqn={self.serial}{fdp}"]
        for index in range(1, self._controllers + 1):
            port = number * 16 + index
            arguments += [*_port(port), "-device", f"nvme,id={self.serial}-{index},serial={self.serial},bus=port{port},"
                                                   f"subsys={self.serial}-subsys{self._options}"]
        handles = ",fdp.ruhs=0;1;2" if self._fdp else ""
        return [*arguments, "-device", f"nvme-ns,drive={node},bus={self.serial}-1,nsid=1,shared=on{handles}"]

    def stop(self):
        self.backend.stop()


class ScsiDisks:
    """An adapter with a disk for each of `disks`: options of scsi-hd. Its serial number is only a name: vm.disk() finds
    none of the disks."""

    def __init__(self, serial, *disks):
        self.serial, self._disks, self._backends = serial, disks, [Backend() for _ in disks]

    def start(self, state, number):
        arguments = [*_port(number), "-device", f"virtio-scsi-pci,id={self.serial},bus=port{number}"]
        for index, (disk, backend) in enumerate(zip(self._disks, self._backends)):
            node = f"{self.serial}-data{index}"
            arguments += [*backend.start(state, node), "-device",
                          f"scsi-hd,bus={self.serial}.0,scsi-id={index},drive={node}{_options(disk)}"]
        return arguments

    def stop(self):
        for backend in self._backends:
            backend.stop()


class VirtioBlk:
    """Has a write cache, but no FUA. With a thread of its own, its answers do not wait for the emulator's main loop."""

    def __init__(self, serial, backend=None, own_thread=False):
        self.serial, self.backend, self._own_thread = serial, backend or Backend(), own_thread

    def start(self, state, number):
        thread = f"{self.serial}-thread"
        return [*self.backend.start(state, f"{self.serial}-data"),
                *(["-object", f"iothread,id={thread}"] if self._own_thread else []),
                "-device", f"virtio-blk-pci,serial={self.serial},drive={self.serial}-data,num-queues=2"
                           f"{f',iothread={thread}' if self._own_thread else ''}"]

    def stop(self):
        self.backend.stop()


HOST = "3c5f2a8e-6d0f-4b7c-9f58-0d1a6c1d2b01"  # of all guests: NQN and identifier


class NvmeTcp:
    """Our own controller (lib/nvme_tcp.py) behind a network of its own. The guest has it after connect().

    A scenario uses `controller` to set what it serves and to see what it was asked for. Cutting the wire is
    vm.qmp("set_link", name=f"{serial}-wire", up=False).
    """

    def __init__(self, serial, **options):
        self.serial, self.controller = serial, nvme_tcp.Controller(serial, **options)
        self._number = 0

    def start(self, _state, number):
        self.controller.listen()
        self._number = number
        return ["-netdev", f"user,id={self.serial}-net,ipv6=off,net=10.0.{number}.0/24",
                "-device", f"virtio-net-pci,id={self.serial}-wire,netdev={self.serial}-net,mac={_mac(number)},romfile="]

    def connect(self, vm, *options, queues=2, keep_alive=30, reconnect_delay=1, ctrl_loss=600):
        """Returns the kernel's name of the controller once it is live."""
        number, nqn = self._number, self.controller.nqn
        vm.sh("modprobe nvme-tcp")
        _bring_up(vm, number)
        vm.sh(f"nvme connect -t tcp -a 10.0.{number}.2 -s {self.controller.port} -n {nqn} -i {queues} -k {keep_alive} "
              f"-c {reconnect_delay} -l {ctrl_loss} -q nqn.2014-08.org.nvmexpress:uuid:{HOST} -I {HOST} "
              + " ".join(options))
        name = vm.sh(f"basename $(dirname $(grep -lx {nqn} /sys/class/nvme/*/subsysnqn))")
        vm.wait_for(f"grep -qx live /sys/class/nvme/{name}/state")
        return name

    def disconnect(self, vm):
        vm.sh(f"nvme disconnect -n {self.controller.nqn}")

    def stop(self):
        self.controller.close()


class Way:
    """A way in: connections to `port` of this host reach the guest's port, once open() has been called."""

    def __init__(self, serial, guest_port):
        self.serial, self.port = serial, None
        self._guest_port, self._number = guest_port, 0

    def start(self, _state, number):
        self._number = number
        if self.port is None:  # stays the same when the guest is restarted
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.port = probe.getsockname()[1]
        forward = f"hostfwd=tcp:127.0.0.1:{self.port}-10.0.{number}.15:{self._guest_port}"
        return ["-netdev", f"user,id={self.serial}-net,ipv6=off,net=10.0.{number}.0/24,restrict=on,{forward}",
                "-device", f"virtio-net-pci,netdev={self.serial}-net,mac={_mac(number)},romfile="]

    def open(self, vm):
        _bring_up(vm, self._number)

    def stop(self):
        pass


def _mac(number):
    return f"52:54:00:00:00:{number:02x}"


def _bring_up(vm, number):
    """The guest's network card of this number, with its address."""
    vm.sh("modprobe virtio_net; n=0; "
          f"until card=$(grep -lx {_mac(number)} /sys/class/net/*/address); do sleep 0.05; n=$((n + 1)); "
          "[ $n -lt 200 ] || exit 1; done; card=$(basename ${card%/address}); ip link set $card up; "
          f"ip addr show dev $card | grep -q 10.0.{number}.15 || ip addr add 10.0.{number}.15/24 dev $card")


def _wait_for_socket(process, door, words):
    deadline = time.monotonic() + 10
    while not door.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"nbdkit does not start: {words.read_text()}")
        time.sleep(0.02)


def _options(pairs):
    return "".join(f",{key}={value}" for key, value in pairs.items())


def _port(number):
    return ["-device", f"pcie-root-port,id=port{number},bus=pcie.0,chassis={number + 1},slot={number + 1}"]


def _bytes(size):
    return int(size[:-1]) << {"K": 10, "M": 20, "G": 30}[size[-1]]
