# SPDX-License-Identifier: Apache-2.0
"""Our own NVMe controller serves what it is set to, late, short, refused or never; its disk counts like any other."""
import os
import uuid

import figures
import machine
import nvme_identify
import nvme_tcp
from devices import NvmeTcp
from lib import metrics
from nvme_tcp import Refuse, Short

KERNELS_IN_CI = ("newest",)
ALL = 0xFFFFFFFF
ATTRIBUTES = (nvme_identify.ATTRIBUTE_ENDURANCE_GROUPS | nvme_identify.ATTRIBUTE_UUIDS | nvme_identify.ATTRIBUTE_FDP)


def devices():
    return [NvmeTcp("first", vid=0x8086, model="a model", firmware="F 1.2", ctratt=ATTRIBUTES, endgidmax=2,
                    vendor=os.urandom(1024)), NvmeTcp("second", size=64 << 20, shift=12)]


def get_log(name, lid, length, *options):
    return " ".join((f"nvme get-log /dev/{name} -i {lid} -l {length} -b", *options))


def identify(vm, check, controller, name, disk):
    controller.uuids = [uuid.uuid4(), uuid.uuid4()]
    controller.endurance_groups = [1, 2, 7]
    check.that(vm.run(f"nvme id-ctrl /dev/{name} -b")[1] == controller.identify, "Identify: the controller")
    check.that(vm.run(f"nvme id-ns /dev/{disk} -b")[1] == controller.namespaces[1], "Identify: the namespace")
    identify_command = f"nvme admin-passthru /dev/{name} --opcode=6 --data-len=4096 -r -b 2>/dev/null"
    uuids = vm.run(f"{identify_command} --cdw10=0x17")[1]
    check.equal([uuids[at + 16:at + 32] for at in (32, 64, 96)], [*(u.bytes for u in controller.uuids), bytes(16)],
                "Identify: UUIDs")
    groups = vm.run(f"{identify_command} --cdw10=0x19 --cdw11=2")[1]
    check.equal(groups[:8], bytes((2, 0, 2, 0, 7, 0, 0, 0)), "Identify: endurance groups from the second on")
    shown = vm.sh(f"cd /sys/class/nvme/{name}; cat serial model firmware_rev").splitlines()
    check.equal([line.strip() for line in shown], ["first", "a model", "F 1.2"], "sysfs")
    controller.identifies[0x17] = Refuse(nvme_tcp.INVALID_FIELD)
    check.that(vm.run(f"{identify_command} --cdw10=0x17")[0] != 0, "Identify: what is refused is refused")


def pages(vm, check, controller, name):
    small, large = os.urandom(512), os.urandom(16384)
    controller.pages.update({0xCA: small, 0x09: lambda request: bytes([request.lsi, request.uuid_index]) * 256,
                             0xFB: large, 0xC0: Short(small[:128])})
    check.that(vm.run(get_log(name, 0xCA, 512))[1] == small, "512 bytes of a page")
    check.that(vm.run(get_log(name, 0xFB, 16384))[1] == large, "16 KiB of a page, as nvme-cli cuts it")
    part = vm.run(get_log(name, 0xFB, 1024, "--lpo=15872 --lsp=5 --lsi=0x1234 --uuid-index=3 -n 1 --rae"))[1]
    check.that(part == large[15872:] + bytes(512), "the end of a page, and zeroes behind it")
    last = controller.log_reads()[-1]
    check.equal((last.opcode, last.lid, last.lsp, last.lsi, last.uuid_index, last.nsid, last.length, last.size,
                 last.offset, last.rae), (2, 0xFB, 5, 0x1234, 3, 1, 1024, 1024, 15872, True), "what was asked for")
    first = controller.log_reads(0xCA)[0]
    check.equal((first.lsp, first.lsi, first.uuid_index, first.nsid, first.length, first.offset, first.rae),
                (0, 0, 0, ALL, 512, 0, False), "what was asked for first")
    made = vm.run(get_log(name, 0x09, 512, "--lsi=2 --uuid-index=1"))[1]
    check.that(made == bytes((2, 1)) * 256, f"a page made on request: {made[:4]}...")
    short = vm.run(get_log(name, 0xC0, 512))[1]
    check.that(short == small[:128] + bytes(384), "a page of which the drive sends less than it was asked for")


def refused(vm, check, controller, name):
    for status, words in ((nvme_tcp.INVALID_LOG_PAGE, "0x4109"), (nvme_tcp.INVALID_FIELD, "0x4002")):
        controller.pages[0xCA] = Refuse(status)
        code, output = vm.run(get_log(name, 0xCA, 512))
        check.that(code != 0 and words.encode() in output, f"refused: {output[:60]}...")
    del controller.pages[0xCA]
    check.that(vm.run(get_log(name, 0xCA, 512))[0] != 0, "a page that there is not")


def late(vm, check, controllers, names):
    page = os.urandom(512)
    for controller in controllers:
        controller.pages.update({0xCA: page, 0xCB: page[::-1]})
    controllers[0].delay[0xCA] = 2
    now = "cut -d ' ' -f 1 /proc/uptime"
    times = vm.sh(f"{now}; {get_log(names[0], 0xCA, 512)} >/tmp/late & {get_log(names[1], 0xCA, 512)} >/tmp/other; "
                  f"{get_log(names[0], 0xCB, 512)} >/tmp/same; {now}; wait; {now}").split()
    others, slow = float(times[1]) - float(times[0]), float(times[2]) - float(times[0])
    check.that(others < 1.5, f"late: not what others ask for: {others:.2f} s")
    check.that(2 <= slow < 4, f"late: {slow:.2f} s")
    read = vm.run("cat /tmp/late /tmp/other /tmp/same")[1]
    check.that(read == page + page + page[::-1], "late: as it is")
    controllers[0].delay.clear()


def load(vm, check, disk):
    """What fio requested, {operation: (I/Os, bytes)}."""
    job = vm.fio(disk, rw="randrw", bssplit="4k/50:16k/30:64k/20", iodepth=8, number_ios=300)
    trim = vm.fio(disk, rw="randtrim", bs="64k", ioengine="psync", number_ios=20)
    check.equal((job["error"], trim["error"]), (0, 0), f"{disk}: fio felt no error")
    return {operation: (part["total_ios"], part["io_bytes"]) for operation, part in
            (("read", job["read"]), ("write", job["write"]), ("discard", trim["trim"]))}


def settle(check, difference, disk, asked, host):
    """fio, the daemon and the controller agree."""
    counted = {operation: (figures.ios(difference, disk, operation), figures.size(difference, disk, operation))
               for operation in asked}
    check.equal(counted, asked, f"{disk}: I/Os and bytes")
    got = {operation: (host[f"{operation}_ios"], host[f"{operation}_bytes"]) for operation in ("read", "write")}
    check.equal({**got, "discard": (host["dsm_ios"], asked["discard"][1])}, asked, f"{disk}: what the controller got")
    figures.at_rest(check, difference.after, disk)


def hangs(vm, check, controller, name, disk):
    """The kernel gives up at the caller's limit (60 s if it has none) and reconnects."""
    controller.mute, before = True, controller.connections
    code, output = vm.run(f"nvme admin-passthru /dev/{name} --opcode=6 --cdw10=1 --data-len=4096 -r --timeout=1000")
    controller.mute = False
    check.that(code != 0, f"mute: {output.decode().strip()}")
    vm.wait_for(f"grep -qx live /sys/class/nvme/{name}/state", 15)
    check.equal(controller.connections - before, 1, "mute: connected anew")
    check.equal(vm.disk("first"), disk, "mute: the same disk")
    check.that(vm.run(get_log(name, 0xCB, 512))[1] == controller.pages[0xCB], "mute: pages afterwards")


def vanishes(vm, check, controller, name, disk):
    before = controller.connections
    controller.vanish()
    vm.wait_for(f"grep -qx connecting /sys/class/nvme/{name}/state", 5)
    controller.come_back()
    vm.wait_for(f"grep -qx live /sys/class/nvme/{name}/state", 10)
    check.equal(controller.connections - before, 1, "vanished: connected anew")
    check.equal(vm.disk("first"), disk, "vanished: the same disk")


def run(vm, check):
    first, second = vm.devices["first"], vm.devices["second"]
    names = [first.connect(vm), second.connect(vm)]
    disks = [vm.disk("first"), vm.disk("second")]
    identify(vm, check, first.controller, names[0], disks[0])
    pages(vm, check, first.controller, names[0])
    refused(vm, check, first.controller, names[0])
    late(vm, check, (first.controller, second.controller), names)
    hangs(vm, check, first.controller, names[0], disks[0])
    vanishes(vm, check, first.controller, names[0], disks[0])

    daemon = machine.Daemon(vm)
    hosts = [first.controller.host.copy(), second.controller.host.copy()]
    before = daemon.at_rest(1.2)
    asked = [load(vm, check, disk) for disk in disks]
    difference = metrics.Difference(before, daemon.at_rest(5))
    settle(check, difference, disks[0], asked[0], first.controller.host - hosts[0])
    settle(check, difference, disks[1], asked[1], second.controller.host - hosts[1])
    daemon.stop()
