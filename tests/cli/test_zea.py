"""`zonestore zea`: extents in and out, what is found of them, and damage."""

import os
import subprocess
import tarfile

import pytest


@pytest.fixture
def extents(zonestore, drive):
    zonestore("zea", "mkfs", drive, "--zones", "2", "--back-pointers", "4")
    return drive


def put(zonestore, drive, data, address, *more):
    return zonestore("zea", "put", drive, "-", "--address", address, *more, "--json", stdin=data).json


def test_extents_go_in_and_come_out(zonestore, extents, tmp_path):
    datas = [os.urandom(1 + n * 7001) for n in range(9)]
    placed = [put(zonestore, extents, data, n % 4) for n, data in enumerate(datas)]
    assert [extent["order"] for extent in placed] == list(range(9))
    for extent, data in zip(placed, datas):
        assert zonestore("zea", "get", extents, extent["lba"], extent["length"]).out == data
    zone = placed[0]["at"]["zone"]
    other = put(zonestore, extents, b"there", 99, "--zone", zone + 1)
    assert other["at"]["zone"] == zone + 1
    zonestore("zea", "get", extents, other["lba"], other["length"], "out")
    assert (tmp_path / "out").read_bytes() == b"there"
    listed = zonestore("zea", "ls", extents, "--zone", zone, "--json").json["extents"]
    assert listed == placed
    zones = zonestore("zea", "ls", extents, "--json").json["zones"]
    assert [(z["extents"], z["back_pointers"]) for z in zones] == [(9, 4), (1, 4)]
    assert "address 3" in zonestore("zea", "dump", extents).text
    space = zonestore("zea", "df", extents, "--json").json
    assert (space["extents"], space["live_extents"]) == (10, 5)
    assert space["live_bytes"] > sum(map(len, datas[5:]))
    assert zonestore("zea", "fsck", extents, "--deep", "--json").json["extents"] == 10


plyvel = pytest.mark.skipif(not os.path.exists("/usr/bin/python3"), reason="Debian's Python has plyvel")


@plyvel
def test_damage_concerns_its_database_and_all_else_comes_out(zonestore, drive, tmp_path):
    zonestore("zea", "mkfs", "--fs", drive)
    on = ("leveldb", drive, "--", "/usr/bin/python3", "-c")
    put = "import plyvel; plyvel.DB('/{0}', create_if_missing=True).put(b'k', b'{0} needle' * 99, sync=True)"
    for database in ("one", "two"):
        zonestore(*on, put.format(database))
    path = tmp_path / drive
    content = path.read_bytes()
    damaged = content.replace(b"two needle", b"two noodle", 1)
    assert damaged != content
    path.write_bytes(damaged)
    get = "import plyvel; print(len(plyvel.DB('/{}').get(b'k')))"
    one = zonestore.try_(*on, get.format("one"))
    assert (one.code, one.text.strip()) == (0, "990")
    assert "warning" in one.err and "/two/" in one.err
    two = zonestore.try_(*on, get.format("two"))
    assert two.code == 1 and "/two/" in two.err.splitlines()[-1] and "checksum" in two.err
    names = [file["name"] for file in zonestore("zea", "ls", drive, "--json").json["files"]]
    log = next(name for name in names if name.startswith("/two/") and name.endswith(".log"))
    assert log in zonestore.try_("zea", "cat", drive, log).failed(6)
    assert log in zonestore.try_("zea", "get", drive, log, "out").failed(6)
    assert not (tmp_path / "out").exists()
    zonestore("zea", "get", drive, "/two/CURRENT", "out")
    assert (tmp_path / "out").read_bytes() == zonestore("zea", "cat", drive, "/two/CURRENT").out == b"MANIFEST-000002\n"
    backup = zonestore.try_("zea", "backup", drive, "all.tar")
    assert backup.code == 6 and log in backup.err
    with tarfile.open(tmp_path / "all.tar") as archive:
        found = {"/" + member.name for member in archive if member.isfile()}
    assert found - {"/.zonestore-backup"} == {name for name in names if not name.endswith("/")} - {log}
    # Also where nobody can be told what is left out.
    with open("/dev/full", "w") as full:
        silent = [zonestore.path, "zea", "backup", tmp_path / drive, tmp_path / "silent.tar"]
        assert subprocess.run(silent, stderr=full).returncode == 6
    assert (tmp_path / "silent.tar").stat().st_size == (tmp_path / "all.tar").stat().st_size
    # It goes into any BlueFS, and its database is there.
    zonestore(*"drive create b.zoned --profile test-small --size 128MiB".split())
    zonestore("fs", "mkfs", "b.zoned")
    zonestore("fs", "restore", "b.zoned", "all.tar")
    assert zonestore("leveldb", "b.zoned", *on[2:], get.format("one")).text.strip() == "990"
    # What cannot be read can be removed, and all is well then.
    assert "-r" in zonestore.try_("zea", "rm", drive, "/two").failed(2)
    zonestore("zea", "rm", "-r", "--yes", drive, "/two")
    zonestore("zea", "fsck", "--deep", drive)
    zonestore("zea", "backup", drive, "all.tar", "--force")


@plyvel
def test_leveldb_has_its_files_on_extents(zonestore, drive):
    zonestore("zea", "mkfs", "--fs", drive)
    # Its zones are made when it needs them; nobody is told to make others.
    assert "no zone has extents" in zonestore("zea", "dump", drive).text
    assert "no extent allocator" in zonestore.try_("zea", "dump", drive, "--zone", 5).failed(7)
    put = "import plyvel; plyvel.DB('/db', create_if_missing=True).put(b'k', b'v' * 99, sync=True)"
    on = ("leveldb", "--fs", "zeafs", drive, "--", "/usr/bin/python3", "-c")
    zonestore(*on, put)
    names = {file["name"] for file in zonestore("zea", "ls", drive, "--json").json["files"]}
    assert {"/db/", "/db/CURRENT"} <= names
    assert zonestore("zea", "df", drive, "--json").json["files"] == len(names)
    space = zonestore("zea", "df", drive, "--json").json
    assert (space["reserved_zones"], space["most_bytes"] > space["bytes"]) == (2, True)
    assert "2 of the empty ones" in zonestore("zea", "df", drive).text
    for command in ("cat", "rm"):
        said = zonestore.try_("zea", command, drive, "/nofile").failed(3)
        assert str(drive) in said and "zonestore zea ls" in said, said
    assert zonestore("zea", "fsck", "--deep", drive, "--json").json["errors"] == {}
    assert zonestore(*on, "import plyvel; print(len(plyvel.DB('/db').get(b'k')))").text.strip() == "99"
    assert "ZEAFS" in zonestore.try_("zea", "mkfs", drive).failed(8)
    assert "ZEAFS" in zonestore.try_("zea", "put", drive, "-", "--address", 1, stdin=b"x").failed(8)
    # Whichever is on the drive, where none is named.
    assert zonestore("leveldb", drive, *on[4:], "import plyvel; print(plyvel.DB('/db').get(b'k')[:1])").text.strip() == "b'v'"
    # A program that opens nothing, and a drive of the other kind.
    zonestore.try_("leveldb", "--fs", "zeafs", drive, "--", "true").failed(1)
    zonestore("fs", "mkfs", "--force", drive)
    other = zonestore.try_("leveldb", "--fs", "zeafs", drive, "--", "true").failed(7)
    assert "zonestore leveldb" in other and "mkfs" not in other


@plyvel
def test_a_full_file_system_names_a_way_out(zonestore, tmp_path):
    zonestore(*"drive create f.zoned --profile test-small --size 16MiB --zone-size 1MiB --conventional 1".split())
    zonestore(*"zea mkfs --fs f.zoned".split())
    # A database of which LevelDB has acknowledged so many puts, none of them synced.
    fill = """if True:
        import itertools, os, plyvel
        db = plyvel.DB("/db", create_if_missing=True)
        try:
            for n in itertools.count():
                db.put(b"%d" % n, os.urandom(20000))
        except Exception as error:
            print(n)
            db.close()
            raise error
    """
    full = zonestore.try_("leveldb", "f.zoned", "--", "/usr/bin/python3", "-c", fill)
    assert full.code == 1 and "no space left" in full.err and "zonestore zea backup" in full.err
    zonestore(*"zea backup f.zoned all.tar".split())
    zonestore(*"drive create g.zoned --profile test-small --size 64MiB".split())
    zonestore(*"fs mkfs g.zoned".split())
    zonestore(*"fs restore g.zoned all.tar".split())
    look = "import plyvel; print(sum(1 for _ in plyvel.DB('/db')))"
    found = int(zonestore("leveldb", "g.zoned", "--", "/usr/bin/python3", "-c", look).text)
    acknowledged = int(full.out)
    assert found in (acknowledged, acknowledged + 1) and acknowledged > 200


def test_what_was_not_put_is_not_got(zonestore, extents):
    extent = put(zonestore, extents, b"x" * 5000, 1)
    lba, length = extent["lba"], extent["length"]
    for wrong in ((lba + 512, length), (lba, length - 1), (lba + 1, length), (lba, 0)):
        zonestore.try_("zea", "get", extents, *wrong).failed(3)
    zonestore.try_("zea", "get", extents, 1 << 60, 5).failed(3)
    zonestore.try_("zea", "put", extents, "-", "--address", 1).failed(2)
    zonestore.try_("zea", "put", extents, "-", "--address", 1, "--zone", 999, stdin=b"x").failed(7)


def test_a_drive_with_something_else_is_left_alone(zonestore, drive):
    zonestore.try_("zea", "ls", drive).failed(7)
    zonestore("fs", "mkfs", drive)
    assert "--force" in zonestore.try_("zea", "mkfs", drive).failed(8)
    # What cannot be made erases nothing.
    zonestore.try_("zea", "mkfs", drive, "--force", "--back-pointers", 0).failed(2)
    assert "--force" in zonestore.try_("zea", "mkfs", drive).failed(8)
    zonestore("fs", "fsck", drive)
    zonestore("zea", "mkfs", drive, "--force")
    zonestore.try_("fs", "ls", drive).failed(7)
    assert zonestore("zea", "ls", drive, "--json").json["zones"][0]["extents"] == 0


def test_damage_is_found_and_what_is_beside_it_is_read(zonestore, extents, tmp_path):
    datas = [bytes([65 + n]) * 60_000 for n in range(3)]
    placed = [put(zonestore, extents, data, n) for n, data in enumerate(datas)]
    path = tmp_path / extents
    raw = path.read_bytes()
    at = raw.index(datas[1]) + 777
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"?")
    second = placed[1]
    zonestore.try_("zea", "get", extents, second["lba"], second["length"]).failed(6)
    zonestore("zea", "fsck", extents)
    zonestore.try_("zea", "fsck", extents, "--deep").failed(6)
    for extent, data in (zip(placed[::2], datas[::2])):
        assert zonestore("zea", "get", extents, extent["lba"], extent["length"]).out == data


def test_bench_measures_a_model_in_its_own_time(zonestore, drive):
    small = "--extents 50 --sizes 4KiB,64KiB --back-pointers 1,16 --start-up 100,200 --json".split()
    first, again = (zonestore("zea", "bench", *small).json for _ in range(2))
    assert first == again and first["virtual_time"]
    assert all(t["put_ratio"] > 0.9 for t in first["transfers"])
    assert len(first["start_up"]) == 4
    assert "--yes-erase" in zonestore.try_("zea", "bench", drive, *small[:-1]).failed(8)
    own = zonestore("zea", "bench", drive, "--yes-erase", *small).json
    assert not own["virtual_time"] and len(own["transfers"]) == 2
    zonestore.try_("zea", "bench", "--model", "seagate-cmr").failed(2)
