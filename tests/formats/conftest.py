"""The program under test, run in a folder of its own."""

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Only what hangs takes longer, also on a machine with much else to do.
TIMEOUT = 600


class Outcome:
    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr.decode(errors="replace")

    @property
    def json(self):
        return json.loads(self.out)

    def answers(self, code, says=()):
        """Asserts the exit code, every word on standard error, and that nothing panicked."""
        assert self.code == code, (self.code, self.err)
        for word in says:
            assert word in self.err, (word, self.err)
        assert "panicked" not in self.err
        return self


class Program:
    def __init__(self, folder):
        self.folder = folder
        named = os.environ.get("ZONESTORE_BIN")
        self.path = Path(named).absolute() if named else ROOT / "target" / "debug" / "zonestore"
        if not self.path.exists():
            pytest.exit(f"no {self.path}: cargo build -p zonestore", 2)

    def try_(self, *arguments, stdin=b""):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ZONESTORE_")}
        done = subprocess.run(
            [self.path, *map(str, arguments)],
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            timeout=TIMEOUT,
            env=environment,
        )
        return Outcome(done)

    def __call__(self, *arguments, **more):
        return self.try_(*arguments, **more).answers(0)

    def write(self, name, content):
        path = self.folder / name
        path.write_bytes(content)
        return path


@pytest.fixture
def zonestore(tmp_path):
    return Program(tmp_path)
