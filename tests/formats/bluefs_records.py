"""Superblocks, journal frames with their operations, and log records: one decoder each, as the tables of
docs/format/bluefs.md have them. What is not whole decodes to None."""

import struct
from dataclasses import dataclass

from checksums import crc32c

MAGIC = b"ZSBLUEFS"
# One copy of everything, and two.
VERSION, TWO_COPIES = 6, 7
SUPERBLOCK_BYTES = {VERSION: 96, TWO_COPIES: 104}
NO_ZONE = (1 << 32) - 1
FRAME_MAGIC = b"BFJL"
FRAME_HEADER = 40
FRAME_MAX = 262_144
RECORD_MAGIC = b"BFWR"
RECORD_HEADER = 84
RECORD_MAX = 1_048_492
UNKNOWN_END = (1 << 64) - 1


class Invalid(Exception):
    """An operation behind a right checksum that is not in the list."""


def padded(length, block):
    return -(-length // block) * block


@dataclass
class Superblock:
    version: int
    uuid: bytes
    generation: int
    zone_size: int
    zone_capacity: int
    zone_count: int
    block_size: int
    epoch: int
    frames: int
    journal_zone: int
    role: int
    spare_zone: int
    further_parts: int
    journal_twin: int = NO_ZONE
    spare_twin: int = NO_ZONE


def superblock(data):
    if len(data) < 16 or data[:8] != MAGIC:
        return None
    version, checksum = struct.unpack_from("<II", data, 8)
    data = data[: SUPERBLOCK_BYTES.get(version, 96)]
    if crc32c(data[:12] + bytes(4) + data[16:]) != checksum:
        return None
    twins = struct.unpack_from("<II", data, 96) if version == TWO_COPIES else ()
    found = Superblock(version, *struct.unpack_from("<16sQQQIIQQIIII", data, 16), *twins)
    return found if version not in SUPERBLOCK_BYTES or found.role in (1, 2) else None


@dataclass
class Frame:
    zone: int
    offset: int
    epoch: int
    number: int
    previous: int
    durable: int
    checksum: int
    payload: bytes

    def operations(self):
        reader = Reader(self.payload)
        found = []
        while reader.left():
            found.append(operation(reader))
        return found

    def size(self, block):
        return padded(FRAME_HEADER + len(self.payload), block)


def frame(data, zone, offset):
    if len(data) < FRAME_HEADER or data[:4] != FRAME_MAGIC:
        return None
    checksum, epoch, number, length, previous, durable = struct.unpack_from("<IQQIIQ", data, 4)
    end = FRAME_HEADER + length
    if length > FRAME_MAX or end > len(data) or crc32c(data[8:end]) != checksum:
        return None
    return Frame(zone, offset, epoch, number, previous, durable, checksum, data[FRAME_HEADER:end])


@dataclass
class Record:
    inode: int
    file_offset: int
    run_id: int
    epoch: int
    frames: int
    own_run: int
    other_run: int
    other_zone: int
    other_run_id: int
    offset: int
    zone: int
    data: bytes

    def size(self, block):
        return padded(RECORD_HEADER + len(self.data), block)


def record(data):
    if len(data) < RECORD_HEADER or data[:4] != RECORD_MAGIC:
        return None
    checksum, inode, file_offset, length = struct.unpack_from("<IQQI", data, 4)
    end = RECORD_HEADER + length
    if length > RECORD_MAX or end > len(data) or crc32c(data[8:end]) != checksum:
        return None
    fields = struct.unpack_from("<IQQQQIIQI", data, 28)
    return Record(inode, file_offset, *fields, data[RECORD_HEADER:end])


@dataclass
class Extent:
    file_offset: int
    offset: int
    length: int
    zone: int
    checksum: int

    @property
    def end(self):
        return self.file_offset + self.length


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def left(self):
        return len(self.data) - self.at

    def take(self, length):
        if self.left() < length:
            raise Invalid("fields end early")
        self.at += length
        return self.data[self.at - length : self.at]

    def number(self, length):
        return int.from_bytes(self.take(length), "little")

    def path(self):
        try:
            return self.take(self.number(2)).decode()
        except UnicodeDecodeError:
            raise Invalid("path") from None

    def extents(self):
        return [Extent(*struct.unpack("<QQQII", self.take(32))) for _ in range(self.number(4))]


# Bytes of a number, "path" or "extents", in the order of the fields.
OPERATIONS = {
    1: ("make_directory", ["path"]),
    2: ("remove_directory", ["path"]),
    3: ("create", [1, 8, 8, "path"]),
    4: ("link", [8, "path"]),
    5: ("unlink", ["path"]),
    6: ("rename", ["path", "path"]),
    7: ("extend", [8, 8, "extents"]),
    8: ("move", [8, "extents"]),
    9: ("log_segment", [8, 8, 8, 8, 4, 4]),
    10: ("log_truncate", [8, 8]),
    11: ("next_zone", [4]),
    12: ("next_inode", [8]),
    13: ("truncate", [8, 8, 8]),
    14: ("take", [4]),
    15: ("give", [4]),
    16: ("written_end", [8, 4, 4]),
    17: ("twin", [4, 4]),
}


def operation(reader):
    """Its name and fields."""
    kind = reader.number(1)
    if kind not in OPERATIONS:
        raise Invalid(f"operation {kind}")
    name, fields = OPERATIONS[kind]
    return name, [
        reader.path() if field == "path" else reader.extents() if field == "extents" else reader.number(field)
        for field in fields
    ]
