"""Fresh drives with a history from a seed: what the document's reader finds is what the program says."""

import subprocess
from pathlib import Path

import pytest
import random_drive
from bluefs import BlueFs
from drive_file import DriveFile

BOOT = Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()


def has_plyvel():
    found = subprocess.run([random_drive.PYTHON, "-c", "import plyvel"], capture_output=True)
    return found.returncode == 0


pytestmark = pytest.mark.skipif(not has_plyvel(), reason="python3-plyvel is not installed (scripts/setup --test)")


@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("seed", range(8))
def test_the_oracle_and_the_program_agree(zonestore, seed, copies):
    drive, put = random_drive.make(zonestore, seed, copies)
    fs = compare(zonestore, drive, put)
    if copies == 2:
        assert fs.superblock.version == 7
        assert fs.differing_twins(cut_short=True) == []
    # And without what was not synced.
    unsynced = Path(f"{drive}.unsynced")
    assert unsynced.exists() or seed % 2 == 0
    if unsynced.exists():
        unsynced.unlink()
        compare(zonestore, drive, put)
    # Whoever mounts for writing brings both copies to the same length.
    zonestore("fs", "put", drive, "-", "/last.sst", stdin=b"last")
    fs = compare(zonestore, drive, put | {"/last.sst": b"last"})
    assert copies == 1 or fs.differing_twins() == []


def compare(zonestore, drive, put):
    unsynced = Path(f"{drive}.unsynced")
    notes = unsynced.read_bytes() if unsynced.exists() else b""
    image = DriveFile(drive.read_bytes())
    fs = BlueFs(image, notes, BOOT)
    assert fs.damage == []
    found = {path: fs.read(path) for path in fs.paths()}
    dumped = zonestore("fs", "dump", drive, "--json").json["files"]
    assert {file["path"]: file["size"] for file in dumped} == {path: len(data) for path, data in found.items()}
    for path, content in put.items():
        assert found[path] == content, path
    for path, content in found.items():
        assert zonestore("fs", "cat", drive, path).out == content, path
    info = zonestore("fs", "mount-info", drive, "--json").json
    assert (info["generation"], info["journal_epoch"]) == (fs.superblock.generation, fs.superblock.epoch)
    zones = zonestore("drive", "report", drive, "--json").json["zones"]
    expected = [(zone.condition, zone.write_pointer) for zone in image.zones]
    assert [(zone["condition"], zone["write_pointer"]) for zone in zones] == expected
    return fs
