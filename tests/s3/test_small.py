"""What clients look at beside the data: documents, checksums of parts, tags, versions, host names."""

import base64
import hashlib
import http.client
import os
import re
import subprocess
import xml.etree.ElementTree as tree
import zlib

import pytest

import zonestore
from signer import EMPTY, Signer, code, sha256

MIB = 1 << 20


def b64(value):
    return base64.b64encode(value).decode()


@pytest.fixture
def upload(s3, bucket, data):
    """An object of three parts with SHA-256 checksums."""
    parts = [data(5 * MIB, 1), data(5 * MIB, 2), data(1000, 3)]
    target = dict(Bucket=bucket, Key="k")
    id = s3.create_multipart_upload(**target, ChecksumAlgorithm="SHA256")["UploadId"]
    listed = []
    for number, part in enumerate(parts, 1):
        put = s3.upload_part(**target, UploadId=id, PartNumber=number, Body=part, ChecksumAlgorithm="SHA256")
        listed.append(dict(PartNumber=number, ETag=put["ETag"], ChecksumSHA256=put["ChecksumSHA256"]))
    return dict(target, UploadId=id, MultipartUpload={"Parts": listed}), parts


def digests(parts):
    each = [hashlib.sha256(part).digest() for part in parts]
    return [b64(value) for value in each], f"{b64(hashlib.sha256(b''.join(each)).digest())}-{len(parts)}"


def test_a_composite_checksum_is_taken_as_it_is_told(s3, upload, refused):
    order, parts = upload
    each, whole = digests(parts)
    wrong = digests(parts[:2])[1]
    assert refused(s3.complete_multipart_upload, **order, ChecksumSHA256=wrong) == ("BadDigest", 400)
    assert refused(s3.complete_multipart_upload, **order, ChecksumType="FULL_OBJECT") == ("InvalidRequest", 400)
    done = s3.complete_multipart_upload(**order, ChecksumSHA256=whole, ChecksumType="COMPOSITE")
    assert done["ChecksumSHA256"] == whole


def test_parts_have_their_checksums(s3, bucket, upload):
    order, parts = upload
    s3.complete_multipart_upload(**order)
    each, whole = digests(parts)
    target = dict(Bucket=bucket, Key="k")
    for number, (part, checksum) in enumerate(zip(parts, each), 1):
        head = s3.head_object(**target, PartNumber=number, ChecksumMode="ENABLED")
        assert (head["ChecksumSHA256"], head["PartsCount"]) == (checksum, 3)
        got = s3.get_object(**target, PartNumber=number, ChecksumMode="ENABLED")
        assert got["ChecksumSHA256"] == checksum and got["Body"].read() == part
    assert s3.head_object(**target, ChecksumMode="ENABLED")["ChecksumSHA256"] == whole


def test_attributes_of_an_object(s3, bucket, upload):
    order, parts = upload
    etag = s3.complete_multipart_upload(**order)["ETag"]
    each, whole = digests(parts)
    ask = dict(Bucket=bucket, Key="k", ObjectAttributes=["ETag", "Checksum", "ObjectParts", "ObjectSize"])
    found = s3.get_object_attributes(**ask)
    assert found["ETag"] == etag.strip('"') and found["ObjectSize"] == sum(map(len, parts))
    assert found["Checksum"]["ChecksumSHA256"] == whole
    shown = found["ObjectParts"]
    assert (shown["TotalPartsCount"], shown["IsTruncated"]) == (3, False)
    assert [(p["PartNumber"], p["Size"], p["ChecksumSHA256"]) for p in shown["Parts"]] == [
        (n, len(part), checksum) for n, (part, checksum) in enumerate(zip(parts, each), 1)
    ]
    first = s3.get_object_attributes(**ask, MaxParts=2)["ObjectParts"]
    assert [p["PartNumber"] for p in first["Parts"]] == [1, 2] and first["IsTruncated"]
    rest = s3.get_object_attributes(**ask, MaxParts=2, PartNumberMarker=first["NextPartNumberMarker"])["ObjectParts"]
    assert [p["PartNumber"] for p in rest["Parts"]] == [3] and not rest["IsTruncated"]


def test_every_object_is_its_only_version(s3, bucket):
    assert "Versions" not in s3.list_object_versions(Bucket=bucket)
    for key in ("a", "b/1", "b/2", "c"):
        s3.put_object(Bucket=bucket, Key=key, Body=key.encode())
    found = s3.list_object_versions(Bucket=bucket)
    assert [(v["Key"], v["VersionId"], v["IsLatest"]) for v in found["Versions"]] == [
        (key, "null", True) for key in ("a", "b/1", "b/2", "c")
    ]
    pages = s3.get_paginator("list_object_versions").paginate(Bucket=bucket, PaginationConfig={"PageSize": 1})
    assert [v["Key"] for page in pages for v in page.get("Versions", [])] == ["a", "b/1", "b/2", "c"]
    pages = s3.get_paginator("list_object_versions").paginate(
        Bucket=bucket, Delimiter="/", PaginationConfig={"PageSize": 1}
    )
    shown = [[v["Key"] for v in p.get("Versions", [])] + [c["Prefix"] for c in p.get("CommonPrefixes", [])] for p in pages]
    assert sum(shown, []) == ["a", "b/", "c"]
    for version in found["Versions"]:
        s3.delete_object(Bucket=bucket, Key=version["Key"], VersionId=version["VersionId"])


@pytest.mark.parametrize("query", ["", "list-type=2", "versions", "uploads"])
def test_listings_are_xml_whatever_is_in_a_key(sign, bucket, query):
    key = "a\rb\x01\n\tc<&"
    method, more = ("POST", "uploads") if query == "uploads" else ("PUT", "")
    path = f"/{bucket}/{key}"
    assert sign.request(method, path, more)[0] == 200
    status, _, body = sign.request("GET", f"/{bucket}", query)
    document = tree.fromstring(body)
    [found] = [e.text for e in document.iter() if e.tag.endswith("}Key")]
    encoding = [e.text for e in document.iter() if e.tag.endswith("}EncodingType")]
    assert (encoding, found) == (["url"], "a%0Db%01%0A%09c%3C%26")
    sign.request("DELETE", path)
    # What XML can have stays as it is; uploads are still there.
    path = f"/{bucket}/x\rb"
    assert sign.request(method, path, more)[0] == 200
    prefix = "&".join(filter(None, ["prefix=x", query]))
    document = tree.fromstring(sign.request("GET", f"/{bucket}", prefix)[2])
    assert "x\rb" in [e.text for e in document.iter() if e.tag.endswith("}Key")]
    sign.request("DELETE", path)


def test_errors_say_what_they_are_about(sign, bucket):
    status, headers, body = sign.request("GET", f"/{bucket}/no such & key")
    document = tree.fromstring(body)
    assert (status, document.findtext("Code")) == (404, "NoSuchKey")
    assert document.findtext("Resource") == f"/{bucket}/no%20such%20%26%20key"
    assert document.findtext("RequestId") == headers["x-amz-request-id"]


def test_nothing_follows_a_head(server, sign, bucket):
    path = f"/{bucket}/none"
    lines = "".join(f"{n}: {v}\r\n" for n, v in sign.headers("HEAD", path).items())
    import socket

    connection = socket.create_connection(("127.0.0.1", server.port), timeout=zonestore.TIMEOUT)
    connection.sendall(f"HEAD {path} HTTP/1.1\r\n{lines}connection: close\r\n\r\n".encode())
    answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 404") and answer.endswith(b"\r\n\r\n")
    assert answer.count(b"\r\n\r\n") == 1


@pytest.mark.parametrize("query", ["delimiter=", "delimiter=&list-type=2", "delimiter=&versions", "delimiter=&uploads"])
def test_an_empty_delimiter_is_none(sign, bucket, query):
    sign.request("PUT", f"/{bucket}/a/b", body=b"x")
    status, _, body = sign.request("GET", f"/{bucket}", query)
    assert status == 200 and b"Delimiter" not in body and b"CommonPrefixes" not in body


@pytest.mark.parametrize("encoding", ["gzip, br", "gzip,br", "GZIP , br"])
def test_a_content_encoding_is_not_changed(sign, bucket, encoding):
    assert sign.request("PUT", f"/{bucket}/k", body=b"x", content_encoding=encoding)[0] == 200
    assert sign.request("HEAD", f"/{bucket}/k")[1]["content-encoding"] == encoding


def test_after_a_body_of_nothing_that_was_announced_the_connection_ends(sign, bucket):
    # botocore 1.43 reads the next answer on such a connection without its first line.
    for headers, ends in (({"expect": "100-continue"}, "close"), ({}, None)):
        status, answer, _ = sign.request("PUT", f"/{bucket}/empty", **headers)
        assert (status, answer.get("connection")) == (200, ends), answer


@pytest.mark.parametrize("method", ["PUT", "DELETE", "GET", "POST"])
def test_the_hash_of_no_body_is_compared(sign, s3, bucket, method):
    s3.put_object(Bucket=bucket, Key="k", Body=b"old")
    path, query = f"/{bucket}/k", "uploads" if method == "POST" else ""
    status, _, body = sign.request(method, path, query, b"", payload=sha256(b"not nothing"))
    assert (status, code(body)) == (400, "XAmzContentSHA256Mismatch")
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"old"
    assert sign.request("PUT", path, "", b"", payload=EMPTY)[0] == 200


def test_objects_of_the_command_line_have_their_tags(tmp_path, data, md5, refused):
    drive = zonestore.make_drive(tmp_path / "d.zoned", "256MiB")
    body = data(3 * MIB)
    (tmp_path / "file").write_bytes(body)
    zonestore.run("store", "put", drive, tmp_path / "file", "bucket/k")
    server = zonestore.Server(drive).start()
    try:
        s3 = server.client()
        etag = s3.head_object(Bucket="bucket", Key="k")["ETag"]
        assert etag == s3.list_objects_v2(Bucket="bucket")["Contents"][0]["ETag"] == f'"{md5(body)}"'
        refusal = refused(s3.put_object, Bucket="bucket", Key="k", Body=b"x", IfMatch='"other"')
        assert refusal == ("PreconditionFailed", 412)
        s3.put_object(Bucket="bucket", Key="k", Body=b"x", IfMatch=etag)
    finally:
        server.stop()


def with_host(server, host, method, path, body=b""):
    sign = Signer(server)
    headers = sign.headers(method, path, payload=sha256(body), host=host)
    return sign.send(method, path, "", body, headers)


def test_host_names_are_buckets_only_below_a_known_domain(make_server):
    server = make_server(arguments=("--s3-domain", "s3.example.com"))
    s3 = server.client()
    s3.create_bucket(Bucket="bucket")
    s3.create_bucket(Bucket="empty")
    for host in ("bucket.localhost:9000", "bucket.s3.example.com"):
        assert with_host(server, host, "PUT", "/empty", b"data")[0] == 200
        assert with_host(server, host, "GET", "/empty")[2] == b"data"
        assert b"<Key>empty</Key>" in with_host(server, host, "GET", "/")[2]
        assert with_host(server, host, "DELETE", "/empty")[0] == 204
    big = os.urandom(5 * MIB)
    assert with_host(server, "bucket.localhost", "PUT", "/big", big)[0] == 200
    assert b"<Name>empty</Name>" in with_host(server, "s3.example.com", "GET", "/")[2]
    # Somebody else's name is nobody's bucket, and nothing is done.
    for method, path in [("GET", "/"), ("PUT", "/made"), ("DELETE", "/empty")]:
        status, _, body = with_host(server, "bucket.elsewhere.com", method, path)
        assert (status, code(body)) == (400, "InvalidRequest") and b"--s3-domain" in body
    assert [b["Name"] for b in s3.list_buckets()["Buckets"]] == ["bucket", "empty"]


def test_buckets_are_those_of_a_region(s3, bucket):
    assert bucket in [b["Name"] for b in s3.list_buckets(BucketRegion="us-east-1")["Buckets"]]
    assert s3.list_buckets(BucketRegion="eu-central-1")["Buckets"] == []


def test_whether_the_server_is_there(server):
    for method, body in (("GET", b"ok\n"), ("HEAD", b"")):
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        connection.request(method, "/-/healthy")
        response = connection.getresponse()
        assert (response.status, response.getheader("content-length"), response.read()) == (200, "3", body)
