"""HTTP calls to the drive daemon behind one socket."""

import collections
import http.client
import json
import random
import time

from swift.common.concurrency import sleep

from zonestore_swift.errors import Busy, Refused, refusal
from zonestore_swift.handing import Handing
from zonestore_swift.pool import Pool
from zonestore_swift.streams import Download, Upload

BUSY_WAITS = (0.05, 0.1, 0.2, 0.4, 0.8)

# While it goes on with a socket, the daemon says so twice a second.
LEAST_TIMEOUT = 5.0

# A daemon that takes no sockets, of an earlier version, is not asked for so many seconds.
NO_SOCKETS_FOR = 60.0

JSON = {"Content-Type": "application/json"}

# What a connection raises that the daemon closed before it answered.
_BEFORE_ANSWER = (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError)


class Transport:
    """`lost` is called when the daemon could not be reached."""

    def __init__(self, path, connect_timeout, timeout, lost=lambda: None):
        self.path = path
        self._lost = lost
        self.pool = Pool(path, connect_timeout, timeout)
        # Connections over which sockets are handed to the daemon, by the drive's call for it.
        self._handing = collections.defaultdict(lambda: Pool(path, connect_timeout, max(timeout, LEAST_TIMEOUT)))
        self._hands_none_until = collections.defaultdict(float)

    def call(self, method, target, body=None, repeatable=True, headers=None):
        """The answer's bytes. Raises a `Refused`.

        A call that a stale connection has swallowed is sent again once, on a new connection, if `repeatable`.
        """
        for wait in BUSY_WAITS:
            try:
                return self._call(method, target, body, headers or {}, repeatable)
            except Busy:
                sleep(wait * (0.5 + random.random()))
        return self._call(method, target, body, headers or {}, repeatable)

    def _call(self, method, target, body, headers, repeatable):
        connection, response = self._ask(method, target, body, headers, repeatable)
        return self.finish(connection, response)

    def call_with(self, method, target, question):
        """The answer's bytes to a question in JSON."""
        return self.call(method, target, json.dumps(question).encode(), headers=JSON)

    def ask(self, method, target, question=None, body=None, repeatable=True):
        """The answer read as JSON, to a question in JSON or to a body of bytes."""
        if question is not None:
            return json.loads(self.call_with(method, target, question))
        return json.loads(self.call(method, target, body, repeatable))

    def download(self, target, headers):
        """A stream of bytes from the daemon. Raises a `Refused`."""
        connection, response = self._ask("GET", target, None, headers, True)
        if response.status >= 300:
            self.finish(connection, response)
        return Download(self.pool, connection, response)

    def handing(self, target, protocol):
        """What hands a socket to the daemon. None if the daemon does not take any, or is away."""
        if time.monotonic() < self._hands_none_until[target]:
            return None
        pool = self._handing[target]
        connection, new = pool.take()
        try:
            if new:
                with self.closing_on_error(connection):
                    connection.request("GET", target, headers={"Connection": "Upgrade", "Upgrade": protocol})
                    if connection.getresponse().status != http.client.SWITCHING_PROTOCOLS:
                        connection.close()
                        self._hands_none_until[target] = time.monotonic() + NO_SOCKETS_FOR
                        return None
        except Refused:
            return None
        return Handing(self, pool, connection)

    def upload(self, target):
        """A stream of bytes to the daemon, whose length nobody has to know."""
        return Upload(self, target)

    def finish(self, connection, response):
        """The whole answer. Raises a `Refused`."""
        with self.closing_on_error(connection):
            answer = response.read()
        self.pool.give(connection)
        if response.status >= 300:
            raise refused(response.status, answer)
        return answer

    def _ask(self, method, target, body, headers, repeatable):
        connection, new = self.pool.take()
        with self.closing_on_error(connection):
            try:
                connection.request(method, target, body=body, headers=headers)
                return connection, connection.getresponse()
            except _BEFORE_ANSWER:
                if new or not repeatable:
                    raise
                connection.close()
                connection.request(method, target, body=body, headers=headers)
                return connection, connection.getresponse()

    def closing_on_error(self, connection):
        return _Closing(self, connection)

    def unreachable(self, error):
        self._lost()
        said = str(error) or type(error).__name__
        return refusal("unreachable", f"the drive daemon at {self.path} does not answer: {said}")


class _Closing:
    """Nothing half done goes back to the pool. Swift's timeouts come from outside and at any point, so this looks at every exception."""

    def __init__(self, transport, connection):
        self._transport = transport
        self._connection = connection

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is None:
            return
        self._connection.close()
        if issubclass(kind, (OSError, http.client.HTTPException)):
            raise self._transport.unreachable(error) from error


def refused(status, answer):
    """The exception for an answer that is no success."""
    try:
        said = json.loads(answer)
        return refusal(said["kind"], said["message"], status, said.get("file"))
    except (ValueError, KeyError, TypeError):
        return refusal("failed", f"the drive daemon answered {status} without a reason", status)
