"""The program against the golden archives of a store: what an earlier program packed comes back."""

import hashlib

import golden
import pytest

FOLDER = "store-archive-1"


@pytest.mark.parametrize("name", golden.names(FOLDER))
def test_what_was_packed_comes_back(zonestore, name):
    expected = golden.expected(FOLDER, name)
    drive = zonestore.folder / "d.zoned"
    zonestore("drive", "create", drive, "--profile", "test-small", "--size", "64MiB", "--zone-size", "512KiB")
    zonestore("store", "mkfs", drive)
    archives = [zonestore.write(f"{one}.tar", golden.image(FOLDER, one)) for one in [*expected.get("follows", []), name]]
    if expected.get("imported"):
        zonestore("store", "import", drive, *archives)
    else:
        zonestore("store", "restore", *archives, "--check")
        zonestore("store", "restore", *archives, "--to", drive)
    objects = {}
    for collection in zonestore("store", "ls", drive, "--json").json["collections"]:
        for entry in zonestore("store", "ls", drive, collection["name"], "--json").json["objects"]:
            path = f"{collection['name']}/{entry['name']}"
            content = zonestore("store", "get", drive, path).out
            objects[path] = [len(content), hashlib.sha256(content).hexdigest()]
    assert objects == expected["objects"]
