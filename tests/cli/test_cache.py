"""The caches of a served drive, and what `store df` says of them."""

import os
import subprocess


def object_of(store, size):
    """A server's object, read by s3cmd as often as asked."""
    keys = f"{store}.keys"
    run = lambda *arguments: subprocess.run(["s3cmd", "-c", keys, *arguments], check=True, capture_output=True)
    file = store.with_name("object")
    file.write_bytes(os.urandom(size))
    run("mb", "s3://bucket")
    run("put", str(file), "s3://bucket/o")

    def read(times):
        for _ in range(times):
            run("get", "--force", "s3://bucket/o", str(store.with_name("got")))
            assert store.with_name("got").read_bytes() == file.read_bytes()

    return read


def test_a_hot_object_is_read_from_memory_and_df_says_so(zonestore, serve, store):
    server = serve(store, "--cache", "32MiB")
    read = object_of(store, 3_000_000)
    read(5)
    caches = zonestore("store", "df", store, "--json").json["caches"]
    data = caches["data"]
    assert data["budget_bytes"] == 32 << 20 and 3_000_000 <= data["held_bytes"] < 4 << 20
    assert data["hit_bytes"] == 4 * 3_000_000 and data["hits"] == 4 * data["misses"]
    assert caches["metadata"]["budget_bytes"] >= 64 << 20
    assert "data cache: " in (text := zonestore("store", "df", store).text) and "80.0 % of" in text, text
    assert server.stop() == 0
    # Of what a command mounts for itself there is nothing to say.
    assert zonestore("store", "df", store, "--json").json["caches"] is None
    assert "cache" not in zonestore("store", "df", store).text


def test_what_cannot_be_a_cache_is_refused(zonestore, store):
    for size, why in (("4096", "less than 1 MiB"), ("1000TiB", "of memory there is"), ("-1", "write a size")):
        refused = zonestore.try_("serve", store, "--cache", size)
        assert refused.code == 2 and why in refused.err


def test_a_drive_in_a_file_has_the_hosts_page_cache(zonestore, serve, store):
    server = serve(store)
    object_of(store, 100_000)(2)
    caches = zonestore("store", "df", store, "--json").json["caches"]
    assert caches["data"]["budget_bytes"] == caches["data"]["hits"] == 0
    text = zonestore("store", "df", store).text
    assert "metadata cache: " in text and "data cache: " not in text.replace("metadata cache: ", "")
    assert server.stop() == 0
