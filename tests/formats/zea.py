"""Reads zones with extents as docs/format/zea.md says, and changes nothing."""

import struct
from dataclasses import dataclass

from checksums import crc32c, crc64_nvme

LABEL, MARKER = b"ZSZEALBL", b"ZSZEAEXT"
VERSION = 1


class Refused(Exception):
    """No instance, or one that is not read."""


@dataclass
class Extent:
    address: int
    data: bytes
    order: int
    number: int
    first: int
    block: int
    back: tuple
    whole: bool


def sealed(block):
    return crc32c(block[:12] + bytes(4) + block[16:]) == struct.unpack_from("<I", block, 12)[0]


def marked(block):
    return crc32c(block[:8] + bytes(4) + block[12:]) == struct.unpack_from("<I", block, 8)[0]


class Zone:
    def __init__(self, drive, number):
        self.drive, self.number, self.block_size = drive, number, drive.block_size
        end = drive.zones[number].readable_to // self.block_size
        self.blocks = [self.read(block) for block in range(end)]
        self._label()
        self.extents = list(self._extents())

    def read(self, block, count=1):
        return self.drive.read(self.number, block * self.block_size, count * self.block_size)

    def _label(self):
        why = "no label"
        for block in self.blocks[:2]:
            if block[:8] != LABEL:
                continue
            if not sealed(block):
                why = "damaged label"
                continue
            if struct.unpack_from("<I", block, 8)[0] != VERSION:
                why = "version"
                continue
            self.run_id = block[16:32]
            zone, self.back_pointers, block_size = struct.unpack_from("<III", block, 32)
            (capacity,) = struct.unpack_from("<Q", block, 48)
            shape = (self.number, self.block_size, self.drive.zones[self.number].capacity)
            if (zone, block_size, capacity) != shape:
                raise Refused("shape")
            return
        raise Refused(why)

    def _extents(self):
        free = 2
        for at, block in enumerate(self.blocks):
            if at < 2 or block[:8] != MARKER or not marked(block) or block[16:32] != self.run_id:
                continue
            (pointers,) = struct.unpack_from("<I", block, 12)
            address, length, checksum, order, number = struct.unpack_from("<QQQQQ", block, 32)
            first, own = struct.unpack_from("<II", block, 72)
            if own != at or first + -(-length // self.block_size) != at or length == 0 or first < free:
                continue
            back = struct.unpack_from(f"<{pointers}I", block, 80)
            assert list(back) == sorted(back, reverse=True)
            data = self.read(first, at - first)[:length]
            free = at + 1
            yield Extent(address, data, order, number, first, at, back, crc64_nvme(data) == checksum)
