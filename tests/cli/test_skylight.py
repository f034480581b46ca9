"""zonestore skylight: what is inside a model, a file or a block device."""

import contextlib
import fcntl
import json
import os
import pty
import signal
import subprocess

import pytest
from conftest import TIMEOUT, digest, heed_signals


def test_the_models_are_listed(zonestore):
    names = zonestore("skylight", "--json").json["models"]
    assert {"st5000as0011", "emulated-smr-1", "seagate-cmr", "zns-zn540"} <= set(names)
    assert zonestore("skylight").text.split() == names


def test_a_drive_is_found_out_as_printed(zonestore):
    text = zonestore("skylight", "st5000as0011").text
    for words in ("single, at the OD", "20 GiB", "200,000", "17–36 MiB", "static", "aggressive", "FIFO",
                  "8 (4 platters)", "towards the MD", "yes, by a power cut"):
        assert words in text
    found = zonestore("skylight", "st5000as0011", "--json").json["findings"]
    assert found["drive_type"]["value"] == "drive-managed"
    assert found["stream_bytes"] == 8 << 20


def test_the_same_seed_finds_the_same(zonestore):
    once, again = (zonestore("skylight", "st8000as0002", "--seed", "5").text for _ in range(2))
    assert once == again


def test_quick_says_what_kind_of_drive_it_is(zonestore):
    def kind(name):
        found = zonestore("skylight", name, "--quick", "--json").json["findings"]
        assert found["seconds"] < 60
        return found["drive_type"]["value"]

    assert kind("seagate-cmr") == "conventional"
    assert kind("wd40nmzw") == "drive-managed"
    assert kind("hm-smr-14tb") == "host-managed"
    assert kind("ssd-15gb") == "flash"


def test_a_page_with_figures_needs_nothing_else(zonestore, tmp_path):
    file = tmp_path / "report.html"
    zonestore("skylight", "seagate-cmr", "--html", str(file))
    page = file.read_text()
    assert "conventional" in page and page.count("<svg") == 3
    assert "Figure 2.22" in page and "<script" not in page and "src=" not in page
    assert "Not all was done" not in page


def test_a_page_that_cannot_be_written_is_told_before_anything_is_asked(zonestore, tmp_path, solid):
    nowhere = tmp_path / "none" / "report.html"
    for target, more in (("seagate-cmr", []), (solid, ["--yes-overwrite"])):
        before = digest(solid)
        outcome = zonestore.try_("skylight", target, "--html", nowhere, *more)
        assert "cannot write the page" in outcome.failed(3)
        assert outcome.out == b"" and digest(solid) == before


def test_a_model_that_is_none(zonestore):
    outcome = zonestore.try_("skylight", "nonsense")
    assert outcome.code == 3 and "nonsense" in outcome.err and "hint: " in outcome.err
    error = zonestore.try_("skylight", "caveat-scriptor").failed(2)
    assert "damages" in error and "hint: " in error


def test_a_profile_of_ones_own(zonestore, tmp_path):
    text = zonestore("model", "show", "seagate-cmr").text.replace('name = "seagate-cmr"', 'name = "mine"')
    profile, alias = tmp_path / "mine.toml", tmp_path / "alias"
    # Long enough to pass for a file that can be looked into.
    profile.write_text(text + "#" * (65 << 20))
    alias.symlink_to(profile)
    before = digest(profile)
    for target in (profile, "mine.toml", alias):
        outcome = zonestore("skylight", target, "--quick", "--yes-overwrite", "--json")
        assert outcome.json["findings"]["drive_type"]["value"] == "conventional"
        assert outcome.json["device"] is None and "Everything on it" not in outcome.err
        assert digest(profile) == before
    zonestore.try_("skylight", "none.toml").failed(3)
    profile.write_text("name = 1\n")
    assert "hint: " in zonestore.try_("skylight", profile).failed(2)
    scriptor = zonestore("model", "show", "caveat-scriptor").text
    profile.write_text(scriptor)
    assert "damages" in zonestore.try_("skylight", profile).failed(2)


def test_a_models_time_has_an_end(zonestore, tmp_path):
    page = tmp_path / "page.html"
    outcome = zonestore("skylight", "st5000as0011", "--budget", "5min", "--html", page, "--json")
    found = outcome.json["findings"]
    assert outcome.json["stopped"] == "the time given is over"
    assert 300 <= found["seconds"] < 302 and found["drive_type"]["value"] == "drive-managed"
    missing = outcome.json["missing"]
    assert "test 15, streaming" in missing and "test 1, drive type" not in missing
    front = page.read_text().split("<table>")[0]
    assert "the time given is over" in front and "test 15, streaming" in front
    text = zonestore("skylight", "st5000as0011", "--budget", "0s").text
    assert "Not all was done: the time given is over." in text and "test 1, drive type" in text
    none = zonestore("skylight", "seagate-cmr", "--read-only", "--budget", "0s", "--json").json
    assert none["stopped"] == "the time given is over" and none["readings"]["turn_ms"] is None


def test_reading_a_model_says_less(zonestore):
    read = zonestore("skylight", "seagate-cmr", "--read-only", "--json").json["readings"]
    assert abs(read["turn_ms"] - 60e3 / 5900) < 0.01
    first, last = read["rates"][0][1], read["rates"][-1][1]
    assert first > 1.5 * last
    seeks = [milliseconds for _, milliseconds in read["seeks_ms"]]
    assert seeks[0] < seeks[-1]
    assert "shingled" in read["unknown"][-1]
    flash = zonestore("skylight", "ssd-15gb", "--read-only", "--json").json["readings"]
    assert flash["turn_ms"] is None and flash["drive_type"]["value"] == "flash"
    assert flash["unknown"] == []


@pytest.fixture
def solid(zonestore, tmp_path):
    """A file without holes, where a file takes direct I/O and is written in place."""
    path = tmp_path / "solid"
    fill(path)
    outcome = zonestore.try_("skylight", path, "--read-only")
    if outcome.code == 2:
        pytest.skip(outcome.err)
    return path


def fill(path):
    with open(path, "wb") as file:
        file.write(os.urandom(64 << 20))
        os.fsync(file.fileno())


def test_a_file_is_read_in_real_time_and_stays_as_it_is(zonestore, solid):
    before = digest(solid)
    outcome = zonestore("skylight", solid, "--read-only", "--json")
    assert outcome.json["target"] == str(solid) and outcome.json["stopped"] is None
    assert outcome.json["device"]["device"] is False
    assert len(outcome.json["readings"]["rates"]) == 64
    assert digest(solid) == before


def test_nothing_is_overwritten_unasked(zonestore, solid):
    before = digest(solid)
    error = zonestore.try_("skylight", solid, "--quick").failed(8)
    assert str(solid) in error and "--yes-overwrite" in error
    assert digest(solid) == before


def test_a_file_is_never_called_drive_managed(zonestore, solid):
    before = digest(solid)
    outcome = zonestore("skylight", solid, "--yes-overwrite", "--json")
    assert f"{solid}: file, 64 MiB" in outcome.err
    kind = outcome.json["findings"]["drive_type"]
    assert kind is None or kind["value"] != "drive-managed"
    assert kind is not None or outcome.json["findings"]["unknown"]
    assert digest(solid) != before


def typed(zonestore, path, text):
    """What becomes of a command whose question is answered at a terminal."""
    ours, theirs = pty.openpty()
    command = [zonestore.path, "skylight", path, "--quick", "--json"]
    process = subprocess.Popen(command, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE)
    os.close(theirs)
    asked = b""
    while b"to go on: " not in asked:
        asked += os.read(ours, 4096)
    os.write(ours, text.encode() + b"\n")
    out = process.communicate(timeout=TIMEOUT)[0]
    os.close(ours)
    return process.returncode, asked.decode(), out


def shown_until(ours, mark):
    """What a terminal shows, up to a mark."""
    shown = b""
    while mark not in shown:
        shown += os.read(ours, 4096)
    return shown.decode()


def test_ctrl_c_keeps_what_was_found_of_a_model(zonestore, tmp_path):
    page = tmp_path / "page.html"
    command = [zonestore.path, "skylight", "st5000as0011", "--html", page]
    for _ in range(5):
        page.unlink(missing_ok=True)
        ours, theirs = pty.openpty()
        process = subprocess.Popen(command, stderr=theirs, stdout=subprocess.PIPE, preexec_fn=heed_signals)
        os.close(theirs)
        shown = shown_until(ours, b"test 11, band size")
        process.send_signal(signal.SIGINT)
        out = process.communicate(timeout=TIMEOUT)[0].decode()
        os.close(ours)
        # 0: all was done before the signal came.
        if process.returncode != 0:
            break
    assert process.returncode == 1
    assert "Not all was done: interrupted." in out and "single, at the OD" in out
    front = page.read_text().split("<table>")[0]
    assert "interrupted" in front and "test 15, streaming" in front
    # The test and the drive's own time, and no numbers of nothing.
    assert "of the drive's time" in shown and "/s" not in shown


def test_ctrl_c_at_the_question_leaves_nothing_of_a_page(zonestore, solid, tmp_path):
    ours, theirs = pty.openpty()
    command = [zonestore.path, "skylight", solid, "--html", tmp_path / "page.html"]
    process = subprocess.Popen(command, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE, preexec_fn=heed_signals)
    os.close(theirs)
    shown_until(ours, b"to go on: ")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=TIMEOUT)
    os.close(ours)
    assert process.returncode == -signal.SIGINT and os.listdir(tmp_path) == ["solid"]


def test_nothing_is_shown_before_the_question(zonestore, solid):
    code, asked, _ = typed(zonestore, solid, "no")
    assert code == 8
    assert "\x1b" not in asked and asked.startswith(f"{solid}: file"), asked


def test_the_name_has_to_be_typed(zonestore, solid):
    before = digest(solid)
    code, asked, out = typed(zonestore, solid, "yes")
    assert code == 8 and out == b"" and digest(solid) == before
    assert "64 MiB (67108864 bytes)" in asked and "on it: " in asked
    code, _, out = typed(zonestore, solid, str(solid))
    assert code == 0 and json.loads(out)["stopped"] is None and digest(solid) != before


def test_a_time_that_is_over_leaves_what_was_found(zonestore, solid):
    outcome = zonestore("skylight", solid, "--yes-overwrite", "--budget", "0s", "--json")
    assert outcome.json["stopped"] == "the time given is over"
    assert zonestore.try_("skylight", solid, "--budget", "5 parsecs").code == 2


def test_a_file_that_is_cut_off_meanwhile(zonestore, solid):
    command = ["skylight", str(solid), "--yes-overwrite", "--json"]
    for _ in range(5):
        process = zonestore.start(*command)
        for line in process.stderr:
            if "Everything on it will be lost" in line:
                break
        os.truncate(solid, 1 << 20)
        out, err = process.communicate(timeout=TIMEOUT)
        # 0: all was done before that.
        if process.returncode != 0:
            break
        fill(solid)
    assert process.returncode == 1
    # The error is JSON too, behind what is said in words of what is overwritten.
    error = json.loads(err.splitlines()[-1])["error"]
    assert error["exit_code"] == 1 and error["message"].startswith(f"{solid}: ")
    assert json.loads(out)["stopped"] is not None
    assert os.path.getsize(solid) == 1 << 20


def test_what_cannot_be_looked_into(zonestore, solid, tmp_path):
    hole = tmp_path / "hole"
    with open(hole, "wb") as file:
        file.truncate(64 << 20)
    # Nothing would be destroyed: it is nothing that can be looked into.
    assert "hole at byte 0" in zonestore.try_("skylight", hole, "--read-only").failed(2)
    assert "few" in small(zonestore, tmp_path).failed(2)
    zonestore.try_("skylight", tmp_path, "--read-only").failed(2)
    zonestore.try_("skylight", "/dev/null", "--read-only").failed(2)
    zonestore.try_("skylight", tmp_path / "none", "--read-only").failed(3)
    with open(solid, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        before = digest(solid)
        zonestore.try_("skylight", solid, "--yes-overwrite").failed(4)
        assert digest(solid) == before


def small(zonestore, tmp_path):
    path = tmp_path / "small"
    path.write_bytes(os.urandom(1 << 20))
    return zonestore.try_("skylight", path, "--read-only")


@contextlib.contextmanager
def looped(*arguments):
    """A loop device."""
    made = subprocess.run(["losetup", "-f", "--show", *arguments], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip("no loop device")
    loop = made.stdout.strip()
    try:
        yield loop
    finally:
        subprocess.run(["losetup", "-d", loop], check=True)


def test_a_block_device_that_is_in_use(zonestore, solid):
    with looped(solid) as loop:
        before = digest(solid)
        held = os.open(loop, os.O_RDWR | os.O_EXCL)
        try:
            zonestore.try_("skylight", loop, "--yes-overwrite").failed(4)
        finally:
            os.close(held)
        assert digest(solid) == before
        outcome = zonestore("skylight", loop, "--quick", "--yes-overwrite", "--json")
        assert outcome.json["device"]["device"] is True
        kind = outcome.json["findings"]["drive_type"]
        assert kind is None or kind["value"] != "drive-managed"


def test_a_file_behind_a_loop_device_is_in_use(zonestore, solid, tmp_path):
    other = tmp_path / "other name"
    os.link(solid, other)
    with looped(solid) as loop:
        before = digest(solid)
        for name in (solid, other):
            outcome = zonestore.try_("skylight", name, "--quick", "--yes-overwrite")
            assert loop in outcome.failed(4)
            assert digest(solid) == before
        zonestore("skylight", solid, "--read-only")


def test_a_device_that_takes_no_writes(zonestore, solid):
    with looped("-r", solid) as loop:
        error = zonestore.try_("skylight", loop, "--yes-overwrite").failed(1)
        assert "read-only" in error and "hint: --read-only" in error
        zonestore("skylight", loop, "--read-only")
