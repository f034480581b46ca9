"""The program against the golden drive files: zones, exit codes, and what is named as wrong."""

import golden
import pytest
from drive_file import DriveFile

FOLDER = "file-drive-2"


def reported(condition, write_pointer):
    """A zone that is read-only or offline has no write pointer in a report, whatever its entry says."""
    return [condition, 0 if condition in ("read_only", "offline") else write_pointer]


@pytest.mark.parametrize("name", golden.names(FOLDER))
def test_answers_what_is_written_down(zonestore, name):
    expected = golden.expected(FOLDER, name)
    content = golden.image(FOLDER, name)
    drive = zonestore.write("d.zoned", content)
    answer = zonestore.try_("drive", "report", drive, "--json").answers(expected["exit_code"], expected.get("says", []))
    if "refused" not in expected:
        found = [[zone["condition"], zone["write_pointer"]] for zone in answer.json["zones"]]
        assert found == [reported(*zone) for zone in expected["zones"]]
        assert zonestore("drive", "info", drive, "--json").json["profile"] == expected["profile"]
    else:
        # Nor does a command that would write.
        zonestore.try_("drive", "reset", drive, "--zone", "3", "--yes").answers(expected["exit_code"])
    assert drive.read_bytes() == content


@pytest.mark.parametrize("name", ["clean", "killed"])
def test_reports_the_zones_of_a_file_system(zonestore, name):
    """Logs that were synced leave zones whose data tells the write pointer."""
    content = golden.image("bluefs-6", name)
    found = zonestore("drive", "report", zonestore.write("d.zoned", content), "--json").json["zones"]
    zones = DriveFile(content).zones
    expected = [(zone.number, zone.kind, zone.condition, zone.capacity, zone.write_pointer) for zone in zones]
    fields = ("id", "kind", "condition", "capacity", "write_pointer")
    assert [tuple(zone[field] for field in fields) for zone in found] == expected
