"""The program against the golden images with a store: what earlier programs stored is read, and can be gone on with."""

import hashlib

import golden
import pytest

FOLDER = "store-3"


@pytest.fixture(params=golden.names(FOLDER))
def case(request, zonestore):
    """A drive as it was left, and what is on it."""
    drive = zonestore.write("d.zoned", golden.image(FOLDER, request.param))
    return drive, golden.expected(FOLDER, request.param)["objects"]


def stored(zonestore, drive):
    objects = {}
    for collection in ("photos", "texts"):
        for entry in zonestore("store", "ls", drive, collection, "--json").json["objects"]:
            path = f"{collection}/{entry['name']}"
            content = zonestore("store", "get", drive, path).out
            objects[path] = [len(content), hashlib.sha256(content).hexdigest()]
    return objects


def test_every_object_is_what_it_was(zonestore, case):
    drive, objects = case
    zonestore("store", "fsck", drive, "--deep")
    assert stored(zonestore, drive) == objects


def test_the_store_can_be_gone_on_with(zonestore, case):
    drive, objects = case
    content = b"written by a later program\n" * 2000
    zonestore("store", "put", drive, "-", "texts/changed", stdin=content)
    zonestore("store", "rm", drive, "photos/large")
    zonestore("store", "fsck", drive, "--deep")
    del objects["photos/large"]
    objects["texts/changed"] = [len(content), hashlib.sha256(content).hexdigest()]
    assert stored(zonestore, drive) == objects
