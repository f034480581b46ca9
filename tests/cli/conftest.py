"""What every test of the command line starts from: the program, and drives in a folder of its own."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Only what hangs takes longer, also on a machine with much else to do.
TIMEOUT = 600


def binary():
    """The program under test: ZONESTORE_BIN, or what was built last."""
    if named := os.environ.get("ZONESTORE_BIN"):
        return Path(named)
    built = [ROOT / "target" / kind / "zonestore" for kind in ("release", "debug")]
    built = [path for path in built if path.exists()]
    if not built:
        pytest.exit("no zonestore to test: cargo build -p zonestore", 2)
    return max(built, key=lambda path: path.stat().st_mtime)


class Outcome:
    """What a command answered."""

    def __init__(self, done):
        self.code = done.returncode
        self.out = done.stdout
        self.err = done.stderr.decode(errors="replace")

    @property
    def text(self):
        return self.out.decode()

    @property
    def json(self):
        return json.loads(self.out)

    def failed(self, code):
        """Asserts the exit code and the form of the error: one line, and perhaps a hint; notes on what
        was begun, and the log, may come first."""
        assert self.code == code, (self.code, self.err)
        earlier = re.compile(r"note: |\d{4}-\d\d-\d\dT\S+ +(WARN|ERROR) ")
        lines = [line for line in self.err.splitlines() if not earlier.match(line)]
        assert lines[0].startswith("zonestore: "), self.err
        assert all(line.startswith("hint: ") for line in lines[1:]), self.err
        assert "panicked" not in self.err
        return self.err


class Program:
    """Runs zonestore in a folder."""

    def __init__(self, folder):
        self.folder = folder
        self.path = binary()
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith("ZONESTORE_")
        }

    def try_(self, *arguments, stdin=b"", env=None):
        done = subprocess.run(
            [self.path, *map(str, arguments)],
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            timeout=TIMEOUT,
            env={**self.environment, **(env or {})},
        )
        return Outcome(done)

    def __call__(self, *arguments, **more):
        outcome = self.try_(*arguments, **more)
        assert outcome.code == 0, (arguments, outcome.code, outcome.err)
        return outcome

    def start(self, *arguments, env=None, before=()):
        """Starts it, by the command `before` if there is one."""
        return subprocess.Popen(
            [*before, self.path, *map(str, arguments)],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**self.environment, **(env or {})},
            preexec_fn=heed_signals,
        )


def heed_signals():
    """Whoever runs the tests by nohup or in the background has signals ignored, and so would what they start."""
    for sent in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(sent) == signal.SIG_IGN:
            signal.signal(sent, signal.SIG_DFL)


# A command behind it is started as in the background of a script.
IN_THE_BACKGROUND = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")


def ignores(process, sent):
    """Whether a running process ignores a signal (proc(5))."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    [bits] = [line.split()[1] for line in status.splitlines() if line.startswith("SigIgn:")]
    return bool(int(bits, 16) >> (sent - 1) & 1)


class Server:
    """A running `zonestore serve`; its first line of output says where."""

    def __init__(self, process):
        self.process = process
        self.first_line = process.stdout.readline()
        if "http://" not in self.first_line:
            process.kill()
            out, err = process.communicate()
            pytest.fail(f"no server: {self.first_line}{out}{err}")
        self.endpoint = self.first_line[self.first_line.index("http://") :].strip()
        self.host = self.endpoint.removeprefix("http://")
        self.port = int(self.host.rsplit(":", 1)[1])
        self.output = None

    def read_until(self, mark):
        """Output up to the line that begins with `mark`."""
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if line.startswith(mark):
                break
        return "".join(lines)

    def stop(self, how=signal.SIGTERM):
        """Stops the server and answers its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        out, err = self.process.communicate(timeout=TIMEOUT)
        self.output = (out, err)
        return self.process.returncode


@pytest.fixture
def zonestore(tmp_path):
    return Program(tmp_path)


@pytest.fixture
def drive(zonestore, tmp_path):
    """A small drive, not formatted."""
    zonestore("drive", "create", "d.zoned", "--profile", "test-small", "--size", "128MiB")
    return tmp_path / "d.zoned"


@pytest.fixture
def store(zonestore, drive):
    """A small drive with an empty store."""
    zonestore("store", "mkfs", drive)
    return drive


@pytest.fixture
def serve(zonestore):
    """Starts servers, and stops what still runs in the end."""
    servers = []

    def start(*arguments, env=None, before=()):
        server = Server(zonestore.start("serve", *arguments, "--s3", "127.0.0.1:0", env=env, before=before))
        servers.append(server)
        return server

    yield start
    for server in servers:
        if server.process.poll() is None:
            server.process.kill()
            server.process.communicate()


def without_override(command):
    """A command as somebody for whom file modes count, also if these tests run as root."""
    if os.geteuid() != 0:
        return command
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command]


def digest(path):
    import hashlib

    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if sys.version_info < (3, 11):
    pytest.exit("the tests need Python 3.11 or newer", 2)
