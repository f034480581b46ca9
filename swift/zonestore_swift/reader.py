"""Reading an object. What is checked while reading, and what an error means, is Swift's own code."""

import errno

from swift.obj import diskfile


class ZonedReader(diskfile.BaseDiskFileReader):
    """Reads `HeldData`, where Swift reads an open file."""

    def _drop_cache(self, fd, offset, length):
        """The daemon decides what it caches."""

    def can_zero_copy_send(self):
        return False

    def app_iter_range(self, start, stop):
        """Asks the daemon for no more than the range."""
        self._fp.seek(start or 0)
        self._fp.bound(stop)
        wanted = (self._obj_size if stop is None else min(stop, self._obj_size)) - self._fp.tell()
        whole = self._fp.tell() + wanted == self._obj_size
        try:
            if wanted <= 0 and not whole:
                return
            for piece in self:
                wanted -= len(piece)
                yield piece
                # At the end of the data Swift has to see that end, for it then compares checksums.
                if wanted <= 0 and not whole:
                    break
        finally:
            if not self._suppress_file_closing:
                self.close()

    def app_iter_ranges(self, ranges, content_type, boundary, size):
        if self._fp is not None:
            self._fp.many_ranges = True
        yield from super().app_iter_ranges(ranges, content_type, boundary, size)


class Reader(diskfile.DiskFileReader, ZonedReader):
    def can_zero_copy_send(self):
        """The daemon compares its checksums, and Swift's own is compared only by who reads here."""
        return self.manager.sends_directly and not self._etag_validate_frac and self._fp.can_send()

    def zero_copy_send(self, wsockfd):
        self._started_at_0 = True
        try:
            self._bytes_read = self._fp.send(wsockfd)
            self._read_to_eof = self._bytes_read == self._obj_size
        except OSError as error:
            if error.errno == errno.EIO:
                self._quarantine(str(error))
            raise
        finally:
            self.close()


class ECReader(diskfile.ECDiskFileReader, ZonedReader):
    """Besides, Swift looks at each fragment's own checksum."""
