"""The data of an opened object as what Swift's readers take for an open file: `read`, `seek`, `tell`, `close`.

Short data came with `open`; longer data are streamed, from the position of the first read until the bound. A stream that breaks is
begun anew from a newly opened object, as long as that has the same data file: so a restart of the daemon between two pieces does not end
a download, and damage is told apart from a lost connection. Nobody waits for a daemon that is away: the proxy goes on with another copy.

Whoever drops it without `close` gives the data up all the same, as an open file would be closed: Swift's ssync receiver opens objects only
to look at them (`_check_local`).
"""

import errno
import json
import sys

from swift.common.concurrency import spawn_n

from zonestore_swift.errors import Damaged, Gone, Refused, Unavailable
from zonestore_swift.handing import raise_problem
from zonestore_swift.streams import Broken


class HeldData:
    # Where `__init__` has not come to its end.
    _held = _stream = _sender = None

    def __init__(self, drive, opened, reopen):
        """`reopen` gives the object's present state as an `Opened` that holds its data, or raises a `Refused`. It must know nothing of who
        owns this, or both would stay until the next collection of cycles."""
        self._drive = drive
        self._reopen = reopen
        self._name = opened.data_file
        self._held = opened.held
        self._first = opened.first
        self.size = opened.size
        self._position = 0
        self._bound = opened.size
        self._stream = None
        self._stream_end = None
        # Several ranges are read from one id.
        self.many_ranges = False

    def fileno(self):
        """Swift's reader wants a descriptor only to drop the page cache, which is not ours to drop."""
        return -1

    def tell(self):
        return self._position

    def seek(self, position):
        if position != self._position:
            self._position = position
            self._end_stream()

    def bound(self, end):
        """Nothing from `end` on will be read. None takes the bound away."""
        self._bound = self.size if end is None else min(end, self.size)
        if self._stream_end != self._bound:
            self._end_stream()

    def read(self, count):
        """At most `count` bytes; none at the bound. Raises OSError: EIO means that the object is damaged."""
        count = min(count, self._bound - self._position)
        if count <= 0:
            return b""
        piece = self._first[self._position:self._position + count]
        if not piece:
            piece = self._streamed(count)
        self._position += len(piece)
        return piece

    def can_send(self):
        """Whether the daemon can be handed a socket to send all of the data into: data that came with `open` are here already."""
        if self._held is None or self._position:
            return False
        if self._sender is None:
            self._sender = self._drive.sender()
        return self._sender is not None

    def send(self, to):
        """Behind `can_send`: how many bytes the socket with this descriptor took. Raises OSError as `read` does.

        Where something was sent and that is not all, the socket is closed for both sides.
        """
        sender, self._sender = self._sender, None
        try:
            sender.hand(json.dumps({"opened": self._held}).encode(), to)
            news = sender.news()
            sender.give_back()
            raise_problem(news)
            self._held = None
            return news["sent"]
        except Damaged as error:
            raise OSError(errno.EIO, str(error)) from error
        except Refused as error:
            raise OSError(errno.EPIPE, f"sending was broken off: {error}") from error

    def _streamed(self, count):
        breaks = 0
        while True:
            try:
                if self._stream is None:
                    self._begin_stream()
                piece = self._stream.read(count)
                if piece:
                    return piece
                raise Broken("the data ended early")
            except Damaged as error:
                raise OSError(errno.EIO, str(error)) from error
            except (Broken, Gone, Unavailable) as error:
                self._end_stream()
                breaks += 1
                if breaks > 2:
                    raise OSError(errno.EPIPE, f"reading was broken off: {error}") from error
                self._hold_again()

    def _begin_stream(self):
        if self._held is None:
            self._hold_again()
        last = not self.many_ranges
        self._stream = self._drive.download(self._held, self._position, self._bound, last)
        self._stream_end = self._bound
        if last:
            self._held = None

    def _end_stream(self):
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _hold_again(self):
        self._forget()
        try:
            opened = self._reopen()
        except Damaged as error:
            raise OSError(errno.EIO, str(error)) from error
        except Refused as error:
            raise OSError(errno.EPIPE, str(error)) from error
        self._held = opened.held
        if opened.data_file != self._name or opened.held is None:
            raise OSError(errno.ESTALE, f"{self._name} was replaced while its data were read")

    def _forget(self):
        held, self._held = self._held, None
        if held is not None:
            _forget(self._drive, held)

    def close(self):
        self._end_stream()
        self._end_sender()
        self._forget()

    def _end_sender(self):
        # One that was not used. It does not go back: the collector of cycles comes here in any thread, and pools are of one thread each.
        if self._sender is not None:
            self._sender.close()
            self._sender = None

    def __del__(self):
        self._end_stream()
        self._end_sender()
        if self._held is not None and not sys.is_finalizing():
            # This may run anywhere, in eventlet's hub too, where nothing may wait for an answer: a green thread does.
            spawn_n(_forget, self._drive, self._held)


def _forget(drive, held):
    try:
        drive.forget_opened(held)
    except Refused:
        # The daemon forgets by itself what nobody reads.
        pass
