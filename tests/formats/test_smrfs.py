"""File systems of smrfs: the oracle and the program against the golden images."""

import golden
import pytest
from drive_file import DriveFile
from golden_smrfs import summary
from smrfs import Damaged, OtherVersion, Smrfs

FOLDER = "smrfs-1"
NAMES = golden.names(FOLDER)
WHOLE = [name for name in NAMES if golden.expected(FOLDER, name)["tree"]]


@pytest.mark.parametrize("name", WHOLE)
def test_oracle(name):
    found = Smrfs(DriveFile(golden.image(FOLDER, name)))
    assert {path: summary(what) for path, what in found.tree()} == golden.expected(FOLDER, name)["tree"]


@pytest.mark.parametrize("name", ["data", "version-2", "caveat-version-2", "caveat-header", "caveat-bitmap", "caveat-live"])
def test_oracle_refuses(name):
    with pytest.raises((Damaged, OtherVersion)):
        list(Smrfs(DriveFile(golden.image(FOLDER, name))).tree())


@pytest.mark.parametrize("name", NAMES)
def test_program(zonestore, name):
    content = golden.image(FOLDER, name)
    drive = zonestore.write("d.zoned", content)
    zonestore.try_("smrfs", "fsck", drive, "--deep").answers(golden.expected(FOLDER, name)["fsck"])
    assert drive.read_bytes() == content


@pytest.mark.parametrize("name", WHOLE)
def test_program_knows_how_much_there_is(zonestore, name):
    oracle = Smrfs(DriveFile(golden.image(FOLDER, name)))
    drive = zonestore.write("d.zoned", golden.image(FOLDER, name))
    told = zonestore("smrfs", "df", drive, "--json").json
    assert told["label"] == oracle.label
    assert told["space"]["inodes"] == len(oracle.inodes)
    blocks = sum(len(extents) for extents in oracle.extents.values())
    assert told["space"]["used_bytes"] == blocks * oracle.block
