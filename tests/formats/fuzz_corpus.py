#!/usr/bin/env python3
"""Writes pieces of the golden images into a folder for each fuzz target: headers, entries, superblocks, frames,
records and notes, behind the byte that leads the target to their decoder.

    tests/formats/fuzz_corpus.py target/fuzz-corpus"""

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
            yield 3, frame.operations


def main(folder):
    pieces_of = {"drive_file": drive_file, "bluefs": bluefs, "unsynced": notes, "backup": backups, "zea": zea_zones, "zeafs": zeafs_frames}
    for target, pieces in pieces_of.items():
        (folder / target).mkdir(parents=True, exist_ok=True)
        for number, (choice, piece) in enumerate(pieces()):
            (folder / target / f"golden-{number:03}").write_bytes(bytes([choice]) + piece[: LONGEST - 1])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
