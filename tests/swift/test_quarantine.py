"""Objects that are not what they should be are put aside, so that replication brings them back."""

import os

import pytest
from swift.common.exceptions import DiskFileNotExist, DiskFileQuarantined
from swift.obj import diskfile

from backends import DEVICE, DaemonProcess, Zoned, hash_of
from objects import Objects
from zonestore_swift.drive import Drive, DriveObject
from zonestore_swift.errors import Damaged, NotFound


def test_data_that_do_not_match_their_etag(plain_objects):
    for name, size in (("small", 100), ("large", 1_000_000)):
        plain_objects.put(name, data=os.urandom(size), etag="d41d8cd98f00b204e9800998ecf8427e")
        reasons = []
        with plain_objects.file(name).open() as disk_file:
            reader = disk_file.reader(_quarantine_hook=reasons.append)
        assert len(b"".join(reader)) == size
        assert "do not match" in reasons[0]
        assert plain_objects.quarantined(name)
        assert plain_objects.names(name) == []
        assert not plain_objects.exists(name)


def test_a_range_of_them_proves_nothing(plain_objects):
    plain_objects.put(data=os.urandom(1000), etag="d41d8cd98f00b204e9800998ecf8427e")
    with plain_objects.file().open() as disk_file:
        reader = disk_file.reader()
    b"".join(reader.app_iter_range(0, 999))
    assert not plain_objects.quarantined()
    with plain_objects.file().open() as disk_file:
        reader = disk_file.reader()
    b"".join(reader.app_iter_range(0, 1000))
    assert plain_objects.quarantined()


@pytest.mark.parametrize("metadata", [{"Content-Length": "4"}, {"Content-Length": "x"}, {"X-Delete-At": "soon"}])
def test_metadata_that_cannot_be(plain_objects, metadata):
    plain_objects.put(data=b"abc", **metadata)
    with pytest.raises(DiskFileQuarantined):
        plain_objects.file().open()
    assert plain_objects.quarantined()
    with pytest.raises(DiskFileNotExist):
        plain_objects.file().open()


def test_an_object_at_the_place_of_another(plain_objects):
    disk_file = plain_objects.file("other")
    disk_file._name = "/a/c/o"
    with disk_file.create() as writer:
        writer.put({"X-Timestamp": "1700000000.00000", "Content-Length": "0", "ETag": "d41d8cd98f00b204e9800998ecf8427e"})
    location = diskfile.AuditLocation(disk_file._datadir, DEVICE, plain_objects.partition, plain_objects.policy)
    with pytest.raises(DiskFileQuarantined):
        plain_objects.manager.get_diskfile_from_audit_location(location).open()
    assert plain_objects.quarantined("other")


def test_a_fragment_that_is_none(coded_objects):
    coded_objects.archive = lambda data, index: data
    coded_objects.put(data=os.urandom(20_000))
    with pytest.raises(DiskFileQuarantined):
        coded_objects.read()
    assert coded_objects.quarantined()


def test_what_was_put_aside_can_come_back(plain_objects):
    plain_objects.put(data=b"abc", etag="no")
    plain_objects.read()
    assert plain_objects.hashes() == {}
    plain_objects.put(data=b"abc")
    assert plain_objects.read() == b"abc"
    plain_objects.put(data=b"abcd", at=1, etag="no")
    plain_objects.read()
    assert not plain_objects.exists()


@pytest.mark.parametrize("size", [100, 1_000_000])
def test_what_is_wrong_with_an_old_version_leaves_the_new_one(zoned, plain, size):
    """The whole of the old one is read only after the new one was acknowledged."""
    objects = Objects(zoned, plain)
    objects.put(data=os.urandom(size), etag="d41d8cd98f00b204e9800998ecf8427e")
    reasons = []
    with objects.file().open() as disk_file:
        reader = disk_file.reader(_quarantine_hook=reasons.append)
    objects.put(data=b"new", at=1)
    assert len(b"".join(reader)) == size
    assert "do not match" in reasons[0]
    assert not objects.quarantined()
    assert objects.read() == b"new"
    # Any of the files that are there.
    objects.post(at=2, **{"X-Object-Meta-Color": "blue"})
    [meta] = [name for name in objects.names() if name.endswith(".meta")]
    path = objects.file()._datadir
    objects.manager.quarantine_renamer(objects.manager.get_dev_path(DEVICE), os.path.join(path, meta))
    assert objects.quarantined()
    assert objects.names() == []


def test_what_has_replaced_damage_since_it_was_found_stays(own, plain):
    data = own.put(data=os.urandom(5_000))
    own.backend.damage(plain, own.partition, hash_of("o"), data)
    disk_file, opens = own.file(), DriveObject.open

    def replaced_meanwhile(*arguments, **options):
        try:
            return opens(disk_file.drive_object, *arguments, **options)
        finally:
            own.put(data=b"new", at=1)

    disk_file.drive_object.open = replaced_meanwhile
    with pytest.raises(DiskFileQuarantined):
        disk_file.open()
    assert not own.quarantined() and own.read() == b"new"


@pytest.mark.parametrize("file", [None, "1700000000.00000.data"])
def test_damage_that_names_a_file_is_of_that_file(zoned, plain, monkeypatch, file):
    objects = Objects(zoned, plain)
    objects.put(data=b"new", at=1)

    def opened(*_arguments, **_options):
        raise Damaged("damaged", "a checksum does not match", file=file)

    monkeypatch.setattr(DriveObject, "open", opened)
    with pytest.raises(DiskFileNotExist):
        objects.manager.get_diskfile_and_filenames_from_hash(DEVICE, objects.partition, hash_of("o"), plain)
    assert objects.quarantined() == (file is None)


class Answers:
    """A daemon that says that something is not there, of an object with these files."""

    def __init__(self, files):
        self.files = files

    def call(self, method, target, *_args, **_options):
        raise NotFound("not_found", 'no collection "swift-0-quarantined"', 404)

    call_with = call

    def ask(self, method, target, *_args):
        if method == "GET" and target.endswith("/" + hash_of("o")):
            return {"files": self.files}
        self.call(method, target)


def test_what_cannot_be_put_aside_is_no_missing_object(plain):
    there = Drive(Answers(["1700000000.00000.data"]), DEVICE).object(plain, 1, hash_of("o"))
    for file in (None, "1700000000.00000.data"):
        with pytest.raises(NotFound):
            there.quarantine(file)
    assert not there.quarantine("1600000000.00000.data")
    assert not Drive(Answers([]), DEVICE).object(plain, 1, hash_of("o")).quarantine()


def test_nothing_counts_as_empty_because_something_of_it_is_missing(plain):
    drive = Drive(Answers([]), DEVICE)
    for call in (lambda: drive.suffixes(plain, 1), lambda: drive.objects(plain, 1, "abc"), lambda: list(drive.partitions(plain)),
                 lambda: drive.quarantined(plain), lambda: drive.hashes(plain, 1, [], 1, 1),
                 lambda: drive.object(plain, 1, hash_of("o")).remove_all(["1700000000.00000.ts"]),
                 lambda: drive.object(plain, 1, hash_of("other")).files()):
        with pytest.raises(NotFound):
            call()


@pytest.mark.parametrize("size", [5_000, 3_000_000])
def test_what_the_drive_has_damaged(tmp_path, plain, size):
    daemon = DaemonProcess(tmp_path)
    try:
        backend = Zoned(tmp_path / "devices", daemon)
        objects = Objects(backend, plain)
        data = objects.put(data=os.urandom(size))
        backend.damage(plain, objects.partition, hash_of("o"), data)
        reasons = []
        # Damage is found at once, or in the middle of a stream that has begun.
        with pytest.raises((DiskFileQuarantined, OSError)):
            with objects.file().open() as disk_file:
                reader = disk_file.reader(_quarantine_hook=reasons.append)
            b"".join(reader)
        assert objects.quarantined()
        with pytest.raises(DiskFileNotExist):
            objects.file().open()
    finally:
        daemon.stop()
