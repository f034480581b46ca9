"""The log of Linux' dm-log-writes: every write to a device, flushes, marks. Makes what a power cut may leave.

What was written before a flush, and what was written through (FUA), is there; of what came after it any part may be.
"""

import struct

MAGIC = 0x6A736677736872
FLUSH, FUA, DISCARD, MARK = 1, 2, 4, 8


class Entry:
    def __init__(self, offset, length, flags, data):
        self.offset, self.length, self.flags, self.data = offset, length, flags, data

    @property
    def mark(self):
        return self.data.rstrip(b"\0").decode() if self.flags & MARK else None


def read(path):
    """The entries of a log device, oldest first."""
    with open(path, "rb") as file:
        magic, version, count, sector = struct.unpack("<QQQI", file.read(28))
        if magic != MAGIC or version != 1:
            raise ValueError(f"{path} is no log of dm-log-writes")
        position = sector
        for _ in range(count):
            file.seek(position)
            start, sectors, flags, data_length = struct.unpack("<QQQQ", file.read(32))
            position += sector
            if flags & MARK:
                # The mark's text is in the entry's own sector.
                yield Entry(0, 0, flags, file.read(min(data_length, sector - 32)))
                continue
            data = b""
            if not flags & DISCARD:
                file.seek(position)
                data = file.read(sectors * sector)
                position += sectors * sector
            yield Entry(start * sector, sectors * sector, flags, data)


class Drive:
    """Replays a log, and leaves at any entry what a power cut could leave there."""

    def __init__(self, size):
        self.durable = bytearray(size)
        self.cached = []

    @staticmethod
    def put(image, entry, offset=0, length=None):
        length = entry.length - offset if length is None else length
        part = bytes(length) if entry.flags & DISCARD else entry.data[offset:offset + length]
        image[entry.offset + offset:entry.offset + offset + length] = part

    def take(self, entry):
        if entry.flags & FLUSH:
            for cached in self.cached:
                self.put(self.durable, cached)
            self.cached = []
        if entry.flags & FUA:
            self.put(self.durable, entry)
        elif entry.length and not entry.flags & MARK:
            self.cached.append(entry)

    def units(self, torn=4096):
        """What is not flushed, in the units that are there as a whole or not at all."""
        return [(entry, offset, min(torn, entry.length - offset)) for entry in self.cached for offset in range(0, entry.length, torn)]

    def cut(self, units, part):
        """An image with those of the units whose bit is set in `part`."""
        image = bytearray(self.durable)
        for number, unit in enumerate(units):
            if part >> number & 1:
                self.put(image, *unit)
        return image
