"""Swift's object replicator, for servers that have zoned policies, policies of files, or both.

What lies in files is Swift's own business and stays so, rsync included. What a daemon serves goes by ssync alone, whatever
`sync_method` says, for rsync needs files. A handoff is emptied object by object, of what its homes confirm to have.
"""

import os
import time
from optparse import OptionParser

from swift.common.concurrency import Timeout
from swift.common.daemon import run_daemon
from swift.common.exceptions import PartitionLockTimeout
from swift.common.ring.utils import is_local_device
from swift.common.utils import parse_options
from swift.obj import diskfile
from swift.obj.replicator import ObjectReplicator

from zonestore_swift.errors import Refused
from zonestore_swift.manager import ZonedManager


class Replicator(ObjectReplicator):
    def _is_zoned(self, policy):
        return isinstance(self._df_router[policy], ZonedManager)

    def sync(self, node, job, suffixes, *args, **kwargs):
        if self._is_zoned(job["policy"]):
            return self.ssync(node, job, suffixes, *args, **kwargs)
        return super().sync(node, job, suffixes, *args, **kwargs)

    def build_replication_jobs(self, policy, ips, override_devices=None, override_partitions=None):
        if not self._is_zoned(policy):
            return super().build_replication_jobs(
                policy, ips, override_devices=override_devices, override_partitions=override_partitions)
        self.all_devs_info.update(
            (device["replication_ip"], device["device"]) for device in policy.object_ring.devs if device)
        local = [
            device for device in policy.object_ring.devs
            if device and is_local_device(ips, self.port, device["replication_ip"], device["replication_port"])]
        if not local:
            self.logger.error("No device of policy %d is on this host (%s, port %s)", int(policy), ", ".join(ips), self.port)
        jobs = []
        for device in local:
            if override_devices is None or device["device"] in override_devices:
                jobs += self._jobs_of_drive(policy, device, override_partitions)
        return jobs

    def _jobs_of_drive(self, policy, device, override_partitions):
        manager = self._df_router[policy]
        name = device["device"]
        dev_path = manager.get_dev_path(name)
        why = "not served by a drive daemon, or its directory is not mounted (mount_check)"
        try:
            partitions = list(manager.drive(name).partitions(policy)) if dev_path else None
        except Refused as refused:
            why, partitions = f"not replicated: {refused}", None
        if partitions is None:
            self.stats_for_dev[name].add_failure_stats(
                [(other["replication_ip"], other["device"]) for other in policy.object_ring.devs if other])
            self.logger.warning("%s is %s", name, why)
            return []
        obj_path = os.path.join(dev_path, diskfile.get_data_dir(policy))
        self._keep_rsync_out(name, obj_path)
        jobs = []
        for partition in partitions:
            if override_partitions is not None and partition not in override_partitions:
                continue
            homes = policy.object_ring.get_part_nodes(partition)
            others = [node for node in homes if node["id"] != device["id"]]
            jobs.append({
                "path": os.path.join(obj_path, str(partition)), "obj_path": obj_path, "device": name, "nodes": others,
                # None of its homes is here: a handoff.
                "delete": len(others) == len(homes), "policy": policy, "partition": str(partition), "region": device["region"]})
        return jobs

    def _keep_rsync_out(self, device, obj_path):
        """
        Removes a folder of the policy that has no partition. A peer's rsync makes no folder of two levels, so it fails without that one, and
        the peer keeps what it has. With it, rsync writes files that nobody reads here, and the peer counts them as a copy. The object
        server cannot refuse it: the question that comes before rsync is that of ssync, too, and no answer behind it counts.
        """
        try:
            names = os.listdir(obj_path)
            if partitions := list(filter(str.isdigit, names)):
                self.logger.error(
                    "%s has %d partitions of files, which nobody reads while the policy is zoned: move them with zonestore-swift-migrate, and "
                    "see that no peer replicates by rsync (sync_method = ssync)", obj_path, len(partitions))
                return
            for name in names:
                if name.startswith("auditor_status_"):
                    diskfile.remove_file(os.path.join(obj_path, name))
            os.rmdir(obj_path)
        except FileNotFoundError:
            pass
        except OSError as error:
            self.logger.error("%s: the folder %s stays, and peers may write into it by rsync: %s", device, obj_path, error)

    def revert(self, job):
        """Sends a handoff's partition home, and removes what is home."""
        if not self._is_zoned(job["policy"]):
            return super().revert(job)
        stats = self.stats_for_dev[job["device"]]
        stats.attempted += 1
        self.logger.increment("partition.delete.count.%s" % job["device"])
        begin = time.time()
        failed = set()
        try:
            # The lock keeps an incoming SSYNC out: two handoffs that send each other a partition would both remove it.
            with self._df_router[job["policy"]].partition_lock(
                    job["device"], job["policy"], job["partition"], name="replication", timeout=0.2):
                if not self._send_home(job, stats, failed):
                    self.handoffs_remaining += 1
        except PartitionLockTimeout:
            self.logger.info("Handoff partition %s of policy %d on %s is locked: it waits", job["partition"], job["policy"], job["device"])
            self.logger.increment("partition.lock-failure.count")
            self.handoffs_remaining += 1
        except (Exception, Timeout):
            self.logger.exception("Error syncing handoff partition")
            self.handoffs_remaining += 1
        finally:
            stats.add_failure_stats(failed)
            stats.success += len({(node["replication_ip"], node["device"]) for node in job["nodes"]} - failed)
            self.partition_times.append(time.time() - begin)
            self.logger.timing_since("partition.delete.timing", begin)

    def _send_home(self, job, stats, failed):
        """False if the partition is still needed here."""
        drive = self._df_router[job["policy"]].drive(job["device"])
        suffixes = drive.suffixes(job["policy"], job["partition"])
        if not suffixes:
            return True
        there = []
        for node in job["nodes"]:
            stats.rsync += 1
            success, sent = self.sync(node, job, suffixes)
            if success:
                # Asked again, for Swift counts an object as sent that it could not open.
                success, confirmed = self.sync(node, job, suffixes, remote_check_objs=set(sent))
            if success:
                there.append(confirmed)
            else:
                failed.add((node["replication_ip"], node["device"]))
        needed = min(self.handoff_delete, len(job["nodes"])) if self.handoff_delete else len(job["nodes"])
        if not there or len(there) < needed:
            return False
        stats.remove += 1
        home = set.intersection(*map(set, there))
        self._remove_sent(job, {object_hash: there[0][object_hash] for object_hash in home})
        # Hashing drops a suffix that has no object left, and nobody else hashes a handoff.
        return not self._df_router[job["policy"]].get_hashes(job["device"], job["partition"], [], job["policy"])

    def _remove_sent(self, job, sent):
        """Removes objects whose files are all home. One that was written meanwhile stays whole: metadata without data would go nowhere."""
        manager = self._df_router[job["policy"]]
        drive = manager.drive(job["device"])
        for object_hash, times in sent.items():
            drive_object = drive.object(job["policy"], job["partition"], object_hash)
            names = drive_object.files()
            # Of an object that was deleted before its last POST, the metadata are nobody's.
            has_data = any(name.endswith(".data") for name in names)
            needed = names if has_data else [name for name in names if name.endswith(".ts")]
            if names and all(_is_home(manager.parse_on_disk_filename(name, job["policy"]), times) for name in needed):
                drive_object.remove_all(names)


def _is_home(file, times):
    """Whether a file, by what its name says, is no later than what was confirmed of its kind: a PUT may come behind a later POST."""
    data_time = times["ts_data"]
    if file["ext"] != ".meta":
        return file["timestamp"] <= data_time
    return (file["timestamp"] <= (times.get("ts_meta") or data_time)
            and (file["ctype_timestamp"] or data_time) <= max(data_time, times.get("ts_ctype") or data_time))


def main():
    parser = OptionParser("%prog CONFIG [options]")
    for letter, name in (("d", "devices"), ("p", "partitions"), ("i", "policies")):
        parser.add_option(f"-{letter}", f"--{name}", help=f"Replicate only these {name}, separated by commas. Only with --once.")
    conf_file, options = parse_options(parser=parser, once=True)
    # Like Swift's own daemon, it reads the section [object-replicator].
    run_daemon(Replicator, conf_file, section_name="object-replicator", **options)


if __name__ == "__main__":
    main()
