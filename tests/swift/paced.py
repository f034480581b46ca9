"""The back end on drives that take as long as disks do: what is read or written waits, one after the other, for a time that is drawn.
For tests/swift/calibrate alone: `PACE_MS` has the shortest and the longest time."""

import os
import random

from swift.common.concurrency import Semaphore, sleep
from zonestore_swift import manager

SHORTEST, LONGEST = (float(ms) / 1000 for ms in os.environ.get("PACE_MS", "60,120").split(","))
ARMS = {}


def pace(disk_file):
    """One server has all requests of a drive, so that this is the drive's queue."""
    device = disk_file.manager.locate(disk_file._datadir).device
    with ARMS.setdefault(device, Semaphore()):
        sleep(random.uniform(SHORTEST, LONGEST))


class PacedWriter(manager.Manager.diskfile_cls.writer_cls):
    def put(self, metadata):
        pace(self._diskfile)
        return super().put(metadata)


class PacedDiskFile(manager.Manager.diskfile_cls):
    writer_cls = PacedWriter

    def reader(self, *arguments, **options):
        pace(self)
        return super().reader(*arguments, **options)


class Manager(manager.Manager):
    diskfile_cls = PacedDiskFile
