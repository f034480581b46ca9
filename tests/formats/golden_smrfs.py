"""File systems of smrfs on a zoned and on a Caveat-Scriptor drive, and what can be wrong with them. Making them mounts:
it needs root."""

import hashlib
import os
import struct

from checksums import crc32c
from drive_file import DriveFile
from smrfs import Smrfs

FOLDER = "smrfs-1"
SHAPE = "--profile test-small --size 4MiB --zone-size 128KiB --conventional"
MIB = 1 << 20


def make(golden):
    bands = populated(golden, "bands", 8, "--label", "golden")
    caveat = ["--kind", "caveat", "--isolation-distance", 16, "--no-overlap-range", 6, "--unshingled", "1MiB"]
    anywhere = populated(golden, "caveat", 32, *caveat)
    populated(golden, "caveat-whole", 32, *caveat, "--whole-files")
    populated(golden, "caveat-cleaned", 32, *caveat, "--clean-when-full")
    journal = bands.rindex(b"ZSTRAPPD")
    keep(golden, "torn", patched(bands, journal + 20, bytes(8)), "bands", 0, "the last group is torn: that before it counts")
    keep(golden, "version-2", patched(bands, MIB + 8, b"\2"), "bands", 1, "a head of another version")
    data = bands.index(b"one of many lines\n")
    keep(golden, "data", patched(bands, data, b"O"), "bands", 6, "a byte of a file has changed")
    heads = [MIB, MIB + 512 * 1024]
    both = patched(patched(bands, heads[0] + 30, b"\xff"), heads[1] + 30, b"\xff")
    keep(golden, "heads", both, "bands", 6, "neither head can be read")
    keep(golden, "caveat-version-2", patched(anywhere, MIB + 8, b"\2"), "caveat", 6, "a changed byte of the drive's version")
    keep(golden, "caveat-header", patched(anywhere, MIB + 20, b"\xff"), "caveat", 6, "a changed byte of the header")
    keep(golden, "caveat-bitmap", patched(anywhere, MIB + 4096 + 7, b"\x55"), "caveat", 6, "a changed byte of the bitmap")
    bits = b"\xff" * 4092
    piece = bits + struct.pack("<I", crc32c(bits))
    keep(golden, "caveat-live", patched(anywhere, MIB + 4096, piece), "caveat", 6, "live blocks may be damaged")


def populated(golden, name, conventional, *options):
    """A drive with a file system that was used and unmounted."""
    path, place = golden.scratch / f"{name}.zoned", golden.scratch / name
    golden.run("drive", "create", path, *SHAPE.split(), conventional)
    golden.run("smrfs", "mkfs", path, *options)
    place.mkdir()
    golden.run("smrfs", "mount", path, place)
    (place / "a directory").mkdir()
    (place / "a directory" / "lines").write_bytes(b"one of many lines\n" * 3000)
    os.link(place / "a directory" / "lines", place / "again")
    os.symlink("a directory/lines", place / "link")
    with open(place / "holes", "wb") as file:
        file.seek(100_000)
        file.write(b"behind a hole")
        os.fsync(file.fileno())
    for n in range(20):
        (place / f"{n}").write_bytes(bytes([n]) * 5000 * n)
    os.sync()
    for n in range(0, 20, 2):
        (place / f"{n}").unlink()
    with open(place / "5", "r+b") as file:
        file.write(b"overwritten")
    os.truncate(place / "19", 10_000)
    golden.run("smrfs", "unmount", place)
    content = path.read_bytes()
    keep(golden, name, content, None, 0, "used and unmounted")
    return content


def keep(golden, name, content, base, code, about):
    """With the exit code of `fsck --deep`, and all names if it is clean."""
    tree = None
    if code == 0:
        tree = {path: summary(what) for path, what in Smrfs(DriveFile(content)).tree()} if name != "torn" else None
    golden.keep(name, content, base, about=about, fsck=code, tree=tree)


def summary(content):
    return content if content is None else hashlib.sha256(content).hexdigest()


def patched(content, at, field):
    return content[:at] + field + content[at + len(field) :]
