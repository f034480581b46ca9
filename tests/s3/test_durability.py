"""The server is killed under load, again and again; what it acknowledged is there.

Every key belongs to one worker, so that each worker knows what its key must be: what was last
acknowledged, or what was being done when the server died. Every run prints its seed.
"""

import random
import threading
import time

import pytest

import zonestore
from botocore.exceptions import BotoCoreError, ClientError
from urllib3.exceptions import HTTPError

MIB = 1 << 20
WORKERS = 6
KEYS = 8
BUCKET = "bucket"


class Killed(Exception):
    """The server did not answer: nobody knows whether it was done."""


class Full(Exception):
    """The drive was full: nothing was done."""


def attempt(call, *arguments, **options):
    try:
        return call(*arguments, **options)
    except ClientError as error:
        if error.response["Error"]["Code"] == "InsufficientCapacity":
            raise Full from error
        # An answer other than a refusal in the middle of dying is a bug.
        raise AssertionError(f"{call.__name__}: {error}") from error
    except (BotoCoreError, OSError) as error:
        raise Killed from error


class Worker(threading.Thread):
    """Puts, overwrites, deletes and assembles its own keys until the server dies."""

    def __init__(self, number, client, seed, known):
        super().__init__()
        self.number, self.client = number, client
        self.random = random.Random(seed)
        # Key → what it may be: the bytes acknowledged last (None: absent), then perhaps those
        # that were under way.
        self.known = known
        self.done = 0
        self.refused = 0
        self.failure = None

    def run(self):
        try:
            while True:
                self.step()
                self.done += 1
        except Killed:
            pass
        except Exception as error:
            self.failure = error

    def step(self):
        key = f"worker-{self.number}/key-{self.random.randrange(KEYS)}"
        action = self.random.random()
        if action < 0.2:
            self.change(key, None, lambda: attempt(self.client.delete_object, Bucket=BUCKET, Key=key))
        elif action < 0.3:
            parts = [self.random.randbytes(5 * MIB + self.random.randrange(5000)) for _ in range(self.random.randrange(2))]
            parts.append(self.random.randbytes(self.random.randrange(1, 200_000)))
            self.change(key, b"".join(parts), lambda: self.assemble(key, parts))
        elif action < 0.4:
            found = self.read(key)
            assert found == self.known[key][0], f"{key} is not what was put"
        else:
            size = self.random.choice([0, 1, 100, 4096, 5000, 70_000, 1_500_000])
            body = self.random.randbytes(size)
            self.change(key, body, lambda: attempt(self.client.put_object, Bucket=BUCKET, Key=key, Body=body))

    def read(self, key):
        try:
            return self.client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        except self.client.exceptions.NoSuchKey:
            return None
        except (BotoCoreError, HTTPError, OSError) as error:
            raise Killed from error

    def change(self, key, body, call):
        before = self.known[key][0]
        self.known[key] = [before, body]
        try:
            call()
            self.known[key] = [body]
        except Full:
            self.known[key] = [before]
            self.refused += 1

    def assemble(self, key, parts):
        place = dict(Bucket=BUCKET, Key=key)
        target = dict(place)
        target["UploadId"] = attempt(self.client.create_multipart_upload, **target)["UploadId"]
        try:
            listed = []
            for number, part in enumerate(parts, 1):
                found = attempt(self.client.upload_part, **target, PartNumber=number, Body=part)
                listed.append({"PartNumber": number, "ETag": found["ETag"]})
            if self.random.random() > 0.1:
                order = {"Parts": listed}
                return attempt(self.client.complete_multipart_upload, **target, MultipartUpload=order)
        except Full:
            attempt(self.client.abort_multipart_upload, **target)
            raise
        # What is never completed changes nothing.
        attempt(self.client.abort_multipart_upload, **target)
        return attempt(self.client.put_object, **place, Body=b"".join(parts))


def look(client, key):
    try:
        return client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
    except client.exceptions.NoSuchKey:
        return None


def verify(client, known):
    """Every key is one of the things it may be; which one is settled now."""
    present = []
    for part in known:
        for key, states in part.items():
            found = look(client, key)
            assert any(found == state for state in states), (
                f"{key}: {None if found is None else len(found)} bytes, expected one of "
                f"{[None if state is None else len(state) for state in states]}"
            )
            part[key] = [found]
            if found is not None:
                present.append(key)
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
    listed = [entry["Key"] for page in pages for entry in page.get("Contents", [])]
    assert listed == sorted(present)


def end_uploads(client):
    """What was never finished is ended, and then nothing of it is left."""
    for upload in client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", []):
        client.abort_multipart_upload(Bucket=BUCKET, Key=upload["Key"], UploadId=upload["UploadId"])
    assert "Uploads" not in client.list_multipart_uploads(Bucket=BUCKET)


# On the small drive the cleaner has to work all the time, and some puts do not fit.
@pytest.mark.parametrize("size", ["512MiB", "48MiB"])
def test_kill_under_load(tmp_path, request, size):
    seed = request.config.getoption("--seed")
    seed = random.randrange(1 << 32) if seed is None else seed
    print(f"seed {seed}")
    chance = random.Random(seed)
    drive = zonestore.make_drive(tmp_path / "d.zoned", size)
    server = zonestore.Server(drive).start()
    server.client().create_bucket(Bucket=BUCKET)
    known = [{f"worker-{n}/key-{k}": [None] for k in range(KEYS)} for n in range(WORKERS)]
    for turn in range(request.config.getoption("--rounds")):
        end_uploads(server.client())
        client = server.client(retries={"total_max_attempts": 1})
        workers = [
            Worker(n, client, chance.randrange(1 << 32), known[n]) for n in range(WORKERS)
        ]
        for worker in workers:
            worker.start()
        # Some way into the load; the moment is random anyway.
        after = chance.randrange(20, 200)
        deadline = time.monotonic() + zonestore.TIMEOUT
        while sum(worker.done for worker in workers) < after and time.monotonic() < deadline:
            assert server.alive(), "".join(server.output[-50:])
            time.sleep(chance.random() * 0.02)
        server.kill()
        for worker in workers:
            worker.join(timeout=zonestore.TIMEOUT)
            assert worker.failure is None, f"seed {seed}, round {turn}: {worker.failure!r}"
        steps, refused = (sum(getattr(w, name) for w in workers) for name in ("done", "refused"))
        assert steps >= after, "the load came to nothing"
        server.start()
        verify(server.client(), known)
        print(f"round {turn}: {steps} steps, {refused} did not fit")
    end_uploads(server.client())
    server.stop()
    print(zonestore.fsck(drive))


def test_kill_between_parts(tmp_path, data):
    """An upload survives the death of the server, and is completed afterwards."""
    drive = zonestore.make_drive(tmp_path / "d.zoned", "256MiB")
    server = zonestore.Server(drive).start()
    client = server.client()
    client.create_bucket(Bucket=BUCKET)
    target = dict(Bucket=BUCKET, Key="k")
    target["UploadId"] = client.create_multipart_upload(**target, Metadata={"a": "1"})["UploadId"]
    listed, parts = [], [data(5 * MIB, 1), data(5 * MIB, 2), data(10, 3)]
    for number, part in enumerate(parts, 1):
        found = client.upload_part(**target, PartNumber=number, Body=part)
        listed.append({"PartNumber": number, "ETag": found["ETag"]})
        server.kill()
        client = server.start().client()
    client.complete_multipart_upload(**target, MultipartUpload={"Parts": listed})
    server.kill()
    client = server.start().client()
    found = client.get_object(Bucket=BUCKET, Key="k")
    assert found["Body"].read() == b"".join(parts) and found["Metadata"] == {"a": "1"}
    assert "Uploads" not in client.list_multipart_uploads(Bucket=BUCKET)
    server.stop()
    zonestore.fsck(drive)


@pytest.mark.parametrize("times", [3])
def test_running_it_again_finds_everything(tmp_path, data, times):
    drive = zonestore.make_drive(tmp_path / "d.zoned", "256MiB")
    for turn in range(times):
        server = zonestore.Server(drive).start()
        client = server.client()
        if turn == 0:
            client.create_bucket(Bucket=BUCKET)
        client.put_object(Bucket=BUCKET, Key=f"k{turn}", Body=data(2_000_000, turn), Metadata={"turn": str(turn)})
        for earlier in range(turn + 1):
            found = client.get_object(Bucket=BUCKET, Key=f"k{earlier}")
            assert found["Body"].read() == data(2_000_000, earlier)
            assert found["Metadata"] == {"turn": str(earlier)}
        server.stop()
    zonestore.fsck(drive)
