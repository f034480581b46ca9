"""Objects: what goes in comes out, with everything that was said about it."""

import http.client
import threading

import pytest

from zonestore import TIMEOUT

SIZES = [0, 1, 4095, 4096, 4097, 65536, 65537, 262144, 262145, 1048576, 1048577, 5_000_001]


@pytest.mark.parametrize("size", SIZES)
def test_bytes_come_back(s3, bucket, data, md5, size):
    body = data(size, size)
    put = s3.put_object(Bucket=bucket, Key="k", Body=body)
    assert put["ETag"] == f'"{md5(body)}"'
    head = s3.head_object(Bucket=bucket, Key="k")
    assert (head["ContentLength"], head["ETag"]) == (size, put["ETag"])
    assert head["ContentType"] == "binary/octet-stream"
    got = s3.get_object(Bucket=bucket, Key="k")
    assert got["Body"].read() == body
    assert (got["ContentLength"], got["ETag"]) == (size, put["ETag"])
    assert got["LastModified"] == head["LastModified"]


def test_headers_and_metadata_come_back(s3, bucket):
    said = dict(
        ContentType="text/plain; charset=utf-8",
        ContentEncoding="gzip",
        ContentDisposition='attachment; filename="a b.txt"',
        ContentLanguage="de",
        CacheControl="max-age=60",
        Metadata={"one": "1", "with-dash": "a value", "empty": ""},
    )
    s3.put_object(Bucket=bucket, Key="k", Body=b"x", Expires="Wed, 21 Oct 2015 07:28:00 GMT", **said)
    for found in (s3.get_object(Bucket=bucket, Key="k"), s3.head_object(Bucket=bucket, Key="k")):
        assert {name: found[name] for name in said} == said
        assert found["ExpiresString"] == "Wed, 21 Oct 2015 07:28:00 GMT"
    # A new object under the name has nothing of the old one.
    s3.put_object(Bucket=bucket, Key="k", Body=b"y")
    found = s3.head_object(Bucket=bucket, Key="k")
    assert found["Metadata"] == {} and "CacheControl" not in found and "ContentEncoding" not in found


def test_metadata_beyond_ascii(s3, bucket, sign):
    status, _, _ = sign.request("PUT", f"/{bucket}/k", body=b"x", x_amz_meta_name="=?UTF-8?B?w6nDqQ==?=")
    assert status == 200
    assert s3.head_object(Bucket=bucket, Key="k")["Metadata"]["name"].startswith("=?")


def test_encoded_words_that_would_not_come_back(server, s3, bucket, sign):
    """On one connection: the first value ended it without an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT)
    for value, expected in [
        ("=?=", 400),
        ("=?UTF-8?Q?a?= =?=", 400),
        ("=?UTF-8?Q?Gr=C3=BC=C3=9Fe?= from =?UTF-8?Q?K=C3=B6ln?=", 501),
        ("=?ISO-8859-1?Q?K=C3=B6ln?=", 501),
        ("=?utf-8?q?Gr=C3=BC?= =?UTF-8?B?w59l?=", 200),
    ]:
        path = f"/{bucket}/k"
        connection.request("PUT", path, b"", sign.headers("PUT", path, x_amz_meta_name=value))
        response = connection.getresponse()
        response.read()
        assert response.status == expected, value
    connection.close()
    # The last one is kept as text, and told as one word.
    assert s3.head_object(Bucket=bucket, Key="k")["Metadata"]["name"] == "=?UTF-8?B?R3LDvMOfZQ==?="


def test_too_much_metadata(s3, bucket, refused):
    fits = {"a": "x" * 2047}
    s3.put_object(Bucket=bucket, Key="k", Body=b"x", Metadata=fits)
    assert s3.head_object(Bucket=bucket, Key="k")["Metadata"] == fits
    call = s3.put_object
    code = refused(call, Bucket=bucket, Key="k", Body=b"x", Metadata={"a": "x" * 2048})
    assert code == ("MetadataTooLarge", 400)


def test_a_request_can_override_headers(s3, bucket):
    s3.put_object(Bucket=bucket, Key="k", Body=b"x", ContentType="text/plain")
    said = dict(
        ResponseContentType="image/png",
        ResponseContentDisposition="inline",
        ResponseContentEncoding="identity",
        ResponseContentLanguage="fr",
        ResponseCacheControl="no-cache",
    )
    for call in (s3.get_object, s3.head_object):
        found = call(Bucket=bucket, Key="k", **said)
        assert {name: found[name.removeprefix("Response")] for name in said} == said


RANGES = [
    ("bytes=0-0", 0, 1), ("bytes=0-99", 0, 100), ("bytes=100-", 100, None), ("bytes=-7", -7, None),
    ("bytes=65530-65545", 65530, 65546), ("bytes=1048570-1048590", 1048570, 1048591),
    ("bytes=2999999-", 2999999, None), ("bytes=5-99999999", 5, None), ("bytes=-99999999", 0, None),
]


def test_ranges(s3, bucket, data):
    body = data(3_000_000)
    s3.put_object(Bucket=bucket, Key="k", Body=body)
    for text, start, end in RANGES:
        expected = body[start:end]
        first = start if start >= 0 else len(body) + start
        said = f"bytes {first}-{first + len(expected) - 1}/{len(body)}"
        for call in (s3.get_object, s3.head_object):
            found = call(Bucket=bucket, Key="k", Range=text)
            assert found["ResponseMetadata"]["HTTPStatusCode"] == 206
            assert (found["ContentRange"], found["ContentLength"]) == (said, len(expected)), text
        assert s3.get_object(Bucket=bucket, Key="k", Range=text)["Body"].read() == expected


def test_a_range_without_numbers_is_none_and_a_query_that_is_no_text_is_refused(s3, bucket, sign):
    s3.put_object(Bucket=bucket, Key="k", Body=b"0123456789")
    for call in (s3.get_object, s3.head_object):
        found = call(Bucket=bucket, Key="k", Range="bytes=-")
        assert found["ResponseMetadata"]["HTTPStatusCode"] == 200 and found["ContentLength"] == 10
    status, _, body = sign.request("GET", f"/{bucket}", "prefix=%FF")
    assert status == 400 and b"UTF-8" in body, body


def test_ranges_that_are_not_there(s3, bucket, refused):
    s3.put_object(Bucket=bucket, Key="k", Body=b"0123456789")
    s3.put_object(Bucket=bucket, Key="empty", Body=b"")
    for key, text in [("k", "bytes=10-"), ("k", "bytes=10-20"), ("k", "bytes=-0"), ("empty", "bytes=0-"), ("empty", "bytes=-1")]:
        assert refused(s3.get_object, Bucket=bucket, Key=key, Range=text) == ("InvalidRange", 416), text


def test_what_is_not_there(s3, bucket, refused):
    assert refused(s3.get_object, Bucket=bucket, Key="k") == ("NoSuchKey", 404)
    assert refused(s3.head_object, Bucket=bucket, Key="k") == ("404", 404)
    assert refused(s3.get_object, Bucket="no-such-bucket", Key="k") == ("NoSuchBucket", 404)
    put = s3.put_object
    assert refused(put, Bucket="no-such-bucket", Key="k", Body=b"x") == ("NoSuchBucket", 404)
    delete = s3.delete_object
    assert refused(delete, Bucket="no-such-bucket", Key="k") == ("NoSuchBucket", 404)
    s3.delete_object(Bucket=bucket, Key="k")
    version = dict(Bucket=bucket, Key="k", VersionId="abc")
    assert refused(s3.get_object, **version) == ("InvalidArgument", 400)
    version["VersionId"] = "0" * 32
    assert refused(s3.get_object, **version) == ("NoSuchVersion", 404)


KEYS = [
    "plain", "with space", "ünïcödé/日本語/🦀", "a//b", "/leading", "//", "trailing/", "..", "../..", ".",
    "a/../b", "a/./b", "100%", "%41", "%2F", "a+b", "a&b=c?d#e", "quote\"'<>", "back\\slash", "tab\there",
    "new\nline", "del\x7f", "x" * 1024, "é" * 512, "~`!@$^*()_-={}[]|;:,", "\u00a0", "A", "a",
]


@pytest.mark.parametrize("key", KEYS, ids=range(len(KEYS)))
def test_odd_keys(s3, bucket, key):
    body = key.encode()
    s3.put_object(Bucket=bucket, Key=key, Body=body)
    assert s3.get_object(Bucket=bucket, Key=key)["Body"].read() == body
    listed = s3.list_objects_v2(Bucket=bucket)
    assert [entry["Key"] for entry in listed["Contents"]] == [key]
    listed = s3.list_objects(Bucket=bucket)
    assert [entry["Key"] for entry in listed["Contents"]] == [key]
    s3.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": key})
    assert s3.get_object(Bucket=bucket, Key="copy")["Body"].read() == body
    s3.delete_object(Bucket=bucket, Key=key)
    s3.delete_object(Bucket=bucket, Key="copy")
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0


def test_keys_that_are_too_long(s3, bucket, refused):
    for key in ("x" * 1025, "é" * 513):
        assert refused(s3.put_object, Bucket=bucket, Key=key, Body=b"")[0] == "KeyTooLongError"
    found = s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "x" * 1025}]})
    assert found["Errors"][0]["Code"] == "KeyTooLongError"


def test_many_are_deleted_at_once(s3, bucket, refused):
    keys = [f"k{n:03}" for n in range(30)]
    for key in keys:
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    wanted = {"Objects": [{"Key": key} for key in keys[:20] + ["never-there"]]}
    found = s3.delete_objects(Bucket=bucket, Delete=wanted)
    assert len(found["Deleted"]) == 21 and "Errors" not in found
    left = [entry["Key"] for entry in s3.list_objects_v2(Bucket=bucket)["Contents"]]
    assert left == keys[20:]
    quiet = {"Objects": [{"Key": key} for key in keys[20:25]], "Quiet": True}
    assert "Deleted" not in s3.delete_objects(Bucket=bucket, Delete=quiet)
    tag = s3.head_object(Bucket=bucket, Key=keys[25])["ETag"]
    found = s3.delete_objects(
        Bucket=bucket,
        Delete={"Objects": [{"Key": keys[25], "ETag": tag}, {"Key": keys[26], "ETag": '"other"'}]},
    )
    assert [entry["Key"] for entry in found["Deleted"]] == [keys[25]]
    assert [(entry["Key"], entry["Code"]) for entry in found["Errors"]] == [(keys[26], "PreconditionFailed")]
    too_many = {"Objects": [{"Key": str(n)} for n in range(1001)]}
    assert refused(s3.delete_objects, Bucket=bucket, Delete=too_many) == ("MalformedXML", 400)
    assert refused(s3.delete_objects, Bucket=bucket, Delete={"Objects": []}) == ("MalformedXML", 400)


def test_a_reader_keeps_what_it_opened(s3, bucket, data):
    old, new = data(8_000_000, 1), data(8_000_000, 2)
    s3.put_object(Bucket=bucket, Key="k", Body=old)
    body = s3.get_object(Bucket=bucket, Key="k")["Body"]
    start = body.read(1_000_000)
    s3.put_object(Bucket=bucket, Key="k", Body=new)
    s3.delete_object(Bucket=bucket, Key="k")
    assert start + body.read() == old


def test_writers_side_by_side(s3, bucket, data):
    failures = []

    def work(number):
        try:
            for turn in range(10):
                body = data(number * 10_007 + turn, number)
                s3.put_object(Bucket=bucket, Key=f"own-{number}", Body=body)
                s3.put_object(Bucket=bucket, Key="shared", Body=bytes([number]) * 200_000)
                assert s3.get_object(Bucket=bucket, Key=f"own-{number}")["Body"].read() == body
                shared = s3.get_object(Bucket=bucket, Key="shared")["Body"].read()
                assert len(shared) == 200_000 and len(set(shared)) == 1
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def test_attributes_of_an_object(s3, bucket, data):
    body = data(1000)
    s3.put_object(Bucket=bucket, Key="k", Body=body, ChecksumAlgorithm="SHA256")
    found = s3.get_object_attributes(
        Bucket=bucket, Key="k", ObjectAttributes=["ETag", "Checksum", "ObjectSize", "StorageClass"]
    )
    assert found["ObjectSize"] == 1000 and found["StorageClass"] == "STANDARD"
    assert found["Checksum"]["ChecksumType"] == "FULL_OBJECT" and found["Checksum"]["ChecksumSHA256"]
    assert found["ETag"].strip('"') == s3.head_object(Bucket=bucket, Key="k")["ETag"].strip('"')
