"""`zonestore fs`: files in and out, archives, what is inside, and going on without what is damaged."""

import os
import pty
import re
import shlex
import shutil
import struct
import subprocess
import tarfile

import pytest


@pytest.fixture
def file_system(zonestore, drive):
    zonestore("fs", "mkfs", drive)
    return drive


def test_files_go_in_and_come_out(zonestore, file_system, tmp_path):
    data = os.urandom(3_000_000)
    (tmp_path / "in").write_bytes(data)
    zonestore("fs", "put", file_system, "in", "/a/b/table.sst")
    zonestore("fs", "put", file_system, "-", "/a/small", stdin=b"hello")
    assert zonestore("fs", "cat", file_system, "/a/b/table.sst").out == data
    zonestore("fs", "get", file_system, "/a/b/table.sst", "out")
    assert (tmp_path / "out").read_bytes() == data
    # Replaced as a whole.
    zonestore("fs", "put", file_system, "-", "/a/small", stdin=b"hello again")
    assert zonestore("fs", "cat", file_system, "/a/small").out == b"hello again"
    names = {e["name"] for e in zonestore("fs", "ls", file_system, "/a", "--json").json["entries"]}
    assert names == {"b", "small"}
    zonestore("fs", "rm", file_system, "/a/small")
    assert "-r" in zonestore.try_("fs", "rm", file_system, "/a").failed(2)
    zonestore("fs", "rm", "-r", "--yes", file_system, "/a")
    assert zonestore("fs", "ls", file_system, "--json").json["entries"] == []
    zonestore.try_("fs", "cat", file_system, "/a/small").failed(3)
    zonestore("fs", "fsck", file_system, "--deep")


@pytest.mark.parametrize("what", ["/", "/db", "/db/", "//", "db/.."])
def test_removing_a_directory_asks(zonestore, file_system, what):
    """Whatever it is called; here nobody can answer."""
    for name in ("/db/CURRENT", "/db/000001.sst", "/other"):
        zonestore("fs", "put", file_system, "-", name, stdin=b"kept")
    refused = zonestore.try_("fs", "rm", "-r", file_system, what)
    if refused.code not in (2, 3):
        assert "--yes" in refused.failed(8) and " files, " in refused.err
    for name in ("/db/CURRENT", "/db/000001.sst", "/other"):
        assert zonestore("fs", "cat", file_system, name).out == b"kept"
    # One file by its name, and what holds nothing, need no question.
    zonestore("fs", "rm", file_system, "/db/CURRENT")
    zonestore("fs", "rm", file_system, "/db/000001.sst")
    zonestore("fs", "rm", "-r", file_system, "/db")
    removed = zonestore("fs", "rm", "-r", "--yes", file_system, "/", "--json").json
    assert removed["files_removed"] == 1
    assert zonestore("fs", "ls", file_system, "--json").json["entries"] == []


def test_a_backup_is_a_tar_archive_and_restores_everything(zonestore, file_system, tmp_path):
    files = {f"/db/{i:06}.{kind}": os.urandom(i * 50_000) for i, kind in
             enumerate(["sst", "log", "ldb", "blob"])}
    for path, data in files.items():
        zonestore("fs", "put", file_system, "-", path, stdin=data)
    zonestore("fs", "backup", file_system, "all.tar")
    assert zonestore("fs", "backup", file_system).out[:1024]
    with tarfile.open(tmp_path / "all.tar") as archive:
        found = {"/" + m.name: archive.extractfile(m).read() for m in archive if m.isfile()}
    assert found.pop("/.zonestore-backup")
    assert found == files
    zonestore(*"drive create new.zoned --profile test-small --size 64MiB".split())
    zonestore("fs", "mkfs", "new.zoned")
    zonestore("fs", "restore", "new.zoned", "all.tar")
    for path, data in files.items():
        assert zonestore("fs", "cat", "new.zoned", path).out == data
    zonestore.try_("fs", "restore", "new.zoned", "all.tar").failed(8)
    (tmp_path / "no.tar").write_bytes(b"no archive" * 1000)
    zonestore("fs", "mkfs", "--force", "new.zoned")
    zonestore.try_("fs", "restore", "new.zoned", "no.tar").failed(6)
    subprocess.run(["gzip", "-k", tmp_path / "all.tar"], check=True)
    refused = zonestore.try_("fs", "restore", "new.zoned", "all.tar.gz").failed(2)
    assert "compressed by gzip" in refused and "gzip -dc" in refused


def test_damaged_bytes_are_not_packed(zonestore, file_system, tmp_path):
    data = os.urandom(3_000_000)
    zonestore("fs", "put", file_system, "-", "/db/good.sst", stdin=os.urandom(1000))
    zonestore("fs", "put", file_system, "-", "/db/large.sst", stdin=data)
    zonestore("fs", "backup", file_system, "good.tar")
    good = (tmp_path / "good.tar").read_bytes()
    zonestore.try_("fs", "backup", file_system, "good.tar").failed(8)
    place = file_system.read_bytes().index(data[1_500_000:1_500_064])
    flip(file_system, place)
    assert "/db/large.sst" in zonestore.try_("fs", "backup", file_system, "bad.tar").failed(6)
    assert "/db/large.sst" in zonestore.try_("fs", "backup", file_system).failed(6)
    zonestore.try_("fs", "backup", file_system, "good.tar", "--force").failed(6)
    assert sorted(p.name for p in tmp_path.glob("*.tar*")) == ["good.tar"]
    assert (tmp_path / "good.tar").read_bytes() == good
    assert "/db/large.sst" in zonestore.try_("fs", "fsck", file_system, "--deep").text


def test_an_empty_backup_is_said_and_replaces_nothing(zonestore, file_system, tmp_path):
    (tmp_path / "a.tar").write_bytes(b"a good archive")
    zonestore.try_("fs", "backup", file_system, "a.tar").failed(8)
    assert (tmp_path / "a.tar").read_bytes() == b"a good archive"
    assert "no files" in zonestore("fs", "backup", file_system, "a.tar", "--force").err


def test_a_cut_or_damaged_archive_restores_nothing(zonestore, file_system, tmp_path):
    for i in range(4):
        zonestore("fs", "put", file_system, "-", f"/db/{i}.sst", stdin=os.urandom(20_000))
    zonestore("fs", "backup", file_system, "good.tar")
    good = (tmp_path / "good.tar").read_bytes()
    zonestore(*"drive create new.zoned --profile test-small --size 64MiB".split())
    zonestore("fs", "mkfs", "new.zoned")
    size = len(good)
    end = len(good.rstrip(b"\0"))
    cuts = [0, 100, 512, 10_000, 21_000, 30_000, 50_000, size // 2, end - 600, end - 1]
    bad = [good[:cut] for cut in cuts]
    for at in (3, 600, 1030, 30_000, 45_000, end - 300, end - 5):
        bad.append(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
    bad.append(good + good)
    for archive in bad:
        (tmp_path / "bad.tar").write_bytes(archive)
        if archive[:end] == good[:end]:
            continue
        zonestore.try_("fs", "restore", "new.zoned", "bad.tar").failed(6)
        zonestore.try_("fs", "restore", "new.zoned", "-", stdin=archive).failed(6)
        assert zonestore("fs", "ls", "new.zoned", "--json").json["entries"] == []
    zonestore("fs", "restore", "new.zoned", "good.tar")
    zonestore("fs", "backup", "new.zoned", "again.tar")

    def members(name):
        with tarfile.open(tmp_path / name) as archive:
            return [(m.name, archive.extractfile(m).read()) for m in archive if m.isfile()]

    assert members("again.tar") == members("good.tar")
    # An archive of another program says nothing of itself.
    with tarfile.open(tmp_path / "foreign.tar", "w") as archive:
        archive.add(tmp_path / "good.tar", "x")
    zonestore("fs", "rm", "-r", "--yes", "new.zoned", "/")
    assert "--foreign" in zonestore.try_("fs", "restore", "new.zoned", "foreign.tar").failed(6)
    zonestore("fs", "restore", "new.zoned", "foreign.tar", "--foreign")
    assert zonestore("fs", "cat", "new.zoned", "/x").out == good


def flip(drive, place):
    """Changes a bit of a drive file."""
    with open(drive, "r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 1]))


def frames(drive):
    """Places of the frames of the newest journal in a drive file, in their order."""
    data = drive.read_bytes()
    found = {}
    for place in range(0, len(data), 4096):
        if data[place : place + 4] == b"BFJL":
            epoch, number = struct.unpack_from("<QQ", data, place + 8)
            found.setdefault(epoch, {})[number] = place
    newest = found[max(found)]
    return [newest[number] for number in sorted(newest)]


@pytest.fixture
def many_files(zonestore, file_system):
    """25 files that one mount has made, each with frames of its own."""
    for i in range(25):
        zonestore("fs", "put", file_system, "-", f"/{i:02}.sst", stdin=os.urandom(5000))
    zonestore("fs", "backup", file_system, "many.tar")
    zonestore("fs", "rm", "-r", "--yes", file_system, "/")
    zonestore("fs", "restore", file_system, "many.tar")
    return file_system


def test_reading_commands_refuse_what_is_shorter_than_it_was(zonestore, many_files):
    places = frames(many_files)
    flip(many_files, places[len(places) // 2] + 44)
    damaged = many_files.read_bytes()
    reading = [["ls"], ["df"], ["dump"], ["cat", "/00.sst"], ["get", "/00.sst", "out"], ["backup", "x"]]
    for command, *rest in reading:
        refused = zonestore.try_("fs", command, many_files, *rest)
        assert "--accept-damage" in refused.failed(6), command
        assert refused.out == b""
    assert zonestore.try_("fs", "put", many_files, "-", "/new", stdin=b"x").code == 6
    listed = zonestore("fs", "ls", many_files, "--accept-damage", "--json")
    assert "damage accepted" in listed.err and listed.json["damage_accepted"]
    assert "damage accepted" in zonestore("fs", "df", many_files, "--accept-damage").err
    assert zonestore.try_("fs", "fsck", many_files).code == 6
    assert many_files.read_bytes() == damaged


def test_a_repair_names_what_it_loses(zonestore, many_files):
    before = {e["name"] for e in zonestore("fs", "ls", many_files, "--json").json["entries"]}
    data = many_files.read_bytes()
    places = [at for at in frames(many_files) if data[at : at + 4096].count(b".sst") == 1]
    flip(many_files, places[len(places) // 2] + 44)
    refused = zonestore.try_("fs", "fsck", many_files, "--repair")
    assert refused.code == 8
    repaired = zonestore.try_("fs", "fsck", many_files, "--repair", "--yes", "--json")
    assert repaired.code == 9
    after = {e["name"] for e in zonestore("fs", "ls", many_files, "--json").json["entries"]}
    lost = {loss["path"].lstrip("/") for loss in repaired.json["lost"]}
    gone = before - after
    # One was in the frame that is damaged; what lies behind it is carried out.
    assert len(gone) == 1 and gone <= lost, (gone, lost)
    assert all(f"/{name} " in refused.text for name in gone)
    assert repaired.json["data_read"] is True
    assert "not read" in zonestore("fs", "fsck", many_files).text
    assert "not read" not in zonestore("fs", "fsck", many_files, "--deep").text


def test_nobody_else_writes_between_the_question_of_a_repair_and_its_answer(zonestore, many_files):
    flip(many_files, frames(many_files)[-1] + 44)
    near, far = pty.openpty()
    process = subprocess.Popen(
        [zonestore.path, "fs", "fsck", many_files, "--repair"], stdin=far, stdout=subprocess.DEVNULL, stderr=far
    )
    os.close(far)
    said = b""
    while b"[y/N]" not in said:
        said += os.read(near, 4096)
    zonestore.try_("fs", "df", many_files).failed(4)
    os.write(near, b"n\n")
    assert process.wait() == 8
    os.close(near)


def test_what_is_inside_can_be_looked_at(zonestore, file_system):
    zonestore("fs", "put", file_system, "-", "/x.sst", stdin=b"x" * 5000)
    info = zonestore("fs", "mount-info", file_system, "--json").json
    assert info["role"] == "alone" and info["damage"] == [] and info["zone_count"] == 128
    assert info["format_version"] == 6
    dump = zonestore("fs", "dump", file_system, "--json").json
    (file,) = dump["files"]
    assert file["path"] == "/x.sst" and sum(e["length"] for e in file["extents"]) == 5000
    zones = {z["zone"]: z["purpose"] for z in dump["zones"]}
    assert zones[file["extents"][0]["at"]["zone"]] == "data"
    assert "journal" in zones.values() and "superblock" in zones.values()
    assert "/x.sst" in zonestore("fs", "dump", file_system).text
    assert "none known" in zonestore("fs", "mount-info", file_system).text
    zonestore("fs", "scrub", file_system)


def test_a_stores_file_system_can_be_looked_at_and_not_changed(zonestore, store):
    zonestore("fs", "mount-info", store)
    zonestore("fs", "dump", store)
    names = zonestore("fs", "ls", store, "/db", "--json").json["entries"]
    assert any(e["name"] == "CURRENT" for e in names)
    zonestore.try_("fs", "put", store, "-", "/x", stdin=b"x").failed(8)
    zonestore.try_("fs", "rm", "-r", store, "/db").failed(8)
    zonestore("store", "fsck", store)


def test_damage_is_repaired_only_when_it_is_accepted(zonestore, file_system):
    zonestore("rocksdb", file_system, "--", "db_bench", "--benchmarks=fillsync", "--num=5000",
              "--db=/bench")
    assert "nothing to repair" in zonestore("fs", "fsck", file_system, "--repair").text
    dump = zonestore("fs", "dump", file_system, "--json").json
    log = next(f for f in dump["files"] if f["path"].endswith(".log") and len(f["extents"]) > 50)
    data = file_system.read_bytes()
    payload = zonestore("fs", "cat", file_system, log["path"]).out
    first = log["extents"][20]["file_offset"]
    place = data.index(payload[first : first + 60])
    with open(file_system, "r+b") as file:
        file.seek(place + 10)
        file.write(bytes([data[place + 10] ^ 1]))
    damaged = file_system.read_bytes()
    bench = ["rocksdb", file_system, "--", "ldb", "--db=/bench", "scan"]
    assert zonestore.try_(*bench).code == 6
    assert zonestore.try_("fs", "fsck", file_system).code == 6
    assert "damage" in zonestore("fs", "mount-info", file_system).text
    # Looking at it and refusing have changed nothing.
    assert zonestore.try_("fs", "fsck", file_system, "--repair").code == 8
    assert file_system.read_bytes() == damaged
    refused = zonestore.try_("fs", "fsck", file_system, "--repair")
    assert f"loses: {log['path']} is truncated to {first} bytes" in refused.text
    zonestore.try_("fs", "fsck", file_system, "--repair", "--yes").failed(9)
    zonestore("fs", "fsck", file_system, "--deep")
    size = len(zonestore("fs", "cat", file_system, log["path"]).out)
    assert first <= size < len(payload)
    zonestore("rocksdb", file_system, "--", "ldb", "--db=/bench", "scan")


def test_a_file_system_that_is_in_use_is_not_changed(zonestore, file_system):
    """db_bench is told to say when it has opened its database, and killed while it is at it."""
    program = zonestore.start(
        *("rocksdb", file_system, "--", "db_bench", "--benchmarks=fillrandom"),
        *("--num=100000000", "--writes=100000000", "--db=/bench"),
    )
    try:
        program.stderr.readline()
        while zonestore.try_("fs", "ls", file_system, "/").code == 0:
            assert program.poll() is None
        zonestore.try_("fs", "put", file_system, "-", "/x", stdin=b"x").failed(4)
        zonestore.try_("fs", "fsck", file_system, "--repair", "--yes").failed(4)
        zonestore.try_("fs", "restore", file_system, "-").failed(4)
    finally:
        program.kill()
        program.communicate()


def test_the_suite_destroys_only_when_told_to(zonestore, file_system):
    zonestore("fs", "put", file_system, "-", "/kept", stdin=b"kept")
    assert "--yes-erase" in zonestore.try_("fs", "conformance", file_system).failed(8)
    assert zonestore("fs", "cat", file_system, "/kept").out == b"kept"


def test_the_suite_passes_on_a_drive_file(zonestore):
    zonestore(*"drive create c.zoned --profile zns-zn540 --size 64MiB --zone-size 1MiB".split())
    found = zonestore(*"fs conformance c.zoned --yes-erase --zones 16 --churn 1 --json".split()).json
    assert found["conforms"] and len(found["scenarios"]) == 9
    zonestore("fs", "mkfs", "c.zoned")


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def take_offline(drive, zone):
    """By the zone's entry in the drive file (docs/format/file-drive.md)."""
    with open(drive, "r+b") as file:
        file.seek(4096 + 64 * zone)
        entry = bytearray(file.read(60))
        entry[5] = 6
        entry[16:24] = bytes(8)
        file.seek(4096 + 64 * zone)
        file.write(entry + struct.pack("<I", crc32c(entry)))


def test_logs_that_are_offline_can_be_given_up(zonestore, many_files):
    zonestore("rocksdb", many_files, "--", *"ldb --db=/db --create_if_missing put key value".split())
    found = zonestore("fs", "dump", many_files, "--json").json["files"]
    zones = {e["at"]["zone"] for f in found if f["path"].startswith("/db/MANIFEST-") for e in f["extents"]}
    for zone in zones:
        take_offline(many_files, zone)
    known = zonestore("fs", "mount-info", many_files)
    assert "which is offline" in known.text and "none known" not in known.text
    # Programs would take the log for a shorter one.
    refused = zonestore.try_("rocksdb", many_files, "--", "true").failed(6)
    assert "fs rm" in refused and "/db/" in refused, refused
    zonestore("fs", "put", many_files, "-", "/new", stdin=b"new")
    zonestore("fs", "rm", "-r", "--yes", many_files, "/db")
    assert zonestore("fs", "cat", many_files, "/new").out == b"new"
    zonestore("fs", "backup", many_files, "rest.tar")
    zonestore("fs", "fsck", "--deep", many_files)


@pytest.fixture
def two_copies(zonestore, tmp_path):
    """A drive with two copies of a file, and the file's bytes."""
    zonestore(*"drive create two.zoned --profile test-small --size 256MiB".split())
    zonestore("fs", "mkfs", "two.zoned", "--metadata-copies", "2")
    data = os.urandom(50_000)
    zonestore("fs", "put", "two.zoned", "-", "/x.sst", stdin=data)
    drive = tmp_path / "two.zoned"
    return drive, data


def test_a_repair_mends_one_copy_from_the_other(zonestore, two_copies):
    drive, data = two_copies
    flip(drive, drive.read_bytes().index(data[:4096]) + 44)
    assert "nothing is lost: `zonestore fs fsck DRIVE --repair`" in zonestore.try_("fs", "fsck", "two.zoned", "--deep").failed(6)
    repaired = zonestore("fs", "fsck", "two.zoned", "--deep", "--repair").text
    assert "repaired: copies of metadata that differ" in repaired
    assert "nothing to repair" in zonestore("fs", "fsck", "two.zoned", "--deep", "--repair").text
    assert zonestore("fs", "cat", "two.zoned", "/x.sst").out == data


def test_a_repair_names_what_is_damaged_in_both_copies(zonestore, two_copies):
    drive, data = two_copies
    for _ in range(2):
        flip(drive, drive.read_bytes().index(data[:4096]) + 44)
    repaired = zonestore.try_("fs", "fsck", "two.zoned", "--repair")
    repaired.failed(6)
    assert "/x.sst" in repaired.text


def test_a_journal_that_is_offline_is_damage(zonestore, many_files):
    take_offline(many_files, zonestore("fs", "mount-info", many_files, "--json").json["journal_zone"])
    for command, *rest in [["ls"], ["df"], ["cat", "/00.sst"], ["backup", "x"], ["fsck"], ["scrub"]]:
        assert zonestore.try_("fs", command, many_files, *rest).code == 6, command
    assert zonestore.try_("fs", "put", many_files, "-", "/new", stdin=b"x").code == 6


def test_what_is_larger_than_one_read_is_compared_too(zonestore, tmp_path):
    zonestore(*"drive create l.zoned --profile test-small --size 256MiB --zone-size 8MiB".split())
    zonestore("fs", "mkfs", "l.zoned")
    data = os.urandom(6_000_000)
    zonestore("fs", "put", "l.zoned", "-", "/large.sst", stdin=data)
    drive = tmp_path / "l.zoned"
    flip(drive, drive.read_bytes().index(data[2_000_000:2_000_064]))
    for command in ("get", "cat"):
        refused = zonestore.try_("fs", command, "l.zoned", "/large.sst")
        assert "/large.sst" in refused.failed(6) and refused.out == b""
    zonestore.try_("fs", "get", "l.zoned", "/large.sst", "out").failed(6)
    assert not (tmp_path / "out").exists()


def test_a_restore_that_was_killed_can_be_done_again(zonestore, file_system, tmp_path):
    for i in range(20):
        zonestore("fs", "put", file_system, "-", f"/db/{i}.sst", stdin=os.urandom(200_000))
    zonestore("fs", "backup", file_system, "good.tar")
    good = (tmp_path / "good.tar").read_bytes()
    zonestore(*"drive create new.zoned --profile test-small --size 64MiB".split())
    zonestore("fs", "mkfs", "new.zoned")
    command = [zonestore.path, "fs", "restore", "new.zoned", "-"]
    restore = subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE)
    # What is written and not in the pipe any more has been read, and files in front of it are there.
    restore.stdin.write(good[: len(good) // 2])
    restore.stdin.flush()
    restore.kill()
    restore.wait()
    names = [e["name"] for e in zonestore("fs", "ls", "new.zoned", "--json").json["entries"]]
    assert names == [".zonestore-restore"]
    # An archive of it could not be restored.
    assert "not come to its end" in zonestore.try_("fs", "backup", "new.zoned", "half.tar").failed(8)
    assert "an earlier restore did not end" in zonestore("fs", "restore", "new.zoned", "good.tar").err
    zonestore("fs", "backup", "new.zoned", "again.tar")
    assert len((tmp_path / "again.tar").read_bytes()) == len(good)
    assert [e["name"] for e in zonestore("fs", "ls", "new.zoned", "--json").json["entries"]] == ["db"]


def test_a_restore_that_was_killed_while_it_named_files_goes_on(zonestore, file_system):
    for name in ("/a b", "/c"):
        zonestore("fs", "put", file_system, "-", name, stdin=b"archived")
    zonestore("fs", "backup", file_system, "all.tar")
    zonestore("drive", "create", "new drive.zoned", "--profile", "test-small", "--size", "64MiB")
    zonestore("fs", "mkfs", "new drive.zoned")
    # As it is between two names, with a file that was made since.
    for name, data in (("/.zonestore-restored/a b", b"archived"), ("/c", b"archived"), ("/a b", b"mine")):
        zonestore("fs", "put", "new drive.zoned", "-", name, stdin=data)
    assert "not come to its end" in zonestore.try_("fs", "backup", "new drive.zoned", "x.tar").failed(8)
    said = zonestore.try_("fs", "restore", "new drive.zoned", "all.tar").failed(8)
    remedy = "zonestore fs rm -r 'new drive.zoned' '/a b'"
    assert f"`{remedy}`" in said and "'/.zonestore-restored/a b'" in said
    zonestore(*shlex.split(remedy)[1:], "--yes")
    assert "have their names now" in zonestore("fs", "restore", "new drive.zoned", "all.tar").err
    assert {e["name"] for e in zonestore("fs", "ls", "new drive.zoned", "--json").json["entries"]} == {"a b", "c"}
    assert zonestore("fs", "cat", "new drive.zoned", "/a b").out == b"archived"


def test_a_file_beside_what_is_written_stays(zonestore, file_system, tmp_path):
    """Whatever it is called: what is written goes to a new file first."""
    for name in ("/f.partial", "/f.partial0", "/dir/x", "/dir.partial0"):
        zonestore("fs", "put", file_system, "-", name, stdin=b"precious")
    zonestore("fs", "put", file_system, "-", "/f", stdin=b"other")
    for name in ("/dir", "/", "", "/dir/"):
        zonestore.try_("fs", "put", file_system, "-", name, stdin=b"other").failed(2)
    for name in ("/f.partial", "/f.partial0", "/dir/x", "/dir.partial0"):
        assert zonestore("fs", "cat", file_system, name).out == b"precious"
    names = {e["name"] for e in zonestore("fs", "ls", file_system, "/", "--json").json["entries"]}
    assert names == {"f", "f.partial", "f.partial0", "dir", "dir.partial0"}
    (tmp_path / "out.partial").write_bytes(b"mine")
    zonestore("fs", "get", file_system, "/f", "out")
    assert (tmp_path / "out").read_bytes() == b"other"
    assert (tmp_path / "out.partial").read_bytes() == b"mine"
    assert sorted(path.name for path in tmp_path.glob("out*")) == ["out", "out.partial"]


def test_what_another_program_packed_is_whole_or_refused(zonestore, file_system, tmp_path):
    zonestore("fs", "put", file_system, "-", "/a", stdin=b"a" * 1000)
    zonestore("fs", "put", file_system, "-", "/b", stdin=b"b" * 1000)
    zonestore("fs", "backup", file_system, "ours.tar")
    ours = (tmp_path / "ours.tar").read_bytes()
    with tarfile.open(tmp_path / "ours.tar") as archive:
        second = archive.getmembers()[1].offset
    zonestore("fs", "rm", file_system, "/a")
    zonestore("fs", "rm", file_system, "/b")
    changed = bytearray(ours)
    changed[600] ^= 1
    for what in (ours[:second], bytes(changed), b""):
        (tmp_path / "bad.tar").write_bytes(what)
        for options in ([], ["--foreign"]):
            refused = zonestore.try_("fs", "restore", file_system, "bad.tar", *options)
            assert "--foreign" not in refused.failed(6)
            assert zonestore("fs", "ls", file_system, "--json").json["entries"] == []
    with tarfile.open(tmp_path / "foreign.tar", "w") as archive:
        archive.add(tmp_path / "ours.tar", "x/ours.tar")
    assert "--foreign" in zonestore.try_("fs", "restore", file_system, "foreign.tar").failed(6)
    zonestore("fs", "restore", file_system, "foreign.tar", "--foreign")
    assert zonestore("fs", "cat", file_system, "/x/ours.tar").out == ours


@pytest.mark.parametrize("shape", [("--zone-size", "4KiB"), ("--zone-size", "8MiB", "--max-open", "2", "--max-active", "2")])
def test_a_drive_that_cannot_hold_a_file_system_is_not_formatted(zonestore, tmp_path, shape):
    zonestore("drive", "create", "odd.zoned", "--size", "1GiB", "--conventional", "0", *shape)
    before = (tmp_path / "odd.zoned").read_bytes()[:1 << 20]
    for what in ("fs", "store"):
        assert "needs at least" in zonestore.try_(what, "mkfs", "odd.zoned").failed(2)
    assert (tmp_path / "odd.zoned").read_bytes()[:1 << 20] == before


def damage_journal(drive):
    """A frame in the middle of the newest journal, in all its copies."""
    data = drive.read_bytes()
    middle = frames(drive)[-2]
    frame = data[middle : middle + 24]
    for place in range(0, len(data), 4096):
        if data[place : place + 24] == frame:
            flip(drive, place + 44)


def advised(outcome, drive):
    """The commands that an answer names, and its hints that name an option."""
    told = outcome.text + outcome.err
    commands = re.findall(r"`(zonestore [^`]+)`", told)
    return {command: command.replace("DRIVE", str(drive)).split()[1:] for command in commands}


def test_what_a_repair_advises_are_commands_that_work(zonestore, store, tmp_path):
    bodies = {f"c/o{number}": os.urandom(40_000 + number) for number in range(8)}
    for name, body in bodies.items():
        zonestore("store", "put", store, "-", name, stdin=body)
    damage_journal(store)
    # What cannot be opened says what to do; what that says, too.
    found = advised(zonestore.try_("store", "ls", store), store)
    assert "zonestore fs fsck DRIVE" in found
    for command, arguments in found.items():
        outcome = zonestore.try_(*arguments)
        assert outcome.code in (0, 6), (command, outcome.code, outcome.err)
        assert "panicked" not in outcome.err
    refused = zonestore.try_("fs", "fsck", store, "--repair")
    assert "hint: --yes goes on" in refused.failed(8)
    found = advised(refused, store)
    assert set(found) == {"zonestore store fsck DRIVE --repair", "zonestore store salvage DRIVE"}
    # It was refused: nothing has changed, and the second way is open already, on a copy as on the drive.
    copy = tmp_path / "copy.zoned"
    shutil.copyfile(store, copy)
    assert "objects" in zonestore("store", "salvage", copy).text
    zonestore.try_("fs", "fsck", store, "--repair", "--yes").failed(9)
    assert zonestore.try_("fs", "fsck", store).code == 0
    # What comes next asks in its turn, if it has something to give up.
    mended = zonestore.try_(*found["zonestore store fsck DRIVE --repair"])
    if mended.code == 8:
        assert "--yes" in mended.err
        mended = zonestore.try_(*found["zonestore store fsck DRIVE --repair"], "--yes")
    if mended.code in (0, 9):
        zonestore("store", "fsck", store, "--deep")
        left = {f"c/{entry['name']}" for entry in zonestore("store", "ls", store, "c", "--json").json["objects"]}
        assert left <= set(bodies)
        assert all(zonestore("store", "get", store, name, "-").out == bodies[name] for name in left)
    else:
        assert "salvage" in mended.err
        assert "objects" in zonestore(*found["zonestore store salvage DRIVE"]).text
