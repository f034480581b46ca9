"""Object Lock: against a model (ZONESTORE_LOCKS=n histories, with kill -9 in between), rule by rule, and past S3."""

import datetime
import http.client
import itertools
import os
import random
import time

import botocore.exceptions
import pytest

import zonestore
from configured import Configured, key
from signer import Signer
from test_versions import listed, pages, said, switch

KEYS = ["a", "a\x00b", "dir/1", "ä"]
MODES = ["GOVERNANCE", "COMPLIANCE"]
DAY = 24 * 3600
LOCKED = ("AccessDenied", 403)
INVALID = ("InvalidArgument", 400)
# A lock that ends so close to now may have ended or not.
BLUR_SECONDS = 1.0
numbers = itertools.count(1)


def at(seconds):
    """So many seconds from now. botocore sends no fractions."""
    moment = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return moment.replace(microsecond=0)


def configure(s3, bucket, **default):
    rule = {"Rule": {"DefaultRetention": default}} if default else {}
    s3.put_object_lock_configuration(Bucket=bucket, ObjectLockConfiguration={"ObjectLockEnabled": "Enabled", **rule})


def asked(mode=None, until=None, hold=None):
    """A lock as the arguments of a put, a copy or an upload."""
    lock = {"ObjectLockMode": mode, "ObjectLockRetainUntilDate": until, "ObjectLockLegalHoldStatus": hold}
    return {name: value for name, value in lock.items() if value is not None}


def lock_of(s3, **version):
    """Mode, date and legal hold, as every operation tells them."""
    head = s3.head_object(**version)
    told = tuple(head.get(f"ObjectLock{name}") for name in ("Mode", "RetainUntilDate", "LegalHoldStatus"))
    got = s3.get_object(**version)
    assert told == tuple(got.get(f"ObjectLock{name}") for name in ("Mode", "RetainUntilDate", "LegalHoldStatus"))
    retention = told_by(s3.get_object_retention, **version)
    assert told[:2] == (tuple(retention["Retention"][n] for n in ("Mode", "RetainUntilDate")) if retention else (None, None))
    hold = told_by(s3.get_object_legal_hold, **version)
    assert told[2] == (hold["LegalHold"]["Status"] if hold else None)
    return told


def told_by(call, **version):
    try:
        return call(**version)
    except botocore.exceptions.ClientError as error:
        assert error.response["Error"]["Code"] == "NoSuchObjectLockConfiguration", error
        return None


def clear(s3, bucket):
    """Removes all versions of a bucket that time or a bypass lets go."""
    for key, version, is_marker, _ in listed(s3, bucket):
        if not is_marker:
            s3.put_object_legal_hold(Bucket=bucket, Key=key, VersionId=version, LegalHold={"Status": "OFF"})
        s3.delete_object(Bucket=bucket, Key=key, VersionId=version, BypassGovernanceRetention=True)


@pytest.fixture
def lockable(s3):
    name = f"locked-{next(numbers)}"
    s3.create_bucket(Bucket=name, ObjectLockEnabledForBucket=True)
    yield name
    clear(s3, name)
    s3.delete_bucket(Bucket=name)


class Version:
    def __init__(self, id, body, lock=(None, None, None)):
        self.id, self.body, (self.mode, self.until, self.hold) = id, body, lock

    def lock(self):
        return self.mode, self.until, self.hold

    def lasts(self):
        """Whether its retention does; None if that depends on the moment."""
        if self.until is None:
            return False
        left = (self.until - at(0)).total_seconds()
        return None if abs(left) < BLUR_SECONDS else left > 0

    def may_go(self, bypass):
        if self.hold == "ON":
            return False
        if bypass and self.mode == "GOVERNANCE":
            return True
        return None if self.lasts() is None else not self.lasts()

    def may_become(self, mode, until, bypass):
        if mode == self.mode and until is not None and until >= self.until:
            return True
        if bypass and self.mode == "GOVERNANCE":
            return True
        return None if self.lasts() is None else not self.lasts()


class History:
    """What S3 says of locked versions, and a bucket that has to say the same."""

    def __init__(self, server, seed):
        self.server, self.chance, self.bucket = server, random.Random(seed), "history"
        self.s3, self.keys, self.default, self.done = server.client(), {}, None, []
        self.s3.create_bucket(Bucket=self.bucket, ObjectLockEnabledForBucket=True)

    def of(self, key):
        return self.keys.setdefault(key, [])

    def some(self, key):
        """A version of a key that is no delete marker."""
        there = [version for version in self.of(key) if version.body is not None]
        return self.chance.choice(there) if there else None

    def name(self, key, version):
        return {"Bucket": self.bucket, "Key": key, "VersionId": version.id}

    def retention(self):
        return self.chance.choice(MODES), at(self.chance.choice([2, 5, 3600, 2 * 3600]))

    def asks(self):
        """A lock for a version that comes; often none."""
        mode, until = self.retention() if self.chance.random() < 0.5 else (None, None)
        return mode, until, self.chance.choice([None, None, "ON", "OFF"])

    def in_time(self, until, call, **arguments):
        """The answer, or None: a date that was in the future may be past when it arrives."""
        try:
            return call(**arguments)
        except botocore.exceptions.ClientError as error:
            if error.response["Error"]["Code"] != "InvalidArgument" or until is None or until > at(0):
                raise
            return None

    def allowed(self, may, call, until=None, **arguments):
        """Whether the call succeeds. It has to, or must not, if that is so before it and behind it."""
        before = may()
        try:
            if self.in_time(until, call, **arguments) is None:
                return False
            allowed = True
        except botocore.exceptions.ClientError as error:
            assert (error.response["Error"]["Code"], error.response["ResponseMetadata"]["HTTPStatusCode"]) == LOCKED, error
            allowed = False
        assert before != may() or before in (allowed, None), (call.__name__, arguments)
        return allowed

    def made(self, key, answer, body, lock):
        """A version has come with this lock, or with the default retention of its bucket."""
        mode, until, hold = lock
        version = Version(said(answer), body, lock)
        if mode is None and self.default:
            version.mode, days = self.default
            told = self.s3.head_object(**self.name(key, version))["ObjectLockRetainUntilDate"]
            assert abs((told - at(days * DAY)).total_seconds()) < zonestore.TIMEOUT
            version.until = told
        self.of(key).insert(0, version)

    def step(self, number):
        s3, chance, key = self.s3, self.chance, self.chance.choice(KEYS)
        target = {"Bucket": self.bucket, "Key": key}
        body, version, bypass = f"{number}".encode() * chance.choice([1, 20_000]), self.some(key), chance.random() < 0.5
        what = chance.choice(["put", "put", "copy", "parts", "delete", "delete version", "delete version", "delete version", "many",
                              "retention", "retention", "retention", "hold", "hold", "tag", "default", "kill"])
        self.done.append((what, key, version and version.id, bypass))
        if what == "put":
            lock = self.asks()
            if answer := self.in_time(lock[1], s3.put_object, **target, Body=body, **asked(*lock)):
                self.made(key, answer, body, lock)
        elif what == "copy" and (source := self.some(other := chance.choice(KEYS))):
            lock = self.asks()
            copy = {**target, "CopySource": self.name(other, source), "MetadataDirective": "REPLACE"}
            if answer := self.in_time(lock[1], s3.copy_object, **copy, **asked(*lock)):
                self.made(key, answer, source.body, lock)
        elif what == "parts":
            lock = self.asks()
            if begun := self.in_time(lock[1], s3.create_multipart_upload, **target, **asked(*lock)):
                upload = {**target, "UploadId": begun["UploadId"]}
                tag = s3.upload_part(**upload, PartNumber=1, Body=body)["ETag"]
                answer = s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": tag}]})
                self.made(key, answer, body, lock)
        elif what == "delete":
            self.of(key).insert(0, Version(said(s3.delete_object(**target)), None))
        elif what == "delete version" and self.of(key):
            version = chance.choice(self.of(key))
            gone = {**self.name(key, version), "BypassGovernanceRetention": bypass}
            if self.allowed(lambda: version.may_go(bypass), s3.delete_object, **gone):
                self.of(key).remove(version)
        elif what == "many" and key.isprintable():
            some = chance.sample(self.of(key), min(3, len(self.of(key))))
            expected = {version.id: version.may_go(bypass) for version in some}
            objects = [{"Key": key, "VersionId": version.id} for version in some] or [{"Key": key, "VersionId": "0" * 32}]
            answer = s3.delete_objects(Bucket=self.bucket, Delete={"Objects": objects}, BypassGovernanceRetention=bypass)
            stay = {error["VersionId"] for error in answer.get("Errors", []) if error["Code"] == "AccessDenied"}
            assert len(stay) == len(answer.get("Errors", []))
            assert all(expected[v.id] != v.may_go(bypass) or expected[v.id] in (v.id not in stay, None) for v in some)
            self.keys[key] = [version for version in self.of(key) if version not in some or version.id in stay]
        elif what == "retention" and version:
            mode, until = self.retention() if chance.random() < 0.8 else (None, None)
            retention = {"Mode": mode, "RetainUntilDate": until} if mode else {}
            change = {**self.name(key, version), "Retention": retention, "BypassGovernanceRetention": bypass}
            if self.allowed(lambda: version.may_become(mode, until, bypass), s3.put_object_retention, until, **change):
                version.mode, version.until = mode, until
        elif what == "hold" and version:
            version.hold = chance.choice(["ON", "OFF"])
            s3.put_object_legal_hold(**self.name(key, version), LegalHold={"Status": version.hold})
        elif what == "tag" and version:
            s3.put_object_tagging(**self.name(key, version), Tagging={"TagSet": [{"Key": "n", "Value": str(number)}]})
        elif what == "default":
            self.default = chance.choice([None, None, ("GOVERNANCE", 1), ("COMPLIANCE", 2)])
            configure(s3, self.bucket, **({"Mode": self.default[0], "Days": self.default[1]} if self.default else {}))
        elif what == "kill" and chance.random() < 0.3:
            self.server.kill()
            self.server.start()
            self.s3 = self.server.client()

    def compare(self):
        wanted = {(key, v.id, v.body is None, n == 0) for key, versions in self.keys.items() for n, v in enumerate(versions)}
        found = listed(self.s3, self.bucket)
        assert len(found) == len(wanted) and set(found) == wanted
        for key, versions in self.keys.items():
            for version in versions:
                if version.body is not None:
                    assert self.s3.get_object(**self.name(key, version))["Body"].read() == version.body
                    assert lock_of(self.s3, **self.name(key, version)) == version.lock(), (key, version.id)
        told = self.s3.get_object_lock_configuration(Bucket=self.bucket)["ObjectLockConfiguration"]
        default = told.get("Rule", {}).get("DefaultRetention")
        assert (default and (default["Mode"], default["Days"])) == self.default


@pytest.mark.parametrize("seed", range(int(os.environ.get("ZONESTORE_LOCKS", "2"))))
def test_any_history_is_that_of_the_model(make_server, seed, refused):
    history = History(make_server(), seed)
    try:
        for number in range(150):
            history.step(number)
            if number % 25 == 24:
                history.compare()
        history.server.kill()
        history.server.start()
        history.s3 = history.server.client()
        history.compare()
    except Exception:
        print(history.done)
        raise
    if any(history.keys.values()):
        assert refused(history.s3.delete_bucket, Bucket=history.bucket)[0] == "BucketNotEmpty"


def test_a_bucket_is_made_with_it_or_gets_it_later(s3, bucket, lockable, refused):
    enabled = {"ObjectLockEnabled": "Enabled"}
    assert s3.get_object_lock_configuration(Bucket=lockable)["ObjectLockConfiguration"] == enabled
    assert s3.get_bucket_versioning(Bucket=lockable)["Status"] == "Enabled"
    none = ("ObjectLockConfigurationNotFoundError", 404)
    assert refused(s3.get_object_lock_configuration, Bucket=bucket) == none
    for status in ("Suspended", None):
        if status:
            switch(s3, bucket, status)
        later = dict(Bucket=bucket, ObjectLockConfiguration=enabled)
        assert refused(s3.put_object_lock_configuration, **later) == ("InvalidBucketState", 409)
    switch(s3, bucket, "Enabled")
    configure(s3, bucket, Mode="GOVERNANCE", Years=3)
    for name in (bucket, lockable):
        assert refused(switch, s3, name, "Suspended") == ("InvalidBucketState", 409)
        switch(s3, name, "Enabled")
    told = s3.get_object_lock_configuration(Bucket=bucket)["ObjectLockConfiguration"]
    assert told == {**enabled, "Rule": {"DefaultRetention": {"Mode": "GOVERNANCE", "Years": 3}}}
    configure(s3, bucket)
    assert s3.get_object_lock_configuration(Bucket=bucket)["ObjectLockConfiguration"] == enabled
    gone = dict(Bucket="there-is-none", ObjectLockConfiguration=enabled)
    assert refused(s3.put_object_lock_configuration, **gone) == ("NoSuchBucket", 404)


@pytest.mark.parametrize("default, expected", [
    (dict(Mode="GOVERNANCE"), ("MalformedXML", 400)),
    (dict(Days=1), ("MalformedXML", 400)),
    (dict(Mode="GOVERNANCE", Days=1, Years=1), ("MalformedXML", 400)),
    (dict(Mode="FOREVER", Days=1), ("MalformedXML", 400)),
    (dict(Mode="GOVERNANCE", Days=0), INVALID),
    (dict(Mode="GOVERNANCE", Years=-1), INVALID),
    (dict(Mode="GOVERNANCE", Days=36501), INVALID),
    (dict(Mode="COMPLIANCE", Years=101), INVALID),
])
def test_a_default_that_cannot_be_is_refused(s3, lockable, refused, default, expected):
    configure(s3, lockable, Mode="GOVERNANCE", Days=7)
    assert refused(configure, s3, lockable, **default) == expected
    told = s3.get_object_lock_configuration(Bucket=lockable)["ObjectLockConfiguration"]["Rule"]
    assert told == {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 7}}


def test_documents_that_ask_for_more_are_refused(sign, s3, lockable, refused):
    assert refused(s3.put_object_lock_configuration, Bucket=lockable, ObjectLockConfiguration={}) == ("MalformedXML", 400)
    wrong = {"ObjectLockEnabled": "Disabled"}
    assert refused(s3.put_object_lock_configuration, Bucket=lockable, ObjectLockConfiguration=wrong) == ("MalformedXML", 400)
    s3.put_object(Bucket=lockable, Key="k", Body=b"")
    for query, document, status in [
        ("object-lock", b"", 400),
        ("object-lock", b"<ObjectLockConfiguration><Rule><Filter/></Rule></ObjectLockConfiguration>", 501),
        ("object-lock", b"<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule/></ObjectLockConfiguration>", 400),
    ]:
        assert sign.request("PUT", f"/{lockable}", query, document)[0] == status, document
    for query, document, status in [
        ("retention", b"<Retention><Mode>GOVERNANCE</Mode></Retention>", 400),
        ("retention", b"<Retention><RetainUntilDate>2100-01-01T00:00:00Z</RetainUntilDate></Retention>", 400),
        ("retention", b"<Retention><Mode>X</Mode><RetainUntilDate>2100-01-01T00:00:00Z</RetainUntilDate></Retention>", 400),
        ("retention", b"<Retention><Mode>GOVERNANCE</Mode><RetainUntilDate>soon</RetainUntilDate></Retention>", 400),
        ("retention", b"<Retention><Days>3</Days></Retention>", 501),
        ("retention", b"", 400),
        ("legal-hold", b"<LegalHold/>", 400),
        ("legal-hold", b"<LegalHold><Status>on</Status></LegalHold>", 400),
        ("legal-hold", b"<LegalHold><Status>ON</Status><Until>x</Until></LegalHold>", 501),
    ]:
        assert sign.request("PUT", f"/{lockable}/k", query, document)[0] == status, document
    token = sign.request("PUT", f"/{lockable}", "object-lock", b"<X/>", x_amz_bucket_object_lock_token="x")
    assert token[0] == 501
    assert lock_of(s3, Bucket=lockable, Key="k") == (None, None, None)


def ways(s3, bucket):
    """Every operation that makes a version, as far as the lock is asked for."""
    target = {"Bucket": bucket, "Key": "new"}
    return [
        lambda **lock: s3.put_object(**target, Body=b"x", **lock),
        lambda **lock: s3.copy_object(**target, CopySource={"Bucket": bucket, "Key": "there"}, **lock),
        lambda **lock: s3.create_multipart_upload(**target, **lock),
    ]


def test_a_lock_that_cannot_be_is_refused(s3, lockable, bucket, sign, refused):
    for name in (lockable, bucket):
        s3.put_object(Bucket=name, Key="there", Body=b"x")
    for way in ways(s3, lockable):
        for lock in (asked("GOVERNANCE"), asked(until=at(60)), asked("GOVERNANCE", at(-60)), asked("FOREVER", at(60)),
                     asked(hold="PERHAPS"), asked("COMPLIANCE", datetime.datetime(1960, 1, 1))):
            assert refused(way, **lock) == INVALID, lock
    headers = {"x_amz_object_lock_mode": "COMPLIANCE", "x_amz_object_lock_retain_until_date": "tomorrow"}
    assert sign.request("PUT", f"/{lockable}/new", body=b"x", **headers)[0] == 400
    missing = ("InvalidRequest", 400)
    for way in ways(s3, bucket):
        for lock in (asked("GOVERNANCE", at(60)), asked(hold="ON"), asked(hold="OFF")):
            assert refused(way, **lock) == missing
    there = {"Bucket": bucket, "Key": "there"}
    for call, more in [
        (s3.get_object_retention, {}), (s3.get_object_legal_hold, {}), (s3.put_object_legal_hold, {"LegalHold": {"Status": "ON"}}),
        (s3.put_object_retention, {"Retention": {"Mode": "GOVERNANCE", "RetainUntilDate": at(60)}}),
    ]:
        assert refused(call, **there, **more) == missing
    past = {"Mode": "GOVERNANCE", "RetainUntilDate": at(-1)}
    assert refused(s3.put_object_retention, Bucket=lockable, Key="there", Retention=past) == INVALID
    assert [key for key, *_ in listed(s3, lockable)] == ["there"]


def test_every_way_to_make_a_version_locks_it(s3, lockable):
    s3.put_object(Bucket=lockable, Key="there", Body=b"x", **asked("GOVERNANCE", at(DAY), "ON"))
    for lock in ((None, None, None), ("GOVERNANCE", at(3600), "ON"), (None, None, "OFF"), ("GOVERNANCE", at(60), None)):
        for way in ways(s3, lockable):
            answer = way(**asked(*lock))
            if upload := answer.get("UploadId"):
                upload = {"Bucket": lockable, "Key": "new", "UploadId": upload}
                tag = s3.upload_part(**upload, PartNumber=1, Body=b"x")["ETag"]
                done = {"Parts": [{"PartNumber": 1, "ETag": tag}]}
                answer = s3.complete_multipart_upload(**upload, MultipartUpload=done)
            # A copy has not the lock of its source.
            assert lock_of(s3, Bucket=lockable, Key="new", VersionId=answer["VersionId"]) == lock
    # An upload may be given up, whatever it was to become.
    upload = s3.create_multipart_upload(Bucket=lockable, Key="new", **asked("COMPLIANCE", at(DAY), "ON"))
    s3.abort_multipart_upload(Bucket=lockable, Key="new", UploadId=upload["UploadId"])


def test_a_date_keeps_its_milliseconds(s3, lockable, sign):
    headers = {"x_amz_object_lock_mode": "GOVERNANCE", "x_amz_object_lock_retain_until_date": "2100-01-02T03:04:05.1220001Z"}
    assert sign.request("PUT", f"/{lockable}/k", body=b"x", **headers)[0] == 200
    told = datetime.datetime(2100, 1, 2, 3, 4, 5, 123_000, tzinfo=datetime.timezone.utc)
    assert lock_of(s3, Bucket=lockable, Key="k")[1] == told


def test_a_lock_keeps_a_version_and_not_its_key(s3, lockable, refused):
    first = s3.put_object(Bucket=lockable, Key="k", Body=b"first", **asked("GOVERNANCE", at(3600)))["VersionId"]
    s3.put_object(Bucket=lockable, Key="k", Body=b"second")
    marker = s3.delete_object(Bucket=lockable, Key="k")["VersionId"]
    held = {"Bucket": lockable, "Key": "k", "VersionId": first}
    assert refused(s3.delete_object, **held) == LOCKED
    assert s3.get_object(**held)["Body"].read() == b"first"
    # A marker has no lock, and none can be put on it.
    for call, more in [
        (s3.put_object_legal_hold, {"LegalHold": {"Status": "ON"}}), (s3.get_object_retention, {}),
        (s3.put_object_retention, {"Retention": {"Mode": "GOVERNANCE", "RetainUntilDate": at(60)}}),
    ]:
        assert refused(call, Bucket=lockable, Key="k", VersionId=marker, **more) == ("MethodNotAllowed", 405)
        assert refused(call, Bucket=lockable, Key="k", **more) == ("NoSuchKey", 404)
        assert refused(call, Bucket=lockable, Key="k", VersionId="0" * 32, **more) == ("NoSuchVersion", 404)
    s3.delete_object(Bucket=lockable, Key="k", VersionId=marker)
    assert s3.get_object(Bucket=lockable, Key="k")["Body"].read() == b"second"


def test_what_tells_no_locks_tells_none(s3, lockable):
    s3.put_object(Bucket=lockable, Key="k", Body=b"x", **asked("GOVERNANCE", at(3600), "ON"))
    attributes = s3.get_object_attributes(Bucket=lockable, Key="k", ObjectAttributes=["ETag", "ObjectSize"])
    told = [attributes["ResponseMetadata"]["HTTPHeaders"], *pages(s3, lockable)[0]["Versions"]]
    assert not [name for answer in told for name in answer if "lock" in name.lower()]


def test_a_retention_ends_by_itself(s3, lockable):
    # On a machine that stands still it may have ended before it is asked for.
    for seconds in (2, 8, 30, 120):
        held, until, got = {"Bucket": lockable, "Key": "k"}, at(seconds), None
        try:
            held["VersionId"] = s3.put_object(**held, Body=b"x", **asked("COMPLIANCE", until))["VersionId"]
            s3.delete_object(**held, BypassGovernanceRetention=True)
        except botocore.exceptions.ClientError as error:
            got = error.response["Error"]["Code"], error.response["ResponseMetadata"]["HTTPStatusCode"]
        if at(0) < until:
            break
    assert got == LOCKED
    assert lock_of(s3, **held)[1] == until
    while at(0) <= until:
        time.sleep(0.1)
    # It is told as before.
    assert lock_of(s3, **held)[1] == until
    s3.delete_object(**held)


@pytest.fixture
def offline(make_server, tmp_path):
    """A stopped server with a locked version that is the current one, one that is not, and something else."""
    server = make_server()
    s3 = server.client()
    s3.create_bucket(Bucket="papers", ObjectLockEnabledForBucket=True)
    s3.put_object(Bucket="papers", Key="held", Body=b"held", ObjectLockLegalHoldStatus="ON")
    s3.put_object(Bucket="papers", Key="was", Body=b"was", **asked("COMPLIANCE", at(DAY)))
    s3.put_object(Bucket="papers", Key="was", Body=b"is")
    s3.put_object(Bucket="papers", Key="free", Body=b"free")
    # An upload of what will be locked locks nothing.
    s3.create_multipart_upload(Bucket="papers", Key="begun", **asked("COMPLIANCE", at(DAY)))
    server.stop()
    return server


def refuses(*arguments):
    done = zonestore.run(*arguments, check=False)
    assert done.returncode == 8, (done.stdout, done.stderr)
    assert "object lock" in done.stderr and "--break-locks" in done.stderr, done.stderr


def test_the_command_line_breaks_no_lock_unless_it_is_told(offline, tmp_path):
    drive, file = offline.drive, tmp_path / "file"
    file.write_bytes(b"new")
    everything = [zonestore.run("store", "ls", drive, what).stdout for what in ("papers", ".versions/papers")]
    earlier = everything[1].strip()
    refuses("store", "rm", drive, "papers/held")
    refuses("store", "rm", "--recursive", "--yes", drive, "papers/h")
    refuses("store", "rm", "--recursive", "--yes", drive, "papers")
    belongs = zonestore.run("store", "rm", "--recursive", "--yes", drive, ".versions/papers", check=False)
    assert belongs.returncode == 8 and "belongs to a bucket" in belongs.stderr
    assert [zonestore.run("store", "ls", drive, what).stdout for what in ("papers", ".versions/papers")] == everything and earlier
    zonestore.run("store", "rm", drive, "papers/free")
    zonestore.run("store", "rm", drive, "papers/was")
    # A put makes a version, as in S3.
    zonestore.run("store", "put", drive, file, "papers/held")
    refuses("store", "rm", "--recursive", "--yes", drive, "papers")
    zonestore.run("store", "rm", "--recursive", "--yes", "--break-locks", drive, "papers")
    assert zonestore.run("store", "ls", drive, "papers", check=False).returncode == 3


def test_the_command_line_gives_the_default_retention(make_server, tmp_path, refused):
    server = make_server()
    s3 = server.client()
    s3.create_bucket(Bucket="papers", ObjectLockEnabledForBucket=True)
    configure(s3, "papers", Mode="COMPLIANCE", Days=1)
    server.stop()
    (tmp_path / "file").write_bytes(b"new")
    zonestore.run("store", "put", server.drive, tmp_path / "file", "papers/k")
    refuses("store", "rm", server.drive, "papers/k")
    server.start()
    s3 = server.client()
    mode, until, _ = lock_of(s3, Bucket="papers", Key="k")
    assert mode == "COMPLIANCE" and abs((until - at(DAY)).total_seconds()) < 600
    version = s3.head_object(Bucket="papers", Key="k")["VersionId"]
    assert refused(s3.delete_object, Bucket="papers", Key="k", VersionId=version) == LOCKED


def test_archives_keep_locks(offline, tmp_path, refused):
    """An export is imported elsewhere, a backup restored, and neither loses a lock, here or there."""
    export, backup = tmp_path / "export.tar", tmp_path / "backup.tar"
    zonestore.run("store", "export", offline.drive, "papers", "--to", export)
    zonestore.run("store", "backup", offline.drive, "--to", backup)
    refuses("store", "import", offline.drive, export, "--overwrite")
    zonestore.run("store", "import", offline.drive, export)
    imported = zonestore.make_drive(tmp_path / "imported.zoned", "256MiB")
    restored = zonestore.make_drive(tmp_path / "restored.zoned", "256MiB")
    zonestore.run("store", "import", imported, export)
    zonestore.run("store", "restore", backup, "--to", restored)
    # A copy in a bucket without versions keeps what came with it.
    zonestore.run("store", "import", offline.drive, export, "--into", "copy")
    (tmp_path / "file").write_bytes(b"new")
    for drive in (imported, restored, offline.drive):
        refuses("store", "rm", "--recursive", "--yes", drive, "papers")
        server = zonestore.Server(drive).start()
        s3 = server.client()
        assert s3.get_object_lock_configuration(Bucket="papers")["ObjectLockConfiguration"] == {"ObjectLockEnabled": "Enabled"}
        assert lock_of(s3, Bucket="papers", Key="held") == (None, None, "ON")
        [was] = [v for key, v, _, latest in listed(s3, "papers") if key == "was" and not latest]
        assert lock_of(s3, Bucket="papers", Key="was", VersionId=was)[0] == "COMPLIANCE"
        held = s3.head_object(Bucket="papers", Key="held")["VersionId"]
        for key, version in (("was", was), ("held", held)):
            assert refused(s3.delete_object, Bucket="papers", Key=key, VersionId=version) == LOCKED
        server.stop()
        zonestore.fsck(drive)


def exported(server, path, prefix="papers"):
    server.stop()
    zonestore.run("store", "export", server.drive, prefix, "--to", path)
    server.start()
    return server.client()


@pytest.mark.parametrize("overwrite", [False, True])
def test_an_archive_from_before_a_lock_takes_nothing_from_it(make_server, tmp_path, refused, overwrite):
    server = make_server()
    s3 = server.client()
    s3.create_bucket(Bucket="papers", ObjectLockEnabledForBucket=True)
    held = {"Bucket": "papers", "Key": "a"}
    held["VersionId"] = s3.put_object(**held, Body=b"precious")["VersionId"]
    s3 = exported(server, tmp_path / "old.tar")
    s3.put_object_legal_hold(**held, LegalHold={"Status": "ON"})
    s3.delete_object(Bucket="papers", Key="a")
    server.stop()
    done = zonestore.run("store", "import", server.drive, tmp_path / "old.tar", *["--overwrite"] * overwrite)
    assert ("1 object there already" in done.stdout) != overwrite
    s3 = server.start().client()
    ids = [version for _, version, _, _ in listed(s3, "papers")]
    assert len(ids) == len(set(ids)) == (3 if overwrite else 2) and held["VersionId"] in ids
    s3.put_object(Bucket="papers", Key="a", Body=b"other")
    assert lock_of(s3, **held) == (None, None, "ON")
    assert refused(s3.delete_object, **held) == LOCKED
    assert s3.get_object(**held)["Body"].read() == b"precious"
    server.stop()
    zonestore.fsck(server.drive)


@pytest.mark.parametrize("overwrite", [False, True])
def test_an_archive_of_another_bucket_takes_no_locked_null(make_server, tmp_path, refused, overwrite):
    server = make_server()
    s3 = server.client()
    for bucket in ("papers", "other"):
        s3.create_bucket(Bucket=bucket)
        s3.put_object(Bucket=bucket, Key="a", Body=bucket.encode())
    switch(s3, "papers", "Enabled")
    configure(s3, "papers")
    held = {"Bucket": "papers", "Key": "a", "VersionId": "null"}
    s3.put_object_legal_hold(**held, LegalHold={"Status": "ON"})
    s3.delete_object(Bucket="papers", Key="a")
    exported(server, tmp_path / "other.tar", "other")
    server.stop()
    zonestore.run("store", "import", server.drive, tmp_path / "other.tar", "--into", "papers", *["--overwrite"] * overwrite)
    s3 = server.start().client()
    ids = [version for _, version, _, _ in listed(s3, "papers")]
    assert len(ids) == len(set(ids)) == (3 if overwrite else 2), ids
    if overwrite:
        assert s3.get_object(Bucket="papers", Key="a")["Body"].read() == b"other"
    s3.put_object(Bucket="papers", Key="a", Body=b"new")
    assert s3.get_object(**held)["Body"].read() == b"papers"
    assert refused(s3.delete_object, **held) == LOCKED


def kept(s3, bucket="papers"):
    """What each version holds, by its id: of delete markers nothing."""
    found = {}
    for key, version, marker, _ in listed(s3, bucket):
        assert version not in found, version
        found[version] = None if marker else s3.get_object(Bucket=bucket, Key=key, VersionId=version)["Body"].read()
    return found


def test_an_archive_of_another_bucket_takes_no_null(make_server, tmp_path):
    """All objects that were put while no versions were kept have one id, and are different ones."""
    server = make_server()
    s3 = server.client()
    for bucket in ("papers", "other"):
        s3.create_bucket(Bucket=bucket)
        s3.put_object(Bucket=bucket, Key="a", Body=bucket.encode())
    switch(s3, "papers", "Enabled")
    exported(server, tmp_path / "other.tar", "other")
    for _ in range(2):
        server.stop()
        zonestore.run("store", "import", server.drive, tmp_path / "other.tar", "--into", "papers", "--overwrite")
        found = kept(server.start().client())
        # Once: the second import finds the same object.
        assert found["null"] == b"papers" and sorted(found.values()) == [b"other", b"papers"], found


@pytest.mark.parametrize("held", [False, True])
def test_an_archive_brings_no_second_null(make_server, tmp_path, held):
    server, other = make_server(), make_server()
    s3 = server.client()
    s3.create_bucket(Bucket="papers")
    s3.put_object(Bucket="papers", Key="a", Body=b"null0")
    switch(s3, "papers", "Enabled")
    if held:
        configure(s3, "papers")
        s3.put_object_legal_hold(Bucket="papers", Key="a", LegalHold={"Status": "ON"})
    s3.put_object(Bucket="papers", Key="a", Body=b"v1")
    exported(server, tmp_path / "old.tar")
    server.stop()
    s3 = other.client()
    s3.create_bucket(Bucket="papers")
    switch(s3, "papers", "Enabled")
    s3.put_object(Bucket="papers", Key="a", Body=b"here")
    switch(s3, "papers", "Suspended")
    other.stop()
    done = zonestore.run("store", "import", other.drive, tmp_path / "old.tar", "--overwrite", check=False)
    assert done.returncode == (8 if held else 0), done.stderr
    # What came before the refusal stays, and is told.
    assert not held or "1 object, 5 B, stored before this" in done.stderr, done.stderr
    found = kept(other.start().client())
    assert b"here" in found.values() and found["null"] == (b"null0" if held else b"v1"), found


def test_a_bucket_without_versions_gets_no_earlier_ones(make_server, offline, tmp_path):
    zonestore.run("store", "export", offline.drive, "papers", "--to", tmp_path / "old.tar")
    other = make_server()
    other.client().create_bucket(Bucket="papers")
    other.stop()
    done = zonestore.run("store", "import", other.drive, tmp_path / "old.tar")
    assert "1 earlier version left out" in done.stdout, done.stdout
    s3 = other.start().client()
    assert [(key, latest) for key, _, _, latest in listed(s3, "papers")] == [("free", True), ("held", True), ("was", True)]


def test_whoever_removes_a_bucket_is_told_of_all_versions(offline):
    server = offline.start()
    s3 = server.client()
    s3.create_bucket(Bucket="gone")
    switch(s3, "gone", "Enabled")
    s3.put_object(Bucket="gone", Key="a", Body=b"12345")
    s3.delete_object(Bucket="gone", Key="a")
    server.stop()
    for bucket, objects, more in (("gone", 2, []), ("papers", 4, ["--break-locks"])):
        done = zonestore.run("store", "rm", "--recursive", *more, server.drive, bucket, check=False)
        assert done.returncode != 0 and f"destroys {objects} objects" in done.stderr, done.stderr
    zonestore.run("store", "rm", "--recursive", "--yes", server.drive, "gone")


@pytest.fixture
def limited(tmp_path):
    """A server with a key that may do everything but administer."""
    server = Configured(tmp_path, key("writer", "its secret", [("papers", ["read", "write", "list"])])).start()
    yield server
    server.stop()
    zonestore.fsck(server.drive)


def test_a_key_that_may_write_does_not_weaken_locks(limited, refused):
    server = limited
    admin, writer = server.as_admin(), server.client("writer", "its secret")
    admin.create_bucket(Bucket="papers", ObjectLockEnabledForBucket=True)
    held = {"Bucket": "papers", "Key": "k"}
    held["VersionId"] = writer.put_object(**held, Body=b"x", **asked("GOVERNANCE", at(3600), "ON"))["VersionId"]
    longer, shorter = ({"Mode": "GOVERNANCE", "RetainUntilDate": at(seconds)} for seconds in (7200, 60))
    writer.put_object_retention(**held, Retention=longer)
    off = {"LegalHold": {"Status": "OFF"}}
    bypass = {"BypassGovernanceRetention": True}
    assert refused(writer.put_object_retention, **held, Retention=shorter, **bypass) == LOCKED
    assert refused(writer.put_object_legal_hold, **held, **off) == LOCKED
    assert refused(writer.put_object_lock_configuration, Bucket="papers", ObjectLockConfiguration={"ObjectLockEnabled": "Enabled"}) == LOCKED
    admin.put_object_legal_hold(**held, **off)
    assert refused(writer.delete_object, **held, **bypass) == LOCKED
    assert refused(admin.delete_object, **held) == LOCKED
    # What is bypassed is in the audit log, with its object.
    admin.delete_object(**held, **bypass)
    server.wait_until(lambda: server.said("governance bypassed") == 1)
    assert [line for line in server.output if "governance bypassed" in line and "object" in line]


def test_a_presigned_put_locks(s3, lockable, server):
    """The headers of a presigned request are in its query, and count."""
    sign = Signer(server)
    more = {"x_amz_object_lock_mode": "GOVERNANCE", "x_amz_object_lock_retain_until_date": "2100-01-01T00:00:00Z"}
    target = sign.presign("PUT", f"/{lockable}/k", **more)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=zonestore.TIMEOUT)
    connection.request("PUT", target, b"x", {"Host": sign.host})
    assert connection.getresponse().status == 200
    assert lock_of(s3, Bucket=lockable, Key="k")[0] == "GOVERNANCE"
