"""The reader of the document alone against the golden images with BlueFS."""

import hashlib

import bluefs
import golden
import pytest
from drive_file import DriveFile

FOLDERS = ["bluefs-6", "bluefs-6-superblocks", "bluefs-6-zones"]
IMAGES = [(folder, name) for folder in FOLDERS for name in golden.names(folder)]


@pytest.mark.parametrize(("folder", "name"), IMAGES)
def test_answers_what_is_written_down(folder, name):
    expected = golden.expected(folder, name)
    drive = DriveFile(golden.image(folder, name))
    if refused := expected.get("refused"):
        with pytest.raises(getattr(bluefs, refused)):
            bluefs.BlueFs(drive)
        return
    fs = bluefs.BlueFs(drive)
    found = [[one.what, one.zone, one.found, one.expected] for one in fs.damage]
    assert found == expected["damage"]
    assert sorted(fs.names.directories - {""}) == expected["directories"]
    unreadable = expected.get("unreadable", {})
    for path in unreadable:
        with pytest.raises((bluefs.WrongBytes, bluefs.OutOfReach)):
            fs.read(path)
    read = {path: fs.read(path) for path in fs.paths() if path not in unreadable}
    found = {path: [len(content), hashlib.sha256(content).hexdigest()] for path, content in read.items()}
    assert found == expected["files"]
