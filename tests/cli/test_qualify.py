"""`zonestore drive qualify` and `drive power-test`: a drive is tried, and what it must not do is found."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest


@pytest.fixture
def drive(zonestore, tmp_path):
    path = tmp_path / "d.zoned"
    zonestore("drive", "create", path, "--size", "128MiB", "--zone-size", "2MiB", "--conventional", "2", "--max-active", "14", "--max-open", "14")
    return path


def test_a_drive_is_tried_and_the_report_says_what_was_found(zonestore, drive, tmp_path):
    assert "--yes-erase" in zonestore.try_("drive", "qualify", drive).failed(8)
    report = tmp_path / "report.md"
    quick = ("--most-time", "1s", "--zones", "2")
    found = zonestore("drive", "qualify", drive, "--yes-erase", "--report", report, *quick, "--json").json
    assert found["conformance"]["passed"]["notes"] and not any(remark["is_fault"] for remark in found["remarks"])
    probes = {measured["probe"] for measured in found["speed"]}
    assert {"write in order", "read in order", "read at random", "write and flush", "reset", "report"} <= probes
    assert all(measured["latency_us"]["p99"] >= measured["latency_us"]["median"] for measured in found["speed"])
    text = report.read_text()
    assert "emulated" in text and all(f"| {probe} |" in text for probe in probes)
    # What was tried may be used; its conventional zones cannot be emptied as others are.
    zonestore("store", "mkfs", drive, "--force")


def catches(process, number):
    [line] = [line for line in Path(f"/proc/{process.pid}/status").read_text().splitlines() if line.startswith("SigCgt:")]
    return int(line.split()[1], 16) >> (number - 1) & 1


def test_a_report_that_is_interrupted_leaves_no_file(zonestore, drive, tmp_path):
    process = zonestore.start("drive", "qualify", drive, "--yes-erase", "--report", "q.md", "--most-time", "60s")
    while process.poll() is None and not (list(tmp_path.glob("q.md.*")) and catches(process, signal.SIGTERM)):
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    process.wait()
    assert process.returncode == -signal.SIGTERM and os.listdir(tmp_path) == ["d.zoned"]


def test_few_active_zones_are_said(zonestore, tmp_path):
    path = tmp_path / "few.zoned"
    zonestore("drive", "create", path, "--size", "64MiB", "--zone-size", "2MiB", "--max-active", "5", "--max-open", "5")
    outcome = zonestore.try_("drive", "qualify", path, "--yes-erase", "--most-time", "1s", "--zones", "1")
    assert "needs 8" in outcome.text and "should not be trusted" in outcome.failed(1)


def test_zones_too_small_for_the_suite_are_no_broken_rule(zonestore, tmp_path):
    path = tmp_path / "small.zoned"
    zonestore("drive", "create", path, "--size", "1MiB", "--zone-size", "4KiB")
    outcome = zonestore("drive", "qualify", path, "--yes-erase", "--most-time", "1s", "--zones", "1")
    assert "not run: the cases write 12 blocks of a zone, and zones of this drive have 1" in outcome.text
    assert "cannot be tried" in zonestore.try_("drive", "conformance", path, "--yes-erase").failed(1)


def test_what_was_flushed_is_there_after_a_kill_and_missing_it_is_found(zonestore, drive, tmp_path):
    log = tmp_path / "power.log"
    test = ("drive", "power-test", drive, "--log", log)
    assert "--yes-erase" in zonestore.try_(*test).failed(8)
    assert zonestore.try_(*test, "--check").code == 3
    for round in (1, 2):
        writer = zonestore.start(*test, "--yes-erase", "--zones", "8")
        while not log.exists() or log.read_text().count("round ") < round or log.read_text().rsplit("round ")[-1].count("flushed ") < 20:
            assert writer.poll() is None
            time.sleep(0.02)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        assert "not checked" in zonestore.try_(*test, "--yes-erase", "--flushes", "1").failed(8)
        # A line that the power took in the middle.
        with log.open("a") as torn:
            torn.write("flush")
        kept = zonestore(*test, "--check", "--json").json
        assert kept["faults"] == [] and kept["flushed"] >= 20 and kept["flushed_bytes"] > 0, kept
    zonestore("drive", "qualify", drive, "--yes-erase", "--power-log", log, "--most-time", "1s", "--zones", "1")
    # That has erased what the round had written.
    assert "has not kept" in zonestore.try_(*test, "--check").failed(6)
    outcome = zonestore.try_("drive", "qualify", drive, "--yes-erase", "--power-log", log, "--most-time", "1s", "--zones", "1")
    assert "in 1 of 2 rounds" in outcome.text and "should not be trusted" in outcome.failed(1)


def test_a_log_of_something_else_is_refused(zonestore, drive, tmp_path):
    log = tmp_path / "power.log"
    test = ("drive", "power-test", drive, "--log", log)
    log.write_text("hello\n")
    for more in (["--check"], ["--yes-erase"]):
        assert "line 1" in zonestore.try_(*test, *more, "--flushes", "1").failed(2)
    assert log.read_text() == "hello\n"
    os.unlink(log)
    zonestore(*test, "--yes-erase", "--flushes", "3", "--zones", "8")
    other = tmp_path / "other.zoned"
    zonestore("drive", "create", other, "--size", "64MiB", "--zone-size", "2MiB")
    refused = zonestore.try_("drive", "power-test", other, "--log", log, "--check").failed(2)
    assert "another shape" in refused, refused


def test_a_round_without_a_cut_is_told_apart(zonestore, drive, tmp_path):
    log, quick = tmp_path / "power.log", ("--yes-erase", "--most-time", "1s", "--zones", "1")
    test = ("drive", "power-test", drive, "--log", log)
    zonestore(*test, "--yes-erase", "--flushes", "3", "--zones", "8")
    checked = zonestore(*test, "--check").text
    assert "its power was not cut: " in checked and "all there" in checked, checked
    assert "its power was not cut: `zonestore" in zonestore("drive", "qualify", drive, "--power-log", log, *quick).text


def test_an_error_of_a_drive_that_still_answers_is_no_power_cut(zonestore, drive, tmp_path):
    log = tmp_path / "power.log"
    test = ("drive", "power-test", drive, "--log", log)
    # Zones from the sixth on cannot be written.
    limited = zonestore.start(*test, "--yes-erase", "--zones", "8", before=("prlimit", f"--fsize={10 << 20}"))
    _, error = limited.communicate()
    assert limited.returncode == 5 and "the drive still answers" in error and "ulimit -f" in error, error
    assert "its power was not cut: " in zonestore(*test, "--check").text
    quick = ("--yes-erase", "--most-time", "1s", "--zones", "1")
    assert "its power was not cut: `zonestore" in zonestore("drive", "qualify", drive, "--power-log", log, *quick).text


def test_a_log_of_another_drive_accuses_and_clears_none(zonestore, drive, tmp_path):
    log, other = tmp_path / "power.log", tmp_path / "other.zoned"
    zonestore("drive", "power-test", drive, "--log", log, "--yes-erase", "--flushes", "3", "--zones", "8")
    zonestore("drive", "create", other, "--size", "128MiB", "--zone-size", "2MiB", "--conventional", "2", "--max-active", "14", "--max-open", "14")
    before = log.read_text()
    assert "of another drive" in zonestore.try_("drive", "power-test", other, "--log", log, "--check").failed(2)
    assert log.read_text() == before
    zonestore("drive", "power-test", drive, "--log", log, "--check")
    refused = zonestore.try_("drive", "qualify", other, "--yes-erase", "--power-log", log, "--zones", "1").failed(2)
    assert "of another drive" in refused, refused
    assert "of another drive" in zonestore.try_("drive", "power-test", other, "--log", log, "--yes-erase").failed(2)
    # Before rounds named their drives.
    log.write_text('round {"version":1,"seed":5}\n')
    assert "of version 1" in zonestore.try_("drive", "power-test", drive, "--log", log, "--check").failed(2)


def test_flushes_can_be_noted_on_another_machine(zonestore, drive, tmp_path):
    log = tmp_path / "far.log"
    log.write_bytes(zonestore("drive", "power-test", drive, "--log", "-", "--yes-erase", "--flushes", "9", "--zones", "8").out)
    assert log.read_text().count("flushed") == 9
    assert "all there" in zonestore("drive", "power-test", drive, "--log", log, "--check").text


def test_a_log_that_cannot_be_written_says_what_to_name(zonestore, drive):
    failed = zonestore.try_("drive", "power-test", drive, "--log", "/dev/full", "--yes-erase", "--flushes", "3")
    assert "/dev/full: " in failed.failed(1) and "name a file in --log" in failed.err, failed.err


def test_a_log_that_is_open_already_is_refused(zonestore, drive, tmp_path):
    (tmp_path / "log").touch()
    with open(tmp_path / "log", "ab") as file:
        command = ("drive", "power-test", drive, "--log", "/dev/stderr", "--yes-erase", "--flushes", "3")
        done = subprocess.run([zonestore.path, *map(str, command)], cwd=tmp_path, stderr=file)
    assert done.returncode and "/dev/stderr: open already" in (tmp_path / "log").read_text()


def test_who_waits_for_the_other_end_of_a_pipe_is_told(zonestore, drive, tmp_path):
    """Nobody reads from the one or writes into the other. A log that has to be a file is refused at once."""
    for command, pipe in (
        (("drive", "qualify", drive, "--yes-erase", "--report"), "read"),
        (("model", "run", "--runtime", "1s"), "./written"),
    ):
        os.mkfifo(tmp_path / pipe)
        process = zonestore.start(*command, pipe)
        try:
            assert any(f"{pipe}: a pipe; waiting for a program" in line for line in process.stderr)
            assert process.poll() is None
        finally:
            process.kill()
            process.communicate()
    for check in ((), ("--check",)):
        refused = zonestore.try_("drive", "power-test", drive, "--log", "read", "--yes-erase", *check)
        assert refused.code and "pipe or device, and no file" in refused.err
