"""`serve --compression`: what is stored smaller, and that every client reads what it put."""

import json

import pytest

import zonestore

TEXT = b"".join(b"%08d zones are written in order\n" % n for n in range(40_000))


def live(drive):
    return json.loads(zonestore.run("store", "df", drive, "--json").stdout)["live_bytes"]


@pytest.mark.parametrize(
    "mode, smaller",
    [
        ("none", set()),
        ("passive", {"text"}),
        ("aggressive", {"text", "unknown"}),
        ("force:lz4", {"text", "unknown", "image", "packed"}),
    ],
)
def test_modes(tmp_path, mode, smaller):
    drive = zonestore.make_drive(tmp_path / "d.zoned", "256MiB")
    server = zonestore.Server(drive, "--compression", mode).start()
    s3 = server.client()
    s3.create_bucket(Bucket="bucket")
    headers = {
        "text": {"ContentType": "text/plain"},
        "unknown": {"ContentType": "application/octet-stream"},
        "image": {"ContentType": "image/png"},
        "packed": {"ContentType": "text/plain", "ContentEncoding": "gzip"},
    }
    taken = {}
    for key, given in headers.items():
        before = live(drive)
        s3.put_object(Bucket="bucket", Key=key, Body=TEXT, **given)
        taken[key] = live(drive) - before
    assert {key for key, size in taken.items() if size < len(TEXT) // 2} == smaller
    upload = s3.create_multipart_upload(Bucket="bucket", Key="parts")["UploadId"]
    body = TEXT * 5
    part = s3.upload_part(Bucket="bucket", Key="parts", UploadId=upload, PartNumber=1, Body=body)
    parts = [{"PartNumber": 1, "ETag": part["ETag"]}]
    s3.complete_multipart_upload(
        Bucket="bucket", Key="parts", UploadId=upload, MultipartUpload={"Parts": parts}
    )
    s3.copy_object(Bucket="bucket", Key="copy", CopySource="bucket/text")
    server.kill()
    # Another mode reads it as well.
    server = zonestore.Server(drive).start()
    s3 = server.client()
    for key in [*headers, "copy"]:
        assert s3.get_object(Bucket="bucket", Key=key)["Body"].read() == TEXT, key
    assert s3.get_object(Bucket="bucket", Key="parts")["Body"].read() == body
    got = s3.get_object(Bucket="bucket", Key="text", Range="bytes=777777-777999")
    assert got["Body"].read() == TEXT[777777:778000]
    server.stop()
    zonestore.fsck(drive)


def test_a_wrong_mode_is_told_the_right_ones(tmp_path):
    result = zonestore.run("serve", tmp_path / "d", "--compression", "gzip", check=False)
    assert result.returncode == 2
    assert "none, passive, aggressive or force" in result.stderr
