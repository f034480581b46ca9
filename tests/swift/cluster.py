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

PART_POWER = 4
ETC = Path("/etc/swift")
USER = os.environ.get("USER", "root")

PIPELINE = """catch_errors gatekeeper healthcheck proxy-logging cache etag-quoter listing_formats bulk tempurl ratelimit crossdomain
 container_sync s3api tempauth staticweb copy container-quotas account-quotas slo dlo versioned_writes symlink proxy-logging
 proxy-server"""
FILTERS = """catch_errors gatekeeper healthcheck listing_formats bulk tempurl ratelimit crossdomain container_sync staticweb copy slo
 dlo symlink""".split()
PROXY = """
[filter:proxy-logging]
use = egg:swift#proxy_logging
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:{memcached}
[filter:etag-quoter]
use = egg:swift#etag_quoter
enable_by_default = false
[filter:s3api]
use = egg:swift#s3api
s3_acl = yes
check_bucket_owner = yes
[filter:tempauth]
use = egg:swift#tempauth
user_admin_admin = admin .admin .reseller_admin
user_test_tester = testing .admin
user_test_tester2 = testing2 .admin
user_test_tester3 = testing3
user_test2_tester2 = testing2 .admin
[filter:container-quotas]
use = egg:swift#container_quotas
[filter:account-quotas]
use = egg:swift#account_quotas
[filter:versioned_writes]
use = egg:swift#versioned_writes
allow_versioned_writes = true
allow_object_versioning = true
[app:proxy-server]
use = egg:swift#proxy
allow_account_management = true
account_autocreate = true
allow_open_expired = true
"""
TEST_CONF = """[s3api_test]
endpoint = http://127.0.0.1:{proxy}
region = us-east-1
access_key1 = test:tester
secret_key1 = testing
access_key2 = test:tester2
secret_key2 = testing2
access_key3 = test:tester3
secret_key3 = testing3
[func_test]
auth_uri = http://127.0.0.1:{proxy}/auth/v1.0
account = test
username = tester
password = testing
s3_access_key = test:tester
s3_secret_key = testing
account2 = test2
username2 = tester2
password2 = testing2
username3 = tester3
password3 = testing3
s3_access_key2 = test:tester2
s3_secret_key2 = testing2
s3_access_key3 = test:tester3
s3_secret_key3 = testing3
account5 = test5
username5 = tester5
password5 = testing5
"""


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Node:
    """An object server and what it serves."""

    def __init__(self, folder, number, devices):
        self.number = number
        self.folder = folder / f"node{number}"
        self.devices = self.folder / "devices"
        self.names = devices
        self.port = free_port()
        self.socket = self.folder / "daemon.sock"
        self.conf = ETC / f"object-server-{number}.conf"
        for name in devices:
            (self.devices / name).mkdir(parents=True)


class Cluster:
    def __init__(self, folder, policies, nodes, zonestore=None, object_conf=""):
        """`policies`: for each its lines in swift.conf as a table, with `replicas`; `nodes`: names of devices for each."""
        self.folder = Path(folder)
        self.policies = policies
        self.nodes = [Node(self.folder, number, devices) for number, devices in enumerate(nodes)]
        self.zonestore = zonestore
        self.object_conf = object_conf
        self.ports = {name: free_port() for name in ("proxy", "account", "container", "memcached")}
        self.processes = {}

    def configure(self):
        mounted = f" {ETC} " in Path("/proc/self/mountinfo").read_text()
        assert mounted, "Swift reads its policies from /etc/swift alone: run this in a mount namespace that has its own"
        text = "[swift-hash]\nswift_hash_path_suffix = suffix\n"
        for number, policy in enumerate(self.policies):
            lines = [f"{key} = {value}" for key, value in policy.items() if key != "replicas"]
            text += f"\n[storage-policy:{number}]\n" + "\n".join(lines) + "\n"
        (ETC / "swift.conf").write_text(text)
        (ETC / "test.conf").write_text(TEST_CONF.format(**self.ports))
        filters = "".join(f"[filter:{name}]\nuse = egg:swift#{name}\n" for name in FILTERS)
        pipeline = " ".join(PIPELINE.split())
        (ETC / "proxy-server.conf").write_text(
            self._default(self.ports["proxy"]) + f"[pipeline:main]\npipeline = {pipeline}\n" + filters + PROXY.format(**self.ports))
        for kind in ("account", "container"):
            devices = self.folder / kind
            (devices / "db").mkdir(parents=True)
            (ETC / f"{kind}-server.conf").write_text(
                self._default(self.ports[kind], devices) + f"[pipeline:main]\npipeline = {kind}-server\n"
                f"[app:{kind}-server]\nuse = egg:swift#{kind}\n[{kind}-updater]\n")
            self._ring(kind, 1, [("127.0.0.1", self.ports[kind], "db")])
        for node in self.nodes:
            node.conf.write_text(self._object_conf(node))
        places = [("127.0.0.1", node.port, name) for node in self.nodes for name in node.names]
        for number, policy in enumerate(self.policies):
            self._ring("object" if number == 0 else f"object-{number}", policy["replicas"], places)

    def _default(self, port, devices=None):
        lines = ["[DEFAULT]", "bind_ip = 127.0.0.1", f"bind_port = {port}", "workers = 0", f"user = {USER}",
                 "log_level = INFO", f"recon_cache_path = {self.folder}", "mount_check = false", "disable_fallocate = true"]
        if devices:
            lines.append(f"devices = {devices}")
        return "\n".join(lines) + "\n"

    def _object_conf(self, node):
        text = self._default(node.port, node.devices) + f"zonestore_socket = {node.socket}\nring_ip = 127.0.0.1\n" + self.object_conf
        text += "\n[pipeline:main]\npipeline = object-server\n[app:object-server]\nuse = egg:swift#object\n"
        sections = ("object-replicator", "object-reconstructor", "object-updater", "object-auditor", "object-relinker")
        return text + "".join(f"[{name}]\n" for name in sections)

    def _ring(self, name, replicas, places):
        from swift.common.ring import RingBuilder
        builder = RingBuilder(PART_POWER, replicas, 0)
        for number, (ip, port, device) in enumerate(places):
            builder.add_dev({"id": number, "region": 1, "zone": number, "weight": 1.0, "ip": ip, "port": port, "device": device,
                             "replication_ip": ip, "replication_port": port, "meta": ""})
        builder.rebalance(seed=1)
        builder.get_ring().save(str(ETC / f"{name}.ring.gz"))
        builder.save(str(ETC / f"{name}.builder"))

    def start(self):
        self._start("memcached", ["memcached", "-l", "127.0.0.1", "-p", str(self.ports["memcached"]), "-u", "nobody", "-U", "0"])
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
        conf.write_text(
            f"[DEFAULT]\nlog_level = INFO\nuser = {USER}\n[object-expirer]\n"
            f"recon_cache_path = {self.folder}\n[pipeline:main]\npipeline = catch_errors cache proxy-server\n"
            "[filter:catch_errors]\nuse = egg:swift#catch_errors\n[filter:cache]\nuse = egg:swift#memcache\n"
            f"memcache_servers = 127.0.0.1:{self.ports['memcached']}\n[app:proxy-server]\nuse = egg:swift#proxy\n")
        return conf

    def start_daemon(self, node):
        drives = []
        for name in node.names:
            drive = node.folder / f"{name}.zoned"
            if not drive.exists():
                self._zonestore("drive", "create", drive, "--profile", "hm-smr-14tb", "--size", "64GiB", "--zone-size", "16MiB")
                self._zonestore("store", "mkfs", drive)
            drives.append(f"{name}={drive}")
        self._start(f"daemon{node.number}", [self.zonestore, "daemon", *drives, "--socket", str(node.socket)])
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
            urllib.request.urlopen(f"http://127.0.0.1:{self.ports['proxy']}/healthcheck", timeout=2).read()
        except OSError:
            return False
        return all(socket.socket().connect_ex(("127.0.0.1", port)) == 0
                   for port in [self.ports["account"], self.ports["container"], *(node.port for node in self.nodes)])

    def wait_for(self, condition):
        for _ in range(600):
            if condition():
                return
            ended = [name for name, process in self.processes.items() if process.poll() is not None]
            assert not ended, f"{ended[0]} ended:\n" + (self.folder / f"{ended[0]}.log").read_text()[-3000:]
            time.sleep(0.1)
        raise AssertionError("Swift does not start: see " + str(self.folder))

    def stop_one(self, name):
        process = self.processes.pop(name)
        process.send_signal(signal.SIGTERM)
        process.wait(60)

    def stop(self):
        for name in reversed(list(self.processes)):
            self.stop_one(name)

    def data_files(self, policy):
        """Objects of a policy that lie in files."""
        objects = "objects" if policy == 0 else f"objects-{policy}"
        return [path for node in self.nodes for kind in ("data", "ts", "meta") for path in node.devices.rglob(f"{objects}/**/*.{kind}")]
