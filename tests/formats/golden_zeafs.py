"""ZEAFS as LevelDB leaves it: closed, killed, without conventional zones; and what can be wrong with it."""

from hashlib import sha256
from pathlib import Path

import zeafs
from checksums import crc32c
from drive_file import DriveFile

FOLDER = "zeafs-2"
PUT = "for n in range(40): db.put(b'%05d' % n, b'v' * 700, sync=n % 4 == 0)"


def make(golden):
    kept = {}
    for name, conventional, ending in [
        ("clean", 2, "db.close()"),
        ("killed", 2, "db.put(b'a', b'b', sync=True); os.kill(os.getpid(), 9)"),
        ("sequential", 0, "db.close()"),
    ]:
        drive = golden.drive(f"{name}.zoned", conventional)
        golden.run("zea", "mkfs", "--fs", drive)
        leveldb(golden, drive, PUT + "\n" + ending, code=-9 if name == "killed" else 0)
        kept[name] = Path(drive).read_bytes()
        keep(golden, name, kept[name], f"after LevelDB: {name}")
    whole = kept["killed"]
    fs = zeafs.ZeaFs(DriveFile(whole))
    place = lambda frame: DriveFile(whole).data_offset + frame.offset + 90
    keep(golden, "torn-frame", flipped(whole, place(fs.frames[-1])), "the last frame looks torn", "killed")
    refuse(golden, "frame", flipped(whole, place(fs.frames[-3])), 6, "damaged frame", "a frame in front of later ones")
    head = whole.index(zeafs.MAGIC)
    block = DriveFile(whole).block_size
    keep(golden, "head-copy", flipped(whole, head + 20), "one copy of the head", "killed")
    both = flipped(flipped(whole, head + 20), head + block + 20)
    keep(golden, "head-none", both, "both copies of the head", "killed")
    start = whole[:head] + bytes(3 * block) + whole[head + 3 * block :]
    keep(golden, "start-none", start, "both copies of the head, and the start of the first area", "killed")
    other = bytearray(whole)
    for copy in range(2):
        at = head + copy * block
        other[at + 8 : at + 16] = (3).to_bytes(4, "little") + bytes(4)
        sum_ = crc32c(bytes(other[at : at + zeafs.HEADER]))
        other[at + 12 : at + 16] = sum_.to_bytes(4, "little")
    refuse(golden, "version-3", bytes(other), 1, "version", "of a later version", ["version 3"])
    # Nothing says that the last sync was done; a clean unmount does.
    lost = flipped(whole, last_piece(whole))
    keep(golden, "lost-extent", lost, "an extent of the last frame has not arrived", "killed")
    assert len(zeafs.ZeaFs(DriveFile(lost)).frames) < len(fs.frames)
    closed = kept["clean"]
    damaged = flipped(closed, last_piece(closed))
    golden.keep("damaged-extent", damaged, "clean", about="damage in what was unmounted", exit_code=6, says=["1 error"], damaged=True)


def last_piece(content):
    """A byte of the file's bytes that were named last."""
    drive = DriveFile(content)
    fs = zeafs.ZeaFs(drive)
    piece = max((piece for file in fs.files.values() for piece in file.pieces), key=lambda piece: (piece.zone, piece.offset))
    return drive.data_offset + drive.places[piece.zone] + piece.offset


def leveldb(golden, drive, statements, code=0):
    opening = "import os, plyvel; db = plyvel.DB('/db', create_if_missing=True)"
    golden.run("leveldb", "--fs", "zeafs", drive, "--", "/usr/bin/python3", "-c", f"{opening}\n{statements}", code=code)


def keep(golden, name, content, about, base=None):
    fs = zeafs.ZeaFs(DriveFile(content))
    files = {path: [len(data := fs.read(path)), sha256(data).hexdigest()] for path in sorted(fs.names)}
    golden.keep(name, content, base, about=about, exit_code=0, files=files)


def refuse(golden, name, content, code, what, about, says=()):
    golden.keep(name, content, "killed", about=about, exit_code=code, says=list(says), refused=what)


def flipped(content, at):
    return content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :]
