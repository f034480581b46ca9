"""Writing an object, its metadata or its tombstone: data is staged with the daemon, then one call makes it an object."""

import contextlib
import time

from swift.common.exceptions import DiskFileError, DiskFileNoSpace
from swift.common.utils import Timestamp
from swift.obj import diskfile

from zonestore_swift import metadata as frames
from zonestore_swift import part_power
from zonestore_swift.errors import NoPolicy, NoSpace, NotFound, Refused
from zonestore_swift.handed_body import HandedBody, Passed, can_be_handed


# A drive that is full takes no data of so many bytes. What is shorter may find a place, beside the metadata or in what is left.
FULL_BYTES = 64 * 1024
# Seconds after which what waits is sent: while all its places are taken, the daemon gives a body up that brings nothing for 5.
SEND_AFTER = 2


class ZonedWriter(diskfile.BaseDiskFileWriter):
    """Up to `small_bytes` of data wait here and travel with the metadata. What is longer goes to the daemon as it comes."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._is_open = False
        self._pieces = []
        self._waiting = 0
        self._upload = None
        self._handed = None
        self._sent_at = 0
        self._staged = None
        self._is_obsolete = False

    def open(self):
        if self._is_open:
            raise ValueError("DiskFileWriter is already open")
        part_power.refuse_write(self.next_part_power, self.logger)
        is_long = self._extension == ".data" and (self._size is None or self._size >= FULL_BYTES)
        if is_long and self._diskfile.is_on_full_drive():
            # Before the body comes, as in Swift: the proxy takes another drive for it then.
            raise NoSpace("no_space", f"the drive of {self._datadir} is full")
        self._is_open = True
        return self

    def handed(self, body):
        """What to read in place of a request's body. Where that can be, its bytes do not come here."""
        # Of shorter ones the daemon would hold a place for as long as the client takes.
        is_long = self._size is not None and self._size > max(self.manager.small_bytes, self.manager.send_bytes)
        if is_long and self.manager.receives_directly and can_be_handed(body, self._size):
            body = self._handed = HandedBody(body, self._receiver)
        return body

    def _receiver(self):
        self._diskfile.ensure_policy()
        return self._diskfile.receiver()

    def write(self, chunk):
        if not self._is_open:
            raise ValueError("Writer is not open")
        if not chunk:
            return
        if isinstance(chunk, Passed):
            self._upload_size += chunk
            return
        self._upload_size += len(chunk)
        # Callers may use their buffer again.
        self._pieces.append(bytes(chunk))
        self._waiting += len(chunk)
        is_late = self._upload is not None and time.monotonic() - self._sent_at >= SEND_AFTER
        if is_late or (self._upload_size > self.manager.small_bytes and self._waiting >= self.manager.send_bytes):
            self._send()

    def _send(self):
        if self._upload is None:
            self._diskfile.ensure_policy()
            self._upload = self._diskfile.stage(self._size)
        pieces, self._pieces, self._waiting = self._pieces, [], 0
        self._upload.send(pieces)
        self._sent_at = time.monotonic()

    def chunks_finished(self):
        self._end_handed()
        if self._staged is not None:
            return self._upload_size, self._staged["md5"]
        if self._upload is None and self._upload_size <= self.manager.small_bytes:
            # `put` may come without this call, so nothing is kept of it.
            digest = diskfile.md5(usedforsecurity=False)
            for piece in self._pieces:
                digest.update(piece)
            return self._upload_size, digest.hexdigest()
        self._stage()
        return self._upload_size, self._staged["md5"]

    def _end_handed(self):
        handed, self._handed = self._handed, None
        if handed is not None:
            handed.close()
            if handed.staged is not None:
                self._keep(handed.staged)

    def _stage(self):
        self._send()
        upload, self._upload = self._upload, None
        self._keep(upload.finish())

    def _keep(self, staged):
        self._staged = staged
        if self._staged["size"] != self._upload_size:
            raise DiskFileError(f"{self._upload_size} bytes were sent and {self._staged['size']} came")

    def _put(self, metadata, cleanup=True, *args, **kwargs):
        """The daemon removes what this replaces in the same transaction, so `cleanup` has nothing to say."""
        timestamp = Timestamp(metadata["X-Timestamp"])
        content_type_timestamp = metadata.get("Content-Type-Timestamp")
        if content_type_timestamp:
            content_type_timestamp = Timestamp(content_type_timestamp)
        name = self.manager.make_on_disk_filename(
            timestamp, self._extension, ctype_timestamp=content_type_timestamp, *args, **kwargs)
        metadata["name"] = self._name
        frame = frames.encode(metadata)
        if self._upload is not None:
            self._stage()
        try:
            self._put_file(name, frame)
        except NoPolicy:
            self._diskfile.ensure_policy(again=True)
            self._put_file(name, frame)
        self._put_succeeded = True

    def _put_file(self, name, frame):
        drive_object = self._diskfile.drive_object
        if self._staged is not None:
            put = drive_object.put_staged(name, frame, self._staged["staged"])
            self._staged = None
        else:
            put = drive_object.put(name, frame, b"".join(self._pieces) if self._extension == ".data" else None)
        self._is_obsolete = not put

    def close(self):
        self._is_open = False
        self._pieces = []
        with contextlib.suppress(DiskFileError):
            self._end_handed()
        if self._upload is not None:
            self._upload.close()
            self._upload = None
        staged, self._staged = self._staged, None
        if staged is not None:
            try:
                self._diskfile.drive.forget_staged(staged["staged"])
            except Refused as error:
                self.logger.debug("staged data stay until the daemon drops them: %s", error)


class Writer(diskfile.DiskFileWriter, ZonedWriter):
    pass


class ECWriter(diskfile.ECDiskFileWriter, ZonedWriter):
    def commit(self, timestamp):
        """Makes the fragment durable. One that newer durable data has replaced meanwhile counts as done."""
        if self._is_obsolete:
            return
        name = self.manager.make_on_disk_filename(timestamp, ".data", self._diskfile._frag_index)
        try:
            self._diskfile.drive_object.make_durable(name)
        except (NotFound, NoPolicy) as error:
            if not self._is_superseded(timestamp):
                raise self._not_durable(name, error, DiskFileError) from error
        except DiskFileNoSpace as error:
            raise self._not_durable(name, error, DiskFileNoSpace) from error

    def _is_superseded(self, timestamp):
        info = self.manager.get_ondisk_files(
            self._diskfile.drive_object.files(), self._datadir, frag_index=self._diskfile._frag_index, policy=self._diskfile.policy)
        tombstone = info.get("ts_info")
        if tombstone and tombstone["timestamp"] >= timestamp:
            return True
        return any(fragment["timestamp"] >= timestamp for fragment in info.get("durable_frag_set") or [])

    def _not_durable(self, name, error, kind):
        self.logger.error("%s in %s was not made durable: %s", name, self._datadir, error)
        return kind(f"Problem making data file durable {name} in {self._datadir} ({error})")
