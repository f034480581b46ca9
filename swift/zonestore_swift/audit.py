"""The order in which an auditor visits objects, and where it goes on after a restart.

Swift keeps the latter in the policy's folder (`objects`). A zoned drive's directory of the host has no such folder, because peers that
replicate by rsync could write files into it (replicator.py).
"""

import os
import random

from swift.common.utils import mkdirs
from swift.obj import diskfile

from zonestore_swift.errors import Refused, Unavailable
from zonestore_swift.location import is_number

AUDITS = "audits"


def folder_of(policy):
    """Below a drive's directory of the host."""
    return os.path.join(AUDITS, diskfile.get_data_dir(policy))


def locations(manager, policy, device_dirs, auditor_type):
    """An `AuditLocation` for each object. What is still to do of a drive lies in the drive's directory of the host, as by Swift."""
    # What there is to do is written below the drive's directory.
    devices = [device for device in manager.drives.all() if manager.get_dev_path(device)]
    if device_dirs:
        devices = [device for device in devices if device in device_dirs]
    random.shuffle(devices)
    for device in devices:
        try:
            yield from _of_drive(manager, policy, device, auditor_type)
        except Refused as refused:
            manager.logger.error("%s: the audit leaves the rest of this drive out: %s", device, refused)


def _of_drive(manager, policy, device, auditor_type):
    drive = manager.drive(device)
    root = manager.construct_dev_path(device)
    datadir, status = os.path.join(root, diskfile.get_data_dir(policy)), os.path.join(root, folder_of(policy))
    mkdirs(status)
    partitions = _to_do(manager, drive, policy, status, auditor_type)
    for at, partition in enumerate(partitions):
        diskfile.update_auditor_status(status, manager.logger, partitions[at:], auditor_type)
        for suffix in _listed(manager, f"{device}/{partition}", lambda: drive.suffixes(policy, partition)):
            for object_hash, _files in _listed(
                    manager, f"{device}/{partition}/{suffix}", lambda: drive.objects(policy, partition, suffix)):
                path = os.path.join(datadir, partition, suffix, object_hash)
                yield diskfile.AuditLocation(path, device, partition, policy)
    diskfile.update_auditor_status(status, manager.logger, [], auditor_type)


def _listed(manager, place, call):
    """What cannot be listed holds up only itself, unless nobody serves the drive."""
    try:
        return call()
    except Unavailable:
        raise
    except Refused as refused:
        manager.logger.error("%s: the audit leaves it out: %s", place, refused)
        return []


def _to_do(manager, drive, policy, status, auditor_type):
    if os.path.exists(os.path.join(status, f"auditor_status_{auditor_type}.json")):
        left = diskfile.get_auditor_status(status, manager.logger, auditor_type)
        # Without a status that can be read, Swift lists the directory.
        return [name for name in left if is_number(name)]
    return [str(partition) for partition in drive.partitions(policy)]
