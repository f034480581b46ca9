"""Moves a policy that lay in files onto the zoned drives of this server, partition by partition.

The policy has this back end already; what it had before still lies below the devices' directories, or below `--from`. Each file of an
object is compared with its MD5, put on the drive under the same name, and removed once it is durable there. A put that came since then is
newer and stays. What is damaged is quarantined where it was, as Swift's auditor does it. Updates of containers that wait below `--from`
come to where Swift's updater looks.
"""

import errno
import os
import pickle
import re
import shutil
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections import Counter
from contextlib import suppress
from types import SimpleNamespace

from swift.common.exceptions import DiskFileBadMetadataChecksum, DiskFileDeviceUnavailable, PartitionLockTimeout
from swift.common.storage_policy import EC_POLICY, POLICIES
from swift.common.utils import drop_privileges, get_logger, mkdirs, readconf, renamer
from swift.obj import diskfile

from zonestore_swift import metadata as frames
from zonestore_swift.errors import NoSpace, Refused, Unavailable
from zonestore_swift.manager import ZonedManager

PIECE = 1 << 20
# What Swift keeps beside the suffixes of a partition.
PARTITIONS_OWN = ("hashes.pkl", "hashes.invalid", ".lock", ".lock-replication")
# One of the former that was being written when its daemon was killed (`write_pickle`).
UNFINISHED = re.compile(r"tmp\w+\.tmp")
HASH = re.compile("[0-9a-f]{32}")
# What a device has for Swift, policies of files included, that has to be somewhere before the disk may be erased.
KEPT = re.compile(r"(objects|async_pending)(-\d+)?|accounts|containers")
AUDITORS = re.compile(r"auditor_status_\w+\.json")
# What reading metadata raises for bytes that are no pickle of metadata.
DAMAGED = (DiskFileBadMetadataChecksum, pickle.UnpicklingError, EOFError, ValueError, TypeError, AttributeError, KeyError, IndexError)


class Unfit(Exception):
    """A file that is not what its metadata say."""


class Migration:
    """`conf`: of the object server; `source`: the folder that has the devices' directories with files."""

    def __init__(self, conf, logger, source=None):
        self.logger = logger
        self.router = diskfile.DiskFileRouter(conf, logger)
        self.devices = conf.get("devices", "/srv/node")
        self.source = source or self.devices
        # Devices of which nothing is known, for this user may not read them, or the disk does not give them, or is not there; and why.
        self.unread = {}
        conf = {**conf, "devices": self.source, "mount_check": "false"}
        self.files = {policy: (diskfile.ECDiskFileManager if policy.policy_type == EC_POLICY else diskfile.DiskFileManager)(conf, logger)
                      for policy in POLICIES if isinstance(self.router[policy], ZonedManager)}

    def work(self):
        """Policies, devices and partitions that have a directory, in order, and whether a daemon serves the device."""
        for policy in self.files:
            drives = self.router[policy].drives
            for device, names in self._of_devices(policy, lambda *of: listed(self._folder(*of))):
                for partition in sorted(filter(str.isdigit, names), key=int):
                    yield policy, device, partition, drives.is_served(device)

    def _of_devices(self, policy, look):
        """Each device, and what `look` finds of the policy there."""
        for device in self._devices():
            try:
                found = look(policy, device)
            except OSError as error:
                self.unread[device] = error
            else:
                yield device, found

    def _devices(self):
        # Of ext4, and of root alone.
        return [device for device in listed(self.source) if device != "lost+found"]

    def _is_in_use(self, device):
        """Whether Swift goes on with this device's directory: what is not of a zoned policy is where it belongs."""
        return is_same(self.source, self.devices) or is_same(os.path.join(self.source, device), os.path.join(self.devices, device))

    def others(self):
        """Devices that nobody uses any more, the folders there of what is not of a zoned policy, and a file of each."""
        zoned = {place(policy) for policy in self.files for place in (diskfile.get_data_dir, diskfile.get_async_dir)}
        for device in self._devices():
            root = os.path.join(self.source, device)
            if self._is_in_use(device) or os.path.isfile(root):
                continue
            try:
                names = list(filter(KEPT.fullmatch, listed(root)))
            except OSError as error:
                self.unread[device] = error
                continue
            if not zoned.intersection(names):
                self.unread[device] = "has nothing of a zoned policy: is its disk mounted there, and does --from name the folder above it?"
            for name in names:
                if name not in zoned and (path := first_file(os.path.join(root, name))):
                    yield device, name, path

    def _folder(self, policy, device):
        return os.path.join(self.source, device, diskfile.get_data_dir(policy))

    def move(self, policy, device, partition, counts):
        """
        Adds to `counts` the objects and bytes that were moved, those that were quarantined and those that wait, and the partition if it is
        gone; what was done before an error, too. Whoever stops in the middle goes on next time.
        """
        manager = self.router[policy]
        folder = os.path.join(self._folder(policy, device), partition)
        manager.ensure_policy(device, policy)
        # No peer sends this partition meanwhile.
        with manager.partition_lock(device, policy, partition, name="replication"):
            for suffix in filter(diskfile.valid_suffix, listed(folder)):
                for object_hash in filter(HASH.fullmatch, listed(os.path.join(folder, suffix))):
                    path = os.path.join(folder, suffix, object_hash)
                    try:
                        counts += self._move_object(policy, device, partition, path)
                    except (NoSpace, Unavailable):
                        raise
                    # The others need not wait for it, whatever it is.
                    except Exception as error:
                        self.logger.error("%s stays for now: %s", path, error)
                        counts["waiting"] += 1
                remove_empty(os.path.join(folder, suffix))
            if not any(map(diskfile.valid_suffix, listed(folder))):
                for name in (*PARTITIONS_OWN, *filter(UNFINISHED.fullmatch, listed(folder))):
                    diskfile.remove_file(os.path.join(folder, name))
                counts["partitions"] += int(remove_empty(folder))

    def updates(self):
        """Policies and devices that have updates of containers where Swift's updater does not look, and their paths below the device."""
        for policy in self.files:
            for device, paths in self._of_devices(policy, self._updates_of):
                if paths:
                    yield policy, device, paths

    def _updates_of(self, policy, device):
        old = os.path.join(self.source, device)
        if self._is_in_use(device):
            return []
        folders = [os.path.join(diskfile.get_async_dir(policy), name) for name in listed(os.path.join(old, diskfile.get_async_dir(policy)))]
        return [os.path.join(folder, name) for folder in folders for name in listed(os.path.join(old, folder))]

    def move_update(self, policy, device, path):
        """To where the updater looks, which finds it whole or not at all."""
        old, new, unfinished = (os.path.join(*parts) for parts in (
            (self.source, device, path), (self.devices, device, path),
            (self.devices, device, diskfile.get_tmp_dir(policy), os.path.basename(path))))
        mkdirs(os.path.dirname(unfinished))
        with open(old, "rb") as file, open(unfinished, "wb") as copy:
            shutil.copyfileobj(file, copy)
            copy.flush()
            os.fsync(copy.fileno())
        renamer(unfinished, new)
        diskfile.remove_file(old)
        # It is moved, whether or not its folder goes.
        with suppress(OSError):
            os.rmdir(os.path.dirname(old))

    def first_left(self, policy, device, partition):
        """A path that keeps the partition's directory from going."""
        folder = os.path.join(self._folder(policy, device), partition)
        return first_file(folder) or folder

    def _move_object(self, policy, device, partition, path):
        files = self.files[policy]
        # What does not count any more is removed here, by Swift's own rules.
        found = files.cleanup_ondisk_files(path, policy=policy)
        # What is none of Swift's stays; what rsync has not finished counts for nothing.
        strange = set(map(os.path.basename, found.get("unexpected", [])))
        unfinished = list(filter(diskfile.RE_RSYNC_TEMPFILE.match, strange))
        names = [name for name in found["files"] if name not in strange]
        durable = {name.removesuffix(".durable") for name in names if name.endswith(".durable")}
        placed = self.router[policy].drive(device).object(policy, partition, os.path.basename(path))
        counts = Counter()
        try:
            # In the order in which they were written, so that each finds what it belongs to.
            for name in sorted(set(names) - {f"{time}.durable" for time in durable}):
                counts["bytes"] += self._copy(policy, device, placed, os.path.join(path, name), new_name(name, durable))
        except Unfit as unfit:
            self.logger.error("quarantined: %s", unfit)
            files.quarantine_renamer(os.path.join(self.source, device), os.path.join(path, name))
            return Counter(quarantined=1)
        for name in names + unfinished:
            diskfile.remove_file(os.path.join(path, name))
        remove_empty(path)
        counts["objects"] = int(bool(names))
        return counts

    def _copy(self, policy, device, placed, path, name):
        """One file; its bytes."""
        with open(path, "rb") as file:
            try:
                metadata = diskfile.read_metadata(file)
            # Of this host is what else it may raise, such as a codec that this user may not load.
            except DAMAGED as error:
                raise Unfit(f"{path}: {error}") from error
            size = os.fstat(file.fileno()).st_size
            frame = frames.encode(metadata)
            if not name.endswith(".data"):
                placed.put(name, frame)
                return 0
            if metadata.get("Content-Length") != str(size):
                raise Unfit(f"{path}: {size} bytes, and {metadata.get('Content-Length')} in its metadata")
            manager = self.router[policy]
            if size <= manager.small_bytes:
                data = file.read()
                compare(path, metadata, diskfile.md5(data, usedforsecurity=False).hexdigest())
                placed.put(name, frame, data)
                return size
            drive = manager.drive(device)
            upload = drive.stage(SimpleNamespace(policy=policy, hash=os.path.basename(os.path.dirname(path))), size)
            try:
                while piece := file.read(PIECE):
                    upload.send([piece])
            except OSError:
                upload.close()
                raise
            staged = upload.finish()
        try:
            compare(path, metadata, staged["md5"])
        except Unfit:
            drive.forget_staged(staged["staged"])
            raise
        placed.put_staged(name, frame, staged["staged"])
        return size


def compare(path, metadata, digest):
    if metadata.get("ETag") != digest:
        raise Unfit(f"{path}: its MD5 is {digest}, and {metadata.get('ETag')} in its metadata")


def new_name(name, durable):
    """Before Swift 2.11 a file of its own said that fragments are durable."""
    time, mark, index = name.removesuffix(".data").partition("#")
    return f"{time}#{index}#d.data" if mark and "#" not in index and time in durable else name


def listed(folder):
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []


def first_file(folder):
    """One that counts, or a folder that cannot be read; None if there is neither."""
    unread = []
    paths = (os.path.join(at, name) for at, _, names in os.walk(folder, onerror=unread.append) for name in names
             if name not in PARTITIONS_OWN and not AUDITORS.fullmatch(name))
    return next(paths, None) or next((error.filename for error in unread), None)


def in_words(counts):
    return f"{counts['objects']} objects, {counts['bytes']} bytes, {counts['quarantined']} quarantined"


def is_same(one, other):
    """One folder, by whatever paths."""
    return os.path.exists(one) and os.path.exists(other) and os.path.samefile(one, other)


def remove_empty(folder):
    """False if something is in it."""
    try:
        os.rmdir(folder)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.ENOENT, errno.ENOTDIR):
            raise
        return error.errno == errno.ENOENT
    return True


def main():
    parser = ArgumentParser(
        description="Moves objects of zoned policies from the files they lay in before onto this server's zoned drives.",
        formatter_class=RawDescriptionHelpFormatter, epilog=(
            "examples:\n  zonestore-swift-migrate /etc/swift/object-server.conf --dry-run\n"
            "  zonestore-swift-migrate /etc/swift/object-server.conf --from /srv/old --devices sdb1 --partitions 17,18\n\n"
            "The policy's diskfile_module is the zoned one and all of Swift's daemons have been restarted before. It may be stopped at any\n"
            "time and goes on when called again. Be through within `reclaim_age` of the restart."))
    parser.add_argument("conf", help="object-server.conf of this server")
    parser.add_argument("--from", dest="source", metavar="FOLDER", help="where the devices' directories with files are [`devices` of CONF]")
    for name in ("devices", "partitions", "policies"):
        parser.add_argument(f"--{name}", type=lambda text: text.split(","), help=f"only these {name}, separated by commas")
    parser.add_argument("--dry-run", action="store_true", help="say which partitions there are")
    arguments = parser.parse_args()
    conf = readconf(arguments.conf, "app:object-server")
    user = conf.get("user", "swift")
    try:
        # As Swift's daemons do: they have to open the locks that are made here.
        drop_privileges(user)
    except (KeyError, PermissionError) as error:
        parser.error(f"this runs as the `user` of {arguments.conf}, {user}, and cannot: {error}")
    logger = get_logger({**conf, "log_name": "zonestore-swift-migrate"}, log_to_console=True)
    migration = Migration(conf, logger, arguments.source)
    try:
        devices = os.listdir(migration.source)
    except OSError as error:
        parser.error(f"{error}; --from names the folder that has the devices' directories")
    # A name that means nothing would leave everything where it is, and say that all is well.
    zoned = [str(int(policy)) for policy in migration.files]
    if not zoned:
        parser.error("no policy of swift.conf is zoned: nothing would be moved (swift/README.md, step 2 of \"On a server\")")
    if unknown := sorted(set(arguments.policies or ()) - set(zoned)):
        parser.error(f"--policies {','.join(unknown)}: the zoned ones are {', '.join(zoned)}")
    if unknown := sorted(set(arguments.devices or ()) - set(devices)):
        parser.error(f"--devices {','.join(unknown)}: not in {migration.source}")
    if unknown := [text for text in arguments.partitions or () if not text.isdigit()]:
        parser.error(f"--partitions {','.join(unknown)}: a partition is a number")
    total = Counter()
    for policy, device, partition, is_served in migration.work():
        if not is_chosen(arguments, policy, device, partition):
            # Whoever erases the disk by the code of this call has to know of them.
            total["others"] += not arguments.dry_run
            continue
        place = f"policy {int(policy)}, {device}, partition {partition}"
        if arguments.dry_run or not is_served:
            print(place if is_served else f"{place}: stays for now: no daemon serves {device}")
            total["left"] += not is_served
            continue
        counts, why = Counter(), ""
        try:
            migration.move(policy, device, partition, counts)
        except NoSpace as error:
            parser.exit(1, f"{place}: {in_words(counts)}, then: {error}\nhint: take weight from {device} in the ring, let its partitions go, and call again\n")
        except DiskFileDeviceUnavailable:
            why = f", stays for now: no daemon serves {device}, or its directory is not mounted (mount_check)"
        except (PartitionLockTimeout, Refused, OSError) as error:
            why = f", stays for now: {error}"
        if counts["waiting"]:
            why += f", {counts['waiting']} objects wait"
        if not why and not counts["partitions"]:
            why = f", left in its directory: {migration.first_left(policy, device, partition)}"
        total["left"] += not counts["partitions"]
        total += counts
        print(f"{place}: {in_words(counts)}{why}", flush=True)
    for policy, device, paths in migration.updates():
        total["waiting updates"] += len(paths)
        for path in paths:
            if arguments.dry_run or not is_chosen(arguments, policy, device):
                continue
            try:
                migration.move_update(policy, device, path)
                total["waiting updates"] -= 1
            except OSError as error:
                logger.error("%s stays for now: %s", os.path.join(migration.source, device, path), error)
    for device, name, path in migration.others():
        total["other folders"] += 1
        print(f"{device}, {name}: is not of a zoned policy: stays, with {path}")
    for device, error in migration.unread.items():
        print(f"{device}: stays for now: {error}")
    if arguments.dry_run:
        if total["waiting updates"]:
            print(f"{total['waiting updates']} updates of containers wait")
        parser.exit(1 if total["left"] or total["other folders"] or migration.unread else 0)
    total["left"] += total["others"]
    left = total["left"] + total["waiting updates"] + total["other folders"] + len(migration.unread)
    print(f"{migration.source}: {total['partitions']} partitions moved, {total['objects']} objects, {total['quarantined']} quarantined; "
          f"{total['left']} partitions are left" + (f", {total['others']} of them not asked for" if total["others"] else "")
          + (f"; {total['waiting updates']} updates of containers are left" if total["waiting updates"] else "")
          + (f"; {total['other folders']} folders are not of a zoned policy" if total["other folders"] else "")
          + (f"; {len(migration.unread)} devices could not be read" if migration.unread else "")
          + (": see above, and call again" if left else ""))
    parser.exit(1 if left else 0)


def is_chosen(arguments, policy, device, partition=None):
    """Updates have no partition: `--partitions` does not leave them out."""
    chosen = ((arguments.policies, str(int(policy))), (arguments.devices, device), (arguments.partitions, partition))
    return all(one is None or one in wanted for wanted, one in chosen if wanted)


if __name__ == "__main__":
    main()
