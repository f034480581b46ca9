"""Which drives are served, and by which socket."""

import os
import time

from swift.common.concurrency import sleep

from zonestore_swift.drive import Drive
from zonestore_swift.errors import Refused
from zonestore_swift.transport import Transport

DEFAULT_SOCKET = "/run/zonestore/daemon.sock"

# For so many seconds an answer about a drive is believed, unless the daemon is lost. Every request of the object server asks.
SERVED_FOR = 5.0
UNSERVED_FOR = 1.0
# A daemon that takes longer to say which drives it serves counts as away. The kernel accepts connections for one that hangs.
ANSWER_SECONDS = 3.0
WAIT_SECONDS = 0.02


class Drives:
    """`socket` may contain `{device}`: then each drive has a daemon of its own."""

    def __init__(self, socket, devices, connect_timeout, timeout, clock=time.monotonic):
        self._socket = socket
        self._devices = devices
        self._connect_timeout, self._timeout, self._clock = connect_timeout, timeout, clock
        # By socket, and none for one that is not there: requests name devices as they like.
        self._transports = {}
        # The drives that a daemon serves, whether each is full, and when it said so.
        self._known = {}
        # Who asks a daemon now.
        self._asking = {}

    def drive(self, device):
        return Drive(self._transport(self._path(device), self._timeout), device)

    def _path(self, device):
        return self._socket.replace("{device}", device)

    def _transport(self, path, timeout):
        found = self._transports.get((path, timeout))
        if found is None:
            found = Transport(path, self._connect_timeout, timeout, lost=lambda: self._lose(path))
            if os.path.exists(path):
                self._transports[path, timeout] = found
        return found

    def _lose(self, path):
        """That it does not answer is known for as long as it was."""
        if self._known.get(path, [{}])[0]:
            self._known.pop(path, None)

    def is_served(self, device):
        if not device or "/" in device:
            return False
        path, me = self._path(device), object()
        until = self._clock() + self._connect_timeout + ANSWER_SECONDS
        while (served := self._said(path, device)) is None:
            if not os.path.exists(path):
                return False
            if self._asking.setdefault(path, me) is me:
                try:
                    drives = self._ask(path)
                    self._known[path] = drives, self._clock()
                finally:
                    del self._asking[path]
                return device in drives
            if self._clock() > until:
                return False
            # Whoever asks may be in another OS thread: green threads of both have no lock in common.
            sleep(WAIT_SECONDS)
        return served

    def is_full(self, device):
        """Whether the daemon has said so a short time ago. It is not asked for this."""
        drives, at = self._known.get(self._path(device), ({}, float("-inf")))
        return drives.get(device, False) and self._clock() < at + SERVED_FOR

    def _said(self, path, device):
        """None if the answer is too old, or there is none."""
        drives, at = self._known.get(path, ({}, float("-inf")))
        served = device in drives
        return served if self._clock() < at + (SERVED_FOR if served else UNSERVED_FOR) else None

    def _ask(self, path):
        try:
            transport = self._transport(path, min(self._timeout, ANSWER_SECONDS))
            # A daemon of an earlier version does not say how full they are.
            return {row["device"]: row.get("full", False) for row in transport.ask("GET", "/v1/drives")}
        except Refused:
            return {}

    def names(self):
        """Of the drives that have a directory, or that one daemon serves."""
        if "{device}" in self._socket:
            return sorted(os.listdir(self._devices)) if os.path.isdir(self._devices) else []
        return sorted(self._ask(self._socket))

    def all(self):
        """Names of the drives that are served now."""
        return [name for name in self.names() if self.is_served(name)]
