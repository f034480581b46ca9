"""Every operation, parameter and header of botocore's model of S3: known, or refused before it does anything."""

import http.client
import pathlib
import re
import urllib.parse

import pytest

import model
from signer import code
from zonestore import TIMEOUT

DOCS = (pathlib.Path(__file__).parents[2] / "docs" / "s3.md").read_text()
OPERATIONS = model.load()


def section(title):
    return re.split(r"^## ", DOCS.split(f"\n## {title}\n", 1)[1], maxsplit=1, flags=re.M)[0]


CARRIED_OUT = set(re.findall(r"\b[A-Z]\w+\b", section("What there is"))) & set(OPERATIONS)
KNOWN_HEADERS = set(re.findall(r"`(x-amz-[a-z0-9-]+)`", section("Headers")))
SUBRESOURCES = sorted({name for o in OPERATIONS.values() for name, value in o["query"].items() if not value})


def test_the_table_in_the_server_is_that_of_the_model():
    assert model.TABLE.read_text() == model.table(), "tests/s3/model.py writes it anew"


def test_the_documentation_names_what_there_is():
    assert {"PutObject", "ListObjectVersions"} <= CARRIED_OUT and "PutObjectAcl" not in CARRIED_OUT
    assert "x-amz-expected-bucket-owner" in KNOWN_HEADERS and "x-amz-website-redirect-location" not in KNOWN_HEADERS


@pytest.fixture
def state(s3, bucket):
    """A bucket with an object, an empty one, and all that there is of both."""
    s3.put_object(Bucket=bucket, Key="key", Body=b"precious", ContentType="text/plain", Metadata={"a": "1"})
    empty = bucket + "-empty"
    s3.create_bucket(Bucket=empty)

    def look():
        head = s3.head_object(Bucket=bucket, Key="key")
        uploads = s3.list_multipart_uploads(Bucket=bucket).get("Uploads", [])
        return (
            [b["Name"] for b in s3.list_buckets()["Buckets"]],
            [(o["Key"], o["ETag"], o["LastModified"]) for o in s3.list_objects_v2(Bucket=bucket)["Contents"]],
            s3.list_objects_v2(Bucket=empty)["KeyCount"],
            (head["ContentType"], head["Metadata"], head["LastModified"]),
            [u["UploadId"] for u in uploads],
        )

    look.empty = empty
    yield look
    s3.delete_bucket(Bucket=empty)


def paths(operation, bucket, state):
    """Resources to try: what is there, and what would be if it were made."""
    if operation["resource"] == "Root":
        return ["/"]
    if operation["resource"] == "Bucket":
        return [f"/{bucket}", f"/{state.empty}", "/never-made"]
    return [f"/{bucket}/key", f"/{bucket}/new", f"/{state.empty}/new"]


def value(kind):
    """A value that such a member may have."""
    if "enum" in kind:
        return kind["enum"][0]
    return {
        "boolean": "true", "integer": "1", "long": "1", "timestamp": "Wed, 21 Oct 2015 07:28:00 GMT",
    }.get(kind["type"], "x")


def query_of(operation, more=()):
    """The query that selects an operation, with what it requires and the members in `more`."""
    query = dict(operation["query"])
    for name, (member, kind) in operation["querystring"].items():
        if member in operation["required"] or name in more:
            query[name] = value(kind)
    return "&".join(
        urllib.parse.quote(name) + ("=" + urllib.parse.quote(text, safe="") if text else "")
        for name, text in sorted(query.items())
    )


def headers_of(operation):
    return {
        name: value(kind)
        for name, (member, kind) in operation["header"].items()
        if member in operation["required"] and name.lower() != "content-length"
    }


@pytest.mark.parametrize("name", sorted(set(OPERATIONS) - CARRIED_OUT - {"ListDirectoryBuckets"}))
def test_what_is_not_carried_out_does_nothing(sign, bucket, state, name):
    operation = OPERATIONS[name]
    before = state()
    for path in paths(operation, bucket, state):
        for identity in ("", "x-id=" + name):
            for everything in ((), set(operation["querystring"])):
                query = "&".join(filter(None, [query_of(operation, everything), identity]))
                if name == "WriteGetObjectResponse":
                    path = "/WriteGetObjectResponse"
                status, _, body = sign.request(operation["method"], path, query, b"<X/>", **headers_of(operation))
                expected = 400 if name == "WriteGetObjectResponse" else 501
                assert status == expected, (operation["method"], path, query, status, body)
    assert state() == before


def test_directory_buckets_are_not_listed(sign):
    status, _, body = sign.request("GET", "/", "max-directory-buckets=1&x-id=ListDirectoryBuckets")
    assert (status, code(body)) == (501, "NotImplemented")


def spellings(name):
    yield from (name, name + "=", name + "=x", name.upper() + "=x", name.lower() + "=", name + "&acl")
    yield f"%{ord(name[0]):02X}{name[1:]}"
    yield f"{name}&{name}=x&x-id=PutObject"


def carried_out(method, resource, name):
    return any(
        (o["method"], o["resource"]) == (method, resource) and name in o["query"] and operation in CARRIED_OUT
        for operation, o in OPERATIONS.items()
    )


@pytest.mark.parametrize("method", ["PUT", "DELETE", "POST", "GET", "HEAD"])
def test_no_subresource_falls_through(sign, bucket, state, method):
    before = state()
    for resource, path in [("Bucket", f"/{bucket}"), ("Bucket", f"/{state.empty}"), ("Object", f"/{bucket}/key")]:
        for name in SUBRESOURCES + ["ofTomorrow"]:
            if carried_out(method, resource, name):
                continue
            queries = [name, name + "&x-id=x"] if name == "ofTomorrow" else spellings(name)
            for query in queries:
                status, _, body = sign.send(
                    method, path, query, b"data", sign.headers(method, path, canonical(query), "UNSIGNED-PAYLOAD")
                )
                assert status == 501, (method, path, query, status, body)
        assert state() == before, path


def canonical(query):
    """The query as it is signed."""
    pairs = [part.partition("=") for part in query.split("&")]
    return "&".join(
        urllib.parse.quote(urllib.parse.unquote(name), safe="-_.~") + "=" + value for name, _, value in pairs
    )


@pytest.mark.parametrize("name", sorted(CARRIED_OUT))
def test_headers_are_known_or_refused(sign, bucket, state, name):
    """A header of the model that the documentation does not name changes nothing, and is refused."""
    operation = OPERATIONS[name]
    before = state()
    for header, (member, kind) in operation["header"].items():
        header = header.lower()
        if not header.startswith("x-amz-") or header in KNOWN_HEADERS:
            continue
        path = {"Root": "/", "Bucket": f"/{state.empty}", "Object": f"/{bucket}/key"}[operation["resource"]]
        if name == "CreateBucket":
            path = "/never-made"
        headers = {**headers_of(operation), header: value(kind)}
        status, _, body = sign.request(operation["method"], path, query_of(operation), b"", **headers)
        assert status == 501, (name, header, status, body)
    assert state() == before


@pytest.mark.parametrize("name", sorted(CARRIED_OUT))
def test_another_owner_is_refused(sign, bucket, state, name):
    operation = OPERATIONS[name]
    before = state()
    for header in ("x-amz-expected-bucket-owner", "x-amz-source-expected-bucket-owner"):
        if header not in operation["header"]:
            continue
        for path in paths(operation, bucket, state)[:2]:
            headers = {**headers_of(operation), "x-amz-expected-bucket-owner": "zonestore", header: "111122223333"}
            status, _, body = sign.request(operation["method"], path, query_of(operation), b"", **headers)
            assert status == 403 and (not body or code(body) == "AccessDenied"), (name, header, status, body)
    assert state() == before


def test_our_own_owner_is_welcome(s3, bucket):
    s3.put_object(Bucket=bucket, Key="k", Body=b"x", ExpectedBucketOwner="zonestore")
    source = {"Bucket": bucket, "Key": "k"}
    s3.copy_object(
        Bucket=bucket, Key="copy", CopySource=source, ExpectedBucketOwner="zonestore", ExpectedSourceBucketOwner="zonestore"
    )
    assert s3.head_bucket(Bucket=bucket, ExpectedBucketOwner="zonestore")


def test_clients_that_know_more_than_the_server(s3, bucket, state, refused):
    """The calls that overwrote and deleted."""
    before = state()
    target = {"Bucket": bucket, "Key": "key"}
    encryption = {"SSEKMS": {"KMSKeyArn": "arn:aws:kms:us-east-1:111122223333:key/0"}}
    for call in (
        lambda: s3.rename_object(**target, RenameSource=f"{bucket}/other"),
        lambda: s3.update_object_encryption(**target, ObjectEncryption=encryption),
        lambda: s3.put_object_annotation(**target, AnnotationName="a", AnnotationPayload=b"x"),
        lambda: s3.delete_object_annotation(**target, AnnotationName="a"),
        lambda: s3.delete_bucket_metadata_configuration(Bucket=state.empty),
        lambda: s3.get_bucket_abac(Bucket=bucket),
        lambda: s3.delete_object(**target, MFA="device 123456"),
        lambda: s3.delete_object(**target, IfMatchSize=8),
    ):
        assert refused(call) == ("NotImplemented", 501)
    assert state() == before


def test_parameters_that_nobody_knows_are_ignored(sign, bucket):
    assert sign.request("PUT", f"/{bucket}/k", "nonce=1&x-id=PutObject", b"x")[0] == 200
    assert sign.request("GET", f"/{bucket}/k", "nonce=1&x-id=GetObject")[2] == b"x"


def test_conditions_that_are_not_judged_are_refused(sign, s3, bucket, state, refused):
    before = state()
    for method, path, headers in [
        ("DELETE", f"/{bucket}/key", {"if_none_match": "*"}),
        ("PUT", f"/{bucket}/key", {"if_unmodified_since": "Wed, 21 Oct 2015 07:28:00 GMT"}),
        ("DELETE", f"/{state.empty}", {"if_match": "x"}),
    ]:
        status, _, body = sign.request(method, path, body=b"", **headers)
        assert (status, code(body)) == (501, "NotImplemented")
    status, _, body = sign.request("PUT", f"/{bucket}/key", body=b"x", content_range="bytes 0-0/9")
    assert (status, code(body)) == (400, "InvalidRequest")
    # Copies judge theirs.
    s3.put_object(Bucket=bucket, Key="other", Body=b"x")
    source = {"Bucket": bucket, "Key": "other"}
    assert refused(s3.copy_object, Bucket=bucket, Key="key", CopySource=source, IfNoneMatch="*") == ("PreconditionFailed", 412)
    assert refused(s3.copy_object, Bucket=bucket, Key="key", CopySource=source, IfMatch="x") == ("PreconditionFailed", 412)
    s3.delete_object(Bucket=bucket, Key="other")
    assert state() == before
    etag = s3.head_object(Bucket=bucket, Key="key")["ETag"]
    s3.put_object(Bucket=bucket, Key="other", Body=b"x")
    s3.copy_object(Bucket=bucket, Key="key", CopySource=source, IfMatch=etag)
    assert s3.get_object(Bucket=bucket, Key="key")["Body"].read() == b"x"


def test_presigned_headers_are_not_lost(server, s3, sign, bucket):
    """Clients put the headers of presigned requests into the query."""
    def put(path, **more):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT)
        connection.request("PUT", sign.presign("PUT", path, **more), b"x", {"Host": sign.host})
        response = connection.getresponse()
        return response.status, response.read()

    s3.put_object(Bucket=bucket, Key="source", Body=b"from")
    path = f"/{bucket}/k"
    assert put(path, x_amz_meta_a="1") == (200, b"")
    assert s3.head_object(Bucket=bucket, Key="k")["Metadata"] == {"a": "1"}
    assert put(path, x_amz_website_redirect_location="/x")[0] == 501
    assert put(path, x_amz_expected_bucket_owner="111122223333")[0] == 403
    assert put(path, x_amz_copy_source=f"{bucket}/source")[0] == 200
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"from"
    status, body = put(path, expires="604801")
    assert (status, code(body)) == (400, "AuthorizationQueryParametersError")
    assert put(path, expires="604800")[0] == 200
