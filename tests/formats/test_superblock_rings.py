"""Where superblocks come to lie, mount after mount: the table of docs/format/bluefs.md about the zones of a ring."""

import re
from pathlib import Path

import bluefs_records as records
import pytest
from drive_file import DriveFile

DOCUMENT = (Path(__file__).parents[2] / "docs" / "format" / "bluefs.md").read_text()
ROW = re.compile(r"^\| (.+?) \| ([\d,]+)[ ,|].*$", re.M)


def documented(kind):
    """Blocks that are used of a zone before the ring goes on at the front of the other."""
    return {row[1]: int(row[2].replace(",", "")) for row in ROW.finditer(DOCUMENT)}[kind]


def used(drive, zones):
    """Blocks with a superblock in each of these zones."""
    image = DriveFile(drive.read_bytes())
    return [
        [
            offset // image.block_size
            for offset in range(0, image.zones[zone].readable_to, image.block_size)
            if records.superblock(image.read(zone, offset, 96))
        ]
        for zone in zones
    ]


def mounts(zonestore, count, *shape, zone_size="64KiB"):
    """A new superblock when each begins, and one when it ends."""
    drive = zonestore.folder / "d.zoned"
    zonestore("drive", "create", drive, "--profile", "test-small", "--zone-size", zone_size, "--size", "2MiB", *shape)
    zonestore("fs", "mkfs", drive)
    for number in range(count):
        zonestore("fs", "put", drive, "-", f"f{number}", stdin=b"x")
    return drive


def test_conventional_zones(zonestore):
    blocks = documented("conventional")
    # The zones have 32 blocks.
    drive = mounts(zonestore, blocks, "--conventional", "2", zone_size="128KiB")
    assert used(drive, [0, 1]) == [list(range(blocks))] * 2


def test_sequential_zones_are_used_to_their_end(zonestore):
    assert documented("sequential") == 1024 > 16
    drive = mounts(zonestore, 12, "--conventional", "0")
    for ring in ([0, 1], [30, 31]):
        old, new = used(drive, ring)
        assert old == list(range(16)) and 0 < len(new) < 16
        conditions = [DriveFile(drive.read_bytes()).zones[zone].condition for zone in ring]
        assert conditions == ["full", "closed"]


@pytest.mark.parametrize("mounted", [1, 2])
def test_few_active_zones(zonestore, mounted):
    blocks = documented("sequential, on a drive with fewer than eight active zones")
    drive = mounts(zonestore, mounted, "--conventional", "0", "--max-open", "7", "--max-active", "7")
    image = DriveFile(drive.read_bytes())
    for ring in ([0, 1], [30, 31]):
        assert sorted(map(len, used(drive, ring))) in ([0, blocks], [blocks, blocks])
        assert all(image.zones[zone].condition in ("full", "empty") for zone in ring)
