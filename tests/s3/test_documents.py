"""What a request says and a reader of it could leave out: elements, empty headers, other checksums."""

import base64
import hashlib
import socket

import pytest

from signer import Signer, code, sha256
from zonestore import TIMEOUT

MIB = 1 << 20


def delete(objects, head="", tail=""):
    return f"{head}<Delete>{objects}</Delete>{tail}".encode()


@pytest.mark.parametrize("document, expected", [
    (delete("<Object><Key>ab<![CDATA[cd]]></Key></Object>"), (501, "NotImplemented")),
    (delete("<Object><Key>ab</Key><IfUnmodifiedSince>x</IfUnmodifiedSince></Object>"), (501, "NotImplemented")),
    (delete("<ETag>x</ETag><Object><Key>ab</Key></Object>"), (501, "NotImplemented")),
    (delete('<Object version="1"><Key>ab</Key></Object>'), (501, "NotImplemented")),
    (delete("<a>" * 100_000 + "</a>" * 100_000 + "<Object><Key>ab</Key></Object>"), (501, "NotImplemented")),
    (delete("<Object><Key>ab</Key></Object>", '<?xml version="1.0" encoding="latin1"?>'), (501, "NotImplemented")),
    (delete("<Object><Key>ab</Key></Object>", "<!DOCTYPE Delete>"), (400, "MalformedXML")),
    (delete("<Object>x<Key>ab</Key></Object>"), (400, "MalformedXML")),
    (delete("<Object><Key>ab</Key></Object>", tail="x"), (400, "MalformedXML")),
    (delete("<Object><Key>ab</Key><Key>cd</Key></Object>"), (400, "MalformedXML")),
    (delete("<Object><Key>a\rb</Key></Object><Object><Key>ab</Key></Object>"), (400, "MalformedXML")),
    (delete("<Object><Key>ab</Key><Size>3x</Size></Object>"), (400, "MalformedXML")),
])
def test_a_delete_with_more_in_it_deletes_nothing(sign, s3, bucket, document, expected):
    for key in ("ab", "abcd"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"old")
    status, _, answer = sign.request("POST", f"/{bucket}", "delete", body=document)
    assert (status, code(answer)) == expected
    assert [entry["Key"] for entry in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["ab", "abcd"]


def test_conditions_of_a_delete_are_judged_or_refused(s3, bucket):
    etag = s3.put_object(Bucket=bucket, Key="k", Body=b"old")["ETag"]
    for condition, found in [
        (dict(ETag='"other"'), "PreconditionFailed"), (dict(Size=3), "NotImplemented"),
        (dict(LastModifiedTime="2020-01-01"), "NotImplemented"), (dict(VersionId="7"), "InvalidArgument"),
    ]:
        answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "k", **condition}]})
        assert [error["Code"] for error in answer["Errors"]] == [found] and "Deleted" not in answer
    assert s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "k", "ETag": etag}]})["Deleted"]


def test_a_bucket_is_not_made_without_what_it_should_have(s3, refused):
    for more in (
        {"Tags": [{"Key": "a", "Value": "b"}]},
        {"Location": {"Type": "AvailabilityZone", "Name": "x"}},
        {"Bucket": {"Type": "Directory", "DataRedundancy": "SingleAvailabilityZone"}},
    ):
        made = dict(Bucket="never-made", CreateBucketConfiguration=more)
        assert refused(s3.create_bucket, **made) == ("NotImplemented", 501)
    assert "never-made" not in [b["Name"] for b in s3.list_buckets()["Buckets"]]


@pytest.mark.parametrize("header", [
    "if_match", "if_none_match", "x_amz_acl", "x_amz_storage_class", "x_amz_grant_read", "x_amz_checksum_crc32",
])
def test_a_header_without_a_value_is_not_none(sign, s3, bucket, header):
    s3.put_object(Bucket=bucket, Key="k", Body=b"old")
    status, _, _ = sign.request("PUT", f"/{bucket}/k", body=b"new", **{header: ""})
    assert status == 400
    if header == "if_match":
        assert sign.request("DELETE", f"/{bucket}/k", **{header: ""})[0] == 400
        assert sign.request("GET", f"/{bucket}/k", **{header: ""})[0] == 400
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"old"
    assert sign.request("PUT", f"/{bucket}/k", body=b"new", x_amz_meta_empty="")[0] == 200


@pytest.mark.parametrize("header", [
    "x_amz_copy_source_if_match", "x_amz_copy_source_if_none_match", "x_amz_copy_source_if_modified_since",
    "x_amz_metadata_directive", "x_amz_checksum_algorithm",
])
def test_a_copy_with_an_empty_header_is_refused(sign, s3, bucket, header):
    s3.put_object(Bucket=bucket, Key="k", Body=b"old")
    s3.put_object(Bucket=bucket, Key="source", Body=b"source")
    headers = {"x_amz_copy_source": f"/{bucket}/source", header: ""}
    assert sign.request("PUT", f"/{bucket}/k", **headers)[0] == 400
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"old"


def test_every_checksum_of_a_listed_part_is_compared(s3, bucket, data, refused):
    target = dict(Bucket=bucket, Key="k")
    id = s3.create_multipart_upload(**target, ChecksumAlgorithm="CRC32")["UploadId"]
    part = s3.upload_part(**target, UploadId=id, PartNumber=1, Body=data(1000), ChecksumAlgorithm="CRC32")
    right = dict(PartNumber=1, ETag=part["ETag"], ChecksumCRC32=part["ChecksumCRC32"])
    sha1 = base64.b64encode(bytes(20)).decode()
    for wrong in (dict(right, ChecksumCRC32="AAAAAA=="), dict(right, ChecksumSHA1=sha1)):
        order = dict(target, UploadId=id, MultipartUpload={"Parts": [wrong]})
        assert refused(s3.complete_multipart_upload, **order) == ("InvalidPart", 400)
    s3.complete_multipart_upload(**target, UploadId=id, MultipartUpload={"Parts": [right]})


def test_only_the_same_order_completes_again(s3, bucket, data, refused):
    target = dict(Bucket=bucket, Key="k")
    id = s3.create_multipart_upload(**target)["UploadId"]
    tags = [
        s3.upload_part(**target, UploadId=id, PartNumber=n, Body=data(size, n))["ETag"]
        for n, size in ((1, 5 * MIB), (2, 1000))
    ]
    parts = [dict(PartNumber=n, ETag=tag) for n, tag in enumerate(tags, 1)]
    order = dict(target, UploadId=id, MultipartUpload={"Parts": parts})
    etag = s3.complete_multipart_upload(**order)["ETag"]
    assert s3.complete_multipart_upload(**order)["ETag"] == etag
    other = dict(order, MultipartUpload={"Parts": parts[:1]})
    assert refused(s3.complete_multipart_upload, **other) == ("NoSuchUpload", 404)
    assert refused(s3.complete_multipart_upload, **order, MpuObjectSize=7) == ("NoSuchUpload", 404)


def test_documents_do_not_come_in_chunks(sign, s3, bucket):
    s3.put_object(Bucket=bucket, Key="k", Body=b"old")
    document = delete("<Object><Key>k</Key></Object>")
    body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(document), document)
    status, _, answer = sign.request(
        "POST", f"/{bucket}", "delete", body, "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
        x_amz_decoded_content_length=str(len(document)),
    )
    assert (status, code(answer)) == (501, "NotImplemented")
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"old"


def test_a_length_that_is_not_the_bodys_is_refused(sign, s3, bucket):
    s3.put_object(Bucket=bucket, Key="k", Body=b"old")
    headers = dict(x_amz_decoded_content_length="77")
    status, _, answer = sign.request("PUT", f"/{bucket}/k", body=b"new", **headers)
    assert (status, code(answer)) == (400, "InvalidRequest")
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"old"


def test_a_target_of_another_host_is_refused(server, bucket):
    sign, path = Signer(server), f"/{bucket}/k"
    for host, expected in (("elsewhere.example.com", 400), (sign.host, 200)):
        headers = sign.headers("PUT", path, payload=sha256(b"data"))
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT)
        head = f"PUT http://{host}{path} HTTP/1.1\r\n{lines}content-length: 4\r\nconnection: close\r\n\r\n"
        connection.sendall(head.encode() + b"data")
        assert connection.recv(65536).startswith(b"HTTP/1.1 %d" % expected)
        connection.close()


def test_attributes_that_there_are_not_are_refused(sign, s3, bucket):
    s3.put_object(Bucket=bucket, Key="k", Body=b"data")
    for names, expected in (("ETag, ObjectSize", 200), ("ETag,Owner", 400), ("etag", 400)):
        ask = dict(x_amz_object_attributes=names)
        assert sign.request("GET", f"/{bucket}/k", "attributes", **ask)[0] == expected
