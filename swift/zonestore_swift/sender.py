"""Hands a socket to the drive daemon, which sends opened data into it: so the bytes of a download do not pass this process."""

import json
import socket

from zonestore_swift.errors import refusal

PROTOCOL = "zonestore-sending"
LENGTH = 4


class Sender:
    """A connection that has left HTTP, for one socket. Whoever drops it without `send` must `close` it."""

    def __init__(self, transport, pool, connection):
        self._transport = transport
        self._pool = pool
        self._connection = connection

    def send(self, held, to):
        """How many bytes of the opened data the socket with this descriptor took. Raises a `Refused`.

        Where something was sent and this is not all, the socket is closed for both sides.
        """
        message = json.dumps({"opened": held}).encode()
        with self._transport.closing_on_error(self._connection):
            # eventlet's sockets have no `sendmsg`. The message finds room in the socket's buffer, where nothing else waits.
            plain = getattr(self._connection.sock, "fd", self._connection.sock)
            socket.send_fds(plain, [len(message).to_bytes(LENGTH, "little") + message], [to])
            answer = b""
            # An empty frame says that it goes on.
            while not answer:
                answer = self._frame()
        self.close()
        said = json.loads(answer)
        if "sent" not in said:
            raise refusal(said["kind"], said["message"])
        return said["sent"]

    def _frame(self):
        return self._exactly(int.from_bytes(self._exactly(LENGTH), "little"))

    def _exactly(self, count):
        got = b""
        while len(got) < count:
            piece = self._connection.sock.recv(count - len(got))
            if not piece:
                raise ConnectionResetError("it has closed the connection")
            got += piece
        return got

    def close(self):
        self._pool.give(self._connection)
