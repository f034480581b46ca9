"""A file system on a Caveat-Scriptor drive whose header has a copy, and what can be wrong with either. Making it mounts: it
needs root."""

import struct

from checksums import crc32c
from golden_smrfs import MIB, keep, patched, populated

FOLDER = "caveat-2"


def make(golden):
    options = ["--kind", "caveat", "--isolation-distance", 16, "--no-overlap-range", 6, "--unshingled", "1MiB"]
    whole = populated(golden, "whole", 32, *options)
    first, copy = MIB, whole.rindex(b"ZSCAVEAT")
    keep(golden, "first", patched(whole, first + 8, b"\xff"), "whole", 6, "a changed byte of the first header's version")
    keep(golden, "copy", patched(whole, copy, b"z"), "whole", 6, "a changed byte of the copy's magic")
    both = patched(patched(whole, first, b"z"), copy + 20, b"\xff")
    keep(golden, "both", both, "whole", 6, "both headers")
    later = whole[first : first + 8] + struct.pack("<II", 3, 0) + whole[first + 16 : first + 56]
    later = later[:12] + struct.pack("<I", crc32c(later)) + later[16:]
    newer = patched(patched(whole, first, later), copy, later)
    keep(golden, "version-3", newer, "whole", 1, "a drive of another version")
