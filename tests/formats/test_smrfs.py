"""File systems of smrfs: the oracle and the program against the golden images."""

import golden
import pytest
from drive_file import DriveFile
from golden_smrfs import summary
from smrfs import Damaged, OtherVersion, Smrfs

FOLDERS = ["smrfs-1", "smrfs-2", "caveat-2"]
IMAGES = [(folder, name) for folder in FOLDERS for name in golden.names(folder)]
WHOLE = [image for image in IMAGES if golden.expected(*image)["tree"]]
# Of version 1.
REFUSED = ["data", "caveat-version-2", "caveat-header", "caveat-bitmap", "caveat-live"]
# A header and its copy.
NEITHER = [("caveat-2", "both"), ("caveat-2", "version-3")]


@pytest.mark.parametrize("image", WHOLE)
def test_oracle(image):
    found = Smrfs(DriveFile(golden.image(*image)))
    assert {path: summary(what) for path, what in found.tree()} == golden.expected(*image)["tree"]


@pytest.mark.parametrize("image", [*(("smrfs-1", name) for name in REFUSED), ("smrfs-2", "version-3"), *NEITHER])
def test_oracle_refuses(image):
    with pytest.raises((Damaged, OtherVersion)):
        list(Smrfs(DriveFile(golden.image(*image))).tree())


@pytest.mark.parametrize("image", IMAGES)
def test_program(zonestore, image):
    content = golden.image(*image)
    drive = zonestore.write("d.zoned", content)
    zonestore.try_("smrfs", "fsck", drive, "--deep").answers(golden.expected(*image)["fsck"])
    assert drive.read_bytes() == content


@pytest.mark.parametrize("image", WHOLE)
def test_program_knows_how_much_there_is(zonestore, image):
    oracle = Smrfs(DriveFile(golden.image(*image)))
    drive = zonestore.write("d.zoned", golden.image(*image))
    told = zonestore("smrfs", "df", drive, "--json").json
    assert told["label"] == oracle.label
    assert told["space"]["inodes"] == len(oracle.inodes)
    blocks = sum(len(extents) for extents in oracle.extents.values())
    aside = sum(map(len, oracle.preallocated.values()))
    assert (aside > 0) == (image[0] == "smrfs-2")
    assert told["space"]["used_bytes"] == (blocks + aside) * oracle.block
    assert told["space"]["preallocated_bytes"] == aside * oracle.block
