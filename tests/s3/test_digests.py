"""Digests: what arrives is what was sent, or it is not stored."""

import base64
import hashlib
import zlib

import pytest

from signer import code, crc32, sha256


def b64(data):
    return base64.b64encode(data).decode()


@pytest.mark.parametrize("algorithm", ["CRC32", "SHA1", "SHA256"])
@pytest.mark.parametrize("size", [0, 1000, 3_000_000])
def test_checksums_are_kept_and_told(s3, bucket, data, algorithm, size):
    body = data(size)
    field = "Checksum" + algorithm
    expected = {
        "CRC32": lambda: b64(zlib.crc32(body).to_bytes(4, "big")),
        "SHA1": lambda: b64(hashlib.sha1(body).digest()),
        "SHA256": lambda: b64(hashlib.sha256(body).digest()),
    }[algorithm]()
    put = s3.put_object(Bucket=bucket, Key="k", Body=body, ChecksumAlgorithm=algorithm)
    assert put[field] == expected and put["ChecksumType"] == "FULL_OBJECT"
    for call in (s3.get_object, s3.head_object):
        found = call(Bucket=bucket, Key="k", ChecksumMode="ENABLED")
        assert found[field] == expected and found["ChecksumType"] == "FULL_OBJECT"
    # boto3 compares what it reads.
    assert s3.get_object(Bucket=bucket, Key="k", ChecksumMode="ENABLED")["Body"].read() == body
    if size:
        found = s3.get_object(Bucket=bucket, Key="k", ChecksumMode="ENABLED", Range="bytes=0-0")
        assert field not in found


# The check values of the CRC catalogue.
KNOWN = {"crc32c": b64(bytes.fromhex("e3069283")), "crc64nvme": b64(bytes.fromhex("ae8b14860a799888"))}


@pytest.mark.parametrize("name", KNOWN)
def test_checksums_that_boto3_does_not_compute(sign, s3, bucket, name):
    path, body = f"/{bucket}/k", b"123456789"
    header = "x_amz_checksum_" + name
    status, headers, _ = sign.request("PUT", path, body=body, **{header: KNOWN[name]})
    assert status == 200
    status, headers, _ = sign.request("HEAD", path, x_amz_checksum_mode="ENABLED")
    found = {n.lower(): v for n, v in headers.items()}
    assert found[header.replace("_", "-")] == KNOWN[name]
    status, _, answer = sign.request("PUT", path, body=body + b"!", **{header: KNOWN[name]})
    assert (status, code(answer)) == (400, "BadDigest")


def test_the_algorithm_of_a_put_has_two_names(sign, s3, bucket):
    """MinIO's client for Go sends that of CreateMultipartUpload, and the type."""
    path, body = f"/{bucket}/k", b"123456789"
    said = dict(x_amz_checksum_algorithm="CRC32C", x_amz_checksum_type="FULL_OBJECT")
    assert sign.request("PUT", path, body=body, x_amz_checksum_crc32c=KNOWN["crc32c"], **said)[0] == 200
    s3.delete_object(Bucket=bucket, Key="k")
    assert sign.request("PUT", path, body=body, **said)[0] == 200
    assert s3.head_object(Bucket=bucket, Key="k", ChecksumMode="ENABLED")["ChecksumCRC32C"] == KNOWN["crc32c"]
    status, _, answer = sign.request("PUT", path, body=body, **{**said, "x_amz_checksum_type": "COMPOSITE"})
    assert (status, code(answer)) == (400, "InvalidRequest")


@pytest.mark.parametrize("size", [0, 10, 3_000_000])
def test_what_does_not_match_is_not_stored(sign, s3, bucket, data, refused, size):
    body, path = data(size), f"/{bucket}/k"
    wrong = body + b"x"
    cases = [
        ("XAmzContentSHA256Mismatch", dict(payload=sha256(wrong))),
        ("BadDigest", dict(content_md5=b64(hashlib.md5(wrong).digest()))),
        ("BadDigest", dict(x_amz_checksum_crc32=crc32(wrong))),
        ("BadDigest", dict(x_amz_checksum_sha1=b64(hashlib.sha1(wrong).digest()))),
        ("BadDigest", dict(x_amz_checksum_sha256=b64(hashlib.sha256(wrong).digest()))),
        ("BadDigest", dict(payload="UNSIGNED-PAYLOAD", x_amz_checksum_crc32=crc32(wrong))),
        ("InvalidDigest", dict(content_md5="nonsense")),
        ("InvalidRequest", dict(x_amz_checksum_crc32="nonsense")),
        ("InvalidRequest", dict(x_amz_checksum_crc32=crc32(body), x_amz_checksum_sha1=b64(hashlib.sha1(body).digest()))),
    ]
    for expected, options in cases:
        status, _, answer = sign.request("PUT", path, body=body, **options)
        assert (status, code(answer)) == (400, expected), options
        assert refused(s3.head_object, Bucket=bucket, Key="k") == ("404", 404)
    md5 = b64(hashlib.md5(body).digest())
    assert sign.request("PUT", path, body=body, content_md5=md5)[0] == 200


SPOILT = [
    (True, False, "chunk data", "SignatureDoesNotMatch"),
    (True, False, "chunk signature", "SignatureDoesNotMatch"),
    (True, True, "trailer", "BadDigest"),
    (True, True, "no trailer", "MalformedTrailerError"),
    (True, True, "trailer signature", "SignatureDoesNotMatch"),
    (True, False, "no last chunk", "IncompleteBody"),
    (True, False, "length", "IncompleteBody"),
    (False, True, "chunk data", "BadDigest"),
    (False, True, "trailer", "BadDigest"),
    (False, True, "no trailer", "MalformedTrailerError"),
    (False, True, "trailer without a value", "MalformedTrailerError"),
    (False, True, "length", "IncompleteBody"),
]


@pytest.mark.parametrize("size", [1, 200_000, 3_000_001])
@pytest.mark.parametrize("signed,trailer", [(True, False), (True, True), (False, True)])
def test_chunked_bodies(sign, s3, bucket, data, size, signed, trailer):
    body, path = data(size), f"/{bucket}/k"
    # One chunk for everything, too: some clients send that.
    for chunk in (70_000, 1_000_000 if signed else 10_000_000):
        status, _, answer = sign.put_chunked(path, body, chunk=chunk, signed=signed, trailer=trailer)
        assert status == 200, answer
        found = s3.get_object(Bucket=bucket, Key="k", ChecksumMode="ENABLED")
        assert found["Body"].read() == body and "ContentEncoding" not in found
        if trailer:
            assert found["ChecksumCRC32"] == crc32(body)
    status, _, _ = sign.put_chunked(path, body, signed=signed, trailer=trailer, content_encoding="gzip,aws-chunked")
    assert s3.head_object(Bucket=bucket, Key="k")["ContentEncoding"] == "gzip"


@pytest.mark.parametrize("signed,trailer,spoil,expected", SPOILT)
def test_spoilt_chunked_bodies(sign, s3, bucket, data, refused, signed, trailer, spoil, expected):
    for size in (1000, 2_000_000):
        status, _, answer = sign.put_chunked(
            f"/{bucket}/k", data(size), signed=signed, trailer=trailer, spoil=spoil
        )
        assert code(answer) == expected and status in (400, 403), (status, answer)
        assert refused(s3.head_object, Bucket=bucket, Key="k") == ("404", 404)


def test_signed_chunks_have_a_limit(sign, bucket, data):
    status, _, answer = sign.put_chunked(f"/{bucket}/k", data(2_000_000), chunk=1_500_000)
    assert (status, code(answer)) == (400, "InvalidRequest")


def test_documents_are_checked_too(sign, s3, bucket):
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    body = b"<Delete><Object><Key>k</Key></Object></Delete>"
    ask = lambda **options: sign.request("POST", f"/{bucket}", "delete", body=body, **options)
    status, _, answer = ask(content_md5=b64(hashlib.md5(b"other").digest()))
    assert (status, code(answer)) == (400, "BadDigest")
    status, _, answer = ask(x_amz_checksum_crc32=crc32(b"other"))
    assert (status, code(answer)) == (400, "BadDigest")
    status, _, answer = ask(payload=sha256(b"other"))
    assert (status, code(answer)) == (400, "XAmzContentSHA256Mismatch")
    assert s3.head_object(Bucket=bucket, Key="k")
    assert ask(content_md5=b64(hashlib.md5(body).digest()))[0] == 200
    status, _, answer = sign.request("POST", f"/{bucket}", "delete", body=b"<Delete><Nonsense")
    assert (status, code(answer)) == (400, "MalformedXML")


def test_the_digest_that_boto3_sends_by_itself(s3, bucket, data):
    body = data(100_000)
    put = s3.put_object(Bucket=bucket, Key="k", Body=body)
    assert put["ChecksumCRC32"] == crc32(body)
    assert s3.get_object(Bucket=bucket, Key="k")["ChecksumCRC32"] == crc32(body)
