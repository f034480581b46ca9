"""`zonestore daemon` on the command line: what it refuses, and what others are told of its drives."""

import http.client
import json
import signal
import socket
import time

import pytest
from conftest import TIMEOUT, ignores


def test_a_drive_without_a_store_gets_a_hint_that_can_be_followed(zonestore, drive):
    said = zonestore.try_("daemon", drive, "--socket", "s").failed(7)
    assert "store mkfs" in said and "--create" not in said


def test_devices_are_names_and_drives_are_given_once(zonestore, store, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(store)
    for words, why in (((f"..={store}",), "no name of a device"), ((f".={store}",), "no name of a device"),
                       ((f"x={store}", f"y={store}"), "x and y are one drive"), ((f"x={store}", f"y={link}"), "x and y are one drive"),
                       ((f"x={store}", "x=other"), "named x")):
        assert why in zonestore.try_("daemon", *words, "--socket", "s").failed(2)


def test_a_socket_in_a_folder_that_is_not_there_gets_a_hint(zonestore, store):
    assert "make the socket's folder first" in zonestore.try_("daemon", store, "--socket", "none/s").failed(3)


@pytest.mark.parametrize("name", [".", "x" * 73])
def test_a_name_that_no_socket_can_have(zonestore, store, name):
    assert "1 to 72 bytes" in zonestore.try_("daemon", store, "--socket", name).failed(2)


@pytest.fixture
def daemon(zonestore, store):
    process = zonestore.start("daemon", f"sda={store}", "--socket", "s")
    assert any(line.startswith("Ctrl-C") for line in process.stdout)
    yield process
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=TIMEOUT)


def test_a_daemon_in_the_background_outlives_ctrl_c_and_ends_by_sigterm(zonestore, store):
    # SIGTERM also if it was ignored.
    before = ("sh", "-c", 'trap "" INT HUP TERM; exec "$@"', "sh")
    process = zonestore.start("daemon", f"sda={store}", "--socket", "s", before=before)
    try:
        assert any(line.startswith(f"`kill {process.pid}` stops") for line in process.stdout)
        assert ignores(process, signal.SIGINT) and ignores(process, signal.SIGHUP)
        process.terminate()
        assert process.wait(TIMEOUT) == 0
    finally:
        process.kill()
        process.communicate()


def test_who_has_a_drive_is_told(zonestore, store, daemon):
    said = zonestore.try_("store", "mkfs", store).failed(4)
    assert f"in use by zonestore daemon (pid {daemon.pid})" in said
    assert "Swift" in said and "S3" not in said
    said = zonestore.try_("store", "top", store).failed(1)
    assert "no status page" in said and "store df" in said and "older" not in said, said


def test_a_terminal_that_is_gone_ends_it_as_ctrl_c_does(daemon):
    for _ in range(2):
        daemon.send_signal(signal.SIGHUP)
    assert daemon.wait(TIMEOUT) == 0
    assert "stopping" in daemon.stderr.read()


def call(method, path, body=None):
    """What the daemon at the socket `s` answers."""
    connection = http.client.HTTPConnection("daemon", timeout=TIMEOUT)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect("s")
    connection.request(method, f"/v1/drives/sda/swift{path}", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    said = answer.read()
    connection.close()
    assert answer.status == 200, said
    return said


def test_missing_suffixes_are_looked_for_while_it_serves(zonestore, store, monkeypatch):
    monkeypatch.chdir(zonestore.folder)

    def served(work):
        process = zonestore.start("daemon", f"sda={store}", "--socket", "s")
        try:
            assert any(line.startswith("Ctrl-C") for line in process.stdout)
            work()
            process.terminate()
            assert process.wait(TIMEOUT) == 0
        finally:
            process.kill()
            process.communicate()

    def put():
        call("PUT", "/policies/0", b'{"kind": "replication"}')
        call("PUT", f"/0/7/{'0123456789abcdef' * 2}/files/1402464677.04188.data?metadata_bytes=0", b"bytes")
        assert json.loads(call("GET", "/0/partitions")) == [7]

    def find():
        deadline = time.monotonic() + TIMEOUT
        while json.loads(call("GET", "/0/partitions")) != [7]:
            assert time.monotonic() < deadline
            time.sleep(0.05)

    served(put)
    # As a salvage may leave it.
    zonestore("store", "rm", "-r", store, "swift-0-suffixes", "--yes")
    served(find)
