#!/usr/bin/env python3
"""A cluster of zoned drives under load and faults. Nothing that was acknowledged may be lost or wrong, and every object has
all its copies again afterwards.

    tests/swift/faults.py [--nodes 4] [--drives 2] [--rounds 8] [--seed 1] [--seconds 10] [--size 4GiB] [--workers 0]
                          [--keep] [--only KIND,…]

Needs root and `scripts/setup --cluster`. Prints a line for each fault, and exits with 1 at the first thing that is wrong.
"""

import argparse
import os
import random
import shutil
import signal
import struct
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "swift"), str(Path(__file__).parent), str(ROOT / "tests" / "browser")]

from drive_zones import OFFLINE, set_condition  # noqa: E402
from trial import Trial  # noqa: E402
from zonestore_cluster import host  # noqa: E402
from zonestore_cluster.__main__ import binary  # noqa: E402
from zonestore_cluster.cluster import Cluster  # noqa: E402
from zonestore_cluster.processes import last_words  # noqa: E402
from zonestore_swift.drive import Drive  # noqa: E402
from zonestore_swift.errors import NoSpace  # noqa: E402
from zonestore_swift.transport import Transport  # noqa: E402

SHAPE = ["--profile", "hm-smr-14tb", "--size", "8GiB", "--zone-size", "8MiB"]
MIB = 1 << 20
# docs/format/file-drive.md
TABLE, ENTRY = 4096, 64


class Ballast:
    """Objects of a policy that the cluster does not have, so that none of its daemons touches them."""

    policy_type = "replication"

    def __init__(self, node, device):
        self.drive = Drive(Transport(str(node.socket(device)), 2, 120), device)
        self.objects = []

    def __int__(self):
        return 9

    def fill(self):
        """Until the drive takes no more, not even little ones. Bytes that went in."""
        self.drive.add_policy(self)
        written = 0
        for size in (4 * MIB, 256 << 10, 16 << 10, 1 << 10):
            data = os.urandom(size)
            while True:
                placed = self.drive.object(self, 0, os.urandom(16).hex())
                try:
                    placed.put("0000000001.00000.data", b"", data)
                except NoSpace:
                    break
                self.objects.append(placed)
                written += size
        return written

    def remove(self):
        """Many at once, which share commits: one by one takes minutes."""
        with ThreadPoolExecutor(16) as threads:
            list(threads.map(lambda placed: placed.remove_all(["0000000001.00000.data"]), self.objects))


def plan(arguments):
    return {"nodes": arguments.nodes, "drives": arguments.drives, "zonestore": binary(),
            "shape": ["--profile", SHAPE[1], "--size", arguments.size, "--zone-size", SHAPE[5]], "background": True,
            "interval": 5, "workers": arguments.workers, "default": "zoned"}


class Faults:
    """Each makes something bad happen and answers what it was; `mend` and the cluster's `start` mend it."""

    def __init__(self, cluster, dice):
        self.cluster, self.dice = cluster, dice
        self.ballast = None

    def mend(self):
        if self.ballast is not None:
            self.ballast.remove()
            self.ballast = None

    def process(self):
        node = self.dice.choice(self.cluster.nodes)
        name = self.dice.choice(sorted(set(node.processes()) - {"holder"}))
        node.processes()[name].kill()
        return f"{name} of {node.name} is killed"

    def node(self):
        node = self.dice.choice(self.cluster.nodes)
        node.kill()
        return f"all processes of {node.name} are killed"

    def network(self):
        node = self.dice.choice(self.cluster.nodes)
        host.connect(self.cluster.folder, node.number, False)
        return f"{node.name} is cut off"

    def drive(self):
        node, device = self.dice.choice(self.cluster.devices())
        node.kill_drive(device, False)
        return f"the daemon of {device} is killed"

    def lost(self):
        node, device = self.dice.choice(self.cluster.devices())
        node.kill_drive(device, True)
        return f"{device} is lost"

    def rot(self):
        """In zones with objects; the metadata has two copies, and trials of its own."""
        node, device = self.dice.choice(self.cluster.devices())
        transport = Transport(str(node.socket(device)), 2, 10)
        shape = transport.ask("GET", f"/v1/drives/{device}/drive")["geometry"]
        zones = transport.ask("GET", f"/v1/drives/{device}/store/zones?first=0&count=4096")
        begin = -(-(TABLE + ENTRY * shape["zone_count"]) // MIB) * MIB
        flipped = 0
        with open(node.drive(device), "r+b") as drive:
            for zone in zones:
                for _ in range(8 if zone["live_bytes"] else 0):
                    place = begin + zone["zone"] * shape["zone_size"] + self.dice.randrange(zone["written_bytes"])
                    drive.seek(place)
                    byte = drive.read(1)
                    drive.seek(place)
                    drive.write(bytes([byte[0] ^ (1 << self.dice.randrange(8))]))
                    flipped += 1
        return f"{flipped} bits of {device} flip"


    def brim(self):
        """And its daemon is killed and begins anew with the full drive."""
        node, device = self.dice.choice(self.cluster.devices())
        self.ballast = Ballast(node, device)
        written = self.ballast.fill()
        node.kill_drive(device, False)
        self.cluster.start(lambda line: None)
        return f"{device} is filled to the brim with {written / MIB:.0f} MiB"

    def zone(self):
        """One with objects and, of the others in use, one more: between two starts of the daemon, which alone writes the drive's table."""
        node, device = self.dice.choice(self.cluster.devices())
        transport = Transport(str(node.socket(device)), 2, 10)
        zones = transport.ask("GET", f"/v1/drives/{device}/store/zones?first=0&count=4096")
        with_objects = [zone["zone"] for zone in zones if zone["live_bytes"]]
        node.kill_drive(device, False)
        used = [number for number in used_zones(node.drive(device)) if number not in with_objects]
        chosen = [self.dice.choice(some) for some in (with_objects, used) if some]
        for number in chosen:
            set_condition(node.drive(device), number, OFFLINE)
        self.cluster.start(lambda line: None)
        return f"{device} loses zones {sorted(chosen)} ({len(with_objects)} have objects)"


def used_zones(path):
    """Those of a drive that are closed or full."""
    with open(path, "rb") as drive:
        header = drive.read(TABLE)
        table = drive.read(ENTRY * struct.unpack_from("<I", header, 36)[0])
    return [number for number in range(len(table) // ENTRY) if table[number * ENTRY + 5] in (3, 4)]


KINDS = ["process", "node", "network", "drive", "lost", "rot", "brim", "zone"]


def run(arguments, folder):
    dice = random.Random(arguments.seed)
    cluster = Cluster(folder, plan(arguments))
    cluster.make()
    cluster.start(lambda line: None)
    print(f"{arguments.nodes} nodes with {arguments.drives} drives are up", flush=True)
    try:
        trial = Trial(cluster, ["zoned", "zoned-ec"], seed=arguments.seed)
        faults = Faults(cluster, dice)
        trial.start()
        kinds = arguments.only or KINDS
        for number in range(arguments.rounds):
            trial.run_for(arguments.seconds)
            kind = kinds[number % len(kinds)]
            what = getattr(faults, kind)()
            begun = time.monotonic()
            trial.run_for(arguments.seconds)
            faults.mend()
            cluster.start(lambda line: None)
            # The next fault may hit another copy of the same object.
            seconds = trial.wait_for_redundancy(600)
            print(f"{what}: whole again {seconds:.0f} s after it was mended, {time.monotonic() - begun:.0f} s after the fault; "
                  f"{trial.acknowledged()} acknowledged so far", flush=True)
        trial.end()
        trial.check()
        trial.wait_for_redundancy(600)
        refused = sum(writer.refused for writer in trial.writers)
        assert not cluster.data_files(), cluster.data_files()[:3]
        print(f"{trial.acknowledged()} acknowledged writes, {refused} refused: 0 lost, 0 wrong", flush=True)
    except Exception:
        tell_dead(cluster)
        raise
    finally:
        cluster.stop()


def tell_dead(cluster):
    """Each process that has ended, and what it said last: the fault may be one that nobody planned."""
    for node in cluster.nodes:
        for name in node.missing():
            print(f"{name} of {node.name} has ended: {last_words(node.log / f'{name}.log')}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name, default in (("nodes", 4), ("drives", 2), ("rounds", 6), ("seed", 1), ("seconds", 10), ("workers", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--size", default="4GiB", help="of each drive; metadata have two copies from here on")
    parser.add_argument("--keep", action="store_true", help="leave the folder with drives and logs, as after an error")
    parser.add_argument("--only", type=lambda text: text.split(","), help="these kinds: " + ", ".join(KINDS))
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder = Path(tempfile.mkdtemp(prefix="swift-faults-"))
    keeps = True
    try:
        run(arguments, folder)
        keeps = arguments.keep
    except AssertionError as error:
        print(f"WRONG (seed {arguments.seed}): {error}")
        return 1
    finally:
        if keeps:
            print("kept:", folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
