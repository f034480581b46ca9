"""Data that is longer than one call: to the daemon in pieces of unknown number, from it until its end."""

import http.client
import json

from swift.common.concurrency import sleep

# A Unix socket is nearly always ready, so green threads that wait for others would never run: after so many bytes they may.
YIELD_EVERY = 256 * 1024


class Turns:
    """Lets other green threads run once in a while."""

    def __init__(self):
        self._bytes = 0

    def passed(self, count):
        self._bytes += count
        if self._bytes >= YIELD_EVERY:
            self._bytes = 0
            sleep(0)


class Upload:
    """A request's body in pieces. Whoever drops it must `close` it: the daemon then forgets what it had."""

    def __init__(self, transport, target):
        self._transport = transport
        self._turns = Turns()
        self._connection, _ = transport.pool.take()
        with transport.closing_on_error(self._connection):
            self._connection.putrequest("POST", target)
            self._connection.putheader("Transfer-Encoding", "chunked")
            self._connection.endheaders()

    def send(self, pieces):
        """One chunk on the wire made of these pieces."""
        length = sum(len(piece) for piece in pieces)
        if not length:
            return
        self._send(b"".join((b"%x\r\n" % length, *pieces, b"\r\n")))
        self._turns.passed(length)

    def _send(self, data):
        try:
            self._connection.send(data)
        except (BrokenPipeError, ConnectionResetError):
            # Who refuses says so without waiting for the end.
            self._answer()
            raise
        except BaseException:
            self.close()
            raise

    def finish(self):
        """The daemon's answer. Raises a `Refused`."""
        self._send(b"0\r\n\r\n")
        return json.loads(self._answer())

    def _answer(self):
        connection, self._connection = self._connection, None
        with self._transport.closing_on_error(connection):
            response = connection.getresponse()
        return self._transport.finish(connection, response)

    def close(self):
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class Broken(OSError):
    """The daemon closed a stream before its end."""


class Download:
    """A response's body. Read to its end, the connection goes back to the pool; dropped earlier, it is closed."""

    def __init__(self, pool, connection, response):
        self._pool = pool
        self._connection = connection
        self._response = response
        self._turns = Turns()

    def read(self, count):
        """At most `count` bytes, fewer only at the end. Raises `Broken`."""
        try:
            piece = self._response.read(count)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Broken(str(error) or type(error).__name__) from error
        except BaseException:
            self.close()
            raise
        if self._response.isclosed():
            self._give_back()
        self._turns.passed(len(piece))
        return piece

    def _give_back(self):
        if self._connection is not None:
            self._pool.give(self._connection)
            self._connection = None

    def close(self):
        if self._connection is not None:
            self._connection.close()
            self._connection = None
