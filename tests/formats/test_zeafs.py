"""ZEAFS: the oracle and the program against the golden images."""

from hashlib import sha256

import golden
import pytest
import zeafs
from drive_file import DriveFile

IMAGES = [(folder, name) for folder in ("zeafs-1", "zeafs-2") for name in golden.names(folder)]


@pytest.mark.parametrize(("folder", "name"), IMAGES)
def test_oracle(folder, name):
    expected, drive = golden.expected(folder, name), DriveFile(golden.image(folder, name))
    if refused := expected.get("refused"):
        with pytest.raises(zeafs.Refused, match=refused):
            zeafs.ZeaFs(drive)
        return
    fs = zeafs.ZeaFs(drive)
    if "damaged" in expected:
        with pytest.raises(zeafs.Refused, match="checksum"):
            [fs.read(path) for path in fs.names]
        return
    found = {path: [len(data := fs.read(path)), sha256(data).hexdigest()] for path in fs.names}
    assert found == expected["files"]


@pytest.mark.parametrize(("folder", "name"), IMAGES)
def test_program(zonestore, folder, name):
    content, expected = golden.image(folder, name), golden.expected(folder, name)
    drive = zonestore.write("d.zoned", content)
    zonestore.try_("zea", "fsck", "--deep", drive).answers(expected["exit_code"], expected.get("says", []))
    assert drive.read_bytes() == content
    if "files" not in expected:
        return
    files = {file["name"]: file["size"] for file in zonestore("zea", "ls", drive, "--json").json["files"]}
    assert files == {path: size for path, (size, _) in expected["files"].items()}
    # The database is there, and can be gone on with.
    count = "import plyvel; db = plyvel.DB('/db'); print(sum(1 for _ in db)); db.put(b'c', b'd', sync=True)"
    run = ("leveldb", "--fs", "zeafs", drive, "--", "/usr/bin/python3", "-c", count)
    before = int(zonestore(*run).out)
    # Synced with the one before the last: a torn frame takes what came behind it.
    assert before >= 37
    assert int(zonestore(*run).out) == before + 1
