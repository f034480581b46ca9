"""What lies in a directory of the host: locks, and updates that wait."""

import pytest
from swift.common.exceptions import PartitionLockTimeout, ReplicationLockTimeout

from backends import DEVICE, hash_of


@pytest.mark.parametrize("name", ["replication", "partition"])
def test_locks_exclude_each_other(objects, name):
    manager = objects.backend.manager(objects.policy, replication_lock_timeout="0")
    lock = getattr(manager, f"{name}_lock")
    with lock(DEVICE, objects.policy, objects.partition):
        with pytest.raises((PartitionLockTimeout, ReplicationLockTimeout)):
            with lock(DEVICE, objects.policy, objects.partition):
                pass
    with lock(DEVICE, objects.policy, objects.partition):
        pass


def test_a_replications_lock_is_the_partitions_by_that_name(objects):
    with objects.manager.replication_lock(DEVICE, objects.policy, objects.partition):
        with pytest.raises(PartitionLockTimeout):
            with objects.manager.partition_lock(DEVICE, objects.policy, objects.partition, name="replication", timeout=0):
                pass
        with objects.manager.partition_lock(DEVICE, objects.policy, objects.partition, name="other", timeout=0):
            pass


def test_updates_that_wait_lie_in_a_directory_of_the_host(objects):
    objects.manager.pickle_async_update(DEVICE, "a", "c", "o", {"op": "PUT"}, "1700000000.00000", objects.policy)
    directory = "async_pending" if int(objects.policy) == 0 else f"async_pending-{int(objects.policy)}"
    [update] = (objects.backend.devices / DEVICE / directory).rglob("*-1700000000.00000")
    assert update.parent.name == hash_of("o")[-3:]
