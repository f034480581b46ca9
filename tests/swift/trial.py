"""A load that remembers what was acknowledged, faults beside it, and the question afterwards whether all of it is there."""

import functools
import hashlib
import http.client
import itertools
import random
import threading
import time
import urllib.parse
from pathlib import Path

from swift.common import direct_client, utils
from swift.common.concurrency import Timeout
from swift.common.ring import Ring
from swift.common.utils import Timestamp
from zonestore_cluster import settings


class Account:
    """A user of the cluster, at any of its proxies."""

    def __init__(self, cluster, seconds=20):
        self.addresses = [node.ip for node in cluster.nodes]
        self.port = settings.PORTS["proxy"]
        self.seconds = seconds
        self.token, self.path = None, None
        self.signing_in = threading.Lock()

    def sign_in(self):
        for address in itertools.islice(itertools.cycle(self.addresses), 10 * len(self.addresses)):
            try:
                status, headers, _ = self.ask(address, "GET", "/auth/v1.0", headers={"X-Auth-User": "test:tester", "X-Auth-Key": "testing"})
            except OSError:
                continue
            if status == 200:
                self.token = headers["X-Auth-Token"]
                self.path = urllib.parse.urlsplit(headers["X-Storage-Url"]).path
                return self
            time.sleep(0.3)
        raise AssertionError("nobody lets us in")

    def ask(self, address, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection(address, self.port, timeout=self.seconds)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        except http.client.HTTPException as error:
            raise OSError(str(error)) from error
        finally:
            connection.close()

    def call(self, method, name, body=None, headers=None, dice=random):
        """At one proxy. Status 0: nobody knows what came of it. A token that its memcached has forgotten is replaced."""
        path = f"{self.path}/{urllib.parse.quote(name)}"
        for _ in range(3):
            token = self.token
            try:
                answer = self.ask(dice.choice(self.addresses), method, path, body, {"X-Auth-Token": token, **(headers or {})})
            except OSError:
                return 0, {}, b""
            if answer[0] != 401:
                break
            with self.signing_in:
                if self.token == token:
                    self.sign_in()
        return answer


def data_of(name, version, size):
    return random.Random(f"{name} {version}").randbytes(size)


class Writer(threading.Thread):
    """Puts and deletes objects that nobody else writes, and remembers what may be there: what was acknowledged last, and
    what was tried since."""

    def __init__(self, account, container, number, sizes, seed):
        super().__init__(daemon=True)
        self.account, self.container, self.sizes = account, container, sizes
        self.dice = random.Random(f"{seed} {number}")
        self.names = [f"{container}/object {number}-{n}" for n in range(12)]
        self.may_be = {name: {None} for name in self.names}
        self.ever = {name: set() for name in self.names}
        self.acknowledged, self.refused, self.wrong = 0, 0, []
        self.ends = threading.Event()

    def run(self):
        for version in itertools.count():
            if self.ends.is_set():
                return
            name = self.dice.choice(self.names)
            if self.dice.random() < 0.3:
                self.read(name)
                continue
            new = None if self.dice.random() < 0.2 else (version, self.dice.choice(self.sizes))
            if new is None:
                status, _, _ = self.account.call("DELETE", name, dice=self.dice)
                done = status == 204 or (status == 404 and self.may_be[name] == {None})
            else:
                self.ever[name].add(new)
                status, _, _ = self.account.call("PUT", name, data_of(name, *new), dice=self.dice)
                done = status == 201
            if done:
                self.may_be[name] = {new}
                self.acknowledged += 1
            else:
                self.may_be[name].add(new)
                self.refused += 1

    def read(self, name):
        """What is read was written once. It may be older than what was acknowledged last: a replica that was away answers
        with what it has, and Swift promises no more."""
        status, headers, body = self.account.call("GET", name, dice=self.dice)
        whole = len(body) == int(headers.get("Content-Length", -1))
        if status == 200 and whole and not self.is_one_of(name, body, self.ever[name]):
            self.wrong.append(f"{name}: {len(body)} bytes, {hashlib.md5(body).hexdigest()}, that were never written")

    @staticmethod
    def is_one_of(name, body, versions):
        return any(new is not None and len(body) == new[1] and body == data_of(name, *new) for new in versions)

    def check(self, name):
        """What is wrong with an object at last; None: nothing."""
        status, _, body = self.account.call("GET", name, headers={"X-Newest": "true"}, dice=self.dice)
        if status == 404:
            return None if None in self.may_be[name] else f"{name}: lost, one of {self.may_be[name]} was acknowledged"
        if status != 200:
            return f"{name}: {status}"
        return None if self.is_one_of(name, body, self.may_be[name]) else f"{name}: not one of {self.may_be[name]}"


class Trial:
    """`policies`: those that a container is made of."""

    def __init__(self, cluster, policies, writers=2, sizes=(0, 100, 70_000, 1_500_000), seed=1):
        self.cluster = cluster
        self.account = Account(cluster).sign_in()
        utils.HASH_PATH_PREFIX, utils.HASH_PATH_SUFFIX = b"zonestore", b"cluster"
        self.policies = {policy["name"]: number for number, policy in enumerate(settings.policies(len(cluster.devices())))}
        self.seed = seed
        self.writers = []
        for policy in policies:
            container = f"trial-{policy}-{seed}"
            status = self.until(lambda: self.account.call("PUT", container, headers={"X-Storage-Policy": policy})[0] in (201, 202), 600)
            assert status, f"no container of policy {policy}"
            self.writers += [Writer(self.account, container, number, sizes, seed) for number in range(writers)]

    @staticmethod
    def until(condition, seconds):
        until = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > until:
                return False
            time.sleep(0.5)
        return True

    def start(self):
        for writer in self.writers:
            writer.start()

    def acknowledged(self):
        return sum(writer.acknowledged for writer in self.writers)

    def run_for(self, seconds):
        """And until something was acknowledged."""
        before = self.acknowledged()
        time.sleep(seconds)
        assert self.until(lambda: self.acknowledged() > before, 600), "nothing was acknowledged for ten minutes"

    def end(self):
        for writer in self.writers:
            writer.ends.set()
        for writer in self.writers:
            writer.join(600)
        wrong = [line for writer in self.writers for line in writer.wrong]
        assert not wrong, wrong

    def check(self, seconds=600):
        """Every object is what it was acknowledged to be; what is refused is asked again."""
        left = [(writer, name) for writer in self.writers for name in writer.names]
        found = {}

        def all_right():
            nonlocal left
            found.clear()
            for writer, name in left:
                if problem := writer.check(name):
                    found[name] = problem
            left = [(writer, name) for writer, name in left if name in found]
            return not found

        assert self.until(all_right, seconds), list(found.values())

    def wait_for_redundancy(self, seconds):
        """Until every object was seen with all its copies or fragments; how long that took. Writers may go on meanwhile: what is whole
        once is not asked again."""
        begun = time.monotonic()
        left = {name: writer for writer in self.writers for name in writer.names}
        problems = {}

        def is_redundant():
            problems.clear()
            for name, writer in list(left.items()):
                if missing := self.missing_copies(writer.container, name):
                    problems[name] = missing
                else:
                    del left[name]
            return not left

        assert self.until(is_redundant, seconds), f"after {seconds} s {len(problems)} objects are not whole: {list(problems.values())[:10]}"
        return time.monotonic() - begun

    def missing_copies(self, container, name):
        """What of an object is not there, is older, or cannot be read: the bytes of each copy are asked for, and those of a replica
        compared. What is deleted has to be so everywhere."""
        missing, fragments = [], set()
        account, obj = self.account.path.rsplit("/", 1)[1], name.split("/", 1)[1]
        index = self.policy_of(container)
        status, headers, whole = self.account.call("GET", name, headers={"X-Newest": "true"})
        part, nodes = self.ring(index).get_nodes(account, container, obj)
        for node in nodes:
            try:
                found, body = direct_client.direct_get_object(
                    node, part, account, container, obj, conn_timeout=2, response_timeout=10,
                    headers={"X-Backend-Storage-Policy-Index": str(index)})
            # Swift's Timeout is no Exception.
            except (Exception, Timeout) as error:
                if status != 404 or getattr(error, "http_status", None) != 404:
                    missing.append(f"{name} at {node['device']}: {str(error)[:80]}")
                continue
            fragment = found.get("X-Object-Sysmeta-Ec-Frag-Index")
            fragments.add(fragment or node["device"])
            if status == 404:
                missing.append(f"{name} at {node['device']}: deleted elsewhere")
            elif status != 200:
                missing.append(f"{name}: {status}")
            elif Timestamp(found["X-Timestamp"]) < Timestamp(headers["X-Timestamp"]):
                missing.append(f"{name} at {node['device']}: an older one")
            elif len(body) != int(found["Content-Length"]):
                missing.append(f"{name} at {node['device']}: {len(body)} of {found['Content-Length']} bytes")
            elif fragment is None and body != whole and found["X-Timestamp"] == headers["X-Timestamp"]:
                missing.append(f"{name} at {node['device']}: other bytes")
        if status != 404 and len(fragments) < len(nodes):
            missing.append(f"{name}: {len(fragments)} of {len(nodes)} fragments or copies")
        return missing

    def policy_of(self, container):
        return self.policies[container.split("-", 1)[1].rsplit("-", 1)[0]]

    @functools.cache
    def ring(self, index):
        name = "object" if index == 0 else f"object-{index}"
        return Ring(str(Path(self.cluster.folder) / "rings" / f"{name}.ring.gz"))
