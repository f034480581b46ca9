"""An HTTP connection to the drive daemon over a Unix socket."""

import http.client
import socket

from swift.common.concurrency import patcher

# Eventlet takes `poll` away from the module that it patches.
_select = patcher.original("select")

# One write of a large object's piece should not have to wait for the daemon's thread.
SEND_BUFFER = 1 << 20


class Connection(http.client.HTTPConnection):
    """Works with and without eventlet's monkey patching: `socket` is looked up when a connection is made."""

    def __init__(self, path, connect_timeout, timeout):
        super().__init__("localhost", timeout=timeout)
        self._path = path
        self._connect_timeout = connect_timeout

    def connect(self):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.settimeout(self._connect_timeout)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
            sock.connect(self._path)
            sock.settimeout(self.timeout)
        except BaseException:
            sock.close()
            raise
        self.sock = sock

    def is_stale(self):
        """Whether the daemon has closed this idle connection, or sent what nobody asked for."""
        poll = _select.poll()
        poll.register(self.sock.fileno(), _select.POLLIN)
        return bool(poll.poll(0))
