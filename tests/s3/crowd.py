"""A crowd of clients that ask for nothing, or ever so slowly, and how long others wait beside it."""

import multiprocessing
import resource
import socket
import time

from signer import Signer
from zonestore import TIMEOUT

IDLE, SLOW = 2000, 200
MIB = 1 << 20


def allow_files():
    """Whether so many connections may be open; they may from then on."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = IDLE + SLOW + 500
    if hard >= wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    return hard >= wanted


def percentile(times, share):
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


def ask(server, count, again=None, source=None):
    """Signed reads, one after the other, from the address `source`; how long each took. What is refused goes to `again`,
    if that is a list, and is asked once more in the same time."""
    sign, times = Signer(server, source=source), []
    while len(times) < count:
        start = time.monotonic()
        while (why := refusal(sign)) and again is not None:
            again.append(why)
        assert why is None, why
        times.append(time.monotonic() - start)
    return times


def refusal(sign):
    """Why a read was not answered, if it was not."""
    try:
        status, _, body = sign.request("GET", "/photos/k")
    except OSError as error:
        return repr(error)
    return None if (status, body) == (200, b"x" * 1000) else f"{status} {body}"


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


def stay(port, is_there):
    crowd = Crowd(port)
    is_there.set()
    crowd.go_on()


class Beside:
    """The crowd, in a process of its own, for as long as this is entered."""

    def __init__(self, server):
        apart = multiprocessing.get_context("spawn")
        self.is_there = apart.Event()
        self.process = apart.Process(target=stay, args=(server.port, self.is_there), daemon=True)

    def __enter__(self):
        self.process.start()
        assert self.is_there.wait(TIMEOUT)
        return self.process

    def __exit__(self, *_):
        self.process.kill()
        self.process.join()
