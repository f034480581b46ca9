"""Changes of the partition power are refused, and say why."""

import re

import pytest
from swift.common.ring import RingBuilder
from swift.common.storage_policy import StoragePolicy
from swift.common.swob import HTTPException
from swift.obj import diskfile

import zonestore_swift
from objects import Objects
from zonestore_swift import part_power


def test_a_change_of_the_partition_power_is_refused_by_name(zoned, policy):
    objects = Objects(zoned, policy)
    for change in (lambda file: file.delete("1700000001.00000"), lambda file: file.write_metadata({"X-Timestamp": "1700000001.00000"})):
        with pytest.raises(HTTPException) as raised:
            change(objects.file(next_part_power=5))
        assert raised.value.status_int == 501
        assert b"partition power" in raised.value.body


def test_what_the_refusal_advises_ends_it(tmp_path):
    builder = RingBuilder(4, 1, 0)
    builder.add_dev({"region": 1, "zone": 1, "ip": "127.0.0.1", "port": 6200, "device": "sda1", "weight": 1})
    builder.rebalance()
    builder.save(str(tmp_path / "builder"))

    def call(name):
        """As swift-ring-builder does it; the power that the next ring speaks of."""
        builder = RingBuilder.load(str(tmp_path / "builder"))
        assert getattr(builder, name)()
        builder.save(str(tmp_path / "builder"))
        return RingBuilder.load(str(tmp_path / "builder")).get_ring().next_part_power

    assert call("prepare_increase_partition_power") == 5
    steps = re.findall(r"\w+_increase_partition_power", part_power.REASON)
    assert [call(step) for step in steps][-1] is None


class Ring:
    def __init__(self, next_part_power):
        self.next_part_power = next_part_power


@pytest.mark.parametrize("module, next_part_power, refuses", [
    ("zoned", 5, True), ("zoned", None, False), ("files", 5, False)])
def test_the_relinker_is_stopped_only_where_it_would_lose_objects(zoned, monkeypatch, module, next_part_power, refuses):
    policy = StoragePolicy(0, "some", is_default=True)
    policy.object_ring = Ring(next_part_power)
    kinds = {"zoned": zonestore_swift.Manager, "files": diskfile.DiskFileManager}
    monkeypatch.setattr(part_power, "load_pkg_resource", lambda group, name: kinds[module])
    relinkers = {"clobber_hardlink_collisions": False, "policies": {policy}}
    if refuses:
        with pytest.raises(ValueError, match="partition power"):
            zoned.manager(policy, **relinkers)
    else:
        zoned.manager(policy, **relinkers)
    zoned.manager(policy)
