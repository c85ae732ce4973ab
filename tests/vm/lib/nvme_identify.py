# SPDX-License-Identifier: Apache-2.0
"""What does a controller report about itself? The structures of NVMe's Identify, as bytes with names for some fields.

Each record is 4096 bytes that a scenario may change at any moment, by name (set) or by offset. lib/nvme_tcp.py serves
them.
"""
import struct
import uuid

SIZE = 4096

CONTROLLER_FIELDS = {  # name: (offset, bytes)
    "vid": (0, 2), "ssvid": (2, 2), "serial": (4, 20), "model": (24, 40), "firmware": (64, 8), "ieee": (73, 3),
    "cmic": (76, 1), "mdts": (77, 1), "cntlid": (78, 2), "ver": (80, 4), "oaes": (92, 4), "ctratt": (96, 4),
    "cntrltype": (111, 1), "oacs": (256, 2), "aerl": (259, 1), "lpa": (261, 1), "elpe": (262, 1), "wctemp": (266, 2),
    "cctemp": (268, 2), "tnvmcap": (280, 16), "unvmcap": (296, 16), "kas": (320, 2), "nsetidmax": (338, 2),
    "endgidmax": (340, 2), "domainid": (356, 2), "megcap": (368, 16), "sqes": (512, 1), "cqes": (513, 1),
    "maxcmd": (514, 2), "nn": (516, 4), "oncs": (520, 2), "vwc": (525, 1), "sgls": (536, 4), "subnqn": (768, 256),
    "ioccsz": (1792, 4), "iorcsz": (1796, 4), "icdoff": (1800, 2), "msdbd": (1803, 1), "vendor": (3072, 1024)}
NAMESPACE_FIELDS = {
    "nsze": (0, 8), "ncap": (8, 8), "nuse": (16, 8), "nsfeat": (24, 1), "nlbaf": (25, 1), "flbas": (26, 1),
    "nmic": (30, 1), "dlfeat": (33, 1), "nvmcap": (48, 16), "npwg": (64, 2), "npwa": (66, 2), "npdg": (68, 2),
    "npda": (70, 2), "nows": (72, 2), "nvmsetid": (100, 2), "endgid": (102, 2), "nguid": (104, 16), "eui64": (120, 8),
    "lbaf0": (128, 4), "vendor": (384, 3712)}

ATTRIBUTE_ENDURANCE_GROUPS, ATTRIBUTE_UUIDS, ATTRIBUTE_FDP = 1 << 4, 1 << 9, 1 << 19  # of ctratt
INLINE_BYTES = 8192  # what a command of an I/O queue may carry; Linux assumes the same for the admin queue


class Record(bytearray):
    """The bytes, and names for some of them. Text is padded with spaces, numbers are little-endian."""

    def __init__(self, fields, **values):
        super().__init__(SIZE)
        self._fields = fields
        self.set(**values)

    def set(self, **values):
        for name, value in values.items():
            offset, size = self._fields[name]
            if isinstance(value, int):
                value = value.to_bytes(size, "little")
            elif isinstance(value, str):
                value = value.encode().ljust(size, b"\0" if name == "subnqn" else b" ")
            if len(value) > size:
                raise ValueError(f"{name} has {size} bytes")
            self[offset:offset + len(value)] = value

    def number(self, name):
        offset, size = self._fields[name]
        return int.from_bytes(self[offset:offset + size], "little")

    def text(self, name):
        offset, size = self._fields[name]
        return self[offset:offset + size].rstrip(b" \0").decode()


def controller(serial, nqn, **values):
    """As much as Linux requires of a controller on a network, and no optional features except a write cache, DSM and
    Write Zeroes."""
    return Record(CONTROLLER_FIELDS, **{
        "serial": serial, "subnqn": nqn, "model": "ssdpulse test drive", "firmware": "1", "cntlid": 1, "ver": 0x10400,
        "mdts": 5, "oaes": 1 << 8, "cntrltype": 1, "aerl": 3, "lpa": 0b100, "elpe": 63, "wctemp": 343, "cctemp": 353,
        "kas": 1, "sqes": 0x66, "cqes": 0x44, "maxcmd": 128, "nn": 16, "oncs": 0b1100, "vwc": 1,
        "sgls": 1 << 20 | 1, "ioccsz": (64 + INLINE_BYTES) // 16, "iorcsz": 1, "msdbd": 1, **values})


def namespace(size, shift=9, **values):
    """`size` bytes in blocks of 2^shift bytes, which read as zeroes where nothing was written."""
    blocks = size >> shift
    return Record(NAMESPACE_FIELDS, **{"nsze": blocks, "ncap": blocks, "nuse": blocks, "dlfeat": 1,
                                       "lbaf0": shift << 16, **values})


def namespace_descriptors(serial, nsid):
    """Two descriptors: its UUID, and its command set, which is NVM."""
    name = uuid.uuid5(uuid.NAMESPACE_OID, f"{serial}.{nsid}").bytes
    return struct.pack("<BBxx16s BBxxB", 3, 16, name, 4, 1, 0).ljust(SIZE, b"\0")


def namespace_list(nsids, above):
    return b"".join(struct.pack("<I", nsid) for nsid in sorted(nsids) if nsid > above).ljust(SIZE, b"\0")


def uuid_list(uuids):
    """The index of a UUID is its place in the list, and the first one is 1."""
    return (bytes(32) + b"".join(bytes(16) + entry.bytes for entry in uuids)).ljust(SIZE, b"\0")


def endurance_group_list(groups, from_group):
    listed = [group for group in sorted(groups) if group >= from_group]
    return struct.pack(f"<H{len(listed)}H", len(listed), *listed).ljust(SIZE, b"\0")


def smart(host):
    """A SMART page (02h) of a healthy drive, with what the host has done so far."""
    page = bytearray(512)
    page[1:3] = (310).to_bytes(2, "little")  # kelvins
    page[3:5] = bytes((100, 10))  # spare, and its threshold
    for offset, number in ((32, -(-host["read_bytes"] // 512_000)), (48, -(-host["write_bytes"] // 512_000)),
                           (64, host["read_ios"]), (80, host["write_ios"]), (112, 1)):
        page[offset:offset + 16] = number.to_bytes(16, "little")
    return bytes(page)
