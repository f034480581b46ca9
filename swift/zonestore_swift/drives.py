"""Which drives are served, and by which socket."""

import os
import time

from zonestore_swift.drive import Drive
from zonestore_swift.errors import Refused, Unavailable
from zonestore_swift.transport import Transport

DEFAULT_SOCKET = "/run/zonestore/daemon.sock"

# For so many seconds an answer about a drive is believed, unless the daemon is lost. Every request of the object server asks.
SERVED_FOR = 5.0
UNSERVED_FOR = 1.0


class Drives:
    """`socket` may contain `{device}`: then each drive has a daemon of its own."""

    def __init__(self, socket, devices, connect_timeout, timeout):
        self._socket = socket
        self._devices = devices
        self._timeouts = connect_timeout, timeout
        self._transports = {}
        self._known = {}

    def drive(self, device):
        return Drive(self._transport(device), device)

    def _transport(self, device):
        path = self._socket.replace("{device}", device)
        if path not in self._transports:
            self._transports[path] = Transport(path, *self._timeouts, lost=self._known.clear)
        return self._transports[path]

    def is_served(self, device):
        now = time.monotonic()
        served, until = self._known.get(device, (False, 0))
        if now >= until:
            served = self._ask(device)
            self._known[device] = served, now + (SERVED_FOR if served else UNSERVED_FOR)
        return served

    def _ask(self, device):
        if not device or "/" in device:
            return False
        try:
            return any(row["device"] == device for row in self._transport(device).ask("GET", "/v1/drives"))
        except Refused:
            return False

    def names(self):
        """Of the drives that have a directory, or that one daemon serves."""
        if "{device}" in self._socket:
            return sorted(os.listdir(self._devices)) if os.path.isdir(self._devices) else []
        try:
            return sorted(row["device"] for row in self._transport("").ask("GET", "/v1/drives"))
        except Unavailable:
            return []

    def all(self):
        """Names of the drives that are served now."""
        return [name for name in self.names() if self.is_served(name)]
