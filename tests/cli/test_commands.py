"""What holds of every command: help, usage mistakes, output that is one JSON value."""

import json
import os
import shlex
import signal
import subprocess
import time
import pytest
from conftest import TIMEOUT

COMMANDS = [
    *("drive", "drive create", "drive profiles", "drive report", "drive info", "drive reset"),
    *("store", "store mkfs", "store df", "store ls", "store put", "store get", "store rm"),
    *("store fsck", "store clean", "serve", "fs", "fs mkfs", "fs ls", "fs df", "rocksdb"),
    *("bench", "bench ingest", "bench rocksdb", "bench bluefs", "fs top", "skylight"),
    *("zea", "zea mkfs", "zea ls", "zea put", "zea get", "zea df", "zea fsck", "zea dump", "zea bench"),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(zonestore, command):
    help_ = zonestore(*command.split(), "--help")
    assert "Usage: zonestore" in help_.text and help_.err == ""
    assert zonestore("help", *command.split()).text == help_.text


def test_help_lists_the_exit_codes(zonestore):
    text = zonestore("--help").text
    assert "Exit codes:" in text and "6  damaged" in text


def test_mistakes_of_usage_end_with_2(zonestore):
    for command in ("", "nonsense", "drive", "drive create", "store put d", "serve --port 1"):
        outcome = zonestore.try_(*command.split())
        assert outcome.code == 2 and outcome.out == b"", command
    assert zonestore.try_("drive", "nonsense").err.startswith("zonestore: ")
    assert "hint: " in zonestore.try_("store", "get", "d", "no-slash").err


def test_version(zonestore):
    assert zonestore("--version").text.startswith("zonestore ")


@pytest.mark.parametrize("command", ["--help", "--version", "help store", "store mkfs --help"])
def test_help_that_finds_no_room_is_no_success(zonestore, command):
    with open("/dev/full", "w") as full:
        done = subprocess.run([zonestore.path, *command.split()], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 5 and b"standard output" in done.stderr, done


def test_every_report_is_one_json_value(zonestore, store):
    zonestore("store", "put", store, "-", "c/o", stdin=b"data")
    for command in (
        *("drive profiles",),
        *(f"drive {name} {store}" for name in ("report", "info")),
        *(f"store {name} {store}" for name in ("df", "ls", "ls -l", "fsck", "clean")),
        f"store ls {store} c",
    ):
        outcome = zonestore(*command.split(), "--json")
        assert isinstance(outcome.json, (dict, list)), command
        assert zonestore("--json", *command.split()).code == 0


def test_a_reader_that_goes_away_ends_a_command_without_a_word(zonestore, store, tmp_path):
    zonestore("store", "put", store, "-", "c/o", stdin=b"x" * 3_000_000)
    zonestore(*"drive create f.zoned --profile test-small --size 128MiB".split())
    zonestore("fs", "mkfs", "f.zoned")
    for command in (
        *("drive report d.zoned", "drive info d.zoned --json", "drive profiles", "store df d.zoned"),
        *("store ls d.zoned", "store get d.zoned c/o", "store fsck d.zoned", "fs ls f.zoned --json"),
        *("fs df f.zoned", "fs dump f.zoned", "fs top --once f.zoned", "fs mount-info f.zoned"),
    ):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(
            [zonestore.path, *command.split()],
            cwd=tmp_path,
            stdout=writer,
            stderr=subprocess.PIPE,
            timeout=TIMEOUT,
        )
        os.close(writer)
        # What a shell says of a program that SIGPIPE ended.
        assert (done.returncode, done.stderr) == (141, b""), command


def test_bench_ingest_measures_and_leaves_nothing(zonestore, tmp_path):
    zonestore(*"drive create d.zoned --profile test-small --size 256MiB".split())
    zonestore("store", "mkfs", "d.zoned")
    zonestore("store", "put", "d.zoned", "-", "c/mine", stdin=b"stays")
    report = zonestore(
        *"bench ingest d.zoned --rounds 2 --large-total 16MiB --small-total 2MiB".split(),
        *("--medium-total", "4MiB", "--tiny-total", "1MiB", "--json"),
    ).json
    large, _, _, tiny = report["results"]
    sizes = [result["object_bytes"] for result in report["results"]]
    assert sizes == [4 << 20, 1 << 20, 64 << 10, 4 << 10] and tiny["flush_every_objects"] == 1
    assert large["store_bytes_per_second"] > 0 and large["ratio_one_flush"] > 0
    assert all(result["ratio_read"] > 0 for result in report["results"])
    assert 1 <= large["drive_bytes_per_object_byte"] < 2
    assert report["peak_memory_bytes"] > 0 and len(large["rounds"]) == 2
    assert sorted(os.listdir(tmp_path)) == ["d.zoned"]
    assert zonestore("store", "ls", "d.zoned").text == "c\n"
    assert zonestore("store", "get", "d.zoned", "c/mine").out == b"stays"
    zonestore("store", "fsck", "--deep", "d.zoned")
    zonestore.try_("bench", "ingest", "d.zoned", "--large-total", "1TiB").failed(5)


def test_bench_scale_counts_what_an_operation_costs(zonestore):
    arguments = "bench scale --objects 400,200 --bytes 100,64KiB --concurrency 2".split()
    stages = zonestore(*arguments, "--json").json
    assert [stage["objects"] for stage in stages] == [200, 400] * 4
    for stage in stages:
        assert stage["puts"]["bytes_written"] > stage["object_bytes"]
        assert stage["overwrites"]["bytes_written"] > stage["object_bytes"]
        # A look for what is not there is answered by the filters.
        assert stage["misses"]["reads"] < 0.1
        assert stage["mount_clean_seconds"] > 0 and stage["mount_killed_seconds"] > 0


def test_bench_append_compares_both_ways(zonestore):
    command = "bench append --writers 1,3 --objects 30 --rounds 1 --latency-micros 50 --json"
    figures = zonestore(*command.split()).json
    assert [figure["writers"] for figure in figures] == [1, 3]
    assert all(figure["ratio"] > 0 for figure in figures)


def test_bench_ingest_of_nothing_is_a_mistake(zonestore, store):
    bench = "bench", "ingest", store, "--rounds", "1", "--medium-total", "0"
    error = zonestore.try_(*bench, "--large-total", "1").failed(2)
    assert "--large-total" in error
    assert "--small-total" in zonestore.try_(*bench, "--small-total", "65535").failed(2)
    nothing = "--large-total", "0", "--small-total", "0", "--tiny-total"
    zonestore.try_(*bench, *nothing, "0").failed(2)
    report = zonestore(*bench, *nothing, "64KiB", "--json").json
    assert [result["object_bytes"] for result in report["results"]] == [4 << 10]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_benchmark_that_is_stopped_leaves_nothing(zonestore, store, tmp_path, how):
    process = zonestore.start(
        *("bench", "ingest", store, "--rounds", "1000"),
        *("--large-total", "8MiB", "--medium-total", "1MiB", "--small-total", "1MiB"),
    )
    beside = tmp_path / f"d.zoned.bench-{process.pid}"
    deadline = time.monotonic() + TIMEOUT
    while not beside.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(how)
    _, error = process.communicate(timeout=TIMEOUT)
    if how == signal.SIGKILL:
        # The next run takes away what this one could not.
        again = zonestore(
            *("bench", "ingest", store, "--rounds", "1", "--json"),
            *("--large-total", "0", "--medium-total", "0", "--small-total", "64KiB"),
        )
        assert "was killed" in again.err
    else:
        assert process.returncode == 1 and "interrupted" in error, error
    assert os.listdir(tmp_path) == ["d.zoned"]
    assert zonestore("store", "ls", "-a", store).text == ""


def test_a_collection_of_the_benchmarks_name_is_not_taken_for_its_own(zonestore, store):
    zonestore("store", "put", store, "-", "zonestore-bench/mine", stdin=b"stays")
    bench = "bench", "ingest", store, "--rounds", "1", "--large-total", "0", "--medium-total", "0", "--small-total", "64KiB"
    hint = zonestore.try_(*bench).failed(8)
    assert "rm -r" in hint and "another drive" in hint and "--yes" not in hint, hint
    assert zonestore("store", "get", store, "zonestore-bench/mine").out == b"stays"


@pytest.mark.parametrize("option", ["--num", "--reads", "--sync-num"])
def test_a_benchmark_of_nothing_is_refused(zonestore, tmp_path, option):
    outcome = zonestore.try_("bench", "rocksdb", "r.zoned", option, "0")
    assert outcome.code == 2 and option in outcome.err and not list(tmp_path.iterdir())


def test_bench_rocksdb_measures_and_leaves_nothing(zonestore, tmp_path):
    report = zonestore(
        *"bench rocksdb r.zoned --num 5000 --reads 2000 --sync-num 20 --rounds 1".split(),
        *"--size 512MiB".split(),
        *"--profile test-small --json".split(),
    ).json
    assert [r["name"] for r in report["results"]] == [
        *("fillrandom", "overwrite", "readrandom", "readwhilewriting", "readwhilewriting p99.9"),
        "fillsync",
    ]
    assert all(r["ratio"] > 0 for r in report["results"])
    assert report["drive_bytes_per_byte_asked"] > 0.5
    assert os.listdir(tmp_path) == []
    (tmp_path / "r.zoned").write_text("mine")
    zonestore.try_("bench", "rocksdb", "r.zoned").failed(8)
    assert (tmp_path / "r.zoned").read_text() == "mine"


def test_bench_bluefs_measures_and_leaves_nothing(zonestore, tmp_path):
    # Amplification takes a minute on the smallest drive that tells anything.
    figures = zonestore(
        *"bench bluefs r.zoned --json --only flushes,stream,mount --sync-num 20".split(),
        *"--stream-bytes 4MiB --rounds 1 --zones 200 --files 30".split(),
    ).json
    values = {figure["name"].strip(): figure["value"] for figure in figures}
    # A put is one flush; of so few of them mount and unmount are a good part.
    assert 1 <= values["flushes for each synced put, mount and unmount included"] < 3
    for name in ("one SST", "mount after a clean stop", "mount after a crash"):
        assert values[name] > 0
    assert os.listdir(tmp_path) == []
    (tmp_path / "r.zoned").write_text("mine")
    zonestore.try_("bench", "bluefs", "r.zoned").failed(8)
    assert (tmp_path / "r.zoned").read_text() == "mine"


@pytest.mark.parametrize(
    "wrong",
    ["store nonsense", "fs ls", "drive create d.zoned --size", "nonsense", "drive create d.zoned --size x"],
)
def test_a_mistake_is_one_line_of_json(zonestore, wrong):
    outcome = zonestore.try_(*wrong.split(), "--json")
    assert outcome.code == 2
    error = json.loads(outcome.err)["error"]
    assert error["exit_code"] == 2 and error["hint"] == "--help explains"
    assert "Usage" not in error["message"] and "For more information" not in error["message"]


def test_of_two_drives_the_one_without_a_store_is_named(zonestore, store, tmp_path):
    other = tmp_path / "my drive's.zoned"
    zonestore("drive", "create", other, "--profile", "test-small", "--size", "128MiB")
    zonestore("store", "backup", store, "--to", "whole.tar")
    # As a shell takes it.
    word = "'" + str(other).replace("'", "'\\''") + "'"
    assert shlex.split(word) == [str(other)]
    for command in (
        ("salvage", store, "--to", other),
        ("backup", store, "--to", other),
        ("backup", other, "--to", "more.tar"),
        ("restore", "whole.tar", "--to", other),
        ("import", other, "whole.tar"),
        ("ls", other),
    ):
        failed = zonestore.try_("store", *command).failed(7)
        assert f"{other}: the drive holds no object store" in failed, (command, failed)
        assert f"zonestore store mkfs {word}" in failed, (command, failed)


def test_a_drive_that_exists_is_described_behind_its_name(zonestore, drive):
    refused = zonestore.try_("drive", "create", drive, "--size", "2GiB").failed(8)
    assert f"{drive}: exists already and is left as it is: an empty zoned drive" in refused, refused


def test_a_terminal_that_can_only_print_gets_lines(zonestore, store):
    view, terminal = os.openpty()
    environment = {**zonestore.environment, "TERM": "dumb"}
    done = subprocess.run([zonestore.path, "fs", "top", store], stdin=terminal, stdout=terminal, env=environment, timeout=TIMEOUT)
    os.close(terminal)
    assert done.returncode == 0 and b"\x1b[" not in os.read(view, 1 << 16)
