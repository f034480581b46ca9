"""`store dump`: every record of the database in words."""

import json
import os


def lines(zonestore, *arguments):
    out = zonestore("store", "dump", "d.zoned", "--json", *arguments).text
    return [json.loads(line) for line in out.splitlines()]


def test_every_record_is_a_line(zonestore, store):
    zonestore("store", "put", store, "-", "c/large", stdin=os.urandom(300_000))
    zonestore("store", "put", store, "-", "c/small", stdin=b"hello")
    records = lines(zonestore)
    kinds = {record["kind"] for record in records}
    assert {"numbers", "collections", "onodes", "extents", "fragments", "zones"} <= kinds
    assert all(record["key"] is not None and record["value"] is not None for record in records)
    names = [r["key"]["object"] for r in records if r["kind"] == "onodes"]
    assert names == ["large", "small"]
    sizes = [r["value"]["size"] for r in records if r["kind"] == "onodes"]
    assert sizes == [300_000, 5]
    text = zonestore("store", "dump", store, "--kind", "extents").text
    assert 'bytes "68656c6c6f", content "inline"' in text and 'checksum "crc32c"' in text
    assert "onodes" not in text
    raw = lines(zonestore, "--kind", "collections", "--raw")
    assert bytes.fromhex(raw[-1]["key_hex"]) == b"Cc"


def test_of_an_object_all_that_it_is_made_of(zonestore, store):
    zonestore("store", "put", store, "-", "c/a", stdin=os.urandom(300_000))
    zonestore("store", "put", store, "-", "c/ab", stdin=os.urandom(300_000))
    records = lines(zonestore, "--collection", "c", "--object", "a")
    assert {record["kind"] for record in records} == {"onodes", "extents", "fragments"}
    (onode,) = [record for record in records if record["kind"] == "onodes"]
    assert onode["key"]["object"] == "a"
    (segment,) = onode["value"]["segments"]
    extents = [record for record in records if record["kind"] == "extents"]
    assert sum(record["value"]["length"] for record in extents) == 300_000
    assert {record["key"]["map"] for record in extents} == {segment["map"]}
    zone = extents[0]["value"]["blob"]["fragments"][0]["zone"]
    of_zone = lines(zonestore, "--zone", str(zone))
    assert {"fragments", "zones"} <= {record["kind"] for record in of_zone}
    assert all(record["key"]["zone"] == zone for record in of_zone)
    assert "no object" in zonestore.try_("store", "dump", store, "--collection", "c", "--object", "x").failed(3)
    assert "no collection" in zonestore.try_("store", "dump", store, "--collection", "x").failed(3)
