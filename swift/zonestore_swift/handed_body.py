"""The body of a PUT that the drive daemon takes from the client's socket itself."""

import contextlib
import json
import socket
import ssl
import time

from eventlet import wsgi

from zonestore_swift.errors import BrokenOff, refusal
from zonestore_swift.handing import raise_problem


class Passed(int):
    """So many bytes that the daemon has taken: `read` gives it in place of them."""


def can_be_handed(body, size):
    """Whether these are so many bytes on a plain socket, and nobody has read any."""
    return (isinstance(body, wsgi.Input) and not body.chunked_input and body.content_length == size and not body.position
            and not isinstance(body.get_socket(), ssl.SSLSocket))


class HandedBody:
    """In place of a body that can be handed over. `begin` gives the connection for it and the daemon's question, or None if the daemon
    takes no sockets: then the bytes are read here."""

    def __init__(self, body, begin):
        self._body = body
        self._begin = begin
        self._handing = None
        # Bytes of the body that the daemon shall take, and those that it said that it has.
        self._left = self._passed = 0
        self._busy_since = None
        # What the daemon answers at the end.
        self.staged = None

    def read(self, count):
        if self._begin is not None:
            return self._first()
        if self._handing is None:
            return b"" if self.staged else self._body.read(count)
        try:
            return self._next()
        except BaseException:
            # Swift's timeouts come from outside and at any point.
            self.close()
            raise

    def _first(self):
        """What the connection has brought already. The first byte comes when the client was told to go on, if it waits for that."""
        first = self._body.read(1)
        if first and self._body.position < self._body.content_length:
            first += self._body.read(len(self._body.rfile.peek()))
        begin, self._begin = self._begin, None
        begun = begin() if first else None
        if begun is None:
            return first
        self._handing, question = begun
        self._left = self._body.content_length - self._body.position
        message = json.dumps({**question, "bytes": self._left}).encode() + b"\n" + first
        try:
            self._handing.hand(message, self._body.get_socket().fileno())
        except BaseException:
            self.close()
            raise
        return Passed(len(first))

    def _next(self):
        """How many bytes more have passed. While the drive is waited for, that may be 0: Swift's wait for the client begins anew."""
        news = self._handing.news()
        passed = self._left if "staged" in news else news.get("passed", self._passed)
        came, self._passed = passed - self._passed, passed
        # Whoever reads what is left of the body goes on there.
        self._body.position += came
        if "staged" in news or "kind" in news:
            handing, self._handing = self._handing, None
            handing.give_back()
        if "staged" in news:
            self.staged = news
        elif news.get("busy"):
            self._wait_for_drive(came)
            return Passed(came)
        try:
            raise_problem(news)
        except BrokenOff as error:
            raise OSError(str(error)) from error
        return Passed(came) if came else b""

    def _wait_for_drive(self, came):
        now = time.monotonic()
        if came or self._busy_since is None:
            self._busy_since = now
        elif now - self._busy_since > self._handing.timeout:
            raise refusal("unreachable", f"the drive has taken nothing for {self._handing.timeout:g} seconds")

    def close(self):
        """Nobody knows how much of the body the daemon has taken, so nothing more is read from this connection: its next bytes would be
        taken for a request."""
        handing, self._handing = self._handing, None
        if handing is not None:
            handing.close()
            self._body.position = self._body.content_length
            self._body.rfile.close()
            # The daemon may not have noticed yet.
            with contextlib.suppress(OSError):
                self._body.get_socket().shutdown(socket.SHUT_RD)
