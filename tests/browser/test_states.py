"""Every state of the status page, in a browser."""

import json
import random
import subprocess
import threading

import pytest

import status
import zonestore
from drive_zones import OFFLINE, READ_ONLY, set_condition
from flushes import Flushes

MARKUP = "<img src=x onerror=\"document.title='owned'\"><b>bold</b>"


def put(server, bucket, objects, size, seed=1):
    s3 = server.client()
    if bucket not in [found["Name"] for found in s3.list_buckets()["Buckets"]]:
        s3.create_bucket(Bucket=bucket)
    generator = random.Random(seed)
    for number in range(objects):
        s3.put_object(Bucket=bucket, Key=f"{number:03}", Body=generator.randbytes(size))
    return s3


def test_an_empty_store(server, open_page, picture):
    page = open_page(server)
    page.until_text("#buckets-words", "None.")
    assert "Idle" in page.text("#cleaner-words")
    assert "Nothing is known to be lost" in page.text("#health")
    page.until_text("#health", "Scrub: all metadata was looked at last: ")
    assert "256 zones of 1.0 MiB" in page.text("#zones-words")
    picture(page)
    # Nothing comes from elsewhere.
    assert all(url.startswith(server.endpoint + "/-/") for url in page.asked())


def test_a_loaded_store(server, open_page, picture):
    page = open_page(server)
    s3 = put(server, "photos", 60, 2_000_000)
    for number in range(20):
        s3.get_object(Bucket="photos", Key=f"{number:03}")["Body"].read()
        s3.delete_object(Bucket="photos", Key=f"{number:03}")
    page.until_text("#log", "DeleteObject")
    page.until_text("#log", "GetObject")
    page.until_text("#owners", "objects")
    page.until_text("#bytes-most", "up to")
    page.until_text("#buckets", "photos")
    page.until_text("#buckets", "40")
    told = status.document(server)["drive"]["space"]
    assert told["live_bytes"] == 40 * 2_002_944
    picture(page)


def test_the_cleaner_is_started_paced_and_stopped(server, open_page, picture):
    put(server, "photos", 150, 1_000_000)
    s3 = put(server, "photos", 75, 1_000_000, seed=2)
    for number in range(75, 150, 2):
        s3.delete_object(Bucket="photos", Key=f"{number:03}")
    page = open_page(server)
    page.run("document.querySelector('#pace').value = ''; document.querySelector('#pace').focus()")
    page.type("soon")
    page.press("Enter")
    page.until_text("#cleaner-wrong", "pace")
    page.run("document.querySelector('#pace').value = ''")
    page.type("200KiB/s")
    page.press("Enter")
    page.until_text("#cleaner", "200KiB/s")
    page.click("#start")
    page.until_text("#cleaner-words", "as asked")
    page.until("document.querySelector('#start').ariaDisabled === 'true'")
    picture(page)
    page.click("#stop")
    page.until_text("#cleaner-words", "Stopped")
    assert not status.document(server)["drive"]["cleaner"]["automatic"]
    picture(page, "the_cleaner_is_stopped")


def test_a_button_keeps_the_focus_when_it_has_nothing_to_do(server, open_page):
    put(server, "photos", 100, 1_000_000)
    s3 = server.client()
    for number in range(0, 100, 2):
        s3.delete_object(Bucket="photos", Key=f"{number:03}")
    status.order(server, pace="1KiB/s")
    page = open_page(server)

    def orders():
        return sum(url.endswith("/-/cleaner") for url in page.asked())

    for done, button in enumerate(["start", "stop"], start=1):
        page.run(f"document.querySelector('#{button}').focus()")
        page.press("Enter")
        page.until(f"document.querySelector('#{button}').ariaDisabled === 'true'")
        assert page.run("document.activeElement.id") == button
        # It does nothing now.
        page.press("Enter")
        page.press("Enter")
        page.run("new Promise((done) => setTimeout(done, 100))")
        assert orders() == done
    page.until("document.querySelector('#start').ariaDisabled === null")


def test_who_has_signed_in_is_where_they_were(make_server, open_page):
    page = open_page(make_server("--status-page", "open"), signed_in=False)
    page.until_text("#state", "ready")
    focus = "document.activeElement.id"
    for button in ["sign", "stop"]:
        page.run(f"document.querySelector('#{button}').focus()")
        page.press("Enter")
        page.until(f"{focus} === 'access'")
        page.run("document.querySelector('#keys-away').focus()")
        page.press("Enter")
        page.until("document.querySelector('#keys').hidden")
        assert page.run(focus) == button
    page.press("Enter")
    page.sign_in(zonestore.ACCESS_KEY, zonestore.SECRET_KEY)
    page.until("document.querySelector('#keys').hidden")
    assert page.run(focus) == "stop"


def test_zones_that_are_offline_or_read_only(make_server, open_page, picture):
    def break_zones(drive):
        """Zones that hold nothing."""
        report = json.loads(zonestore.run("drive", "report", drive, "--json").stdout)
        empty = [zone["id"] for zone in report["zones"] if zone["condition"] == "empty"]
        for zone in empty[-80:-60]:
            set_condition(drive, zone, READ_ONLY)
        for zone in empty[-60:-40]:
            set_condition(drive, zone, OFFLINE)

    page = open_page(make_server(prepare=break_zones))
    page.until_text("#owners", "offline 20")
    page.until_text("#owners", "read-only 20")
    page.until_text("#health", "40 zones out of use")
    picture(page)


def test_a_zone_of_the_metadata_that_is_lost(make_server, open_page, picture):
    server = make_server(prepare=lambda drive: set_condition(drive, 0, OFFLINE))
    page = open_page(server)
    page.until_text("#health", "Zone 0 of the metadata (superblock) is offline")
    page.until_text("#owners", "offline 1")
    page.run("document.querySelector('#map').focus()")
    page.press("Home")
    page.until_text("#fact", "Zone 0: offline; how much is written is not known, dead bytes not known.")
    picture(page)


def test_objects_that_are_lost_or_at_risk(make_server, open_page, picture):
    broken = []

    def break_zones(drive):
        server = zonestore.Server(drive).start()
        put(server, "photos", 12, 700_000)
        server.stop()
        zones = json.loads(zonestore.run("fs", "top", drive, "--json").stdout)["zones"]
        # The first may hold a summary alone.
        full = (zone for zone in zones if zone["owner"] == "objects" and zone["condition"] == "full")
        broken.extend(zone["zone"] for zone in full)
        set_condition(drive, broken[0], OFFLINE)
        set_condition(drive, broken[1], READ_ONLY)

    server = make_server(prepare=break_zones)
    page = open_page(server)
    page.until_text("#health", "that are lost: photos/000")
    health = page.text("#health")
    told = status.document(server)["drive"]["health"]
    assert f"{told['lost_objects']} objects with" in health
    assert "The drive is failing." in health and f"Zone {broken[0]}: unreadable, " in health
    picture(page)
    # Once they are stored again there is no loss, and the zones are out of use.
    put(server, "photos", 12, 700_000, seed=2)
    page.until_text("#health", "2 zones out of use and empty.")
    assert "that are lost" not in page.text("#health")
    space = status.document(server)["drive"]["space"]
    assert (space["unusable_bytes"], space["set_aside_bytes"]) == (2 << 20, 0)
    values, _ = status.metrics(server)
    assert values["zonestore_unusable_zones", frozenset()] == 2


def test_metadata_that_is_damaged(make_server, open_page, picture):
    def break_zones(drive):
        for zone in (0, 1):
            set_condition(drive, zone, OFFLINE)

    page = open_page(make_server(prepare=break_zones))
    page.until_text("#health", "Metadata: superblock zones 0 and 1 are out of use")
    page.until_text("#health", "The drive is failing.")
    picture(page)


def test_a_server_that_can_write_nothing(make_server, open_page, picture, tmp_path, monkeypatch):
    flushes = Flushes(tmp_path, monkeypatch)
    server = make_server()
    page = open_page(server)
    s3 = put(server, "photos", 1, 100_000)
    flushes.fail()
    with pytest.raises(s3.exceptions.ClientError):
        s3.put_object(Bucket="photos", Key="new", Body=bytes(100_000))
    page.until_text("#state", "not ready")
    page.until_text("#alerts", "Objects cannot be stored: ")
    page.until_text("#health", "Nothing can be written before a restart: ")
    picture(page)
    server.kill()


def test_a_drive_that_does_not_answer(make_server, open_page, picture, tmp_path, monkeypatch):
    flushes = Flushes(tmp_path, monkeypatch)
    server = make_server()
    page = open_page(server)
    s3 = put(server, "photos", 1, 100_000)
    flushes.hang()
    waits = threading.Thread(target=lambda: s3.put_object(Bucket="photos", Key="new", Body=bytes(100_000)))
    waits.start()
    page.until_text("#health", "The drive has not answered a command (flush) for ")
    page.until_text("#state", "not ready")
    picture(page)
    flushes.go_on()
    waits.join()
    page.until_text("#state", "ready")
    page.until_text("#health", "The drive is worn.")


def test_a_scrub_that_runs_and_is_stopped(make_server, open_page, picture):
    server = make_server("--scrub-every", "never", "--scrub-pace", "40KiB/s")
    put(server, "photos", 12, 1_000_000)
    page = open_page(server)
    page.until_text("#health", "all data: never")
    asked = subprocess.Popen([zonestore.BINARY, "store", "scrub", server.drive, "--deep"], stderr=subprocess.DEVNULL)
    page.until_text("#health", "A pass over the data has read ")
    picture(page)
    zonestore.run("store", "scrub", server.drive, "--stop")
    asked.wait(timeout=zonestore.TIMEOUT)
    page.until_text("#health", "It was stopped at ")


@pytest.mark.parametrize("dark", [False, True])
def test_what_a_conventional_zone_does_not_tell(make_server, open_page, picture, dark):
    server = make_server(shape=["--conventional", "32"])
    put(server, "photos", 20, 1_000_000)
    page = open_page(server, dark=dark)
    page.run("document.querySelector('#map').focus()")
    page.press("Home")
    page.until_text("#fact", "Zone 0: superblock, not write pointer; how much is written is not known")
    told = json.loads(status.ask(server, "/-/zone.json?zone=0")[2])
    assert (told["condition"], told["written_bytes"], told["dead_bytes"]) == ("not_write_pointer", None, None)
    zones = json.loads(zonestore.run("fs", "top", server.drive, "--json").stdout)
    assert zones["zones"][0]["written_bytes"] is None
    page.until_text("#space-words", "for each byte of objects, metadata included")
    # An empty zone is unused or ready; conventional ones may be ready, too.
    totals = status.document(server)["drive"]["zones"]
    owners = {owner: share["zones"] for owner, share in totals["owners"].items()}
    assert owners["unused"] <= totals["totals"]["empty_zones"] < owners["unused"] + owners["ready"]
    picture(page, f"conventional_{'dark' if dark else 'light'}")


def test_a_server_that_is_gone(server, open_page, picture):
    page = open_page(server)
    server.stop()
    page.until_text("#state", "server gone")
    page.until_text("#alerts", "does not answer")
    # What it said last is still there.
    assert "256 zones" in page.text("#zones-words")
    picture(page)


def test_a_server_that_comes_back(server, open_page):
    page = open_page(server)
    server.address = f"127.0.0.1:{server.port}"
    server.stop()
    page.until_text("#state", "server gone")
    page.click("#stop")
    page.until_text("#cleaner-wrong", "does not answer")
    page.run("document.querySelector('#map').focus()")
    page.press("Home")
    page.until_text("#fact", "Zone 0: the server does not tell")
    server.start()
    page.until_text("#state", "ready")
    assert page.text("#alerts") == ""
    assert page.text("#cleaner-wrong") == ""
    page.until_text("#fact", "Zone 0: superblock, ")


def test_wrong_keys(server, open_page, picture):
    page = open_page(server, signed_in=False)
    page.until_text("#state", "signed out")
    page.sign_in(zonestore.ACCESS_KEY, "wrong")
    page.until_text("#keys-wrong", "not the server's keys")
    assert page.run("document.querySelector('#all').hidden")
    picture(page)
    page.sign_in(zonestore.ACCESS_KEY, zonestore.SECRET_KEY)
    page.until_text("#state", "ready")
    assert page.run("document.querySelector('#keys').hidden && document.querySelector('#secret').value === ''")


def test_keys_are_asked_for_only_where_something_is_changed(make_server, open_page, picture):
    server = make_server("--status-page", "open")
    page = open_page(server, signed_in=False)
    page.until_text("#state", "ready")
    assert page.run("document.querySelector('#keys').hidden")
    page.click("#stop")
    page.until_text("#keys-why", "needs the keys")
    page.sign_in(zonestore.ACCESS_KEY, "wrong")
    page.until_text("#keys-wrong", "not the server's keys")
    # It still shows what everybody may see.
    page.until_text("#state", "ready")
    picture(page)
    page.sign_in(zonestore.ACCESS_KEY, zonestore.SECRET_KEY)
    page.until("document.querySelector('#keys').hidden")
    page.click("#stop")
    page.until_text("#cleaner-words", "Stopped")


@pytest.mark.parametrize("dark", [False, True])
def test_names_with_markup_are_text(server, open_page, picture, dark):
    s3 = put(server, "names", 0, 0)
    s3.put_object(Bucket="names", Key=MARKUP, Body=b"x")
    page = open_page(server, dark=dark)
    page.until_text("#log", MARKUP)
    assert page.run("document.querySelectorAll('main img, main b').length") == 0
    assert page.run("document.title") != "owned"
    colour = page.run("getComputedStyle(document.body).backgroundColor")
    assert colour == ("rgb(13, 17, 23)" if dark else "rgb(246, 248, 250)")
    picture(page, "dark" if dark else "markup")


def test_a_phone(server, open_page, picture):
    put(server, "photos", 10, 1_000_000)
    page = open_page(server, width=360, height=740, phone=True)
    page.until_text("#log", "PutObject")
    assert page.run("document.documentElement.scrollWidth") <= 360
    assert page.run("Math.min(...[...document.querySelectorAll('main button')].map((b) => b.offsetHeight))") >= 32
    picture(page)


def test_the_map_by_keyboard(server, open_page):
    page = open_page(server)
    page.run("document.querySelector('#map').focus()")
    page.press("Home")
    page.until_text("#fact", "Zone 0: superblock, ")
    page.press("ArrowRight")
    page.until_text("#fact", "Zone 1: ")
    columns = page.run("Math.floor(document.querySelector('#map').clientWidth / 22)")
    page.press("ArrowDown")
    page.until_text("#fact", f"Zone {columns + 1}: ")
    page.press("End")
    page.until_text("#fact", "Zone 255: ")
    page.press("ArrowDown")
    assert "Zone 255: " in page.text("#fact")
    # A page is more rows than there are.
    page.press("PageUp")
    page.until_text("#fact", "Zone 0: superblock, ")
    page.press("PageDown")
    page.until_text("#fact", "Zone 255: ")
    # All that can be done by pointing can be reached with Tab.
    seen = []
    page.run("document.activeElement.blur()")
    for _ in range(20):
        page.press("Tab")
        seen.append(page.run("document.activeElement.id"))
    assert {"start", "stop", "pace", "map"} <= set(seen)


def test_110_000_zones(make_server, open_page, picture):
    shape = ["--zone-size", "1MiB", "--zone-capacity", "1MiB"]
    server = make_server(size="110000MiB", shape=shape)
    put(server, "photos", 40, 1_500_000)
    page = open_page(server)
    page.until_text("#zones-words", "110,000 zones")
    page.until_text("#owners", "objects")
    picture(page)
    # The thread that draws is free: ten frames come soon, also while zones change.
    put(server, "photos", 40, 1_500_000, seed=2)
    frames = """new Promise((done) => { let left = 10; const begin = performance.now();
        const next = () => --left ? requestAnimationFrame(next) : done(performance.now() - begin);
        requestAnimationFrame(next); })"""
    assert page.run(frames) < 60_000
    page.run("document.querySelector('#map').focus()")
    page.press("End")
    page.until_text("#fact", "Zone 109999: ")
    assert len(status.ask(server, "/-/zones.json")[2]) < 100_000


def test_110_000_zones_on_a_phone(make_server, open_page, picture):
    server = make_server(size="110000MiB", shape=["--zone-size", "1MiB", "--zone-capacity", "1MiB"])
    page = open_page(server, width=360, height=740, phone=True)
    page.until_text("#zones-words", "110,000 zones")
    page.until("document.querySelector('#map').clientHeight > 740")
    # The map scrolls in a room of its own: what is behind it is not a day's way down.
    assert page.run("document.querySelector('#map-room').clientHeight") < 740
    between = "document.querySelector('#h-buckets').getBoundingClientRect().top - document.querySelector('#h-zones').getBoundingClientRect().top"
    assert page.run(between) < 2 * 740
    picture(page)
    page.run("document.querySelector('#map').focus()")
    page.press("End")
    page.until_text("#fact", "Zone 109999: ")
    room = "document.querySelector('#map-room')"
    assert page.run(f"{room}.scrollTop + {room}.clientHeight > {room}.scrollHeight - 20")
    page.press("Home")
    page.until_text("#fact", "Zone 0: ")
    assert page.run(f"{room}.scrollTop") < 20
