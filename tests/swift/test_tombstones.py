"""Deletion, what it makes obsolete, and when a tombstone itself goes; expiry, which is a deletion that nobody asks for."""

import time

import pytest
from swift.common.exceptions import DiskFileDeleted, DiskFileExpired, DiskFileNotExist
from swift.common.utils import Timestamp

from backends import DEVICE
from objects import NOW, Objects, moment


def test_a_deleted_object_says_when(objects):
    objects.put(data=b"abc", at=1)
    objects.delete(at=2)
    with pytest.raises(DiskFileDeleted) as raised:
        objects.file().open()
    assert raised.value.timestamp == moment(2)
    assert raised.value.metadata["name"] == "/a/c/o"
    assert objects.names() == [moment(2).internal + ".ts"]
    with pytest.raises(DiskFileDeleted):
        objects.by_hash().open()


def test_what_is_older_than_a_tombstone_never_was(objects):
    objects.delete(at=5)
    objects.put(data=b"abc", at=4)
    objects.post(at=3)
    objects.delete(at=2)
    assert objects.names() == [moment(5).internal + ".ts"]
    assert not objects.exists()


def test_data_at_the_time_of_a_tombstone_are_deleted(objects):
    objects.put(data=b"abc", at=5)
    objects.delete(at=5)
    assert not objects.exists()
    assert objects.names() == [moment(5).internal + ".ts"]


def test_newer_data_remove_a_tombstone(objects):
    objects.delete(at=5)
    archive = objects.put(data=b"abc", at=6)
    assert objects.read() == archive
    assert len(objects.names()) == 1


def test_older_data_do_not_replace_newer(plain_objects):
    plain_objects.put(data=b"newer", at=5)
    plain_objects.put(data=b"older", at=4)
    assert plain_objects.read() == b"newer"
    assert len(plain_objects.names()) == 1


def test_offsets_of_times_count(objects):
    objects.put(data=b"first", at=5)
    archive = objects.put(data=b"second", at=5, offset=1)
    assert objects.read() == archive
    objects.delete(at=5)
    assert objects.read() == archive


def test_old_tombstones_go_when_their_suffix_is_hashed(backend, policy):
    objects = Objects(backend, policy, reclaim_age="1000")
    objects.delete(at=0)
    assert objects.hashes() == {}
    assert objects.names() == []
    with pytest.raises(DiskFileNotExist):
        objects.by_hash()


def test_young_tombstones_stay(backend, policy):
    objects = Objects(backend, policy, reclaim_age="1000")
    now = time.time() - 500
    objects.file().delete(Timestamp(now))
    assert len(objects.hashes()) == 1
    assert objects.names() == [Timestamp(now).internal + ".ts"]


def test_old_tombstones_are_offered_to_nobody_and_go(backend, policy):
    """Their suffix has been hashed, and nothing else changes it: so a handoff would keep them."""
    young = Objects(backend, policy)
    young.delete(at=0)
    assert len(young.hashes()) == 1
    old = Objects(backend, policy, partition=young.partition, reclaim_age="1000")
    assert len(list(young.manager.yield_hashes(DEVICE, young.partition, policy))) == 1
    assert list(old.manager.yield_hashes(DEVICE, old.partition, policy)) == []
    assert old.names() == []


def test_metadata_without_data_go_when_they_are_old(backend, policy):
    objects = Objects(backend, policy, reclaim_age="1000")
    objects.post(at=0)
    assert not objects.exists()
    assert objects.hashes() == {}
    assert objects.names() == []


def test_an_expired_object_is_gone_for_those_who_do_not_insist(objects):
    objects.put(data=b"abc", at=1, **{"X-Delete-At": str(NOW + 100)})
    with pytest.raises(DiskFileExpired) as raised:
        objects.file().open()
    assert raised.value.timestamp == moment(1)
    with pytest.raises(DiskFileExpired):
        objects.file().read_metadata(current_time=NOW + 100)
    assert objects.file().read_metadata(current_time=NOW + 99)["X-Delete-At"] == str(NOW + 100)
    assert objects.file(open_expired=True).read_metadata()
    with objects.file(open_expired=True).open() as disk_file:
        assert b"".join(disk_file.reader())


def test_a_post_moves_expiry(objects):
    objects.put(data=b"abc", at=1, **{"X-Delete-At": str(NOW + 100)})
    objects.post(at=2, **{"X-Delete-At": "99999999999"})
    assert objects.exists()
    objects.post(at=3)
    assert objects.exists()
