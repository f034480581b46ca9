"""Copies within the store."""

import base64
import concurrent.futures
import datetime
import hashlib
import io
import json
import threading

import boto3.s3.transfer
import botocore.exceptions
import pytest

import zonestore
from signer import crc32

MIB = 1 << 20
DAY = datetime.timedelta(days=1)


@pytest.fixture
def source(s3, bucket, data):
    s3.put_object(
        Bucket=bucket, Key="from", Body=data(3_000_000), ContentType="text/a", Metadata={"a": "1"},
        CacheControl="no-cache",
    )
    return {"Bucket": bucket, "Key": "from"}


def test_a_copy_is_the_same(s3, bucket, source, data, md5):
    done = s3.copy_object(Bucket=bucket, Key="to", CopySource=source)["CopyObjectResult"]
    found = s3.get_object(Bucket=bucket, Key="to")
    assert found["Body"].read() == data(3_000_000)
    assert done["ETag"] == found["ETag"] == f'"{md5(data(3_000_000))}"'
    assert done["LastModified"].replace(microsecond=0) == found["LastModified"]
    assert (found["ContentType"], found["Metadata"]) == ("text/a", {"a": "1"})
    assert found["CacheControl"] == "no-cache"
    # Metadata in the request is not used unless it says so.
    s3.copy_object(Bucket=bucket, Key="to", CopySource=source, Metadata={"b": "2"}, ContentType="text/b")
    found = s3.head_object(Bucket=bucket, Key="to")
    assert (found["ContentType"], found["Metadata"]) == ("text/a", {"a": "1"})


def test_metadata_can_be_replaced(s3, bucket, source, data):
    new = dict(MetadataDirective="REPLACE", Metadata={"b": "2"}, ContentType="text/b")
    s3.copy_object(Bucket=bucket, Key="to", CopySource=source, **new)
    for key in ("to", "from"):
        if key == "from":
            before = s3.head_object(Bucket=bucket, Key=key)
            s3.copy_object(Bucket=bucket, Key=key, CopySource=source, **new)
            assert s3.head_object(Bucket=bucket, Key=key)["LastModified"] >= before["LastModified"]
        found = s3.get_object(Bucket=bucket, Key=key)
        assert found["Body"].read() == data(3_000_000)
        assert (found["ContentType"], found["Metadata"]) == ("text/b", {"b": "2"})
        assert "CacheControl" not in found


def live(server):
    return json.loads(zonestore.run("store", "df", server.drive, "--json").stdout)["live_bytes"]


def test_a_copy_shares_its_bytes_and_outlives_the_source(s3, server, bucket, data):
    body, multipart = data(9 * MIB), boto3.s3.transfer.TransferConfig(multipart_threshold=5 * MIB, multipart_chunksize=5 * MIB)
    s3.upload_fileobj(io.BytesIO(body), bucket, "from", Config=multipart)
    before, source = live(server), {"Bucket": bucket, "Key": "from"}
    for n in range(3):
        s3.copy_object(Bucket=bucket, Key=f"to{n}", CopySource=source)
    target = dict(Bucket=bucket, Key="parts")
    target["UploadId"] = s3.create_multipart_upload(**target)["UploadId"]
    part = s3.upload_part_copy(**target, PartNumber=1, CopySource=source, CopySourceRange=f"bytes=5-{6 * MIB}")
    parts = [{"PartNumber": 1, "ETag": part["CopyPartResult"]["ETag"]}]
    s3.complete_multipart_upload(**target, MultipartUpload={"Parts": parts})
    assert live(server) - before < MIB
    s3.put_object(**source, Body=b"other")
    s3.delete_object(Bucket=bucket, Key="to0")
    for n in (1, 2):
        found = s3.get_object(Bucket=bucket, Key=f"to{n}")
        # The tag of bytes, where the source had one of parts.
        assert found["Body"].read() == body and found["ETag"] == f'"{hashlib.md5(body).hexdigest()}"'
    assert s3.get_object(Bucket=bucket, Key="parts")["Body"].read() == body[5 : 6 * MIB + 1]


def test_what_is_copied_while_it_is_replaced_is_one_version_of_it(s3, bucket, data):
    source = {"Bucket": bucket, "Key": "from"}
    versions = [data(200_000), data(3_000_000), b""]
    tags = {hashlib.md5(body).hexdigest(): body for body in versions}
    s3.put_object(**source, Body=versions[0])
    done = threading.Event()

    def replace():
        while not done.is_set():
            for body in versions:
                s3.put_object(**source, Body=body)

    with concurrent.futures.ThreadPoolExecutor() as pool:
        replacing = pool.submit(replace)
        try:
            for _ in range(30):
                try:
                    copy = s3.copy_object(Bucket=bucket, Key="to", CopySource=source, ChecksumAlgorithm="SHA256")
                except botocore.exceptions.ClientError as error:
                    assert error.response["Error"]["Code"] == "OperationAborted"
                    continue
                body = tags[copy["CopyObjectResult"]["ETag"].strip('"')]
                assert s3.get_object(Bucket=bucket, Key="to")["Body"].read() == body
        finally:
            done.set()
        replacing.result()


def test_an_object_is_not_copied_onto_itself_for_nothing(s3, bucket, source, refused):
    code = refused(s3.copy_object, Bucket=bucket, Key="from", CopySource=source)
    assert code == ("InvalidRequest", 400)


def test_a_copy_can_get_another_checksum(s3, bucket, source, data):
    done = s3.copy_object(Bucket=bucket, Key="from", CopySource=source, ChecksumAlgorithm="SHA256")
    assert done["CopyObjectResult"]["ChecksumSHA256"]
    found = s3.get_object(Bucket=bucket, Key="from", ChecksumMode="ENABLED")
    assert found["Body"].read() == data(3_000_000)
    assert found["ChecksumSHA256"] == done["CopyObjectResult"]["ChecksumSHA256"]


def test_a_copy_of_parts_onto_itself_has_the_checksum_of_all_bytes(s3, bucket, data):
    source = dict(Bucket=bucket, Key="parts")
    upload = dict(**source, UploadId=s3.create_multipart_upload(**source, ChecksumAlgorithm="SHA256")["UploadId"])
    bodies = [data(5 * MIB), data(1000)]
    parts = []
    for number, body in enumerate(bodies, 1):
        part = s3.upload_part(**upload, PartNumber=number, Body=body, ChecksumAlgorithm="SHA256")
        parts.append({"PartNumber": number, "ETag": part["ETag"], "ChecksumSHA256": part["ChecksumSHA256"]})
    s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})
    assert s3.head_object(**source, ChecksumMode="ENABLED")["ChecksumType"] == "COMPOSITE"
    whole = base64.b64encode(hashlib.sha256(b"".join(bodies)).digest()).decode()
    s3.copy_object(**source, CopySource=source, MetadataDirective="REPLACE", Metadata={"a": "1"})
    found = s3.head_object(**source, ChecksumMode="ENABLED")
    assert (found["ChecksumType"], found["ChecksumSHA256"]) == ("FULL_OBJECT", whole)
    assert found["Metadata"] == {"a": "1"} and "-" not in found["ETag"]


def test_digests_of_a_body_that_is_not_there_are_of_nothing(s3, bucket, source, sign):
    wrong, nothing = crc32(b"x"), crc32(b"")
    copy = dict(x_amz_copy_source=f"/{bucket}/from")
    for value, status in ((wrong, 400), (nothing, 200)):
        answer = sign.request("PUT", f"/{bucket}/to", **copy, x_amz_checksum_crc32=value)
        assert answer[0] == status, answer
    for value, status in ((wrong, 400), (nothing, 204)):
        answer = sign.request("DELETE", f"/{bucket}/from", x_amz_checksum_crc32=value)
        assert answer[0] == status, answer


def test_conditions_on_the_source(s3, bucket, source, refused):
    head = s3.head_object(**source)
    tag, time = head["ETag"], head["LastModified"]
    target = dict(Bucket=bucket, Key="to", CopySource=source)
    for holds in [
        dict(CopySourceIfMatch=tag), dict(CopySourceIfNoneMatch='"other"'), dict(CopySourceIfMatch=f'"other", {tag}'),
        dict(CopySourceIfModifiedSince=time - DAY), dict(CopySourceIfUnmodifiedSince=time + DAY),
    ]:
        s3.copy_object(**target, **holds)
    for fails in [
        dict(CopySourceIfMatch='"other"'), dict(CopySourceIfNoneMatch=tag), dict(CopySourceIfNoneMatch=f'"other", {tag}'),
        dict(CopySourceIfModifiedSince=time), dict(CopySourceIfUnmodifiedSince=time - DAY),
    ]:
        assert refused(s3.copy_object, **target, **fails) == ("PreconditionFailed", 412), fails


def test_sources_that_are_not_there(s3, bucket, refused):
    copy = s3.copy_object
    missing = {"Bucket": bucket, "Key": "missing"}
    assert refused(copy, Bucket=bucket, Key="to", CopySource=missing) == ("NoSuchKey", 404)
    nowhere = {"Bucket": "no-such-bucket", "Key": "k"}
    assert refused(copy, Bucket=bucket, Key="to", CopySource=nowhere) == ("NoSuchBucket", 404)


def test_a_plus_in_a_source_is_a_space(s3, bucket, sign):
    """The Go CDK and s5cmd encode sources as forms are."""
    for key in ("a b", "a+b"):
        s3.put_object(Bucket=bucket, Key=key, Body=key.encode())
    for source, expected in (("a+b", b"a b"), ("a%20b", b"a b"), ("a%2Bb", b"a+b")):
        for where in (f"/{bucket}/{source}", f"{bucket}%2F{source}"):
            assert sign.request("PUT", f"/{bucket}/copy", x_amz_copy_source=where)[0] == 200
            assert s3.get_object(Bucket=bucket, Key="copy")["Body"].read() == expected


def test_parts_can_be_copied(s3, bucket, data, refused):
    body = data(12 * MIB)
    s3.put_object(Bucket=bucket, Key="from", Body=body)
    source = {"Bucket": bucket, "Key": "from"}
    tag = s3.head_object(**source)["ETag"]
    target = dict(Bucket=bucket, Key="to")
    target["UploadId"] = s3.create_multipart_upload(**target)["UploadId"]

    def copy(number, **options):
        found = s3.upload_part_copy(**target, PartNumber=number, CopySource=source, **options)
        return {"PartNumber": number, "ETag": found["CopyPartResult"]["ETag"]}

    parts = [
        copy(1, CopySourceRange=f"bytes=100-{6 * MIB}"),
        copy(2, CopySourceIfMatch=tag),
        copy(3, CopySourceRange="bytes=0-0"),
    ]
    assert refused(copy, 4, CopySourceRange=f"bytes=0-{12 * MIB}")[0] == "InvalidRange"
    assert refused(copy, 4, CopySourceRange="bytes=5-")[0] == "InvalidArgument"
    assert refused(copy, 4, CopySourceIfMatch='"other"') == ("PreconditionFailed", 412)
    s3.complete_multipart_upload(**target, MultipartUpload={"Parts": parts})
    found = s3.get_object(Bucket=bucket, Key="to")["Body"].read()
    assert found == body[100:6 * MIB + 1] + body + body[:1]
