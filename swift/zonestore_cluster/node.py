"""One node: its drives, its configuration, its processes."""

import json
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

from zonestore_cluster import host, settings
from zonestore_cluster.processes import Failed, Process, start

HOLDER = "holder"
# Each has a letter.
MOST_DRIVES = 26
SERVERS = ("account", "container", "object", "proxy")
# Where turns to clean are given in time, zones have to last until one comes.
CLEAN_FREE_ZONES = "5%..20%"


def tool(name):
    """A program of the environment that runs this."""
    return Path(sys.executable).parent / name


class Node:
    def __init__(self, folder, number, drives, shape, zonestore, background):
        """`shape`: options of `zonestore drive create`; `background`: replicators, auditors and so on run too."""
        self.number = number
        self.name = f"node{number}"
        self.ip = host.address(number)
        self.cluster = Path(folder)
        self.folder = self.cluster / self.name
        self.etc = self.folder / "etc"
        self.log = self.folder / "log"
        self.devices = [f"d{number}{chr(ord('a') + drive)}" for drive in range(drives)]
        self.shape = shape
        self.zonestore = zonestore
        self.background = background

    # What runs is kept in a file: each command is a process of its own.
    @property
    def _running(self):
        return self.folder / "processes.json"

    def processes(self):
        try:
            kept = json.loads(self._running.read_text())
        except FileNotFoundError:
            return {}
        return {name: Process.of(process) for name, process in kept.items()}

    def _keep(self, processes):
        new = self._running.with_suffix(".new")
        new.write_text(json.dumps({name: process.kept() for name, process in processes.items()}, indent=1))
        new.replace(self._running)

    def configure(self, nodes, policies, interval, workers):
        for folder in (self.etc, self.log, self.folder / "cache", *(self.folder / "devices" / device for device in self.devices)):
            folder.mkdir(parents=True, exist_ok=True)
        memcached = ",".join(f"{node.ip}:{settings.PORTS['memcached']}" for node in nodes)
        (self.etc / "swift.conf").write_text(settings.swift_conf(policies))
        for kind in ("account", "container", "object"):
            (self.etc / f"{kind}-server.conf").write_text(settings.server_conf(kind, self.ip, self.folder, interval, workers, memcached))
        (self.etc / "proxy-server.conf").write_text(settings.proxy_conf(self.ip, self.folder, memcached, workers))
        (self.etc / "internal-client.conf").write_text(settings.internal_client_conf(memcached))
        (self.etc / "container-sync-realms.conf").write_text("")
        (self.etc / "rsyncd.conf").write_text(settings.rsync_conf(self.ip, self.folder))
        (self.etc / "test.conf").write_text(settings.test_conf(self.ip))

    def drive(self, device):
        return self.folder / f"{device}.zoned"

    def socket(self, device):
        return self.folder / f"{device}.sock"

    def make_drives(self):
        """Those that are not there, each with an empty store."""
        for device in self.devices:
            drive = self.drive(device)
            if not drive.exists():
                # It has its name once it has a store.
                new = drive.with_suffix(".new")
                new.unlink(missing_ok=True)
                for words in (["drive", "create", new, *self.shape], ["store", "mkfs", new]):
                    done = subprocess.run([self.zonestore, *map(str, words)], capture_output=True, text=True, start_new_session=True)
                    if done.returncode:
                        new.unlink(missing_ok=True)
                        raise Failed(f"{self.name}: {done.stderr.strip()}")
                new.rename(drive)

    def _commands(self):
        """What runs, in the order in which it is started."""
        conf = self.etc
        found = {"memcached": ["memcached", "-l", self.ip, "-p", settings.PORTS["memcached"], "-u", "root", "-U", 0, "-m", 64],
                 "rsync": ["rsync", "--daemon", "--no-detach", f"--config={conf}/rsyncd.conf"]}
        for device in self.devices:
            found[f"daemon-{device}"] = [
                self.zonestore, "daemon", f"{device}={self.drive(device)}", "--socket", self.socket(device),
                "--clean-free-zones", CLEAN_FREE_ZONES]
        for kind in SERVERS:
            found[kind] = [tool(f"swift-{kind}-server"), f"/etc/swift/{kind}-server.conf", "-v"]
        found["reporter"] = [tool("zonestore-swift-reporter"), "/etc/swift/object-server.conf", "-v"]
        if not self.background:
            return found
        for kind, sections in settings.BACKGROUND.items():
            for section in sections:
                name = {"object-replicator": "zonestore-swift-replicator",
                        "object-reconstructor": "zonestore-swift-reconstructor"}.get(section, f"swift-{section}")
                if section == "object-relinker" or (section == "object-expirer" and self.number != 1):
                    continue
                found[section] = [tool(name), f"/etc/swift/{kind}-server.conf", "-v"]
        return found

    def start(self):
        """What does not run. Answers once its servers listen."""
        self.make_drives()
        processes = self.processes()
        holder = processes.get(HOLDER)
        if holder is None or not holder.is_alive():
            holder = host.hold(self.number, self.etc, self.log / "holder.log")
            processes = {HOLDER: holder}
            self._keep(processes)
        host.connect(self.cluster, self.number, True)
        begun = []
        for name, command in self._commands().items():
            if name in processes and processes[name].is_alive():
                continue
            processes[name] = start([*host.inside(holder.pid), *command], self.log / f"{name}.log")
            self._keep(processes)
            begun.append(name)
        return begun

    def wait(self):
        """Until its servers answer."""
        processes = self.processes()
        for device in self.devices:
            self._ready(processes, f"daemon-{device}", lambda path=self.socket(device): self._answers(socket.AF_UNIX, str(path)))
        for kind in SERVERS:
            self._ready(processes, kind, lambda port=settings.PORTS[kind]: self._answers(socket.AF_INET, (self.ip, port)))

    def _ready(self, processes, name, condition):
        try:
            processes[name].wait_until(condition)
        except Failed as failed:
            raise Failed(f"{self.name}: {name}: {failed}", failed.hint) from None

    @staticmethod
    def _answers(family, place):
        with socket.socket(family) as connection:
            connection.settimeout(1)
            return connection.connect_ex(place) == 0

    def stop(self):
        processes = self.processes()
        holder = processes.pop(HOLDER, None)
        for process in processes.values():
            process.send(signal.SIGTERM)
        for process in processes.values():
            process.stop()
        if holder is not None:
            holder.kill()
        self._keep({})

    def kill(self):
        """As when its power goes. The drives' caches are lost with it only as far as the host's are: not at all."""
        processes = self.processes()
        for process in processes.values():
            process.send(signal.SIGKILL)
        for process in processes.values():
            process.kill()
        self._keep({})

    def kill_drive(self, device, lose):
        """Its daemon goes at once; with `lose`, what is on the drive too."""
        processes = self.processes()
        if process := processes.pop(f"daemon-{device}", None):
            process.kill()
        self._keep(processes)
        if lose:
            for path in (self.drive(device), *self.folder.glob(f"{device}.zoned.*")):
                path.unlink(missing_ok=True)
            # Away in one step: Swift's processes go on writing to what has the name.
            directory, gone = self.folder / "devices" / device, self.folder / f"{device}.lost"
            directory.rename(gone)
            directory.mkdir()
            shutil.rmtree(gone, ignore_errors=True)
