"""`store salvage`: objects of a drive that cannot be mounted any more."""

import os
import re

MAGIC = b"ZSBLUEFS"


def overwrite_superblocks(drive):
    """Nothing but zeros where superblocks were."""
    data = bytearray(drive.read_bytes())
    at = data.find(MAGIC)
    assert at > 0
    while at >= 0:
        data[at : at + 96] = bytes(96)
        at = data.find(MAGIC, at)
    drive.write_bytes(data)


def make(zonestore, name):
    zonestore("drive", "create", name, "--profile", "test-small", "--size", "256MiB")
    zonestore("store", "mkfs", name)


def make_lost(zonestore, drive):
    """A drive whose metadata is lost, with the objects c/hit, of which a bit is wrong, and c/whole. Returns what c/hit was, which
    is c/whole backwards."""
    make(zonestore, drive.name)
    body = os.urandom(700_000)
    zonestore("store", "put", drive.name, "-", "c/hit", stdin=body)
    zonestore("store", "put", drive.name, "-", "c/whole", stdin=body[::-1])
    overwrite_superblocks(drive)
    data = bytearray(drive.read_bytes())
    data[data.find(body[300_000:300_100])] ^= 1
    drive.write_bytes(data)
    return body


def test_objects_come_back_from_a_drive_without_metadata(zonestore, tmp_path):
    make(zonestore, "lost.zoned")
    bodies = {f"photo {n}": os.urandom(30_000 + 50_000 * n) for n in range(6)}
    for name, body in bodies.items():
        zonestore("store", "put", "lost.zoned", "-", f"album/{name}", stdin=body)
    overwrite_superblocks(tmp_path / "lost.zoned")
    for command in ("ls", "fsck"):
        told = zonestore.try_("store", command, "lost.zoned").failed(6)
        # A repair would refuse such a drive.
        assert "store salvage" in told and "--repair" not in told
    before = (tmp_path / "lost.zoned").read_bytes()

    assert "whole: 6 objects" in zonestore("store", "salvage", "lost.zoned").text
    zonestore("drive", "create", "new.zoned", "--profile", "test-small", "--size", "256MiB")
    copy = "store", "salvage", "lost.zoned", "--to", "new.zoned"
    assert "store mkfs" in zonestore.try_(*copy).failed(7)
    zonestore("store", "mkfs", "new.zoned")
    zonestore("store", "put", "new.zoned", "-", "album/photo 3", stdin=b"already here")
    report = zonestore(*copy, "--json").json
    assert (report["objects"], report["already_there"], report["damaged"]) == (6, 1, [])
    for name, body in bodies.items():
        found = zonestore("store", "get", "new.zoned", f"album/{name}", "-").out
        assert found == (b"already here" if name == "photo 3" else body)
    assert (tmp_path / "lost.zoned").read_bytes() == before


def test_a_drive_that_is_too_small_for_what_is_salvaged_is_named(zonestore, tmp_path):
    make(zonestore, "lost.zoned")
    bodies = [os.urandom(6 << 20) for _ in range(12)]
    for n, body in enumerate(bodies):
        zonestore("store", "put", "lost.zoned", "-", f"c/{n}", stdin=body)
    overwrite_superblocks(tmp_path / "lost.zoned")
    zonestore("drive", "create", "small.zoned", "--profile", "test-small", "--size", "64MiB")
    zonestore("store", "mkfs", "small.zoned")
    said = zonestore.try_("store", "salvage", "lost.zoned", "--to", "small.zoned").failed(5)
    assert "small.zoned is full" in said and "a larger drive" in said and "remove objects" not in said
    there = len(zonestore("store", "ls", "small.zoned", "c").text.split())
    assert 0 < there < 12
    # What is missing is no less than what is left has to have.
    left, room, missing = (float(number) for number in re.findall(r"([0-9.]+) MiB", said)[:3])
    assert left == 6 * (12 - there) and room < 6 and abs(missing - (left - room)) < 0.2
    make(zonestore, "large.zoned")
    report = zonestore("store", "salvage", "lost.zoned", "--to", "large.zoned", "--json").json
    assert report["objects"] == 12
    for n, body in enumerate(bodies):
        assert zonestore("store", "get", "large.zoned", f"c/{n}", "-").out == body


def test_damaged_objects_are_named_and_copied_when_asked_for(zonestore, tmp_path):
    body = make_lost(zonestore, tmp_path / "lost.zoned")
    make(zonestore, "new.zoned")
    outcome = zonestore.try_("store", "salvage", "lost.zoned", "--to", "new.zoned", "--damaged")
    assert "not everything" in outcome.failed(6)
    assert "damaged: c/hit" in outcome.text and "copied: 1 object" in outcome.text
    assert zonestore("store", "get", "new.zoned", "c/whole", "-").out == body[::-1]
    assert zonestore("store", "ls", "new.zoned", "c").text == "whole\n"
    rest = zonestore("store", "get", "new.zoned", "salvaged-damaged/c/hit", "-").out
    assert len(rest) == len(body) and rest[:262_144] == body[:262_144] and rest[-262_144:] == body[-262_144:]


def test_a_store_is_made_anew_on_its_own_drive(zonestore, tmp_path):
    make(zonestore, "d.zoned")
    bodies = {f"photo {n}": os.urandom(30_000 + 50_000 * n) for n in range(6)}
    for name, body in bodies.items():
        zonestore("store", "put", "d.zoned", "-", f"album/{name}", stdin=body)
    # As long as it can be opened there is no reason to.
    salvage = "store", "salvage", "d.zoned", "--in-place"
    assert "fsck" in zonestore.try_(*salvage, "--yes").failed(8)
    overwrite_superblocks(tmp_path / "d.zoned")
    before = (tmp_path / "d.zoned").read_bytes()
    assert "--yes" in zonestore.try_(*salvage).failed(8)
    assert (tmp_path / "d.zoned").read_bytes() == before

    # Programs get the plan, too.
    refused = zonestore.try_(*salvage, "--json")
    assert refused.code == 8
    plan = refused.json["plan"]
    assert not refused.json["done"] and plan["placed"] == 6 and plan["without_room"] == []
    assert refused.json["undescribed_bytes"] >= 0 and any("older versions" in note for note in refused.json["notes"])
    assert any(kept["object"] == f"zone-{kept['zone']}" for kept in plan["unplaced"])
    assert (tmp_path / "d.zoned").read_bytes() == before

    told = zonestore(*salvage, "--yes").text
    assert "stay in place: 6 objects" in told and "salvaged-unplaced" in told
    for name, body in bodies.items():
        assert zonestore("store", "get", "d.zoned", f"album/{name}", "-").out == body
    zonestore("store", "fsck", "d.zoned", "--deep")
    zonestore("store", "put", "d.zoned", "-", "album/new", stdin=b"n" * 100_000)
    zonestore("store", "rm", "-r", "d.zoned", "salvaged-unplaced", "--yes")
    zonestore("store", "scrub", "d.zoned", "--deep")
    assert "fsck" in zonestore.try_(*salvage, "--yes").failed(8)


def test_what_is_left_of_damaged_objects_is_told_before_and_after(zonestore, tmp_path):
    body = make_lost(zonestore, tmp_path / "d.zoned")
    salvage = "store", "salvage", "d.zoned", "--in-place"
    asked = zonestore.try_(*salvage)
    assert asked.code == 8 and "--damaged" in asked.text
    asked = zonestore.try_(*salvage, "--damaged")
    assert asked.code == 8 and "damaged objects are not copied" not in asked.text
    said = zonestore.try_(*salvage, "--yes").failed(6)
    # The same command with --damaged is refused from now on.
    assert "--damaged" not in said and "salvaged-unplaced" in said
    left = zonestore("store", "ls", "d.zoned", "salvaged-unplaced").text.split()
    assert any(body[:262_144] in zonestore("store", "get", "d.zoned", f"salvaged-unplaced/{name}", "-").out for name in left)


def test_what_may_be_given_up_is_said(zonestore, tmp_path):
    make_lost(zonestore, tmp_path / "d.zoned")
    salvage = "store", "salvage", "d.zoned", "--in-place", "--drop-unplaced"
    asked = zonestore.try_(*salvage)
    assert asked.code == 8 and "--drop-unplaced may give it up" in asked.text
    said = zonestore.try_(*salvage, "--yes").failed(6)
    assert "may be gone" in said and "if there are any" in said


def test_a_drive_with_nothing_to_salvage_is_left_alone(zonestore):
    zonestore("drive", "create", "d.zoned", "--profile", "test-small", "--size", "64MiB")
    assert "summary" in zonestore.try_("store", "salvage", "d.zoned").failed(7)
    make(zonestore, "e.zoned")
    zonestore.try_("store", "salvage", "e.zoned", "--to", "./e.zoned").failed(2)
    # What is said is about the drive that is read, and not about the one that is written to.
    said = zonestore.try_("store", "salvage", "d.zoned", "--to", "e.zoned").failed(7)
    assert "summary" in said and "e.zoned" not in said
