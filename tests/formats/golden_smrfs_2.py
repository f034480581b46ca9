"""File systems of smrfs with preallocated space, which is what version 2 of their format is for. Making them mounts: it
needs root."""

import os

from golden_smrfs import MIB, SHAPE, keep, patched

FOLDER = "smrfs-2"


def make(golden):
    bands = populated(golden, "bands", 8)
    populated(golden, "caveat", 32, "--kind", "caveat", "--isolation-distance", 16, "--no-overlap-range", 6, "--unshingled", "1MiB")
    heads = [MIB, MIB + 512 * 1024]
    newer = next(at for at in heads if bands[at + 8] == 2)
    keep(golden, "version-3", patched(bands, newer + 8, b"\3"), "bands", 6, "a changed byte of a head's version")


def populated(golden, name, conventional, *options):
    """A drive with files of which some blocks are written and others only set aside, used and unmounted."""
    path, place = golden.scratch / f"{name}.zoned", golden.scratch / name
    golden.run("drive", "create", path, *SHAPE.split(), conventional)
    golden.run("smrfs", "mkfs", path, *options)
    place.mkdir()
    golden.run("smrfs", "mount", path, place)
    for n in range(3):
        with open(place / f"{n}", "wb") as file:
            file.write(b"in front\n" * 700)
            os.posix_fallocate(file.fileno(), 0, 200_000)
            file.seek(60_000 * n)
            file.write(b"in the midst of it\n" * 1000)
            os.fsync(file.fileno())
    os.truncate(place / "1", 30_000)
    (place / "0").unlink()
    golden.run("smrfs", "unmount", place)
    content = path.read_bytes()
    keep(golden, name, content, None, 0, "used and unmounted")
    return content
