"""Fragments of erasure-coded objects: which is read, which is durable, what is purged."""

import time

import pytest
from swift.common import storage_policy
from swift.common.exceptions import DiskFileDeleted, DiskFileError, DiskFileNotExist
from swift.common.storage_policy import ECStoragePolicy, StoragePolicy, StoragePolicyCollection

from backends import DEVICE, hash_of
from objects import NOW, Objects, moment


def chosen(objects, **options):
    """The time and index of the fragment that is read."""
    with objects.file(**options).open() as disk_file:
        metadata = disk_file.get_datafile_metadata()
        disk_file.reader().close()
    return disk_file.data_timestamp, int(metadata["X-Object-Sysmeta-Ec-Frag-Index"])


def test_without_a_commit_there_is_no_object(coded_objects):
    coded_objects.put(data=b"abc", commit=False)
    with pytest.raises(DiskFileNotExist):
        coded_objects.file().open()
    assert coded_objects.names() == [moment(0).internal + "#2.data"]
    assert chosen(coded_objects, frag_prefs=[]) == (moment(0), 2)


def test_a_commit_makes_durable_and_removes_what_is_older(coded_objects):
    coded_objects.put(data=b"old", at=1)
    coded_objects.post(at=2)
    coded_objects.put(data=b"abc", at=3, commit=False)
    assert chosen(coded_objects) == (moment(1), 2)
    with coded_objects.file(frag_index=2).create() as writer:
        writer.commit(moment(3))
    assert coded_objects.names() == [moment(3).internal + "#2#d.data"]
    with coded_objects.file(frag_index=2).create() as writer:
        with pytest.raises(DiskFileError):
            writer.commit(moment(4))


def test_a_late_commit_of_what_newer_data_replaced_is_done(coded_objects):
    with coded_objects.file(frag_index=2).create() as writer:
        coded_objects.put(data=b"newer", at=5)
        writer.commit(moment(3))
    assert chosen(coded_objects) == (moment(5), 2)
    with coded_objects.file(frag_index=2).create() as writer:
        coded_objects.delete(at=6)
        writer.commit(moment(5))


def test_an_index_is_asked_for(coded_objects):
    for index in (1, 4):
        coded_objects.put(data=b"abc", index=index)
    assert chosen(coded_objects) == (moment(0), 4)
    assert chosen(coded_objects, frag_index=1) == (moment(0), 1)
    assert chosen(coded_objects, frag_index="4") == (moment(0), 4)
    with pytest.raises(DiskFileNotExist):
        coded_objects.file(frag_index=2).open()
    for wrong in ("x", -1, 7):
        with pytest.raises(DiskFileError):
            coded_objects.file(frag_index=wrong)


@pytest.mark.parametrize("preferences, expected", [
    ([], (3, 2)),
    ([{"timestamp": 3, "exclude": []}], (3, 2)),
    ([{"timestamp": 3, "exclude": [2]}], (2, 6)),
    ([{"timestamp": 2, "exclude": []}], (2, 6)),
    ([{"timestamp": 2, "exclude": [6]}], (2, 1)),
    ([{"timestamp": 2, "exclude": [1, 6]}], (3, 2)),
    ([{"timestamp": 1, "exclude": []}], (1, 5)),
    ([{"timestamp": 9, "exclude": []}, {"timestamp": 1, "exclude": [5]}], (1, 4)),
    ([{"timestamp": 1, "exclude": [4, 5]}, {"timestamp": 2, "exclude": [1, 6]}], (3, 2)),
])
def test_preferences(coded_objects, preferences, expected):
    """Durable fragments 4 and 5 of time 1, then 1 and 6 of time 2 and 2 of time 3, which nobody committed."""
    for at, index, commit in [(1, 4, True), (1, 5, True), (2, 1, False), (2, 6, False), (3, 2, False)]:
        coded_objects.put(data=b"abc", at=at, index=index, commit=commit)
    preferences = [{**preference, "timestamp": moment(preference["timestamp"]).internal} for preference in preferences]
    at, index = expected
    assert chosen(coded_objects, frag_prefs=preferences) == (moment(at), index)
    with coded_objects.file().open() as disk_file:
        assert disk_file.durable_timestamp == moment(1)
        assert disk_file.fragments == {moment(1): [4, 5], moment(2): [1, 6], moment(3): [2]}
        disk_file.reader().close()


@pytest.mark.parametrize("indexes", [(1, 8), (3, 10), (2, 8, 11)])
def test_the_highest_of_many_fragments_is_read(zoned, monkeypatch, indexes):
    """Swift takes the last of a set of integers, which is the highest only below 8."""
    wide = ECStoragePolicy(1, "wide", ec_type="liberasurecode_rs_vand", ec_ndata=4, ec_nparity=8, ec_segment_size=4096)
    monkeypatch.setattr(storage_policy, "_POLICIES", StoragePolicyCollection([StoragePolicy(0, "plain", is_default=True), wide]))
    objects = Objects(zoned, wide)
    for index in indexes:
        objects.put(data=b"abc", at=1, index=index)
    *lower, highest = indexes
    for exclude, expected in [([], highest), ([5], highest), ([highest], lower[-1]), (lower, highest)]:
        preferences = [{"timestamp": moment(1).internal, "exclude": exclude}]
        assert chosen(objects, frag_prefs=preferences) == (moment(1), expected)
    assert chosen(objects, frag_prefs=[]) == chosen(objects) == (moment(1), highest)
    # Reconstructors are told of all of them.
    with objects.file(frag_prefs=preferences).open() as disk_file:
        assert disk_file.fragments == {moment(1): sorted(indexes)}
        disk_file.reader().close()


def test_nonsense_preferences_are_refused(coded_objects):
    for wrong in ([{"timestamp": "x", "exclude": []}], [{"timestamp": "1"}], [{"timestamp": "1", "exclude": ["x"]}], ["x"]):
        with pytest.raises(DiskFileError):
            coded_objects.file(frag_prefs=wrong)


def test_metadata_that_a_fragment_needs(coded_objects):
    coded_objects.put(data=b"abc")
    with coded_objects.file().open() as disk_file:
        assert disk_file.validate_metadata()
        del disk_file._datafile_metadata["X-Object-Sysmeta-Ec-Etag"]
        assert not disk_file.validate_metadata()
        disk_file.reader().close()


def test_the_index_of_the_metadata_is_the_index_of_the_name(coded_objects):
    coded_objects.put(data=b"abc", index=3, **{"X-Object-Sysmeta-Ec-Frag-Index": "5"}, commit=False)
    assert coded_objects.names() == [moment(0).internal + "#5.data"]


def test_a_purge_removes_one_fragment(coded_objects):
    for index in (1, 4):
        coded_objects.put(data=b"abc", index=index)
    coded_objects.file().purge(moment(0), 4)
    assert chosen(coded_objects) == (moment(0), 1)
    coded_objects.file().purge(moment(0), 1)
    assert coded_objects.names() == []
    assert coded_objects.hashes() == {}
    coded_objects.file().purge(moment(0), 1)


def test_a_purge_of_a_tombstone_and_of_metadata(coded_objects):
    coded_objects.delete(at=1)
    coded_objects.file().purge(moment(1), None)
    assert coded_objects.names() == []
    coded_objects.put(data=b"abc", at=2)
    coded_objects.post(at=3)
    coded_objects.file().purge(moment(2), 2, meta_timestamp=moment(3))
    assert coded_objects.names() == []


@pytest.mark.parametrize("age", [0, 10 ** 6])
def test_a_fragment_that_waits_for_its_commit_is_not_purged(coded_objects, age):
    """Also if its request is old, as the reconciler's are."""
    at = int(time.time() - age - NOW)
    coded_objects.put(data=b"abc", at=at, commit=False)
    coded_objects.file().purge(moment(at), 2, nondurable_purge_delay=1000)
    assert len(coded_objects.names()) == 1
    coded_objects.file().purge(moment(at), 2, nondurable_purge_delay=0)
    assert coded_objects.names() == []


def test_files_and_diskfile_of_a_hash(coded_objects):
    coded_objects.put(data=b"abc", at=1)
    coded_objects.put(data=b"abc", at=2, index=4, commit=False)
    disk_file, names = coded_objects.manager.get_diskfile_and_filenames_from_hash(
        DEVICE, coded_objects.partition, hash_of("o"), coded_objects.policy, frag_index=4)
    assert names == [moment(2).internal + "#4.data", moment(1).internal + "#2#d.data"]
    assert disk_file.obj == "o"
    with pytest.raises(DiskFileNotExist):
        disk_file.open()
    assert disk_file.fragments == {moment(2): [4], moment(1): [2]}
    coded_objects.delete(at=3)
    disk_file, names = coded_objects.manager.get_diskfile_and_filenames_from_hash(
        DEVICE, coded_objects.partition, hash_of("o"), coded_objects.policy)
    assert names == [moment(3).internal + ".ts"]
    with pytest.raises(DiskFileDeleted):
        disk_file.open()


def test_old_fragments_without_a_commit_go(backend, coded):
    objects = Objects(backend, coded, reclaim_age="1000")
    objects.put(data=b"abc", commit=False)
    objects.hashes([hash_of("o")[-3:]])
    assert objects.names() == []
    waiting = Objects(backend, coded, reclaim_age="1000", commit_window="3600")
    waiting.put(data=b"abc", commit=False)
    waiting.hashes([hash_of("o")[-3:]])
    assert len(waiting.names()) == 1
