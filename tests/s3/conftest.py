"""One server for most tests; tests that end it, fill it or look at its drive make their own."""

import hashlib
import itertools
import os
import random
import shutil

import pytest

import signer
import zonestore

numbers = itertools.count(1)


def pytest_addoption(parser):
    parser.addoption("--rounds", type=int, default=4, help="rounds of the kill -9 test")
    parser.addoption("--seed", type=int, default=None, help="its seed; a new one if not given")


@pytest.fixture(scope="session", autouse=True)
def binary():
    if not os.path.exists(zonestore.BINARY):
        pytest.exit(f"{zonestore.BINARY} is not there: cargo build --release", 2)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    drive = zonestore.make_drive(tmp_path_factory.mktemp("drive") / "d.zoned")
    server = zonestore.Server(drive).start()
    yield server
    assert server.alive(), "the server ended:\n" + "".join(server.output[-50:])
    server.stop()
    zonestore.fsck(drive)
    os.unlink(drive)


@pytest.fixture(scope="session")
def s3(server):
    return server.client()


@pytest.fixture
def sign(server):
    return signer.Signer(server)


@pytest.fixture
def bucket(s3):
    name = f"bucket-{next(numbers)}"
    s3.create_bucket(Bucket=name)
    yield name
    empty(s3, name)
    s3.delete_bucket(Bucket=name)


@pytest.fixture
def make_server(tmp_path):
    """A server on a drive of its own; stopped at the end, and its drive checked."""
    made = []

    def make(size="256MiB", profile="test-small", arguments=()):
        drive = zonestore.make_drive(tmp_path / f"d{len(made)}.zoned", size, profile)
        made.append(zonestore.Server(drive, *arguments).start())
        return made[-1]

    yield make
    for server in made:
        if server.alive():
            server.stop()
        zonestore.fsck(server.drive)
        os.unlink(server.drive)
    shutil.rmtree(tmp_path, ignore_errors=True)


def empty(s3, bucket):
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for entry in page.get("Contents", []):
            s3.delete_object(Bucket=bucket, Key=entry["Key"])


@pytest.fixture
def data():
    """Bytes that depend on a seed and do not repeat."""
    return lambda size, seed=0: random.Random(seed).randbytes(size)


@pytest.fixture
def md5():
    return lambda data: hashlib.md5(data).hexdigest()


@pytest.fixture
def refused():
    """Calls something that must fail; returns code and status."""
    from botocore.exceptions import ClientError

    def check(call, *arguments, **options):
        with pytest.raises(ClientError) as caught:
            call(*arguments, **options)
        response = caught.value.response
        return response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]

    return check
