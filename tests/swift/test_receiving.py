"""Uploads that the daemon takes from the client's socket itself, through an object server."""

import http.client
import itertools
import os
import signal
import socket
import threading
import time
import types
from hashlib import md5

import eventlet
import eventlet.green.socket
import eventlet.wsgi
import pytest
from swift.common.http_protocol import SwiftHttpProtocol
from swift.common.utils import get_logger

import zonestore_swift.connection
from backends import DEVICE
from zonestore_swift import handed_body
from zonestore_swift.drive import Drive
from zonestore_swift.errors import Unavailable
from zonestore_swift.handing import Handing
from zonestore_swift.object_server import ObjectController


class Server:
    """An object server on the daemon of `objects`, in green threads of this thread. What clients do blocks, so it runs in others."""

    def __init__(self, objects, policies, **conf):
        backend = objects.backend
        controller = ObjectController({**backend.conf, **conf}, get_logger({}, name="swift-test"))
        controller._diskfile_router.policy_to_manager = {0: backend.manager(policies, **conf)}
        self.manager = controller._diskfile_router[0]
        self.listening = eventlet.listen(("127.0.0.1", 0))
        self.serving = eventlet.spawn(
            eventlet.wsgi.server, self.listening, controller, log_output=False, protocol=SwiftHttpProtocol, socket_timeout=60)

    def do(self, work, *arguments):
        return eventlet.tpool.execute(work, self.listening.getsockname(), *arguments)

    def stop(self):
        self.serving.kill()
        self.listening.close()


@pytest.fixture
def serves(own, plain, monkeypatch):
    monkeypatch.setattr(zonestore_swift.connection, "socket", eventlet.green.socket)
    servers = []

    def serve(**conf):
        servers.append(Server(own, plain, **conf))
        return servers[-1]

    yield serve
    for server in servers:
        server.stop()


@pytest.fixture
def counted(monkeypatch):
    """How many bodies were handed over and how many came through the server."""
    counts = {"receiver": 0, "stage": 0}

    def count(name):
        plain = getattr(Drive, name)

        def counting(*arguments):
            counts[name] += 1
            return plain(*arguments)

        monkeypatch.setattr(Drive, name, counting)

    count("receiver")
    count("stage")
    return counts


def head(name, length, *lines, method="PUT"):
    lines = [f"{method} /{DEVICE}/7/a/c/{name} HTTP/1.1", "Host: a", f"X-Timestamp: {time.time():.5f}", *lines]
    if method == "PUT":
        lines += ["Content-Type: text/plain", f"Content-Length: {length}"]
    return "\r\n".join([*lines, "", ""]).encode()


def answer(connection):
    response = http.client.HTTPResponse(connection)
    response.begin()
    return response.status, response.read(), response.getheader("ETag", "").strip('"')


def put(connection, name, body, *lines):
    connection.sendall(head(name, len(body), *lines) + body)
    return answer(connection)


def get(connection, name):
    connection.sendall(head(name, 0, method="GET"))
    return answer(connection)


@pytest.mark.parametrize("size", [262_145, 1_000_003, 9_000_000])
def test_bodies_come_whole_and_the_connection_goes_on(serves, counted, size):
    def client(address):
        bodies = [os.urandom(size) for _ in range(3)]
        with socket.create_connection(address) as connection:
            for body in bodies:
                assert put(connection, "o", body)[::2] == (201, md5(body).hexdigest())
                assert get(connection, "o")[:2] == (200, body)

    serves().do(client)
    assert counted == {"receiver": 3, "stage": 0}


def test_a_client_is_told_to_go_on(serves, counted):
    body = os.urandom(500_000)

    def client(address):
        with socket.create_connection(address) as connection:
            for _ in range(2):
                connection.sendall(head("o", len(body), "Expect: 100-continue"))
                assert connection.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
                connection.sendall(body)
                assert answer(connection)[0] == 201
            assert get(connection, "o")[:2] == (200, body)

    serves().do(client)
    assert counted["stage"] == 0


def test_what_follows_a_body_is_the_next_request(serves, counted):
    body = os.urandom(300_000)

    def client(address):
        with socket.create_connection(address) as connection:
            connection.sendall(head("a", len(body)) + body + head("b", len(body)) + body)
            assert [answer(connection)[0] for _ in range(2)] == [201, 201]
            assert get(connection, "b")[:2] == (200, body)

    serves().do(client)
    assert counted["stage"] == 0


def test_a_client_that_goes_away_leaves_nothing(serves, own, counted):
    def client(address):
        for sent in (1, 70_000, 999_999):
            with socket.create_connection(address) as connection:
                connection.sendall(head("o", 1_000_000) + bytes(sent))
                connection.shutdown(socket.SHUT_WR)
                assert answer(connection)[0] == 499
        with socket.create_connection(address) as connection:
            assert get(connection, "o")[0] == 404

    serves().do(client)
    assert counted == {"receiver": 3, "stage": 0}


def end_of(connection):
    """Whether nothing comes but the end, however it comes."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def test_a_slow_client_is_waited_for_and_one_that_stops_is_not(serves, counted):
    """Of a body, something has to come in each `client_timeout`, and not all of it."""
    body = os.urandom(400_000)

    def slow(address, pause):
        try:
            with socket.create_connection(address) as connection:
                connection.sendall(head("o", len(body)))
                for at in range(0, len(body), 40_000):
                    connection.sendall(body[at:at + 40_000])
                    time.sleep(pause)
                status = answer(connection)[0]
                assert status != 201 or get(connection, "o")[:2] == (200, body)
                return status
        except ConnectionError:
            return 408

    def stops(address):
        with socket.create_connection(address) as connection:
            connection.sendall(head("o", len(body)) + body[:50_000])
            assert answer(connection)[0] == 408
            assert end_of(connection)

    # On a machine that stands still, nothing may come for longer than that.
    for tries, seconds in enumerate((6, 24, 96), 1):
        status = serves(client_timeout=str(seconds)).do(slow, seconds / 7.5)
        if status != 408:
            break
    assert status == 201
    serves(client_timeout="2").do(stops)
    assert counted == {"receiver": tries + 1, "stage": 0}


def test_a_body_that_was_given_up_is_not_taken_for_requests(serves, own, monkeypatch):
    """What comes of it behind the answer says DELETE again and again."""
    served = serves()
    asked, lost, plain_call = [], [], ObjectController.__call__

    def call(self, environ, start_response):
        asked.append(environ["REQUEST_METHOD"])
        return plain_call(self, environ, start_response)

    def loses(self):
        lost.append(self)
        raise Unavailable("unreachable", "as if the daemon had died")

    monkeypatch.setattr(ObjectController, "__call__", call)
    request = head("o", 0, method="DELETE")

    def client(address):
        with socket.create_connection(address) as connection:
            assert put(connection, "o", bytes(300_000))[0] == 201
        # A daemon that has died takes nothing any more.
        monkeypatch.setattr(Handing, "hand", lambda *arguments: None)
        monkeypatch.setattr(Handing, "news", loses)
        for _ in range(10):
            with socket.create_connection(address) as connection:
                connection.sendall(head("o", 1 << 30) + request)
                try:
                    for _ in range(5000):
                        connection.sendall(request)
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(65536):
                        pass
                except ConnectionError:
                    pass
        # None of the requests that were given up is still under way then.
        while len(lost) < 10:
            time.sleep(0.01)
        monkeypatch.undo()
        with socket.create_connection(address) as connection:
            assert get(connection, "o")[0] == 200

    served.do(client)
    assert asked == ["PUT"] * 11, "and none out of a body"


def test_the_drive_may_take_longer_than_a_client(serves, own, monkeypatch):
    """But no longer than `zonestore_timeout`."""
    body = os.urandom(500_000)
    news = Handing.news
    waits = []

    def busy(self):
        if waits:
            eventlet.sleep(waits.pop())
            return {"passed": 0, "busy": True}
        return news(self)

    monkeypatch.setattr(Handing, "news", busy)

    def client(address):
        with socket.create_connection(address) as connection:
            waits.extend([4] * 3)
            assert put(connection, "o", body)[0] == 201
            waits.extend([0] * 3)
            clock = itertools.count(step=50)
            monkeypatch.setattr(handed_body, "time", types.SimpleNamespace(monotonic=lambda: next(clock)))
            assert put(connection, "p", body)[0] in (500, 503)
        # Last: a reader of data asks for news, too, and would take the waits of the PUT that follows.
        waits.clear()
        with socket.create_connection(address) as connection:
            assert get(connection, "o")[:2] == (200, body)

    serves(client_timeout="10").do(client)


def test_a_refusal_leaves_the_connection_behind_the_body(serves, monkeypatch):
    plain = Drive.receiver

    def asks_wrongly(self, place):
        handing, question = plain(self, place)
        return handing, {**question, "policy": "none"}

    body = os.urandom(2_000_000)

    def client(address):
        with socket.create_connection(address) as connection:
            monkeypatch.setattr(Drive, "receiver", asks_wrongly)
            assert put(connection, "o", body)[0] == 500
            monkeypatch.setattr(Drive, "receiver", plain)
            assert put(connection, "o", body)[0] == 201
            assert get(connection, "o")[:2] == (200, body)

    serves().do(client)


def test_a_daemon_that_dies_fails_the_request_alone(serves, own, monkeypatch):
    body = os.urandom(3_000_000)
    handed, plain = threading.Event(), Handing.hand

    def hand(*arguments):
        plain(*arguments)
        handed.set()

    monkeypatch.setattr(Handing, "hand", hand)

    def client(address):
        with socket.create_connection(address) as connection:
            connection.sendall(head("o", len(body)) + body[:2_000_000])
            assert handed.wait(600)
            own.daemon.stop(signal.SIGKILL)
            assert answer(connection)[0] in (500, 503)
        own.daemon.start()
        with socket.create_connection(address) as connection:
            assert get(connection, "o")[0] == 404
            assert put(connection, "o", body)[0] == 201
            assert get(connection, "o")[:2] == (200, body)

    serves().do(client)


@pytest.mark.parametrize("why", ["told so", "older daemon"])
def test_bodies_come_through_the_server_otherwise(serves, counted, monkeypatch, why):
    body = os.urandom(1_000_000)

    def client(address):
        with socket.create_connection(address) as connection:
            assert put(connection, "o", body)[::2] == (201, md5(body).hexdigest())
            assert get(connection, "o")[:2] == (200, body)

    if why == "told so":
        serves(zonestore_receive_directly="no").do(client)
    else:
        monkeypatch.setattr(Drive, "receiver", lambda self, place: None)
        serves().do(client)
    assert counted["stage"] == 1


def test_a_chunked_body_comes_through_the_server(serves, counted):
    body = os.urandom(300_000)

    def client(address):
        connection = http.client.HTTPConnection(*address)
        headers = {"X-Timestamp": f"{time.time():.5f}", "Content-Type": "text/plain", "Transfer-Encoding": "chunked"}
        connection.request("PUT", f"/{DEVICE}/7/a/c/o", iter([body[:1000], body[1000:]]), headers, encode_chunked=True)
        assert connection.getresponse().status == 201

    serves().do(client)
    assert counted == {"receiver": 0, "stage": 1}
