"""zonestore fs and zonestore rocksdb: unmodified RocksDB programs on a drive."""

import shutil
import signal
import subprocess
import sys

import pytest
from conftest import heed_signals

pytestmark = pytest.mark.skipif(
    shutil.which("db_bench") is None, reason="rocksdb-tools is not installed (scripts/setup)"
)


@pytest.fixture
def file_system(zonestore, tmp_path):
    drive = tmp_path / "r.zoned"
    zonestore(*"drive create r.zoned --profile test-small --size 512MiB".split())
    zonestore("fs", "mkfs", drive)
    return drive


def test_the_tools_work_on_a_drive(zonestore, file_system):
    bench = zonestore(
        *("rocksdb", file_system, "--", "db_bench", "--benchmarks=fillrandom,readrandom"),
        *("--num=20000", "--value_size=400", "--key_size=20"),
    ).text
    assert "fillrandom" in bench and "ops/sec" in bench
    names = [e["name"] for e in zonestore("fs", "ls", file_system, "/db", "--json").json["entries"]]
    assert "CURRENT" in names and any(name.startswith("MANIFEST") for name in names)
    assert "CURRENT" in zonestore("fs", "ls", file_system, "/db").text
    ldb = ("rocksdb", file_system, "--", "ldb")
    zonestore(*ldb, "put", "a key", "a value")
    assert zonestore(*ldb, "get", "a key").text.strip() == "a value"
    dump = ("rocksdb", file_system, "--", "sst_dump", "--file=/db", "--command=verify")
    assert "The file is ok" in zonestore(*dump).text
    space = zonestore("fs", "df", file_system, "--json").json
    assert space["live_bytes"] > 1_000_000
    zonestore("fs", "df", file_system)


def test_the_programs_exit_code_is_ours(zonestore, file_system):
    run = ("rocksdb", file_system, "--", "sh", "-c")
    assert zonestore.try_(*run, "exit 17").code == 17
    said = zonestore.try_(*run, 'echo "$ZONESTORE_URI $LD_PRELOAD $ZONESTORE_ROCKSDB_LIB"; exit 2')
    assert said.out.startswith(f"zonestore://{file_system} ".encode())
    assert b"/libzonestore_preload.so" in said.out and b"/libzonestore_rocksdb.so" in said.out


# What a preloaded library would not see: a shell that ends by _exit, what is linked statically, and what a
# script starts.
@pytest.mark.parametrize("kind", ["rocksdb", "leveldb"])
def test_a_program_that_did_not_open_the_drive_is_an_error(zonestore, file_system, tmp_path, kind):
    static = tmp_path / "static"
    source = tmp_path / "static.c"
    source.write_text("int main() { return 0; }")
    subprocess.run(["cc", "-static", source, "-o", static], check=True)
    for program in (["sh", "-c", "exit 0"], [static], ["sh", "-c", f"{static}; true"]):
        said = zonestore.try_(kind, file_system, "--", *program).failed(1)
        assert "without opening" in said
    opens = "ldb --fs_uri=$ZONESTORE_URI --db=/db --create_if_missing put a 1"
    if kind == "rocksdb":
        zonestore(kind, file_system, "--", "sh", "-c", opens)
    assert zonestore.try_(kind, file_system, "--", "sh", "-c", "exit 3").code == 3
    # Whoever goes on in the background may open it yet.
    zonestore(kind, file_system, "--", "sh", "-c", "(sleep 60 >/dev/null 2>&1 &)")


def test_signals_reach_the_program_and_its_end_is_ours(zonestore, file_system):
    program = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *a: sys.exit(21))\n"
    program += "print('ready', flush=True)\nwhile True: time.sleep(1)"
    arguments = [zonestore.path, "rocksdb", file_system, "--", sys.executable, "-c", program]

    def start():
        quiet = dict(stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return subprocess.Popen(arguments, **quiet, preexec_fn=heed_signals)

    for sent, expected in ((signal.SIGTERM, 21), (signal.SIGINT, -2), (signal.SIGUSR1, -10)):
        child = start()
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(sent)
        assert child.wait() == expected
    # A program is not left behind.
    child = start()
    assert child.stdout.readline() == b"ready\n"
    child.kill()
    assert child.stdout.read() == b""


def test_what_is_missing_is_named(zonestore, drive, store, file_system, tmp_path):
    zonestore.try_("rocksdb", file_system, "--", "no-such-program").failed(3)
    env = {"ZONESTORE_ROCKSDB_LIB": str(tmp_path / "nowhere.so")}
    error = zonestore.try_("rocksdb", file_system, "--", "ldb", "scan", env=env).failed(3)
    assert "nowhere.so" in error
    assert zonestore.try_("rocksdb", file_system).code == 2


def test_a_drive_without_a_file_system_says_what_to_do(zonestore, drive):
    assert "fs mkfs" in zonestore.try_("rocksdb", drive, "--", "ldb", "scan").failed(7)
    assert "fs mkfs" in zonestore.try_("fs", "ls", drive).failed(7)
    zonestore.try_("fs", "df", drive).failed(7)


def test_a_stores_own_file_system_is_left_alone(zonestore, store):
    zonestore("store", "put", store, "-", "c/o", stdin=b"data")
    error = zonestore.try_("rocksdb", store, "--", "ldb", "scan").failed(8)
    assert "store" in error
    assert zonestore("store", "get", store, "c/o").out == b"data"


def test_a_file_system_is_no_store(zonestore, file_system):
    zonestore.try_("store", "df", file_system).failed(7)
    zonestore.try_("store", "mkfs", file_system).failed(8)
    zonestore.try_("fs", "mkfs", file_system).failed(8)
    zonestore("fs", "mkfs", "--force", file_system)
    zonestore.try_("fs", "ls", file_system, "/no/such").failed(3)
