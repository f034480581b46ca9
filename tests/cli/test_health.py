"""zonestore store health, what df says of it, and serve --exit-on-failure."""

import http.client
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import TIMEOUT
from test_serve import s3cmd
from test_store import put

sys.path.append(str(Path(__file__).resolve().parents[1] / "browser"))

from drive_zones import OFFLINE, set_condition

# fdatasync fails as long as the file that FAIL_FLUSHES names is there.
FAILING_FLUSHES = r"""
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
int fdatasync(int file) {
    const char *name = getenv("FAIL_FLUSHES");
    if (name && access(name, F_OK) == 0) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fdatasync, file);
}
"""


@pytest.fixture
def failing(tmp_path):
    """The environment of a server whose flushes can be made to fail, and how."""
    source, library, mark = (tmp_path / name for name in ("flush.c", "flush.so", "fail"))
    source.write_text(FAILING_FLUSHES)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    return {"LD_PRELOAD": str(library), "FAIL_FLUSHES": str(mark)}, mark.touch


def health(zonestore, store):
    done = zonestore.try_("store", "health", store, "--json")
    return done.code, json.loads(done.out)


def ask(server, path):
    connection = http.client.HTTPConnection(server.host, timeout=TIMEOUT)
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def client(store):
    return f"s3cmd -c {store}.keys"


def flip_a_byte_of(store, data):
    with open(store, "r+b") as file:
        place = file.read().index(data[:4096])
        file.seek(place + 10)
        file.write(bytes([data[10] ^ 1]))


def test_a_healthy_store_says_so_at_rest_and_served(zonestore, serve, store):
    put(zonestore, store, "c/o", os.urandom(300_000))
    assert "healthy" in zonestore("store", "health", store).text
    assert health(zonestore, store)[1]["healthy"] is True
    server = serve(store)
    assert "healthy" in zonestore("store", "health", store).text
    code, answer = health(zonestore, store)
    assert (code, answer["healthy"], answer["waiting"]) == (0, True, [])
    server.stop()


def test_what_cannot_be_read_is_named_and_not_available(zonestore, serve, store, tmp_path):
    data = os.urandom(300_000)
    put(zonestore, store, "first/lost", data)
    # What is dead beside it is what can no longer be given back.
    put(zonestore, store, "first/gone", os.urandom(200_000))
    put(zonestore, store, "first/kept", os.urandom(1_500_000))
    zonestore("store", "rm", store, "first/gone")
    flip_a_byte_of(store, data)
    server = serve(store)
    before = zonestore("store", "df", store, "--json").json
    assert before["set_aside_bytes"] == 0
    get = f"{client(store)} get s3://first/lost {tmp_path}/out --force"
    assert subprocess.run(get.split(), capture_output=True, timeout=TIMEOUT).returncode != 0
    code, answer = health(zonestore, store)
    assert code == 10 and not answer["healthy"]
    assert "first/lost" in answer["object_names"]
    assert answer["zones"][0]["why"] == "unreadable"
    text = zonestore.try_("store", "health", store)
    assert text.code == 10 and "first/lost" in text.text and "1 zone at risk" in text.err
    after = zonestore("store", "df", store, "--json").json
    assert after["set_aside_bytes"] > 0
    assert after["available_bytes"] < before["available_bytes"]
    # Everything else goes on.
    (tmp_path / "in").write_bytes(os.urandom(100_000))
    s3cmd(f"{client(store)} put in s3://first/new", tmp_path)
    server.stop()
    # What a request has run into is not forgotten with the server.
    code, answer = health(zonestore, store)
    assert code == 10
    assert [loss["object"] for loss in answer["losses"]] == ["first/lost"]
    assert "scrub" in zonestore.try_("store", "get", store, "first/lost").failed(6)


def test_after_a_failed_flush_a_server_reads_on(zonestore, serve, store, failing, tmp_path):
    env, fail = failing
    data = os.urandom(300_000)
    put(zonestore, store, "first/o", data)
    server = serve(store, env=env)
    assert ask(server, "/-/ready") == (200, "ready\n")
    fail()
    (tmp_path / "once.keys").write_text(Path(f"{store}.keys").read_text() + "max_retries = 1\n")
    putting = f"s3cmd -c {tmp_path}/once.keys put {store} s3://first/new"
    done = subprocess.run(putting.split(), capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode != 0
    assert "503" in done.stderr and "flush" in done.stderr, done.stderr
    s3cmd(f"{client(store)} get s3://first/o {tmp_path}/out", tmp_path)
    assert (tmp_path / "out").read_bytes() == data
    code, answer = health(zonestore, store)
    assert code == 10 and "flush" in answer["failure"]
    assert ask(server, "/-/ready") == (503, "not ready: nothing can be written before a restart\n")
    assert ask(server, "/-/healthy") == (200, "ok\n")
    (tmp_path / "fail").unlink()
    server.stop()


def test_a_server_ends_when_nothing_can_be_written(zonestore, serve, store, failing):
    env, fail = failing
    put(zonestore, store, "first/o", b"x")
    server = serve(store, "--exit-on-failure", env=env)
    fail()
    putting = subprocess.Popen(
        f"{client(store)} put {store} s3://first/new".split(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert server.process.wait(timeout=TIMEOUT) == 11
    finally:
        putting.kill()
        putting.wait()
    assert "flush" in server.process.stderr.read()


def test_a_lost_conventional_zone_costs_about_a_zone(zonestore, tmp_path):
    """What was to lie in small parts of it does not take as many large zones."""
    zonestore("drive", "create", "w.zoned", "--size", "64GiB")
    zonestore("store", "mkfs", "w.zoned")
    put(zonestore, "w.zoned", "c/o", os.urandom(300_000))

    def capacity():
        return zonestore("store", "df", "w.zoned", "--json").json["capacity_bytes"]

    before = capacity()
    set_condition(tmp_path / "w.zoned", 2, OFFLINE)
    assert before - capacity() <= 2 << 28
    put(zonestore, "w.zoned", "c/again", os.urandom(300_000))
    assert before - capacity() <= 2 << 28
    assert health(zonestore, "w.zoned")[1]["wear"]["zones_lost"] == 1
