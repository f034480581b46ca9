"""A killed LevelDB program's notes beside its drive, and what can be wrong with them."""

import hashlib
import struct

from bluefs import BlueFs
from checksums import crc32c
from drive_file import DriveFile
from unsynced import SLOT_BYTES, SLOTS, boot_id, slot

FOLDER = "unsynced-1"
PUTS = """
for i in range(60): db.put(b'key%04d' % i, b'value %d ' % i * 20, sync=i % 30 == 29)
for i in range(25): db.put(b'late%04d' % i, b'unsynced %d ' % i * 20)
os.kill(os.getpid(), 9)
"""
LOG = "/db/000003.log"


def make(golden):
    path = golden.drive("d.zoned")
    golden.run("fs", "mkfs", path)
    golden.leveldb(path, PUTS, code=-9)
    drive = path.read_bytes()
    notes = (golden.scratch / "d.zoned.unsynced").read_bytes()
    golden.keep("drive", drive, about="the drive beside which all notes here lay", log=LOG)
    start = next(at for at in range(SLOTS, len(notes), SLOT_BYTES) if len(slot(notes[at : at + SLOT_BYTES])) > 9)
    written = slot(notes[start : start + SLOT_BYTES])
    ends = [start]
    for note in written:
        ends.append(ends[-1] + 32 + len(note.data))
    keep(golden, "whole", drive, notes, None, "kill -9: all that was written is there")
    torn = notes[: ends[-2] + 100] + bytes(len(notes) - ends[-2] - 100)
    keep(golden, "torn", drive, torn, "whole", "killed within the last note")
    bit = flipped(notes, ends[-5] + 40)
    keep(golden, "bit", drive, bit, "whole", "a flipped bit in a note: the log ends in front of it")
    gap = notes[:start] + notes[ends[1] :] + bytes(ends[1] - start)
    keep(golden, "gap", drive, gap, "whole", "the first note is missing: what begins behind a gap does not count")
    keep(golden, "magic", drive, flipped(notes, 3), "whole", "another magic: nothing counts")
    keep(golden, "version-2", drive, patched(notes, 8, struct.pack("<I", 2)), "whole", "another version: nothing counts")
    keep(golden, "reserved", drive, flipped(notes, 13), "whole", "a reserved byte: nothing counts")
    keep(golden, "notes-magic", drive, header(notes, 64, b"XXXX"), "whole", "another magic of the notes")
    keep(golden, "uuid", drive, header(notes, 70, b"XXXX"), "whole", "notes of another file system")
    epochs = header(notes, 84, struct.pack("<QQ", 1, 2))
    keep(golden, "epoch", drive, epochs, "whole", "notes of an earlier epoch")
    now = BlueFs(DriveFile(drive)).superblock.epoch
    for name, epochs in {"this-epoch": (now, 2), "next-epoch": (1, now)}.items():
        content = header(notes, 84, struct.pack("<QQ", *epochs))
        keep(golden, name, drive, content, "whole", "one of the two epochs is the superblock's")
    keep(golden, "checksum", drive, flipped(notes, 101), "whole", "a wrong checksum of the header: nothing counts")
    keep(golden, "short", drive, notes[:103], "whole", "the header is cut off")


def keep(golden, name, drive, notes, base, about):
    """With what a mount takes for the log, on the host that wrote the notes."""
    log = BlueFs(DriveFile(drive), notes, boot_id(notes)).read(LOG)
    expected = [len(log), hashlib.sha256(log).hexdigest()]
    golden.keep(name, notes, base, about=about, log=expected)


def flipped(content, at):
    return content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :]


def patched(content, at, field):
    return content[:at] + field + content[at + len(field) :]


def header(content, at, field):
    """A field that the header's checksum covers, with the right one."""
    content = patched(content, at, field)
    return patched(content, 100, struct.pack("<I", crc32c(content[64:100])))
