"""Multipart uploads."""

import base64
import hashlib
import io
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from boto3.s3.transfer import TransferConfig

MIB = 1 << 20


def whole_tag(parts):
    digests = b"".join(hashlib.md5(part).digest() for part in parts)
    return f'"{hashlib.md5(digests).hexdigest()}-{len(parts)}"'


def crc(data):
    return base64.b64encode(zlib.crc32(data).to_bytes(4, "big")).decode()


class Upload:
    def __init__(self, s3, bucket, key="k", **options):
        self.s3 = s3
        self.target = dict(Bucket=bucket, Key=key)
        self.target["UploadId"] = s3.create_multipart_upload(**self.target, **options)["UploadId"]
        self.parts = []

    def put(self, number, body, **options):
        found = self.s3.upload_part(**self.target, PartNumber=number, Body=body, **options)
        self.parts = [part for part in self.parts if part["PartNumber"] != number]
        self.parts.append({"PartNumber": number, "ETag": found["ETag"]})
        return found

    def complete(self, parts=None, **options):
        parts = sorted(self.parts, key=lambda part: part["PartNumber"]) if parts is None else parts
        return self.s3.complete_multipart_upload(**self.target, MultipartUpload={"Parts": parts}, **options)

    def abort(self):
        self.s3.abort_multipart_upload(**self.target)


def test_parts_become_an_object(s3, bucket, data):
    # Five-MiB parts: each of them spans zones of the test drive.
    parts = [data(5 * MIB, 1), data(5 * MIB + 12345, 2), data(77, 3)]
    upload = Upload(s3, bucket, ContentType="text/x", Metadata={"a": "1"}, CacheControl="no-store")
    for number in (7, 2, 9):
        upload.put(number, parts[(2, 7, 9).index(number)])
    done = upload.complete()
    assert done["ETag"] == whole_tag(parts)
    assert done["Location"] == f"{s3.meta.endpoint_url}/{bucket}/k"
    found = s3.get_object(Bucket=bucket, Key="k")
    assert found["Body"].read() == b"".join(parts)
    assert (found["ETag"], found["ContentType"], found["Metadata"]) == (whole_tag(parts), "text/x", {"a": "1"})
    assert found["CacheControl"] == "no-store"
    middle = s3.get_object(Bucket=bucket, Key="k", Range=f"bytes={5 * MIB - 10}-{5 * MIB + 9}")
    assert middle["Body"].read() == b"".join(parts)[5 * MIB - 10:5 * MIB + 10]
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)
    for number, part in enumerate(parts, 1):
        one = s3.get_object(Bucket=bucket, Key="k", PartNumber=number)
        assert one["Body"].read() == part and one["PartsCount"] == 3
    described = s3.get_object_attributes(Bucket=bucket, Key="k", ObjectAttributes=["ObjectParts"])
    assert described["ObjectParts"]["TotalPartsCount"] == 3


def test_an_object_without_parts_is_its_only_part(s3, bucket, refused):
    s3.put_object(Bucket=bucket, Key="k", Body=b"0123456789")
    for call in (s3.get_object, s3.head_object):
        found = call(Bucket=bucket, Key="k", PartNumber=1)
        assert (found["ResponseMetadata"]["HTTPStatusCode"], found["ContentRange"]) == (206, "bytes 0-9/10")
        assert "PartsCount" not in found
    s3.put_object(Bucket=bucket, Key="k", Body=b"")
    found = s3.head_object(Bucket=bucket, Key="k", PartNumber=1)
    assert found["ResponseMetadata"]["HTTPStatusCode"] == 200 and "ContentRange" not in found
    assert refused(s3.get_object, Bucket=bucket, Key="k", PartNumber=2)[1] == 416


def test_a_client_may_ask_twice_for_the_same_completion(s3, bucket, data, refused):
    upload = Upload(s3, bucket)
    upload.put(1, data(1000))
    first = upload.complete()["ETag"]
    assert upload.complete()["ETag"] == first
    s3.put_object(Bucket=bucket, Key="k", Body=b"new")
    assert refused(upload.complete) == ("NoSuchUpload", 404)
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"new"


def test_clients_that_ask_for_the_same_completion_at_once_are_all_told(s3, bucket, data, refused):
    """As one does that waits no longer and asks again."""
    for round in range(10):
        upload = Upload(s3, bucket, key=f"k{round}")
        for number in range(1, 4):
            upload.put(number, data(5 * MIB if number < 3 else 1000, number))
        with ThreadPoolExecutor(6) as pool:
            tags = [done["ETag"] for done in pool.map(lambda _: upload.complete(), range(6))]
        assert len(set(tags)) == 1 and s3.head_object(Bucket=bucket, Key=f"k{round}")["ETag"] == tags[0]
        assert refused(upload.complete, parts=upload.parts[:1]) == ("NoSuchUpload", 404)


def test_a_part_can_be_replaced_and_left_out(s3, bucket, data):
    upload = Upload(s3, bucket)
    upload.put(1, data(5 * MIB, 1))
    upload.put(1, data(5 * MIB, 2))
    upload.put(2, data(100, 3))
    upload.put(3, data(100, 4))
    upload.complete([part for part in upload.parts if part["PartNumber"] != 2])
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == data(5 * MIB, 2) + data(100, 4)


def test_orders_that_do_not_fit(s3, bucket, data, refused):
    upload = Upload(s3, bucket)
    upload.put(1, data(1000, 1))
    upload.put(2, data(5 * MIB, 2))
    upload.put(3, data(1000, 3))
    one, two, three = upload.parts
    assert refused(upload.complete, [two, one]) == ("InvalidPartOrder", 400)
    assert refused(upload.complete, [one, two]) == ("EntityTooSmall", 400)
    assert refused(upload.complete, [two, dict(three, ETag='"00000000000000000000000000000000"')]) == ("InvalidPart", 400)
    assert refused(upload.complete, [two, {"PartNumber": 4, "ETag": one["ETag"]}]) == ("InvalidPart", 400)
    assert refused(upload.complete, []) == ("MalformedXML", 400)
    assert refused(s3.head_object, Bucket=bucket, Key="k") == ("404", 404)
    upload.complete([two, three])
    assert s3.head_object(Bucket=bucket, Key="k")["ContentLength"] == 5 * MIB + 1000


def test_part_numbers_have_bounds(s3, bucket, refused):
    upload = Upload(s3, bucket)
    for number in (0, -1, 10001):
        assert refused(upload.put, number, b"x") == ("InvalidArgument", 400)
    upload.put(10000, b"x")
    upload.complete()
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"x"


def test_uploads_that_are_not_there(s3, bucket, refused, data):
    missing = ("NoSuchUpload", 404)
    upload = Upload(s3, bucket)
    upload.put(1, data(1000))
    for wrong in ("0" * 32, "../k", "x", upload.target["UploadId"].upper()):
        target = dict(upload.target, UploadId=wrong)
        if wrong == upload.target["UploadId"]:
            continue
        assert refused(s3.upload_part, **target, PartNumber=1, Body=b"x") == missing
        assert refused(s3.list_parts, **target) == missing
        assert refused(s3.abort_multipart_upload, **target) == missing
        assert refused(s3.complete_multipart_upload, **target, MultipartUpload={"Parts": upload.parts}) == missing
    other = dict(upload.target, Key="other")
    assert refused(s3.upload_part, **other, PartNumber=1, Body=b"x") == missing
    upload.abort()
    assert refused(upload.abort) == missing
    assert refused(upload.put, 1, b"x") == missing
    assert refused(upload.complete) == missing
    assert refused(s3.create_multipart_upload, Bucket="no-such-bucket", Key="k") == ("NoSuchBucket", 404)
    assert refused(s3.head_object, Bucket=bucket, Key="k") == ("404", 404)


def test_parts_are_listed(s3, bucket, data):
    upload = Upload(s3, bucket)
    for number in (1, 2, 5, 8, 10000):
        upload.put(number, data(100 + number, number))
    page = s3.list_parts(**upload.target, MaxParts=2)
    assert [part["PartNumber"] for part in page["Parts"]] == [1, 2]
    assert page["IsTruncated"] and page["NextPartNumberMarker"] == 2
    page = s3.list_parts(**upload.target, PartNumberMarker=2)
    assert [(part["PartNumber"], part["Size"]) for part in page["Parts"]] == [(5, 105), (8, 108), (10000, 10100)]
    assert not page["IsTruncated"]
    assert [part["ETag"] for part in page["Parts"]] == [part["ETag"] for part in upload.parts[2:]]
    assert "Parts" not in s3.list_parts(**upload.target, PartNumberMarker=10000)
    upload.abort()


def test_uploads_are_listed(s3, bucket):
    keys = ["a", "b/1", "b/2", "b/2", "c", "ü x"]
    uploads = [Upload(s3, bucket, key) for key in keys]
    found = s3.list_multipart_uploads(Bucket=bucket)["Uploads"]
    expected = sorted((u.target["Key"], u.target["UploadId"]) for u in uploads)
    assert [(entry["Key"], entry["UploadId"]) for entry in found] == expected
    page = s3.list_multipart_uploads(Bucket=bucket, Delimiter="/")
    assert [entry["Key"] for entry in page["Uploads"]] == ["a", "c", "ü x"]
    assert [entry["Prefix"] for entry in page["CommonPrefixes"]] == ["b/"]
    assert len(s3.list_multipart_uploads(Bucket=bucket, Prefix="b/")["Uploads"]) == 3
    seen, marker = [], {}
    while True:
        page = s3.list_multipart_uploads(Bucket=bucket, MaxUploads=1, **marker)
        seen += [(entry["Key"], entry["UploadId"]) for entry in page["Uploads"]]
        if not page["IsTruncated"]:
            break
        marker = {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page["NextUploadIdMarker"]}
    assert seen == expected
    for upload in uploads:
        upload.abort()
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)


def test_conditions_of_a_completion(s3, bucket, data, refused):
    s3.put_object(Bucket=bucket, Key="k", Body=b"there")
    upload = Upload(s3, bucket)
    upload.put(1, data(1000))
    assert refused(upload.complete, IfNoneMatch="*") == ("PreconditionFailed", 412)
    assert refused(upload.complete, IfMatch='"other"') == ("PreconditionFailed", 412)
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"there"
    s3.delete_object(Bucket=bucket, Key="k")
    upload.complete(IfNoneMatch="*")
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == data(1000)


def test_composite_checksums(s3, bucket, data, refused):
    parts = [data(5 * MIB, 1), data(1000, 2)]
    upload = Upload(s3, bucket, ChecksumAlgorithm="SHA256")
    sums = [upload.put(n, part, ChecksumAlgorithm="SHA256")["ChecksumSHA256"] for n, part in enumerate(parts, 1)]
    assert sums == [base64.b64encode(hashlib.sha256(part).digest()).decode() for part in parts]
    listed = [dict(part, ChecksumSHA256=value) for part, value in zip(upload.parts, sums)]
    wrong = [dict(listed[0], ChecksumSHA256=sums[1]), listed[1]]
    assert refused(upload.complete, wrong) == ("InvalidPart", 400)
    done = upload.complete(listed)
    digests = b"".join(hashlib.sha256(part).digest() for part in parts)
    expected = base64.b64encode(hashlib.sha256(digests).digest()).decode() + "-2"
    assert (done["ChecksumSHA256"], done["ChecksumType"]) == (expected, "COMPOSITE")
    head = s3.head_object(Bucket=bucket, Key="k", ChecksumMode="ENABLED")
    assert (head["ChecksumSHA256"], head["ChecksumType"]) == (expected, "COMPOSITE")


def test_checksums_of_the_whole(s3, bucket, data, refused):
    parts = [data(5 * MIB, 1), data(5 * MIB + 1, 2), data(1000, 3)]
    upload = Upload(s3, bucket, ChecksumAlgorithm="CRC32", ChecksumType="FULL_OBJECT")
    for number, part in enumerate(parts, 1):
        assert upload.put(number, part)["ChecksumCRC32"] == crc(part)
    whole = crc(b"".join(parts))
    wrong = dict(ChecksumCRC32=crc(b"other"), ChecksumType="FULL_OBJECT")
    assert refused(upload.complete, **wrong) == ("BadDigest", 400)
    done = upload.complete(ChecksumCRC32=whole, ChecksumType="FULL_OBJECT")
    assert (done["ChecksumCRC32"], done["ChecksumType"]) == (whole, "FULL_OBJECT")
    found = s3.get_object(Bucket=bucket, Key="k", ChecksumMode="ENABLED")
    assert found["ChecksumCRC32"] == whole and found["Body"].read() == b"".join(parts)


def test_a_part_with_a_wrong_digest_is_not_stored(s3, bucket, data, sign):
    upload = Upload(s3, bucket, ChecksumAlgorithm="CRC32")
    query = f"partNumber=1&uploadId={upload.target['UploadId']}"
    status, _, body = sign.request("PUT", f"/{bucket}/k", query, body=b"x", x_amz_checksum_crc32=crc(b"y"))
    assert status == 400 and b"BadDigest" in body
    md5 = base64.b64encode(hashlib.md5(b"y").digest()).decode()
    status, _, body = sign.request("PUT", f"/{bucket}/k", query, body=b"x", content_md5=md5)
    assert status == 400 and b"BadDigest" in body
    value = base64.b64encode(hashlib.sha1(b"x").digest()).decode()
    status, _, body = sign.request("PUT", f"/{bucket}/k", query, body=b"x", x_amz_checksum_sha1=value)
    assert status == 400 and b"InvalidRequest" in body
    assert "Parts" not in s3.list_parts(**upload.target)
    upload.abort()


@pytest.mark.parametrize("size", [3 * MIB, 40 * MIB + 3])
def test_boto3_does_it_by_itself(s3, bucket, data, size):
    body = data(size)
    transfer = TransferConfig(multipart_threshold=8 * MIB, multipart_chunksize=8 * MIB, max_concurrency=4)
    s3.upload_fileobj(io.BytesIO(body), bucket, "k", Config=transfer)
    out = io.BytesIO()
    s3.download_fileobj(bucket, "k", out, Config=transfer)
    assert out.getvalue() == body
    s3.copy({"Bucket": bucket, "Key": "k"}, bucket, "copy", Config=transfer)
    assert s3.get_object(Bucket=bucket, Key="copy")["Body"].read() == body


def test_an_upload_may_say_that_its_metadata_is_its_own(s3, sign, bucket):
    """s3fs does, when it begins a copy in parts."""
    def begin(directive, *request):
        headers = {"x_amz_metadata_directive": directive, "x_amz_meta_a": "1"}
        return sign.request(*request, **headers)[0]

    upload = "POST", f"/{bucket}/copied", "uploads="
    assert (begin("REPLACE", *upload), begin("COPY", *upload)) == (200, 501)
    assert len(s3.list_multipart_uploads(Bucket=bucket)["Uploads"]) == 1
    # And with the data of a file whose mode was changed while it was open.
    put = "PUT", f"/{bucket}/put"
    assert (begin("COPY", *put), begin("REPLACE", *put)) == (501, 200)
    assert s3.head_object(Bucket=bucket, Key="put")["Metadata"] == {"a": "1"}
