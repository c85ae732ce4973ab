# SPDX-License-Identifier: Apache-2.0
"""The pages of a history file, and their checksums as ssdpulse-history(5) describes them. Shares no code with the daemon."""
import struct
import zlib
from pathlib import Path

CHECKSUM = 8


def checksum(number, page):
    covered = struct.pack(">I", number) + page[:-CHECKSUM]
    return struct.pack(">II", zlib.crc32(covered), zlib.adler32(covered))


def pages(content):
    """(number, bytes) of each page."""
    size = int.from_bytes(content[16:18], "big") or 1
    return [(begin // size + 1, content[begin:begin + size]) for begin in range(0, len(content), size)]


def mismatched(content):
    """Numbers of the pages that do not match their checksums."""
    return [number for number, page in pages(content) if page[-CHECKSUM:] != checksum(number, page)]


def unused(content):
    """Numbers of the pages that nothing reads: those of the free list that do not list others."""
    every, found, trunk = dict(pages(content)), set(), int.from_bytes(content[32:36], "big")
    while trunk:
        trunk, count = struct.unpack(">II", (page := every[trunk])[:8])
        found |= set(struct.unpack(f">{count}I", page[8:8 + 4 * count]))
    return found


def seal(file):
    """After another program has written to the file: each page gets the checksum that the daemon would have given it."""
    content = Path(file).read_bytes()
    assert content[20] == CHECKSUM, "its pages have no room for checksums"
    every = dict(pages(content))
    with open(file, "r+b") as out:
        for number in mismatched(content):
            out.seek(number * len(every[1]) - CHECKSUM)
            out.write(checksum(number, every[number]))
