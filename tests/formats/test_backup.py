"""Archives: the oracle and `fs restore` against the golden ones."""

from hashlib import sha256

import backup
import golden
import pytest

FOLDER = "backup-1"


@pytest.mark.parametrize("name", golden.names(FOLDER))
def test_oracle(name):
    expected = golden.expected(FOLDER, name)
    archive = golden.image(FOLDER, name)
    if "refused" in expected:
        with pytest.raises(backup.Refused):
            backup.read(archive)
        return
    directories, files = backup.read(archive)
    assert directories == expected["directories"]
    assert {path: [len(data), sha256(data).hexdigest()] for path, data in files.items()} == expected["files"]


@pytest.mark.parametrize("name", golden.names(FOLDER))
def test_program(zonestore, name):
    expected = golden.expected(FOLDER, name)
    drive = empty(zonestore)
    archive = zonestore.write("b.tar", golden.image(FOLDER, name))
    zonestore.try_("fs", "restore", drive, archive).answers(expected["exit_code"], expected.get("says", []))
    files = [file["path"] for file in zonestore("fs", "dump", drive, "--json").json["files"]]
    assert sorted(files) == sorted(expected.get("files", []))
    for path, (size, digest) in expected.get("files", {}).items():
        content = zonestore("fs", "cat", drive, path).out
        assert (len(content), sha256(content).hexdigest()) == (size, digest)
    zonestore("fs", "fsck", drive, "--deep")


def test_the_oracle_reads_what_the_program_packs(zonestore):
    drive = empty(zonestore)
    files = {f"/a/{'b/' * depth}{depth}.sst": bytes([depth]) * 3000 * depth for depth in range(5)}
    # A name that does not fit a tar header.
    files[f"/a/{'n' * 120}.sst"] = b"long"
    for path, content in files.items():
        zonestore("fs", "put", drive, "-", path, stdin=content)
    directories, found = backup.read(zonestore("fs", "backup", drive).out)
    assert found == files and directories == ["/a", "/a/b", "/a/b/b", "/a/b/b/b", "/a/b/b/b/b"]


def empty(zonestore):
    shape = ["--zone-size", "64KiB", "--size", "3MiB", "--conventional", "2"]
    zonestore("drive", "create", "d.zoned", "--profile", "test-small", *shape)
    zonestore("fs", "mkfs", "d.zoned")
    return "d.zoned"
