"""Changes of the partition power, which no zoned policy can go through.

Swift's relinker gives every object a second name by hard links. A daemon's drive has none, and a new partition is another place.
"""

from swift.common.swob import HTTPNotImplemented
from swift.common.utils import load_pkg_resource

REASON = (
    "zonestore cannot change the partition power: an object on a zoned drive has one place, and Swift's relinker needs two. "
    "Undo it with swift-ring-builder BUILDER cancel_increase_partition_power, then finish_increase_partition_power, then write_ring, "
    "and give the ring to all nodes")

# The only daemon that has this option is the relinker, which tells nobody who it is.
RELINKERS_OPTION = "clobber_hardlink_collisions"


def refuse_write(next_part_power, logger):
    """The proxy says with each request that the power is about to change. What was written now would be at one place alone."""
    if next_part_power:
        logger.error(REASON)
        raise HTTPNotImplemented(body=REASON)


def refuse_relinker(conf, is_zoned):
    """Stops the relinker before it finds no files, reports success, and the ring moves on without the objects."""
    if RELINKERS_OPTION not in conf:
        return
    for policy in conf.get("policies", ()):
        if not is_zoned(load_pkg_resource("swift.diskfile", policy.diskfile_module)):
            continue
        policy.load_ring(conf.get("swift_dir", "/etc/swift"))
        if policy.object_ring.next_part_power:
            raise ValueError(f"policy {policy.name}: {REASON}")
