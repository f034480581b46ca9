"""Reads a drive file as docs/format/file-drive.md says, in its order, and changes nothing."""

import struct
from dataclasses import dataclass, replace

from checksums import crc32c

MAGIC = b"ZoneDrv\0"
NEWEST = 2
MIB = 1 << 20
HEADER_BYTES = 4096
ENTRY_BYTES = 64
CONVENTIONAL, REQUIRED, PREFERRED = 1, 2, 3
KINDS = {1: "conventional", 2: "sequential_write_required", 3: "sequential_write_preferred"}
CONDITIONS = {1: "not_write_pointer", 2: "empty", 3: "closed", 4: "full", 5: "read_only", 6: "offline"}


class Foreign(Exception):
    """No drive file."""


class OtherVersion(Exception):
    """Of a version that is not read."""


class Damaged(Exception):
    """A field, an entry or the length is not as it has to be."""


@dataclass
class Zone:
    number: int
    kind: str
    condition: str
    capacity: int
    write_pointer: int

    @property
    def readable_to(self):
        """Bytes that may hold something; None where nothing can be read."""
        if self.condition == "offline":
            return None
        return self.capacity if self.kind == "conventional" else self.write_pointer


def require(holds, what):
    if not holds:
        raise Damaged(what)


def text(field, what):
    length = field[0]
    require(length < len(field), what)
    require(not any(field[1 + length :]), what)
    try:
        return field[1 : 1 + length].decode()
    except UnicodeDecodeError:
        raise Damaged(what) from None


class DriveFile:
    def __init__(self, content):
        self.content = bytes(content)
        self._header()
        self.zones = [self._zone(number) for number in range(self.zone_count)]
        self.places = [number * self.zone_size for number in range(self.zone_count)]

    def divide(self, parts):
        """Uses each conventional zone as so many, as a file system on the drive does."""
        size = self.zone_size // parts
        whole = self.zones[: self.conventional_zones]
        self.zones[: self.conventional_zones] = [replace(zone, capacity=size) for zone in whole]
        for zone in whole:
            for part in range(1, parts):
                self.zones.append(replace(zone, number=len(self.zones), capacity=size))
                self.places.append(zone.number * self.zone_size + part * size)

    def _header(self):
        header = self.content[:HEADER_BYTES]
        if header[:8] != MAGIC:
            raise Foreign
        require(len(header) == HEADER_BYTES, "header")
        self.version, checksum = struct.unpack_from("<II", header, 8)
        require(crc32c(header[:12] + bytes(4) + header[16:]) == checksum, "header")
        if self.version not in (1, 2):
            raise OtherVersion(self.version, NEWEST)
        self.uuid = header[16:32]
        self.block_size, self.zone_count, self.zone_size, capacity = struct.unpack_from("<IIQQ", header, 32)
        self.conventional_zones, kind = struct.unpack_from("<IB", header, 56)
        self.max_open_zones, self.max_active_zones, self.max_append_bytes = struct.unpack_from("<III", header, 64)
        table, data = struct.unpack_from("<QQ", header, 80)
        block = self.block_size
        require(512 <= block <= 65536 and block & (block - 1) == 0, "block_size")
        require(1 <= self.zone_count <= 1 << 24, "zone_count")
        require(self.zone_size % block == 0, "zone_size")
        require(block <= capacity <= self.zone_size and capacity % block == 0, "zone_capacity")
        require(self.conventional_zones <= self.zone_count, "conventional_zones")
        require(kind in (REQUIRED, PREFERRED), "sequential_kind")
        require(not any(header[61:64]), "reserved 1")
        require(self.max_active_zones == 0 or self.max_active_zones >= self.max_open_zones, "max_active_zones")
        require(self.max_append_bytes % block == 0, "max_append_bytes")
        require(not any(header[76:80]), "reserved 2")
        require(table == HEADER_BYTES, "table_offset")
        table_end = HEADER_BYTES + ENTRY_BYTES * self.zone_count
        require(data == -(-table_end // MIB) * MIB, "data_offset")
        self.profile_name = text(header[96:160], "profile_name")
        self.label = text(header[160:288], "label")
        require(not any(header[288:]), "reserved 3")
        require(len(self.content) == data + self.zone_count * self.zone_size, "length")
        self.zone_capacity, self.sequential_kind, self.data_offset = capacity, kind, data

    def _zone(self, number):
        at = HEADER_BYTES + ENTRY_BYTES * number
        entry = self.content[at : at + ENTRY_BYTES]
        what = f"entry {number}"
        require(crc32c(entry[:60]) == struct.unpack_from("<I", entry, 60)[0], what)
        own, kind, condition, reserved, pointer, prepared = struct.unpack_from("<IBBHQQ", entry)
        conventional = number < self.conventional_zones
        capacity = self.zone_size if conventional else self.zone_capacity
        require(own == number, what)
        require(kind == (CONVENTIONAL if conventional else self.sequential_kind), what)
        require(condition in CONDITIONS and reserved == 0 and not any(entry[24:60]), what)
        require(conventional == (condition == 1) or condition in (5, 6), what)
        require(pointer % self.block_size == 0 and pointer <= capacity, what)
        require(not conventional or pointer == 0, what)
        require(condition != 2 or pointer == 0, what)
        require(condition != 3 or 0 < pointer < capacity, what)
        require(condition != 4 or pointer == capacity, what)
        if prepared:
            require(self.version == 2 and condition == 3 and kind == REQUIRED, what)
            require(prepared % self.block_size == 0 and pointer < prepared <= min(capacity, pointer + MIB), what)
            if self.block_size <= 4096:
                pointer = self._derived(number, pointer, prepared)
            condition = 4 if pointer == capacity else 3
        return Zone(number, KINDS[kind], CONDITIONS[condition], capacity, pointer)

    def _derived(self, number, pointer, prepared):
        """Behind the last block up to `prepared` that is not all zeros."""
        start = self.data_offset + number * self.zone_size
        for end in range(prepared, pointer, -self.block_size):
            if any(self.content[start + end - self.block_size : start + end]):
                return end
        return pointer

    def read(self, number, offset, length):
        """Zeros at and above the write pointer, whatever the file holds there."""
        zone = self.zones[number]
        if zone.readable_to is None:
            raise OSError(f"zone {number} is offline")
        start = self.data_offset + self.places[number]
        end = max(offset, min(offset + length, zone.readable_to))
        return self.content[start + offset : start + end].ljust(length, b"\0")
