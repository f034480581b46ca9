"""zonestore experiment: what is printed, beside what is measured."""

import signal
import subprocess
import time

from conftest import TIMEOUT, heed_signals


def test_the_list_says_where_numbers_are_printed(zonestore):
    experiments = zonestore("experiment", "list", "--json").json["experiments"]
    ids = [experiment["id"] for experiment in experiments]
    assert len(set(ids)) == len(ids)
    assert {"table-2.1", "table-2.3", "figure-3.1", "figure-5.11", "figure-5.12", "zn540-reset", "cleaning-store"} <= set(ids)
    for experiment in experiments:
        assert experiment["title"] and experiment["source"] and experiment["numbers"]
    text = zonestore("experiment", "list").text
    assert all(id in text for id in ids)


def test_a_table_has_what_is_printed_beside_what_is_measured(zonestore):
    (table,) = zonestore("experiment", "run", "figure-2.6", "--json").json
    assert table["id"] == "figure-2.6"
    _, first, second, _ = table["rows"]
    assert first["printed"] == [5, 5] and first["within"]
    assert first["ratio"] == first["measured"] / 5
    assert second["printed"] == [0.216, 0.216] and second["asked"] == [None, None]
    text = zonestore("experiment", "run", "figure-2.6").text
    assert "printed" in text and "0.216" in text and "out of tolerance" not in text


def test_what_is_not_printed_is_not_in_the_printed_column(zonestore):
    (table,) = zonestore("experiment", "run", "figure-2.25", "--json").json
    rows = {row["what"]: row for row in table["rows"]}
    to_and_fro = rows["st8000as0002: to and fro in the middle"]
    assert to_and_fro["printed"] == [None, None] and to_and_fro["asked"] == [1, 1] and to_and_fro["within"]
    assert rows["st5000as0011: to and fro in the middle"]["printed"] == [1, 1]
    assert "st8000as0002: to and fro in the middle (asked: yes)" in zonestore("experiment", "run", "figure-2.25").text


def test_tables_and_figures_go_into_a_directory(zonestore, tmp_path):
    zonestore("experiment", "run", "zn540-finish", "figure-2.25", "--out", "a/b")
    files = sorted(path.name for path in (tmp_path / "a" / "b").iterdir())
    assert files == ["figure-2.25.json", "zn540-finish.json", "zn540-finish.svg"]
    assert (tmp_path / "a" / "b" / "zn540-finish.svg").read_text().startswith("<svg")


def test_a_directory_that_cannot_be_used_is_said_before_anything_runs(zonestore, tmp_path):
    (tmp_path / "file").touch()
    for folder in ("file", "file/below", "/proc"):
        outcome = zonestore.try_("experiment", "run", "figure-2.6", "--out", folder)
        assert outcome.code not in (0, 2, 12) and "--out" in outcome.err and not outcome.out


def test_what_was_measured_is_printed_although_it_cannot_be_written(zonestore, tmp_path):
    (tmp_path / "out" / "figure-2.6.json").mkdir(parents=True)
    outcome = zonestore.try_("experiment", "run", "figure-2.6", "--out", "out", "--json")
    assert outcome.code not in (0, 2, 12) and "figure-2.6.json" in outcome.err
    assert [table["id"] for table in outcome.json] == ["figure-2.6"]


def test_the_same_seed_gives_the_same_table(zonestore):
    def run(seed):
        return zonestore("experiment", "run", "figure-2.6", "--seed", seed, "--json").json

    assert run(1) == run(1) != run(2)


def test_what_does_not_exist_is_said(zonestore):
    assert "experiment list" in zonestore.try_("experiment", "run", "table-9.9").failed(3)
    assert "did you mean table-2.1?" in zonestore.try_("experiment", "run", "table2.1").failed(3)
    assert "did you mean" not in zonestore.try_("experiment", "run", "xyz").failed(3)
    for scale in ("0", "huge", "-1", "101"):
        assert zonestore.try_("experiment", "run", "figure-2.6", f"--scale={scale}").code == 2


def test_ctrl_c_leaves_what_was_done(zonestore):
    command = [zonestore.path, "experiment", "run", "figure-2.6", "table-2.3"]
    for _ in range(5):
        process = subprocess.Popen(command, bufsize=0, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=heed_signals)
        first = process.stdout.read(11)
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        rest, error = process.communicate(timeout=TIMEOUT)
        # 0: all was done before the signal came.
        if process.returncode != 0:
            break
    assert first == b"figure-2.6:" and b"measured" in rest
    assert process.returncode == 1 and b"table-2.3: interrupted" in error
