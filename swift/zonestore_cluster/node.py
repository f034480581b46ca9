"""One node: its drives, its configuration, its processes."""

import shutil
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from zonestore_cluster import host, settings
from zonestore_cluster.processes import Failed, end_all, running, start

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
        # By this command: one that is just being executed has no environment yet.
        self.started = {}
        # What ran before this command. It may be about to end.
        self.found = {}

    def processes(self):
        return running(self.log)

    def configure(self, nodes, policies, interval, workers, realm_key):
        for folder in (self.etc, self.log, self.folder / "cache", *map(self.directory, self.devices)):
            folder.mkdir(parents=True, exist_ok=True)
        memcached = ",".join(f"{node.ip}:{settings.PORTS['memcached']}" for node in nodes)
        (self.etc / "swift.conf").write_text(settings.swift_conf(policies))
        for kind in ("account", "container", "object"):
            (self.etc / f"{kind}-server.conf").write_text(settings.server_conf(kind, self.ip, self.folder, interval, workers, memcached))
        (self.etc / "proxy-server.conf").write_text(settings.proxy_conf(self.ip, self.folder, memcached, workers))
        (self.etc / "internal-client.conf").write_text(settings.internal_client_conf(memcached))
        (self.etc / "container-sync-realms.conf").write_text(settings.realms_conf(self.ip, realm_key))
        (self.etc / "rsyncd.conf").write_text(settings.rsync_conf(self.ip, self.folder))
        (self.etc / "test.conf").write_text(settings.test_conf(self.ip))

    def drive(self, device):
        return self.folder / f"{device}.zoned"

    def socket(self, device):
        return self.folder / f"{device}.sock"

    def make_drives(self):
        """Those that are not there, each with an empty store."""
        for device in self.devices:
            # Of a loss that was interrupted.
            self._clear_lost(device)
            self.directory(device).mkdir(exist_ok=True)
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

    def wanted(self):
        return {HOLDER, *self._commands()}

    def missing(self):
        """What does not run and should."""
        return sorted(self.wanted() - self.processes().keys())

    def start(self):
        """What does not run. Answers once its servers listen."""
        self.make_drives()
        processes = self.processes()
        holder = processes.get(HOLDER)
        if holder is None or not host.holds(holder):
            # What is left of the node is in namespaces that nobody can enter any more.
            self.kill()
            processes = {}
            holder = host.hold(self.number, self.etc, self.log / f"{HOLDER}.log")
        host.connect(self.cluster, self.number, True)
        self.found = {name: process for name, process in processes.items() if name != HOLDER}
        begun = []
        for name, command in self._commands().items():
            if name not in processes:
                self._start(name, command, holder)
                begun.append(name)
        return begun

    def _start(self, name, command, holder):
        # Workers that outlive their parent have its place.
        end_all(self.log, name)
        self.started[name] = start([*host.inside(holder.pid), *command], self.log / f"{name}.log")

    def wait(self, say):
        """Until its servers answer. What was found running and ends instead was being stopped, and is started again."""
        places = {f"daemon-{device}": (socket.AF_UNIX, str(self.socket(device))) for device in self.devices}
        places |= {kind: (socket.AF_INET, (self.ip, settings.PORTS[kind])) for kind in SERVERS}
        for name, place in places.items():
            self._ready(name, lambda place=place: self._answers(*place), say)
        for name in self._start_ended(self.found, say) & places.keys():
            self._ready(name, lambda place=places[name]: self._answers(*place), say)

    def _start_ended(self, names, say):
        """Those of `names` that were found running and have ended; returns them."""
        ended = set()
        for name, command in self._commands().items():
            if name in names and name in self.found and not self.found[name].is_alive():
                del self.found[name]
                say(f"{self.name}: {name} was being stopped and has ended; starting it again")
                self._start(name, command, self.processes()[HOLDER])
                ended.add(name)
        return ended

    def _ready(self, name, condition, say):
        try:
            if (process := self.found.get(name)) and not self._still_answers(name, process, condition, say):
                self._start_ended([name], say)
            if name in self.started:
                self.started[name].wait_until(condition)
        except Failed as failed:
            raise Failed(f"{self.name}: {name}: {failed}", failed.hint) from None

    def _still_answers(self, name, process, condition, say):
        """Whether one that was found running answers; false once it has ended."""
        if process.is_alive() and not condition():
            say(f"{self.name}: {name} runs and does not answer; waiting until it does, or until it has ended")
        return process.is_true_of_it(condition)

    @staticmethod
    def _answers(family, place):
        with socket.socket(family) as connection:
            connection.settimeout(1)
            try:
                return connection.connect_ex(place) == 0
            except OSError:
                return False

    def stop(self):
        processes = self.processes()
        holder = processes.pop(HOLDER, None)
        for process in processes.values():
            process.send(signal.SIGTERM)
        for process in processes.values():
            process.stop()
        if holder is not None:
            holder.kill()
        end_all(self.log)

    def kill(self):
        """As when its power goes. The drives' caches are lost with it only as far as the host's are: not at all."""
        processes = self.processes()
        for process in processes.values():
            process.send(signal.SIGKILL)
        for process in processes.values():
            process.kill()
        end_all(self.log)

    def kill_drive(self, device, lose):
        """Its daemon goes at once; with `lose`, what is on the drive too."""
        if process := self.processes().get(f"daemon-{device}"):
            process.kill()
        if lose:
            for path in (self.drive(device), *self.folder.glob(f"{device}.zoned.*")):
                path.unlink(missing_ok=True)
            # Away in one step: Swift's processes go on writing to what has the name.
            self._clear_lost(device)
            with suppress(FileNotFoundError):
                self.directory(device).rename(self._lost(device))
            self.directory(device).mkdir(exist_ok=True)
            self._clear_lost(device)

    def directory(self, device):
        """Of the host, which has what belongs to a drive beside its objects."""
        return self.folder / "devices" / device

    def _lost(self, device):
        return self.folder / f"{device}.lost"

    def _clear_lost(self, device):
        shutil.rmtree(self._lost(device), ignore_errors=True)
