"""`store export|import|backup|restore`: archives that tar reads, and stores made of them."""

import os
import signal
import stat
import subprocess
import tarfile
import time

import pytest

from conftest import TIMEOUT

NAMES = ["a", "a/b", "dir/", "deep/er/x", "..", "ü b", "100%"]


@pytest.fixture
def make(zonestore):
    """Makes another drive with an empty store."""

    def make(name):
        zonestore("drive", "create", name, "--profile", "test-small", "--size", "128MiB")
        zonestore("store", "mkfs", name)
        return name

    return make


def put(zonestore, path, body, drive="d.zoned"):
    zonestore("store", "put", drive, "-", path, stdin=body)


def get(zonestore, path, drive):
    return zonestore("store", "get", drive, path, "-").out


def test_other_programs_read_an_archive(zonestore, store, tmp_path):
    bodies = {name: os.urandom(100 + 40_000 * n) for n, name in enumerate(NAMES)}
    for name, body in bodies.items():
        put(zonestore, f"papers/{name}", body)
    zonestore("store", "export", store, "--to", "all.tar")
    done = subprocess.run(["tar", "xf", "all.tar"], cwd=tmp_path, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    files = ["a", "a%/b", "dir/%", "deep/er/x", "%2E%2E", "ü b", "100%25"]
    for name, file in zip(NAMES, files):
        assert (tmp_path / "papers" / file).read_bytes() == bodies[name], name
    with tarfile.open(tmp_path / "all.tar") as archive:
        member = archive.getmember("papers/a%/b")
        assert member.pax_headers["SCHILY.xattr.user.zonestore.name"] == "a/b"
        assert abs(member.mtime - time.time()) < 3600


def test_what_was_exported_is_imported_elsewhere(zonestore, store, make):
    for name in NAMES:
        put(zonestore, f"papers/{name}", name.encode())
    put(zonestore, "others/o", b"o")
    piped = zonestore("store", "export", store, "papers", "--to", "-").out
    make("e.zoned")
    put(zonestore, "papers/a", b"mine", "e.zoned")
    report = zonestore("store", "import", "e.zoned", "--json", stdin=piped).json
    assert (report["objects"], report["kept"], report["damaged"]) == (6, 1, [])
    assert get(zonestore, "papers/a", "e.zoned") == b"mine"
    assert get(zonestore, "papers/a/b", "e.zoned") == b"a/b"
    zonestore("store", "import", "e.zoned", "-", "--overwrite", stdin=piped)
    assert get(zonestore, "papers/a", "e.zoned") == b"a"
    zonestore("store", "import", "e.zoned", "-", "--into", "old/p-", stdin=piped)
    assert get(zonestore, "old/p-..", "e.zoned") == b".."
    assert "others" not in zonestore("store", "ls", "e.zoned").text
    zonestore("store", "fsck", "e.zoned", "--deep")
    none = zonestore.try_("store", "export", store, "papers/zzz", "--to", "-")
    assert "begins with" in none.failed(3)


KEYS = {"ZONESTORE_ACCESS_KEY": "AKIDEXAMPLE", "ZONESTORE_SECRET_KEY": "a-secret-of-mine"}


def client(server):
    import boto3
    from botocore.config import Config

    return boto3.client(
        "s3", endpoint_url=server.endpoint, region_name="us-east-1",
        aws_access_key_id=KEYS["ZONESTORE_ACCESS_KEY"],
        aws_secret_access_key=KEYS["ZONESTORE_SECRET_KEY"],
        config=Config(signature_version="s3v4", s3={"addressing_style": "path"}),
    )


def test_a_part_of_a_bucket_becomes_a_bucket(zonestore, store, make, serve, tmp_path):
    server = serve(store, env=KEYS)
    s3 = client(server)
    s3.create_bucket(Bucket="papers")
    s3.put_bucket_versioning(Bucket="papers", VersioningConfiguration={"Status": "Enabled"})
    s3.put_object(Bucket="papers", Key="2016/a", Body=b"1")
    s3.put_object(Bucket="papers", Key="2016/b", Body=os.urandom(300_000))
    server.stop()
    zonestore("store", "export", store, "papers/2016/", "--to", "papers.tar")
    whole = (tmp_path / "papers.tar").read_bytes()
    (tmp_path / "cut.tar").write_bytes(whole[:200_000])
    make("e.zoned")
    zonestore("store", "import", "e.zoned", "papers.tar")
    cut = zonestore.try_("store", "import", "e.zoned", "cut.tar", "--into", "old/2016-")
    assert "cut off" in cut.failed(6)
    names = zonestore("store", "ls", "--all", "e.zoned").text.split()
    for bucket in "papers", "old":
        for name in bucket, f".uploads/{bucket}", f".versions/{bucket}":
            assert name in names, (name, names)
    for path in "papers/2016/a", "old/k", "old/k":
        put(zonestore, path, b"2", "e.zoned")
    server = serve("e.zoned", env=KEYS)
    s3 = client(server)
    assert len(s3.list_object_versions(Bucket="papers", Prefix="2016/a")["Versions"]) == 2
    for bucket in "papers", "old":
        s3.create_multipart_upload(Bucket=bucket, Key="k")
    assert server.stop() == 0


def test_a_week_of_backups_is_restored(zonestore, store, make, tmp_path):
    put(zonestore, "c/stays", b"1" * 50_000)
    put(zonestore, "c/changes", b"old")
    put(zonestore, "c/goes", b"x")
    put(zonestore, "gone/with it", b"x")
    zonestore("store", "backup", store, "--to", "sunday.tar")
    put(zonestore, "c/changes", b"new")
    zonestore("store", "rm", store, "c/goes")
    zonestore("store", "rm", "-r", store, "gone", "--yes")
    monday = zonestore("store", "backup", store, "--to", "monday.tar", "--since", "sunday.tar", "--json").json
    assert (monday["objects"], monday["unchanged"]) == (1, 1)
    assert (tmp_path / "monday.tar").stat().st_size < 20_000
    put(zonestore, "c/comes", b"c")
    zonestore("store", "backup", store, "--to", "tuesday.tar", "--since", "monday.tar")
    week = "sunday.tar", "monday.tar", "tuesday.tar"
    assert zonestore("store", "restore", *week, "--check").text.count("whole:") == 3
    make("e.zoned")
    report = zonestore("store", "restore", *week, "--to", "e.zoned", "--json").json
    assert (report["archives"], report["objects"], report["resumed"]) == (3, 3, False)
    listing = "store", "ls", "-l", "-a"
    assert zonestore(*listing, "e.zoned", "c").text == zonestore(*listing, store, "c").text
    assert zonestore(*listing, "e.zoned").text == zonestore(*listing, store).text
    assert get(zonestore, "c/changes", "e.zoned") == b"new"
    zonestore("store", "fsck", "e.zoned", "--deep")
    # From drive to drive, without an archive.
    make("f.zoned")
    zonestore("store", "backup", store, "--to", "f.zoned")
    assert zonestore(*listing, "f.zoned", "c").text == zonestore(*listing, store, "c").text
    assert "empty" in zonestore.try_("store", "backup", store, "--to", "f.zoned").failed(8)


def test_a_store_that_is_half_restored_takes_nothing_else(zonestore, store, make, serve, tmp_path):
    for number in range(20):
        put(zonestore, f"c/{number}", os.urandom(200_000))
    zonestore("store", "backup", store, "--to", "full.tar")
    broken = bytearray((tmp_path / "full.tar").read_bytes())
    broken[len(broken) * 3 // 4] ^= 1
    (tmp_path / "broken.tar").write_bytes(broken)
    make("e.zoned")
    zonestore.try_("store", "restore", "broken.tar", "--to", "e.zoned").failed(6)
    for code, command in (
        (8, ("store", "put", "e.zoned", "-", "c/new")),
        (8, ("store", "rm", "e.zoned", "c/1")),
        (8, ("serve", "e.zoned", "--s3", "127.0.0.1:0")),
        (8, ("store", "salvage", store, "--to", "e.zoned")),
        (10, ("store", "health", "e.zoned")),
    ):
        assert "has not come to its end" in zonestore.try_(*command).failed(code), command
    asked = zonestore.try_("store", "health", "e.zoned")
    assert "has not come to its end" in asked.text and "healthy" not in asked.text
    zonestore("store", "ls", "e.zoned", "c")
    assert zonestore("store", "restore", "full.tar", "--to", "e.zoned", "--json").json["resumed"]
    put(zonestore, "c/new", b"new", "e.zoned")
    serve("e.zoned").stop()
    assert "healthy" in zonestore("store", "health", "e.zoned").text


def test_mistakes_are_named_and_nothing_is_overwritten(zonestore, store, make, tmp_path):
    put(zonestore, "c/o", os.urandom(300_000))
    zonestore("store", "backup", store, "--to", "full.tar")
    zonestore("store", "backup", store, "--to", "next.tar", "--since", "full.tar")
    before = (tmp_path / "full.tar").read_bytes()
    make("e.zoned")
    mistakes = [
        (8, "exists already", "backup", store, "--to", "full.tar"),
        (2, "names the drive itself", "backup", store, "--to", store),
        (2, "needs all", "backup", store, "--to", "full.tar", "--since", "full.tar", "--force"),
        (2, "needs all", "backup", store, "--to", "full.tar", "--since", "next.tar", "--force"),
        (2, "no archive", "backup", store, "--to", "x.tar", "--since", store),
        (2, "begins with a full backup", "restore", "next.tar", "--to", "e.zoned"),
        (2, "was not made since", "restore", "full.tar", "full.tar", "--to", "e.zoned"),
        (2, "full.tar: archive 2 was not made since", "restore", "full.tar", "full.tar", "--check"),
        (2, "begins with a full backup", "restore", "next.tar", "full.tar", "--check"),
        (2, "incremental", "import", "e.zoned", "next.tar"),
        (8, "holds collections", "restore", "full.tar", "--to", store),
        (3, "No such file", "restore", "nothing.tar", "--check"),
        (2, "of another store", "backup", "e.zoned", "--to", "x.tar", "--since", "full.tar"),
    ]
    for code, words, *command in mistakes:
        assert words in zonestore.try_("store", *command).failed(code), command
    assert (tmp_path / "full.tar").read_bytes() == before
    assert not (tmp_path / "x.tar").exists()
    (tmp_path / "cut.tar").write_bytes(before[:200_000])
    assert "cut off" in zonestore.try_("store", "restore", "cut.tar", "--to", "e.zoned").failed(6)
    bad = bytearray(before)
    bad[200_000] ^= 1
    (tmp_path / "bad.tar").write_bytes(bad)
    assert "damaged: c/o" in zonestore.try_("store", "restore", "bad.tar", "--check").failed(6)
    # What was begun with the first part of an archive goes on with all of it.
    zonestore("store", "restore", "full.tar", "--to", "e.zoned")
    assert zonestore("store", "ls", "e.zoned", "c").text == "o\n"


def test_a_served_drive_is_backed_up_by_its_server_and_not_exported(zonestore, store, serve):
    server = serve(store)
    assert "kill" in zonestore.try_("store", "export", store, "--to", "x.tar").failed(4)
    zonestore("store", "backup", store, "--to", "x.tar")
    assert server.stop(signal.SIGTERM) == 0
    # Only of a served drive the archive says so.
    zonestore("store", "backup", store, "--to", "y.tar")
    heads = [(store.parent / name).read_bytes()[:4096] for name in ("x.tar", "y.tar")]
    assert [b'"is_served":true' in head for head in heads] == [True, False]


def test_damaged_objects_are_named_and_left_out_when_asked(zonestore, store, make, tmp_path):
    body = os.urandom(700_000)
    put(zonestore, "c/hit", body)
    put(zonestore, "c/whole", body[::-1])
    data = bytearray(store.read_bytes())
    data[data.find(body[300_000:300_100])] ^= 1
    store.write_bytes(data)
    failed = zonestore.try_("store", "backup", store, "--to", "x.tar")
    assert "--skip-damaged" in failed.failed(6) and "c/hit" in failed.err
    assert not (tmp_path / "x.tar").exists()
    skipped = zonestore.try_("store", "backup", store, "--to", "x.tar", "--skip-damaged")
    assert "damaged: c/hit" in skipped.text and "without 1 object" in skipped.failed(6)
    piped = zonestore.try_("store", "backup", store, "--to", "-", "--skip-damaged")
    assert piped.code == 6 and "damaged: c/hit" in piped.err and "without 1 object" in piped.err
    make("e.zoned")
    restored = zonestore.try_("store", "restore", "x.tar", "--to", "e.zoned")
    assert "damaged: c/hit" in restored.text and "without 1 object" in restored.failed(6)
    assert zonestore("store", "ls", "e.zoned", "c").text == "whole\n"
    subprocess.run(["tar", "xf", "x.tar"], cwd=tmp_path, check=True)
    taken = (tmp_path / "c" / "hit").read_bytes()
    assert len(taken) == len(body) and taken[:200_000] == body[:200_000] and taken != body


def test_only_its_owner_reads_an_archive(zonestore, store, tmp_path):
    put(zonestore, "c/o", b"1")
    to = tmp_path / "x.tar"
    zonestore("store", "backup", store, "--to", to)
    assert to.stat().st_mode & 0o777 == 0o600
    to.chmod(0o640)
    zonestore("store", "export", store, "--to", to, "--force")
    assert to.stat().st_mode & 0o777 == 0o640


def test_a_block_device_is_written_to_only_when_asked(zonestore, store, tmp_path):
    put(zonestore, "c/o", b"1")
    device = tmp_path / "device"
    try:
        # Behind which there is none.
        os.mknod(device, stat.S_IFBLK | 0o600, os.makedev(259, (1 << 20) - 1))
    except PermissionError:
        pytest.skip("making a device node needs root")
    refused = zonestore.try_("store", "backup", store, "--to", device)
    assert "a block device" in refused.failed(8) and "--force" in refused.err
    assert "a block device" not in zonestore.try_("store", "backup", store, "--to", device, "--force").err


def test_what_is_written_need_not_have_a_name_in_utf_8(zonestore, store, tmp_path):
    put(zonestore, "c/o", b"1")
    zonestore("drive", "create", "f.zoned", "--profile", "test-small", "--size", "128MiB")
    zonestore("fs", "mkfs", "f.zoned")
    for number, command in enumerate([
        ("store", "backup", store, "--to"),
        ("store", "export", store, "--to"),
        ("fs", "backup", "f.zoned"),
        ("man",),
    ]):
        name = os.fsdecode(b"%d\xff" % number)
        for json in (), ("--json",):
            zonestore(*command, tmp_path / f"{len(json)}{name}", *json)
    other = os.fsdecode(b"other\xff")
    zonestore("drive", "create", other, "--profile", "test-small", "--size", "128MiB")
    zonestore("store", "mkfs", other)
    assert zonestore("store", "backup", store, "--to", other, "--json").json["drive"] == "other\ufffd"


def test_a_target_that_is_too_small_says_what_it_takes(zonestore, store, make):
    for number in range(6):
        put(zonestore, f"c/{number}", os.urandom(10 << 20))
    zonestore("drive", "create", "e.zoned", "--profile", "test-small", "--size", "72MiB")
    zonestore("store", "mkfs", "e.zoned")
    failed = zonestore.try_("store", "backup", store, "--to", "e.zoned")
    why = failed.failed(5)
    assert "e.zoned: too small" in why and "objects take 60" in why and "mkfs --force" in why, why
    assert "store rm" not in why
    make("f.zoned")
    zonestore("store", "backup", store, "--to", "f.zoned")


@pytest.fixture
def waiting(zonestore, store, serve, tmp_path):
    """A server, and a backup that waits for another one, which nobody takes."""
    put(zonestore, "c/o", os.urandom(8 << 20))
    server = serve(store)
    first = zonestore.start("store", "backup", store, "--to", "-")
    # No text.
    assert os.read(first.stdout.fileno(), 1)
    second = zonestore.start("store", "backup", store, "--to", tmp_path / "x.tar")
    orders = (line for line in server.process.stderr if "order of a backup" in line)
    assert next(orders) and next(orders)
    assert list(tmp_path.glob("*.partial")) and second.poll() is None
    server.first = first
    yield server, second
    first.kill()
    first.wait()


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_backup_that_a_signal_ends_leaves_nothing(waiting, tmp_path, by):
    _, backup = waiting
    backup.send_signal(by)
    backup.communicate(timeout=TIMEOUT)
    assert backup.returncode == -by
    assert not list(tmp_path.glob("x.tar*"))


def test_an_archive_that_comes_meanwhile_stays(waiting, tmp_path):
    server, backup = waiting
    (tmp_path / "x.tar").write_bytes(b"another one's")
    server.first.kill()
    _, why = backup.communicate(timeout=TIMEOUT)
    assert backup.returncode == 8 and "x.tar" in why, why
    assert (tmp_path / "x.tar").read_bytes() == b"another one's"
    assert [path.name for path in tmp_path.glob("x.tar*")] == ["x.tar"]


def test_a_server_that_is_killed_leaves_nothing_of_a_backup(waiting, tmp_path):
    server, backup = waiting
    server.process.kill()
    _, why = backup.communicate(timeout=TIMEOUT)
    assert backup.returncode == 4 and "the server ended" in why, why
    assert not list(tmp_path.glob("x.tar*"))


def test_a_server_that_is_killed_as_a_backup_begins_is_no_other_program(zonestore, store, serve, tmp_path):
    put(zonestore, "c/o", b"1")
    for number in range(12):
        server = serve(store)
        backup = zonestore.start("store", "backup", store, "--to", f"{number}.tar")
        time.sleep(0.004 * number)
        server.process.kill()
        _, why = backup.communicate(timeout=TIMEOUT)
        # It was there in time, has ended, or is not there any more and the drive is free.
        assert backup.returncode == 0 or "the server ended" in why, why
        assert not list(tmp_path.glob("*.partial"))
