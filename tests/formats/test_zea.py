"""Extents: the oracle and the program against the golden images."""

from hashlib import sha256

import golden
import pytest
import zea
from drive_file import DriveFile

FOLDER = "zea-1"


@pytest.mark.parametrize("name", golden.names(FOLDER))
def test_images(zonestore, name):
    content, expected = golden.image(FOLDER, name), golden.expected(FOLDER, name)
    drive = zonestore.write("d.zoned", content)
    zonestore.try_("zea", "fsck", "--deep", drive).answers(expected["exit_code"])
    assert drive.read_bytes() == content
    whole = 0
    for zone, extents in expected["extents"].items():
        found = zea.Zone(DriveFile(content), int(zone)).extents
        listed = zonestore("zea", "ls", drive, "--zone", zone, "--json").json["extents"]
        assert [(e.address, e.order, len(e.data)) for e in found] == [(e["address"], e["order"], e["length"]) for e in listed]
        for extent, (address, order, digest) in zip(found, extents, strict=True):
            assert (extent.address, extent.order) == (address, order)
            got = zonestore.try_("zea", "get", drive, listed[found.index(extent)]["lba"], len(extent.data))
            if extent.whole:
                whole += 1
                assert sha256(extent.data).hexdigest() == sha256(got.answers(0).out).hexdigest() == digest
            else:
                got.answers(6)
    assert whole == expected["whole"]
