"""Tags of objects."""

import io

import boto3.s3.transfer
import pytest

TAGS = [{"Key": "project", "Value": "zones"}, {"Key": "ä b", "Value": "1 +/=:@"}, {"Key": "empty", "Value": ""}]
HEADER = "project=zones&%C3%A4%20b=1+%2B%2F%3D%3A%40&empty="


def tags(s3, bucket, key):
    return s3.get_object_tagging(Bucket=bucket, Key=key)["TagSet"]


@pytest.fixture
def tagged(s3, bucket):
    s3.put_object(Bucket=bucket, Key="tagged", Body=b"bytes", Metadata={"m": "1"}, Tagging=HEADER)
    return {"Bucket": bucket, "Key": "tagged"}


def test_a_put_brings_its_tags_and_the_next_one_takes_them(s3, bucket, tagged):
    assert tags(s3, bucket, "tagged") == TAGS
    head, whole = s3.head_object(**tagged), s3.get_object(**tagged)
    assert head["ResponseMetadata"]["HTTPHeaders"]["x-amz-tagging-count"] == "3"
    assert whole["TagCount"] == 3
    assert head["Metadata"] == {"m": "1"}
    s3.put_object(**tagged, Body=b"other", Tagging="")
    assert tags(s3, bucket, "tagged") == []
    assert "TagCount" not in s3.get_object(**tagged)
    assert "x-amz-tagging-count" not in s3.head_object(**tagged)["ResponseMetadata"]["HTTPHeaders"]


def test_tags_change_and_nothing_else_does(s3, bucket, tagged):
    def rest():
        found = s3.get_object(**tagged)
        return found["ETag"], found["LastModified"], found["Metadata"], found["ContentType"], found["Body"].read()

    before = rest()
    new = [{"Key": "only", "Value": "this"}]
    s3.put_object_tagging(**tagged, Tagging={"TagSet": new})
    assert tags(s3, bucket, "tagged") == new
    s3.put_object_tagging(**tagged, Tagging={"TagSet": []})
    assert tags(s3, bucket, "tagged") == []
    s3.put_object_tagging(**tagged, Tagging={"TagSet": TAGS}, VersionId="null")
    assert tags(s3, bucket, "tagged") == TAGS
    done = s3.delete_object_tagging(**tagged)
    assert done["ResponseMetadata"]["HTTPStatusCode"] == 204
    s3.delete_object_tagging(**tagged)
    assert tags(s3, bucket, "tagged") == []
    assert rest() == before


def test_a_copy_has_the_tags_of_its_source_unless_it_says_otherwise(s3, bucket, tagged):
    s3.copy_object(Bucket=bucket, Key="same", CopySource=tagged)
    s3.copy_object(Bucket=bucket, Key="copy", CopySource=tagged, Tagging="a=b", TaggingDirective="COPY")
    s3.copy_object(Bucket=bucket, Key="metadata", CopySource=tagged, Metadata={"n": "2"}, MetadataDirective="REPLACE")
    for key in ("same", "copy", "metadata"):
        assert tags(s3, bucket, key) == TAGS
    s3.copy_object(Bucket=bucket, Key="other", CopySource=tagged, Tagging="a=b", TaggingDirective="REPLACE")
    assert tags(s3, bucket, "other") == [{"Key": "a", "Value": "b"}]
    assert s3.head_object(Bucket=bucket, Key="other")["Metadata"] == {"m": "1"}
    s3.copy_object(Bucket=bucket, Key="none", CopySource=tagged, TaggingDirective="REPLACE")
    assert tags(s3, bucket, "none") == []
    onto_itself = dict(CopySource=tagged, MetadataDirective="REPLACE")
    s3.copy_object(**tagged, **onto_itself)
    assert tags(s3, bucket, "tagged") == TAGS
    s3.copy_object(**tagged, **onto_itself, Tagging="a=b", TaggingDirective="REPLACE")
    assert tags(s3, bucket, "tagged") == [{"Key": "a", "Value": "b"}]


def test_an_upload_in_parts_brings_its_tags(s3, bucket, data):
    parts = boto3.s3.transfer.TransferConfig(multipart_threshold=5 << 20, multipart_chunksize=5 << 20)
    s3.upload_fileobj(io.BytesIO(data(11 << 20)), bucket, "parts", ExtraArgs={"Tagging": HEADER}, Config=parts)
    assert s3.head_object(Bucket=bucket, Key="parts")["ETag"].endswith('-3"')
    assert tags(s3, bucket, "parts") == TAGS


def test_what_may_be_no_tag_changes_nothing(s3, bucket, tagged, refused):
    def put(found):
        return refused(s3.put_object_tagging, **tagged, Tagging={"TagSet": found})

    def tag(key, value=""):
        return [{"Key": key, "Value": value}]

    for wrong in (tag("a" * 129), tag("a", "b" * 257), tag("<"), tag("a", "\t"), tag("aws:a"), 2 * tag("a")):
        assert put(wrong) == ("InvalidTag", 400), wrong
    assert put([one for n in range(11) for one in tag(f"k{n}")]) == ("BadRequest", 400)
    for header, code in (("=a", "InvalidArgument"), ("a=%3C", "InvalidTag"), ("a=1&a=2", "InvalidArgument"), ("a=%FF", "InvalidArgument")):
        assert refused(s3.put_object, **tagged, Body=b"new", Tagging=header) == (code, 400), header
        assert refused(s3.create_multipart_upload, **tagged, Tagging=header) == (code, 400)
        copy = dict(CopySource=tagged, Tagging=header, TaggingDirective="REPLACE")
        assert refused(s3.copy_object, Bucket=bucket, Key="copy", **copy) == (code, 400)
    copy = dict(CopySource=tagged, TaggingDirective="MERGE")
    assert refused(s3.copy_object, Bucket=bucket, Key="copy", **copy) == ("InvalidArgument", 400)
    assert tags(s3, bucket, "tagged") == TAGS
    assert s3.get_object(**tagged)["Body"].read() == b"bytes"
    assert not s3.list_multipart_uploads(Bucket=bucket).get("Uploads")


def test_what_is_not_there_has_no_tags(s3, bucket, tagged, refused):
    for call, more in (
        (s3.get_object_tagging, {}),
        (s3.put_object_tagging, {"Tagging": {"TagSet": TAGS}}),
        (s3.delete_object_tagging, {}),
    ):
        assert refused(call, Bucket=bucket, Key="missing", **more) == ("NoSuchKey", 404)
        assert refused(call, Bucket="no-such-bucket", Key="k", **more) == ("NoSuchBucket", 404)
        assert refused(call, **tagged, VersionId="0" * 32, **more) == ("NoSuchVersion", 404)
    assert [one["Key"] for one in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["tagged"]
    assert tags(s3, bucket, "tagged") == TAGS


def test_documents_say_tags_and_nothing_else(sign, bucket, tagged, s3):
    def put(document):
        return sign.request("PUT", f"/{bucket}/tagged", "tagging=", document.encode())[0]

    tag = "<Tag><Key>a</Key><Value>b</Value></Tag>"
    assert put(f"<Tagging><TagSet>{tag.replace('<Value>b</Value>', '')}</TagSet></Tagging>") == 400
    for wrong in ("", "<Tagging/>", f"<Tagging>{tag}</Tagging>", f"<TagSet>{tag}</TagSet>",
                  f"<Tagging><TagSet>{tag}<Rule/></TagSet></Tagging>", f"<Tagging><TagSet>{tag}"):
        assert put(wrong) in (400, 501), wrong
    assert tags(s3, bucket, "tagged") == TAGS
    assert put(f"<Tagging><TagSet>{tag}</TagSet></Tagging>") == 200
    assert tags(s3, bucket, "tagged") == [{"Key": "a", "Value": "b"}]
