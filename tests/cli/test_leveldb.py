"""zonestore leveldb: unmodified LevelDB programs on a drive. Debian's plyvel is one, and belongs to
Debian's Python."""

import os
import signal
import subprocess

import pytest

from conftest import without_override

PYTHON = "/usr/bin/python3"


def has_plyvel():
    if not os.path.exists(PYTHON):
        return False
    return subprocess.run([PYTHON, "-c", "import plyvel"], capture_output=True).returncode == 0


pytestmark = pytest.mark.skipif(
    not has_plyvel(), reason="python3-plyvel is not installed (scripts/setup --test)"
)


@pytest.fixture
def file_system(zonestore, tmp_path):
    drive = tmp_path / "l.zoned"
    zonestore(*"drive create l.zoned --profile test-small --size 256MiB".split())
    zonestore("fs", "mkfs", drive)
    return drive


def plyvel(drive, statements):
    code = f"import plyvel; db = plyvel.DB('/my/db', create_if_missing=True); {statements}"
    return ("leveldb", drive, "--", PYTHON, "-c", code)


def test_a_database_is_there_the_next_time(zonestore, file_system, tmp_path):
    zonestore(*plyvel(file_system, "db.put(b'k', b'v', sync=True)"))
    assert zonestore(*plyvel(file_system, "print(db.get(b'k'))")).text == "b'v'\n"
    entries = zonestore("fs", "ls", file_system, "/my/db", "--json").json["entries"]
    assert {"CURRENT", "LOCK", "LOG"} <= {entry["name"] for entry in entries}
    assert not os.path.exists("/my/db")
    zonestore("fs", "fsck", "--deep", file_system)


def test_the_programs_exit_code_and_error_are_its_own(zonestore, file_system):
    assert zonestore.try_(*plyvel(file_system, "raise SystemExit(17)")).code == 17
    # By way of a shell that ends without a word.
    shell = f"{PYTHON} -c 'import plyvel; plyvel.DB(\"/db\", create_if_missing=True)'; exit 0"
    zonestore("leveldb", file_system, "--", "sh", "-c", shell)


def test_what_cannot_be_used_is_said_first(zonestore, tmp_path, file_system):
    zonestore.try_("leveldb", file_system, "--", "no-such-program").failed(3)
    env = {"ZONESTORE_LEVELDB_LIB": str(tmp_path / "nowhere.so")}
    assert "nowhere.so" in zonestore.try_("leveldb", file_system, "--", "true", env=env).failed(3)
    assert zonestore.try_("leveldb", file_system).code == 2
    zonestore.try_("leveldb", tmp_path / "missing.zoned", "--", "true").failed(3)

    drive = tmp_path / "d.zoned"
    zonestore(*"drive create d.zoned --profile test-small --size 128MiB".split())
    assert "fs mkfs" in zonestore.try_("leveldb", drive, "--", "true").failed(7)
    zonestore("store", "mkfs", drive)
    assert "store" in zonestore.try_("leveldb", drive, "--", "true").failed(8)


def test_a_drive_that_is_held_is_busy(zonestore, file_system):
    inner = [str(zonestore.path), *map(str, plyvel(file_system, "pass"))]
    code = f"import subprocess; print(subprocess.run({inner!r}).returncode)"
    assert zonestore(*plyvel(file_system, code)).text == "4\n"


def test_what_cannot_be_removed_beside_a_drive_does_not_come_back(zonestore, file_system, tmp_path):
    """Notes of an earlier time lie in a directory that nothing can be removed from."""
    folder = tmp_path / "fixed"
    folder.mkdir()
    drive = folder / "l.zoned"
    file_system.rename(drive)
    killed = "db.put(b'old', b'x' * 5000); import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    zonestore.try_(*plyvel(drive, killed))
    notes = folder / "l.zoned.unsynced"
    kept = notes.read_bytes()
    notes.unlink()
    # Somebody goes on without them.
    zonestore("fs", "put", drive, "-", "/x", stdin=b"x")
    zonestore("fs", "put", drive, "-", "/x", stdin=b"x")
    before = zonestore("fs", "ls", drive, "/my/db", "--json").json
    notes.write_bytes(kept)
    folder.chmod(0o555)
    try:
        put = [str(zonestore.path), "fs", "put", str(drive), "-", "/x"]
        # Nor can they be emptied: the next epoch would make them count.
        notes.chmod(0o444)
        refused = subprocess.run(without_override(put), input=b"y", capture_output=True)
        assert refused.returncode == 1 and f"zonestore: {notes}: notes of another time" in refused.stderr.decode(), refused.stderr
        notes.chmod(0o644)
        done = subprocess.run(without_override(put), input=b"y", capture_output=True)
        assert done.returncode == 0, done.stderr
    finally:
        folder.chmod(0o755)
    assert zonestore("fs", "cat", drive, "/x").out == b"y"
    assert zonestore("fs", "ls", drive, "/my/db", "--json").json == before


def test_what_is_beside_a_drive_and_cannot_be_used_is_named_and_kept(zonestore, file_system, tmp_path):
    killed = "db.put(b'old', b'x' * 5000); import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    zonestore.try_(*plyvel(file_system, killed), env={"ZONESTORE_LOG_AGE_MS": "0"})
    notes = tmp_path / "l.zoned.unsynced"
    read = [zonestore.path, "fs", "fsck", file_system]
    write = [zonestore.path, "fs", "put", file_system, "-", "/x"]
    for mode, commands in [(0, [read, write]), (0o444, [write])]:
        notes.chmod(mode)
        for command in commands:
            done = subprocess.run(without_override(list(map(str, command))), input=b"x", capture_output=True)
            said = done.stderr.decode()
            assert done.returncode == 1 and f"zonestore: {notes}: " in said, said
            assert "hint: run this as a user who may" in said
    notes.chmod(0o644)
    assert zonestore(*plyvel(file_system, "print(len(db.get(b'old')))")).text == "5000\n"


def test_signals_that_are_ignored_stay_so(zonestore, file_system):
    # Python itself ignores both.
    for ignores in (False, True):
        status = subprocess.run(
            [zonestore.path, "leveldb", file_system, "--", "grep", "SigIgn", "/proc/self/status"],
            capture_output=True, restore_signals=not ignores, env=zonestore.environment,
        ).stdout
        found = int(status.split()[1], 16)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            assert bool(found >> (number - 1) & 1) == ignores, (number, status)


def test_a_file_is_removed_from_a_full_drive_whose_program_was_killed(zonestore, tmp_path):
    zonestore(*"drive create l.zoned --profile test-small --size 16MiB --zone-size 1MiB --conventional 1".split())
    zonestore("fs", "mkfs", "l.zoned")
    zonestore("fs", "put", "l.zoned", "-", "/small", stdin=b"x" * 5000)
    # Until no database takes anything more, also of what waits for the drive.
    fill = """if True:
        import itertools, os, plyvel
        for db in [plyvel.DB(f"/{name}", create_if_missing=True) for name in "abcdef"]:
            try:
                for n in itertools.count():
                    db.put(b"%d" % n, os.urandom(20000))
            except plyvel.Error:
                print(n, flush=True)
        os.kill(os.getpid(), 9)
    """
    killed = zonestore.try_("leveldb", "l.zoned", "--", PYTHON, "-c", fill, env={"ZONESTORE_LOG_AGE_MS": "0"})
    acknowledged = [int(line) for line in killed.out.split()]
    assert len(acknowledged) == 6
    removed = zonestore.try_("fs", "rm", "l.zoned", "/small")
    assert removed.code == 0 and "l.zoned.unsynced keeps" in removed.err, removed.err
    names = {entry["name"] for entry in zonestore("fs", "ls", "l.zoned", "--json").json["entries"]}
    assert names == set("abcdef")
    for name in "ab":
        zonestore("fs", "rm", "l.zoned", f"/{name}", "-r", "--yes")
    look = "import plyvel; print(*(sum(1 for _ in plyvel.DB(f'/{name}')) for name in 'cdef'))"
    found = zonestore("leveldb", "l.zoned", "--", PYTHON, "-c", look).text
    assert [int(n) for n in found.split()] == acknowledged[2:]
