"""The state of a model: the oracle and the program against the golden ones."""

import golden
import model_state
import pytest

FOLDER = "model-state-5"
STATES = [name for name in golden.names(FOLDER) if not name.endswith("-profile")]


def profile(name):
    return golden.image(FOLDER, f"{name}-profile" if f"{name}-profile" in golden.names(FOLDER) else "disk-profile")


@pytest.mark.parametrize("name", STATES)
def test_oracle(name):
    expected = golden.expected(FOLDER, name)
    content = golden.image(FOLDER, name)
    if refused := expected.get("refused"):
        with pytest.raises(model_state.Refused, match=refused):
            model_state.read(content, profile(name))
        return
    state = model_state.read(content, profile(name))
    assert (state.clock_nanoseconds, len(state.model)) == (expected["clock"], expected["model_bytes"])


@pytest.mark.parametrize("name", STATES)
def test_program(zonestore, name):
    expected = golden.expected(FOLDER, name)
    zonestore.write("p.toml", profile(name))
    content = golden.image(FOLDER, name)
    state = zonestore.write("d.state", content)
    run = ["model", "run", "./p.toml", "--runtime", "1s", "--size", "16MiB", "--rw", "read", "--state", state]
    zonestore.try_(*run).answers(expected["exit_code"], expected.get("says", []))
    if "refused" in expected:
        assert state.read_bytes() == content
    else:
        after = model_state.read(state.read_bytes(), profile(name))
        assert after.clock_nanoseconds > expected["clock"]


GIVEN_UP = "model-state-4"
# Where the header or the magic is gone, there is no version to name; a later version is no longer one.
WITH_VERSION = [name for name in golden.names(GIVEN_UP) if not name.endswith("-profile") and name not in ("magic", "header-only", "version-5")]


@pytest.mark.parametrize("name", WITH_VERSION)
def test_given_up(zonestore, name):
    content = golden.image(GIVEN_UP, name)
    text = golden.image(GIVEN_UP, f"{name}-profile" if f"{name}-profile" in golden.names(GIVEN_UP) else "disk-profile")
    with pytest.raises(model_state.Refused, match="version"):
        model_state.read(content, text)
    zonestore.write("p.toml", text)
    state = zonestore.write("d.state", content)
    run = ["model", "run", "./p.toml", "--runtime", "1s", "--state", state]
    zonestore.try_(*run).answers(8, ["version 5", "hint: nothing was written to it"])
    assert state.read_bytes() == content
