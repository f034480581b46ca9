"""scripts/compare: the table of docs/comparison.md is what the kept results say; the drive's statistics are read right."""

import json
import subprocess
import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "lab" / "compare"))
import damage  # noqa: E402
import drive  # noqa: E402
import store  # noqa: E402
import table  # noqa: E402

RESULTS = ROOT / "docs" / "figures" / "comparison.json"


def compare(*arguments):
    return subprocess.run([sys.executable, ROOT / "scripts" / "compare", *arguments], capture_output=True, text=True)


def test_the_document_has_the_table_of_the_kept_results():
    printed = compare("--table", RESULTS)
    assert printed.returncode == 0, printed.stderr
    text = (ROOT / "docs" / "comparison.md").read_text()
    shown = text.split("<!-- figures -->")[1].split("<!-- end of figures -->")[0]
    assert shown.strip() == printed.stdout.strip(), "scripts/compare --table docs/figures/comparison.json"


def test_what_failed_and_what_was_not_measured_is_in_the_table():
    results = json.loads(RESULTS.read_text())
    results["systems"] = {
        "some": {"label": "Some", "kernel": "7", "full": {"stored_of_raw": 0.5, "after_full": {"deleted": 3, "error": "gone"}},
                 "cuts": [{"error": "no mount"}, {"acknowledged": 7, "lost": 2, "wrong": 1, "mount": "as usual"}]}}
    lines = table.markdown(results).splitlines()
    rows = dict(line.strip("| ").rsplit(" | ", 1) for line in lines[2:] if line.startswith("| "))
    assert rows["the same, of the whole drive"] == "50.0 %"
    assert rows["A tenth deleted on the full drive: objects that fit again"] == "3 deleted, then: gone"
    assert rows["Power cut during synced puts of 64 KiB: acknowledged objects"] == "2 lost, 1 wrong of 7 in 2 cuts; no mount"
    assert rows["One bit of an object's data changed on the drive, then read"] == table.MISSING


def test_puts_that_end_before_the_power_does_are_an_error(monkeypatch):
    class Refusing:
        def format(self, drive):
            pass

        def put(self, name, content):
            raise drive.Failed("refused")

    class AtOnce:
        def __init__(self, target):
            self.start = target

        def join(self, seconds):
            pass

    class Drive:
        def cut(self):
            pass

    monkeypatch.setattr(damage.threading, "Thread", AtOnce)
    monkeypatch.setattr(damage.time, "sleep", lambda seconds: None)
    with pytest.raises(drive.Failed, match="refused"):
        damage.power_cut(Refusing(), Drive(), 0)


def test_the_drives_statistics():
    counts = drive.parse_stat("1 0 8 0 20 0 4000 0 0 0 0 3 0 5 0 7 0")
    assert (counts.writes, counts.bytes_written, counts.bytes_read, counts.flushes) == (20, 2_048_000, 4096, 7)
    assert counts.since(drive.parse_stat("0 0 0 0 5 0 0 0 0 0 0 0 0 0 0 2 0")).flushes == 5
    with pytest.raises(ValueError, match="11 fields"):
        drive.parse_stat("1 2 3 4 5 6 7 8 9 10 11")


def test_a_signature_is_the_same_for_the_same_request():
    signed = store.signature("PUT", "/compared/o1", "20260101T000000Z")
    assert signed.startswith("AWS4-HMAC-SHA256 Credential=comparison/20260101/us-east-1/s3/aws4_request, ")
    assert signed != store.signature("GET", "/compared/o1", "20260101T000000Z")


def test_unknown_words_are_refused():
    for arguments, words in ((["zfs"], "unknown system zfs"), (["--steps", "swim"], "unknown step swim")):
        refused = compare(*arguments)
        assert refused.returncode == 2 and words in refused.stderr
