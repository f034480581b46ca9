"""Swift's object reconstructor, for servers that have zoned policies, policies of files, or both.

Swift looks for partitions in directories, and finds none of a zoned policy there. They are added here; the rest of its work goes
through the manager.
"""

import os
import random
from optparse import OptionParser

from swift.common.daemon import run_daemon
from swift.common.exceptions import DiskFileDeviceUnavailable
from swift.common.utils import parse_options
from swift.obj import diskfile
from swift.obj.reconstructor import ObjectReconstructor

from zonestore_swift.disk_file import AT_A_HOME
from zonestore_swift.errors import Refused
from zonestore_swift.manager import ZonedManager


class Reconstructor(ObjectReconstructor):
    def _is_zoned(self, policy):
        return isinstance(self._df_router[policy], ZonedManager)

    def collect_parts(self, override_devices=None, override_partitions=None):
        parts = super().collect_parts(override_devices, override_partitions)
        for policy, devices in self.get_policy2devices().items():
            # While its power changes a policy is left alone, as Swift does it.
            if not self._is_zoned(policy) or getattr(policy.object_ring, "next_part_power", None) is not None:
                continue
            for device in devices:
                if not override_devices or device["device"] in override_devices:
                    parts += self._parts_of_drive(policy, device, override_partitions or [])
        random.shuffle(parts)
        return parts

    def _parts_of_drive(self, policy, device, override_partitions):
        manager = self._df_router[policy]
        dev_path = manager.get_dev_path(device["device"])
        if not dev_path:
            self.logger.warning(
                "%s is not reconstructed: not served by a drive daemon, or its directory is not mounted (mount_check)", device["device"])
            return
        try:
            partitions = list(manager.drive(device["device"]).partitions(policy))
        except Refused as refused:
            self.logger.error("%s is not reconstructed: %s", device["device"], refused)
            return
        for partition in partitions:
            if override_partitions and partition not in override_partitions:
                continue
            self.part_count += 1
            homes = policy.object_ring.get_part_nodes(partition)
            if self.handoffs_only and any(device["id"] == node["id"] for node in homes):
                continue
            yield {
                "local_dev": device, "policy": policy, "partition": partition,
                "part_path": os.path.join(dev_path, diskfile.get_data_dir(policy), str(partition))}

    def build_reconstruction_jobs(self, part_info):
        """One that cannot be listed holds up no other. Swift removes a partition without jobs, which is nothing for a zoned policy."""
        try:
            return super().build_reconstruction_jobs(part_info)
        except (Refused, DiskFileDeviceUnavailable) as error:
            if not self._is_zoned(part_info["policy"]):
                raise
            self.logger.error("%s is not reconstructed: %s", part_info["part_path"], error)
            return []

    def delete_reverted_objs(self, job, objects):
        before = AT_A_HOME.set(job["primary_frag_index"] is not None)
        try:
            super().delete_reverted_objs(job, objects)
        finally:
            AT_A_HOME.reset(before)

    def delete_partition(self, path):
        """A partition of a zoned policy is gone with its last object. Here is nothing that could be removed."""
        try:
            is_zoned = self._is_zoned(diskfile.extract_policy(path))
        except (AttributeError, KeyError, TypeError, ValueError):
            is_zoned = False
        if not is_zoned:
            super().delete_partition(path)


def main():
    parser = OptionParser("%prog CONFIG [options]")
    for letter, name in (("d", "devices"), ("p", "partitions")):
        parser.add_option(f"-{letter}", f"--{name}", help=f"Reconstruct only these {name}, separated by commas. Only with --once.")
    conf_file, options = parse_options(parser=parser, once=True)
    # Like Swift's own daemon, it reads the section [object-reconstructor].
    run_daemon(Reconstructor, conf_file, section_name="object-reconstructor", **options)


if __name__ == "__main__":
    main()
