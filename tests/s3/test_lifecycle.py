"""Lifecycle rules: what may be said, what is kept, and what goes. Ages are tested with a clock of their own in the crate; here a date that has passed
stands for them."""

import datetime
import time

import botocore.exceptions
import pytest

import zonestore

PAST = datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)


def rule(**more):
    return {"ID": "r", "Status": "Enabled", "Filter": {}, **more}


def put(s3, bucket, *rules):
    s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": list(rules)})


def get(s3, bucket):
    return s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]


def code(call):
    with pytest.raises(botocore.exceptions.ClientError) as refused:
        call()
    return refused.value.response["Error"]["Code"]


def keys(s3, bucket):
    return [entry["Key"] for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket) for entry in page.get("Contents", [])]


def until(what, wanted):
    deadline = time.monotonic() + zonestore.TIMEOUT
    while (found := what()) != wanted:
        assert time.monotonic() < deadline, found
        time.sleep(0.1)


def test_rules_come_back_as_they_were_put(s3, bucket):
    assert code(lambda: get(s3, bucket)) == "NoSuchLifecycleConfiguration"
    rules = [
        {"ID": "old logs & <more>", "Status": "Enabled", "Filter": {"Prefix": "logs/"}, "Expiration": {"Days": 30}},
        {"ID": "by date", "Status": "Disabled", "Filter": {"Tag": {"Key": "a", "Value": "b c"}}, "Expiration": {"Date": PAST}},
        {"ID": "and", "Status": "Enabled", "Filter": {"And": {
            "Prefix": "x", "Tags": [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}],
            "ObjectSizeGreaterThan": 500, "ObjectSizeLessThan": 1 << 40}}, "Expiration": {"Days": 1}},
        {"ID": "versions", "Status": "Enabled", "Filter": {"ObjectSizeGreaterThan": 1},
         "NoncurrentVersionExpiration": {"NoncurrentDays": 7, "NewerNoncurrentVersions": 3}},
        {"ID": "markers", "Status": "Enabled", "Prefix": "", "Expiration": {"ExpiredObjectDeleteMarker": True}},
        {"ID": "uploads", "Status": "Enabled", "Filter": {"Prefix": ""}, "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 2}},
    ]
    put(s3, bucket, *rules)
    assert get(s3, bucket) == rules
    # All of them, not one more.
    put(s3, bucket, {"Status": "Enabled", "Filter": {}, "Expiration": {"Days": 1}})
    (found,) = get(s3, bucket)
    assert found["ID"] and found["Expiration"] == {"Days": 1}
    for _ in range(2):
        s3.delete_bucket_lifecycle(Bucket=bucket)
    assert code(lambda: get(s3, bucket)) == "NoSuchLifecycleConfiguration"


def test_rules_are_a_bucket_s_own_and_need_one(s3, bucket):
    assert code(lambda: put(s3, "there-is-none", rule(Expiration={"Days": 1}))) == "NoSuchBucket"
    put(s3, bucket, rule(Expiration={"Days": 1}))
    s3.delete_bucket(Bucket=bucket)
    s3.create_bucket(Bucket=bucket)
    assert code(lambda: get(s3, bucket)) == "NoSuchLifecycleConfiguration"


@pytest.mark.parametrize("wanted, refused", [
    ("InvalidRequest", rule()),
    ("InvalidArgument", rule(Expiration={"Days": 0})),
    ("InvalidArgument", rule(Expiration={"Date": PAST.replace(hour=1)})),
    ("MalformedXML", rule(Expiration={"Days": 1, "Date": PAST})),
    ("MalformedXML", rule(Expiration={"Days": 1, "ExpiredObjectDeleteMarker": True})),
    ("MalformedXML", rule(Expiration={})),
    ("MalformedXML", rule(Prefix="a", Expiration={"Days": 1})),
    ("MalformedXML", rule(Status="enabled", Expiration={"Days": 1})),
    ("MalformedXML", rule(Filter={"Prefix": "a", "ObjectSizeGreaterThan": 1}, Expiration={"Days": 1})),
    ("MalformedXML", {"ID": "r", "Status": "Enabled", "Expiration": {"Days": 1}}),
    ("InvalidArgument", rule(ID="x" * 256, Expiration={"Days": 1})),
    ("InvalidTag", rule(Filter={"Tag": {"Key": "aws:a", "Value": ""}}, Expiration={"Days": 1})),
    ("InvalidTag", rule(Filter={"And": {"Tags": [{"Key": "a", "Value": "1"}, {"Key": "a", "Value": "2"}]}}, Expiration={"Days": 1})),
    ("InvalidRequest", rule(Filter={"Tag": {"Key": "a", "Value": ""}}, Expiration={"ExpiredObjectDeleteMarker": True})),
    ("InvalidRequest", rule(Filter={"ObjectSizeLessThan": 9}, AbortIncompleteMultipartUpload={"DaysAfterInitiation": 1})),
    ("InvalidArgument", rule(AbortIncompleteMultipartUpload={"DaysAfterInitiation": 0})),
    ("InvalidArgument", rule(NoncurrentVersionExpiration={"NoncurrentDays": 0})),
    ("InvalidArgument", rule(NoncurrentVersionExpiration={"NoncurrentDays": 1, "NewerNoncurrentVersions": 101})),
    ("MalformedXML", rule(NoncurrentVersionExpiration={"NewerNoncurrentVersions": 1})),
    ("NotImplemented", rule(Transitions=[{"Days": 1, "StorageClass": "GLACIER"}])),
    ("NotImplemented", rule(NoncurrentVersionTransitions=[{"NoncurrentDays": 1, "StorageClass": "GLACIER"}])),
])
def test_what_cannot_be_carried_out_is_refused(s3, bucket, wanted, refused):
    put(s3, bucket, rule(Expiration={"Days": 9}))
    assert code(lambda: put(s3, bucket, refused)) == wanted
    assert get(s3, bucket) == [rule(Expiration={"Days": 9})]


@pytest.mark.parametrize("document", [
    "<Rule><Prefix/><Status>Enabled</Status><Expiration><Date>2030-01-01</Date></Expiration></Rule>", "<Rule><Prefix/></Rule>", "",
])
def test_a_document_that_is_wrong_is_told_what_is(sign, bucket, document):
    document = f"<LifecycleConfiguration>{document}</LifecycleConfiguration>".encode()
    status, _, body = sign.request("PUT", f"/{bucket}", "lifecycle=", document)
    assert status == 400 and b"<Code>MalformedXML</Code>" in body and b"<Message>" in body, body


def test_as_many_rules_as_s3_has(s3, bucket):
    rules = [rule(ID=str(n), Filter={"Prefix": "p" * 500 + str(n)}, Expiration={"Days": n + 1}) for n in range(1000)]
    put(s3, bucket, *rules)
    assert get(s3, bucket) == rules
    assert code(lambda: put(s3, bucket, *rules, rule(Expiration={"Days": 1}))) == "MalformedXML"
    assert code(lambda: put(s3, bucket, rules[0], rules[0])) == "InvalidArgument"


def test_what_is_due_goes_and_nothing_else(s3, bucket):
    for key, more in [("a/1", {}), ("a/2", {"Tagging": "t=1"}), ("b", {}), ("c", {"Tagging": "t=1&u=2"}), ("d", {"Tagging": "t=2"})]:
        s3.put_object(Bucket=bucket, Key=key, Body=b"x" * 10, **more)
    put(s3, bucket, rule(ID="late", Filter={"Prefix": "b"}, Expiration={"Days": 2}))
    head = s3.head_object(Bucket=bucket, Key="b")
    tomorrow = (head["LastModified"] + datetime.timedelta(days=3)).strftime("%a, %d %b %Y 00:00:00 GMT")
    assert head["Expiration"] == f'expiry-date="{tomorrow}", rule-id="late"'
    assert s3.get_object(Bucket=bucket, Key="b")["Expiration"] == head["Expiration"]
    assert "Expiration" not in s3.head_object(Bucket=bucket, Key="a/1")
    # What writes an object says so, too; it may be another day by now.
    upload = {"Bucket": bucket, "Key": "b", "UploadId": s3.create_multipart_upload(Bucket=bucket, Key="b")["UploadId"]}
    part = {"PartNumber": 1, "ETag": s3.upload_part(PartNumber=1, Body=b"x" * 10, **upload)["ETag"]}
    for answer in [s3.put_object(Bucket=bucket, Key="b", Body=b"x" * 10),
                   s3.copy_object(Bucket=bucket, Key="b", CopySource=f"{bucket}/d"),
                   s3.complete_multipart_upload(MultipartUpload={"Parts": [part]}, **upload)]:
        assert answer["Expiration"].endswith(' 00:00:00 GMT", rule-id="late"'), answer
    assert "Expiration" not in s3.put_object(Bucket=bucket, Key="d", Body=b"x" * 10, Tagging="t=2")
    put(s3, bucket,
        rule(ID="1", Filter={"Tag": {"Key": "t", "Value": "1"}}, Expiration={"Date": PAST}),
        rule(ID="2", Filter={"Prefix": "b"}, Status="Disabled", Expiration={"Date": PAST}),
        rule(ID="3", Filter={"And": {"Prefix": "a", "ObjectSizeGreaterThan": 10}}, Expiration={"Date": PAST}))
    until(lambda: keys(s3, bucket), ["a/1", "b", "d"])
    # A rule goes on to be in force.
    put(s3, bucket, rule(Filter={"And": {"Prefix": "a", "ObjectSizeLessThan": 11}}, Expiration={"Date": PAST}))
    until(lambda: keys(s3, bucket), ["b", "d"])


def test_where_versions_are_kept_a_marker_is_made(s3, bucket):
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    version = s3.put_object(Bucket=bucket, Key="k", Body=b"x")["VersionId"]
    put(s3, bucket, rule(Expiration={"Date": PAST}))
    until(lambda: keys(s3, bucket), [])
    assert s3.get_object(Bucket=bucket, Key="k", VersionId=version)["Body"].read() == b"x"
    listed = s3.list_object_versions(Bucket=bucket)
    assert [(v["VersionId"], v["IsLatest"]) for v in listed["Versions"]] == [(version, False)]
    assert [marker["IsLatest"] for marker in listed["DeleteMarkers"]] == [True]
    # Alone, the marker goes by the same rule once the rules are looked at again.
    s3.delete_object(Bucket=bucket, Key="k", VersionId=version)
    put(s3, bucket, rule(Expiration={"ExpiredObjectDeleteMarker": True}))
    until(lambda: s3.list_object_versions(Bucket=bucket).get("DeleteMarkers", []), [])


@pytest.mark.parametrize("after", [0.05, 0.2, 0.5])
def test_a_kill_in_between_is_made_up_for(make_server, after):
    server = make_server()
    s3 = server.client()
    s3.create_bucket(Bucket="many")
    for n in range(1500):
        s3.put_object(Bucket="many", Key=f"{'go' if n % 3 else 'stay'}/{n:04}", Body=b"x")
    put(s3, "many", rule(Filter={"Prefix": "go/"}, Expiration={"Date": PAST}))
    time.sleep(after)
    server.kill()
    server.start()
    s3 = server.client()
    until(lambda: keys(s3, "many"), [f"stay/{n:04}" for n in range(0, 1500, 3)])
