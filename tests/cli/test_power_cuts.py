"""lab/power_cuts.py: what its clients meet while the power is on is a failure too."""

import concurrent.futures
import importlib.util
import random
import subprocess
import sys
import threading

import pytest

from conftest import ROOT

PROGRAM = ROOT / "lab" / "power_cuts.py"


@pytest.fixture
def power_cuts(monkeypatch):
    # It would set that for all tests.
    monkeypatch.setenv("ZONESTORE_BIN", "none")
    spec = importlib.util.spec_from_file_location("lab_power_cuts", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "run", lambda *_, **__: None)
    return module


class Load:
    """Refuses every put; `before` comes first."""

    puts_a_cut = 5, 6

    def __init__(self, error, before=lambda: None):
        self.error, self.before = error, before

    def put(self, key, version):
        self.before()
        raise self.error("refused")

    def abandon(self):
        pass


def errors(power_cuts):
    """What a put may end with; half an answer is damage in the client's words."""
    return ValueError, OSError, power_cuts.Failed, power_cuts.Damaged


def test_an_error_before_the_power_goes_fails_the_round(power_cuts):
    for error in errors(power_cuts):
        fails_the_round(power_cuts, error)


def fails_the_round(power_cuts, error):
    all_keys = [power_cuts.Keys("0", 3)]
    with concurrent.futures.ThreadPoolExecutor(1) as threads, pytest.raises(power_cuts.Failed, match="refused"):
        power_cuts.cut(Load(error), all_keys, random.Random(1), threads)


def test_an_error_without_power_is_none(power_cuts):
    for error in errors(power_cuts):
        gone = threading.Event()
        keys = power_cuts.Keys("0", 1)
        power_cuts.client(Load(error, gone.set), keys, random.Random(1), None, gone)
        # It may have arrived.
        assert keys.allowed == {"0k0": [power_cuts.GONE, 1]} and keys.acknowledged == 0


def test_without_a_cut_nothing_would_be_shown():
    refused = subprocess.run([sys.executable, PROGRAM, "store", "--cuts", "0"], capture_output=True, text=True)
    assert refused.returncode == 2 and "--cuts" in refused.stderr
