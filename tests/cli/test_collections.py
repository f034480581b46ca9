"""zonestore store collection: make, split, merge, list and remove collections; and what others do with them."""

from test_store import put


def names(zonestore, store, what):
    return {o["name"] for o in zonestore("store", "ls", store, what, "--json").json["objects"]}


def test_a_collection_by_hash_is_split_and_merged(zonestore, store):
    collection = lambda *arguments: zonestore("store", "collection", *arguments)
    made = collection("create", store, "logs", "--hash", "xxh3", "--json").json["collections"]
    assert made[0]["hashed"] == {"family": 1, "source": "xxh3", "prefix": "*"}
    objects = {f"n{number}" for number in range(16)}
    for name in objects:
        put(zonestore, store, f"logs/{name}", name.encode())
    text = collection("split", store, "logs", "upper").text
    assert text == "logs: by xxh3, family 1, hashes 0*\nupper: by xxh3, family 1, hashes 1*\n"
    lower, upper = names(zonestore, store, "logs"), names(zonestore, store, "upper")
    assert lower and upper and lower | upper == objects and not lower & upper
    one = sorted(upper)[0]
    assert zonestore("store", "get", store, f"upper/{one}").out == one.encode()
    assert "does not cover" in zonestore.try_("store", "put", store, "-", f"logs/{one}", stdin=b"").failed(2)
    zonestore.try_("store", "collection", "rm", store, "upper").failed(8)
    assert "upper: gone" in collection("merge", store, "upper", "logs").text
    assert names(zonestore, store, "logs") == objects
    zonestore("store", "rm", "-r", "--yes", store, "logs")
    assert collection("ls", store).text == ""


def test_collections_are_made_with_a_family_and_a_prefix_and_shown_with_them(zonestore, store):
    collection = lambda *arguments: zonestore("store", "collection", *arguments)
    collection("create", store, "a", "--hash", "name", "--family", "7", "--prefix", "01*")
    collection("create", store, "b", "--hash", "name", "--family", "7", "--prefix", "1")
    taken = zonestore.try_("store", "collection", "create", store, "c", "--hash", "name", "--family", "7")
    assert "same family" in taken.failed(2)
    collection("create", store, "own", "--hash", "xxh3")
    put(zonestore, store, "papers/x", b"x")
    lines = zonestore("store", "ls", "-l", store).text.splitlines()
    assert [line[21:] for line in lines] == [
        "by name, family 7, hashes 01*  a",
        "by name, family 7, hashes 1*  b",
        "by xxh3, family 8, hashes *  own",
        "by name    papers",
    ]
    hashed = {c["name"]: c["hashed"] for c in zonestore("store", "ls", store, "--json").json["collections"]}
    assert hashed["papers"] is None and hashed["b"]["prefix"] == "1*"
    assert len(collection("ls", store).text.splitlines()) == 5, "with .uploads/papers"
    for wrong in (["--prefix", "0"], ["--hash", "md5"], ["--hash", "xxh3", "--prefix", "2"]):
        assert zonestore.try_("store", "collection", "create", store, "d", *wrong).code == 2
    # Without a hash it is a bucket.
    assert collection("create", store, "bucket").text == "bucket: by name\n"
    zonestore.try_("store", "collection", "create", store, "bucket").failed(1)
    collection("rm", store, "bucket")


def test_collections_of_unfinished_uploads_are_for_uploads(zonestore, store):
    put(zonestore, store, "papers/x", b"x")
    refused = zonestore.try_("store", "put", store, "-", ".uploads/papers/id/1", stdin=b"part").failed(8)
    assert "belongs to a bucket" in refused
    assert zonestore("store", "ls", store, ".uploads/papers").text == ""


def test_names_that_others_keep_for_themselves_are_refused(zonestore, store):
    put(zonestore, store, "bucket/x", b"x")
    collection = "store", "collection"
    for name in ("", "a/b", ".uploads/new"):
        assert "slash" in zonestore.try_(*collection, "create", store, name).failed(2)
        assert "slash" in zonestore.try_(*collection, "split", store, "bucket", name).failed(2)
    assert "bucket" in zonestore.try_(*collection, "rm", store, ".uploads/bucket").failed(8)
    zonestore("store", "get", store, "bucket/x")


def test_a_family_is_found_whatever_is_taken(zonestore, store):
    create = "store", "collection", "create", store
    zonestore(*create, "last", "--hash", "xxh3", "--family", "4294967295")
    made = zonestore(*create, "next", "--hash", "xxh3", "--json").json["collections"]
    assert made[0]["hashed"]["family"] == 1
