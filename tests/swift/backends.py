"""Swift's own back end on a directory, and ours on a daemon, behind the same few methods."""

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from swift.common.storage_policy import EC_POLICY
from swift.common.utils import get_logger, hash_path
from swift.obj import diskfile

import zonestore_swift

ROOT = Path(__file__).resolve().parents[2]
DEVICE = "sda1"


def binary():
    """The program under test: ZONESTORE_BIN, or what was built last."""
    if named := os.environ.get("ZONESTORE_BIN"):
        return Path(named)
    built = [path for kind in ("release", "debug") if (path := ROOT / "target" / kind / "zonestore").exists()]
    if not built:
        pytest.exit("no zonestore to test: cargo build -p zonestore", 2)
    return max(built, key=lambda path: path.stat().st_mtime)


class DaemonProcess:
    """`zonestore daemon` with one drive, in a folder of its own."""

    def __init__(self, folder, device=DEVICE, options=()):
        self.folder = Path(folder)
        self.device = device
        self.options = options
        self.drive = self.folder / f"{device}.zoned"
        self.socket = self.folder / "daemon.sock"
        self.process = None
        self.make()
        self.start()

    def make(self):
        """An empty drive in the place of what was there."""
        self.drive.unlink(missing_ok=True)
        subprocess.run(
            [binary(), "drive", "create", self.drive, "--profile", "hm-smr-14tb", "--size", "16GiB", "--zone-size", "8MiB"],
            check=True, capture_output=True)
        subprocess.run([binary(), "store", "mkfs", self.drive], check=True, capture_output=True)

    def start(self):
        with open(self.folder / "daemon.log", "ab") as log:
            self.process = subprocess.Popen(
                [binary(), "daemon", f"{self.device}={self.drive}", "--socket", self.socket, *self.options], stdout=log, stderr=log)
        transport = zonestore_swift.transport.Transport(str(self.socket), 2, 60)
        for _ in range(12_000):
            try:
                if transport.ask("GET", "/v1/drives"):
                    return
            except zonestore_swift.errors.Refused:
                assert self.process.poll() is None, (self.folder / "daemon.log").read_text()
                time.sleep(0.05)
        raise AssertionError("the daemon does not answer: " + (self.folder / "daemon.log").read_text())

    def stop(self, how=signal.SIGTERM):
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(600)
            self.process = None


class Backend:
    """Managers of one kind on the device `sda1`."""

    def __init__(self, devices, **conf):
        self.devices = Path(devices)
        self.conf = {"devices": str(devices), "mount_check": "false", "commit_window": "0", **self.extra(), **conf}
        self.device = DEVICE
        (self.devices / DEVICE).mkdir(parents=True, exist_ok=True)

    def extra(self):
        return {}

    def manager(self, policy, **conf):
        kinds = self.ec if policy.policy_type == EC_POLICY else self.replication
        return kinds({**self.conf, **conf}, get_logger({}, name="swift-test"))


class Files(Backend):
    """The back end that everybody has: what it does is right."""

    name = "files"
    replication, ec = diskfile.DiskFileManager, diskfile.ECDiskFileManager

    def _path(self, policy, partition, object_hash):
        return self.devices / DEVICE / diskfile.get_data_dir(policy) / str(partition) / object_hash[-3:] / object_hash

    def names(self, policy, partition, object_hash):
        path = self._path(policy, partition, object_hash)
        return sorted(os.listdir(path)) if path.exists() else []

    def quarantined(self, policy, partition):
        path = self.devices / DEVICE / "quarantined" / diskfile.get_data_dir(policy)
        return sorted(os.listdir(path)) if path.exists() else []

    def damage(self, policy, partition, object_hash, data):
        """Changes a byte of the object's data."""
        [name] = self._path(policy, partition, object_hash).glob("*.data")
        at = name.read_bytes().index(data)
        with open(name, "r+b") as file:
            file.seek(at + len(data) // 2)
            file.write(bytes([data[len(data) // 2] ^ 1]))

    def remove_partition(self, policy, partition):
        shutil.rmtree(self.devices / DEVICE / diskfile.get_data_dir(policy) / str(partition))


class Zoned(Backend):
    name = "zoned"
    replication, ec = zonestore_swift.Manager, zonestore_swift.ECManager

    def __init__(self, devices, daemon, **conf):
        self.daemon = daemon
        super().__init__(devices, **conf)

    def extra(self):
        return {"zonestore_socket": str(self.daemon.socket)}

    def _drive(self, policy):
        return self.manager(policy).drive(DEVICE)

    def names(self, policy, partition, object_hash):
        return sorted(self._drive(policy).object(policy, partition, object_hash).files())

    def quarantined(self, policy, partition):
        """Other tests have other partitions."""
        rows = self._drive(policy).quarantined(policy, limit=10000)
        return sorted(row["hash"] for row in rows if row["partition"] == int(partition))

    def damage(self, policy, partition, object_hash, data):
        """Changes a byte of the data on the drive, behind the daemon's back."""
        self.daemon.stop()
        with open(self.daemon.drive, "r+b") as drive:
            for at in find(drive, data[len(data) // 2:][:64]):
                drive.seek(at)
                byte = drive.read(1)[0]
                drive.seek(at)
                drive.write(bytes([byte ^ 1]))
        self.daemon.start()


def find(file, wanted):
    """Where a sparse file has these bytes: more than once if a log had them first."""
    end = os.fstat(file.fileno()).st_size
    at, found = 0, []
    while at < end:
        try:
            at = os.lseek(file.fileno(), at, os.SEEK_DATA)
        except OSError:
            break
        hole = os.lseek(file.fileno(), at, os.SEEK_HOLE)
        file.seek(at)
        piece = file.read(hole - at)
        found += [at + match.start() for match in re.finditer(re.escape(wanted), piece)]
        at = hole
    assert found, "the drive does not have these bytes"
    return found


def hash_of(name, account="a", container="c"):
    return hash_path(account, container, name)
