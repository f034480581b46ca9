"""Signed requests are answered while a crowd is connected that asks for nothing, or ever so slowly.

Prints how long they take beside it and by themselves; nothing is asserted of that, for it depends on the machine."""

import multiprocessing
import resource
import socket
import time

import pytest

from signer import Signer
from zonestore import TIMEOUT

IDLE, SLOW, ASKED = 2000, 200, 2000
MIB = 1 << 20


@pytest.fixture(autouse=True)
def many_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = IDLE + SLOW + 500
    if hard < wanted:
        pytest.skip(f"only {hard} files may be open")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def percentile(times, share):
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


def ask(server):
    """Signed reads, one after the other; how long each took."""
    sign, times = Signer(server), []
    for _ in range(ASKED):
        start = time.monotonic()
        status, _, body = sign.request("GET", "/photos/k")
        assert (status, body) == (200, b"x" * 1000)
        times.append(time.monotonic() - start)
    return times


class Crowd:
    """Clients that connect, and come again within a second when they are sent away; a process of their own."""

    def __init__(self, port):
        self.port = port
        # Slow ones have signed their request: each sends a byte of its body now and then.
        self.sockets = [self.connect(number) for number in range(IDLE + SLOW)]

    def connect(self, number):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT)
        if number >= IDLE:
            path = f"/photos/slow-{number}"
            headers = Signer(self).headers("PUT", path, payload="UNSIGNED-PAYLOAD")
            lines = [f"PUT {path} HTTP/1.1", f"content-length: {MIB}"]
            lines += [f"{name}: {value}" for name, value in headers.items()]
            connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        connection.setblocking(False)
        return connection

    def go_on(self):
        """Until it is ended."""
        while True:
            time.sleep(1)
            for number, connection in enumerate(self.sockets):
                try:
                    if number >= IDLE:
                        connection.send(b"x")
                    if connection.recv(4096) == b"":
                        raise ConnectionError
                except BlockingIOError:
                    pass
                except OSError:
                    connection.close()
                    self.sockets[number] = self.connect(number)


def crowd(port, is_there):
    crowd = Crowd(port)
    is_there.set()
    crowd.go_on()


def test_signed_requests_are_answered_in_a_crowd(make_server):
    server = make_server()
    s3 = server.client()
    s3.create_bucket(Bucket="photos")
    s3.put_object(Bucket="photos", Key="k", Body=b"x" * 1000)
    quiet = ask(server)
    apart = multiprocessing.get_context("spawn")
    is_there = apart.Event()
    others = apart.Process(target=crowd, args=(server.port, is_there), daemon=True)
    others.start()
    try:
        assert is_there.wait(TIMEOUT)
        crowded = ask(server)
        assert others.is_alive()
    finally:
        others.kill()
        others.join()
    assert server.alive()
    assert [one["Key"] for one in s3.list_objects_v2(Bucket="photos")["Contents"]] == ["k"]
    alone, beside = percentile(quiet, 0.99), percentile(crowded, 0.99)
    print(
        f"\n{IDLE} idle and {SLOW} slow clients: p99 {beside * 1000:.1f} ms beside {alone * 1000:.1f} ms by themselves,"
        f" {beside / alone:.1f} times; median {percentile(crowded, 0.5) * 1000:.1f} beside {percentile(quiet, 0.5) * 1000:.1f} ms"
    )
