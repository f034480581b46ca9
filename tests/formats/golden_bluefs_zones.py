"""The golden drive with BlueFS after an unmount, with zones that are offline or read-only."""

import struct

import golden as images
from bluefs import BlueFs
from drive_file import DriveFile
from golden_bluefs import summary
from golden_drive_file import entry

FOLDER = "bluefs-6-zones"
BASE = "../bluefs-6/clean"
READ_ONLY, OFFLINE = 5, 6


def make(golden):
    clean = images.image("bluefs-6", "clean")
    fs = BlueFs(DriveFile(clean))
    table = fs.names.files[fs.names.paths["/a/1.sst"]].extents[1]
    log = fs.names.files[fs.names.paths["/db/000003.log"]].segments[0]
    journal = fs.superblock.journal_zone
    one_ring = broken(clean, OFFLINE, 0, 1)
    lost = ["a copy of the superblock is lost"]
    keep(golden, "ring-offline", one_ring, "a ring of superblocks is offline: the other counts", check=lost)
    about = "three of four zones with superblocks are offline"
    keep(golden, "ring-and-zone-offline", broken(one_ring, OFFLINE, 47), about, check=lost)
    rings = broken(clean, OFFLINE, 0, 1, 46, 47)
    refuse(golden, "rings-offline", rings, "NoSuperblock", ["superblock"], "no superblock can be read")
    keep(golden, "table-read-only", broken(clean, READ_ONLY, table.zone), "a zone of a table is read-only")
    offline = broken(clean, OFFLINE, table.zone)
    keep(golden, "table-offline", offline, "a zone of a table is offline", {"/a/1.sst": [f"zone {table.zone}"]})
    offline = broken(clean, OFFLINE, log.zone)
    keep(golden, "log-offline", offline, "a zone of a log is offline", {"/db/000003.log": [f"zone {log.zone}"]})
    offline = broken(clean, OFFLINE, journal)
    refuse(golden, "journal-offline", offline, "OutOfReach", [f"zone {journal}"], "the journal's first zone is offline")


def broken(content, condition, *zones):
    for zone in zones:
        content = entry(content, zone, 5, bytes([condition]))
        # What it was when the zone broke stays, but a prepared end is for closed zones only.
        content = entry(content, zone, 16, struct.pack("<Q", 0))
    return content


def keep(golden, name, content, about, unreadable=(), check=()):
    fs = BlueFs(DriveFile(content))
    assert not fs.damage
    files = {path: summary(fs.read(path)) for path in fs.paths() if path not in unreadable}
    expected = {"about": about, "exit_code": 0, "says": [], "damage": [], "files": files}
    expected["directories"] = sorted(fs.names.directories - {""})
    if unreadable:
        expected["unreadable"] = unreadable
        check = ["in a zone that is offline", *unreadable]
    expected["fsck"] = {"exit_code": 6 if check else 0, "says": list(check)}
    golden.keep(name, content, BASE, **expected)


def refuse(golden, name, content, oracle, says, about):
    golden.keep(name, content, BASE, about=about, exit_code=6, says=says, refused=oracle)
