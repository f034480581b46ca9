"""Zones of a drive file that fail, by their entries in it (docs/format/file-drive.md)."""

import os
import struct
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "formats"))

from checksums import crc32c

READ_ONLY, OFFLINE = 5, 6


def set_condition(drive, zone, condition):
    with open(drive, "r+b") as file:
        file.seek(4096 + 64 * zone)
        entry = bytearray(file.read(60))
        entry[5] = condition
        entry[16:24] = bytes(8)
        file.seek(4096 + 64 * zone)
        file.write(entry + struct.pack("<I", crc32c(entry)))
