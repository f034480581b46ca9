"""Golden images with damage from a seed: blocks of journal and logs flipped, zeroed, and put in another's place.
What is damage, what a torn tail, and what is left of a file has to be the same for both readers."""

import random

import bluefs
import golden
import pytest
from drive_file import DriveFile


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
        match chance.choice(["flip", "zero", "misplace"]):
            case "flip":
                content[at + chance.randrange(length)] ^= 1 << chance.randrange(8)
            case "zero":
                content[at : at + 4096] = bytes(4096)
            case "misplace":
                other, _ = choose()
                content[at : at + 4096] = content[other : other + 4096]
    return bytes(content)


@pytest.mark.parametrize("name", ["clean", "killed", "torn-frame"])
@pytest.mark.parametrize("seed", range(12))
def test_both_readers_say_the_same(zonestore, name, seed):
    content = damaged(random.Random(f"{name} {seed}"), golden.image("bluefs-6", name))
    fs = bluefs.BlueFs(DriveFile(content))
    drive = zonestore.write("d.zoned", content)
    dumped = zonestore.try_("fs", "dump", drive, "--json").answers(6 if fs.damage else 0)
    if not fs.damage:
        sizes = {file["path"]: file["size"] for file in dumped.json["files"]}
        assert sizes == {path: len(fs.read(path)) for path in fs.paths()}
    assert drive.read_bytes() == content
