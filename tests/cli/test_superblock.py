"""Lost superblocks, and commands that could overwrite a drive: they say what is there, and leave it."""

import struct

import pytest
from conftest import digest

ZONE = 1 << 20


def wipe(drive, *zones):
    """Zeros in zones of a drive file: its first four are conventional, all are of 1 MiB."""
    with open(drive, "r+b") as file:
        header = file.read(4096)
        (data,) = struct.unpack_from("<Q", header, 88)
        for zone in zones:
            file.seek(data + zone * ZONE)
            file.write(bytes(ZONE))


@pytest.fixture
def full(zonestore, store):
    """A store with an object."""
    zonestore("store", "put", store, "-", "c/o", stdin=b"x" * 100_000)
    return store


def count(zonestore, drive):
    return len(zonestore("drive", "report", drive, "--json").json["zones"])


def test_one_lost_end_of_a_drive_loses_nothing(zonestore, full):
    last = count(zonestore, full) - 1
    for zones in ((0, 1), (last - 1, last)):
        wipe(full, *zones)
        assert zonestore("store", "get", full, "c/o").out == b"x" * 100_000
        # A mount for writing makes the copy anew, and the other end may go next.
        zonestore("store", "put", full, "-", "c/p", stdin=b"y")


def test_a_drive_without_superblocks_is_not_called_empty(zonestore, full):
    last = count(zonestore, full) - 1
    wipe(full, 0, 1, last - 1, last)
    before = digest(full)
    for command in (
        "store df", "store ls", "store fsck", "store get", "fs ls", "fs fsck", "serve",
    ):
        more = ["c/o"] if command == "store get" else []
        more += ["--create", "--s3", "127.0.0.1:0"] if command == "serve" else []
        outcome = zonestore.try_(*command.split(), full, *more)
        error = outcome.failed(6)
        assert "missing or unreadable" in error and "sequential zones" in error, error
        assert "mkfs" not in error and "--force" not in error, error
    for mkfs in ("store mkfs", "fs mkfs"):
        error = zonestore.try_(*mkfs.split(), full).failed(8)
        assert "holds data" in error and "--force" not in error, error
    assert digest(full) == before
    zonestore("store", "mkfs", "--force", full)


def test_what_lies_in_conventional_zones_alone_is_not_overwritten(zonestore, drive):
    """These zones have no write pointers that would tell of it."""
    with open(drive, "r+b") as file:
        (data,) = struct.unpack_from("<Q", file.read(4096), 88)
        file.seek(data + ZONE)
        file.write(b"x" * 4096)
    before = digest(drive)
    for mkfs in ("store mkfs", "fs mkfs", "smrfs mkfs", "zea mkfs", "zea mkfs --fs"):
        error = zonestore.try_(*mkfs.split(), drive).failed(8)
        assert "1 conventional zone" in error and "nothing has been changed" in error, error
    assert digest(drive) == before
    zonestore("zea", "mkfs", "--fs", "--force", drive)


def test_mkfs_says_what_is_there(zonestore, full, tmp_path):
    zonestore("drive", "create", "f.zoned", "--profile", "test-small", "--size", "128MiB")
    zonestore("fs", "mkfs", "f.zoned")
    for drive, what in ((full, "an object store"), (tmp_path / "f.zoned", "a BlueFS file system")):
        for mkfs in ("store mkfs", "fs mkfs"):
            error = zonestore.try_(*mkfs.split(), drive).failed(8)
            assert what in error and "nothing has been changed" in error and "--force" not in error
    # A store is not looked for by making one.
    error = zonestore.try_("store", "df", "f.zoned").failed(7)
    assert "a BlueFS file system" in error and "mkfs" not in error


def test_nothing_writes_over_a_drive(zonestore, full):
    """Whatever takes a path of a file to write says that it is a drive, and leaves it."""
    size = full.stat().st_size
    zonestore("drive", "create", "other.zoned", "--profile", "test-small", "--size", "128MiB")
    zonestore("fs", "mkfs", "other.zoned")
    before = digest(full)
    for command in (
        ["skylight", full],
        ["skylight", full, "--yes-overwrite"],
        ["skylight", full, "--read-only"],
        ["skylight", "seagate-cmr", "--html", full],
        ["drive", "create", full, "--size", "64GiB"],
        ["drive", "reset", full, "--all"],
        ["store", "get", full, "c/o", full],
        ["fs", "backup", "other.zoned", full],
        ["fs", "backup", "other.zoned", full, "--force"],
        ["drive", "conformance", full],
        ["model", "export", "seagate-cmr", "--data", full, "--nbd", "d.sock"],
    ):
        outcome = zonestore.try_(*command)
        assert outcome.code in (2, 8, 9), (command, outcome.err)
        if "export" not in command:
            assert "an object store" in outcome.err, (command, outcome.err)
        assert "dd if" not in outcome.err and "remove" not in outcome.err, outcome.err
    assert digest(full) == before and full.stat().st_size == size


def test_a_file_with_holes_is_not_to_be_filled_with_zeros(zonestore, tmp_path):
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(100 << 20)
    error = zonestore.try_("skylight", "sparse", "--yes-overwrite").failed(2)
    assert "dd" not in error and "COPY" in error
