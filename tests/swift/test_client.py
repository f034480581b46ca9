"""The client of the daemon: pooled connections, restarts, threads, green threads, streams that break."""

import gc
import itertools
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import types
from hashlib import md5

import pytest
from swift.common.concurrency import GreenPool, hubs, sleep, tpool
from swift.common.exceptions import DiskFileDeviceUnavailable

from backends import DEVICE
from objects import Objects, moment, until
from zonestore_swift import drives as drives_module
from zonestore_swift import metadata as frames
from zonestore_swift import streams, writer
from zonestore_swift.drives import SERVED_FOR, UNSERVED_FOR, Drives
from zonestore_swift.errors import Refused, Unavailable
from zonestore_swift.transport import Transport


def test_a_new_drive_in_the_place_of_another_is_not_noticed(own):
    for size in (3, 300_000):
        own.put(f"before {size}", data=b"a" * size)
    for size in (300_000, 3):
        own.daemon.stop()
        own.daemon.make()
        own.daemon.start()
        own.put("o", data=b"b" * size)
        assert own.read("o") == b"b" * size


def test_a_restart_of_the_daemon_is_not_noticed_between_calls(own):
    own.put("small", data=b"abc")
    own.put("large", data=b"abc" * 100_000)
    for _ in range(2):
        own.daemon.stop()
        own.daemon.start()
        assert own.read("small") == b"abc"
        own.put("small", data=b"abc", at=1)
        own.daemon.stop()
        own.daemon.start()
        own.put("large", data=b"abc" * 100_000, at=1)


def test_a_download_goes_on_after_a_restart(own):
    data = own.put(data=os.urandom(8_000_000))
    with own.file().open() as disk_file:
        reader = disk_file.reader()
    pieces = iter(reader)
    got = next(pieces) + next(pieces)
    own.daemon.stop(signal.SIGKILL)
    own.daemon.start()
    assert got + b"".join(pieces) == data


def test_a_download_of_what_was_replaced_meanwhile_fails_and_quarantines_nothing(own):
    own.put(data=os.urandom(8_000_000))
    with own.file().open() as disk_file:
        reader = disk_file.reader()
    pieces = iter(reader)
    next(pieces), next(pieces)
    own.put(data=b"new", at=1)
    own.daemon.stop(signal.SIGKILL)
    own.daemon.start()
    with pytest.raises(OSError):
        b"".join(pieces)
    assert own.read() == b"new"


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("where", ["here", "in the hub", "in a cycle"])
def test_what_is_dropped_without_a_close_is_given_up(zoned, plain, where, begun):
    """As an open file is closed. Swift's ssync receiver opens objects only to look at them."""
    objects = Objects(zoned, plain)
    objects.put(data=os.urandom(4_000_000))
    held = [objects.file().open()]
    if begun:
        held[0] = iter(held[0].reader())
        next(held[0]), next(held[0])
    objects.delete(at=1)
    live = live_bytes(objects)
    if where == "here":
        held.clear()
    elif where == "in the hub":
        hubs.get_hub().schedule_call_global(0, held.clear)
    else:
        held.append(held)
        del held
        gc.collect()
    assert until(lambda: live_bytes(objects) < live - 3_900_000)


def live_bytes(objects):
    return objects.manager.drive(DEVICE).store("space")["live_bytes"]


def test_without_a_daemon_there_is_no_device(own, plain):
    own.put(data=b"abc")
    own.daemon.stop()
    manager = own.backend.manager(plain)
    assert manager.get_dev_path(DEVICE) is None
    with pytest.raises(DiskFileDeviceUnavailable):
        manager.get_diskfile(DEVICE, "0", "a", "c", "o", policy=plain)
    with pytest.raises(Unavailable):
        own.put(data=b"abc")
    # What could not be reached is asked for again.
    assert own.manager.get_dev_path(DEVICE) is None
    own.daemon.start()


def test_threads_and_green_threads_share_a_manager(zoned, policy):
    objects = Objects(zoned, policy)
    names = [f"o{number}" for number in range(20)]
    archives = {name: objects.archive(os.urandom(200_000)) for name in names}

    def work(name, hashes):
        for at in range(3):
            with objects.file(name, **({"frag_index": 2} if objects.coded else {})).create() as writer:
                writer.write(archives[name])
                length, digest = writer.chunks_finished()
                writer.put({"X-Timestamp": moment(at).internal, "Content-Length": str(length), "ETag": digest})
                writer.commit(moment(at))
            assert objects.read(name) == archives[name]
            hashes()

    pool = GreenPool(10)
    for waiter in [pool.spawn(work, name, lambda: tpool.execute(objects.hashes)) for name in names[:10]]:
        waiter.wait()
    threads = [threading.Thread(target=work, args=(name, objects.hashes)) for name in names[10:]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(objects.read(name) == archives[name] for name in names)


def test_a_monkey_patched_process_lets_others_run(tmp_path):
    """In a process of its own: what eventlet has patched stays so."""
    code = """
import eventlet; eventlet.monkey_patch()
import os, socket, sys
sys.path[:0] = sys.argv[1:]
from zonestore_swift.transport import Transport
path = os.path.join(os.environ["TMPDIR"], "patched.sock")
listening = socket.socket(socket.AF_UNIX); listening.bind(path); listening.listen(5)
def serve():
    while True:
        client, _ = listening.accept()
        eventlet.spawn(answer, client)
def answer(client):
    while client.recv(65536):
        eventlet.sleep(0.2)
        client.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\n{}")
eventlet.spawn(serve)
transport = Transport(path, 2, 10)
pool = eventlet.GreenPool(10)
for waiter in [pool.spawn(transport.ask, "GET", "/") for _ in range(10)]:
    assert waiter.wait() == {}
assert len(transport.pool._idle()) == 10, "each call that waits has a connection of its own"
from eventlet import tpool
assert tpool.execute(transport.ask, "GET", "/") == {}
assert len(transport.pool._idle()) == 10, "a native thread has connections of its own"
with eventlet.Timeout(0.05, False):
    transport.ask("GET", "/")
assert len(transport.pool._idle()) == 9, "a call that was given up leaves no connection behind"
print("fine")
"""
    done = subprocess.run(
        [sys.executable, "-c", code, *sys.path], capture_output=True, text=True, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert done.stdout == "fine\n", done.stderr


class Script:
    """A server that answers each connection by a list: bytes to send, or None to hang up."""

    def __init__(self, path, answers):
        self.requests = []
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen(5)
        self._answers = answers
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        for answers in self._answers:
            client, _ = self._listening.accept()
            for answer in answers:
                got = client.recv(65536)
                self.requests.append(got.split(b" ")[0] + b" " + got.split(b" ")[1] if got else b"")
                if answer is None:
                    break
                client.sendall(answer)
            client.close()


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def test_a_call_that_a_stale_connection_swallowed_is_repeated_once(tmp_path):
    script = Script(tmp_path / "s", [[OK, None], [OK]])
    transport = Transport(str(tmp_path / "s"), 2, 10)
    assert transport.ask("GET", "/1") == {}
    assert transport.ask("GET", "/2") == {}
    assert script.requests == [b"GET /1", b"GET /2", b"GET /2"]


def test_what_must_not_be_repeated_is_not(tmp_path):
    script = Script(tmp_path / "s", [[OK, None], [OK]])
    transport = Transport(str(tmp_path / "s"), 2, 10)
    transport.ask("GET", "/1")
    with pytest.raises(Unavailable):
        transport.ask("PUT", "/2", body=b"x", repeatable=False)
    assert script.requests == [b"GET /1", b"PUT /2"]


def test_a_new_connection_that_fails_is_not_tried_again(tmp_path):
    script = Script(tmp_path / "s", [[None], [OK]])
    transport = Transport(str(tmp_path / "s"), 2, 10)
    with pytest.raises(Unavailable):
        transport.ask("GET", "/1")
    assert script.requests == [b"GET /1"]


def test_an_answer_that_takes_too_long_is_an_error(tmp_path):
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(tmp_path / "s"))
    listening.listen(1)
    with pytest.raises(Unavailable):
        Transport(str(tmp_path / "s"), 2, 0.1).ask("GET", "/1")


def test_a_daemon_that_hangs_is_asked_once_and_counts_as_away_for_a_while(tmp_path):
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(tmp_path / "s"))
    listening.listen(50)
    listening.setblocking(False)
    clock = [0.0]
    drives = Drives(str(tmp_path / "s"), str(tmp_path), 2, 0.1, lambda: clock[0])
    ask = drives._ask

    def takes_long(path):
        found = ask(path)
        clock[0] += 60
        return found

    def connections():
        for count in itertools.count():
            try:
                listening.accept()[0].close()
            except BlockingIOError:
                return count

    drives._ask = takes_long
    assert not drives.is_served("sda1") and not drives.is_served("sda1") and not drives.is_served("sdb1")
    assert connections() == 1
    # Nor is it asked again because a call fails meanwhile.
    with pytest.raises(Unavailable):
        drives.drive("sda1").store("health")
    assert not drives.is_served("sda1")
    assert connections() == 1
    clock[0] += UNSERVED_FOR
    assert not drives.is_served("sda1")
    assert connections() == 1


def test_how_full_a_drive_is_counts_for_as_long_as_that_it_is_served(tmp_path, monkeypatch):
    clock, path = [0.0], tmp_path / "s"
    path.touch()
    drives = Drives(str(path), str(tmp_path), 2, 60, lambda: clock[0])
    rows = [{"device": "full", "full": True}, {"device": "empty", "full": False}, {"device": "old"}]
    monkeypatch.setattr(Transport, "ask", lambda *question: rows)
    # Nobody is asked for that alone.
    assert not drives.is_full("full")
    assert all(drives.is_served(row["device"]) for row in rows)
    assert [name for name in ("full", "empty", "old", "none") if drives.is_full(name)] == ["full"]
    clock[0] += SERVED_FOR
    assert not drives.is_full("full")
    rows[0]["full"] = False
    assert drives.is_served("full") and not drives.is_full("full")


def test_of_many_requests_one_asks_the_daemon(tmp_path, monkeypatch):
    waiting, count = set(), []
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(tmp_path / "s"))
    listening.listen(50)

    def waits(seconds):
        waiting.add(threading.get_ident())
        time.sleep(seconds)

    def serve():
        while True:
            client = listening.accept()[0]
            count.append(client)
            # Until all others wait, or one of them asks too.
            while len(count) == 1 and len(waiting) < 4 and not select.select([listening], [], [], 0.01)[0]:
                pass
            client.recv(65536)
            client.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n[{"device": "sda1"}]')

    monkeypatch.setattr(drives_module, "sleep", waits)
    monkeypatch.setattr(drives_module, "ANSWER_SECONDS", 60)
    threading.Thread(target=serve, daemon=True).start()
    drives, found = Drives(str(tmp_path / "s"), str(tmp_path), 2, 60, lambda: 0.0), []
    threads = [threading.Thread(target=lambda: found.append(drives.is_served("sda1"))) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 5 and len(count) == 1


def test_nobody_waits_for_an_answer_for_ever(tmp_path, monkeypatch):
    clock = [0.0]

    def waits(seconds):
        clock[0] += seconds
        assert clock[0] < 100

    monkeypatch.setattr(drives_module, "sleep", waits)
    (tmp_path / "s").touch()
    drives = Drives(str(tmp_path / "s"), str(tmp_path), 2, 60, lambda: clock[0])
    drives._asking[str(tmp_path / "s")] = object()
    assert not drives.is_served("sda1")


def test_names_that_requests_make_up_are_not_kept(tmp_path):
    drives = Drives(str(tmp_path / "{device}.sock"), str(tmp_path), 2, 60)
    for number in range(10):
        assert not drives.is_served(f"d{number}")
        with pytest.raises(Unavailable):
            drives.drive(f"d{number}").store("health")
    assert not drives._known and not drives._transports


def test_a_busy_daemon_is_asked_again(tmp_path):
    busy = b'HTTP/1.1 503 x\r\nContent-Length: 33\r\n\r\n{"kind": "busy", "message": "no"}'
    script = Script(tmp_path / "s", [[busy, busy, OK]])
    assert Transport(str(tmp_path / "s"), 2, 10).ask("GET", "/1") == {}
    assert len(script.requests) == 3


def test_a_refusal_has_the_daemons_words(zoned, plain):
    with pytest.raises(Refused) as raised:
        Objects(zoned, plain).manager.drive(DEVICE)._transport.ask("GET", "/v1/nonsense")
    assert raised.value.kind == "unknown_call"
    assert raised.value.message in str(raised.value)


def test_a_policy_of_the_other_kind_is_refused(zoned, plain, coded):
    Objects(zoned, plain).put(data=b"abc")
    with pytest.raises(Refused) as raised:
        zoned.manager(plain).drive(DEVICE).add_policy(type("Policy", (), {"policy_type": coded.policy_type, "__int__": lambda self: 0})())
    assert raised.value.kind == "other_policy"


def test_metadata_of_a_later_version_are_no_damage(zoned, plain):
    objects = Objects(zoned, plain)
    objects.put(data=b"abc")
    disk_file = objects.file()
    disk_file.drive_object.put("1700000001.00000.data", bytes([frames.VERSION + 1]) + b"?", b"abc")
    for opens in (disk_file.open, objects.by_hash):
        with pytest.raises(Refused) as raised:
            opens()
        assert "newer" in str(raised.value)
    assert not objects.quarantined()


def test_an_upload_that_comes_slowly_reaches_the_daemon_before_it_is_given_up(zoned, plain, monkeypatch):
    """The daemon gives a body up after 120 seconds without a byte, or after 5 while it has no free place; Swift waits 60 for each piece."""
    passed = [0]
    monkeypatch.setattr(writer, "time", types.SimpleNamespace(monotonic=lambda: passed[0]))
    objects = Objects(zoned, plain)
    piece = b"x" * 40_000
    with objects.file().create() as writing:
        sends = []
        send = streams.Upload.send
        monkeypatch.setattr(streams.Upload, "send", lambda upload, pieces: (sends.append(passed[0]), send(upload, pieces)))
        for _ in range(20):
            passed[0] += 4
            writing.write(piece)
        length, digest = writing.chunks_finished()
        assert (length, digest) == (800_000, md5(20 * piece).hexdigest())
    assert len(sends) > 10
    assert max(later - earlier for earlier, later in zip(sends, sends[1:])) <= 5


def test_metadata_that_cannot_be_read_are_damage(zoned, plain):
    for number, frame in enumerate([b"", bytes([frames.VERSION]) + b"{", bytes([frames.VERSION]) + b"[]"]):
        objects = Objects(zoned, plain)
        objects.file().drive_object.put("1700000001.00000.data", frame, b"abc") if number else objects.put(data=b"abc")
        if number:
            with pytest.raises(Exception, match="metadata"):
                objects.file().open()
            assert objects.quarantined()
