"""Swift's managers of objects, for drives that a daemon serves. What only thinks (names, which files count) is Swift's own."""

import os
import time
from contextlib import contextmanager

from swift.common.exceptions import DiskFileDeviceUnavailable, DiskFileNotExist, PartitionLockTimeout
from swift.common.storage_policy import EC_POLICY
from swift.common.utils import config_percent_value, config_true_value, lock_path, mkdirs, split_path
from swift.obj import diskfile

from zonestore_swift import audit, part_power
from zonestore_swift import metadata as frames
from zonestore_swift.disk_file import DiskFile, ECDiskFile
from zonestore_swift.drives import DEFAULT_SOCKET, Drives
from zonestore_swift.errors import Damaged, Refused
from zonestore_swift.location import Location

# Data up to here travel with the metadata, in one call in either direction.
SMALL_BYTES = 64 * 1024
READ_BYTES = 256 * 1024
LOCKS = "locks"

# Which information about an object's files goes to a synchronizing peer, and where it is found.
TIMES = (
    ("ts_data", "ts_info", "timestamp"),
    ("ts_data", "data_info", "timestamp"),
    ("ts_meta", "meta_info", "timestamp"),
    ("ts_ctype", "ctype_info", "ctype_timestamp"),
    ("durable", "data_info", "durable"),
)


class ZonedManager(diskfile.BaseDiskFileManager):
    """Asks the daemon at `zonestore_socket`. A small directory of the host for each drive has async_pending, locks and positions."""

    def __init__(self, conf, logger):
        super().__init__(conf, logger)
        part_power.refuse_relinker(conf, lambda kind: issubclass(kind, ZonedManager))
        self.drives = Drives(
            conf.get("zonestore_socket", DEFAULT_SOCKET), self.devices,
            float(conf.get("zonestore_connect_timeout", 2)), float(conf.get("zonestore_timeout", 60)))
        self.small_bytes = int(conf.get("zonestore_small_bytes", SMALL_BYTES))
        self.first_bytes = int(conf.get("zonestore_first_bytes", SMALL_BYTES))
        self.sends_directly = config_true_value(conf.get("zonestore_send_directly", "yes"))
        self.receives_directly = config_true_value(conf.get("zonestore_receive_directly", "yes"))
        self.send_bytes = int(conf.get("zonestore_send_bytes", READ_BYTES))
        self.disk_chunk_size = int(conf.get("disk_chunk_size", READ_BYTES))
        # The daemon compares checksums of all that is read; only who asks for Swift's own comparison pays for both.
        self.validates_etags = config_percent_value(conf.get("etag_validate_pct", 0)) > 0
        self.use_splice = False
        # Pairs of device and policy for which there is room.
        self._policies = set()

    # Where things are

    def locate(self, path):
        return Location(self.devices, path)

    def drive(self, device):
        return self.drives.drive(device)

    def get_dev_path(self, device, mount_check=None):
        """None unless the daemon serves the drive. With `mount_check`, its directory has to be mounted, too: below it, updates of
        listings wait, and those that come while it is not mounted would never be found."""
        if mount_check is not False and not self.drives.is_served(device):
            return None
        if mount_check is False or not (mount_check or self.mount_check):
            return self.construct_dev_path(device)
        return super().get_dev_path(device, True)

    def _served(self, device):
        path = self.get_dev_path(device)
        if not path:
            raise DiskFileDeviceUnavailable()
        return path

    def ensure_policy(self, device, policy, again=False):
        if again or (device, int(policy)) not in self._policies:
            self.drive(device).add_policy(policy)
            self._policies.add((device, int(policy)))

    # Hashes of suffixes. The daemon marks what changes, so there is nothing to invalidate but what time alone changes.

    def _get_hashes(self, device, partition, policy, recalculate=None, do_listdir=False):
        self._served(device)
        computed, hashes = self.drive(device).hashes(
            policy, partition, recalculate or [], self.reclaim_age, self.commit_window)
        if policy.policy_type == EC_POLICY:
            return computed, {suffix: self._by_fragment(table) for suffix, table in hashes.items()}
        return computed, {suffix: table["-"] for suffix, table in hashes.items()}

    @staticmethod
    def _by_fragment(table):
        return {None if key == "-" else int(key): digest for key, digest in table.items()}

    def get_hashes(self, device, partition, suffixes, policy, skip_rehash=False):
        suffixes = [suffix for suffix in suffixes or [] if diskfile.valid_suffix(suffix)]
        if skip_rehash and not suffixes:
            self._served(device)
            return None
        _computed, hashes = self._get_hashes(device, partition, policy, recalculate=suffixes)
        return None if skip_rehash else hashes

    def invalidate_hash(self, suffix_dir):
        """Swift calls this when an old tombstone may go."""
        place = self.locate(suffix_dir)
        self._hash_again(place.policy, place.device, place.partition, place.suffix)

    def _hash_again(self, policy, device, partition, suffix):
        """What is too old goes with it."""
        self.drive(device).hashes(policy, partition, [suffix], self.reclaim_age, self.commit_window)

    def consolidate_hashes(self, partition_dir):
        place = self.locate(partition_dir)
        _computed, hashes = self._get_hashes(place.device, place.partition, place.policy)
        return {**hashes, "valid": True, "updated": time.time()}

    # What there is

    def yield_suffixes(self, device, partition, policy):
        path = diskfile.get_part_path(self._served(device), policy, partition)
        for suffix in self.drive(device).suffixes(policy, partition):
            yield os.path.join(path, suffix), suffix

    def yield_hashes(self, device, partition, policy, suffixes=None, **kwargs):
        self._served(device)
        drive = self.drive(device)
        if suffixes is None:
            suffixes = drive.suffixes(policy, partition)
        for suffix in suffixes:
            reclaims = False
            for object_hash, files in drive.objects(policy, partition, suffix):
                info = self._surviving(files, policy=policy, **kwargs)
                reclaims = reclaims or "old" in info
                times = {key: info[role][what] for key, role, what in TIMES if what in info.get(role, {})}
                if "ts_data" in times:
                    yield object_hash, times
            if reclaims:
                # A handoff hands nothing over that is too old: nothing else would ever touch its suffix.
                self._hash_again(policy, device, partition, suffix)

    def _surviving(self, files, datadir="", **kwargs):
        """What counts of an object's files, without tombstones that are old enough to go."""
        info = self.get_ondisk_files(files, datadir, verify=False, **kwargs)
        left = sorted(files, reverse=True)
        tombstone = info.get("ts_info")
        if tombstone and time.time() - float(tombstone["timestamp"]) > self.reclaim_age:
            info["old"] = info.pop("ts_info")
            left.remove(tombstone["filename"])
        for gone in info.get("obsolete", []):
            left.remove(gone["filename"])
        info["files"] = left
        return info

    def cleanup_ondisk_files(self, hsh_path, **kwargs):
        """Obsolete files go with the put that makes them so; here they are only left out."""
        place = self.locate(hsh_path)
        files = self.drive(place.device).object(place.policy, place.partition, place.hash).files()
        return self._surviving(files, hsh_path, policy=place.policy, **kwargs)

    def get_diskfile_and_filenames_from_hash(self, device, partition, object_hash, policy, **kwargs):
        dev_path = self._served(device)
        datadir = os.path.join(dev_path, diskfile.get_data_dir(policy), str(partition), object_hash[-3:], object_hash)
        # Any fragment will do: each knows the object's name.
        any_fragment = [] if policy.policy_type == EC_POLICY else None
        try:
            opened = self.drive(device).object(policy, partition, object_hash).open(0, False, frag_prefs=any_fragment)
        except Damaged as error:
            # One that cannot be looked at would break every exchange off, and nobody could send it.
            self.quarantine_dir_renamer(dev_path, datadir, error.file)
            self.logger.warning("Quarantined object %s: %s", datadir, error)
            raise DiskFileNotExist() from error
        names = self._surviving(opened.files, datadir, policy=policy)["files"]
        if not names:
            raise DiskFileNotExist()
        if not opened.metadata:
            # Nothing there can be opened; it can only be purged, by its hash.
            return self.diskfile_cls(self, dev_path, partition, _datadir=datadir, policy=policy, **kwargs), names
        try:
            metadata = frames.decode(next(iter(opened.metadata.values())))
            account, container, name = split_path(metadata.get("name", ""), 3, 3, True)
        except frames.UnknownVersion as error:
            # A later version of this package wrote them: the object is there.
            raise Refused("unknown_version", f"{names[0]} in {datadir}: {error}") from error
        except ValueError:
            raise DiskFileNotExist() from None
        return self.diskfile_cls(self, dev_path, partition, account, container, name, policy=policy, **kwargs), names

    # Damage

    def quarantine_renamer(self, device_path, corrupted_file_path):
        # A reader may find what is wrong with a version that another has replaced: that other one stays.
        return self.quarantine_dir_renamer(device_path, *os.path.split(corrupted_file_path))

    def quarantine_dir_renamer(self, device_path, from_dir, file=None):
        """Puts an object's files aside on its drive, if `file` is one of them. An empty directory of the host says so to whoever counts
        (`swift-recon`)."""
        place = self.locate(from_dir)
        moved = self.drive(place.device).object(place.policy, place.partition, place.hash).quarantine(file)
        counted = os.path.join(device_path, "quarantined", diskfile.get_data_dir(place.policy), place.hash)
        if moved:
            mkdirs(counted)
        return counted

    # Locks: files of the host, for all processes of this host

    @contextmanager
    def partition_lock(self, device, policy, partition, name=None, timeout=None):
        directory = os.path.join(self._served(device), LOCKS, diskfile.get_data_dir(policy))
        with lock_path(
                directory, timeout=self.replication_lock_timeout if timeout is None else timeout,
                timeout_class=PartitionLockTimeout, limit=1, name=f"{partition}-{name}" if name else str(partition)):
            yield True

    def clear_auditor_status(self, policy, auditor_type="ALL"):
        diskfile.clear_auditor_status(self.devices, audit.folder_of(policy), auditor_type)

    def object_audit_location_generator(self, policy, device_dirs=None, auditor_type="ALL"):
        return audit.locations(self, policy, device_dirs, auditor_type)


class Manager(diskfile.DiskFileManager, ZonedManager):
    diskfile_cls = DiskFile


class ECManager(diskfile.ECDiskFileManager, ZonedManager):
    diskfile_cls = ECDiskFile
