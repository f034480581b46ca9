"""The reader of the document alone against the golden drive files."""

import drive_file
import golden
import pytest

FOLDER = "file-drive-2"


@pytest.mark.parametrize("name", golden.names(FOLDER))
def test_answers_what_is_written_down(name):
    expected = golden.expected(FOLDER, name)
    content = golden.image(FOLDER, name)
    if refused := expected.get("refused"):
        with pytest.raises(getattr(drive_file, refused)):
            drive_file.DriveFile(content)
        return
    drive = drive_file.DriveFile(content)
    assert [[zone.condition, zone.write_pointer] for zone in drive.zones] == expected["zones"]
    assert (drive.label, drive.profile_name) == (expected["label"], expected["profile"])


def test_reads_zeros_above_a_write_pointer():
    drive = drive_file.DriveFile(golden.image(FOLDER, "states"))
    assert any(drive.read(10, 0, 3 * 4096)) and not any(drive.read(10, 3 * 4096, 65536 - 3 * 4096))
    assert not any(drive.read(11, 0, 65536))
