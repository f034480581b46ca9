"""An object as Swift's daemons see it, read from the drive daemon instead of from files.

`_datadir` and `_data_file` are the paths that Swift would use. Nothing lies there; they name the object in logs and in calls.
"""

import collections
import contextvars
import functools
import os
import time

from swift.common.exceptions import DiskFileCollision, DiskFileExpired
from swift.obj import diskfile

from zonestore_swift import metadata as frames
from zonestore_swift.errors import Damaged, Refused
from zonestore_swift.held_data import HeldData
from zonestore_swift.opened import Opened
from zonestore_swift.reader import ECReader, Reader
from zonestore_swift.writer import ECWriter, Writer


class ZonedDiskFile(diskfile.BaseDiskFile):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        place = self.manager.locate(self._datadir)
        self.drive = self.manager.drive(place.device)
        self.drive_object = self.drive.object(place.policy, place.partition, place.hash)
        self._opened = Opened.nothing()

    def ensure_policy(self, again=False):
        """Makes room for the policy on the drive."""
        self.manager.ensure_policy(self.manager.locate(self._datadir).device, self.policy, again)

    def is_on_full_drive(self):
        return self.manager.drives.is_full(self.manager.locate(self._datadir).device)

    def stage(self, size):
        return self.drive.stage(self.manager.locate(self._datadir), size)

    def receiver(self):
        return self.drive.receiver(self.manager.locate(self._datadir))

    def open(self, modernize=False, current_time=None):
        return self._open(current_time, self.manager.first_bytes, True)

    def read_metadata(self, current_time=None):
        # No data is wanted, so the daemon need not keep any for us.
        with self._open(current_time, 0, False):
            return self.get_metadata()

    def _opening(self, first_bytes, hold):
        """A call that asks the daemon, and keeps nothing of this object."""
        return functools.partial(self.drive_object.open, first_bytes, hold, *self._preferences())

    def _preferences(self):
        return ()

    def _open(self, current_time, first_bytes, hold):
        try:
            self._opened = self._opening(first_bytes, hold)()
        except Damaged as error:
            # Swift's ssync receiver goes on with what is left, which is nothing.
            self._ondisk_info = {}
            if error.file:
                raise self._quarantine(os.path.join(self._datadir, error.file), error.message)
            # A daemon of an earlier version names no file.
            raise self._quarantine_dir(self._datadir, error.message)
        try:
            info = self._get_ondisk_files(self._opened.files, self.policy)
            self._data_file = info.get("data_file")
            if not self._data_file:
                raise self._construct_exception_from_ts_file(**info)
            self._fp = HeldData(self.drive, self._opened, self._opening(0, True))
            # Swift opens a file here to read metadata from it, which we have; what it makes of them is its own.
            nothing = self._construct_from_data_file(**{**info, "data_file": os.devnull}, current_time=current_time)
            nothing.close()
        except BaseException:
            self._forget()
            raise
        return self

    def _forget(self):
        fp, self._fp = self._fp, None
        if fp is not None:
            fp.close()
        elif self._opened.held is not None:
            HeldData(self.drive, self._opened, None).close()

    def _read_and_validate_metadata(self, source, quarantine_filename=None, add_missing_checksum=False):
        name = os.path.basename(self._data_file if quarantine_filename == os.devnull else quarantine_filename)
        try:
            frame = self._opened.metadata[name]
        except KeyError:
            raise Refused("failed", (
                f"Swift chose {name} in {self._datadir}, and the drive daemon sent {sorted(self._opened.metadata)}: "
                f"their versions do not go together")) from None
        try:
            return frames.decode(frame)
        except frames.UnknownVersion as error:
            # A later version of this package wrote them: nothing is wrong with the object.
            raise Refused("unknown_version", f"{name} in {self._datadir}: {error}") from error
        except ValueError as error:
            raise self._quarantine(os.path.join(self._datadir, name), f"Exception reading metadata: {error}")

    def _verify_name_matches_hash(self, data_file):
        super()._verify_name_matches_hash(self._data_file)

    def _verify_data_file(self, data_file, fp, current_time):
        """What Swift checks, with the size that the daemon says."""
        metadata = self._metadata
        if "name" not in metadata:
            raise self._quarantine(self._data_file, "missing name metadata")
        if metadata["name"] != self._name:
            self._logger.error("Client path %s does not match path stored in object metadata %s", self._name, metadata["name"])
            raise DiskFileCollision("Client path does not match path stored in object metadata")
        delete_at = self._whole_number("X-Delete-At")
        now = time.time() if current_time is None else current_time
        if delete_at is not None and delete_at <= now and not self._open_expired:
            raise DiskFileExpired(metadata=metadata)
        length = self._whole_number("Content-Length")
        if length is None:
            raise self._quarantine(self._data_file, "missing content-length in metadata")
        if length != self._opened.size:
            raise self._quarantine(
                self._data_file, f"metadata content-length {length} does not match actual object size {self._opened.size}")
        self._content_length = length
        return length

    def _whole_number(self, key):
        try:
            return int(self._metadata[key]) if key in self._metadata else None
        except ValueError:
            raise self._quarantine(self._data_file, f"bad metadata {key.lower()} value {self._metadata[key]}") from None

    def reader(self, keep_cache=False, cooperative_period=0, etag_validate_frac=None, **kwargs):
        """Without a fraction (the auditor's way) the MD5 of a whole read is compared. The object server always gives one.

        There the daemon has compared its checksums of everything that it sent, so a fraction counts only if the
        configuration asks for it.
        """
        if etag_validate_frac is None:
            etag_validate_frac = 1
        elif not self.manager.validates_etags:
            etag_validate_frac = 0
        return super().reader(
            keep_cache=keep_cache, cooperative_period=cooperative_period, etag_validate_frac=etag_validate_frac, **kwargs)


class DiskFile(ZonedDiskFile, diskfile.DiskFile):
    reader_cls = Reader
    writer_cls = Writer


# Whether fragments are removed from a drive that is the home of another fragment. Swift's reconstructor does not tell a DiskFile.
AT_A_HOME = contextvars.ContextVar("at_a_home", default=False)


class ECDiskFile(ZonedDiskFile, diskfile.ECDiskFile):
    reader_cls = ECReader
    writer_cls = ECWriter

    def _preferences(self):
        return self._frag_index, self._frag_prefs

    def _get_ondisk_files(self, files, policy=None):
        """Swift's choice. Of the fragments that a preference leaves it takes the last of a set of integers, which is the
        highest only below 8; the daemon has chosen the highest, so no other one is left to Swift."""
        asked, self._frag_prefs = self._frag_prefs, self._highest_alone(files)
        try:
            return super()._get_ondisk_files(files, policy)
        finally:
            self._frag_prefs = asked

    def _highest_alone(self, files):
        if not self._frag_prefs:
            return self._frag_prefs
        there = collections.defaultdict(set)
        for name in files:
            if name.endswith(".data"):
                info = self.manager.parse_on_disk_filename(name, self.policy)
                there[info["timestamp"]].add(info["frag_index"])

        def alone(preference):
            left = there[preference["timestamp"]].difference(preference["exclude"])
            return {**preference, "exclude": [*preference["exclude"], *sorted(left)[:-1]]}
        return [alone(preference) for preference in self._frag_prefs]

    def purge(self, timestamp, frag_index, nondurable_purge_delay=0, meta_timestamp=None):
        """Removes what has been moved to its home. All of it stays if a POST has come meanwhile that would be left without data,
        unless this is the home of another fragment, which will be built here."""
        def goes(file):
            if file["ext"] == ".meta":
                return meta_timestamp is not None and file["timestamp"] <= meta_timestamp
            return file["timestamp"] == timestamp and (file["ext"] == ".ts" or file["frag_index"] == frag_index)

        there = {name: self.manager.parse_on_disk_filename(name, self.policy) for name in self.drive_object.files()}
        going = {name: file for name, file in there.items() if goes(file)}
        if going:
            # One that waits for its commit may be of an old request.
            waits = any(file["ext"] == ".data" and not file["durable"] for file in going.values())
            self.drive_object.remove_all(list(going), nondurable_purge_delay if waits else 0, AT_A_HOME.get())
