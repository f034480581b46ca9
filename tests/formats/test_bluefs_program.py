"""The program against the golden images with BlueFS: names, contents, exit codes and what is named as damaged."""

import hashlib

import golden
import pytest

FOLDERS = ["bluefs-6", "bluefs-6-superblocks", "bluefs-6-zones"]
IMAGES = [(folder, name) for folder in FOLDERS for name in golden.names(folder)]


@pytest.fixture(params=IMAGES, ids="/".join)
def case(request, zonestore):
    """The image as a drive file, and what has to be answered."""
    drive = zonestore.write("d.zoned", golden.image(*request.param))
    before = drive.read_bytes()
    yield drive, golden.expected(*request.param)
    assert drive.read_bytes() == before, "a command that only reads has changed the drive"


def test_metadata(zonestore, case):
    drive, expected = case
    zonestore.try_("fs", "ls", drive).answers(expected["exit_code"], expected["says"])
    check = expected.get("fsck", expected)
    checked = zonestore.try_("fs", "fsck", drive).answers(check["exit_code"])
    for word in check["says"]:
        assert word in checked.err + checked.out.decode()


def test_contents(zonestore, case):
    drive, expected = case
    if "refused" in expected:
        return
    damaged = expected["exit_code"] != 0
    options = ["--accept-damage"] if damaged else []
    unreadable = expected.get("unreadable", {})
    files = expected["accepted"] if damaged else expected["files"]
    dumped = zonestore("fs", "dump", drive, *options, "--json").json["files"]
    assert {file["path"] for file in dumped} == {*files, *unreadable}
    for path, (size, digest) in files.items():
        content = zonestore("fs", "cat", drive, path, *options).out
        assert (len(content), hashlib.sha256(content).hexdigest()) == (size, digest), path
    for path, says in unreadable.items():
        zonestore.try_("fs", "cat", drive, path).answers(6, says)
        zonestore.try_("fs", "fsck", drive, "--deep").answers(6)
