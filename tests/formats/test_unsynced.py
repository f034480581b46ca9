"""What of logs is not synced: the oracle and the program against the golden notes beside one drive."""

import hashlib
from pathlib import Path

import golden
import pytest
from bluefs import BlueFs
from drive_file import DriveFile
from unsynced import boot_id

FOLDER = "unsynced-1"
NOTES = [name for name in golden.names(FOLDER) if name != "drive"]
LOG = golden.expected(FOLDER, "drive")["log"]


def summary(content):
    return [len(content), hashlib.sha256(content).hexdigest()]


@pytest.mark.parametrize("name", NOTES)
def test_oracle(name):
    notes = golden.image(FOLDER, name)
    writers = boot_id(golden.image(FOLDER, "whole"))
    log = BlueFs(DriveFile(golden.image(FOLDER, "drive")), notes, writers).read(LOG)
    assert summary(log) == golden.expected(FOLDER, name)["log"]


@pytest.mark.parametrize("name", NOTES)
def test_program(zonestore, name):
    """On the host that wrote them, which is this one as far as the notes tell."""
    drive = zonestore.write("d.zoned", golden.image(FOLDER, "drive"))
    notes = golden.image(FOLDER, name)
    here = Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    zonestore.write("d.zoned.unsynced", notes[:16] + here.ljust(48, b"\0") + notes[64:])
    assert summary(zonestore("fs", "cat", drive, LOG).out) == golden.expected(FOLDER, name)["log"]
    zonestore("fs", "fsck", drive)


def test_notes_of_another_boot_count_for_nothing(zonestore):
    drive = zonestore.write("d.zoned", golden.image(FOLDER, "drive"))
    synced = zonestore("fs", "cat", drive, LOG).out
    notes = golden.image(FOLDER, "whole")
    zonestore.write("d.zoned.unsynced", notes[:16] + b"another".ljust(48, b"\0") + notes[64:])
    assert zonestore("fs", "cat", drive, LOG).out == synced
    assert len(synced) < golden.expected(FOLDER, "whole")["log"][0]
