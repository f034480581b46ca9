"""Metadata of a POST over those of the object, and content types with times of their own."""

import pytest

from objects import moment


def test_a_post_replaces_users_metadata_and_keeps_the_systems(objects):
    objects.put(data=b"abc", at=1, **{
        "X-Object-Meta-Old": "1", "X-Object-Sysmeta-Kept": "2", "X-Static-Large-Object": "True", "X-Delete-At": "99999999999"})
    objects.post(at=2, **{"X-Object-Meta-New": "3", "X-Object-Sysmeta-Kept": "no", "ETag": "no"})
    metadata = objects.metadata()
    assert "X-Object-Meta-Old" not in metadata and "X-Delete-At" not in metadata
    assert metadata["X-Object-Meta-New"] == "3"
    assert metadata["X-Object-Sysmeta-Kept"] == "2"
    assert metadata["X-Static-Large-Object"] == "True"
    assert metadata["ETag"] != "no"
    assert metadata["X-Timestamp"] == moment(2).internal
    assert metadata["Content-Type"] == "text/plain"


def test_data_and_meta_files_are_told_apart(objects):
    objects.put(data=b"abc", at=1, **{"X-Object-Meta-Old": "1"})
    with objects.file().open() as disk_file:
        assert disk_file.get_metafile_metadata() is None
        disk_file.reader().close()
    objects.post(at=2, **{"X-Object-Meta-New": "3"})
    with objects.file().open() as disk_file:
        assert disk_file.get_datafile_metadata()["X-Object-Meta-Old"] == "1"
        assert disk_file.get_metafile_metadata() == {"X-Timestamp": moment(2).internal, "X-Object-Meta-New": "3"}
        disk_file.reader().close()


@pytest.mark.parametrize("later_post", [False, True])
@pytest.mark.parametrize("typed", [0, 1, 2, 3])
def test_the_latest_content_type_wins(objects, typed, later_post):
    """A type of time `typed` comes with a POST of time 3, over data of time 1."""
    objects.put(data=b"abc", at=1)
    objects.post(at=3, content_type="posted", content_type_at=typed)
    if later_post:
        objects.post(at=4, **{"X-Object-Meta-A": "1"})
    metadata = objects.metadata()
    assert metadata["Content-Type"] == ("posted" if typed > 1 or typed == 1 and not later_post else "text/plain")
    assert metadata["X-Timestamp"] == moment(4 if later_post else 3).internal


def test_a_type_of_an_earlier_post_is_merged_into_a_later_one(objects):
    objects.put(data=b"abc", at=1)
    objects.post(at=2, content_type="second", content_type_at=5)
    objects.post(at=6, content_type="third", content_type_at=3, **{"X-Object-Meta-A": "1"})
    metadata = objects.metadata()
    assert metadata["Content-Type"] == "second"
    assert metadata["X-Object-Meta-A"] == "1"
    assert len(objects.names()) == 3
    with objects.file().open() as disk_file:
        assert disk_file.content_type_timestamp == moment(5)
        disk_file.reader().close()


def test_posts_of_one_time_with_different_types(objects):
    objects.put(data=b"abc", at=1)
    objects.post(at=3, content_type="early", content_type_at=2)
    objects.post(at=3, content_type="late", content_type_at=3)
    assert objects.metadata()["Content-Type"] == "late"


def test_new_data_over_posts(objects):
    objects.put(data=b"abc", at=1)
    objects.post(at=2, **{"X-Object-Meta-A": "1"})
    objects.post(at=9, **{"X-Object-Meta-B": "1"})
    objects.put(data=b"defg", at=5)
    metadata = objects.metadata()
    assert "X-Object-Meta-A" not in metadata and metadata["X-Object-Meta-B"] == "1"
    assert len(objects.names()) == 2
    objects.put(data=b"defg", at=10)
    assert "X-Object-Meta-B" not in objects.metadata()
    assert len(objects.names()) == 1


def test_an_older_post_changes_nothing(objects):
    objects.put(data=b"abc", at=5)
    objects.post(at=4, **{"X-Object-Meta-A": "1"})
    assert "X-Object-Meta-A" not in objects.metadata()
    assert len(objects.names()) == 1
