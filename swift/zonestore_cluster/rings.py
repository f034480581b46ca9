"""Rings: which drives of which nodes have a partition."""

import logging
from pathlib import Path

from swift.common.ring import RingBuilder

PART_POWER = 8


def save(path, replicas, places, part_power=PART_POWER):
    """`places`: node, address, port, device. Each node is a zone of the ring."""
    logging.getLogger("swift.ring.builder").setLevel(logging.ERROR)
    builder = RingBuilder(part_power, replicas, 0)
    for number, (node, ip, port, device) in enumerate(places):
        builder.add_dev({"id": number, "region": 1, "zone": node, "weight": 100.0, "ip": ip, "port": port, "device": device,
                         "replication_ip": ip, "replication_port": port, "meta": ""})
    builder.rebalance(seed=1)
    builder.get_ring().save(str(path))
    builder.save(str(Path(path).with_suffix("").with_suffix(".builder")))
