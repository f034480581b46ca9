"""Golden images with damage from a seed: blocks of journal and logs flipped, zeroed, and put in another's place,
and zones of which less is written, as after a power cut.
What is damage, what a torn tail, and what is left of a file has to be the same for both readers."""

import random
import struct

import bluefs
import golden
import pytest
from drive_file import DriveFile
from golden_drive_file import entry


def places(drive):
    """Zone, offset and bytes of every frame and record."""
    fs = bluefs.BlueFs(drive)
    frames = [(frame.zone, frame.offset, 40 + len(frame.payload)) for frame in fs.heard_frames]
    return frames + [(record.zone, record.offset, 84 + len(record.data)) for record in fs.heard_records]


def damaged(chance, image):
    drive = DriveFile(image)
    content = bytearray(image)
    found = places(drive)

    def choose():
        zone, offset, length = chance.choice(found)
        return drive.data_offset + zone * drive.zone_size + offset, length

    for _ in range(chance.choice([1, 1, 2, 3])):
        at, length = choose()
        match chance.choice(["flip", "zero", "misplace", "shorten"]):
            case "flip":
                content[at + chance.randrange(length)] ^= 1 << chance.randrange(8)
            case "zero":
                content[at : at + 4096] = bytes(4096)
            case "misplace":
                other, _ = choose()
                content[at : at + 4096] = content[other : other + 4096]
            case "shorten":
                content = bytearray(shorter(chance, drive, bytes(content)))
    return bytes(content)


def shorter(chance, drive, content):
    """One zone ends earlier."""
    zone = chance.choice([zone for zone in drive.zones if zone.write_pointer])
    end = chance.randrange(0, zone.write_pointer, drive.block_size)
    closed_or_empty = 3 if end else 2
    content = entry(content, zone.number, 5, bytes([closed_or_empty]))
    return entry(content, zone.number, 8, struct.pack("<QQ", end, 0))


@pytest.mark.parametrize("name", ["clean", "killed", "torn-frame"])
@pytest.mark.parametrize("seed", range(12))
def test_both_readers_say_the_same(zonestore, name, seed):
    content = damaged(random.Random(f"{name} {seed}"), golden.image("bluefs-6", name))
    fs = bluefs.BlueFs(DriveFile(content))
    drive = zonestore.write("d.zoned", content)
    dumped = zonestore.try_("fs", "dump", drive, "--json").answers(6 if fs.damage else 0)
    if not fs.damage:
        sizes = {file["path"]: file["size"] for file in dumped.json["files"]}
        assert set(sizes) == set(fs.paths())
        for path in fs.paths():
            try:
                found = fs.read(path)
            except bluefs.WrongBytes:
                zonestore.try_("fs", "cat", drive, path).answers(6, [path])
            else:
                assert zonestore("fs", "cat", drive, path).out == found
                assert sizes[path] == len(found)
    assert drive.read_bytes() == content
