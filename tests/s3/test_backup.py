"""A bucket of a drive that was made of a backup is the bucket that it was."""

import os

import zonestore
from test_multipart import MIB, Upload


def seen(s3, bucket):
    """All that S3 tells of a bucket."""
    found = {}
    for entry in s3.list_objects_v2(Bucket=bucket).get("Contents", []):
        head = s3.head_object(Bucket=bucket, Key=entry["Key"])
        whole = s3.get_object(Bucket=bucket, Key=entry["Key"])
        del head["ResponseMetadata"]
        found[entry["Key"]] = (entry["ETag"], entry["LastModified"], head, whole["Body"].read())
    for key, count in (("parts", 2),):
        for number in range(1, count + 1):
            part = s3.get_object(Bucket=bucket, Key=key, PartNumber=number)
            found[key, number] = (part["ETag"], part["ContentLength"], part["PartsCount"])
    return found


def test_s3_sees_no_difference(make_server, tmp_path, data):
    server = make_server()
    s3 = server.client()
    s3.create_bucket(Bucket="photos")
    s3.put_object(Bucket="photos", Key="a/b", Body=b"b", Metadata={"who": "me"}, ContentType="text/x")
    s3.put_object(Bucket="photos", Key="a", Body=data(100_000), ChecksumAlgorithm="SHA256")
    upload = Upload(s3, "photos", "parts", Metadata={"x": "y"})
    upload.put(1, data(5 * MIB, 1))
    upload.put(2, data(77, 2))
    upload.complete()
    unfinished = Upload(s3, "photos", "later")
    unfinished.put(1, data(5 * MIB, 3))
    server.stop()

    full, more = tmp_path / "full.tar", tmp_path / "more.tar"
    zonestore.run("store", "backup", server.drive, "--to", full)
    server.start()
    s3 = server.client()
    s3.put_object(Bucket="photos", Key="new", Body=b"new")
    s3.delete_object(Bucket="photos", Key="a/b")
    before = seen(s3, "photos")
    uploads = s3.list_multipart_uploads(Bucket="photos")["Uploads"]
    server.stop()
    zonestore.run("store", "backup", server.drive, "--to", more, "--since", full)

    copy = make_server()
    copy.stop()
    zonestore.run("store", "restore", full, more, "--to", copy.drive)
    copy.start()
    there = copy.client()
    assert seen(there, "photos") == before
    assert there.list_multipart_uploads(Bucket="photos")["Uploads"] == uploads
    # What was begun there can be ended here.
    unfinished.s3 = there
    unfinished.complete()
    found = there.get_object(Bucket="photos", Key="later")["Body"].read()
    assert found == data(5 * MIB, 3)


def test_what_is_no_earlier_backup_holds_up_no_later_one(make_server, tmp_path):
    server = make_server()
    pipe, folder, empty, cut = (tmp_path / name for name in ("pipe", "folder", "empty", "cut"))
    os.mkfifo(pipe)
    folder.mkdir()
    empty.write_bytes(b"")
    zonestore.run("store", "backup", server.drive, "--to", tmp_path / "full.tar")
    cut.write_bytes((tmp_path / "full.tar").read_bytes()[:600])
    for number, since in enumerate([pipe, folder, empty, cut, "/dev/null"]):
        refused = zonestore.run("store", "backup", server.drive, "--to", tmp_path / f"{number}.tar", "--since", since, check=False)
        assert refused.returncode not in (0, 101) and str(since) in refused.stderr, refused.stderr
        assert "fsck" not in refused.stderr, refused.stderr
    zonestore.run("store", "backup", server.drive, "--to", tmp_path / "later.tar")
