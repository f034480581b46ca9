"""What the server says of requests and of administrative acts."""

import http.client
import json
import signal
import subprocess

import pytest

from configured import ADMIN, Configured, key
import status as statuses
import zonestore
from signer import Signer
from zonestore import TIMEOUT

LOGS = '[log]\nformat = "{}"\nfile = "server.log"\naccess = "access.log"\naudit = "audit.log"\n'
READER = ("reader", "the reader's secret", [("photos", ["read"])])


@pytest.fixture
def server(tmp_path):
    server = Configured(tmp_path, key(*READER) + LOGS.format("json")).start()
    yield server
    if server.alive():
        server.stop()


def lines(server, name, count):
    """The lines of a log, once there are so many."""
    path = server.config.with_name(name)
    server.wait_until(lambda: path.exists() and len(path.read_text().splitlines()) >= count)
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_request_has_a_line(server, data):
    s3 = server.as_admin()
    s3.create_bucket(Bucket="photos")
    body = data(300_000)
    name = 'a "key"\nwith ü'
    put = s3.put_object(Bucket="photos", Key=name, Body=body)
    got = s3.get_object(Bucket="photos", Key=name)
    assert got["Body"].read() == body
    reader = Signer(server, READER[1], READER[0])
    assert reader.request("DELETE", "/photos/k")[0] == 403
    assert Signer(server, "wrong").request("GET", "/photos")[0] == 403
    found = lines(server, "access.log", 5)
    made, put_line, got_line, denied, wrong = found
    for line in found:
        assert line["address"] == "127.0.0.1" and line["ms"] >= 0 and len(line["request"]) == 16
    assert (made["operation"], made["bucket"], made["object"], made["status"]) == ("CreateBucket", "photos", "-", 200)
    assert put_line["object"] == name and put_line["received"] >= len(body) and put_line["key"] == "admin"
    assert (got_line["operation"], got_line["sent"], got_line["received"]) == ("GetObject", len(body), 0)
    assert put_line["request"] == put["ResponseMetadata"]["HTTPHeaders"]["x-amz-request-id"]
    assert (denied["key"], denied["signed"], denied["operation"], denied["status"]) == ("reader", True, "DeleteObject", 403)
    assert (wrong["signed"], wrong["operation"], wrong["status"]) == (False, "-", 403)
    assert ADMIN[1] not in server.config.with_name("access.log").read_text()


def test_a_client_that_leaves_while_it_sends(server):
    s3 = server.as_admin()
    s3.create_bucket(Bucket="photos")
    aborted = ("zonestore_s3_aborted_total", frozenset())
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT)
    connection.putrequest("PUT", "/photos/k", skip_host=True, skip_accept_encoding=True)
    for name, value in Signer(server, ADMIN[1], ADMIN[0]).headers("PUT", "/photos/k", payload="UNSIGNED-PAYLOAD").items():
        connection.putheader(name, value)
    connection.putheader("content-length", str(10 << 20))
    connection.endheaders(bytes(1 << 20))
    connection.close()
    left = lines(server, "access.log", 2)[1]
    assert (left["operation"], left["status"], left["key"]) == ("PutObject", 499, "admin")
    server.wait_until(lambda: metrics(server)[aborted] == 1)
    told = metrics(server)
    assert told["zonestore_s3_requests_total", frozenset({("operation", "PutObject"), ("code", "499")})] == 1
    assert "Contents" not in s3.list_objects_v2(Bucket="photos")


def metrics(server):
    return statuses.metrics(server, ADMIN)[0]


def test_administrative_acts_have_a_line(server):
    s3 = server.as_admin()
    s3.create_bucket(Bucket="photos")
    s3.delete_bucket(Bucket="photos")
    for _ in range(12):
        Signer(server, READER[1], READER[0]).request("PUT", "/photos/k")
        Signer(server, "wrong", "nobody").request("GET", "/")
    found = lines(server, "audit.log", 7)
    told = [(line["message"], line.get("key"), line.get("bucket"), line.get("count")) for line in found]
    assert told[:3] == [
        ("started", None, None, None), ("bucket made", "admin", "photos", None), ("bucket removed", "admin", "photos", None),
    ]
    refused = [(key, count) for act, key, _, count in told if act == "refused"]
    assert sorted(refused) == [("nobody", 1), ("nobody", 10), ("reader", 1), ("reader", 10)]
    server.stop()
    assert lines(server, "audit.log", 8)[-1]["message"] == "stopped"


def test_orders_have_a_line_in_words(server):
    drive, archive = server.drive, f"{server.drive}.tar"
    server.as_admin().create_bucket(Bucket="photos")
    zonestore.run("store", "clean", drive, "--stop")
    zonestore.run("store", "clean", drive, "--pace", "16MiB/s", "--hours", "22:00-06:00")
    zonestore.run("store", "scrub", drive, "--deep")
    zonestore.run("store", "scrub", drive)
    zonestore.run("store", "scrub", drive, "--stop")
    zonestore.run("store", "backup", drive, "--to", archive)
    zonestore.run("store", "backup", drive, "--to", f"{archive}.2", "--since", archive, "--skip-damaged")
    found = [line for line in lines(server, "audit.log", 2) if line["message"].startswith("order")]
    assert {line["by"] for line in found} == {"the control socket"}
    told = [(line["message"], line["order"]) for line in found]
    assert told[:5] == [
        ("order to the cleaner", "stop"),
        ("order to the cleaner", "pace 16MiB/s, hours 22:00-06:00"),
        ("order to the scrub", "look at all data"),
        ("order to the scrub", "look at the metadata"),
        ("order to the scrub", "stop"),
    ]
    assert [what for what, _ in told[5:]] == ["order of a backup"] * 2
    assert told[5][1] == "full"
    assert told[6][1].startswith("what changed since /") and told[6][1].endswith(", without what is damaged")
    # A line of each is text in both forms, and none in the form of a program's values.
    assert not any(mark in line["order"] for line in found for mark in "{}()")


def test_logs_are_opened_anew(server, tmp_path):
    s3 = server.as_admin()
    s3.list_buckets()
    assert len(lines(server, "access.log", 1)) == 1
    for name in ("access", "audit", "server"):
        (tmp_path / f"{name}.log").rename(tmp_path / f"{name}.log.1")
    server.process.send_signal(signal.SIGHUP)
    assert [line["message"] for line in lines(server, "audit.log", 1)] == ["configuration read"]
    s3.list_buckets()
    assert [line["operation"] for line in lines(server, "access.log", 1)] == ["ListBuckets"]
    assert len((tmp_path / "access.log.1").read_text().splitlines()) == 1
    assert (tmp_path / "server.log").exists()


def test_text_keeps_a_request_on_its_line(tmp_path):
    server = Configured(tmp_path, LOGS.format("text")).start()
    s3 = server.as_admin()
    s3.create_bucket(Bucket="photos")
    s3.put_object(Bucket="photos", Key="a\nb status=200", Body=b"x")
    server.stop()
    text = (tmp_path / "access.log").read_text().splitlines()
    assert len(text) == 2 and 'object="a\\nb status=200"' in text[1] and "\x1b" not in text[1]


def lost(server):
    """Lines lost, by log."""
    told = metrics(server)
    return {dict(labels)["log"]: value for (name, labels), value in told.items() if name == "zonestore_log_lines_lost_total"}


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_lines_that_cannot_be_written_are_counted_and_told(server, tmp_path, small_disk):
    lines(server, "audit.log", 1)
    with (small_disk / "ballast").open("wb", buffering=0) as ballast, pytest.raises(OSError, match="No space"):
        while True:
            ballast.write(bytes(4096))
    for name in ("access", "audit"):
        path = tmp_path / f"{name}.log"
        path.unlink(missing_ok=True)
        path.symlink_to(small_disk / path.name)
    server.process.send_signal(signal.SIGHUP)
    server.wait_until(lambda: lost(server)["audit"] == 1)
    s3 = server.as_admin()
    for name in ("one", "two", "three"):
        s3.create_bucket(Bucket=name)
    server.wait_until(lambda: lost(server) == {"main": 0, "access": 3, "audit": 4})
    # The same names lead to a disk with room.
    for name in ("access", "audit"):
        (tmp_path / f"{name}.log").unlink()
    server.process.send_signal(signal.SIGHUP)
    assert [line["message"] for line in lines(server, "audit.log", 2)] == ["4 lines lost", "configuration read"]
    s3.list_buckets()
    told, listed = lines(server, "access.log", 2)
    assert (told["message"], listed["operation"]) == ("3 lines lost", "ListBuckets")
    assert lost(server) == {"main": 0, "access": 3, "audit": 4}
    server.stop()
    said = [json.loads(line) for line in server.output if line.startswith("{")]
    for name in ("access", "audit"):
        first, again = [line for line in said if f"{name}.log" in line["message"]]
        assert first["level"] == "ERROR" and "No space left on device" in first["message"]
        assert "lines lost" in again["message"]


def test_a_disk_that_fills_and_gets_room_again_tears_no_line(tmp_path, small_disk):
    text = f'[log]\nformat = "json"\naccess = "{small_disk}/access.log"\n'
    server = Configured(tmp_path, text).start()
    s3, access = server.as_admin(), small_disk / "access.log"
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(56 << 10))
    done = 0
    while lost(server)["access"] < 3:
        s3.list_buckets()
        done += 1
    ballast.unlink()
    s3.list_buckets()
    s3.list_buckets()
    server.wait_until(lambda: access.read_text().count("ListBuckets") + lost(server)["access"] >= done + 2)
    *kept, told, one, two = access.read_text().splitlines()
    count = int(lost(server)["access"])
    assert json.loads(told)["message"] == f"{count} lines lost"
    assert [json.loads(line)["operation"] for line in (one, two)] == ["ListBuckets"] * 2
    # What the disk still took of the first that was lost stands by itself.
    whole = [line for line in kept if line.endswith("}")]
    assert len(whole) == done - count and len(kept) - len(whole) <= 1
    assert all(json.loads(line)["operation"] == "ListBuckets" for line in whole)
    server.stop()
