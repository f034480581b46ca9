"""Conditional requests."""

import datetime
import threading

import pytest

DAY = datetime.timedelta(days=1)


@pytest.fixture
def stored(s3, bucket):
    s3.put_object(Bucket=bucket, Key="k", Body=b"one")
    head = s3.head_object(Bucket=bucket, Key="k")
    return dict(Bucket=bucket, Key="k"), head["ETag"], head["LastModified"]


def test_reads(s3, stored, refused):
    target, tag, time = stored
    for call, failed, unchanged in [
        (s3.get_object, ("PreconditionFailed", 412), ("304", 304)),
        (s3.head_object, ("412", 412), ("304", 304)),
    ]:
        for holds in [
            dict(IfMatch=tag), dict(IfMatch="*"), dict(IfNoneMatch='"other"'),
            dict(IfModifiedSince=time - DAY), dict(IfUnmodifiedSince=time), dict(IfUnmodifiedSince=time + DAY),
            dict(IfMatch=tag, IfUnmodifiedSince=time - DAY), dict(IfNoneMatch='"other"', IfModifiedSince=time + DAY),
        ]:
            assert call(**target, **holds)["ETag"] == tag, holds
        for fails in [dict(IfMatch='"other"'), dict(IfUnmodifiedSince=time - DAY)]:
            assert refused(call, **target, **fails) == failed, fails
        for same in [dict(IfNoneMatch=tag), dict(IfNoneMatch="*"), dict(IfModifiedSince=time), dict(IfModifiedSince=time + DAY)]:
            assert refused(call, **target, **same) == unchanged, same


def test_304_carries_the_validators(sign, stored):
    target, tag, _ = stored
    status, headers, body = sign.request("GET", "/{Bucket}/{Key}".format(**target), if_none_match=tag)
    assert (status, body) == (304, b"")
    headers = {name.lower(): value for name, value in headers.items()}
    assert headers["etag"] == tag and "last-modified" in headers


def test_writes(s3, stored, refused):
    target, tag, _ = stored
    put, failed = s3.put_object, ("PreconditionFailed", 412)
    missing = dict(target, Key="missing")
    assert refused(put, **target, Body=b"two", IfNoneMatch="*") == failed
    assert refused(put, **target, Body=b"two", IfMatch='"other"') == failed
    assert refused(put, **missing, Body=b"two", IfMatch=tag) == ("NoSuchKey", 404)
    assert s3.get_object(**target)["Body"].read() == b"one"
    # What is not one tag must not pass for a tag that no object has.
    source, upload = dict(target, Key="from"), dict(target)
    put(**source, Body=b"two")
    upload["UploadId"] = s3.create_multipart_upload(**target)["UploadId"]
    part = s3.upload_part(**upload, PartNumber=1, Body=b"two")["ETag"]
    parts = {"Parts": [{"PartNumber": 1, "ETag": part}]}
    for value in ['"*"', '""', '"a b"', f'{tag}, "0123"', f'"0123",{tag}', f'W/"x", {tag}']:
        for said in [dict(IfNoneMatch=value), dict(IfMatch=value)]:
            for call, options in [
                (put, dict(target, Body=b"two")),
                (s3.copy_object, dict(target, CopySource=source)),
                (s3.complete_multipart_upload, dict(upload, MultipartUpload=parts)),
            ]:
                assert refused(call, **options, **said) == ("NotImplemented", 501), (call, said)
        assert refused(s3.delete_object, **target, IfMatch=value) == ("NotImplemented", 501), value
    s3.abort_multipart_upload(**upload)
    assert s3.get_object(**target)["Body"].read() == b"one"
    new = put(**target, Body=b"two", IfMatch=tag)["ETag"]
    assert refused(put, **target, Body=b"three", IfMatch=tag) == failed
    put(**missing, Body=b"first", IfNoneMatch="*")
    assert s3.get_object(**target)["Body"].read() == b"two"
    assert refused(s3.delete_object, **target, IfMatch=tag) == failed
    s3.delete_object(**target, IfMatch=new)
    assert refused(s3.delete_object, **target, IfMatch=new) == ("NoSuchKey", 404)


def test_only_one_of_many_creates(s3, bucket, data):
    created = []

    def work(number):
        try:
            s3.put_object(Bucket=bucket, Key="k", Body=data(300_000, number), IfNoneMatch="*")
            created.append(number)
        except s3.exceptions.ClientError as error:
            assert error.response["Error"]["Code"] == "PreconditionFailed"

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(created) == 1
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == data(300_000, created[0])
