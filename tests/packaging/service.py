"""The service as systemd would start it: its unit's ExecStart, its user, and a socket for what it tells."""

import configparser
import os
import re
import shlex
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

import boto3
from botocore.config import Config

from chroot import TIMEOUT

UNIT = "/lib/systemd/system/zonestore.service"
CONFIGURATION = "/etc/zonestore/zonestore.toml"


def unit(system, path=UNIT):
    """The unit's sections."""
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read(system.file(path))
    return parser


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Service:
    """The server in a chroot."""

    def __init__(self, system):
        self.system = system
        self.endpoint = f"http://127.0.0.1:{free_port()}"
        text = system.file(CONFIGURATION).read_text()
        text = re.sub(r"(?m)^#? *s3 = .*", f's3 = "{self.endpoint[7:]}"', text)
        system.file(CONFIGURATION).write_text(text)
        self.log = system.file("/tmp/journal")
        self.process = None

    def start(self):
        """Starts it, and comes back when it says that it is ready."""
        service = unit(self.system)["Service"]
        assert service["Type"] == "notify"
        notify = self.system.file("/run/notify")
        notify.unlink(missing_ok=True)
        self.told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.told.bind(str(notify))
        notify.chmod(0o666)
        self.told.settimeout(TIMEOUT)
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                self.system.command(*shlex.split(service["ExecStart"]), user=service["User"]),
                stdout=log, stderr=subprocess.STDOUT, cwd="/", umask=int(service["UMask"], 8),
                env={"NOTIFY_SOCKET": "/run/notify", "PATH": os.environ["PATH"]},
            )
        assert self.next_word() == "READY=1"

    def next_word(self):
        """What it tells next."""
        self.told.settimeout(0.2)
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            try:
                return self.told.recv(4096).decode()
            except TimeoutError:
                assert self.process.poll() is None, self.log.read_text()
        raise AssertionError(self.log.read_text())

    def answers(self):
        """The status of a request that nobody signed; an error if nobody answers."""
        try:
            return urllib.request.urlopen(self.endpoint, timeout=TIMEOUT).status
        except urllib.error.HTTPError as refused:
            return refused.code

    def client(self):
        """A client with the keys in the file that the server's log names."""
        path = re.search(r"\S+\.keys", self.log.read_text())[0]
        text = self.system.file(path).read_text()
        keys = dict(re.findall(r"(?m)^(\w+) *= *(.*)$", text))
        return boto3.client(
            "s3", endpoint_url=self.endpoint, region_name="us-east-1",
            aws_access_key_id=keys["access_key"], aws_secret_access_key=keys["secret_key"],
            config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1}, read_timeout=TIMEOUT),
        )

    def stop(self):
        """Ends it as systemd does; returns what it told and its exit code."""
        self.process.send_signal(signal.SIGTERM)
        word = self.next_word()
        code = self.process.wait(timeout=TIMEOUT)
        self.told.close()
        return word, code

    def end(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
