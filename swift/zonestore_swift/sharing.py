"""Which drives have replicas or fragments of the same objects: as the rings say."""

import logging
from itertools import zip_longest

from swift.common.exceptions import RingLoadError
from swift.common.ring import Ring
from swift.common.storage_policy import EC_POLICY, POLICIES

from zonestore_swift import shifts
from zonestore_swift.turns import Groups

PACKAGE = "zonestore-swift#"


def name_of(device):
    """What a device of a ring, or of a node's news, is called among all of them."""
    return f"{device['ip']}:{device['port']}/{device['device']}"


def limit(policy, fragments=0):
    """How many drives of one object may clean at once: all replicas but for one stay. Of a code, as many fragments as it can spare,
    less one for a drive that fails; `fragments` says another number."""
    if policy.policy_type != EC_POLICY:
        return 1
    return min(policy.ec_nparity, max(1, fragments or policy.ec_nparity - 1))


def sets_of(ring):
    """The sets of devices that have a partition together, each once."""
    # As Swift keeps it: for each replica the device of each partition. The last may be of some partitions only.
    rows = set(zip_longest(*ring._replica2part2dev_id))
    names = [device and name_of(device) for device in ring.devs]
    return {frozenset(names[number] for number in row if number is not None and names[number]) for row in rows}


def tiers_of(devices):
    """The region of each device, the zone, the machine: as a ring keeps replicas apart."""
    places = {name_of(device): (device["region"], device["zone"], device["ip"]) for device in devices}
    return [{name: place[:depth] for name, place in places.items()} for depth in (1, 2, 3)]


class Sharing:
    """The groups of all policies on zoned drives. Read again when a ring has changed."""

    def __init__(self, swift_dir, fragments=0, policies=None, logger=None):
        self._swift_dir, self._fragments, self._policies = swift_dir, fragments, policies
        self._logger, self._failure = logger or logging.getLogger(__name__), None
        self._rings, self._devices, self._groups = {}, None, None
        # Address and port of each object server.
        self.places = []

    def devices(self):
        """Those of the rings, the same list until a ring changes. None while a ring cannot be read."""
        try:
            if self._devices is None or any(ring.has_changed() for ring in self._rings.values()):
                self._read()
        except (OSError, RingLoadError):
            return None
        except Exception as error:
            # While a ring is copied, Swift's loader may raise anything: it reads what has come so far.
            if str(error) != self._failure:
                self._logger.warning("a ring cannot be read: %s", error)
            self._failure = str(error)
            return None
        self._failure = None
        return self._devices

    def groups(self):
        """None while a ring cannot be read."""
        devices = self.devices()
        if devices is None:
            return None
        if self._groups is None:
            groups = [(names, limit(policy, self._fragments)) for policy, ring in self._rings.items() for names in sets_of(ring)]
            self._groups = Groups(groups, shifts.find(groups, tiers_of(devices)))
        return self._groups

    def _read(self):
        policies = POLICIES if self._policies is None else self._policies
        zoned = [policy for policy in policies if PACKAGE in policy.diskfile_module]
        rings = {policy: Ring(self._swift_dir, ring_name=policy.ring_name) for policy in zoned}
        devices = [device for ring in rings.values() for device in ring.devs if device]
        self._rings, self._devices, self._groups = rings, devices, None
        self.places = sorted({(device["ip"], device["port"]) for device in self._devices})
