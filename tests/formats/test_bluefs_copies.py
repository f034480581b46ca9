"""The program against the golden images with BlueFS in two copies: damage to one of them changes no answer."""

import hashlib

import golden
import pytest

FOLDER = "bluefs-7"


@pytest.fixture(params=golden.names(FOLDER))
def case(request, zonestore):
    drive = zonestore.write("d.zoned", golden.image(FOLDER, request.param))
    return drive, golden.expected(FOLDER, request.param)["files"]


def contents(zonestore, drive):
    files = [file["path"] for file in zonestore("fs", "dump", drive, "--json").json["files"]]
    found = {path: zonestore("fs", "cat", drive, path).out for path in files}
    return {path: [len(content), hashlib.sha256(content).hexdigest()] for path, content in found.items()}


def test_every_file_is_what_it_was(zonestore, case):
    drive, files = case
    assert contents(zonestore, drive) == files


def test_the_file_system_can_be_gone_on_with(zonestore, case):
    drive, files = case
    content = b"written by a later program\n" * 200
    zonestore("fs", "put", drive, "-", "/a/new", stdin=content)
    files["/a/new"] = [len(content), hashlib.sha256(content).hexdigest()]
    assert contents(zonestore, drive) == files
