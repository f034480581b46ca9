"""zonestore skylight: what is inside a model, a file or a block device."""

import fcntl
import json
import os
import pty
import subprocess

import pytest
from conftest import TIMEOUT, digest


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
    outcome = zonestore.try_("skylight", "seagate-cmr", "--html", str(tmp_path / "none" / "report.html"))
    assert outcome.code != 0 and "cannot write" in outcome.err


def test_a_model_that_is_none(zonestore):
    outcome = zonestore.try_("skylight", "nonsense")
    assert outcome.code == 3 and "nonsense" in outcome.err and "hint: " in outcome.err


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
    with open(path, "wb") as file:
        file.write(os.urandom(64 << 20))
        os.fsync(file.fileno())
    outcome = zonestore.try_("skylight", path, "--read-only")
    if outcome.code == 8:
        pytest.skip(outcome.err)
    return path


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
    process = zonestore.start(*command)
    for line in process.stderr:
        if "Everything on it will be lost" in line:
            break
    os.truncate(solid, 1 << 20)
    out, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 1 and f"zonestore: {solid}: " in err
    assert json.loads(out)["stopped"] is not None
    assert os.path.getsize(solid) == 1 << 20


def test_what_cannot_be_looked_into(zonestore, solid, tmp_path):
    hole = tmp_path / "hole"
    with open(hole, "wb") as file:
        file.truncate(64 << 20)
    assert "hole at byte 0" in zonestore.try_("skylight", hole, "--read-only").failed(8)
    assert "few" in small(zonestore, tmp_path).failed(8)
    zonestore.try_("skylight", tmp_path, "--read-only").failed(8)
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


def test_a_block_device_that_is_in_use(zonestore, solid):
    made = subprocess.run(["losetup", "-f", "--show", solid], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip("no loop device")
    loop = made.stdout.strip()
    try:
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
    finally:
        subprocess.run(["losetup", "-d", loop], check=True)
