"""A policy that lay in files is moved to a zoned drive, a partition at a time."""

import os
import pwd
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from swift.common.utils import get_logger
from swift.obj import diskfile

from backends import DEVICE, DaemonProcess, Files, Zoned, hash_of
from objects import Objects, moment
from test_exchange import assert_same, fill, with_policy_module
from zonestore_swift import migrate
from zonestore_swift.errors import NoSpace
from zonestore_swift.migrate import Migration

AGE = {"reclaim_age": str(10 ** 9)}


@pytest.fixture
def both(tmp_path, monkeypatch, policy, daemon):
    # A process cannot take dropped privileges back.
    monkeypatch.setattr(migrate, "drop_privileges", lambda user: None)
    return files_and_drive(tmp_path / "devices", monkeypatch, policy, daemon)


def files_and_drive(devices, monkeypatch, policy, daemon):
    """Files, and the drive that is to have them, in one partition; both below the same devices."""
    files, zoned = Files(devices), Zoned(devices, daemon)
    old = Objects(files, policy)
    with_policy_module(monkeypatch, policy, zoned)
    monkeypatch.setattr(migrate, "POLICIES", [policy])
    monkeypatch.setattr(diskfile, "POLICIES", [policy])
    return old, Objects(zoned, policy, partition=old.partition)


def move(old, new):
    migration, counts = Migration({**new.backend.conf, **AGE}, get_logger({})), Counter()
    assert list(migration.work()) == [(old.policy, DEVICE, old.partition, True)]
    migration.move(old.policy, DEVICE, old.partition, counts)
    return counts


def place_of(old, name):
    return folder(old) / hash_of(name)[-3:] / hash_of(name)


def folder(old):
    return old.backend.devices / DEVICE / diskfile.get_data_dir(old.policy) / old.partition


def test_all_of_a_partition_is_moved(both):
    old, new = both
    data = fill(old)
    archives = {name: old.archive(content, 2) for name, content in data.items()}
    old.put("waits", data=b"abc" * 30_000, at=4, commit=False)
    old.hashes()
    before = {name: (old.names(name), old.metadata(name), old.read(name)) for name in data}
    hashes = old.hashes()
    waits = old.names("waits")
    # What a killed daemon leaves of the file of hashes.
    (folder(old) / "tmp2xudcvcx.tmp").touch()
    counts = move(old, new)
    assert (counts["partitions"], counts["quarantined"]) == (1, 0)
    assert counts["objects"] == len(data) + 2
    assert not folder(old).exists()
    assert {name: (new.names(name), new.metadata(name), new.read(name)) for name in data} == before
    assert new.hashes() == hashes and new.names("waits") == waits
    assert all(new.read(name) == archive for name, archive in archives.items())
    assert not new.exists("deleted") and new.names("deleted") == [moment(2).internal + ".ts"]


def test_what_came_since_is_newer_and_stays(both):
    old, new = both
    old.put("o", data=b"old", at=1)
    old.put("gone", data=b"old", at=1)
    newer = new.put("o", data=b"new", at=2)
    new.delete("gone", at=2)
    assert move(old, new)["partitions"] == 1
    assert new.read("o") == newer and not new.exists("gone")
    assert new.names("gone") == [moment(2).internal + ".ts"]


@pytest.mark.parametrize("size", [100, 300_000])
@pytest.mark.parametrize("wrong", ["byte", "length", "metadata"])
def test_what_is_damaged_is_quarantined_and_not_moved(both, size, wrong):
    old, new = both
    whole = old.put("whole", data=b"w" * size, at=1)
    old.put("o", data=os.urandom(size), at=1)
    [path] = (folder(old) / hash_of("o")[-3:] / hash_of("o")).glob("*.data")
    if wrong == "byte":
        damaged = bytearray(path.read_bytes())
        damaged[len(damaged) // 2] ^= 1
        with open(path, "r+b") as file:
            file.write(damaged)
    elif wrong == "length":
        os.truncate(path, path.stat().st_size - 1)
    else:
        os.setxattr(path, "user.swift.metadata", b"nothing")
    counts = move(old, new)
    assert (counts["objects"], counts["quarantined"], counts["partitions"]) == (1, 1, 1)
    assert old.quarantined("o") and new.names("o") == [] and new.read("whole") == whole


@pytest.mark.parametrize("wrong", [LookupError("unknown encoding: latin1"), ImportError("pickle"), PermissionError("encodings")])
def test_what_this_host_cannot_read_is_not_damaged(both, monkeypatch, wrong):
    """As when a codec is of root alone."""
    old, new = both
    archive = old.put("o", data=b"abc", at=1)

    def refused(*_, **__):
        raise wrong

    with monkeypatch.context() as patched:
        patched.setattr(diskfile, "unpickle", refused)
        counts = move(old, new)
    assert (counts["waiting"], counts["quarantined"], counts["partitions"]) == (1, 0, 0)
    assert not old.quarantined("o") and move(old, new)["partitions"] == 1 and new.read("o") == archive


def test_who_is_stopped_goes_on(both, monkeypatch):
    old, new = both
    data = fill(old)
    hashes = old.hashes()
    copy, copies = Migration._copy, []

    def stopped(*arguments):
        if len(copies) == 3:
            raise KeyboardInterrupt
        copies.append(copy(*arguments))
        return copies[-1]

    with monkeypatch.context() as patched:
        patched.setattr(Migration, "_copy", stopped)
        with pytest.raises(KeyboardInterrupt):
            move(old, new)
    assert folder(old).exists()
    assert move(old, new)["partitions"] == 1
    assert new.hashes() == hashes and {name: new.read(name) for name in data} == {name: old.archive(data[name]) for name in data}


def test_files_that_came_meanwhile_stay(both, monkeypatch):
    """A server that was not restarted goes on writing files: they are moved the next time."""
    old, new = both
    old.put("o", data=b"abc", at=1)
    copy = Migration._copy

    def and_another(*arguments):
        size = copy(*arguments)
        if not old.exists("later"):
            old.put("later", data=b"def", at=1)
            (folder(old) / hash_of("o")[-3:] / hash_of("o") / "1700000009.00000.ts").touch()
        return size

    monkeypatch.setattr(Migration, "_copy", and_another)
    move(old, new)
    assert (folder(old) / hash_of("o")[-3:] / hash_of("o") / "1700000009.00000.ts").exists()
    assert new.read("o") == old.archive(b"abc")


def test_what_rsync_has_not_finished_counts_for_nothing(both):
    old, new = both
    archive = old.put("o", data=os.urandom(300_000), at=1)
    [data] = place_of(old, "o").glob("*.data")
    (data.parent / f".{data.name}.aB3x9Z").write_bytes(data.read_bytes()[:1000])
    counts = move(old, new)
    assert (counts["objects"], counts["quarantined"], counts["partitions"]) == (1, 0, 1)
    assert new.read("o") == archive and not folder(old).exists()


def test_one_that_cannot_be_read_keeps_back_no_other(both):
    old, new = both
    names = [f"o{n}" for n in range(12)]
    archives = {name: old.put(name, data=os.urandom(1000), at=1) for name in names}
    by_suffix = sorted(names, key=lambda name: hash_of(name)[-3:])
    # One that is no file, a file beside objects, one where an object's folder would be, and one beside its files.
    [data] = place_of(old, by_suffix[0]).glob("*.data")
    kept = data.rename(old.backend.devices / "kept")
    data.mkdir()
    (place_of(old, by_suffix[1]).parent / "README").touch()
    (place_of(old, by_suffix[2]).parent / ("0" * 29 + hash_of(by_suffix[2])[-3:])).touch()
    (place_of(old, by_suffix[3]) / "notes.txt").touch()
    counts = move(old, new)
    assert (counts["objects"], counts["waiting"], counts["quarantined"], counts["partitions"]) == (11, 2, 0, 0)
    assert {name: new.read(name) for name in by_suffix[1:]} == {name: archives[name] for name in by_suffix[1:]}
    data.rmdir()
    kept.rename(data)
    for stray in [path for path in folder(old).rglob("*") if path.is_file() and path != data]:
        stray.unlink()
    assert move(old, new)["partitions"] == 1 and new.read(by_suffix[0]) == archives[by_suffix[0]]


def called(monkeypatch, capsys, old, new, *options):
    conf = new.backend.devices / "object-server.conf"
    lines = [f"{key} = {value}" for key, value in {**new.backend.conf, **AGE}.items()]
    conf.write_text("\n".join(["[app:object-server]", "use = egg:swift#object", *lines, ""]))
    monkeypatch.setattr(sys, "argv", ["zonestore-swift-migrate", str(conf), *options])
    with pytest.raises(SystemExit) as ended:
        migrate.main()
    said = capsys.readouterr()
    return ended.value.code, said.out + said.err


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone can be somebody else")
def test_its_locks_are_those_of_the_user_of_swifts_daemons(monkeypatch, capsys, plain):
    """Of root, they would shut the object server's ssync out."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        daemon = DaemonProcess(folder, options=["--user", "nobody"])
        try:
            old, new = files_and_drive(Path(folder) / "devices", monkeypatch, plain, daemon)
            archive = old.put("o", data=b"abc", at=1)
            # Also because what Python loads for this may be of root alone.
            assert old.read("o") == archive
            for path in (new.backend.devices, *new.backend.devices.rglob("*")):
                shutil.chown(path, "nobody")
            # `drop_privileges`, in a way that can be taken back.
            monkeypatch.setattr(migrate, "drop_privileges", lambda user: os.seteuid(pwd.getpwnam(user).pw_uid))
            new.backend.conf["user"] = "nobody"
            code, said = called(monkeypatch, capsys, old, new)
            assert code == 0 and "1 partitions moved, 1 objects" in said and new.read("o") == archive, said
            assert os.geteuid() == pwd.getpwnam("nobody").pw_uid
            # As somebody who may not open what is of root.
            with new.manager.partition_lock(DEVICE, plain, old.partition, name="replication"):
                pass
        finally:
            os.seteuid(0)
            daemon.stop()


def test_who_may_not_become_that_user_is_told_so(both, monkeypatch, capsys):
    def refused(user):
        raise error

    monkeypatch.setattr(migrate, "drop_privileges", refused)
    for error in (KeyError("no name 'swift'"), PermissionError("not permitted")):
        code, said = called(monkeypatch, capsys, *both)
        assert code == 2 and "swift" in said and str(error) in said, said


def test_what_stays_is_not_said_to_be_done(both, monkeypatch, capsys):
    old, new = both
    archive = old.put("o", data=b"abc" * 1000, at=1)
    call = lambda *options: called(monkeypatch, capsys, old, new, *options)
    for options, word in ((["--from", "/nonexistent"], "No such file or directory: '/nonexistent'"), (["--devices", "nope"], "nope"),
                          (["--partitions", "abc"], "a partition is a number"), (["--policies", "9"], "the zoned ones are")):
        code, said = call(*options)
        assert code == 2 and word in said, said
    new.backend.daemon.stop()
    for options in ([], ["--dry-run"]):
        code, said = call(*options)
        assert code == 1 and f"no daemon serves {DEVICE}" in said, said
    new.backend.daemon.start()
    code, said = call("--dry-run")
    assert code == 0 and f"{DEVICE}, partition {old.partition}" in said, said
    (place_of(old, "o") / "notes.txt").touch()
    code, said = call()
    assert code == 1 and "left in its directory" in said and "notes.txt" in said and "1 partitions are left" in said, said
    (place_of(old, "o") / "notes.txt").unlink()
    code, said = call()
    assert code == 0 and "1 partitions moved" in said and new.read("o") == archive, said


@pytest.mark.parametrize("options", [[], ["--dry-run"], ["--policies", "0"]])
def test_without_a_zoned_policy_nothing_was_looked_at(both, monkeypatch, capsys, options):
    old, new = both
    with_policy_module(monkeypatch, old.policy, old.backend)
    code, said = called(monkeypatch, capsys, old, new, *options)
    assert code == 2 and "no policy of swift.conf is zoned" in said, said


@pytest.mark.parametrize("options", [[], ["--dry-run"]])
def test_a_disk_that_has_other_policies_may_not_be_erased(both, tmp_path, monkeypatch, capsys, options):
    old, new = both
    source = tmp_path / "old"
    device = source / DEVICE
    # What a migration leaves when it is done.
    (device / diskfile.get_data_dir(old.policy)).mkdir(parents=True)
    (device / diskfile.get_data_dir(old.policy) / "auditor_status_ALL.json").touch()
    call = lambda: called(monkeypatch, capsys, old, new, "--from", str(source), *options)
    # Nothing is in these.
    for place in ("accounts", "objects-7", "async_pending-7/abc"):
        (device / place).mkdir(parents=True)
    (device / "objects-7" / "auditor_status_ZBF.json").touch()
    (device / "objects-7" / "17").mkdir()
    (device / "objects-7" / "17" / "hashes.pkl").touch()
    code, said = call()
    assert code == 0, said
    for place in ("accounts/17/abc/h/h.db", "containers/17/abc/h/h.db", "objects-7/17/abc/h/1.data", "async_pending-7/abc/h-1"):
        path = device / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        code, said = call()
        assert code == 1 and f"is not of a zoned policy: stays, with {path}" in said, said
        path.unlink()
    # A folder that this user may not read.
    (device / "accounts" / "17" / "secret").mkdir()

    def refused(folder, scandir=os.scandir):
        if os.fspath(folder).endswith("secret"):
            raise PermissionError(13, "Permission denied", folder)
        return scandir(folder)

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", refused)
        code, said = call()
    assert code == 1 and "accounts/17/secret" in said, said
    # Where Swift goes on with them they are in their place.
    (new.backend.devices / DEVICE / "accounts" / "17").mkdir(parents=True)
    (new.backend.devices / DEVICE / "accounts" / "17" / "h.db").touch()
    code, said = called(monkeypatch, capsys, old, new, *options)
    assert code == 0, said


@pytest.mark.parametrize("options", [[], ["--dry-run"]])
@pytest.mark.parametrize("wrong", ["above", "below", "not mounted"])
def test_a_folder_without_the_policy_is_not_the_old_disks(both, tmp_path, monkeypatch, capsys, wrong, options):
    old, new = both
    old.put("o", data=b"abc", at=1)
    source = tmp_path / "old"
    if wrong == "not mounted":
        (source / DEVICE).mkdir(parents=True)
    else:
        shutil.copytree(old.backend.devices, source)
    named = {"above": tmp_path, "below": source / DEVICE, "not mounted": source}[wrong]
    code, said = called(monkeypatch, capsys, old, new, "--from", str(named), *options)
    assert code == 1 and "has nothing of a zoned policy" in said, said


def test_what_was_not_asked_for_is_left(both, monkeypatch, capsys):
    old, new = both
    other = Objects(old.backend, old.policy)
    for objects in (old, other):
        objects.put("o", data=b"abc", at=1)
    call = lambda *options: called(monkeypatch, capsys, old, new, *options)
    code, said = call("--partitions", old.partition, "--dry-run")
    assert code == 0 and f"partition {old.partition}" in said and f"partition {other.partition}" not in said, said
    for moved in (1, 0):
        code, said = call("--partitions", old.partition)
        assert code == 1 and f"{moved} partitions moved" in said and "1 partitions are left, 1 of them not asked for" in said, said
    code, said = call()
    assert code == 0 and "1 partitions moved" in said and "0 partitions are left" in said, said


def test_updates_of_containers_come_to_where_the_updater_looks(both, tmp_path, monkeypatch, capsys):
    old, new = both
    source = Path(shutil.copytree(old.backend.devices, tmp_path / "old"))
    names = ["o", "p"]
    for name in names:
        Files(source).manager(old.policy).pickle_async_update(DEVICE, "a", "c", name, {"obj": name}, moment(1).internal, old.policy)
    found = lambda folder: sorted(path.relative_to(folder) for path in folder.glob(f"{DEVICE}/async_pending*/*/*"))
    waiting = found(source)
    contents = [(source / path).read_bytes() for path in waiting]
    assert len(waiting) == len(names)
    call = lambda *options: called(monkeypatch, capsys, old, new, *options)
    # The same folder by another path: nothing is to be moved, nor removed.
    (tmp_path / "link").symlink_to(source)
    with monkeypatch.context() as patched:
        patched.setitem(new.backend.conf, "devices", str(source))
        code, said = call("--from", str(tmp_path / "link"))
        assert code == 0 and found(source) == waiting, said
    code, said = call("--from", str(source), "--dry-run")
    assert code == 0 and "2 updates of containers" in said and found(source) == waiting, said
    with monkeypatch.context() as patched:
        patched.setattr(migrate, "renamer", lambda *paths: (_ for _ in ()).throw(OSError("full")))
        code, said = call("--from", str(source))
        assert code == 1 and "2 updates of containers are left" in said and found(source) == waiting and not found(new.backend.devices), said
    code, said = call("--from", str(source))
    assert code == 0 and "left: see" not in said and found(source) == [], said
    assert found(new.backend.devices) == waiting and [(new.backend.devices / path).read_bytes() for path in waiting] == contents


def test_an_update_that_was_moved_does_not_wait(both, tmp_path, monkeypatch, capsys):
    old, new = both
    source = tmp_path / "old"
    Files(source).manager(old.policy).pickle_async_update(DEVICE, "a", "c", "o", {"obj": "o"}, moment(1).internal, old.policy)

    def kept(folder, rmdir=os.rmdir):
        if "async_pending" in os.fspath(folder):
            raise PermissionError("its folder stays")
        rmdir(folder)

    with monkeypatch.context() as patched:
        patched.setattr(os, "rmdir", kept)
        code, said = called(monkeypatch, capsys, old, new, "--from", str(source))
    assert code == 0 and len(list(new.backend.devices.glob(f"{DEVICE}/async_pending*/*/*"))) == 1, said


def test_a_device_that_cannot_be_read_keeps_back_no_other(both, tmp_path, monkeypatch, capsys):
    old, new = both
    archive = old.put("o", data=b"abc", at=1)
    # A disk that is gone, behind a link, has nothing; of an old one that is to be erased, nothing is known.
    (old.backend.devices / "gone").symlink_to(tmp_path / "nonexistent")
    for name in ("a_locked", "lost+found"):
        (old.backend.devices / name).mkdir()

    def refused(folder=".", listdir=os.listdir):
        if "a_locked" in os.fspath(folder) or "lost+found" in os.fspath(folder):
            raise PermissionError(13, "Permission denied", folder)
        return listdir(folder)

    for source in (old.backend.devices, tmp_path / "old"):
        if not source.exists():
            # Where updates are looked for, too.
            shutil.copytree(old.backend.devices, source, symlinks=True)
            (old.backend.devices / "gone").unlink()
            (old.backend.devices / "gone").mkdir()
        with monkeypatch.context() as patched:
            patched.setattr(os, "listdir", refused)
            for options in (["--dry-run"], []):
                code, said = called(monkeypatch, capsys, old, new, "--from", str(source), *options)
                assert code == 1 and "a_locked: stays for now: [Errno 13]" in said and "lost+found" not in said, said
        assert new.read("o") == archive
    assert "2 devices could not be read" in said and "gone: stays for now: has nothing" in said, said
    (old.backend.devices / "a_locked").rmdir()
    code, said = called(monkeypatch, capsys, old, new)
    assert code == 0, said


def test_a_full_drive_is_told_with_what_was_moved(both, monkeypatch, capsys):
    old, new = both
    for name in ("a", "b", "c"):
        old.put(name, data=b"abc" * 1000, at=1)
    copy, copies = Migration._copy, []

    def full(*arguments):
        if len(copies) == 2:
            raise NoSpace("no_space", "the drive is full")
        copies.append(copy(*arguments))
        return copies[-1]

    with monkeypatch.context() as patched:
        patched.setattr(Migration, "_copy", full)
        code, said = called(monkeypatch, capsys, old, new)
    assert code == 1 and "2 objects" in said and "the drive is full" in said and "take weight from" in said, said
    code, said = called(monkeypatch, capsys, old, new)
    assert code == 0 and "1 partitions moved, 1 objects" in said, said


def test_fragments_of_an_old_swift_are_durable(both):
    old, new = both
    if not old.coded:
        pytest.skip("of fragments alone")
    archive = old.put("o", data=b"abc" * 1000, at=1)
    place = folder(old) / hash_of("o")[-3:] / hash_of("o")
    time = moment(1).internal
    (place / f"{time}#2#d.data").rename(place / f"{time}#2.data")
    (place / f"{time}.durable").touch()
    assert old.read("o") == archive
    move(old, new)
    assert new.read("o") == archive and new.names("o") == [f"{time}#2#d.data"]
    assert not folder(old).exists()


def test_its_metadata_are_those_of_files(both):
    old, new = both
    data = fill(old)
    move(old, new)
    again = Objects(Files(new.backend.devices / "again"), old.policy, partition=old.partition)
    fill(again)
    assert_same(again, new, {name: again.archive(content) for name, content in data.items()})
