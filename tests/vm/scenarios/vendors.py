# SPDX-License-Identifier: Apache-2.0
"""Drives whose pages QEMU cannot serve: their write amplification is exported, also after a counter has fallen."""
import threading
from dataclasses import dataclass, field
from typing import Callable

import machine
import nvme_identify
import nvme_tcp
from devices import NvmeTcp

KERNELS_IN_CI = ()  # unit tests decode the same pages; the long form has all kernels

POLL_SECONDS = 10
WRITING_SECONDS = 36  # a ratio is reported after changes in three readings
DATA_UNIT, MIB32, GIGABYTE = 512_000, 32 << 20, 10**9
OCP_GUID = bytes.fromhex("c5af1028eabff2a49c4f6f7cc914d5af")
STEP_SECONDS = 0.5
FALL = 20 * GIGABYTE  # much less than is written between two polls


def number(page, offset, width, value):
    page[offset:offset + width] = value.to_bytes(width, "little")


def ocp(_host, media):
    page = bytearray(512)
    number(page, 0, 16, media)
    number(page, 494, 2, 3)
    page[496:512] = OCP_GUID
    return page


def intel(host, media):
    page = bytearray(512)
    for slot, (key, value) in enumerate(((0xAB, 3), (0xF4, media // MIB32), (0xF5, host // MIB32))):
        page[12 * slot] = key
        number(page, 12 * slot + 5, 6, value)
    return page


def samsung(host, media):
    page = intel(0, 0)
    number(page, 264, 16, host // 512)  # an unpublished unit, to be determined by comparison with SMART
    number(page, 280, 16, media // 512)
    return page


def micron(_host, media):
    page = bytearray(512)
    number(page, 176, 8, media)
    return page


def western_digital(_host, media):
    page = bytearray(512)
    number(page, 0, 16, media)
    return page


def seagate(host, media):
    page = bytearray(512)
    number(page, 0, 2, 2)
    parts = ((1, 5), (233, media // DATA_UNIT), (234, 0), (241, host // DATA_UNIT), (242, 0))
    for slot, (attribute, value) in enumerate(parts):
        page[2 + 12 * slot] = attribute
        number(page, 2 + 12 * slot + 4, 8, value)
    return page


def endurance_group(host, media):
    page = bytearray(512)
    number(page, 64, 16, -(-host // GIGABYTE))
    number(page, 80, 16, -(-media // GIGABYTE))
    return page


def stuck_group(_host, _media):
    return endurance_group(1, 2 * GIGABYTE)  # like firmware that never counts beyond its first billion


def amazon(_host, _media):
    page = bytearray(4096)
    number(page, 0, 4, 0x3C23B510)
    number(page, 16, 8, 1000)
    number(page, 32, 8, 123456789)
    return page


@dataclass
class Drive:
    source: str
    vid: int
    model: str
    lid: int
    page: Callable
    ratio: float  # of what it writes while it is watched; 0: it does not report one
    step: int = 100 * MIB32  # bytes of the host in STEP_SECONDS
    identify: dict = field(default_factory=dict)
    host: int = 3000 * MIB32 * 1000  # of its life so far
    media: int = 7000 * MIB32 * 1000
    groups: list = field(default_factory=list)
    reason: str = ""  # words in the reason why there is no better source
    fall: int = 0  # bytes by which the media counter falls below what it last showed, just before it is read
    shown: int = 0

    def read(self):
        if self.fall:
            self.media, self.fall = self.shown - self.fall, 0
        self.shown = self.media
        return self.page(self.host, self.media)

    def advance(self):
        self.host += self.step
        self.media += int(self.step * self.ratio)

    def smart(self):
        page = bytearray(512)
        page[3], page[4], page[5] = 97, 10, 4
        number(page, 1, 2, 273 + 41)
        number(page, 48, 16, -(-self.host // DATA_UNIT))
        return page


SAMSUNG_PRESENCE = bytes(3092 - 3072) + b"\x01" + bytes(4096 - 3093)
DRIVES = {
    "ocp": Drive("ocp", 0x1E0F, "KCD81RUG3T84", 0xC0, ocp, 3.25),
    "intel": Drive("intel", 0x8086, "INTEL SSDPE2KE016T8", 0xCA, intel, 2.5),
    "samsung": Drive("samsung", 0x144D, "SAMSUNG MZQL21T9HCJR-00A07", 0xCA, samsung, 1.5,
                     identify={"vendor": SAMSUNG_PRESENCE}),
    "micron": Drive("micron", 0x1344, "Micron_7300_MTFDHBE960TDF", 0xD0, micron, 4.0),
    "wdc": Drive("wdc_customer", 0x1B96, "WUS4BB038D7P3E3", 0xCA, western_digital, 1.75),
    "seagate": Drive("seagate", 0x1BB1, "XP3840SE70005", 0xC4, seagate, 2.25),
    "group": Drive("endurance_group", 0xABCD, "Unknown", 0x09, endurance_group, 5.0, step=4 * GIGABYTE,
                   identify={"ctratt": nvme_identify.ATTRIBUTE_ENDURANCE_GROUPS, "endgidmax": 1}, groups=[1]),
    "stuck": Drive("none", 0xABCD, "Unknown", 0x09, stuck_group, 0, reason="its host counter contradicts SMART",
                   identify={"ctratt": nvme_identify.ATTRIBUTE_ENDURANCE_GROUPS, "endgidmax": 1}, groups=[1]),
    "refusing": Drive("none", 0xABCD, "Refusing", 0x09, None, 0, groups=[1],
                      identify={"ctratt": nvme_identify.ATTRIBUTE_ENDURANCE_GROUPS, "endgidmax": 1}),
    "amazon": Drive("none", 0x1D0F, "Amazon Elastic Block Store", 0xD0, amazon, 0),
}


def devices():
    return [NvmeTcp(serial, size=64 << 20, vid=drive.vid, model=drive.model, firmware="1", **drive.identify)
            for serial, drive in DRIVES.items()]


def serve(controller, drive):
    controller.endurance_groups = drive.groups
    controller.pages[0x02] = lambda request: drive.smart()
    controller.pages[drive.lid] = lambda request: drive.read()


class Life:
    """The drives' counters move while the guest writes, and before it does: one that stands still would seem late."""

    def __enter__(self):
        self._advance()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._live)
        self._thread.start()

    def _live(self):
        while not self._end.wait(STEP_SECONDS):
            self._advance()

    @staticmethod
    def _advance():
        for drive in DRIVES.values():
            drive.advance()

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()


def judge(check, scrape, serial, drive, what=""):
    [info] = scrape.series("ssdpulse_nvme_info", serial=serial)
    serial += what
    controller = dict(info)["controller"]
    source = [dict(labels) for labels in scrape.series("ssdpulse_write_amplification_source_info", controller=controller)]
    check.equal([entry["source"] for entry in source], [drive.source], f"{serial}: source {source}")
    check.that(all(drive.reason in entry["reason"] for entry in source), f"{serial}: reason {source}")
    values = [scrape.value(f"ssdpulse_write_amplification{bound}_ratio", window="5m", controller=controller)
              for bound in ("_lower", "", "_upper")]
    if not drive.ratio:
        check.equal(values, [None, None, None], f"{serial}: no ratio")
        return
    check.that(None not in values and values[0] <= drive.ratio <= values[2] and values[2] - values[0] <= 0.2 * values[1],
               f"{serial}: ratio {values[1]} in {values[0]}..{values[2]}, expected {drive.ratio}")
    host, media = (scrape.value(f"ssdpulse_nvme_{who}_written_bytes_total", controller=controller)
                   for who in ("host", "media"))
    check.that(abs(host - drive.host) <= 2 * GIGABYTE and abs(media - drive.media) <= 2 * GIGABYTE,
               f"{serial}: {host:.0f} bytes of the host and {media:.0f} of the media, expected {drive.host}, {drive.media}")
    check.equal((scrape.value("ssdpulse_nvme_percentage_used_ratio", controller=controller),
                 scrape.value("ssdpulse_nvme_temperature_celsius", controller=controller, sensor="composite")),
                (0.04, 41), f"{serial}: SMART")
    # The counters include what the guest never wrote: that is how a lying drive is found.
    drift = scrape.value("ssdpulse_nvme_host_written_drift_bytes", controller=controller)
    check.that(drift is not None and drift >= drive.step, f"{serial}: drift {drift}")


def write_for_a_while(vm, daemon, disks):
    """Returns a scrape of what was read afterwards."""
    writes = "; ".join(f"dd if=/dev/zero of=/dev/{disk} bs=4k count=1 oflag=direct 2>/dev/null" for disk in disks)
    with Life():
        vm.sh(f"end=$(($(date +%s) + {WRITING_SECONDS})); while [ $(date +%s) -lt $end ]; do {writes}; sleep 1; done",
              WRITING_SECONDS * 2 + 60)
    # Less than the unit of the finest of these counters: one that has stopped by now must not seem late.
    vm.sh(writes.replace("bs=4k", "bs=512"))
    return daemon.when_drives_were_read(len(DRIVES), float(vm.sh("date +%s")) + 1)


def run(vm, check):
    DRIVES["refusing"].page = lambda _host, _media: nvme_tcp.Refuse()
    controllers = {}
    for serial, drive in DRIVES.items():
        serve(vm.devices[serial].controller, drive)
        controllers[serial] = vm.devices[serial].connect(vm)
    disks = [vm.disk(serial) for serial in DRIVES]
    vm.sh(f"printf 'nvme: {{ poll_interval: {POLL_SECONDS}s }}\\nhistory: {{ directory: \"\" }}\\n' >/tmp/vendors.yaml")
    daemon = machine.Daemon(vm, "--config", "/tmp/vendors.yaml")
    daemon.when_drives_were_read(len(DRIVES), 0)
    scrape = write_for_a_while(vm, daemon, disks)
    for serial, drive in DRIVES.items():
        judge(check, scrape, serial, drive)
    refused = ("log-pages", controllers["refusing"])
    one = machine.doctor(vm, "--config /tmp/vendors.yaml").get(refused, {})
    check.equal((one.get("found"), one.get("why")), ("log page endurance_group is not read", "refused"),
                "the doctor names a page that a drive refuses")
    print("NOTE " + vm.sh("ssdpulse devices").split("\n\n")[-1].replace("\n", "\nNOTE "))
    DRIVES["ocp"].fall = FALL
    judge(check, write_for_a_while(vm, daemon, disks), "ocp", DRIVES["ocp"], " after a fall")
    epochs = [line for line in daemon.words().splitlines() if "a new epoch begins" in line]
    check.that(len(epochs) == 1 and "source=ocp" in epochs[0] and "did not confirm" in epochs[0],
               f"log of the fall: {epochs}")
    daemon.stop()
    # Its firmware now has the page; what was refused is requested again by a new daemon, or the next day.
    DRIVES["refusing"].page = endurance_group
    daemon = machine.Daemon(vm, "--config", "/tmp/vendors.yaml")
    daemon.when_drives_were_read(len(DRIVES), 0)
    check.that(refused not in machine.doctor(vm, "--config /tmp/vendors.yaml"), "and no more once it has it")
    daemon.stop()
