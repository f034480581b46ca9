"""Every operation, in every way that has to be refused: no 2xx, and nothing in the store has changed.

The operations and the answers are those of the tables in docs/s3.md."""

import os
import re

import botocore.exceptions
import pytest

from configured import ADMIN, Configured, key
from signer import Signer, code, sha256
from zonestore import ROOT, fsck

RIGHTS = ["read", "write", "list", "admin"]
COMPLETE = "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part></CompleteMultipartUpload>"
VERSIONING = "<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>"
LIFECYCLE = ("<LifecycleConfiguration><Rule><Prefix>never/</Prefix><Status>Enabled</Status><Expiration><Days>1</Days></Expiration></Rule>"
             "</LifecycleConfiguration>")
TAGS = "<Tagging><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tagging>"
LOCK = "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled></ObjectLockConfiguration>"
RETENTION = "<Retention><Mode>GOVERNANCE</Mode><RetainUntilDate>2101-01-01T00:00:00Z</RetainUntilDate></Retention>"
HOLD = "<LegalHold><Status>ON</Status></LegalHold>"
DELETE = "<Delete><Object><Key>gone</Key></Object></Delete>"


def tables():
    """What docs/s3.md says under “Rights”: the right of each operation, and the answer to each refused request."""
    with open(os.path.join(ROOT, "docs", "s3.md")) as document:
        text = document.read().split("\n## Rights\n")[1].split("\n## ")[0]
    rights = re.findall(r"^\| (\w+) \| (?:`(\w+)`|any (?:key|right)) \|$", text, re.M)
    answers = re.findall(r"^\| (with.*|by.*) \| `(\w+)` \((\d+)\) \|$", text, re.M)
    return dict(rights), {request: (code, int(status)) for request, code, status in answers}


NEEDED, ANSWERS = tables()


class World:
    """A bucket with something of everything in it, and what each operation would do to it."""

    def __init__(self, server):
        self.s3 = server.as_admin()
        for bucket in ("photos", "empty", "other"):
            self.s3.create_bucket(Bucket=bucket)
        for name in ("a", "gone"):
            self.s3.put_object(Bucket="photos", Key=name, Body=b"bytes of " + name.encode())
        self.s3.put_object(Bucket="photos", Key="tagged", Body=b"", Tagging="b=2")
        self.s3.create_bucket(Bucket="kept", ObjectLockEnabledForBucket=True)
        until = {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": "2100-01-01T00:00:00Z"}
        self.s3.put_object(Bucket="kept", Key="k", Body=b"", **until, ObjectLockLegalHoldStatus="OFF")
        self.uploads = {}
        for name in ("ends", "goes on", "is left"):
            upload = self.s3.create_multipart_upload(Bucket="photos", Key=name)["UploadId"]
            part = self.s3.upload_part(Bucket="photos", Key=name, UploadId=upload, PartNumber=1, Body=b"part")
            self.uploads[name] = upload, part["ETag"]

    def requests(self):
        """Method, path, query, body and headers of each operation, such that it would succeed once."""
        ends, etag = self.uploads["ends"]
        on, _ = self.uploads["goes on"]
        left, _ = self.uploads["is left"]
        source = {"x_amz_copy_source": "photos/a"}
        complete = COMPLETE.format(etag=etag.replace('"', "&quot;")).encode()
        return {
            "ListBuckets": ("GET", "/", "", b"", {}),
            "HeadBucket": ("HEAD", "/photos", "", b"", {}),
            "GetBucketLocation": ("GET", "/photos", "location=", b"", {}),
            "GetBucketVersioning": ("GET", "/photos", "versioning=", b"", {}),
            "PutBucketVersioning": ("PUT", "/photos", "versioning=", VERSIONING.encode(), {}),
            "PutBucketLifecycleConfiguration": ("PUT", "/photos", "lifecycle=", LIFECYCLE.encode(), {}),
            "GetBucketLifecycleConfiguration": ("GET", "/photos", "lifecycle=", b"", {}),
            "DeleteBucketLifecycle": ("DELETE", "/photos", "lifecycle=", b"", {}),
            "ListObjects": ("GET", "/photos", "", b"", {}),
            "ListObjectsV2": ("GET", "/photos", "list-type=2", b"", {}),
            "ListObjectVersions": ("GET", "/photos", "versions=", b"", {}),
            "ListMultipartUploads": ("GET", "/photos", "uploads=", b"", {}),
            "ListParts": ("GET", "/photos/goes on", f"uploadId={on}", b"", {}),
            "GetObject": ("GET", "/photos/a", "", b"", {}),
            "HeadObject": ("HEAD", "/photos/a", "", b"", {}),
            "GetObjectAttributes": ("GET", "/photos/a", "attributes=", b"", {"x_amz_object_attributes": "ETag"}),
            "GetObjectTagging": ("GET", "/photos/a", "tagging=", b"", {}),
            "PutObjectTagging": ("PUT", "/photos/a", "tagging=", TAGS.encode(), {}),
            "DeleteObjectTagging": ("DELETE", "/photos/tagged", "tagging=", b"", {}),
            "GetObjectLockConfiguration": ("GET", "/kept", "object-lock=", b"", {}),
            "PutObjectLockConfiguration": ("PUT", "/kept", "object-lock=", LOCK.encode(), {}),
            "GetObjectRetention": ("GET", "/kept/k", "retention=", b"", {}),
            "PutObjectRetention": ("PUT", "/kept/k", "retention=", RETENTION.encode(), {}),
            "GetObjectLegalHold": ("GET", "/kept/k", "legal-hold=", b"", {}),
            "PutObjectLegalHold": ("PUT", "/kept/k", "legal-hold=", HOLD.encode(), {}),
            "PutObject": ("PUT", "/photos/new", "", b"new", {}),
            "CopyObject": ("PUT", "/photos/copy", "", b"", source),
            "CreateMultipartUpload": ("POST", "/photos/begun", "uploads=", b"", {}),
            "UploadPart": ("PUT", "/photos/goes on", f"partNumber=2&uploadId={on}", b"second", {}),
            "UploadPartCopy": ("PUT", "/photos/goes on", f"partNumber=3&uploadId={on}", b"", source),
            "CompleteMultipartUpload": ("POST", "/photos/ends", f"uploadId={ends}", complete, {}),
            "AbortMultipartUpload": ("DELETE", "/photos/is left", f"uploadId={left}", b"", {}),
            "DeleteObject": ("DELETE", "/photos/a", "", b"", {}),
            "DeleteObjects": ("POST", "/photos", "delete=", DELETE.encode(), {}),
            "CreateBucket": ("PUT", "/made", "", b"", {}),
            "DeleteBucket": ("DELETE", "/empty", "", b"", {}),
        }

    def state(self):
        """All that a client can change."""
        found = []
        for bucket in (bucket["Name"] for bucket in self.s3.list_buckets()["Buckets"]):
            objects = self.s3.list_objects_v2(Bucket=bucket).get("Contents", [])
            found += [(bucket, one["Key"], one["ETag"], one["LastModified"]) for one in objects]
            found += [(bucket, one["Key"], self.s3.get_object_tagging(Bucket=bucket, Key=one["Key"])["TagSet"]) for one in objects]
            for upload in self.s3.list_multipart_uploads(Bucket=bucket).get("Uploads", []):
                name = upload["Key"], upload["UploadId"]
                parts = self.s3.list_parts(Bucket=bucket, Key=name[0], UploadId=name[1]).get("Parts", [])
                found += [(bucket, *name)] + [(bucket, *name, part["PartNumber"], part["ETag"]) for part in parts]
            found.append((bucket, self.s3.get_bucket_versioning(Bucket=bucket).get("Status"), self.rules(bucket)))
        held = self.s3.head_object(Bucket="kept", Key="k")
        found += [self.s3.get_object_lock_configuration(Bucket="kept")["ObjectLockConfiguration"]]
        found += [value for name, value in held.items() if name.startswith("ObjectLock")]
        return found

    def rules(self, bucket):
        try:
            return self.s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
        except botocore.exceptions.ClientError as error:
            return error.response["Error"]["Code"]


def all_but(right):
    """A key that has every right but this one where the operations go; none there if that is any right at all."""
    name = f"all-but-{right or 'any'}"
    rights = [("other", RIGHTS)]
    if right:
        rights += [(bucket, [one for one in RIGHTS if one != right]) for bucket in ("photos", "empty", "made", "kept")]
    return (name, "a secret of nobody's", rights)


LIMITED = [all_but(right) for right in [None, *RIGHTS]]
GONE = ("gone", "the secret of who has gone")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("refusals")
    limited = "".join(key(*one) for one in LIMITED)
    server = Configured(folder, limited + key(*GONE)).start()
    # Known until now: its signatures were good.
    assert server.client(*GONE).list_buckets()
    server.configure(key(*ADMIN) + limited)
    yield server
    server.stop()
    fsck(server.drive)


@pytest.fixture(scope="module")
def world(server):
    return World(server)


def signed(server, access_key, secret_key):
    def send(method, path, query, body, headers):
        return Signer(server, secret_key, access_key).request(method, path, query, body, **headers)

    return send


def unsigned(server):
    def send(method, path, query, body, headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        sign = Signer(server)
        return sign.send(method, path, query, body, {"host": sign.host, **headers})

    return send


def over_other_bytes(server):
    def send(method, path, query, body, headers):
        sign = Signer(server, ADMIN[1], ADMIN[0])
        other = sha256(body + b"?") if body else sha256(b"something")
        return sign.send(method, path, query, body, sign.headers(method, path, query, other, **headers))

    return send


def expired(server):
    """Presigned for half an hour, an hour ago; what the operation says besides is in the query."""

    def send(method, path, query, body, headers):
        sign = Signer(server, ADMIN[1], ADMIN[0], age_seconds=3600)
        more = dict(part.partition("=")[::2] for part in query.split("&") if part)
        more.update({name.replace("_", "-"): value for name, value in headers.items()})
        path = path.replace(" ", "%20")
        target = sign.presign(method, path, expires="1800", **more)
        return sign.send(method, path.replace("%20", " "), target.partition("?")[2], body, {"host": sign.host})

    return send


def ways(server):
    return {
        "without a signature": lambda _: unsigned(server),
        "with a wrong secret": lambda _: signed(server, ADMIN[0], "not the secret"),
        "with a key that is not known": lambda _: signed(server, "nobody", "a secret of nobody's"),
        "with a key that has been revoked": lambda _: signed(server, *GONE),
        "with a key that has all rights but this one": lambda right: signed(server, *all_but(right)[:2]),
        "by a presigned URL that has expired": lambda _: expired(server),
        "with a signature over other bytes": lambda _: over_other_bytes(server),
    }


def test_every_operation_is_refused_in_every_way(server, world):
    requests, table = world.requests(), ways(server)
    assert set(requests) == set(NEEDED) and set(table) == set(ANSWERS)
    before, asked = world.state(), 0
    for way, send_as in table.items():
        for name, request in requests.items():
            if name == "ListBuckets" and "all rights but" in way:
                continue
            status, _, body = send_as(NEEDED[name])(*request)
            wanted, wanted_status = ANSWERS[way]
            assert status == wanted_status, (name, way, status, body)
            assert request[0] == "HEAD" or code(body) == wanted, (name, way, body)
            asked += 1
    assert asked == len(requests) * len(table) - 1
    assert world.state() == before


def test_a_copy_needs_to_read_its_source(server, world):
    before = world.state()
    # It may write to "other", and read there, but not from "photos".
    send = signed(server, *all_but("read")[:2])
    status, _, body = send("PUT", "/other/copy", "", b"", {"x_amz_copy_source": "photos/a"})
    assert (status, code(body)) == (403, "AccessDenied")
    assert world.state() == before


def test_a_bucket_in_the_name_of_the_host_has_the_same_rights(server, world):
    host = f"photos.localhost:{server.port}"
    for who, wanted in ((all_but("read"), 403), (all_but("write"), 200)):
        status, _, body = Signer(server, who[1], who[0]).request("GET", "/a", host=host)
        assert status == wanted, body


def test_buckets_without_any_right_are_not_shown(server, world):
    def shown(right):
        s3 = server.client(*all_but(right)[:2])
        return [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]]

    assert shown(None) == ["other"]
    assert shown("write") == ["empty", "kept", "other", "photos"]


def test_with_the_right_every_operation_is_carried_out(server, world):
    """The last one: what was refused above was refused for who asked."""
    granted = [("holder", "the holder's own secret", [(bucket, RIGHTS) for bucket in ("photos", "empty", "made", "kept")])]
    server.configure(key(*ADMIN) + "".join(key(*one) for one in LIMITED + granted))
    send = signed(server, *granted[0][:2])
    for name, request in world.requests().items():
        status, _, body = send(*request)
        assert 200 <= status < 300, (name, status, body)
