# SPDX-License-Identifier: Apache-2.0
"""Drives that share a WWN, a serial number or everything, and change their names: each keeps its history, and it is said."""
import json
import re

import machine
from devices import Backend, NvmeNamespaces, ScsiDisks

KERNELS_IN_CI = ("newest",)  # the long form has all
MACHINE = {"append": "nvme_core.multipath=N"}
CONFIG, HISTORY = "/tmp/identities.yaml", "/tmp/identities"
# Of an emulated drive, the kernel believes no identifier: what it otherwise does only with duplicates.
WWN, EUI = "0x5000c50000000001", 0x5254000000000001
BATCH = [{"serial": f"batch{number}", "wwn": WWN, "product": "Batch"} for number in (1, 2, 3)]
CLONE = {"serial": "clone", "wwn": "0x5000c50000000009", "product": "Clone"}
TWIN = {"serial": "twin", "product": "Twin"}  # and WWNs of their own


def devices():
    return [ScsiDisks("left", BATCH[0], CLONE, {**TWIN, "wwn": "0x5000c50000000011"}),
            ScsiDisks("right", BATCH[1], CLONE, {**TWIN, "wwn": "0x5000c50000000012"}, BATCH[2]),
            NvmeNamespaces("one", Backend(), eui64=EUI), NvmeNamespaces("two", Backend(), eui64=EUI)]


def functions(vm, driver):
    """The PCI functions behind these devices of the driver, in the order of their slots."""
    paths = vm.sh(f"for one in /sys/bus/*/drivers/{driver}/*; do readlink -f $one; done").splitlines()
    return sorted({re.findall(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]", path)[-1] for path in paths
                   if re.search(r"/(virtio\d+|0000:[0-9a-f:.]+)$", path)})


def names(vm):
    """{(PCI function, SCSI target or 0): the kernel's name}"""
    found = {}
    for line in vm.sh("for one in /sys/block/sd* /sys/block/nvme*; do echo ${one##*/} $(readlink -f $one); done").splitlines():
        name, path = line.split()
        target = re.search(r"/target\d+:0:(\d+)/", path)
        function = re.findall(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]", path)[-1]
        found[function, int(target[1]) if target else 0] = name
    return found


def attach_in_turn(vm, adapters, drives):
    """As at a boot at which they are found in this order."""
    driver = "/sys/bus/pci/drivers"
    before = len(names(vm))
    for function in adapters:
        vm.sh(f"echo {function} >{driver}/virtio-pci/unbind")
    for function in drives:
        vm.sh(f"echo {function} >{driver}/nvme/unbind")
    left = 0
    for function, name, disks in [*((one, "virtio-pci", 3 if one == min(adapters) else 4) for one in adapters),
                                  *((one, "nvme", 1) for one in drives)]:
        vm.sh(f"echo {function} >{driver}/{name}/bind")
        left += disks
        vm.wait_for(f"[ $(ls -d /sys/block/sd* /sys/block/nvme* 2>/dev/null | wc -l) -eq {left} ]", 30)
    if left != before:
        raise machine.GuestError(f"{left} disks after, {before} before")


def written(vm, device):
    """By its history."""
    words = json.loads(vm.sh(f"ssdpulse history --device {device} --from -2h --json --history.directory {HISTORY} 2>/dev/null"))
    return sum(ios or 0 for ios in words["points"]["write"]["ios"])


def run(vm, check):
    vm.sh(f"modprobe -a virtio_scsi sd_mod; mkdir -p {HISTORY}; printf 'nvme: {{ poll_interval: 1h }}\nhistory: {{ directory: {HISTORY} }}\n' >{CONFIG}")
    vm.wait_for("[ $(ls -d /sys/block/sd* /sys/block/nvme* | wc -l) -eq 9 ]", 30)
    adapters, drives = functions(vm, "virtio_scsi"), functions(vm, "nvme")
    wrote = {}
    for boot in (1, 2):
        attach_in_turn(vm, *((adapters, drives) if boot == 1 else (adapters[::-1], drives[::-1])))
        named = names(vm)
        print(f"boot {boot}: {named}, wwid: " + vm.sh("cat /sys/block/nvme*/wwid").replace("\n", " "))
        daemon = machine.Daemon(vm, "--config", CONFIG, log=f"daemon-{boot}.log")
        daemon.at_rest(1.2)
        for number, (place, name) in enumerate(sorted(named.items()), 1):
            ios = number * (10 if boot == 1 else 1)
            vm.fio(name, rw="write", bs="4k", ioengine="psync", number_ios=ios)
            wrote[place] = wrote.get(place, 0) + ios
        daemon.at_rest()
        clones = sorted(name for (_, target), name in named.items() if target == 1)
        clash = [one["found"] for (check_id, _), one in machine.doctor(vm).items() if check_id == "identities"]
        check.that(len(clash) == 1 and clash[0].startswith(f"{clones[0]}, {clones[1]} report one identity"),
                   f"boot {boot}: the doctor names the clones alone: {clash}")
        listed = vm.sh(f"ssdpulse devices -c {CONFIG}")
        check.that(f"{clones[0]}, {clones[1]} report one identity" in listed, f"boot {boot}: so do the devices")
        check.equal(daemon.words().count("report one identity"), 1, f"boot {boot}: lines of the log")
        daemon.stop()
        if boot == 1:
            first = named
    check.equal([place for place in named if named[place] == first[place] and place[0] != adapters[1]], [],
                "drives that kept their names, on the left and of NVMe")
    check.equal({place: written(vm, named[place]) for place in named}, wrote, "writes by the history of each")
    known = json.loads(vm.sh(f"ssdpulse history --json --history.directory {HISTORY} 2>/dev/null"))["devices"]
    check.equal(len(known), len(named), "drives that the history knows")
