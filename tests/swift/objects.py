"""What a test does with objects of one partition, through Swift's interface alone."""

import itertools
import time
from hashlib import md5

from swift.common.concurrency import sleep
from swift.common.exceptions import DiskFileNotExist
from swift.common.storage_policy import EC_POLICY
from swift.common.utils import Timestamp

from backends import DEVICE, hash_of

_partitions = itertools.count(1)
NOW = 1_700_000_000


def moment(seconds, offset=0):
    """A time near to the present of all tests."""
    return Timestamp(NOW + seconds, offset=offset)


def until(condition):
    """What a condition says once it is true, or after two minutes. Green threads go on meanwhile."""
    end = time.monotonic() + 120
    while not (found := condition()) and time.monotonic() < end:
        sleep(0.01)
    return found


class Objects:
    def __init__(self, backend, policy, partition=None, **conf):
        self.backend = backend
        self.policy = policy
        self.partition = str(next(_partitions) if partition is None else partition)
        # Tests speak of old times; nothing is old enough to go unless a test says so.
        self.manager = backend.manager(policy, **{"reclaim_age": str(10 ** 9), **conf})

    @property
    def coded(self):
        return self.policy.policy_type == EC_POLICY

    def file(self, name="o", **options):
        return self.manager.get_diskfile(DEVICE, self.partition, "a", "c", name, policy=self.policy, **options)

    def by_hash(self, name="o", **options):
        return self.manager.get_diskfile_from_hash(DEVICE, self.partition, hash_of(name), self.policy, **options)

    def archive(self, data, index=2):
        """The bytes that a node keeps of an object."""
        if not self.coded:
            return data
        step = self.policy.ec_segment_size
        pieces = [data[at:at + step] for at in range(0, len(data), step)]
        return b"".join(self.policy.pyeclib_driver.encode(piece)[index] for piece in pieces)

    def put(self, name="o", data=b"", at=0, index=2, commit=True, etag=None, pieces=65536, size=None, offset=0, **metadata):
        """Writes the object's data or fragment; returns what is then there to read."""
        archive = self.archive(data, index)
        options = {"frag_index": index} if self.coded else {}
        if self.coded:
            metadata.setdefault("X-Object-Sysmeta-Ec-Etag", md5(data).hexdigest())
            metadata.setdefault("X-Object-Sysmeta-Ec-Content-Length", str(len(data)))
            metadata.setdefault("X-Object-Sysmeta-Ec-Frag-Index", str(index))
        disk_file = self.file(name, **options)
        with disk_file.create(size=size) as writer:
            for start in range(0, len(archive), pieces):
                writer.write(archive[start:start + pieces])
            length, digest = writer.chunks_finished()
            assert (length, digest) == (len(archive), md5(archive).hexdigest())
            writer.put({
                "ETag": etag or digest, "X-Timestamp": moment(at, offset).internal, "Content-Length": str(length),
                "Content-Type": "text/plain", **metadata})
            if commit:
                writer.commit(moment(at, offset))
        return archive

    def post(self, name="o", at=0, content_type=None, content_type_at=None, **metadata):
        if content_type is not None:
            metadata["Content-Type"] = content_type
            metadata["Content-Type-Timestamp"] = moment(content_type_at).internal
        self.file(name).write_metadata({"X-Timestamp": moment(at).internal, **metadata})

    def delete(self, name="o", at=0):
        self.file(name).delete(moment(at))

    def read(self, name="o", **options):
        with self.file(name, **options).open() as disk_file:
            reader = disk_file.reader()
        return b"".join(reader)

    def metadata(self, name="o"):
        return self.file(name).read_metadata()

    def names(self, name="o"):
        return self.backend.names(self.policy, self.partition, hash_of(name))

    def quarantined(self, name="o"):
        return hash_of(name) in self.backend.quarantined(self.policy, self.partition)

    def hashes(self, recalculate=(), **options):
        return self.manager.get_hashes(DEVICE, self.partition, list(recalculate), self.policy, **options)

    def exists(self, name="o"):
        try:
            self.metadata(name)
        except DiskFileNotExist:
            return False
        return True
