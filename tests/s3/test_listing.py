"""Listings, version 1 and 2."""

import pytest
from concurrent.futures import ThreadPoolExecutor

KEYS = sorted(
    [f"flat-{n:04}" for n in range(1000)]
    + [f"dir{n % 5}/sub{n % 7}/file-{n:04}" for n in range(1480)]
    + ["dir1", "dir1/", "dir1/file", "dir9/sub 1/ü+%", "é", "z//z", "z/", "~", "a b", "a+b"]
    + [f"dot.{n}.end" for n in range(10)]
)


@pytest.fixture(scope="module")
def full(s3):
    """A bucket with 2,500 keys."""
    assert len(KEYS) == 2500 and len(set(KEYS)) == 2500
    name = "listing-2500"
    s3.create_bucket(Bucket=name)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda key: s3.put_object(Bucket=name, Key=key, Body=key.encode()), KEYS))
    yield name
    for start in range(0, len(KEYS), 1000):
        objects = [{"Key": key} for key in KEYS[start:start + 1000]]
        s3.delete_objects(Bucket=name, Delete={"Objects": objects, "Quiet": True})
    s3.delete_bucket(Bucket=name)


def by_bytes(keys):
    return sorted(keys, key=str.encode)


def expect(prefix="", delimiter="", after=""):
    keys, prefixes = [], set()
    for key in KEYS:
        if key.startswith(prefix):
            at = key.find(delimiter, len(prefix)) if delimiter else -1
            if at >= 0:
                prefixes.add(key[:at + len(delimiter)])
            else:
                keys.append(key)
    behind = lambda items: by_bytes(item for item in items if item.encode() > after.encode())
    return behind(keys), behind(prefixes)


def walk_v2(s3, bucket, **options):
    keys, prefixes, pages, token = [], [], 0, {}
    while True:
        page = s3.list_objects_v2(Bucket=bucket, **options, **token)
        here = [entry["Key"] for entry in page.get("Contents", [])]
        below = [entry["Prefix"] for entry in page.get("CommonPrefixes", [])]
        assert page["KeyCount"] == len(here) + len(below) <= page["MaxKeys"]
        keys, prefixes, pages = keys + here, prefixes + below, pages + 1
        if not page["IsTruncated"]:
            assert "NextContinuationToken" not in page
            return keys, prefixes, pages
        assert page["KeyCount"] == page["MaxKeys"]
        token = {"ContinuationToken": page["NextContinuationToken"]}


def walk_v1(s3, bucket, **options):
    keys, prefixes, marker = [], [], {}
    while True:
        page = s3.list_objects(Bucket=bucket, **options, **marker)
        here = [entry["Key"] for entry in page.get("Contents", [])]
        below = [entry["Prefix"] for entry in page.get("CommonPrefixes", [])]
        keys, prefixes = keys + here, prefixes + below
        if not page["IsTruncated"]:
            return keys, prefixes
        marker = {"Marker": page.get("NextMarker") or here[-1]}


QUESTIONS = [
    {}, dict(Delimiter="/"), dict(Prefix="dir1/"), dict(Prefix="dir1/", Delimiter="/"),
    dict(Prefix="dir1", Delimiter="/"), dict(Prefix="dir2/sub3/", Delimiter="/"), dict(Prefix="nothing"),
    dict(Prefix="flat-09"), dict(Delimiter="-"), dict(Prefix="dot.", Delimiter="."), dict(Delimiter="//"),
    dict(Prefix="z/", Delimiter="/"), dict(Prefix="dir1/"), dict(Delimiter="no such"),
]


@pytest.mark.parametrize("size", [None, 1000, 333, 7])
def test_pages_make_the_whole(s3, full, size):
    for question in QUESTIONS:
        if size == 7 and not question.get("Delimiter"):
            continue
        options = dict(question, **({"MaxKeys": size} if size else {}))
        keys, prefixes = expect(question.get("Prefix", ""), question.get("Delimiter", ""))
        found = walk_v2(s3, full, **options)
        assert found[:2] == (keys, prefixes), options
        assert found[2] == max(1, -(-(len(keys) + len(prefixes)) // (size or 1000)))
        assert walk_v1(s3, full, **options) == (keys, prefixes), options


@pytest.mark.parametrize("after", ["dir1", "dir1/", "dir1/zzz", "flat-0500", "nothing", "~", "\U0010ffff"])
def test_a_listing_can_start_anywhere(s3, full, after):
    for delimiter in ("", "/"):
        expected = expect(delimiter=delimiter, after=after)
        assert walk_v2(s3, full, Delimiter=delimiter, StartAfter=after)[:2] == expected
        page = s3.list_objects(Bucket=full, Delimiter=delimiter, Marker=after)
        found = [entry["Key"] for entry in page.get("Contents", [])]
        found += [entry["Prefix"] for entry in page.get("CommonPrefixes", [])]
        assert by_bytes(found) == by_bytes(expected[0] + expected[1])[:1000]


def test_sizes_of_pages(s3, full, refused):
    page = s3.list_objects_v2(Bucket=full, MaxKeys=0)
    assert (page["KeyCount"], page["IsTruncated"], page["MaxKeys"]) == (0, False, 0)
    page = s3.list_objects_v2(Bucket=full, MaxKeys=5000)
    assert (page["KeyCount"], page["IsTruncated"], page["MaxKeys"]) == (1000, True, 1000)
    page = s3.list_objects(Bucket=full, MaxKeys=5000)
    assert (len(page["Contents"]), page["MaxKeys"]) == (1000, 1000)
    assert refused(s3.list_objects_v2, Bucket=full, MaxKeys=-1)[0] == "InvalidArgument"
    token = dict(ContinuationToken="not a token")
    assert refused(s3.list_objects_v2, Bucket=full, **token)[0] == "InvalidArgument"
    assert refused(s3.list_objects_v2, Bucket="no-such-bucket")[0] == "NoSuchBucket"


def test_what_a_listing_says(s3, bucket, md5):
    s3.put_object(Bucket=bucket, Key="a b+c/ü%", Body=b"12345")
    head = s3.head_object(Bucket=bucket, Key="a b+c/ü%")
    entry = s3.list_objects_v2(Bucket=bucket)["Contents"][0]
    assert (entry["Key"], entry["Size"], entry["ETag"]) == ("a b+c/ü%", 5, f'"{md5(b"12345")}"')
    assert entry["StorageClass"] == "STANDARD" and "Owner" not in entry
    assert entry["LastModified"].replace(microsecond=0) == head["LastModified"]
    owner = s3.list_objects_v2(Bucket=bucket, FetchOwner=True)["Contents"][0]["Owner"]
    assert owner == s3.list_objects(Bucket=bucket)["Contents"][0]["Owner"] and owner["ID"]


def test_names_can_be_encoded(sign, s3, bucket):
    s3.put_object(Bucket=bucket, Key="a b+c/ü%\x01", Body=b"")
    _, _, body = sign.request("GET", f"/{bucket}", "encoding-type=url&list-type=2&prefix=a%20b%2B")
    assert b"<Key>a%20b%2Bc/%C3%BC%25%01</Key>" in body
    assert b"<Prefix>a%20b%2B</Prefix>" in body and b"<EncodingType>url</EncodingType>" in body
    # XML has no place for the control character.
    _, _, encoded = sign.request("GET", f"/{bucket}", "list-type=2&prefix=a%20b%2B")
    assert encoded == body
    s3.put_object(Bucket=bucket, Key="plain b+c/ü%", Body=b"")
    _, _, body = sign.request("GET", f"/{bucket}", "list-type=2&prefix=plain")
    assert "<Key>plain b+c/ü%</Key>".encode() in body
    status, _, body = sign.request("GET", f"/{bucket}", "encoding-type=rot13")
    assert status == 400 and b"InvalidArgument" in body
