"""Data and metadata of an object: what was written is read, whole and in ranges."""

import os

import pytest
from swift.common.exceptions import DiskFileCollision, DiskFileDeviceUnavailable, DiskFileError, DiskFileNoSpace, DiskFileNotExist, DiskFileNotOpen
from swift.common.swob import Request
from swift.common.utils import get_logger

from backends import DEVICE
from objects import Objects, moment
from zonestore_swift.object_server import ObjectController

# None, one byte, a segment, just below and above what travels with the metadata, and several pieces of a stream.
SIZES = [0, 1, 4096, 65535, 65536, 65537, 300_000, 1_500_000]


@pytest.mark.parametrize("size", SIZES)
def test_what_was_written_is_read(objects, size):
    archive = objects.put(data=os.urandom(size))
    assert objects.read() == archive
    with objects.file().open() as disk_file:
        assert disk_file.content_length == len(archive)
        disk_file.reader().close()


@pytest.mark.parametrize("pieces", [1000, 65536, 1 << 20])
@pytest.mark.parametrize("size", [None, 0, 10, 400_000, 10 ** 7])
def test_the_size_that_a_writer_is_told_is_only_a_hint(plain_objects, size, pieces):
    data = os.urandom(400_000)
    plain_objects.put(data=data, size=size, pieces=pieces)
    assert plain_objects.read() == data


@pytest.mark.parametrize("size", [1000, 400_000])
def test_ranges(plain_objects, size):
    data = plain_objects.put(data=os.urandom(size))
    for start, stop in [(0, 1), (0, 10), (500, 1000), (0, None), (999, None), (0, size), (size - 1, size), (size // 2, size // 2 + 7)]:
        with plain_objects.file().open() as disk_file:
            reader = disk_file.reader()
        assert b"".join(reader.app_iter_range(start, stop)) == data[start:stop], (start, stop)
    assert not plain_objects.quarantined()


@pytest.mark.parametrize("size", [1000, 400_000])
def test_many_ranges_of_one_reader(plain_objects, size):
    data = plain_objects.put(data=os.urandom(size))
    ranges = [(0, 10), (10, 20), (size - 5, size), (5, 900)]
    with plain_objects.file().open() as disk_file:
        reader = disk_file.reader()
    body = b"".join(reader.app_iter_ranges(ranges, "plain/text", "XX", size))
    parts = [part.split(b"\r\n\r\n", 1)[1][:-2] for part in body.split(b"--XX")[1:-1]]
    assert parts == [data[start:stop] for start, stop in ranges]
    assert not plain_objects.quarantined()


def test_no_ranges_are_an_empty_answer(plain_objects):
    plain_objects.put(data=b"abc")
    with plain_objects.file().open() as disk_file:
        reader = disk_file.reader()
    assert b"".join(reader.app_iter_ranges([], "plain/text", "XX", 3)) == b""


def test_a_range_across_fragments_of_another_size_quarantines_nothing(coded_objects):
    archive = coded_objects.put(data=os.urandom(20_000))
    step = coded_objects.policy.fragment_size
    for stop in (step - 1, step, step + 1):
        with coded_objects.file().open() as disk_file:
            reader = disk_file.reader()
        assert b"".join(reader.app_iter_range(0, stop)) == archive[:stop]
    assert not coded_objects.quarantined()


@pytest.mark.parametrize("size", [100, 1_500_000])
def test_a_reader_that_is_dropped_early_harms_nothing(plain_objects, size):
    data = plain_objects.put(data=os.urandom(size))
    for _ in range(40):
        with plain_objects.file().open() as disk_file:
            reader = disk_file.reader()
        next(iter(reader))
        reader.close()
    assert plain_objects.read() == data
    assert not plain_objects.quarantined()


def test_an_open_object_can_be_read_after_it_was_replaced_or_deleted(plain_objects):
    data = plain_objects.put(data=os.urandom(500_000), at=1)
    with plain_objects.file().open() as disk_file:
        replaced = disk_file.reader()
    plain_objects.put(data=b"new", at=2)
    with plain_objects.file().open() as disk_file:
        deleted = disk_file.reader()
    plain_objects.delete(at=3)
    assert b"".join(replaced) == data
    assert b"".join(deleted) == b"new"


def test_metadata_come_back_as_they_were(objects):
    strange = {
        "X-Object-Meta-Caf\u00e9": "na\u00efve \u2603", "X-Object-Meta-Bytes": "\udcff\udc80", "X-Object-Meta-Joined": "\udcc3\udca9",
        "X-Object-Meta-Empty": "", "X-Object-Meta-Long": "x" * 500, "X-Object-Meta-Number": 5, "X-Object-Meta-Raw": b"\xc3\xa9\xff",
        "X-Object-Meta-Lines": "a\nb\t\"\\"}
    objects.put(data=b"abc", at=5, **strange)
    metadata = objects.metadata()
    expected = {**strange, "X-Object-Meta-Joined": "\u00e9", "X-Object-Meta-Raw": "\u00e9\udcff"}
    assert {key: metadata[key] for key in strange} == expected
    assert metadata["name"] == "/a/c/o"
    assert metadata["X-Timestamp"] == moment(5).internal


def test_names_of_any_bytes(objects):
    for name in ["with space", "a/b/c", "\u2603", "%23#?", "x" * 1024]:
        archive = objects.put(name, data=b"data of " + name.encode("utf8", "surrogateescape"))
        assert objects.read(name) == archive
        assert objects.metadata(name)["name"] == "/a/c/" + name
        assert objects.by_hash(name).obj == name


def test_what_there_is_not(objects):
    with pytest.raises(DiskFileNotExist):
        objects.file().open()
    with pytest.raises(DiskFileNotExist):
        objects.by_hash()
    disk_file = objects.file()
    for ask in (disk_file.get_metadata, disk_file.get_datafile_metadata, disk_file.__enter__, lambda: disk_file.timestamp,
                lambda: disk_file.data_timestamp, lambda: disk_file.content_type, lambda: disk_file.durable_timestamp):
        with pytest.raises(DiskFileNotOpen):
            ask()


def test_times_and_types(objects):
    objects.put(data=b"abc", at=1)
    objects.post(at=3, **{"X-Object-Meta-A": "1"})
    with objects.file().open() as disk_file:
        assert disk_file.data_timestamp == moment(1)
        assert disk_file.durable_timestamp == moment(1)
        assert disk_file.timestamp == moment(3)
        assert disk_file.content_type == "text/plain"
        assert disk_file.content_type_timestamp == moment(1)
        assert disk_file.validate_metadata()
        assert (disk_file.account, disk_file.container, disk_file.obj) == ("a", "c", "o")
        disk_file.reader().close()


def test_another_name_with_the_same_hash_is_a_collision(plain_objects):
    plain_objects.put(data=b"abc")
    disk_file = plain_objects.file()
    disk_file._name = "/a/c/other"
    with pytest.raises(DiskFileCollision):
        disk_file.open()


def test_a_writer_that_is_dropped_leaves_nothing(plain_objects):
    for size in (10, 1_000_000):
        with plain_objects.file().create() as writer:
            writer.write(os.urandom(size))
        with plain_objects.file().create() as writer:
            writer.write(os.urandom(size))
            writer.chunks_finished()
    assert plain_objects.names() == []
    with pytest.raises(ValueError):
        writer.write(b"late")


def test_a_writer_is_opened_once(plain_objects):
    with plain_objects.file().create() as writer:
        with pytest.raises(ValueError):
            writer.open()


def test_a_device_that_nobody_serves(backend, policy):
    manager = backend.manager(policy, mount_check="true" if backend.name == "files" else "false")
    assert manager.get_dev_path("absent") is None
    with pytest.raises(DiskFileDeviceUnavailable):
        manager.get_diskfile("absent", "0", "a", "c", "o", policy=policy)
    with pytest.raises(DiskFileDeviceUnavailable):
        manager.get_hashes("absent", "0", [], policy)
    with pytest.raises(DiskFileDeviceUnavailable):
        list(manager.yield_suffixes("absent", "0", policy))
    with pytest.raises(DiskFileDeviceUnavailable):
        list(manager.yield_hashes("absent", "0", policy))


def test_a_device_whose_directory_is_not_mounted(backend, policy, monkeypatch):
    """Updates of listings wait below the directory: those that come meanwhile would be hidden when it is mounted again."""
    assert backend.manager(policy).get_dev_path(backend.device)
    manager = backend.manager(policy, mount_check="true")
    path = str(backend.devices / backend.device)
    for mounted in ([], [path]):
        monkeypatch.setattr("swift.common.constraints.utils.ismount", mounted.__contains__)
        assert manager.get_dev_path(backend.device) == (path if mounted else None)
        assert manager.get_dev_path(backend.device, mount_check=False) == path
    monkeypatch.setattr("swift.common.constraints.utils.ismount", lambda path: False)
    assert backend.manager(policy).get_dev_path(backend.device, mount_check=True) is None
    with pytest.raises(DiskFileDeviceUnavailable):
        manager.get_diskfile(backend.device, "0", "a", "c", "o", policy=policy)


def test_the_wrong_kind_of_policy_is_refused(backend, plain, coded):
    with pytest.raises(ValueError):
        backend.ec.check_policy(plain)
    with pytest.raises(ValueError):
        backend.replication.check_policy(coded)
    backend.ec.check_policy(coded)
    with pytest.raises(DiskFileError):
        backend.manager(coded).get_diskfile("sda1", "0", "a", "c", "o", policy=coded, frag_index="x")


@pytest.mark.parametrize("size", [None, 65536, 400_000])
def test_a_full_drive_refuses_data_before_they_come_and_nothing_else(zoned, policy, monkeypatch, size):
    objects = Objects(zoned, policy)
    drives = objects.manager.drives
    objects.put(data=b"there")
    monkeypatch.setattr(drives, "_known", {})
    monkeypatch.setattr(drives, "_ask", lambda path: {zoned.device: True})
    with pytest.raises(DiskFileNoSpace), objects.file().create(size=size):
        raise AssertionError("it was opened")
    # What is small may have a place beside the metadata.
    archive = objects.put("small", b"small", size=65535)
    assert objects.read("small") == archive
    objects.post(at=1, **{"X-Object-Meta-Color": "red"})
    assert objects.metadata()["X-Object-Meta-Color"] == "red"
    objects.delete(at=2)
    assert not objects.exists()


@pytest.mark.parametrize("partition", ["p", "-1", "+1", "1.5", "%D9%A1", "4294967296", "9" * 5000])
@pytest.mark.parametrize("method, below", [("GET", "a/c/o"), ("PUT", "a/c/o"), ("DELETE", "a/c/o"), ("REPLICATE", "")])
def test_a_partition_that_is_no_number(zoned, plain, partition, method, below):
    controller = ObjectController(zoned.conf, get_logger({}, name="swift-test"))
    controller._diskfile_router.policy_to_manager = {0: zoned.manager(plain)}
    headers = {"X-Timestamp": moment(1).internal, "Content-Type": "text/plain", "Content-Length": "0"}
    request = Request.blank(f"/{DEVICE}/{partition}/{below}", {"REQUEST_METHOD": method}, headers)
    answer = request.get_response(controller)
    assert answer.status_int == 400 and b"Invalid partition" in answer.body
