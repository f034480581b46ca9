"""The whole cluster, as a folder describes it."""

import contextlib
import json
import os
import re
import secrets
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from zonestore_cluster import host, rings, settings
from zonestore_cluster.node import Node
from zonestore_cluster.processes import Failed, end_all, marked
from zonestore_swift.errors import Refused
from zonestore_swift.transport import Transport

FORMAT = 1
PLAN = "cluster.json"
# The plan's name until all that it says is there.
UNFINISHED = "cluster.new"
# What a node's folder has.
OF_NODE = re.compile(r"etc|log|cache|devices|rsync\.pid|(account|container|object)\.lock|d\d+[a-z]\.(new|lost|sock|zoned)(\..*)?")
FOLDER = re.compile(r"[A-Za-z0-9_./-]+")
# unix(7)
LONGEST_SOCKET = 107


class Cluster:
    """`plan`: nodes, drives, shape, zonestore, background, interval, workers, default."""

    def __init__(self, folder, plan):
        self.folder = Path(folder).resolve()
        self.plan = plan
        self.nodes = [
            Node(self.folder, number, plan["drives"], plan["shape"], plan["zonestore"], plan["background"])
            for number in range(1, plan["nodes"] + 1)]

    @classmethod
    def found(cls, folder):
        try:
            kept = json.loads((Path(folder) / PLAN).read_text())
        except (FileNotFoundError, NotADirectoryError):
            if is_remainder(folder):
                raise _remainder(folder) from None
            raise Failed(f"there is no cluster in {folder}", f"make one: {host.command(folder, 'up')}") from None
        except ValueError as error:
            raise Failed(f"{Path(folder) / PLAN} is damaged: {error}", "its objects are in the drives, node*/*.zoned there; if nobody needs them, remove the folder") from None
        if kept.get("format") != FORMAT:
            raise Failed(f"the cluster in {folder} is of another version", "use the zonestore it was made with, or remove the folder")
        return cls(folder, kept["plan"])

    @staticmethod
    def end_left(folder):
        """Ends what runs of a cluster whose folder is gone or has another name; false if nothing does."""
        folder = Path(folder).resolve()
        # Not of one in a folder below.
        logs = {log.parent for _, log in marked(folder) if log.parents[2] == folder}
        for node in logs:
            end_all(node)
        if logs:
            host.network_down(folder)
        return bool(logs)

    def devices(self):
        return [(node, device) for node in self.nodes for device in node.devices]

    def node(self, name):
        for node in self.nodes:
            if name in (node.name, str(node.number)):
                return node
        raise Failed(f"there is no node {name}", f"there are node1 to node{len(self.nodes)}")

    def of_device(self, device):
        for node, found in self.devices():
            if found == device:
                return node
        raise Failed(f"there is no drive {device}", f"{host.command(self.folder, 'status')} lists them")

    def make(self):
        """Folders, configuration, rings, empty drives. All of it or nothing: what an attempt leaves that was killed, the next one clears."""
        host.check()
        host.check_free(self.folder)
        self._check_folder()
        count, default = len(self.devices()), self.plan["default"]
        if default not in [policy["name"] for policy in settings.policies(count)]:
            raise Failed(f"there is no policy {default} with {count} drives: it takes {settings.LEAST_CODED}", "ask for more: --nodes, --drives")
        if (self.folder / UNFINISHED).exists():
            clear(self.folder)
        if is_remainder(self.folder):
            raise _remainder(self.folder)
        if self.folder.exists() and any(self.folder.iterdir()):
            raise Failed(f"{self.folder} is not empty and no cluster", "name another folder: --folder")
        self.folder.mkdir(parents=True, exist_ok=True)
        kept = json.dumps({"format": FORMAT, "plan": self.plan}, indent=1)
        (self.folder / UNFINISHED).write_text(kept)
        try:
            self._make()
        except BaseException:
            with contextlib.suppress(OSError):
                clear(self.folder)
            raise
        (self.folder / UNFINISHED).rename(self.folder / PLAN)

    def _check_folder(self):
        if not FOLDER.fullmatch(str(self.folder)):
            raise Failed(f"{str(self.folder)!r}: the configuration of Swift cannot name such a folder", "choose one with letters, digits and - _ . only: --folder")
        if self.folder.exists() and not self.folder.is_dir():
            raise Failed(f"{self.folder} is no folder", "name another one: --folder")
        longest = max((node.socket(device) for node, device in self.devices()), key=lambda path: len(str(path)))
        if len(str(longest)) > LONGEST_SOCKET:
            raise Failed(f"{longest}: a socket's path has {LONGEST_SOCKET} bytes at the most", "choose a folder with a shorter path: --folder")

    def _make(self):
        count = len(self.devices())
        policies = settings.policies(count, self.plan["default"])
        realm_key = secrets.token_hex(16)
        for node in self.nodes:
            node.configure(self.nodes, policies, self.plan["interval"], self.plan["workers"], realm_key)
        made = self.folder / "rings"
        made.mkdir(exist_ok=True)
        for kind in ("account", "container"):
            self._ring(made / f"{kind}.ring.gz", kind, min(3, count))
        for number, policy in enumerate(policies):
            name = "object" if number == 0 else f"object-{number}"
            self._ring(made / f"{name}.ring.gz", "object", settings.replicas(policy, count))
        for node in self.nodes:
            for ring in made.glob("*.ring.gz"):
                shutil.copy(ring, node.etc)
        with ThreadPoolExecutor(2) as threads:
            list(threads.map(Node.make_drives, self.nodes))

    def _ring(self, path, kind, replicas):
        places = [(node.number, node.ip, settings.PORTS[kind], device) for node, device in self.devices()]
        rings.save(path, replicas, places)

    def start(self, say):
        """What does not run, on all nodes; says what it does."""
        host.check()
        host.network_up(self.folder)
        with ThreadPoolExecutor(2) as threads:
            for node, begun in zip(self.nodes, threads.map(Node.start, self.nodes)):
                say(f"{node.name} ({node.ip}): started {len(begun)} processes")
        for node in self.nodes:
            node.wait(say)
            say(f"{node.name}: ready")

    def different(self, wanted):
        """What was asked for, by option, and is not as the cluster has it: option, what it has."""
        plan = self.plan
        has = {name: plan[name] for name in ("nodes", "drives", "interval", "workers")}
        has["default-policy"], has["quiet"] = plan["default"], not plan["background"]
        has.update(zip((option.removeprefix("--") for option in plan["shape"][::2]), plan["shape"][1::2]))
        return {option: has.get(option) for option, value in wanted.items() if value != has.get(option)}

    def stop(self):
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(Node.stop, self.nodes))
        host.network_down(self.folder)

    def remove(self):
        self.stop()
        # From here on it is none that could go on.
        (self.folder / PLAN).rename(self.folder / UNFINISHED)
        clear(self.folder)

    def endpoints(self):
        ip = self.nodes[0].ip
        return {"swift": f"http://{ip}:{settings.PORTS['proxy']}/auth/v1.0", "s3": f"http://{ip}:{settings.PORTS['proxy']}",
                "user": "test:tester", "key": settings.USERS["test:tester"][0]}

    def drives_to_lose(self):
        """Of each zoned policy, how many lost drives its writes go on without."""
        count = len(self.devices())
        return {policy["name"]: settings.drives_to_lose(policy, count) for policy in settings.policies(count) if "diskfile_module" in policy}

    def status(self):
        """Of each node what runs and what does not, and of each drive what its daemon says."""
        found = []
        # All at once: one that hangs has the others wait no longer than for itself.
        with ThreadPoolExecutor(len(self.devices())) as threads:
            drives = list(threads.map(lambda place: self._drive(*place), self.devices()))
        for node in self.nodes:
            wanted, dead = node.wanted(), node.missing()
            for drive in drives:
                if not drive["served"] and f"daemon-{drive['drive']}" in dead:
                    drive["why"] = "its daemon does not run"
            found.append({
                "node": node.name, "address": node.ip, "connected": host.is_connected(self.folder, node.number), "running": len(wanted) - len(dead),
                "not_running": dead, "drives": [drive for drive in drives if drive["drive"] in node.devices]})
        return found

    @staticmethod
    def _drive(node, device):
        transport = Transport(str(node.socket(device)), 2, 10)
        path = f"/v1/drives/{device}/store"
        try:
            space, health, cleaner = (transport.ask("GET", f"{path}/{what}") for what in ("space", "health", "cleaner"))
        except (Refused, OSError) as error:
            return {"drive": device, "served": False, "why": str(error)}
        return {"drive": device, "served": True, "live_bytes": space["live_bytes"], "dead_bytes": space["dead_bytes"],
                "capacity_bytes": space["capacity_bytes"], "available_bytes": space["available_bytes"], "zones": space["zones"], "free_zones": space["free_zones"],
                "cleans": cleaner["in_hand"] is not None, "turn": _turn(cleaner), "health": health["grade"]}

    def data_files(self):
        """Objects of zoned policies that lie in files, which must not be."""
        zoned = [number for number, policy in enumerate(settings.policies(len(self.devices()))) if "diskfile_module" in policy]
        folders = ["objects" if number == 0 else f"objects-{number}" for number in zoned]
        return [path for node, device in self.devices() for folder in folders
                for path in (node.folder / "devices" / device / folder).rglob("*") if path.is_file() and path.suffix in (".data", ".ts", ".meta")]


def is_remainder(folder):
    """Whether a folder has what is left of a cluster that was not made or not removed to the end, and nothing else."""
    folder = Path(folder)
    if not folder.is_dir() or (folder / PLAN).exists():
        return False
    there = list(folder.iterdir())
    return (folder / UNFINISHED) in there or bool(there) and all(_is_part(entry) for entry in there)


def _is_part(entry):
    """Of a cluster's folder: its rings, or a node with nothing in it that no node has."""
    if not entry.is_dir():
        return False
    if entry.name == "rings":
        return all(file.suffix in (".gz", ".builder") for file in entry.iterdir())
    return bool(re.fullmatch(r"node\d+", entry.name)) and all(OF_NODE.fullmatch(found.name) for found in entry.iterdir())


def _remainder(folder):
    return Failed(f"{folder} has what is left of a cluster that was not made or not removed to the end",
                  f"remove it: {host.command(folder, 'down --remove')}")


def clear(folder):
    """Removes a folder with all that is in it. What says of which kind it is goes last, so that it can be done again if it is interrupted.
    A mount point stays, empty."""
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        elif entry.name != UNFINISHED:
            entry.unlink()
    (folder / UNFINISHED).unlink(missing_ok=True)
    if not folder.is_mount():
        folder.rmdir()


def _turn(cleaner):
    """What a drive has been told of its turn to clean, and what it makes of it."""
    if cleaner["turn_seconds"]:
        return "its turn"
    if cleaner["is_urgent"] or not cleaner["hold_seconds"]:
        return "must" if cleaner["is_urgent"] else "decides for itself"
    return "waits for its turn" if cleaner["waits_for_turn"] else "held back"
