"""Idle connections to one socket, kept for the OS thread that made them.

Swift hashes suffixes in native threads (`tpool`), each with a hub of its own, so a connection must never change its thread. Green
threads of one OS thread share. After a fork the child starts with an empty pool: parent and child on one connection would mix answers.
"""

import os

from swift.common.concurrency import patcher

from zonestore_swift.connection import Connection

# eventlet makes the patched module's `local` one for each green thread.
_threading = patcher.original("threading")


class Pool:
    def __init__(self, path, connect_timeout, timeout, size=32):
        self._make = lambda: Connection(path, connect_timeout, timeout)
        self._size = size
        self._local = _threading.local()

    def _idle(self):
        local = self._local
        if getattr(local, "pid", None) != os.getpid():
            local.pid, local.idle = os.getpid(), []
        return local.idle

    def take(self):
        """A connection and whether it is new."""
        idle = self._idle()
        while idle:
            connection = idle.pop()
            if not connection.is_stale():
                return connection, False
            connection.close()
        return self._make(), True

    def give(self, connection):
        """Puts back a connection whose last answer was read to its end."""
        idle = self._idle()
        if connection.sock is not None and len(idle) < self._size:
            idle.append(connection)
        else:
            connection.close()
