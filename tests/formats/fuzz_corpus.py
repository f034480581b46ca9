#!/usr/bin/env python3
"""Writes pieces of the golden images into a folder for each fuzz target: headers, entries, superblocks, frames,
records and notes, behind the byte that leads the target to their decoder.

    tests/formats/fuzz_corpus.py target/fuzz-corpus"""

import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import golden
import unsynced
import zea
import zeafs
from bluefs import BlueFs
from drive_file import DriveFile

# No longer ones are made of them.
LONGEST = 600


def drive_file():
    states = golden.image("file-drive-2", "states")
    yield from ((choice, states[:320]) for choice in (0, 1))
    for zone in range(13):
        entry = states[4096 + 64 * zone :][:64]
        yield from ((choice, entry) for choice in (2, 3))


def bluefs():
    for name in ("clean", "killed"):
        drive = DriveFile(golden.image("bluefs-6", name))
        fs = BlueFs(drive)
        yield 0, drive.read(0, 0, 96)
        for frame in fs.heard_frames:
            yield 1, drive.read(frame.zone, frame.offset, 40 + len(frame.payload))
            yield 2, frame.payload
        for record in fs.heard_records:
            yield 3, drive.read(record.zone, record.offset, 84 + min(len(record.data), 200))


def notes():
    whole = golden.image("unsynced-1", "whole")
    for start in range(unsynced.SLOTS, len(whole), unsynced.SLOT_BYTES):
        for choice in (1, 2):
            yield choice, whole[start : start + LONGEST]
    yield 0, whole[64:104]


def backups():
    archive = golden.image("backup-1", "whole")
    text = archive[archive.index(b'{"version"') :].split(b"\n")[0]
    yield 0, text + b"\n" + archive.split(text + b"\n")[1][:9]
    yield 1, text
    for start in range(0, len(archive), 512):
        if archive[start + 257 : start + 262] == b"ustar":
            for choice in (2, 3):
                yield choice, archive[start : start + LONGEST]


def zea_zones():
    drive = DriveFile(golden.image("zea-1", "whole"))
    for zone in (0, 1):
        found = zea.Zone(drive, zone)
        yield 0, found.blocks[0]
        for extent in found.extents:
            yield 1, found.blocks[extent.block][: 80 + 4 * len(extent.back)]


def zeafs_frames():
    for name in ("clean", "killed", "sequential"):
        for frame in zeafs.ZeaFs(DriveFile(golden.image("zeafs-1", name))).frames:
            yield from ((choice, frame.operations) for choice in (2, 3))


def smrfs_records():
    """Of what the target's drive has: inodes 2 to 5, all in the first zone for files."""
    times = struct.pack("<qI", 1, 2) * 4
    inode = lambda ino, mode, size: struct.pack("<BQIIIIIQ", 1, ino, mode, 0, 0, 0, 1, size) + times
    text = lambda value: struct.pack("<I", len(value)) + value
    name = lambda directory, ino, value: struct.pack("<BQQ", 3, directory, ino) + text(value)
    extent = lambda ino, block, zone, at, count: struct.pack("<BQQIII", 5, ino, block, zone, at, count) + bytes(4 * count)
    records = [
        inode(6, 0o100644, 9000) + name(1, 6, b"c") + extent(6, 0, 4, 20, 3),
        inode(6, 0o040755, 0) + name(1, 6, b"e") + name(6, 2, b"again"),
        inode(6, 0o120777, 3) + struct.pack("<BQ", 9, 6) + text(b"a/b") + name(1, 6, b"s"),
        struct.pack("<BQ", 4, 1) + text(b"a") + struct.pack("<BQ", 2, 2),
        struct.pack("<BQQQ", 6, 2, 1, 3) + extent(2, 1, 4, 30, 2),
        struct.pack("<BQ", 7, 2) + text(b"user.x") + text(b"value") + struct.pack("<BQ", 8, 2) + text(b"user.x"),
        struct.pack("<BQ", 10, 100) + struct.pack("<BQ", 11, 7),
        inode(2, 0o100644, 1 << 40) + struct.pack("<BQQQ", 12, 2, 5, 90),
    ]
    for record in records:
        yield from ((choice, record) for choice in range(8))
    # The largest free run of a Caveat-Scriptor drive is behind its end, where only a footer may be.
    yield 0x05, bytes.fromhex("010200000000000000a481000000000000000000000000000001000000002e8700000000000000000000000000020000000100000000000900020000000100000000000000020000000100000000000000020000000c040000000000000000000000000000005a04000000000000")


def main(folder):
    pieces_of = {"drive_file": drive_file, "bluefs": bluefs, "unsynced": notes, "backup": backups, "zea": zea_zones, "zeafs": zeafs_frames, "smrfs": smrfs_records}
    for target, pieces in pieces_of.items():
        (folder / target).mkdir(parents=True, exist_ok=True)
        for number, (choice, piece) in enumerate(pieces()):
            (folder / target / f"golden-{number:03}").write_bytes(bytes([choice]) + piece[: LONGEST - 1])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
