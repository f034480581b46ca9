"""zonestore store scrub, what health says after it, and damages at random."""

import json
import os
import time

from test_health import flip_a_byte_of
from test_store import put


def scrubbed(zonestore, store, *options):
    done = zonestore.try_("store", "scrub", store, "--json", *options)
    return done.code, json.loads(done.out)


def test_a_scrub_at_rest_finds_damage_and_health_tells_the_loss(zonestore, store):
    data = os.urandom(900_000)
    put(zonestore, store, "c/kept", os.urandom(300_000))
    put(zonestore, store, "c/hit", data)
    code, status = scrubbed(zonestore, store, "--deep")
    assert code == 0 and status["damaged_places"] == 0
    assert status["data_micros"] and status["metadata_micros"]
    flip_a_byte_of(store, data)
    assert zonestore("store", "health", store, "--json").json["lost_objects"] == 0
    done = zonestore.try_("store", "scrub", store, "--deep")
    assert "1 damaged run of bytes of objects" in done.failed(6)
    assert "store health" in done.err
    done = zonestore.try_("store", "health", store, "--json")
    assert done.code == 10
    health = json.loads(done.out)
    assert health["grade"] == "failing" and health["lost_objects"] == 1
    [loss] = health["losses"]
    assert loss["object"] == "c/hit"
    assert loss["ranges"] == [{"start": 0, "end": health["lost_bytes"]}]
    assert health["lost_bytes"] in (65_536, 131_072)
    text = zonestore.try_("store", "health", store).text
    assert f"c/hit: bytes 0-{health['lost_bytes'] - 1}" in text
    # At rest a light scrub knows of it, too.
    assert scrubbed(zonestore, store)[0] == 6
    zonestore("store", "rm", store, "c/hit")
    assert zonestore("store", "health", store, "--json").json["lost_objects"] == 0
    assert scrubbed(zonestore, store, "--deep")[0] == 0


def test_a_server_scrubs_when_asked_and_by_itself(zonestore, serve, store):
    put(zonestore, store, "c/o", os.urandom(300_000))
    zonestore.try_("store", "scrub", store, "--stop").failed(3)
    server = serve(store, "--scrub-every", "30d", "--scrub-pace", "full")
    # Nobody has looked at anything yet, so it begins at once.
    code, status = scrubbed(zonestore, store, "--deep")
    assert code == 0 and status["data_micros"]
    assert not status["running"] and not status["requested"]
    again = scrubbed(zonestore, store)[1]
    assert again["metadata_micros"] > status["metadata_micros"]
    assert again["data_micros"] == status["data_micros"]
    assert "all data: 20" in zonestore("store", "scrub", store, "--status").text
    zonestore("store", "scrub", store, "--stop")
    server.stop()
    server = serve(store, "--scrub-every", "never")
    assert scrubbed(zonestore, store, "--status")[1]["data_micros"] == status["data_micros"]
    server.stop()


def stopped_at(status):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(status["stopped_micros"] // 1_000_000))


def test_a_running_scrub_is_stopped_and_goes_on_where_it_was(zonestore, serve, store):
    for number in range(12):
        put(zonestore, store, f"c/{number}", os.urandom(1_000_000))
    # Two minutes' work.
    server = serve(store, "--scrub-every", "never", "--scrub-pace", "100KiB/s")
    waits = zonestore.start("store", "scrub", store, "--deep")
    while not (status := scrubbed(zonestore, store, "--status")[1])["bytes_read"]:
        assert waits.poll() is None
        time.sleep(0.05)
    assert status["running"] and status["began_micros"]
    zonestore("store", "scrub", store, "--stop")
    _, error = waits.communicate(timeout=600)
    assert waits.returncode == 1 and "was stopped before everything was looked at" in error
    stopped = scrubbed(zonestore, store, "--status")[1]
    assert not stopped["running"] and stopped["data_micros"] is None
    assert stopped["began_micros"] == status["began_micros"]
    assert 0 < stopped["bytes_read"] < stopped["bytes_all"]
    server.stop()
    # A restart is nobody who asks for it.
    server = serve(store, "--scrub-every", "30d", "--scrub-pace", "full")
    status = zonestore("store", "scrub", store, "--status")
    assert f"was stopped at {stopped_at(stopped)}" in status.text
    server.stop()
    server = serve(store, "--scrub-every", "never", "--scrub-pace", "full")
    code, done = scrubbed(zonestore, store, "--deep")
    assert code == 0 and done["data_micros"] and done["began_micros"] is None
    assert done["bytes_read"] > stopped["bytes_read"]
    server.stop()


def test_mkfs_says_in_how_many_copies_metadata_is(zonestore, tmp_path):
    def made(*options, size):
        drive = tmp_path / f"{size}{len(options)}.zoned"
        zonestore("drive", "create", drive, "--size", size, "--zone-size", "1MiB")
        done = zonestore("store", "mkfs", drive, *options)
        df = zonestore("fs", "df", drive, "--json").json
        return df["copies"], done.text

    copies, text = made(size="1GiB")
    assert copies == 2 and "in two copies" in text
    copies, text = made(size="64MiB")
    assert copies == 1 and "in one copy: " in text and "sequential zones" in text
    copies, text = made("--metadata-copies", "1", size="1GiB")
    assert copies == 1 and "metadata is in" not in text


def test_random_damages_cost_what_they_damage(zonestore):
    env = {**os.environ, "RUST_LOG": "off"}
    report = zonestore("bench", "damage", "--damages", "500", "--json", env=env).json
    assert sum(kind["damages"] for kind in report["kinds"].values()) == 500
    report = zonestore("bench", "damage", "--damages", "200", "--two", "--json", env=env).json
    assert report["named"] == []
