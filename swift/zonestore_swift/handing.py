"""Hands sockets to the drive daemon, which sends data into them or takes data from them: so the bytes of objects do not pass this process."""

import json
import socket

from zonestore_swift.errors import refusal

LENGTH = 4


class Handing:
    """A connection that has left HTTP, for one socket at a time. Whoever drops it before the last answer must `close` it."""

    def __init__(self, transport, pool, connection):
        self._transport = transport
        self._pool = pool
        self._connection = connection
        # Seconds for one answer.
        self.timeout = connection.timeout

    def hand(self, message, descriptor):
        """The socket with this descriptor, and what to do with it."""
        frame = len(message).to_bytes(LENGTH, "little") + message
        with self._transport.closing_on_error(self._connection):
            # eventlet's sockets have no `sendmsg`. Mostly the message finds room in the socket's buffer, where nothing else waits.
            plain = getattr(self._connection.sock, "fd", self._connection.sock)
            sent = socket.send_fds(plain, [frame], [descriptor])
            self._connection.sock.sendall(frame[sent:])

    def news(self):
        """What the daemon says next. Raises a `Refused`."""
        frame = b""
        with self._transport.closing_on_error(self._connection):
            # An empty frame says that it goes on.
            while not frame:
                frame = self._exactly(int.from_bytes(self._exactly(LENGTH), "little"))
            return json.loads(frame)

    def _exactly(self, count):
        got = b""
        while len(got) < count:
            piece = self._connection.sock.recv(count - len(got))
            if not piece:
                raise ConnectionResetError("it has closed the connection")
            got += piece
        return got

    def give_back(self):
        """Behind the last answer, or before anything was handed over."""
        self._pool.give(self._connection)

    def close(self):
        self._connection.close()


def raise_problem(news):
    """If it is one: raises a `Refused`."""
    if "kind" in news:
        raise refusal(news["kind"], news["message"])
