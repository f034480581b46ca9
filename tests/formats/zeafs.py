"""Reads a drive with ZEAFS as docs/format/zeafs.md says, and changes nothing."""

import struct
from dataclasses import dataclass, field

import zea
from checksums import crc32c

MAGIC = b"ZSZEAFSM"
VERSIONS = (1, 2)
HEADER = 80
CHUNK = 16 << 10
MIB = 1 << 20


class Refused(Exception):
    """Nothing of ours, or damaged, or of another version."""


@dataclass
class Piece:
    file_offset: int
    zone: int
    offset: int
    length: int
    stored: int
    sums: tuple


@dataclass
class File:
    size: int = 0
    pieces: list = field(default_factory=list)

    def end_of(self, place):
        return self.pieces[place + 1].file_offset if place + 1 < len(self.pieces) else self.size


@dataclass
class Frame:
    uuid: bytes
    epoch: int
    number: int
    durable: int
    shape: tuple
    operations: bytes
    zone: int
    offset: int
    bytes: int


class Fields:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values if len(values) > 1 else values[0]

    def name(self):
        length = self.take("H")
        self.at += length
        return self.data[self.at - length : self.at].decode()

    def piece(self):
        file_offset, zone, offset, length, stored = self.take("QIQQQ")
        count = -(-length // CHUNK)
        sums = struct.unpack_from(f"<{count}I", self.data, self.at)
        self.at += 4 * count
        return Piece(file_offset, zone, offset, length, stored, sums)


def sums(data):
    return tuple(crc32c(data[at : at + CHUNK]) for at in range(0, len(data), CHUNK))


class ZeaFs:
    def __init__(self, drive):
        self.drive, self.block = drive, drive.block_size
        conventional = drive.conventional_zones > 0
        uuid = self._head() if conventional else None
        areas = list(self._areas(conventional))
        if conventional and uuid is None and not self._has_magic() and not any(self._has_extent(area) for area in areas):
            raise Refused("none")
        found = []
        for area in areas:
            frames = list(self._frames(*area))
            if frames and uuid in (None, frames[0].uuid):
                found.append((frames, area))
        if not found or len({frames[0].uuid for frames, _ in found}) > 1 and conventional:
            raise Refused("none")
        found.sort(key=lambda each: each[0][0].epoch)
        self.frames, area = found[-1]
        last = self.frames[-1]
        if last.shape != (self.block, drive.zone_count, drive.zone_capacity):
            raise Refused("shape")
        self._refuse_later(last, area)
        known = 1 + min(max(frame.durable for frame in self.frames), last.number)
        self._replay(known, known)
        reset = {each for each in self._all_pieces() if self._is_reset(*each)}
        states = []
        for count in range(known, len(self.frames) + 1):
            self._replay(count, known)
            states.append(reset & set(self._all_pieces()))
        # A frame by which something died whose zone was reset since has been durable.
        proven = max((known + n + 1 for n, state in enumerate(states) if state - states[-1]), default=known)
        if states[-1] and self._goes_on(last, area):
            raise Refused("damaged frame")
        for count in range(len(self.frames), known - 1, -1):
            self._replay(count, known)
            if count == proven or all(self._arrived(*each) for each in self._pieces()):
                self.frames = self.frames[:count]
                return

    def _replay(self, count, known):
        self.names, self.files, self.named = {}, {}, set()
        for frame in self.frames[:count]:
            if frame.number == known:
                self.named.clear()
            self._apply(Fields(frame.operations))

    def _all_pieces(self):
        for file in self.files.values():
            yield from ((piece.zone, piece.offset, piece.stored) for piece in file.pieces)

    def _is_reset(self, zone, offset, stored):
        end = self.drive.zones[zone].readable_to
        return end is not None and offset + stored > end

    def _goes_on(self, last, area):
        zone, start, end = area
        at = last.offset + last.bytes
        if at + self.block > end:
            return False
        if self.drive.conventional_zones == 0 and end < self.drive.zone_capacity:
            return True
        head = self.drive.read(zone, at, self.block)
        return head[:8] == MAGIC and head[16:40] == last.uuid + struct.pack("<Q", last.epoch)

    def _pieces(self):
        for inode, file in self.files.items():
            yield from ((inode, piece) for piece in file.pieces if (piece.zone, piece.offset) in self.named)

    def _arrived(self, inode, piece):
        """On a drive in a file, whose host may have lost any blocks."""
        end = self.drive.zones[piece.zone].readable_to
        if end is None or piece.offset + piece.stored > end:
            return end is None
        try:
            extents = zea.Zone(self.drive, piece.zone).extents
        except zea.Refused:
            return False
        place = piece.offset // self.block
        here = [each for each in extents if (each.first, each.address, len(each.data)) == (place, inode, piece.length)]
        return bool(here) and sums(here[0].data) == piece.sums

    def _areas(self, conventional):
        if conventional:
            middle = self.drive.zone_size // 2 // self.block * self.block
            yield 0, 2 * self.block, middle
            yield 0, middle, 2 * middle
        else:
            for zone in (0, 1):
                yield zone, 0, self.drive.zones[zone].readable_to

    def _has_magic(self):
        return MAGIC in [self.drive.read(0, copy * self.block, 8) for copy in range(2)]

    def _has_extent(self, area):
        """Whether an extent that the area names is there: the drive has not been erased since."""
        self.frames = list(self._frames(*area))
        self._replay(len(self.frames), 0)
        return any(self._is_here(inode, piece) for inode, file in self.files.items() for piece in file.pieces)

    def _is_here(self, inode, piece):
        place = piece.offset // self.block
        try:
            extents = zea.Zone(self.drive, piece.zone).extents
        except zea.Refused:
            return False
        return any((each.first, each.address, len(each.data)) == (place, inode, piece.length) for each in extents)

    def _head(self):
        for copy in range(2):
            block = self.drive.read(0, copy * self.block, self.block)
            if block[:8] != MAGIC:
                continue
            if crc32c(block[:12] + bytes(4) + block[16:HEADER]) != struct.unpack_from("<I", block, 12)[0]:
                continue
            if struct.unpack_from("<I", block, 8)[0] not in VERSIONS:
                raise Refused("version")
            return block[16:32]
        return None

    def _frame(self, zone, at, end):
        head = self.drive.read(zone, at, self.block)
        if at + self.block > end or head[:8] != MAGIC:
            return None
        (version,) = struct.unpack_from("<I", head, 8)
        if version not in VERSIONS:
            return None
        epoch, number, length, block, zones, capacity, durable = struct.unpack_from("<QQQIIQQ", head, 32)
        if version == 1:
            durable = number
        if HEADER + length > end - at:
            return None
        whole = self.drive.read(zone, at, HEADER + length)
        if crc32c(whole[:12] + bytes(4) + whole[16:]) != struct.unpack_from("<I", whole, 12)[0]:
            return None
        size = -(-len(whole) // self.block) * self.block
        return Frame(whole[16:32], epoch, number, durable, (block, zones, capacity), whole[HEADER:], zone, at, size)

    def _frames(self, zone, at, end):
        before = None
        while frame := self._frame(zone, at, end):
            if before is None:
                follows = frame.number == 0
            else:
                follows = (frame.uuid, frame.epoch, frame.number) == (before.uuid, before.epoch, before.number + 1)
            if not follows:
                return
            yield frame
            before, at = frame, at + frame.bytes

    def _refuse_later(self, last, area):
        zone, _, end = area
        at = last.offset + last.bytes
        while at + self.block <= end:
            frame = self._frame(zone, at, end)
            if frame and frame.uuid == last.uuid and frame.number > 0:
                if (frame.epoch, min(frame.durable, frame.number - 1)) > (last.epoch, last.number):
                    raise Refused("damaged frame")
            at += frame.bytes if frame else self.block

    def _apply(self, fields):
        while fields.at < len(fields.data):
            kind = fields.take("B")
            if kind == 1:
                inode, name = fields.take("Q"), fields.name()
                self._gone(name)
                self.names[name], self.files[inode] = inode, File()
            elif kind == 2:
                self._gone(fields.name())
            elif kind == 3:
                old, new = fields.name(), fields.name()
                inode = self.names.pop(old)
                self._gone(new)
                self.names[new] = inode
            elif kind == 4:
                file, piece = self.files[fields.take("Q")], fields.piece()
                assert piece.file_offset == file.size
                self.named.add((piece.zone, piece.offset))
                file.pieces.append(piece)
                file.size += piece.length
            elif kind == 5:
                inode, size = fields.take("QQ")
                file = self.files[inode]
                file.size = size
                file.pieces = [piece for piece in file.pieces if piece.file_offset < size]
            elif kind == 6:
                inode, offset, count = fields.take("QQI")
                pieces = [fields.piece() for _ in range(count)]
                self.named.update((piece.zone, piece.offset) for piece in pieces)
                self._move(self.files[inode], offset, pieces)
            else:
                raise Refused("operation")

    def _gone(self, name):
        if (inode := self.names.pop(name, None)) is not None:
            del self.files[inode]

    def _move(self, file, offset, pieces):
        end = offset + sum(piece.length for piece in pieces)
        first = [piece.file_offset for piece in file.pieces].index(offset)
        last = next(place for place in range(first, len(file.pieces)) if file.end_of(place) == end)
        file.pieces[first : last + 1] = pieces

    def read(self, name):
        """A file's bytes, verified."""
        file = self.files[self.names[name]]
        content = b""
        for place, piece in enumerate(file.pieces):
            data = self.drive.read(piece.zone, piece.offset, piece.length)
            if sums(data) != piece.sums:
                raise Refused("checksum")
            content += data[: file.end_of(place) - piece.file_offset]
        assert len(content) == file.size
        return content
