"""zonestore store: mkfs, df, ls, put, get, rm, fsck, clean."""

import os
import struct
import subprocess

import pytest
from conftest import TIMEOUT, Outcome


def put(zonestore, store, name, data):
    zonestore("store", "put", store, "-", name, stdin=data)


def test_an_object_goes_in_and_comes_out(zonestore, store, tmp_path):
    data = os.urandom(5_000_001)
    (tmp_path / "in").write_bytes(data)
    done = zonestore("store", "put", store, "in", "papers/2016/smr.pdf", "--json").json
    assert done == {"collection": "papers", "object": "2016/smr.pdf", "bytes": len(data)}
    assert zonestore("store", "get", store, "papers/2016/smr.pdf").out == data
    zonestore("store", "get", store, "papers/2016/smr.pdf", "out")
    assert (tmp_path / "out").read_bytes() == data
    zonestore("store", "put", store, "in", "papers/again")
    assert zonestore("store", "ls", store, "papers").text == "2016/smr.pdf\nagain\n"


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 1 << 20, (1 << 20) + 1])
def test_every_size_of_object(zonestore, store, size):
    data = os.urandom(size)
    put(zonestore, store, "c/o", data)
    assert zonestore("store", "get", store, "c/o").out == data


def test_an_object_larger_than_a_zone(zonestore, store):
    data = os.urandom(5 << 20)
    put(zonestore, store, "c/large", data)
    assert zonestore("store", "get", store, "c/large").out == data


def test_an_object_is_replaced_whole(zonestore, store):
    put(zonestore, store, "c/o", b"first" * 10_000)
    put(zonestore, store, "c/o", b"second")
    assert zonestore("store", "get", store, "c/o").out == b"second"


def test_ranges(zonestore, store):
    data = os.urandom(100_000)
    put(zonestore, store, "c/o", data)
    get = lambda span: zonestore("store", "get", store, "c/o", "--range", span).out
    assert get("0..10") == data[:10]
    assert get("70000..") == data[70_000:]
    assert get("..4K") == data[:4096]
    assert get("99990..200000") == data[99_990:]
    assert get("100000..") == b""
    zonestore.try_("store", "get", store, "c/o", "--range", "100001..").failed(2)
    assert zonestore.try_("store", "get", store, "c/o", "--range", "9..2").code == 2


def test_listing(zonestore, store):
    for name in ("b/2", "a/x/1", "a/x/2", "a/y", "b/1"):
        put(zonestore, store, name, b"data")
    assert zonestore("store", "ls", store).text == "a\nb\n"
    assert zonestore("store", "ls", store, "a/x/").text == "x/1\nx/2\n"
    long = zonestore("store", "ls", "-l", store, "a").text.splitlines()
    assert long[0].split()[0] == "4" and long[0].endswith("  x/1")
    objects = zonestore("store", "ls", store, "b", "--json").json["objects"]
    assert [(o["name"], o["size"]) for o in objects] == [("1", 4), ("2", 4)]
    collections = zonestore("store", "ls", store, "--json").json["collections"]
    assert [c["name"] for c in collections] == ["a", "b"]


def test_removing(zonestore, store):
    for name in ("c/1", "c/2", "c/dir/3", "c/dir/4"):
        put(zonestore, store, name, b"data")
    zonestore("store", "rm", store, "c/1")
    zonestore.try_("store", "rm", store, "c/1").failed(3)
    zonestore.try_("store", "rm", store, "c").failed(8)
    asked = zonestore.try_("store", "rm", "-r", store, "c/dir/").failed(8)
    assert "--yes" in asked and "2 objects, 8 B" in asked
    assert zonestore("store", "ls", store, "c/dir").text == "dir/3\ndir/4\n"
    removed = zonestore("store", "rm", "-r", "--yes", store, "c/dir/", "--json").json
    assert removed["objects_removed"] == 2
    zonestore.try_("store", "rm", "-r", store, "c/dir/").failed(3)
    assert zonestore("store", "ls", store, "c").text == "2\n"
    zonestore.try_("store", "rm", "-r", store, "c").failed(8)
    zonestore("store", "rm", "-r", "--yes", store, "c")
    assert zonestore("store", "ls", store).text == ""
    zonestore.try_("store", "ls", store, "c").failed(3)
    # The name is free again, with all that belongs to it.
    put(zonestore, store, "c/1", b"again")


def test_what_is_not_there_is_not_found(zonestore, store, tmp_path):
    put(zonestore, store, "c/o", b"data")
    zonestore.try_("store", "get", store, "c/other").failed(3)
    # The name that was given, not that of the file until it is whole.
    error = zonestore.try_("store", "get", store, "c/o", "none/out").failed(3)
    assert "none/out: " in error
    zonestore.try_("store", "get", store, "d/o").failed(3)
    zonestore.try_("store", "ls", store, "d").failed(3)
    zonestore.try_("store", "ls", store, "c/x").failed(3)
    zonestore.try_("store", "rm", store, "d/o").failed(3)
    assert "no-such-file" in zonestore.try_("store", "put", store, "no-such-file", "c/o").failed(3)
    zonestore.try_("store", "put", store, tmp_path, "c/o").failed(2)
    zonestore.try_("store", "get", store, "c/o", "no/such/folder").failed(3)
    for path in ("c", "c/", "/o", ""):
        assert zonestore.try_("store", "get", store, path).code == 2


def test_what_s3_cannot_name_is_said(zonestore, store):
    for bucket in ("c", "Papers", ".hidden", "a_b_c", "10.0.0.1"):
        first = zonestore("store", "put", store, "-", f"{bucket}/o", stdin=b"x")
        assert first.err.startswith(f"note: collection {bucket}: S3 cannot reach it"), first.err
        # Said when the collection is made, and not again.
        assert zonestore("store", "put", store, "-", f"{bucket}/p", stdin=b"x").err == ""
    assert zonestore("store", "put", store, "-", "papers/2016/smr.pdf", stdin=b"x").err == ""
    assert zonestore("store", "put", store, "-", "papers/" + "k" * 1024, stdin=b"x").err == ""
    long = "papers/" + "k" * 1025
    assert "a key has at most 1024 bytes" in zonestore("store", "put", store, "-", long, stdin=b"x").err
    assert zonestore("store", "get", store, long).out == b"x"
    assert "4096" in zonestore.try_("store", "put", store, "-", "papers/" + "k" * 4097, stdin=b"x").failed(2)
    done = zonestore("store", "put", store, "-", "papers/a\x1bb", "--json", stdin=b"x")
    assert len(done.json["notes"]) == 1 and "XML" in done.json["notes"][0]


def test_what_cannot_fit_is_refused_before_it_is_written(zonestore, store, tmp_path):
    """A sparse file, so that whoever stores it first would write for a while."""
    before = zonestore("drive", "info", store, "--json").json["written_bytes"]
    with open(tmp_path / "large", "wb") as file:
        file.truncate(1 << 40)
    error = zonestore.try_("store", "put", store, "large", "papers/large").failed(5)
    capacity = zonestore("store", "df", store).text.split("capacity")[1].split("  ")
    assert "1 TiB are wanted" in error and next(filter(None, capacity)).strip() in error, error
    # A mount writes some blocks of metadata.
    after = zonestore("drive", "info", store, "--json").json["written_bytes"]
    assert after - before < 1 << 20
    assert zonestore("store", "ls", store).text == ""


def test_a_missing_object_leaves_no_file(zonestore, store, tmp_path):
    before = set(os.listdir(tmp_path))
    zonestore.try_("store", "get", store, "c/o", "out").failed(3)
    assert set(os.listdir(tmp_path)) == before


def test_a_limit_on_the_size_of_files_is_an_error(zonestore, store, tmp_path):
    put(zonestore, store, "c/o", os.urandom(3_000_000))
    before = set(os.listdir(tmp_path))
    # POSIX counts in 512 bytes. The drive's file is larger, but these commands write little to it, if anything.
    limited = 'ulimit -S -f 2000; exec "$0" "$@"'
    for command in (("get", store, "c/o", "out"), ("backup", store, "--to", "b.tar")):
        command = ["sh", "-c", limited, zonestore.path, "store", *map(str, command)]
        done = Outcome(subprocess.run(command, cwd=tmp_path, capture_output=True))
        assert "ulimit -f" in done.failed(5)
        assert set(os.listdir(tmp_path)) == before


def test_a_closed_standard_stream_is_an_error(zonestore, store, tmp_path):
    put(zonestore, store, "c/o", b"data")
    command = ["sh", "-c", 'exec "$0" "$@" <&-', zonestore.path, "store", "put", str(store), "-", "c/o"]
    done = Outcome(subprocess.run(command, cwd=tmp_path, capture_output=True))
    assert "standard input is closed" in done.failed(2)
    closed = 'exec "$0" "$@" >&-'
    for command in (("get", store, "c/o"), ("get", store, "c/o", "-"), ("backup", store, "--to", "-")):
        command = ["sh", "-c", closed, zonestore.path, "store", *map(str, command)]
        done = Outcome(subprocess.run(command, cwd=tmp_path, stderr=subprocess.PIPE))
        assert "standard output is closed" in done.failed(2)
    # What has another destination goes there.
    command = ["sh", "-c", closed, zonestore.path, "store", "get", str(store), "c/o", "out"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert (tmp_path / "out").read_bytes() == b"data"
    with open(os.devnull, "r+b") as nothing:
        subprocess.run([zonestore.path, "store", "get", str(store), "c/o"], cwd=tmp_path, stdout=nothing, check=True)


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_has_the_object_and_nothing_else(zonestore, store, tmp_path, name):
    data = os.urandom(100_000)
    put(zonestore, store, "c/o", data)
    log = tmp_path / "log"
    for mode, before in (("ab", b"old\n"), ("wb", b"")):
        log.write_bytes(b"old\n")
        with open(log, mode) as file:
            subprocess.run([zonestore.path, "store", "get", store, "c/o", name], cwd=tmp_path, stdout=file, check=True)
        assert log.read_bytes() == before + data
    piped = zonestore("store", "get", store, "c/o", name)
    assert (piped.out, piped.err) == (data, "")


def test_a_file_that_is_open_already_is_not_written_to(zonestore, store, tmp_path):
    put(zonestore, store, "c/o", b"data")
    for command, name in ((("store", "get", store, "c/o", "/dev/stderr"), "stderr"),
                          (("skylight", "seagate-cmr", "--html", "/dev/stdout"), "stdout")):
        log = tmp_path / "log"
        log.write_bytes(b"old\n")
        with open(log, "ab") as file:
            done = subprocess.run([zonestore.path, *map(str, command)], cwd=tmp_path, **{name: file})
        assert done.returncode == 1, command
        assert log.read_bytes().startswith(b"old\n") and b"data" not in log.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["d.zoned", "log"]


def test_a_limit_on_open_files_is_an_error(zonestore, store, tmp_path):
    put(zonestore, store, "c/o", b"data")
    (tmp_path / "f").write_text("all:")
    limited = 'ulimit -n "$0"; exec "$@"'
    for limit, command in ((4, ("store", "put", store, "f", "c/p")), *(
        (limit, command) for limit in (12, 13, 14, 31)
        for command in (("serve", store, "--s3", "127.0.0.1:0"), ("daemon", store, "--socket", "s"))
    )):
        command = ["sh", "-c", limited, str(limit), zonestore.path, *map(str, command)]
        said = Outcome(subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=TIMEOUT)).failed(1)
        assert "ulimit -n" in said and "LimitNOFILE" in said, said
        assert limit == 4 or f"{limit} files may be open" in said


def test_an_unformatted_drive_says_what_to_do(zonestore, drive):
    for command in ("df", "ls", "fsck", "clean"):
        assert "mkfs" in zonestore.try_("store", command, drive).failed(7)
    zonestore.try_("store", "put", drive, "-", "c/o", stdin=b"x").failed(7)
    zonestore.try_("store", "get", drive, "c/o").failed(7)
    assert "mkfs" in zonestore.try_("serve", drive, "--s3", "127.0.0.1:0").failed(7)


def test_a_formatted_drive_is_erased_only_by_force(zonestore, store):
    put(zonestore, store, "c/o", b"data")
    assert "an object store" in zonestore.try_("store", "mkfs", store).failed(8)
    zonestore.try_("fs", "mkfs", store).failed(8)
    assert zonestore("store", "get", store, "c/o").out == b"data"
    zonestore("store", "mkfs", "--force", store)
    assert zonestore("store", "ls", store).text == ""


def test_a_path_that_ends_with_a_slash_says_what_to_do(zonestore, store):
    for command in (["store", "df"], ["fs", "ls"], ["drive", "info"]):
        assert "slash at its end" in zonestore.try_(*command, f"{store}/").failed(2)


def test_a_drive_with_few_active_zones_is_refused_without_names_of_floors(zonestore):
    zonestore("drive", "create", "few.zoned", "--size", "1GiB", "--zone-size", "8MiB", "--max-open", "6", "--max-active", "6")
    error = zonestore.try_("store", "mkfs", "few.zoned").failed(2)
    assert "limit of active zones is 6" in error and "BlueFS" not in error


def test_a_drive_too_small_for_a_store_is_said_so(zonestore):
    zonestore(*"drive create s.zoned --profile test-small --size 8MiB".split())
    zonestore.try_("store", "mkfs", "s.zoned").failed(2)


def test_df_adds_up(zonestore, store):
    def df():
        space = zonestore("store", "df", store, "--json").json
        parts = (space[f"{part}_bytes"] for part in ("live", "dead", "free"))
        assert sum(parts) == space["capacity_bytes"], space
        return space

    empty = df()
    put(zonestore, store, "c/o", os.urandom(3 << 20))
    full = df()
    assert full["live_bytes"] - empty["live_bytes"] >= 3 << 20
    assert full["available_bytes"] < empty["available_bytes"]
    parts = ("capacity", "metadata", "reserve", "conventional_free", "unusable")
    whole = sum(full[f"{part}_bytes"] for part in parts)
    assert whole == full["drive_bytes"], full
    put(zonestore, store, "c/small", os.urandom(10_000))
    zonestore("store", "rm", store, "c/o")
    assert df()["dead_bytes"] >= 3 << 20
    text = zonestore("store", "df", store).text
    for word in ("capacity", "live", "dead", "reserve", "available"):
        assert word in text


def test_cleaning_gives_dead_bytes_back(zonestore, store):
    keep = os.urandom(100_000)
    for number in range(8):
        put(zonestore, store, f"c/{number}", os.urandom(1_000_000))
        put(zonestore, store, f"keep/{number}", keep)
    zonestore("store", "rm", "-r", "--yes", store, "c")
    status = zonestore("store", "clean", store, "--status", "--json").json
    assert status["dirty_zones"] >= 7 and status["dead_bytes"] >= 8_000_000
    for number in ("x", "-5"):
        wrong = zonestore.try_("store", "clean", store, "--zones", number)
        assert wrong.code == 2 and "'--zones <N>': write a whole number" in wrong.err
    one = zonestore("store", "clean", store, "--zones", "1", "--json").json
    assert one["zones_cleaned"] == 1
    rest = zonestore("store", "clean", store, "--json").json
    assert rest["zones_cleaned"] >= 6 and rest["bytes_freed"] > 0
    assert zonestore("store", "clean", store, "--all", "--json").json["zones_cleaned"] == 0
    for number in range(8):
        assert zonestore("store", "get", store, f"keep/{number}").out == keep
    zonestore("store", "fsck", "--deep", store)
    assert zonestore.try_("store", "clean", store, "--all", "--status").code == 2


def test_what_the_mount_gave_back_is_said(zonestore, store):
    put(zonestore, store, "c/o", os.urandom(3 << 20))
    zonestore("store", "rm", store, "c/o")
    before = zonestore("store", "clean", store, "--status", "--json").json
    assert before["dirty_zones"] >= 2
    done = zonestore("store", "clean", store, "--json").json
    assert done["zones_cleaned"] + done["mount_zones_reset"] >= before["dirty_zones"]
    assert done["bytes_freed"] + done["mount_bytes_freed"] >= 3 << 20
    put(zonestore, store, "c/o", os.urandom(3 << 20))
    zonestore("store", "rm", store, "c/o")
    assert "when the store was mounted" in zonestore("store", "clean", store).text
    after = zonestore("store", "clean", store, "--status", "--json").json
    assert (after["dirty_zones"], after["dead_bytes"]) == (0, 0)


def test_df_explains_a_small_capacity(zonestore):
    for size, explained in (("32MiB", True), ("256MiB", False)):
        name = f"{size}.zoned"
        zonestore("drive", "create", name, "--profile", "test-small", "--size", size)
        zonestore("store", "mkfs", name)
        assert ("larger drive" in zonestore("store", "df", name).text) == explained


def test_a_full_store_says_so_and_still_deletes(zonestore, store):
    data = os.urandom(4 << 20)
    stored = 0
    for number in range(64):
        outcome = zonestore.try_("store", "put", store, "-", f"c/{number}", stdin=data)
        if outcome.code != 0:
            break
        stored += 1
    assert "space" in outcome.failed(5)
    assert stored >= 10
    for number in range(stored):
        zonestore("store", "rm", store, f"c/{number}")
    put(zonestore, store, "c/after", data)
    assert zonestore("store", "get", store, "c/after").out == data
    zonestore("store", "fsck", "--deep", store)


def test_fsck_of_a_healthy_store(zonestore, store):
    put(zonestore, store, "c/o", os.urandom(1 << 20))
    report = zonestore("store", "fsck", store, "--json").json
    assert report["errors"] == {} and report["objects"] == 1
    deep = zonestore("store", "fsck", "--deep", store, "--json").json
    assert deep["bytes_verified"] >= 1 << 20
    assert "no errors" in zonestore("store", "fsck", store).text


def damage(drive, data, offset=0):
    """Flips a byte of where the drive file holds `data`."""
    content = drive.read_bytes()
    at = content.index(data[offset : offset + 4096])
    with open(drive, "r+b") as file:
        file.seek(at)
        file.write(bytes([content[at] ^ 1]))


def test_damage_is_found_named_and_never_handed_out(zonestore, store, tmp_path):
    good, bad = os.urandom(300_000), os.urandom(300_000)
    put(zonestore, store, "c/good", good)
    put(zonestore, store, "c/bad", bad)
    damage(store, bad, offset=200_704)
    error = zonestore.try_("store", "get", store, "c/bad", "out").failed(6)
    assert "bad" in error and "checksum" in error
    assert not list(tmp_path.glob("out*"))
    got = zonestore.try_("store", "get", store, "c/bad")
    assert got.code == 6 and bad.startswith(got.out)
    assert zonestore("store", "get", store, "c/good").out == good
    zonestore("store", "fsck", store)
    outcome = zonestore.try_("store", "fsck", "--deep", store, "--json")
    assert outcome.code == 6
    assert sum(outcome.json["errors"].values()) == 1
    assert any("bad" in detail for detail in outcome.json["details"])


def test_an_object_whose_bytes_are_damaged_can_be_removed(zonestore, store):
    """Nothing needs its bytes, neither for it nor for the others."""
    for name in ("one", "all/1", "all/2", "rest"):
        data = os.urandom(300_000)
        put(zonestore, store, f"bucket/{name}", data)
        damage(store, data, offset=200_704)
        zonestore.try_("store", "get", store, f"bucket/{name}").failed(6)
    zonestore("store", "rm", store, "bucket/one")
    assert zonestore("store", "rm", "-r", "--yes", store, "bucket/all/", "--json").json["objects_removed"] == 2
    zonestore("store", "rm", "-r", "--yes", store, "bucket")
    zonestore("store", "fsck", "--deep", store)


def test_a_note_that_cannot_be_written_ends_nothing(zonestore, store):
    with open("/dev/full", "w") as full:
        done = subprocess.run([zonestore.path, "store", "put", store, "-", "C_/o"], input=b"x", stderr=full)
    assert done.returncode == 0
    put = zonestore("store", "put", store, "-", "D_/o", stdin=b"x")
    assert "note" in put.err and zonestore("store", "get", store, "C_/o").out == b"x"


def test_an_interrupted_put_leaves_nothing(zonestore, store):
    put(zonestore, store, "c/o", b"before")
    process = subprocess.Popen(
        [zonestore.path, "store", "put", store, "-", "c/o"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    process.stdin.write(os.urandom(3 << 20))
    process.stdin.flush()
    process.kill()
    process.communicate()
    assert zonestore("store", "get", store, "c/o").out == b"before"
    zonestore("store", "fsck", "--deep", store)


def test_reading_commands_refuse_a_shorter_history(zonestore, store):
    for i in range(6):
        zonestore("store", "put", store, "-", f"c/object{i}", stdin=os.urandom(9000))
    data = bytearray(store.read_bytes())
    # The last frame of the newest journal, which a clean unmount covers.
    found = {}
    for place in range(0, len(data), 4096):
        if data[place : place + 4] == b"BFJL":
            found[struct.unpack_from("<QQ", data, place + 8)] = place
    data[found[max(found)] + 44] ^= 1
    store.write_bytes(data)
    for command in (["ls", store, "c"], ["df", store], ["get", store, "c/object1"]):
        refused = zonestore.try_("store", *command)
        assert "--accept-damage" in refused.failed(6)
        assert refused.out == b""
        accepted = zonestore.try_("store", *command, "--accept-damage")
        assert "damage accepted" in accepted.err or accepted.code == 6
        accepted = zonestore.try_("store", *command, "--accept-damage", "--json")
        if accepted.code == 0 and command[0] != "get":
            assert accepted.json["damage_accepted"]
    # It has no such option, and has accepted all that can be.
    fsck = zonestore.try_("store", "fsck", store)
    assert fsck.code == 6 and "--accept-damage" not in fsck.err and "fs fsck" in fsck.err
    zonestore.try_("store", "put", store, "-", "c/new", stdin=b"x").failed(6)


@pytest.mark.parametrize("kind", ["CURRENT", "MANIFEST-", ".sst"])
def test_metadata_that_is_offline_is_damage(zonestore, store, kind):
    from test_fs import take_offline

    put(zonestore, store, "c/o", b"x" * 9000)
    put(zonestore, store, "c/small", b"x")
    found = zonestore("fs", "dump", store, "--json").json["files"]
    for zone in {e["at"]["zone"] for f in found if kind in f["path"] for e in f["extents"]}:
        take_offline(store, zone)
    for command, *rest in [["ls"], ["ls", "c"], ["get", "c/o", "out"], ["df"], ["health"], ["fsck"]]:
        assert zonestore.try_("store", command, store, *rest).code == 6, command


def test_names_of_any_bytes(zonestore, store):
    hostile = [b"b/\xff\xfe", b"b/\xc3", b"b/new\nline"]
    for name in hostile:
        zonestore("store", "put", store, "-", os.fsdecode(name), stdin=name)
    assert zonestore("store", "ls", store, "b", "-0").out == b"new\nline\0\xc3\0\xff\xfe\0"
    assert zonestore("store", "ls", store, "b").text == "new\nline\n$'\\xc3'\n$'\\xff\\xfe'\n"
    objects = zonestore("store", "ls", store, "b", "--json").json["objects"]
    assert [o["name"] for o in objects] == ["new\nline", {"hex": "c3"}, {"hex": "fffe"}]
    for name in hostile:
        assert zonestore("store", "get", store, os.fsdecode(name)).out == name
    assert zonestore("store", "ls", store, os.fsdecode(b"b/\xff"), "-0").out == b"\xff\xfe\0"
    zonestore("store", "rm", store, os.fsdecode(b"b/\xff\xfe"))
    zonestore("store", "rm", "-r", "--yes", store, os.fsdecode(b"b/\xc3"))
    assert zonestore("store", "ls", store, "b").text == "new\nline\n"
    assert zonestore("store", "fsck", store, "--deep").code == 0


def test_a_repair_names_files_that_are_damaged_in_all_copies(zonestore, tmp_path):
    zonestore("drive", "create", "one.zoned", "--profile", "test-small", "--size", "256MiB")
    zonestore("store", "mkfs", "one.zoned", "--metadata-copies", "1")
    zonestore("store", "put", "one.zoned", "-", "c/x", stdin=b"x" * 9000)
    drive = tmp_path / "one.zoned"
    # A file that the database writes and does not read.
    drive.write_bytes(drive.read_bytes().replace(b"[DBOptions]", b"[DBoptions]"))
    outcome = zonestore.try_("store", "fsck", "one.zoned", "--repair")
    said = outcome.failed(6)
    # A salvage in place refuses a store that can be opened.
    assert "all copies" in said and "store salvage --to" in said and "backup" in said
    assert "damaged in all copies: /db/OPTIONS" in outcome.text
    assert zonestore.try_("store", "salvage", "one.zoned", "--in-place", "--yes").code == 8


def test_a_repair_of_what_is_in_order_changes_nothing(zonestore, store):
    put(zonestore, store, "papers/x", b"x" * 9000)
    assert zonestore("store", "fsck", store, "--repair").text.startswith("nothing to repair in the metadata\n2 collections")
    report = zonestore("store", "fsck", store, "--repair", "--deep", "--json").json
    assert report["repair"] == {"given_up": [], "repaired": {}, "lost_files": [], "is_done": True}
    assert report["bytes_verified"] >= 9000
    assert zonestore("store", "get", store, "papers/x").out == b"x" * 9000
    assert "--repair" in zonestore.try_("store", "fsck", store, "--yes").err
