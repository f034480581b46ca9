"""Reads BlueFS from a drive as docs/format/bluefs.md says: superblock, journal, names, contents. It looks at
every block of the drive for somebody who says what was durable, where the program looks at some. What lies
behind damage is not gone after: the answer is what is missing."""

from dataclasses import dataclass

import bluefs_records as records
import unsynced
from bluefs_names import LOG, Names
from bluefs_records import Invalid as UnknownOperation
from checksums import crc32c

__all__ = ["BlueFs", "UnknownOperation"]
SUPERBLOCKS_OF_A_ZONE = {"conventional": 16}


class NotFormatted(Exception):
    """An empty drive."""


class NoSuperblock(Exception):
    """There is data and no superblock."""


class OtherVersion(Exception):
    """Of a version that is not read."""


class OtherDrive(Exception):
    """The superblock is one of a drive of another shape."""


class OutOfReach(Exception):
    """Bytes in a zone that is offline."""


class WrongBytes(Exception):
    """They differ from their checksum, or less is written than was durable."""


@dataclass
class Damage:
    """`what` is "journal", "superblock" or the path of a log; `expected` was durable, `found` is there."""

    what: str
    zone: int
    found: int
    expected: int


class BlueFs:
    def __init__(self, drive, notes=b"", boot=b""):
        self.drive = drive
        self.block = drive.block_size
        self.damage = []
        self.superblock = self._superblock()
        self._listen()
        self._replay()
        self.notes = unsynced.read(notes, boot, self.superblock.uuid, self.superblock.epoch)
        self.logs = {path: self._log(path, inode) for path, inode in self._logs()}

    # Superblocks

    def _superblock(self):
        count = self.drive.zone_count
        found = []
        for zone in (0, 1, count - 2, count - 1):
            readable = self.drive.zones[zone].readable_to or 0
            most = SUPERBLOCKS_OF_A_ZONE.get(self.drive.zones[zone].kind, 1024)
            for offset in range(0, min(readable, most * self.block), self.block):
                if one := records.superblock(self.drive.read(zone, offset, self.block)):
                    found.append(one)
        if not found:
            raise NotFormatted if self._is_empty() else NoSuperblock
        newest = max(found, key=lambda one: one.generation)
        if newest.version not in records.SUPERBLOCK_BYTES:
            raise OtherVersion(newest.version)
        drive = self.drive
        shape = (drive.block_size, drive.zone_size, drive.zone_capacity, drive.zone_count)
        if shape != (newest.block_size, newest.zone_size, newest.zone_capacity, newest.zone_count):
            raise OtherDrive
        self.drive.divide(newest.further_parts + 1)
        return newest

    def _is_empty(self):
        zones = self.drive.zones
        count = len(zones)
        if any(zones[zone].condition == "offline" for zone in (0, 1, count - 2, count - 1)):
            return False
        for zone in zones:
            if zone.kind == "conventional":
                if zone.readable_to is None or any(self.drive.read(zone.number, 0, min(1 << 20, zone.capacity))):
                    return False
            elif zone.write_pointer or zone.condition == "read_only":
                return False
        return True

    # Who says what was durable

    def _listen(self):
        """Whole frames and records of the drive, wherever they lie."""
        self.heard_frames, self.heard_records = [], []
        for zone in self.drive.zones:
            readable = zone.readable_to
            if readable is None:
                continue
            data = self.drive.read(zone.number, 0, readable)
            for offset in range(0, readable, self.block):
                if data[offset : offset + 4] == records.FRAME_MAGIC:
                    if frame := records.frame(data[offset:], zone.number, offset):
                        self.heard_frames.append(frame)
                elif data[offset : offset + 4] == records.RECORD_MAGIC:
                    if record := records.record(data[offset:]):
                        self.heard_records.append(record)

    def _durable_frames(self):
        """So many frames of the epoch were."""
        epoch = self.superblock.epoch
        said = [self.superblock.frames]
        said += [frame.durable for frame in self.heard_frames if frame.epoch == epoch]
        said += [record.frames for record in self.heard_records if record.epoch == epoch]
        return max(said)

    def _durable_run(self, zone, run_id):
        """Up to here the run's records were."""
        said = [0]
        for record in self.heard_records:
            if (record.zone, record.run_id) == (zone, run_id):
                said.append(record.own_run)
            if (record.other_zone, record.other_run_id) == (zone, run_id):
                said.append(record.other_run)
        durable = self._durable_frames()
        for frame, *run, offset in self.names.written_ends:
            if frame < durable and run == [zone, run_id]:
                said.append(offset)
        return max(said)

    # Journal

    def _frames(self):
        """Those that follow each other, and where the next would be."""
        zone, offset = self.superblock.journal_zone, 0
        found, previous = [], 0
        while True:
            readable = self.drive.zones[zone].readable_to
            if readable is None:
                raise OutOfReach(f"journal in zone {zone}")
            if offset >= readable:
                break
            frame = records.frame(self.drive.read(zone, offset, readable - offset), zone, offset)
            if not frame or (frame.epoch, frame.number, frame.previous) != (
                self.superblock.epoch,
                len(found),
                previous,
            ):
                break
            operations = frame.operations()
            found.append(frame)
            previous = frame.checksum
            offset += frame.size(self.block)
            for name, fields in operations:
                if name == "next_zone":
                    zone, offset = fields[0], 0
        return found, zone

    def _replay(self):
        """In front of the first frame that names what is not there, again and again, until all is there. What a
        durable frame names was durable too: if it is missing, its file is damaged and nothing is rolled back."""
        frames, zone = self._frames()
        expected = self._durable_frames()
        end = len(frames)
        while True:
            self.names = Names()
            for frame in frames[:end]:
                self.names.frame = frame.number
                for name, fields in frame.operations():
                    self.names.apply(name, fields)
            missing = [
                file.named_by[extent.zone, extent.offset]
                for file in self.names.files.values()
                for extent in file.extents
                if not self._is_there(extent)
            ]
            missing = [frame for frame in missing if frame >= expected]
            if not missing:
                break
            end = min(missing)
        self.frames = frames[:end]
        if end < expected:
            self.damage.append(Damage("journal", zone, end, expected))
        epoch = self.superblock.epoch + 1
        spare = self.superblock.spare_zone
        if any(f.zone == spare and f.epoch == epoch and f.durable for f in self.heard_frames):
            self.damage.append(Damage("superblock", spare, self.superblock.generation, self.superblock.generation + 1))

    def differing_twins(self, cut_short=False):
        """
        Zones whose second copy has other bytes, or fewer; what was killed may have left one of them `cut_short`. What neither superblock nor a
        zone in use names has none.
        """
        superblock = self.superblock
        twins = {
            **self.names.twins,
            superblock.journal_zone: superblock.journal_twin,
            superblock.spare_zone: superblock.spare_twin,
        }
        found = []
        for zone in {superblock.journal_zone, superblock.spare_zone, *self._used_zones()}:
            other = twins.get(zone, records.NO_ZONE)
            ends = [self.drive.zones[one].readable_to for one in (zone, other) if other != records.NO_ZONE]
            if not ends or (ends[0] != ends[1] and not cut_short):
                found.append((zone, other))
                continue
            end = min(*ends, self._end_of_extents(zone))
            if self.drive.read(zone, 0, end) != self.drive.read(other, 0, end):
                found.append((zone, other))
        return found

    def _end_of_extents(self, zone):
        """Of a full zone without records, where what counts ends: behind that, a copy may be finished and not written."""
        files = self.names.files.values()
        ends = [extent.offset + extent.length for file in files for extent in file.extents if extent.zone == zone]
        has_records = any(segment.zone == zone for file in files for segment in file.segments)
        is_full = self.drive.zones[zone].condition == "full"
        return max(ends) if ends and is_full and not has_records else self.drive.zones[zone].readable_to

    def _used_zones(self):
        for file in self.names.files.values():
            yield from (part.zone for part in [*file.extents, *file.segments])

    def _is_there(self, extent):
        zone = self.drive.zones[extent.zone]
        if zone.kind == "conventional" or zone.condition in ("read_only", "offline"):
            return True
        return extent.offset + records.padded(extent.length, self.block) <= zone.write_pointer

    def damage_to_journal(self):
        return any(one.what == "journal" for one in self.damage)

    # Contents

    def _logs(self):
        return [(path, inode) for path, inode in self.names.paths.items() if self.names.files[inode].kind == LOG]

    def _log(self, path, inode):
        """What its segments and the notes hold; None where a zone of it cannot be read."""
        data = b""
        for segment in self.names.files[inode].segments:
            if segment.file_offset > len(data):
                break
            part = self._segment(path, inode, segment)
            if part is None:
                return None
            data = data[: segment.file_offset] + part
        return unsynced.continue_log(data, self.notes, inode)

    def _segment(self, path, inode, segment):
        zone = self.drive.zones[segment.zone]
        if zone.readable_to is None:
            return None
        data, offset = b"", segment.offset
        while offset < min(segment.end, zone.readable_to):
            record = records.record(self.drive.read(segment.zone, offset, zone.readable_to - offset))
            if not record or (record.run_id, record.zone, record.offset) != (segment.run_id, segment.zone, offset):
                break
            if record.inode == inode:
                if record.file_offset != segment.file_offset + len(data):
                    break
                data += record.data
            offset += record.size(self.block)
        known_end = segment.end if segment.end != records.UNKNOWN_END else 0
        expected = max(known_end, self._durable_run(segment.zone, segment.run_id) if not known_end else 0)
        # Names in front of damage to the journal are those of an earlier state, whose zones may be reset.
        if offset < expected and not self.damage_to_journal():
            self.damage.append(Damage(path, segment.zone, offset, expected))
        return data[: segment.limit - segment.file_offset]

    def paths(self):
        return sorted(self.names.paths)

    def read(self, path):
        """All of a file."""
        inode = self.names.paths[path]
        if path in self.logs:
            if self.logs[path] is None:
                raise OutOfReach(path)
            return self.logs[path]
        data = b""
        for extent in sorted(self.names.files[inode].extents, key=lambda extent: extent.file_offset):
            if self.drive.zones[extent.zone].readable_to is None:
                raise OutOfReach(path)
            if not self._is_there(extent):
                raise WrongBytes(path, extent.zone, extent.offset)
            part = self.drive.read(extent.zone, extent.offset, extent.length)
            if extent.checksum and crc32c(part) != extent.checksum:
                raise WrongBytes(path, extent.zone, extent.offset)
            data = data.ljust(extent.file_offset, b"\0") + part
        return data
