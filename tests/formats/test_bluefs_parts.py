"""A store's metadata in parts of conventional zones, read by the oracle and by the program."""

import os

import bluefs
import drive_file

MIB = 1 << 20


def test_metadata_lies_in_parts_of_conventional_zones(zonestore):
    drive = zonestore.folder / "d.zoned"
    zonestore("drive", "create", drive, "--size", "512MiB", "--zone-size", "8MiB", "--conventional", "12")
    zonestore("store", "mkfs", drive)
    for number in range(3):
        content = zonestore.write(f"{number}", os.urandom(3 * MIB))
        zonestore("store", "put", drive, content, f"c/{number}")
    oracle = bluefs.BlueFs(drive_file.DriveFile(drive.read_bytes()))
    assert oracle.superblock.further_parts == 1
    assert len(oracle.drive.zones) == 64 + 12
    dumped = zonestore("fs", "dump", drive, "--json").json["files"]
    zones = {extent["at"]["zone"] for file in dumped for extent in file["extents"]}
    assert zones and all(zone < 12 or zone >= 64 for zone in zones)
    for file in dumped:
        content = zonestore("fs", "cat", drive, file["path"]).out
        assert oracle.read(file["path"]) == content, file["path"]
