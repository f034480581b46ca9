"""Older and newer versions are refused by name, with what to do, before anything is written."""

import golden
import pytest

CASES = [
    (["drive", "report"], "file-drive-2", 0, "versions 1 to 2", 1),
    (["drive", "report"], "file-drive-2", 3, "versions 1 to 2", 1),
    (["fs", "ls"], "bluefs-6", 5, "versions 6 and 7", 1),
    (["fs", "ls"], "bluefs-6", 8, "versions 6 and 7", 1),
    (["fs", "mkfs"], "bluefs-6", 8, "", 8),
]


@pytest.mark.parametrize(("command", "folder", "version", "known", "code"), CASES)
def test_drives(zonestore, command, folder, version, known, code):
    content = golden.image(folder, f"version-{version}")
    drive = zonestore.write("d.zoned", content)
    outcome = zonestore.try_(*command, drive).answers(code, ["hint: "])
    if code == 1:
        outcome.answers(1, [f"version {version}", known, "use the program version that made"])
    assert drive.read_bytes() == content


@pytest.mark.parametrize("version", [4, 6])
def test_states_of_models(zonestore, version):
    zonestore.write("p.toml", golden.image("model-state-5", "disk-profile"))
    content = golden.image("model-state-5", f"version-{version}")
    state = zonestore.write("d.state", content)
    run = ["model", "run", "./p.toml", "--runtime", "1s", "--state", state]
    zonestore.try_(*run).answers(8, [f"version {version}", "version 5", "hint: nothing was written to it"])
    assert state.read_bytes() == content
