"""Reads the notes beside a drive file as docs/format/unsynced.md says."""

import struct
from dataclasses import dataclass

from checksums import crc32c

MAGIC = b"ZSUNSYNC"
NOTES_MAGIC = 0x544F4E55
VERSION = 1
SLOTS = 4160
SLOT_BYTES = 4 << 20
NOTE_HEADER = 32


@dataclass
class Note:
    inode: int
    offset: int
    round: int
    data: bytes


def boot_id(content):
    """Of the host that wrote the file."""
    return content[16:64].rstrip(b"\0")


def counts(content, boot, uuid, epoch):
    """Whether anything of the file does, for a superblock with this UUID and epoch."""
    if len(content) < 104 or content[:8] != MAGIC or content[8:16] != struct.pack("<II", VERSION, 0):
        return False
    if content[16:64] != boot.ljust(48, b"\0"):
        return False
    magic, noted_uuid, current, next_one, checksum = struct.unpack_from("<I16sQQI", content, 64)
    return (
        magic == NOTES_MAGIC
        and noted_uuid == uuid
        and epoch in (current, next_one)
        and checksum == crc32c(content[64:100])
    )


def slot(data):
    """The notes at its front that are whole, of one inode and round, and continue each other."""
    notes = []
    at = 0
    while at + NOTE_HEADER < len(data):
        checksum, length, inode, offset, round_ = struct.unpack_from("<IIQQQ", data, at)
        end = at + NOTE_HEADER + length
        if length == 0 or end > len(data) or crc32c(data[at + 4 : end]) != checksum:
            break
        note = Note(inode, offset, round_, data[at + NOTE_HEADER : end])
        if notes:
            last = notes[-1]
            if (note.inode, note.round) != (last.inode, last.round):
                break
            if note.offset != last.offset + len(last.data):
                break
        notes.append(note)
        at = end
    return notes


def read(content, boot, uuid, epoch):
    """All notes that count, in the order of the file."""
    if not counts(content, boot, uuid, epoch):
        return []
    return [
        note
        for start in range(SLOTS, len(content), SLOT_BYTES)
        for note in slot(content[start : start + SLOT_BYTES])
    ]


def continue_log(log, notes, inode):
    """What a mount takes for the log `inode` of which the drive has `log`."""
    for note in sorted((note for note in notes if note.inode == inode), key=lambda note: note.offset):
        if note.offset > len(log):
            break
        log += note.data[len(log) - note.offset :]
    return log
