"""Versions of objects: against a model (ZONESTORE_VERSIONS=n histories), and one by one."""

import os
import random
from concurrent.futures import ThreadPoolExecutor

import botocore.exceptions
import pytest

import zonestore

KEYS = ["a", "a\x00", "a\x00b", "a\x01", "ab", "dir/1", "dir/2", "dir\x00/1", "ä"]


def switch(s3, bucket, status):
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": status})


@pytest.fixture
def versioned(s3, bucket):
    switch(s3, bucket, "Enabled")
    yield bucket
    clear(s3, bucket)


def pages(s3, bucket, size=1000, **more):
    marker, asked = {}, []
    while True:
        page = s3.list_object_versions(Bucket=bucket, MaxKeys=size, **marker, **more)
        asked.append(page)
        if not page["IsTruncated"]:
            return asked
        assert len(page.get("Versions", [])) + len(page.get("DeleteMarkers", [])) + len(page.get("CommonPrefixes", [])) == size
        marker = {"KeyMarker": page["NextKeyMarker"]}
        if "NextVersionIdMarker" in page:
            marker["VersionIdMarker"] = page["NextVersionIdMarker"]


def listed(s3, bucket, size=1000, **more):
    """All versions in the listing's order: key, id, whether it is a delete marker, whether it is the latest. Versions and delete markers are
    two lists of a page, so their order is that of either."""
    found = []
    for page in pages(s3, bucket, size, **more):
        for kind in ("Versions", "DeleteMarkers"):
            found += [(v["Key"], v["VersionId"], kind == "DeleteMarkers", v["IsLatest"]) for v in page.get(kind, [])]
    return found


def clear(s3, bucket):
    for key, version, _, _ in listed(s3, bucket):
        s3.delete_object(Bucket=bucket, Key=key, VersionId=version)


def test_versions_behind_a_null_version_that_is_deleted_between_pages_are_listed(s3, versioned):
    first = s3.put_object(Bucket=versioned, Key="k", Body=b"1")["VersionId"]
    switch(s3, versioned, "Suspended")
    s3.put_object(Bucket=versioned, Key="k", Body=b"2")
    page = s3.list_object_versions(Bucket=versioned, MaxKeys=1)
    assert [v["VersionId"] for v in page["Versions"]] == ["null"]
    s3.delete_object(Bucket=versioned, Key="k", VersionId="null")
    page = s3.list_object_versions(
        Bucket=versioned, KeyMarker=page["NextKeyMarker"], VersionIdMarker=page["NextVersionIdMarker"])
    assert [v["VersionId"] for v in page["Versions"]] == [first]


class Model:
    """What S3 says of versions: of each key, the newest first."""

    def __init__(self):
        self.status, self.keys = None, {}

    def of(self, key):
        return self.keys.setdefault(key, [])

    def add(self, key, version, body):
        """A body, or None for a delete marker."""
        versions = self.of(key)
        if self.status != "Enabled":
            versions[:] = [v for v in versions if v[0] != "null"]
        versions.insert(0, (version, body))

    def delete(self, key, version):
        """What an unversioned deletion does."""
        if self.status is None:
            self.keys[key] = []
        else:
            self.add(key, version, None)

    def current(self, key):
        versions = self.of(key)
        return versions[0][1] if versions else None

    def listed(self):
        return {(key, version, body is None, n == 0)
                for key, versions in self.keys.items() for n, (version, body) in enumerate(versions)}


def body_of(s3, bucket, key, **version):
    try:
        return s3.get_object(Bucket=bucket, Key=key, **version)["Body"].read()
    except botocore.exceptions.ClientError as error:
        code = error.response["Error"]["Code"]
        assert code == ("MethodNotAllowed" if version else "NoSuchKey"), (key, version, error)
        return None


def compare(s3, bucket, model, chance):
    wanted = model.listed()
    for size in (1000, chance.randint(1, 4)):
        found = listed(s3, bucket, size)
        assert len(found) == len(wanted) and set(found) == wanted
    for key in KEYS:
        assert body_of(s3, bucket, key) == model.current(key)
        for version, body in model.of(key):
            assert body_of(s3, bucket, key, VersionId=version) == body
        # The newest comes first, whatever it is.
        versions = [v[1] for v in found if v[0] == key and not v[2]]
        assert versions == [v for v, body in model.of(key) if body is not None]
    current = [entry["Key"] for entry in s3.list_objects_v2(Bucket=bucket).get("Contents", [])]
    assert current == sorted((key for key in KEYS if model.current(key) is not None), key=str.encode)
    # With prefixes and delimiters, page by page as in one go.
    prefix, delimiter = chance.choice(["", "a", "a\x00", "dir", "dir/"]), chance.choice(["/", "\x00", "1", "a", "f"])
    whole = pages(s3, bucket, Prefix=prefix, Delimiter=delimiter)
    parts = pages(s3, bucket, chance.randint(1, 3), Prefix=prefix, Delimiter=delimiter)
    for names in ("Versions", "DeleteMarkers", "CommonPrefixes"):
        together = [[(e.get("Key"), e.get("VersionId"), e.get("Prefix"), e.get("IsLatest")) for page in asked for e in page.get(names, [])]
                    for asked in (whole, parts)]
        assert together[0] == together[1], (prefix, delimiter, names)
    rolled = {prefix + key[len(prefix):].split(delimiter)[0] + delimiter
              for key, versions in model.keys.items() if versions and key.startswith(prefix) and delimiter in key[len(prefix):]}
    assert {e["Prefix"] for page in whole for e in page.get("CommonPrefixes", [])} == rolled
    shown = {(e["Key"], e["VersionId"]) for page in whole for kind in ("Versions", "DeleteMarkers") for e in page.get(kind, [])}
    assert shown == {(key, version) for key, version, _, _ in wanted
                     if key.startswith(prefix) and delimiter not in key[len(prefix):]}


def said(answer):
    return answer.get("VersionId", "null")


def step(s3, bucket, model, chance, number):
    key = chance.choice(KEYS)
    body = f"{number}".encode() * chance.choice([1, 100, 20_000])
    what = chance.choice(["put"] * 4 + ["delete", "delete", "delete version", "delete version", "copy", "parts", "switch", "many", "tag"])
    if what == "put":
        model.add(key, said(s3.put_object(Bucket=bucket, Key=key, Body=body)), body)
    elif what == "delete":
        answer = s3.delete_object(Bucket=bucket, Key=key)
        assert answer.get("DeleteMarker", False) == (model.status is not None)
        model.delete(key, said(answer))
    elif what == "many":
        # XML has no control characters.
        keys = chance.sample([key for key in KEYS if key.isprintable()], 3)
        wanted = [{"Key": k} for k in keys]
        versions = [v for v, _ in model.of(keys[0])]
        if versions and model.status:
            wanted[0]["VersionId"] = chance.choice(versions)
        answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": wanted})
        assert "Errors" not in answer and [d["Key"] for d in answer["Deleted"]] == keys
        for one, done in zip(wanted, answer["Deleted"]):
            if "VersionId" in one:
                assert done["VersionId"] == one["VersionId"]
                model.keys[one["Key"]] = [v for v in model.of(one["Key"]) if v[0] != one["VersionId"]]
            else:
                model.delete(one["Key"], done.get("DeleteMarkerVersionId", "null"))
    elif what == "delete version" and model.of(key):
        version, body = chance.choice(model.of(key))
        answer = s3.delete_object(Bucket=bucket, Key=key, VersionId=version)
        assert answer.get("DeleteMarker", False) == (body is None)
        assert answer.get("VersionId", "null") == version
        model.keys[key] = [v for v in model.of(key) if v[0] != version]
    elif what == "copy":
        source = chance.choice(KEYS)
        there = [(v, b) for v, b in model.of(source) if b is not None]
        if there:
            version, body = chance.choice(there)
            answer = s3.copy_object(Bucket=bucket, Key=key, CopySource={"Bucket": bucket, "Key": source, "VersionId": version},
                                    MetadataDirective="REPLACE", Metadata={"n": str(number)})
            assert answer.get("CopySourceVersionId", "null") == version
            model.add(key, said(answer), body)
    elif what == "parts":
        upload = dict(Bucket=bucket, Key=key, UploadId=s3.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"])
        there = [(v, b) for v, b in model.of(key) if b is not None]
        if there:
            version, body = chance.choice(there)
            part = s3.upload_part_copy(**upload, PartNumber=1, CopySource={"Bucket": bucket, "Key": key, "VersionId": version})
            tag = part["CopyPartResult"]["ETag"]
        else:
            tag = s3.upload_part(**upload, PartNumber=1, Body=body)["ETag"]
        answer = s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": tag}]})
        model.add(key, said(answer), body)
    elif what == "switch":
        model.status = chance.choice(["Enabled", "Enabled", "Suspended"])
        switch(s3, bucket, model.status)
        assert s3.get_bucket_versioning(Bucket=bucket)["Status"] == model.status
    elif what == "tag":
        there = [v for v, b in model.of(key) if b is not None]
        if there:
            version = chance.choice(there)
            tags = {"TagSet": [{"Key": "n", "Value": str(number)}]}
            s3.put_object_tagging(Bucket=bucket, Key=key, VersionId=version, Tagging=tags)
            assert s3.get_object_tagging(Bucket=bucket, Key=key, VersionId=version)["TagSet"] == tags["TagSet"]
    return what, key


@pytest.mark.parametrize("seed", range(int(os.environ.get("ZONESTORE_VERSIONS", "2"))))
def test_any_history_is_that_of_the_model(make_server, seed, refused):
    server = make_server()
    s3, chance, model, bucket = server.client(), random.Random(seed), Model(), "history"
    s3.create_bucket(Bucket=bucket)
    done = []
    for number in range(160):
        done.append(step(s3, bucket, model, chance, number))
        if number % 20 == 19:
            try:
                compare(s3, bucket, model, chance)
            except AssertionError:
                print(done)
                raise
    # What is durable is there when the server is back.
    server.kill()
    server.start()
    s3 = server.client()
    compare(s3, bucket, model, chance)
    if model.listed():
        assert refused(s3.delete_bucket, Bucket=bucket)[0] == "BucketNotEmpty"
    clear(s3, bucket)
    assert listed(s3, bucket) == []
    s3.delete_bucket(Bucket=bucket)


def test_a_bucket_says_what_it_does(s3, bucket, refused):
    assert "Status" not in s3.get_bucket_versioning(Bucket=bucket)
    assert "VersionId" not in s3.put_object(Bucket=bucket, Key="k", Body=b"old")
    assert "VersionId" not in s3.get_object(Bucket=bucket, Key="k")
    switch(s3, bucket, "Suspended")
    assert s3.get_bucket_versioning(Bucket=bucket)["Status"] == "Suspended"
    assert s3.get_object(Bucket=bucket, Key="k")["VersionId"] == "null"
    for wanted, code in [({}, "IllegalVersioningConfigurationException"), ({"Status": "On"}, "MalformedXML")]:
        assert refused(s3.put_bucket_versioning, Bucket=bucket, VersioningConfiguration=wanted) == (code, 400)
    mfa = {"Status": "Enabled", "MFADelete": "Enabled"}
    assert refused(s3.put_bucket_versioning, Bucket=bucket, VersioningConfiguration=mfa) == ("NotImplemented", 501)
    assert refused(s3.put_bucket_versioning, Bucket="there-is-none", VersioningConfiguration={"Status": "Enabled"}) == ("NoSuchBucket", 404)
    clear(s3, bucket)


def test_a_delete_marker_says_that_it_is_one(s3, versioned):
    first = s3.put_object(Bucket=versioned, Key="k", Body=b"first")["VersionId"]
    marker = s3.delete_object(Bucket=versioned, Key="k")
    assert marker["DeleteMarker"] and marker["VersionId"] not in (first, "null")
    with pytest.raises(botocore.exceptions.ClientError) as error:
        s3.get_object(Bucket=versioned, Key="k")
    headers = error.value.response["ResponseMetadata"]["HTTPHeaders"]
    assert error.value.response["Error"]["Code"] == "NoSuchKey"
    assert headers["x-amz-delete-marker"] == "true" and headers["x-amz-version-id"] == marker["VersionId"]
    for call in (s3.get_object, s3.head_object, s3.get_object_tagging):
        with pytest.raises(botocore.exceptions.ClientError) as error:
            call(Bucket=versioned, Key="k", VersionId=marker["VersionId"])
        assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 405
    assert s3.head_object(Bucket=versioned, Key="k", VersionId=first)["VersionId"] == first
    # The marker goes, and the object is back with its time and its tag.
    before = s3.head_object(Bucket=versioned, Key="k", VersionId=first)
    gone = s3.delete_object(Bucket=versioned, Key="k", VersionId=marker["VersionId"])
    assert gone["DeleteMarker"] and gone["VersionId"] == marker["VersionId"]
    now = s3.head_object(Bucket=versioned, Key="k")
    assert (now["VersionId"], now["LastModified"], now["ETag"]) == (first, before["LastModified"], before["ETag"])


def test_an_id_that_is_none_or_of_another_key_finds_nothing(s3, versioned, refused):
    version = s3.put_object(Bucket=versioned, Key="k", Body=b"1")["VersionId"]
    s3.put_object(Bucket=versioned, Key="other", Body=b"2")
    assert refused(s3.get_object, Bucket=versioned, Key="other", VersionId=version) == ("NoSuchVersion", 404)
    assert refused(s3.get_object, Bucket=versioned, Key="k", VersionId="null") == ("NoSuchVersion", 404)
    for odd in ("x", "0" * 31, "0" * 33, "F" * 32, "0" * 16 + "null", "\x00"):
        for call in (s3.get_object, s3.delete_object):
            assert refused(call, Bucket=versioned, Key="k", VersionId=odd) == ("InvalidArgument", 400), odd
    # As in S3, what is not there is gone.
    s3.delete_object(Bucket=versioned, Key="k", VersionId="0" * 32)
    assert s3.get_object(Bucket=versioned, Key="k")["Body"].read() == b"1"


def test_conditions_are_about_the_current_version(s3, versioned, refused):
    old = s3.put_object(Bucket=versioned, Key="k", Body=b"old")
    new = s3.put_object(Bucket=versioned, Key="k", Body=b"new")
    assert refused(s3.put_object, Bucket=versioned, Key="k", Body=b"x", IfMatch=old["ETag"]) == ("PreconditionFailed", 412)
    assert refused(s3.put_object, Bucket=versioned, Key="k", Body=b"x", IfNoneMatch="*") == ("PreconditionFailed", 412)
    assert refused(s3.delete_object, Bucket=versioned, Key="k", IfMatch=old["ETag"]) == ("PreconditionFailed", 412)
    s3.put_object(Bucket=versioned, Key="k", Body=b"newer", IfMatch=new["ETag"])
    s3.delete_object(Bucket=versioned, Key="k")
    s3.put_object(Bucket=versioned, Key="k", Body=b"again", IfNoneMatch="*")
    assert len(listed(s3, versioned)) == 5


def test_many_who_put_one_key_leave_a_version_each(s3, versioned):
    def put(number):
        return s3.put_object(Bucket=versioned, Key="k", Body=str(number).encode())["VersionId"], str(number).encode()

    with ThreadPoolExecutor(8) as pool:
        made = dict(pool.map(put, range(80)))
    found = listed(s3, versioned, 7)
    assert {version for _, version, _, _ in found} == set(made) and len(made) == 80
    assert [latest for *_, latest in found] == [True] + [False] * 79
    for version, body in made.items():
        assert s3.get_object(Bucket=versioned, Key="k", VersionId=version)["Body"].read() == body


def test_a_kill_behind_many_deletions_takes_none_back(make_server):
    server = make_server()
    s3 = server.client()
    s3.create_bucket(Bucket="bucket")
    switch(s3, "bucket", "Enabled")
    put = {key: s3.put_object(Bucket="bucket", Key=key, Body=b"1")["VersionId"] for key in "abcdefgh"}
    wanted = [{"Key": key} if key < "e" else {"Key": key, "VersionId": version} for key, version in put.items()]
    done = s3.delete_objects(Bucket="bucket", Delete={"Objects": wanted})["Deleted"]
    # Nothing that is written behind them makes them durable.
    server.kill()
    server.start()
    found = set(listed(server.client(), "bucket"))
    markers = {(one["Key"], one["DeleteMarkerVersionId"], True, True) for one in done if one.get("DeleteMarker")}
    assert len(markers) == 4 and found == markers | {(key, put[key], False, False) for key in "abcd"}


def test_the_longest_keys_have_versions(s3, versioned):
    for key in ("k" * 1024, "\x00" * 1024, "ä" * 512):
        first = s3.put_object(Bucket=versioned, Key=key, Body=b"1")["VersionId"]
        s3.put_object(Bucket=versioned, Key=key, Body=b"2")
        assert s3.get_object(Bucket=versioned, Key=key, VersionId=first)["Body"].read() == b"1"


def test_the_command_line_keeps_versions_too(tmp_path, make_server):
    server = make_server()
    s3 = server.client()
    s3.create_bucket(Bucket="bucket")
    switch(s3, "bucket", "Enabled")
    first = s3.put_object(Bucket="bucket", Key="k", Body=b"first")["VersionId"]
    server.stop()
    (tmp_path / "file").write_bytes(b"second")
    zonestore.run("store", "put", server.drive, tmp_path / "file", "bucket/k")
    server.start()
    s3 = server.client()
    assert s3.get_object(Bucket="bucket", Key="k")["Body"].read() == b"second"
    assert s3.get_object(Bucket="bucket", Key="k", VersionId=first)["Body"].read() == b"first"
    assert len(listed(s3, "bucket")) == 2


def test_deletions_by_id_where_no_versions_are_kept_are_never_refused(s3, bucket):
    """They do not wait for each other: what another one has taken is gone already."""
    s3.delete_object(Bucket=bucket, Key="k", VersionId="f" * 32)

    def worker(n):
        chance = random.Random(n)
        for _ in range(60):
            if chance.random() < 0.5:
                s3.put_object(Bucket=bucket, Key="k", Body=b"x")
            elif chance.random() < 0.5:
                s3.delete_object(Bucket=bucket, Key="k", VersionId="null")
            else:
                assert "Errors" not in s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "k", "VersionId": "null"}]})

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(worker, range(6)))


def test_what_the_command_line_removes_leaves_a_current_version(make_server):
    server = make_server()
    s3 = server.client()
    s3.create_bucket(Bucket="kept")
    switch(s3, "kept", "Enabled")
    for key in ("one", "two", "dir/a", "dir/b", "marked"):
        for body in (b"first", b"second"):
            s3.put_object(Bucket="kept", Key=key, Body=body)
    s3.delete_object(Bucket="kept", Key="marked")
    s3.put_object(Bucket="kept", Key="marked", Body=b"third")
    server.stop()
    for key in ("one", "marked"):
        zonestore.run("store", "rm", server.drive, f"kept/{key}")
    asked = zonestore.run("store", "rm", "-r", server.drive, "kept/dir/", check=False)
    assert asked.returncode != 0 and "destroys 4 objects" in asked.stderr
    zonestore.run("store", "rm", "-r", "--yes", server.drive, "kept/dir/")
    s3 = server.start().client()
    assert body_of(s3, "kept", "one") == b"first" and body_of(s3, "kept", "two") == b"second"
    found = s3.list_object_versions(Bucket="kept")
    latest = {entry["Key"] for entry in found["Versions"] if entry["IsLatest"]}
    assert latest == {entry["Key"] for entry in s3.list_objects_v2(Bucket="kept")["Contents"]} == {"one", "two"}
    assert {entry["Key"] for entry in found["DeleteMarkers"] if entry["IsLatest"]} == {"marked"}


def test_a_bucket_that_is_not_removed_keeps_its_uploads(make_server, refused):
    server = make_server()
    s3 = server.client()
    s3.create_bucket(Bucket="kept")
    switch(s3, "kept", "Enabled")
    s3.put_object(Bucket="kept", Key="a", Body=b"a")
    s3.delete_object(Bucket="kept", Key="a")
    upload = s3.create_multipart_upload(Bucket="kept", Key="b")["UploadId"]
    s3.upload_part(Bucket="kept", Key="b", UploadId=upload, PartNumber=1, Body=b"part")
    assert refused(s3.delete_bucket, Bucket="kept") == ("BucketNotEmpty", 409)
    server.stop()
    for command in (("rm",), ("collection", "rm")):
        done = zonestore.run("store", *command, server.drive, "kept", check=False)
        assert done.returncode == 8 and ".versions/kept" in done.stderr, done.stderr
    # It can be named all the same.
    assert f"{upload}/00001" in zonestore.run("store", "ls", server.drive, ".uploads/kept").stdout
    assert zonestore.run("store", "get", server.drive, f".uploads/kept/{upload}/00001").stdout == "part"
    s3 = server.start().client()
    parts = s3.list_parts(Bucket="kept", Key="b", UploadId=upload)["Parts"]
    assert [part["Size"] for part in parts] == [4]


def test_the_places_of_a_bucket_go_with_it_alone(make_server, tmp_path):
    server = make_server()
    s3 = server.client()
    s3.create_bucket(Bucket="kept")
    switch(s3, "kept", "Enabled")
    s3.put_object(Bucket="kept", Key="a", Body=b"a")
    server.stop()
    file = tmp_path / "file"
    file.write_bytes(b"x" * 5000)
    archive = tmp_path / "a.tar"
    zonestore.run("store", "export", server.drive, "kept", "--to", archive)
    for place in (".uploads/kept", ".versions/kept"):
        done = zonestore.run("store", "rm", "-r", "--yes", server.drive, place, check=False)
        assert done.returncode == 8 and "belongs to a bucket" in done.stderr, done.stderr
    for place in (".uploads/kept", ".versions/kept", ".uploads", ".versions", ".zonestore-restore", ".uploads/other"):
        into = zonestore.run("store", "import", server.drive, archive, "--into", place, check=False)
        assert into.returncode in (2, 8) and place in into.stderr, into.stderr
    for place in (".uploads/kept", ".versions/kept", ".zonestore-restore", ".uploads/other"):
        put = zonestore.run("store", "put", server.drive, file, f"{place}/x", check=False)
        assert put.returncode in (2, 8), (place, put.stderr)
    for name in (".zonestore-restore", ".uploads"):
        made = zonestore.run("store", "collection", "create", server.drive, name, check=False)
        assert made.returncode in (2, 8), (name, made.stderr)
    s3 = server.start().client()
    s3.put_object(Bucket="kept", Key="b", Body=b"b")
    s3.create_multipart_upload(Bucket="kept", Key="c")
