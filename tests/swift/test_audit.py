"""The auditor: Swift's own daemon visits every object once, goes on where it was, and puts aside what is not what it says."""

import os
import types

import pytest
from swift.common.utils import get_logger
from swift.obj import auditor

from backends import DEVICE, hash_of
from objects import Objects
from zonestore_swift import audit
from zonestore_swift.errors import Damaged, Unavailable


def hashes_of(objects, locations):
    """Of this partition: others have tests of their own."""
    return sorted(os.path.basename(location.path) for location in locations if str(location.partition) == objects.partition)


def worker(objects, monkeypatch, **conf):
    """Swift's auditor of the test's policy alone."""
    monkeypatch.setattr(auditor.diskfile, "DiskFileRouter", lambda *args: {objects.policy: objects.manager})
    monkeypatch.setattr(auditor, "POLICIES", [objects.policy])
    made = auditor.AuditorWorker(
        {**objects.backend.conf, "files_per_second": "0", "rsync_tempfile_timeout": "0", **conf}, get_logger({}),
        str(objects.backend.devices / "recon"), str(objects.backend.devices))
    monkeypatch.setattr(auditor, "dump_recon_cache", lambda *args: None)
    # Objects of other tests are none of this one's business.
    audit = made.object_audit
    made.object_audit = lambda location: audit(location) if str(location.partition) == objects.partition else None
    return made


def test_every_object_has_a_location(objects):
    names = [f"o{number}" for number in range(30)]
    for name in names:
        objects.put(name, data=b"abc")
    objects.delete("o0", at=1)
    locations = list(objects.manager.object_audit_location_generator(objects.policy))
    assert hashes_of(objects, locations) == sorted(map(hash_of, names))
    location = next(location for location in locations if str(location.partition) == objects.partition)
    assert (location.device, location.policy) == (DEVICE, objects.policy)
    assert str(location) == location.path
    disk_file = objects.manager.get_diskfile_from_audit_location(
        next(location for location in locations if location.path.endswith(hash_of("o1"))))
    assert disk_file.open()._name == "/a/c/o1"
    disk_file.reader().close()


def test_only_the_devices_that_are_asked_for(objects):
    objects.put(data=b"abc")
    assert list(objects.manager.object_audit_location_generator(objects.policy, device_dirs=["absent"])) == []
    assert hashes_of(objects, objects.manager.object_audit_location_generator(objects.policy, device_dirs=[DEVICE]))


def test_a_broken_off_pass_goes_on_where_it_was(backend, policy):
    first = Objects(backend, policy)
    objects = [first] + [Objects(backend, policy) for _ in range(3)]
    for one in objects:
        one.put(data=b"abc")
    mine = {one.partition for one in objects}
    seen = []
    for location in first.manager.object_audit_location_generator(policy):
        if str(location.partition) in mine:
            seen.append(str(location.partition))
            if len(seen) == 2:
                break
    again = [str(location.partition) for location in first.manager.object_audit_location_generator(policy)]
    # The status is written no more often than once a minute: what was begun at the first write is visited again.
    assert mine <= set(seen) | set(again)
    first.manager.clear_auditor_status(policy)
    assert mine <= {str(location.partition) for location in first.manager.object_audit_location_generator(policy)}


class Drive:
    """Two partitions with two suffixes of an object each. What is in `refused` is not listed."""

    def __init__(self, refused=None):
        self._refused = refused or {}

    def _listed(self, *place, found):
        if place in self._refused:
            raise self._refused[place]
        return found

    def partitions(self, policy):
        yield from self._listed(found=[1, 2])

    def suffixes(self, policy, partition):
        return self._listed(int(partition), found=["00a", "00b"])

    def objects(self, policy, partition, suffix):
        return self._listed(int(partition), suffix, found=[(f"{partition}{suffix}", [])])


ALL = ["100a", "100b", "200a", "200b"]
DAMAGED = Damaged("damaged", "a checksum does not match")


@pytest.mark.parametrize("refused, left", [
    ({(): DAMAGED}, []), ({(1,): DAMAGED}, ALL[2:]), ({(1, "00a"): DAMAGED}, ALL[1:]),
    # Nobody serves it any more: it is not asked for one suffix after the other.
    ({(1, "00b"): Unavailable("no_drive", "it is away")}, ALL[:1])])
@pytest.mark.parametrize("first", ["broken", "well"])
def test_what_cannot_be_listed_holds_up_nothing_else(zoned, plain, monkeypatch, refused, left, first):
    drives = {"broken": Drive(refused), "well": Drive()}
    manager = zoned.manager(plain)
    monkeypatch.setattr(audit.random, "shuffle", lambda devices: devices.sort(key=lambda device: device != first))
    monkeypatch.setattr(manager, "drives", types.SimpleNamespace(all=lambda: ["well", "broken"], is_served=drives.__contains__, drive=drives.get))
    for _ in range(2):
        found = [(location.device, os.path.basename(location.path)) for location in manager.object_audit_location_generator(plain)]
        assert [name for device, name in found if device == "broken"] == left
        assert [name for device, name in found if device == "well"] == ALL
        manager.clear_auditor_status(plain)


def test_swifts_auditor_finds_what_is_wrong(objects, monkeypatch):
    objects.put("good", data=b"abc" * 50_000)
    objects.put("empty", data=b"")
    objects.put("gone", data=b"abc")
    objects.delete("gone", at=1)
    objects.put("wrong", data=b"abc" * 50_000, etag="d41d8cd98f00b204e9800998ecf8427e")
    made = worker(objects, monkeypatch)
    made.audit_all_objects()
    assert objects.quarantined("wrong")
    assert [objects.quarantined(name) for name in ("good", "empty", "gone")] == [False] * 3
    assert objects.read("good")


def test_a_zero_byte_audit_reads_no_data(plain_objects, monkeypatch):
    plain_objects.put("wrong", data=b"abc", etag="no")
    made = worker(plain_objects, monkeypatch)
    made.zero_byte_only_at_fps = 50
    made.audit_all_objects()
    assert not plain_objects.quarantined("wrong")


def test_an_old_tombstone_goes_after_an_audit(backend, policy, monkeypatch):
    objects = Objects(backend, policy, reclaim_age="1000")
    objects.delete(at=0)
    worker(objects, monkeypatch).audit_all_objects()
    objects.hashes()
    assert objects.names() == []
