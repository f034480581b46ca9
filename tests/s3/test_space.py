"""A full drive says so, loses nothing, and gets space back by deleting."""

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request

import pytest

import zonestore

MIB = 1 << 20


def fill(s3, bucket, data, size):
    """Puts objects until one does not fit; returns what fits."""
    stored = {}
    for number in range(10_000):
        key, body = f"fill-{number:04}", data(size, number)
        try:
            s3.put_object(Bucket=bucket, Key=key, Body=body)
        except s3.exceptions.ClientError as error:
            response = error.response
            assert response["Error"]["Code"] == "InsufficientCapacity"
            assert response["ResponseMetadata"]["HTTPStatusCode"] == 507
            return stored
        stored[key] = body
    raise AssertionError("the drive never filled up")


def check(s3, bucket, stored):
    listed = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
    keys = [entry["Key"] for page in listed for entry in page.get("Contents", [])]
    assert keys == sorted(stored)
    for key, body in stored.items():
        assert s3.get_object(Bucket=bucket, Key=key)["Body"].read() == body, key


@pytest.mark.parametrize("size", [MIB + 12345, 300_000])
def test_a_full_drive(make_server, data, size):
    server = make_server("96MiB")
    s3 = server.client()
    s3.create_bucket(Bucket="bucket")
    stored = fill(s3, "bucket", data, size)
    assert stored
    check(s3, "bucket", stored)
    first = len(stored)
    for turn in range(3):
        for key in sorted(stored)[::2]:
            s3.delete_object(Bucket="bucket", Key=key)
            del stored[key]
        for number in range(first // 3):
            key, body = f"again-{turn}-{number}", data(size, 1000 * turn + number)
            s3.put_object(Bucket="bucket", Key=key, Body=body)
            stored[key] = body
        check(s3, "bucket", stored)
    for key in list(stored):
        s3.delete_object(Bucket="bucket", Key=key)
    # The space is back, but for some zones that metadata has grown into meanwhile.
    again = fill(s3, "bucket", data, size)
    assert len(again) >= 0.9 * first
    server.stop()
    server.start()
    check(server.client(), "bucket", again)


def test_a_full_drive_during_a_multipart_upload(make_server, data):
    server = make_server("96MiB")
    s3 = server.client()
    s3.create_bucket(Bucket="bucket")
    s3.put_object(Bucket="bucket", Key="keep", Body=data(5 * MIB))
    target = dict(Bucket="bucket", Key="k")
    target["UploadId"] = s3.create_multipart_upload(**target)["UploadId"]
    with pytest.raises(s3.exceptions.ClientError) as caught:
        for number in range(1, 100):
            s3.upload_part(**target, PartNumber=number, Body=data(5 * MIB, number))
    assert caught.value.response["Error"]["Code"] == "InsufficientCapacity"
    s3.abort_multipart_upload(**target)
    for number in range(3):
        s3.put_object(Bucket="bucket", Key=f"after-{number}", Body=data(5 * MIB, number))
    assert s3.get_object(Bucket="bucket", Key="keep")["Body"].read() == data(5 * MIB)


@pytest.fixture
def crowded(tmp_path, monkeypatch):
    """A server whose drive lies on a small disk of the host, that disk, and what it tells who supervises it."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system takes root")
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", disk]).returncode != 0:
        pytest.skip("no tmpfs can be mounted here")
    told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    told.bind(str(tmp_path / "told"))
    told.setblocking(False)
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "told"))
    server = None
    try:
        server = zonestore.Server(zonestore.make_drive(disk / "d.zoned", "256MiB")).start()
        yield server, disk, told
    finally:
        told.close()
        if server is not None and server.alive():
            server.kill()
        subprocess.run(["umount", disk], check=True)


def is_ready(server):
    try:
        return urllib.request.urlopen(f"{server.endpoint}/-/ready", timeout=zonestore.TIMEOUT).status == 200
    except urllib.error.HTTPError as error:
        assert error.code == 503
        return False
    except OSError:
        # It starts anew.
        return False


def test_a_server_goes_on_when_the_hosts_disk_has_room_again(crowded, data):
    server, disk, told = crowded
    s3 = server.client()
    s3.create_bucket(Bucket="bucket")
    stored = {f"k{n:03}": data([200, 60_000][n % 2], n) for n in range(200)}
    for key, body in stored.items():
        s3.put_object(Bucket="bucket", Key=key, Body=body)
    for turn in range(2):
        # Somebody else takes all that is left.
        free = os.statvfs(disk)
        with open(disk / "other", "wb") as other:
            os.posix_fallocate(other.fileno(), 0, free.f_bavail * free.f_frsize)
        with pytest.raises(s3.exceptions.ClientError) as caught:
            for key in sorted(stored):
                s3.delete_object(Bucket="bucket", Key=key)
                del stored[key]
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] in (503, 507)
        # Whether this one is deleted is open.
        tried = min(stored)
        assert not is_ready(server)
        with pytest.raises(s3.exceptions.ClientError) as caught:
            s3.put_object(Bucket="bucket", Key="refused", Body=b"x")
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503
        last = max(stored)
        assert s3.get_object(Bucket="bucket", Key=last)["Body"].read() == stored[last]
        (disk / "other").unlink()
        end = time.monotonic() + zonestore.TIMEOUT
        while not is_ready(server):
            assert time.monotonic() < end, "".join(server.output[-50:])
            time.sleep(0.05)
        s3.delete_object(Bucket="bucket", Key=tried)
        del stored[tried]
        stored[f"new{turn}"] = data(MIB, turn)
        s3.put_object(Bucket="bucket", Key=f"new{turn}", Body=stored[f"new{turn}"])
        check(s3, "bucket", stored)
        # Never that it stops: systemd would end it some minutes later.
        assert told.recv(100) == b"READY=1"
    assert told.recv(100) == b"READY=1"
    with pytest.raises(BlockingIOError):
        told.recv(100)
    server.stop()
    assert told.recv(100) == b"STOPPING=1"
    zonestore.fsck(server.drive)
    server.start()
    check(server.client(), "bucket", stored)
    server.stop()
