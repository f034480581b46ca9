"""A zonestore server under test: a drive, the process on it, and ways to end it."""

import os
import queue
import re
import signal
import subprocess
import threading

import boto3
from botocore.config import Config

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.environ.get("ZONESTORE_BIN", os.path.join(ROOT, "target", "release", "zonestore"))
ACCESS_KEY = "test-access-key"
SECRET_KEY = "test/secret+key"
REGION = "us-east-1"
# Only what hangs takes longer, also on a machine with much else to do.
TIMEOUT = 600


def run(*arguments, check=True):
    """Runs the binary to its end; returns what it printed."""
    result = subprocess.run(
        [BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=TIMEOUT
    )
    if check and result.returncode != 0:
        raise AssertionError(f"{arguments}: {result.returncode}\n{result.stdout}{result.stderr}")
    return result


def make_drive(path, size="1GiB", profile="test-small"):
    run("drive", "create", path, "--profile", profile, "--size", size)
    run("store", "mkfs", path)
    return path


def heed_ctrl_c():
    """In the background it is ignored, and a server that is started so keeps ignoring it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Server:
    """`zonestore serve` on a drive, on a port of its own."""

    def __init__(self, drive, *arguments, keys_of_environment=True):
        self.drive = str(drive)
        self.keys_of_environment = keys_of_environment
        self.arguments = arguments
        self.address = "127.0.0.1:0"
        self.process = None
        self.endpoint = None
        self.output = []

    def start(self):
        environment = dict(os.environ)
        if self.keys_of_environment:
            environment.update(ZONESTORE_ACCESS_KEY=ACCESS_KEY, ZONESTORE_SECRET_KEY=SECRET_KEY)
        self.process = subprocess.Popen(
            [BINARY, "serve", self.drive, "--s3", self.address, *self.arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
            preexec_fn=heed_ctrl_c,
        )
        found = queue.Queue()
        self.drain = threading.Thread(target=self._drain, args=(self.process, found), daemon=True)
        self.drain.start()
        try:
            self.endpoint = found.get(timeout=TIMEOUT)
        except queue.Empty:
            self.endpoint = None
        if self.endpoint is None:
            self.kill()
            raise AssertionError("no endpoint in the output:\n" + "".join(self.output[-50:]))
        return self

    def _drain(self, process, found):
        for line in process.stdout:
            self.output.append(line)
            del self.output[:-500]
            match = re.search(r"https?://127\.0\.0\.1:\d+", line)
            if match:
                found.put(match.group(0))
        found.put(None)

    def stop(self):
        """Ends it as Ctrl-C does; it must end by itself."""
        self.process.send_signal(signal.SIGINT)
        code = self.wait()
        assert code == 0, f"exit code {code}:\n" + "".join(self.output[-50:])

    def kill(self):
        """Ends it as a crash does."""
        self.process.kill()
        self.wait()

    def wait(self):
        """Its exit code, when it has ended and `output` is whole."""
        code = self.process.wait(timeout=TIMEOUT)
        self.drain.join(TIMEOUT)
        return code

    def alive(self):
        return self.process is not None and self.process.poll() is None

    @property
    def port(self):
        return int(self.endpoint.rsplit(":", 1)[1])

    def client(self, access_key=ACCESS_KEY, secret_key=SECRET_KEY, **options):
        options.setdefault("retries", {"max_attempts": 1})
        options.setdefault("max_pool_connections", 32)
        verify = options.pop("verify", None)
        s3 = options.pop("s3", {})
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            verify=verify,
            aws_access_key_id=access_key,
            aws_secret_access_key=secret_key,
            region_name=options.pop("region_name", REGION),
            config=Config(
                signature_version="s3v4",
                s3={"addressing_style": "path", **s3},
                connect_timeout=TIMEOUT,
                read_timeout=TIMEOUT,
                **options,
            ),
        )


def fsck(drive):
    """Checks everything against everything, checksums included; returns what it printed."""
    return run("store", "fsck", drive, "--deep").stdout
