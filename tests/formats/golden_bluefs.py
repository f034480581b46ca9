"""What is on the golden drives with BlueFS, and how each is damaged."""

import hashlib
import json
import struct

from bluefs import BlueFs
from bluefs_records import padded, superblock
from checksums import crc32c
from drive_file import DriveFile

FOLDER = "bluefs-6"
TABLE = b"".join(b"line %06d of a table\n" % line for line in range(6000))
PUTS = "for i in range({0}, {0} + 120): db.put(b'key%04d' % i, b'value %d ' % i * 20, sync=i % 40 == 39)\n"
KILL = "os.kill(os.getpid(), 9)"


def make(golden):
    drive = golden.drive("d.zoned")
    golden.run("fs", "mkfs", drive)
    for path, content in {"a/1.sst": TABLE, "a/b/2.sst": b"small", "a/gone.sst": TABLE[:9000]}.items():
        golden.run("fs", "put", drive, "-", path, stdin=content)
    golden.run("fs", "rm", drive, "a/gone.sst")
    golden.leveldb(drive, PUTS.format(0) + "db.close()")
    clean = Image(drive.read_bytes())
    assert clean.read("/a/1.sst") == TABLE and clean.read("/a/b/2.sst") == b"small"
    golden.leveldb(drive, PUTS.format(120) + KILL, code=-9)
    killed = Image(drive.read_bytes())
    make_whole(golden, clean, killed)
    make_superblocks(golden, clean)
    make_damaged(golden, clean, killed)
    drive.unlink()
    (golden.scratch / "d.zoned.unsynced").unlink()
    golden.drive("e.zoned")
    golden.run("fs", "mkfs", "e.zoned")
    golden.leveldb("e.zoned", KILL, code=-9)
    make_torn_frame(golden, Image((golden.scratch / "e.zoned").read_bytes()))


def make_whole(golden, clean, killed):
    keep(golden, "clean", clean, "after an unmount")
    keep(golden, "killed", killed, "kill -9, and DRIVE.unsynced is lost: logs end where they were synced")
    clean.base, killed.base = "clean", "killed"
    last = killed.records("/db/000006.log")[-1]
    torn = killed.changed(last.zone, last.offset + 2048, lambda old: bytes(2048))
    keep(golden, "torn-record", torn, "half of the last log record: no mark covers it, it was never acknowledged")


def make_torn_frame(golden, killed):
    last = killed.fs.frames[-1]
    torn = killed.changed(last.zone, last.offset + 60, lambda old: bytes(4096 - 60))
    keep(golden, "torn-frame", torn, "half of the last frame of the journal: no mark covers it")


def make_superblocks(golden, clean):
    newest = clean.superblocks(clean.fs.superblock.generation)
    assert len(newest) == 2
    one = clean.flipped(newest[0][0], newest[0][1] + 40)
    keep(golden, "superblock-copy", one, "a flipped bit in one of the two newest superblocks: the other counts")
    none = clean
    for zone, offset in clean.superblocks():
        none = none.flipped(zone, offset + 40)
    refuse(golden, "superblock-none", none, "NoSuperblock", 6, ["superblock"], "a flipped bit in every superblock")
    for version in (5, 8):
        other = clean.patched_superblocks(8, struct.pack("<I", version))
        says = [f"version {version}", "6"]
        refuse(golden, f"version-{version}", other, "OtherVersion", 1, says, "another version with right checksums")
    other = clean.patched_superblocks(56, struct.pack("<I", 47))
    refuse(golden, "other-drive", other, "OtherDrive", 6, ["48", "47"], "superblocks of a drive with 47 zones")


def make_damaged(golden, clean, killed):
    frame = killed.fs.frames[1]
    damaged = killed.flipped(frame.zone, frame.offset + 50)
    said = [f"zone {frame.zone} + {frame.offset}"]
    keep(golden, "frame", damaged, "a flipped bit in a frame in front of acknowledged ones", 6, ["journal", *said])
    frame = clean.fs.frames[-1]
    damaged = clean.flipped(frame.zone, frame.offset + 50)
    said = [f"zone {frame.zone} + {frame.offset}"]
    keep(golden, "last-frame", damaged, "the last frame, which the unmount covers", 6, ["journal", *said])
    unknown = clean.with_operation(frame, 17)
    about = "a frame with a right checksum, and an operation that there is not"
    refuse(golden, "operation", unknown, "UnknownOperation", 6, ["unknown operation"], about)
    record = killed.records("/db/000006.log")[0]
    damaged = killed.flipped(record.zone, record.offset + 200)
    said = ["/db/000006.log", f"zone {record.zone} + {record.offset}"]
    keep(golden, "record", damaged, "a flipped bit in a record in front of acknowledged ones", 6, said)
    record = clean.records("/db/000003.log")[-1]
    damaged = clean.flipped(record.zone, record.offset + 90)
    said = [f"zone {record.zone} + {record.offset}"]
    keep(golden, "last-record", damaged, "the last record of a log, which the unmount covers", 6, said)
    extent = clean.fs.names.files[clean.fs.names.paths["/a/1.sst"]].extents[1]
    damaged = clean.flipped(extent.zone, extent.offset + 10_000)
    keep(golden, "table", damaged, "a flipped bit in a table: it alone is damaged", unreadable={"/a/1.sst": ["/a/1.sst"]})


def keep(golden, name, image, about, code=0, says=(), unreadable=()):
    """With the answers of the oracle; `accepted` is what the program has with --accept-damage."""
    fs = image.fs
    files = {path: summary(fs.read(path)) for path in fs.paths() if path not in unreadable}
    damage = [[one.what, one.zone, one.found, one.expected] for one in fs.damage]
    expected = {"about": about, "exit_code": code, "says": list(says), "damage": damage, "files": files}
    if unreadable:
        expected["unreadable"] = unreadable
    if code:
        expected["accepted"] = accepted(golden, image)
    expected["directories"] = sorted(fs.names.directories - {""})
    golden.keep(name, image.content, image.base, **expected)


def refuse(golden, name, image, oracle, code, says, about):
    golden.keep(name, image.content, image.base, about=about, exit_code=code, says=says, refused=oracle)


def accepted(golden, image):
    """What lies in front of the damage, and what of the journal behind it is carried out."""
    drive = golden.scratch / "damaged.zoned"
    drive.write_bytes(image.content)
    dump = golden.run("fs", "dump", drive, "--accept-damage", "--json")
    paths = [file["path"] for file in json.loads(dump)["files"]]
    return {path: summary(golden.run("fs", "cat", drive, path, "--accept-damage")) for path in paths}


def summary(content):
    return [len(content), hashlib.sha256(content).hexdigest()]


class Image:
    """A drive file's bytes with what is where on it."""

    def __init__(self, content, base=None):
        # `base` is the name of the image that this one is but for some bytes.
        self.content, self.base = content, base
        self._drive = DriveFile(content)

    @property
    def fs(self):
        return BlueFs(self._drive)

    def read(self, path):
        return self.fs.read(path)

    def superblocks(self, generation=None):
        """Zone and offset of each that is whole."""
        found = []
        for zone in self._drive.zones:
            for offset in range(0, zone.readable_to, 4096):
                one = superblock(self._drive.read(zone.number, offset, 96))
                if one and generation in (None, one.generation):
                    found.append((zone.number, offset))
        return found

    def records(self, path):
        """Those of a log, in their order."""
        fs = self.fs
        heard = [record for record in fs.heard_records if record.inode == fs.names.paths[path]]
        return sorted(heard, key=lambda record: record.file_offset)

    def changed(self, zone, offset, change):
        at = self._drive.data_offset + zone * self._drive.zone_size + offset
        new = change(self.content[at : at + 4096])
        return Image(self.content[:at] + new + self.content[at + len(new) :], self.base)

    def flipped(self, zone, offset):
        return self.changed(zone, offset, lambda old: bytes([old[0] ^ 0x10]))

    def patched_superblocks(self, offset, field):
        def patch(block):
            new = bytearray(block[:96])
            new[offset : offset + len(field)] = field
            new[12:16] = bytes(4)
            new[12:16] = struct.pack("<I", crc32c(new))
            return bytes(new)

        image = self
        for zone, at in self.superblocks():
            image = image.changed(zone, at, patch)
        return image

    def with_operation(self, frame, kind):
        """The frame with the type of its first operation replaced, and its checksum made right."""

        def patch(block):
            new = bytearray(block[: 40 + len(frame.payload)])
            new[40] = kind
            new[4:8] = struct.pack("<I", crc32c(new[8:]))
            return bytes(new)

        assert padded(40 + len(frame.payload), 4096) == 4096
        return self.changed(frame.zone, frame.offset, patch)
