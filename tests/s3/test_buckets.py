"""Buckets: create, head, list, locate, delete."""

import os

import pytest

import zonestore


def test_a_bucket_comes_and_goes(s3, refused):
    name = "a-bucket.that.comes-and-goes"
    s3.create_bucket(Bucket=name)
    assert s3.head_bucket(Bucket=name)["BucketRegion"] == "us-east-1"
    assert name in [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]]
    assert s3.get_bucket_location(Bucket=name)["LocationConstraint"] is None
    assert s3.get_bucket_versioning(Bucket=name).get("Status") is None
    s3.delete_bucket(Bucket=name)
    assert refused(s3.head_bucket, Bucket=name) == ("404", 404)
    assert refused(s3.delete_bucket, Bucket=name) == ("NoSuchBucket", 404)
    assert refused(s3.get_bucket_location, Bucket=name) == ("NoSuchBucket", 404)
    assert name not in [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]]


def test_a_bucket_is_made_once(s3, bucket, refused):
    assert refused(s3.create_bucket, Bucket=bucket) == ("BucketAlreadyOwnedByYou", 409)


def test_a_bucket_that_holds_something_stays(s3, bucket, refused):
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    assert refused(s3.delete_bucket, Bucket=bucket) == ("BucketNotEmpty", 409)
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"x"


@pytest.mark.parametrize(
    "name", ["ab", "UPPER", "under_score", "-dash", "dash-", "dot..dot", "192.168.1.1", "a" * 64, ".uploads"]
)
def test_bucket_names_are_checked(sign, name):
    status, _, body = sign.request("PUT", f"/{name}")
    assert status == 400 and b"InvalidBucketName" in body
    assert b"<Message>The specified bucket is not valid</Message>" in body


def test_hidden_collections_are_no_buckets(s3, bucket, sign):
    s3.create_multipart_upload(Bucket=bucket, Key="k")
    assert all("uploads" not in found["Name"] for found in s3.list_buckets()["Buckets"])
    for path in ("/.uploads/" + bucket, "/.uploads%2F" + bucket):
        status, _, _ = sign.request("GET", path)
        assert status == 400


def test_unfinished_uploads_end_with_their_bucket(s3, refused, data):
    name = "with-unfinished-uploads"
    s3.create_bucket(Bucket=name)
    upload = s3.create_multipart_upload(Bucket=name, Key="k")["UploadId"]
    s3.upload_part(Bucket=name, Key="k", UploadId=upload, PartNumber=1, Body=data(100_000))
    s3.delete_bucket(Bucket=name)
    s3.create_bucket(Bucket=name)
    code = refused(s3.upload_part, Bucket=name, Key="k", UploadId=upload, PartNumber=1, Body=b"x")
    assert code == ("NoSuchUpload", 404)
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=name)
    s3.delete_bucket(Bucket=name)


def test_buckets_are_listed_in_pages(s3):
    names = [f"page-{n:02}" for n in range(7)]
    for name in reversed(names):
        s3.create_bucket(Bucket=name)
    found, token = [], {}
    while True:
        page = s3.list_buckets(Prefix="page-", MaxBuckets=3, **token)
        assert len(page["Buckets"]) <= 3
        found += [bucket["Name"] for bucket in page["Buckets"]]
        if "ContinuationToken" not in page:
            break
        token = {"ContinuationToken": page["ContinuationToken"]}
    assert found == names
    for name in names:
        s3.delete_bucket(Bucket=name)


def test_what_is_not_implemented_says_so(s3, bucket, refused):
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    missing = ("NotImplemented", 501)
    assert refused(s3.get_bucket_acl, Bucket=bucket) == missing
    assert refused(s3.get_bucket_policy, Bucket=bucket) == missing
    assert refused(s3.get_object_acl, Bucket=bucket, Key="k") == missing
    assert refused(s3.get_bucket_tagging, Bucket=bucket) == missing
    website = dict(Bucket=bucket, WebsiteConfiguration={"IndexDocument": {"Suffix": "index.html"}})
    assert refused(s3.put_bucket_website, **website) == missing
    encryption = dict(ServerSideEncryption="AES256")
    assert refused(s3.put_object, Bucket=bucket, Key="t", Body=b"", **encryption) == missing
    assert refused(s3.put_object, Bucket=bucket, Key="t", Body=b"", ACL="public-read")[0] == (
        "AccessControlListNotSupported"
    )
    assert refused(s3.put_object, Bucket=bucket, Key="t", Body=b"", StorageClass="GLACIER")[0] == (
        "InvalidStorageClass"
    )


def test_a_collection_that_salvage_made_becomes_a_bucket(tmp_path, refused):
    lost = zonestore.make_drive(tmp_path / "lost.zoned", "256MiB")
    body = os.urandom(500_000)
    (tmp_path / "body").write_bytes(body)
    zonestore.run("store", "put", lost, tmp_path / "body", "c/hit")
    image = bytearray(lost.read_bytes())
    at = image.find(body[:100])
    image[at] ^= 1
    lost.write_bytes(image)
    to = zonestore.make_drive(tmp_path / "to.zoned", "256MiB")
    zonestore.run("store", "salvage", lost, "--to", to, "--damaged", check=False)
    name = "salvaged-damaged"
    server = zonestore.Server(to).start()
    s3 = server.client()
    assert name not in [b["Name"] for b in s3.list_buckets()["Buckets"]]
    s3.create_bucket(Bucket=name)
    assert name in [b["Name"] for b in s3.list_buckets()["Buckets"]]
    assert [o["Key"] for o in s3.list_objects_v2(Bucket=name)["Contents"]] == ["c/hit"]
    assert s3.get_object(Bucket=name, Key="c/hit")["Body"].read()[200_000:] == body[200_000:]
    upload = s3.create_multipart_upload(Bucket=name, Key="new")["UploadId"]
    s3.abort_multipart_upload(Bucket=name, Key="new", UploadId=upload)
    s3.delete_object(Bucket=name, Key="c/hit")
    assert refused(s3.create_bucket, Bucket=name) == ("BucketAlreadyOwnedByYou", 409)
    s3.delete_bucket(Bucket=name)
    server.stop()
    zonestore.fsck(to)
