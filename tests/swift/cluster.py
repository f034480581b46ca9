"""A whole Swift on this machine: proxy, account, container and object servers, rings, drives. For a mount namespace with its own /etc/swift.

Policies are described as in swift.conf. Each node is an object server with a directory of devices, a port and a daemon of its own.
"""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from zonestore_cluster import rings, settings
from zonestore_swift.transport import Transport

PART_POWER = 4
ETC = Path("/etc/swift")
HERE = "127.0.0.1"


def free_port():
    with socket.socket() as sock:
        sock.bind((HERE, 0))
        return sock.getsockname()[1]


class Node:
    """An object server and what it serves."""

    def __init__(self, folder, number, devices):
        self.number = number
        self.folder = folder / f"node{number}"
        self.devices = self.folder / "devices"
        self.names = devices
        # An address for each: `servers_per_port` takes all ports that a ring has for its address.
        self.ip = f"127.0.0.{number + 1}"
        self.port = free_port()
        self.socket = self.folder / "daemon.sock"
        self.conf = ETC / f"object-server-{number}.conf"
        for folder in ("cache", *(f"devices/{name}" for name in devices)):
            (self.folder / folder).mkdir(parents=True)


class Cluster:
    def __init__(self, folder, policies, nodes, zonestore=None, object_conf="", workers=0, daemon_options=()):
        """`policies`: for each its lines in swift.conf as a table, with `replicas`; `nodes`: names of devices for each."""
        self.folder = Path(folder)
        self.policies = policies
        self.nodes = [Node(self.folder, number, devices) for number, devices in enumerate(nodes)]
        self.zonestore = zonestore
        self.object_conf = object_conf
        self.workers = workers
        self.daemon_options = daemon_options
        self.ports = {name: free_port() for name in ("proxy", "account", "container", "memcached")}
        self.processes = {}

    def swift_conf(self):
        return settings.swift_conf([{key: value for key, value in policy.items() if key != "replicas"} for policy in self.policies])

    def configure(self):
        mounted = f" {ETC} " in Path("/proc/self/mountinfo").read_text()
        assert mounted, "Swift reads its policies from /etc/swift alone: run this in a mount namespace that has its own"
        memcached = f"{HERE}:{self.ports['memcached']}"
        app = f"egg:{'zonestore-swift' if self.zonestore else 'swift'}#proxy"
        (ETC / "swift.conf").write_text(self.swift_conf())
        (ETC / "test.conf").write_text(settings.test_conf(HERE, self.ports["proxy"]))
        (ETC / "proxy-server.conf").write_text(
            settings.proxy_conf(HERE, self.folder, memcached, self.workers, self.ports["proxy"], app))
        (ETC / "internal-client.conf").write_text(settings.internal_client_conf(memcached))
        (ETC / "container-sync-realms.conf").write_text(self.realms())
        for kind in ("account", "container"):
            folder = self.folder / kind
            (folder / "devices" / "db").mkdir(parents=True)
            (ETC / f"{kind}-server.conf").write_text(
                settings.server_conf(kind, HERE, folder, 30, 0, memcached, self.ports[kind]))
            self._ring(kind, 1, [(1, HERE, self.ports[kind], "db")])
        for node in self.nodes:
            node.conf.write_text(settings.server_conf(
                "object", node.ip, node.folder, 30, self.workers, memcached, node.port, node.socket.name, self.object_conf))
        places = [(node.number, node.ip, node.port, name) for node in self.nodes for name in node.names]
        for number, policy in enumerate(self.policies):
            self._ring("object" if number == 0 else f"object-{number}", policy["replicas"], places)

    def realms(self):
        """For container sync between containers of this cluster."""
        return f"[here]\nkey = sesame\ncluster_itself = http://{HERE}:{self.ports['proxy']}/v1/\n"

    def _ring(self, name, replicas, places):
        rings.save(ETC / f"{name}.ring.gz", replicas, places, PART_POWER)

    def start(self):
        self._start("memcached", ["memcached", "-l", HERE, "-p", str(self.ports["memcached"]), "-u", "nobody", "-U", "0"])
        for node in self.nodes:
            if self.zonestore:
                self.start_daemon(node)
            self.start_object_server(node)
        for kind in ("account", "container", "proxy"):
            self.start_server(kind)
        self.wait_for(self._is_healthy)

    def start_server(self, kind):
        self._start(kind, [self.tool(f"swift-{kind}-server"), str(ETC / f"{kind}-server.conf")])

    def expirer_conf(self):
        conf = ETC / "object-expirer.conf"
        conf.write_text(settings.internal_client_conf(f"{HERE}:{self.ports['memcached']}")
                        + f"[object-expirer]\nuser = root\nrecon_cache_path = {self.folder}/cache\n")
        return conf

    def start_daemon(self, node):
        drives = []
        for name in node.names:
            drive = node.folder / f"{name}.zoned"
            if not drive.exists():
                self._zonestore("drive", "create", drive, "--profile", "hm-smr-14tb", "--size", "16GiB", "--zone-size", "16MiB")
                self._zonestore("store", "mkfs", drive)
            drives.append(f"{name}={drive}")
        self._start(f"daemon{node.number}", [self.zonestore, "daemon", *drives, "--socket", str(node.socket), *self.daemon_options])
        self.wait_for(node.socket.exists)

    def _zonestore(self, *arguments):
        subprocess.run([self.zonestore, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)

    def start_object_server(self, node):
        self._start(f"object{node.number}", [self.tool("swift-object-server"), str(node.conf)])

    @staticmethod
    def tool(name):
        """A program of the environment that runs this."""
        return str(Path(sys.executable).parent / name)

    def _start(self, name, command):
        with open(self.folder / f"{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)

    def _is_healthy(self):
        try:
            urllib.request.urlopen(f"http://{HERE}:{self.ports['proxy']}/healthcheck", timeout=60).read()
        except OSError:
            return False
        return all(socket.socket().connect_ex(place) == 0 for place in (
            (HERE, self.ports["account"]), (HERE, self.ports["container"]), *((node.ip, node.port) for node in self.nodes)))

    def wait_for(self, condition):
        for _ in range(6000):
            if condition():
                return
            ended = [name for name, process in self.processes.items() if process.poll() is not None]
            assert not ended, f"{ended[0]} ended:\n" + (self.folder / f"{ended[0]}.log").read_text()[-3000:]
            time.sleep(0.1)
        raise AssertionError("Swift does not start: see " + str(self.folder))

    def stop_one(self, name):
        process = self.processes.pop(name)
        process.send_signal(signal.SIGTERM)
        process.wait(600)

    def stop(self):
        for name in reversed(list(self.processes)):
            self.stop_one(name)

    @staticmethod
    def has_objects(node, policy):
        """Whether a drive of the node has anything of a policy, be it tombstones: small objects take no space in zones."""
        transport = Transport(str(node.socket), 2, 60)
        drives = [f"/v1/drives/{name}/swift" for name in node.names]
        held = [drive for drive in drives if any(row["policy"] == policy for row in transport.ask("GET", f"{drive}/policies"))]
        return any(transport.ask("GET", f"{drive}/{policy}/partitions?from=0&limit=1") for drive in held)

    def data_files(self, policy):
        """Objects of a policy that lie in files."""
        objects = "objects" if policy == 0 else f"objects-{policy}"
        return [path for node in self.nodes for kind in ("data", "ts", "meta") for path in node.devices.rglob(f"{objects}/**/*.{kind}")]
