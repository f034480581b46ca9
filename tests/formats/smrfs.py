"""Reads a file system of smrfs as docs/format/smrfs.md says, and the Caveat-Scriptor drive under it as
docs/format/caveat.md says. Hashes of frames (XXH3) are not compared: the program's tests do."""

import struct

from checksums import crc32c

DIRECTORY, FILE, LINK = 0o040000, 0o100000, 0o120000


class Damaged(Exception):
    """Not as it was written."""


class OtherVersion(Exception):
    """Of a version that is not read."""


class Caveat:
    """A Caveat-Scriptor drive on a drive of conventional zones."""

    def __init__(self, drive):
        zones = range(drive.zone_count)
        below = b"".join(drive.read(zone, 0, drive.zone_size) for zone in zones)
        # Version 2 has a copy where the last zone begins.
        copies = [0, (drive.zone_count - 1) * drive.zone_size]
        headers = [below[at : at + 56] for at in copies if below[at : at + 8] == b"ZSCAVEAT"]
        whole = [header for header in headers if self._sum(header) == struct.unpack_from("<I", header, 12)[0]]
        if not whole:
            raise Damaged("header")
        (version,) = struct.unpack_from("<I", whole[0], 8)
        if version > 2:
            raise OtherVersion(version)
        fields = struct.unpack_from("<IQQQQ", whole[0], 16)
        self.block, self.blocks, self.unshingled, self.distance, self.range = fields
        width = self.block - 4
        pieces = -(-self.blocks // (8 * width))
        bits = b""
        for piece in range(pieces):
            content = below[(1 + piece) * self.block :][: self.block]
            if crc32c(content[:width]) != struct.unpack_from("<I", content, width)[0]:
                raise Damaged("bitmap")
            bits += content[:width]
        self.damaged = [bits[n // 8] >> n % 8 & 1 for n in range(self.blocks)]
        start = -(-(1 + pieces) * self.block // 65536) * 65536
        self.content = below[start : start + self.blocks * self.block]

    @staticmethod
    def _sum(header):
        is_first = struct.unpack_from("<I", header, 8)[0] == 1
        return crc32c(header[16:] if is_first else header[:12] + bytes(4) + header[16:])

    def slots(self):
        each = self.unshingled // 2 * self.block
        return [self.content[:each], self.content[each : 2 * each]]

    def data(self, zone, at, length):
        assert zone == 0
        start = self.unshingled * self.block + at
        if any(self.damaged[start // self.block : (start + length) // self.block]):
            raise Damaged("a live block may be damaged")
        return self.content[start : start + length]


class Bands:
    """A zoned drive with two conventional zones or more."""

    def __init__(self, drive):
        self.drive = drive

    def slots(self):
        each = self.drive.conventional_zones // 2
        read = [self.drive.read(zone, 0, self.drive.zone_size) for zone in range(2 * each)]
        return [b"".join(read[:each]), b"".join(read[each:])]

    def data(self, zone, at, length):
        if at + length > self.drive.zones[zone].readable_to:
            raise Damaged("an extent behind the write pointer")
        return self.drive.read(zone, at, length)


class Smrfs:
    def __init__(self, drive):
        is_caveat = drive.conventional_zones == drive.zone_count
        self.medium = Caveat(drive) if is_caveat else Bands(drive)
        self.drive_block = drive.block_size
        logs = [log for slot in self.medium.slots() if (log := self._log(slot))]
        if not logs:
            raise Damaged("no head")
        self.generation, head, records = max(logs)
        self.flags, self.block = struct.unpack_from("<BI", head, 17)
        assert bool(self.flags & 2) == is_caveat
        (length,) = struct.unpack_from("<H", head, 58)
        self.label = head[60 : 60 + length].decode()
        self.inodes, self.names, self.extents, self.targets = {1: None}, {}, {}, {}
        self.preallocated = {}
        for record in records:
            self._apply(record)

    def _log(self, slot):
        """Generation, head, and the records of all whole groups."""
        at, sequence, previous, head, records, group = 0, 0, 0, None, b"", b""
        while slot[at : at + 8] == b"ZSTRAPPD":
            version, kind, last, length = struct.unpack_from("<HBBI", slot, at + 8)
            if version not in (1, 2):
                raise OtherVersion(version)
            if version != slot[8]:
                break
            generation, number, _, before, _, own = struct.unpack_from("<QQQQQQ", slot, at + 16)
            if (number, before) != (sequence, previous) or head and generation != head[0]:
                break
            payload = slot[at + 64 : at + 64 + length]
            if kind == 1:
                head = (generation, payload)
            else:
                group += payload
                if last:
                    records, group = records + group, b""
            at += -(-(64 + length) // self.drive_block) * self.drive_block
            sequence, previous = number + 1, own
        return (*head, list(split(records))) if head else None

    def _apply(self, record):
        kind, *fields = record
        if kind == 1:
            inode, mode, size = fields
            self.inodes[inode] = (mode, size)
        elif kind == 2:
            for table in (self.inodes, self.extents, self.targets, self.preallocated):
                table.pop(fields[0], None)
        elif kind == 3:
            directory, inode, name = fields
            self.names.setdefault(directory, {})[name] = inode
        elif kind == 4:
            del self.names[fields[0]][fields[1]]
        elif kind == 5:
            inode, first, zone, start, sums = fields
            blocks = self.extents.setdefault(inode, {})
            blocks.update({first + n: (zone, start + n, crc) for n, crc in enumerate(sums)})
            self.preallocated.get(inode, set()).difference_update(blocks)
        elif kind == 6:
            inode, first, end = fields
            kept = self.extents.get(inode, {}).items()
            self.extents[inode] = {n: place for n, place in kept if not first <= n < end}
            aside = self.preallocated.get(inode, set())
            aside.difference_update([n for n in aside if first <= n < end])
        elif kind == 12:
            inode, first, end = fields
            aside = set(range(first, end)) - self.extents.get(inode, {}).keys()
            self.preallocated.setdefault(inode, set()).update(aside)
        elif kind == 9:
            self.targets[fields[0]] = fields[1]

    def content(self, inode):
        """A file's bytes, each block compared with its checksum."""
        _, size = self.inodes[inode]
        out = bytearray(-(-size // self.block) * self.block)
        for n, (zone, start, crc) in self.extents.get(inode, {}).items():
            block = self.medium.data(zone, start * self.block, self.block)
            if crc32c(block) != crc:
                raise Damaged("data")
            out[n * self.block : (n + 1) * self.block] = block
        return bytes(out[:size])

    def tree(self, inode=1, path=""):
        """All names, with bytes or target."""
        for name, child in sorted(self.names.get(inode, {}).items()):
            below = f"{path}/{name.decode()}"
            kind = self.inodes[child][0] & 0o170000
            if kind == FILE:
                yield below, self.content(child)
            elif kind == LINK:
                yield below, self.targets[child]
            else:
                yield below, None
                yield from self.tree(child, below)


def split(records):
    """Kind and fields of each, as far as they are needed."""
    at = 0

    def field(code):
        nonlocal at
        (value,) = struct.unpack_from("<" + code, records, at)
        at += struct.calcsize(code)
        return value

    def text():
        nonlocal at
        length = field("I")
        at += length
        return records[at - length : at]

    while at < len(records):
        kind = field("B")
        if kind == 1:
            inode, mode, _, _, _, _, size = (field(code) for code in "QIIIIIQ")
            at += 4 * 12
            yield kind, inode, mode, size
        elif kind == 3:
            yield kind, field("Q"), field("Q"), text()
        elif kind in (4, 8, 9):
            yield kind, field("Q"), text()
        elif kind == 5:
            inode, first, zone, start, count = (field(code) for code in "QQIII")
            yield kind, inode, first, zone, start, [field("I") for _ in range(count)]
        elif kind in (6, 12):
            yield kind, field("Q"), field("Q"), field("Q")
        elif kind == 7:
            yield kind, field("Q"), text(), text()
        elif kind in (2, 10, 11):
            yield kind, field("Q")
        else:
            raise Damaged(f"record {kind}")
