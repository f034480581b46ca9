"""What Swift's probe tests need where drive daemons have the objects: a plug-in of pytest, and `resetswift`.

The tests reach into Swift's folders of objects: they look for an object's files, rename a fragment's so that it is not durable any
more, remove a partition. Here such a folder is what a daemon has, and the same calls of `os` and `shutil` go there.
"""

import http.client
import os
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path

from zonestore_cluster.processes import running, start

FOLDER = Path(os.environ["PROBE_FOLDER"])
DEVICES = os.environ["PROBE_DRIVES"].split()
# So long may a server believe that a drive is there, or is not.
BELIEVED_FOR = 6
PLACE = re.compile(r"/srv/\d/node/(?P<device>\w+)(/objects(-(?P<policy>\d+))?(/(?P<partition>\d+)(/\w{3}/(?P<hash>\w{32})(/(?P<file>[^/]+))?)?)?)?/?")


def zonestore(*words):
    subprocess.run([os.environ["ZONESTORE_BIN"], *map(str, words)], check=True, capture_output=True)


def serve(device):
    path = FOLDER / f"{device}.sock"
    process = start([os.environ["ZONESTORE_BIN"], "daemon", f"{device}={FOLDER / device}.zoned", "--socket", path], FOLDER / f"{device}.log")
    return process, path


def listens(path):
    """Raises OSError if not. Swift's tests have sockets of eventlet, whose `connect_ex` says nothing of success."""
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(str(path))
    return True


def wait_for_server(device, is_there):
    """Until its object server, if there is one, knows for each policy whether the drive is there. Objects of the tests live for three
    seconds: what was believed before is not waited for, but asked for."""
    from swift.common.storage_policy import POLICIES

    number = (int(device[3:]) - 1) % 4 + 1
    known = (200, 404) if is_there else (507,)
    until = time.monotonic() + BELIEVED_FOR
    for policy in POLICIES:
        while time.monotonic() < until:
            server = http.client.HTTPConnection(f"127.0.0.{number}", 6200 + 10 * number, timeout=BELIEVED_FOR)
            try:
                server.request("HEAD", f"/{device}/0/a/c/o", headers={"X-Backend-Storage-Policy-Index": int(policy)})
                if server.getresponse().status in known:
                    break
            except (OSError, http.client.HTTPException):
                return
            finally:
                server.close()
            time.sleep(0.05)


def end(device):
    if process := running(FOLDER).get(device):
        process.kill()


def reset():
    """Swift stops, all is empty, and the drives are served."""
    subprocess.run(["swift-init", "all", "kill"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for device in DEVICES:
        end(device)
    for folder in (*Path("/srv").iterdir(), *Path("/var/cache/swift").iterdir()):
        shutil.rmtree(folder) if folder.is_dir() else folder.unlink()
    for number in range(1, 9):
        Path(f"/srv/{(number - 1) % 4 + 1}/node/sdb{number}").mkdir(parents=True)
    with socket.create_connection(("127.0.0.1", 11211)) as memcached:
        memcached.sendall(b"flush_all\r\n")
        memcached.recv(100)
    empty = FOLDER / "empty.zoned"
    if DEVICES and not empty.exists():
        zonestore("drive", "create", empty, "--profile", "hm-smr-14tb", "--size", "4GiB", "--zone-size", "8MiB")
        zonestore("store", "mkfs", empty)
    begun = []
    for device in DEVICES:
        subprocess.run(["cp", "--sparse=always", empty, FOLDER / f"{device}.zoned"], check=True)
        begun.append(serve(device))
    for process, path in begun:
        process.wait_until(lambda: listens(path))


class Place:
    """A device, a partition, an object or a file of an object, as Swift's path says it."""

    def __init__(self, match):
        from swift.common.storage_policy import POLICIES
        from zonestore_swift.drive import Drive
        from zonestore_swift.transport import Transport

        self.device, self.file, self.hash = match["device"], match["file"], match["hash"]
        self.drive = Drive(Transport(str(FOLDER / f"{self.device}.sock"), 2, 60), self.device)
        self.is_device = "/objects" not in match[0]
        self.policies = list(POLICIES) if self.is_device else [POLICIES.get_by_index(match["policy"] or 0)]
        self.policy, self.partition = self.policies[0], match["partition"]

    @classmethod
    def of(cls, path):
        match = PLACE.fullmatch(str(path))
        return cls(match) if match and match["device"] in running(FOLDER) else None

    def objects(self):
        """Paths of folders, and the names in them."""
        from swift.obj.diskfile import get_data_dir

        for policy in self.policies:
            partitions = self.drive.partitions(policy) if self.partition is None else [self.partition]
            for partition in partitions:
                for suffix in self.drive.suffixes(policy, partition):
                    for object_hash, files in self.drive.objects(policy, partition, suffix):
                        number = (int(self.device[3:]) - 1) % 4 + 1
                        folder = f"/srv/{number}/node/{self.device}/{get_data_dir(policy)}/{partition}/{suffix}/{object_hash}"
                        yield folder, sorted(files)

    def object(self):
        return self.drive.object(self.policy, self.partition, self.hash)

    def move(self, name):
        """Gives the object's file another name, and with it what Swift makes of it."""
        from types import SimpleNamespace

        from zonestore_swift.held_data import HeldData

        opened = self.object().open(1 << 16, True, frag_prefs=[])
        assert opened.data_file == self.file, (opened.data_file, self.file)
        held = HeldData(self.drive, opened, None)
        pieces = []
        while piece := held.read(1 << 20):
            pieces.append(piece)
        held.close()
        upload = self.drive.stage(SimpleNamespace(policy=self.policy, hash=self.hash), held.size)
        upload.send(pieces)
        staged = upload.finish()["staged"]
        self.object().remove_all([self.file], leaves_metadata=True)
        assert self.object().put_staged(name, opened.metadata[self.file], staged)


def pytest_configure():
    os.walk, os.rename, os.remove, shutil.rmtree = walked(os.walk), renamed(os.rename), removed(os.remove), emptied(shutil.rmtree)
    os.unlink = os.remove


def pytest_collection_finish(session):
    """What a test makes itself of Swift's classes for objects in files is ours here. The tests' own way to lose a drive has its folder
    away; here its daemon ends too."""
    from test.probe.common import ProbeTest
    from zonestore_swift.manager import Manager
    from zonestore_swift.reconstructor import Reconstructor

    ours = {"DiskFileManager": Manager, "ObjectReconstructor": Reconstructor}
    for module in {item.module for item in session.items}:
        for name, kind in ours.items():
            if hasattr(module, name):
                setattr(module, name, kind)

    kill, revive = ProbeTest.kill_drive, ProbeTest.revive_drive

    def kill_drive(test, device):
        kill(test, device)
        end(os.path.basename(device))
        wait_for_server(os.path.basename(device), is_there=False)

    def revive_drive(test, device):
        revive(test, device)
        process, path = serve(os.path.basename(device))
        process.wait_until(lambda: listens(path))
        wait_for_server(os.path.basename(device), is_there=True)

    ProbeTest.kill_drive, ProbeTest.revive_drive = kill_drive, revive_drive


def walked(walk):
    def function(top, *arguments, **options):
        yield from walk(top, *arguments, **options)
        if place := Place.of(top):
            for folder, files in place.objects():
                # A test may leave something of its own beside the object.
                os.makedirs(folder, exist_ok=True)
                yield folder, [], files
    return function


def renamed(rename):
    def function(old, new, **options):
        place = Place.of(old)
        if place is None or place.file is None:
            return rename(old, new, **options)
        name = os.path.basename(new)
        if "#d" in name:
            return place.object().make_durable(place.file)
        return place.move(name)
    return function


def removed(remove):
    def function(path, **options):
        place = Place.of(path)
        if place is None or place.file is None or os.path.lexists(path):
            return remove(path, **options)
        if place.file not in place.object().files():
            raise FileNotFoundError(2, "no such file", path)
        place.object().remove_all([place.file], leaves_metadata=True)
    return function


def emptied(rmtree):
    def function(path, *arguments, **options):
        place = Place.of(path)
        if place is not None and not place.is_device:
            for folder, files in list(place.objects()):
                match = PLACE.fullmatch(folder)
                Place(match).object().remove_all(files)
            # What lies there on the host is little or nothing.
            return rmtree(path, True)
        return rmtree(path, *arguments, **options)
    return function
