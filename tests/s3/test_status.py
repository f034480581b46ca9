"""Who may see the status page, and what programs read there."""

import http.client
import json
import os
import pathlib
import socket
import threading
import time

import pytest

import status
import zonestore

PAGE_FILES = pathlib.Path(__file__).parents[2] / "crates/serve/status/page"
PAGE = ["/-/", *(f"/-/{file.name}" for file in sorted(PAGE_FILES.iterdir()) if file.name != "index.html")]
TOLD = ["/-/status.json", "/-/zones.json", "/-/zone.json?zone=0", "/-/metrics"]
OWN = {"X-ZoneStore": "test"}
START = json.dumps({"action": "start"}).encode()


def code(server, path, keys, **options):
    return status.ask(server, path, keys, **options)[0]


def test_by_default_the_keys_are_needed(server):
    wrong = (zonestore.ACCESS_KEY, "wrong")
    for path in TOLD:
        assert code(server, path, None) == 401
        answered, headers, _ = status.ask(server, path, wrong)
        assert (answered, headers["WWW-Authenticate"]) == (401, 'Basic realm="ZoneStore"')
        assert code(server, path, (zonestore.ACCESS_KEY, zonestore.SECRET_KEY)) == 200
    for path in PAGE:
        answered, headers, body = status.ask(server, path, None)
        assert answered == 200 and body
        assert "default-src 'none'" in headers["Content-Security-Policy"]
    for path in ["/-/healthy", "/-/ready"]:
        assert code(server, path, None) == 200
    assert code(server, "/-/nothing", (zonestore.ACCESS_KEY, zonestore.SECRET_KEY)) == 404


def test_where_it_is_open_only_changes_need_the_keys(make_server):
    server = make_server(arguments=["--status-page", "open"])
    for path in TOLD:
        assert code(server, path, None) == 200
        # Any name can be led to this address; one with dots may be a stranger's.
        assert code(server, path, None, headers={"Host": "evil.example.com"}) == 400
    assert code(server, "/-/cleaner", None, body=START, headers=OWN) == 401
    assert code(server, "/-/cleaner", ("a", "b"), body=START, headers=OWN) == 401
    # A form of another site cannot send the header.
    assert code(server, "/-/cleaner", (zonestore.ACCESS_KEY, zonestore.SECRET_KEY), body=START) == 403
    assert not status.document(server)["drive"]["cleaner"]["requested"]


def test_where_it_is_off_there_is_none(make_server):
    server = make_server(arguments=["--status-page", "off"])
    for path in PAGE + TOLD:
        assert code(server, path, None) in (400, 403)
    assert code(server, "/-/healthy", None) == 200


def test_who_guesses_a_secret_waits_and_who_has_it_does_not(make_server):
    server = make_server()
    # The eleventh, or a later one if a minute has passed since the first.
    for number in range(40):
        answered, headers, _ = status.ask(server, "/-/status.json", (zonestore.ACCESS_KEY, f"guess {number}"))
        if answered != 401:
            break
    assert number >= 10 and answered == 429 and 0 < int(headers["Retry-After"]) <= 61
    # Behind a proxy all have this address: whoever has the keys, or mistypes another one, is not concerned.
    assert code(server, "/-/status.json", (zonestore.ACCESS_KEY, zonestore.SECRET_KEY)) == 200
    assert code(server, "/-/status.json", ("another", "guess")) == 401
    server.client().list_buckets()


@pytest.mark.parametrize("path, allow", [
    *((path, "GET, HEAD, OPTIONS") for path in [*PAGE, *TOLD, "/-/healthy", "/-/ready"]), ("/-/cleaner", "OPTIONS, POST"),
])
def test_each_path_tells_its_methods(server, path, allow):
    for method in ("OPTIONS", "PUT", "DELETE", "PATCH", "GET", "POST"):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=zonestore.TIMEOUT)
        connection.request(method, path, body=b"x" if method == "PUT" else None)
        answer = connection.getresponse()
        if method == "OPTIONS":
            assert (answer.status, answer.headers["allow"]) == (204, allow)
        elif method in allow:
            assert answer.status in (200, 400, 401, 403)
        else:
            assert (answer.status, answer.headers["allow"]) == (405, allow)
        connection.close()


def test_options_of_nothing_is_nothing(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=zonestore.TIMEOUT)
    connection.request("OPTIONS", "/-/nothing")
    assert connection.getresponse().status == 404
    connection.close()


def test_the_cleaner_takes_orders(make_server, data):
    server = make_server()
    assert status.order(server, pace="100MiB/s")["pace"] == "100MiB/s"
    assert not status.order(server, action="stop")["automatic"]
    assert status.document(server)["drive"]["pace"] == "100MiB/s"
    assert status.order(server, action="start")["automatic"]
    for nonsense in [b"", b"{}", b'{"pace":"soon"}', b"x" * 5000]:
        assert code(server, "/-/cleaner", (zonestore.ACCESS_KEY, zonestore.SECRET_KEY), body=nonsense, headers=OWN) == 400
    server.client().list_buckets()


def test_the_log_tells_no_secret_and_buckets_are_counted(make_server):
    server = make_server()
    s3 = server.client()
    s3.create_bucket(Bucket="told")
    s3.put_object(Bucket="told", Key="a/ü<b>", Body=b"12345")
    url = s3.generate_presigned_url("get_object", Params={"Bucket": "told", "Key": "a/ü<b>"})
    assert code(server, url.removeprefix(server.endpoint), None) == 200
    newest = status.document(server)["requests"]["log"][0]
    assert newest["operation"] == "GetObject" and newest["sent_bytes"] == 5
    assert "?" not in newest["resource"] and "Signature" not in json.dumps(newest)
    deadline = time.monotonic() + zonestore.TIMEOUT
    while not (told := status.document(server))["buckets"]:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert told["buckets"]["buckets"] == [{"name": "told", "objects": 1, "bytes": 5}]
    history = told["requests"]["history"]
    assert len(history) <= 120 and sum(second["requests"] for second in history) <= 3


def test_zones_are_sent_only_when_they_have_changed(make_server):
    server = make_server(arguments=["--status-page", "open"])
    answered, headers, body = status.ask(server, "/-/zones.json", None)
    zones = json.loads(body)
    assert (answered, zones["zones"]) == (200, 256)
    again = status.ask(server, "/-/zones.json", None, headers={"If-None-Match": headers["ETag"]})
    assert (again[0], again[2]) == (304, b"")
    one = json.loads(status.ask(server, "/-/zone.json?zone=255", None)[2])
    assert one["zone"] == 255
    assert code(server, "/-/zone.json?zone=256", None) == 404
    assert code(server, "/-/zone.json?zone=x", None) == 400


@pytest.mark.parametrize("path", ["/-/status.json", "/-/healthy"])
def test_below_a_buckets_own_host_name_are_its_objects(server, path):
    host = f"photos.localhost:{server.port}"
    answered, _, body = status.ask(server, path, None, headers={"Host": host})
    assert answered == 403 and b"<Code>AccessDenied</Code>" in body


def test_the_command_line_tells_the_same(make_server, tmp_path):
    server = make_server(arguments=["--status-page", "off"])
    server.client().create_bucket(Bucket="told")
    told = json.loads(zonestore.run("store", "top", server.drive, "--json").stdout)
    assert told["drive"]["zones"]["geometry"]["zone_count"] == 256
    assert told["requests"]["log"][0]["operation"] == "CreateBucket"
    text = zonestore.run("store", "top", server.drive, "--once").stdout
    assert "ready" in text and "can still be stored" in text and "CreateBucket" in text
    idle = zonestore.make_drive(tmp_path / "idle.zoned", "64MiB")
    refused = zonestore.run("store", "top", idle, check=False)
    assert refused.returncode == 3 and "nobody serves" in refused.stderr


def test_damage_and_its_end_are_told_by_the_next_look(tmp_path):
    server = zonestore.Server(zonestore.make_drive(tmp_path / "d.zoned", "64MiB")).start()
    s3, body = server.client(), os.urandom(300_000)
    s3.create_bucket(Bucket="photos")
    s3.put_object(Bucket="photos", Key="k", Body=body)
    assert told_since(server, time.monotonic()) == (1, 0)
    with open(server.drive, "r+b") as drive:
        at = drive.read().index(body[:4096])
        drive.seek(at + 100)
        drive.write(bytes([body[100] ^ 1]))
    with pytest.raises(s3.exceptions.ClientError):
        s3.get_object(Bucket="photos", Key="k")
    assert told_since(server, time.monotonic()) == (0, 1)
    assert zonestore.run("store", "health", server.drive, check=False).returncode == 10
    s3.put_object(Bucket="photos", Key="k", Body=body)
    assert told_since(server, time.monotonic()) == (1, 0)
    assert zonestore.run("store", "health", server.drive).returncode == 0
    server.stop()


def told_since(server, moment):
    """Whether the server is healthy and how many zones are at risk, by a look that was taken behind this moment."""
    name = lambda name: (f"zonestore_{name}", frozenset())
    while True:
        asked = time.monotonic()
        values, _ = status.metrics(server)
        if asked - values[name("look_age_seconds")] > moment:
            return values[name("healthy")], values[name("zones_at_risk")]
        time.sleep(0.1)


def test_who_reaches_the_port_reaches_the_control_socket(tmp_path):
    server = zonestore.Server(zonestore.make_drive(tmp_path / "d.zoned", "64MiB"))
    for _ in range(3):
        with socket.create_server(("127.0.0.1", 0)) as free:
            server.address = "127.0.0.1:{}".format(free.getsockname()[1])
        starting = threading.Thread(target=server.start)
        starting.start()
        host, port = server.address.split(":")
        while starting.is_alive():
            try:
                socket.create_connection((host, int(port))).close()
                break
            except ConnectionRefusedError:
                continue
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(f"{server.drive}.sock")
        zonestore.run("store", "df", server.drive)
        starting.join()
        server.stop()
