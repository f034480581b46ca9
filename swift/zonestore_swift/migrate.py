"""Moves a policy that lay in files onto the zoned drives of this server, partition by partition.

The policy has this back end already; what it had before still lies below the devices' directories, or below `--from`. Each file of an
object is compared with its MD5, put on the drive under the same name, and removed once it is durable there. A put that came since then is
newer and stays. What is damaged is quarantined where it was, as Swift's auditor does it.
"""

import errno
import os
import re
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections import Counter
from types import SimpleNamespace

from swift.common.exceptions import DiskFileXattrNotSupported, PartitionLockTimeout
from swift.common.storage_policy import EC_POLICY, POLICIES
from swift.common.utils import get_logger, readconf
from swift.obj import diskfile

from zonestore_swift import metadata as frames
from zonestore_swift.errors import NoSpace, Refused
from zonestore_swift.manager import ZonedManager

PIECE = 1 << 20
# What Swift keeps beside the suffixes of a partition.
PARTITIONS_OWN = ("hashes.pkl", "hashes.invalid", ".lock", ".lock-replication")
# One of the former that was being written when its daemon was killed (`write_pickle`).
UNFINISHED = re.compile(r"tmp\w+\.tmp")


class Unfit(Exception):
    """A file that is not what its metadata say."""


class Migration:
    """`conf`: of the object server; `source`: the folder that has the devices' directories with files."""

    def __init__(self, conf, logger, source=None):
        self.logger = logger
        self.router = diskfile.DiskFileRouter(conf, logger)
        self.source = source or conf.get("devices", "/srv/node")
        conf = {**conf, "devices": self.source, "mount_check": "false"}
        self.files = {policy: (diskfile.ECDiskFileManager if policy.policy_type == EC_POLICY else diskfile.DiskFileManager)(conf, logger)
                      for policy in POLICIES if isinstance(self.router[policy], ZonedManager)}

    def work(self):
        """Policies, devices and partitions that have a directory, in order. Devices that no daemon serves are not among them."""
        for policy in self.files:
            for device in sorted(self.router[policy].drives.all()):
                for partition in sorted(filter(str.isdigit, listed(self._folder(policy, device))), key=int):
                    yield policy, device, partition

    def _folder(self, policy, device):
        return os.path.join(self.source, device, diskfile.get_data_dir(policy))

    def move(self, policy, device, partition):
        """How many objects and bytes were moved, and how many were quarantined. Whoever stops in the middle goes on next time."""
        manager, counts = self.router[policy], Counter()
        folder = os.path.join(self._folder(policy, device), partition)
        manager.ensure_policy(device, policy)
        # No peer sends this partition meanwhile.
        with manager.partition_lock(device, policy, partition, name="replication"):
            for suffix in filter(diskfile.valid_suffix, listed(folder)):
                for object_hash in listed(os.path.join(folder, suffix)):
                    counts += self._move_object(policy, device, partition, os.path.join(folder, suffix, object_hash))
                remove_empty(os.path.join(folder, suffix))
            if not any(map(diskfile.valid_suffix, listed(folder))):
                for name in (*PARTITIONS_OWN, *filter(UNFINISHED.fullmatch, listed(folder))):
                    diskfile.remove_file(os.path.join(folder, name))
                counts["partitions"] = int(remove_empty(folder))
        return counts

    def _move_object(self, policy, device, partition, path):
        files = self.files[policy]
        # What does not count any more is removed here, by Swift's own rules.
        names = files.cleanup_ondisk_files(path, policy=policy)["files"]
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
        for name in names:
            diskfile.remove_file(os.path.join(path, name))
        remove_empty(path)
        counts["objects"] = int(bool(names))
        return counts

    def _copy(self, policy, device, placed, path, name):
        """One file; its bytes."""
        with open(path, "rb") as file:
            try:
                metadata = diskfile.read_metadata(file)
            except (OSError, DiskFileXattrNotSupported):
                raise
            # As Swift's own reading does: damaged pickles raise anything.
            except Exception as error:
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
    except FileNotFoundError:
        return []


def remove_empty(folder):
    """False if something is in it."""
    try:
        os.rmdir(folder)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.ENOENT):
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
    logger = get_logger({**conf, "log_name": "zonestore-swift-migrate"}, log_to_console=True)
    migration = Migration(conf, logger, arguments.source)
    total, failed = Counter(), 0
    for policy, device, partition in migration.work():
        chosen = ((arguments.policies, str(int(policy))), (arguments.devices, device), (arguments.partitions, partition))
        if not all(one in wanted for wanted, one in chosen if wanted):
            continue
        place = f"policy {int(policy)}, {device}, partition {partition}"
        if arguments.dry_run:
            print(place)
            continue
        try:
            counts = migration.move(policy, device, partition)
        except NoSpace as error:
            parser.exit(1, f"{place}: {error}\nhint: take weight from {device} in the ring, let its partitions go, and call again\n")
        except (PartitionLockTimeout, Refused, OSError) as error:
            failed += 1
            print(f"{place}: stays for now: {error}")
            continue
        total += counts
        left = "" if counts["partitions"] else ", something is left in its directory"
        print(f"{place}: {counts['objects']} objects, {counts['bytes']} bytes, {counts['quarantined']} quarantined{left}", flush=True)
    if not arguments.dry_run:
        print(f"{total['partitions']} partitions moved, {total['objects']} objects, {total['quarantined']} quarantined; {failed} wait: call again")
    parser.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
