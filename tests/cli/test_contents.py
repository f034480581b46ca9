"""What commands say of a drive that holds something that they are not for."""

import pytest

SHAPE = "--profile test-small --size 64MiB --zone-size 1MiB --conventional 2".split()
MKFS = {
    "bluefs": "fs mkfs",
    "store": "store mkfs",
    "smrfs": "smrfs mkfs",
    "zeafs": "zea mkfs --fs",
    "zea": "zea mkfs",
}
# Commands that only read, by what they are for.
COMMANDS = {
    "fs ls": {"bluefs", "store"},
    "fs fsck": {"bluefs", "store"},
    "store df": {"store", "bluefs"},
    "store ls": {"store", "bluefs"},
    "smrfs df": {"smrfs"},
    "smrfs fsck": {"smrfs"},
    "zea ls": {"zea", "zeafs"},
    "zea fsck": {"zea", "zeafs"},
    "leveldb": {"zeafs", "bluefs"},
    "rocksdb": {"bluefs", "store"},
}
WORDS = {"bluefs": "BlueFS", "store": "an object store", "smrfs": "smrfs", "zeafs": "ZEAFS", "zea": "ZEA"}


@pytest.mark.parametrize("content", MKFS)
def test_other_contents_are_named(zonestore, content, tmp_path):
    zonestore("drive", "create", "d.zoned", *SHAPE)
    zonestore(*MKFS[content].split(), "d.zoned")
    before = (tmp_path / "d.zoned").read_bytes()
    for command, wanted in COMMANDS.items():
        more = ["--", "true"] if command in ("leveldb", "rocksdb") else []
        if content not in wanted:
            said = zonestore.try_(*command.split(), "d.zoned", *more).failed(8 if content == "store" and more else 7)
            assert WORDS[content] in said and "superblock" not in said, (command, said)
            assert "make" not in said, (command, said)
    for command in MKFS.values():
        said = zonestore.try_(*command.split(), "d.zoned").failed(8)
        assert content in ("bluefs", "store") or WORDS[content] in said, (command, said)
    for named in {"bluefs", "zeafs"} - {content}:
        said = zonestore.try_(*f"leveldb --fs {named} d.zoned -- true".split()).failed(8 if named == "bluefs" and content == "store" else 7)
        assert WORDS[content] in said and "superblock" not in said and "salvage" not in said, said
    assert (tmp_path / "d.zoned").read_bytes() == before


def test_an_empty_drive_is_offered_what_can_be_made(zonestore):
    zonestore("drive", "create", "d.zoned", *SHAPE)
    said = zonestore.try_("leveldb", "d.zoned", "--", "true").failed(7)
    assert "fs mkfs" in said and "zea mkfs --fs" in said


def test_a_damaged_zeafs_is_not_to_be_made_over(zonestore, tmp_path):
    zonestore("drive", "create", "d.zoned", *SHAPE)
    zonestore("zea", "mkfs", "--fs", "d.zoned")
    path = tmp_path / "d.zoned"
    content = bytearray(path.read_bytes())
    head = content.index(b"ZSZEAFSM")
    content[head : head + 8192] = bytes(8192)
    path.write_bytes(content)
    for command in ("zea ls d.zoned", "zea fsck d.zoned", "leveldb d.zoned -- true"):
        said = zonestore.try_(*command.split()).failed(6)
        assert "head" in said and "mkfs" not in said, said
