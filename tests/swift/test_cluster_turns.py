"""A small cluster whose drives clean one after the other: two nodes with two drives, and objects with three replicas."""

import random
import threading
import time

import pytest
import swiftclient
from swift.common.memcached import MemcacheRing
from swift.common.utils import get_logger
from test_cluster import command, missing
from trial import Trial
from zonestore_cluster import settings
from zonestore_cluster.cluster import Cluster
from zonestore_swift import news
from zonestore_swift.transport import Transport

# Cleaning begins when a tenth of a drive is written.
MARKS = "5%..90%"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    if why := missing():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("turns") / "it"
    up = command(folder, "up", "--nodes", "2", "--drives", "2", "--size", "2GiB", "--zone-size", "8MiB", "--quiet")
    try:
        assert up.returncode == 0, up.stderr
        yield folder
    finally:
        command(folder, "down", "--remove")


class Drives:
    """What each drive's daemon says of its cleaner."""

    def __init__(self, cluster):
        self.transports = {device: Transport(str(node.socket(device)), 2, 30) for node, device in cluster.devices()}

    def ask(self, device, method="GET", question=None):
        return self.transports[device].ask(method, f"/v1/drives/{device}/store/cleaner", question)

    def all(self):
        return {device: self.ask(device) for device in self.transports}


class Watch(threading.Thread):
    """Looks again and again who cleans, and why."""

    def __init__(self, drives):
        super().__init__(daemon=True)
        self.drives, self.ends = drives, threading.Event()
        self.looks, self.overlaps, self.ahead = 0, [], {}

    def run(self):
        while not self.ends.wait(0.02):
            in_hand = {device: status["in_hand"] for device, status in self.drives.all().items()}
            ahead = {device for device, zone in in_hand.items() if zone and zone["why"] == "ahead"}
            self.looks += 1
            for device in ahead:
                self.ahead[device] = self.ahead.get(device, 0) + 1
            if len(ahead) > 1:
                self.overlaps.append(ahead)

    def end(self):
        self.ends.set()
        self.join()


class Load:
    """Overwrites objects in an order that leaves zones half dead."""

    def __init__(self, cluster):
        ends = cluster.endpoints()
        self.client = swiftclient.Connection(ends["swift"], ends["user"], ends["key"], retries=8)
        self.client.put_container("turns", {"X-Storage-Policy": "zoned"})
        self.dice, self.data = random.Random(1), random.Random(1).randbytes(1 << 20)

    def put(self, count):
        for _ in range(count):
            self.client.put_object("turns", str(self.dice.randrange(100)), self.data)


def cleaned(drives):
    return {device: status["zones_cleaned"] for device, status in drives.all().items()}


def test_drives_clean_one_after_the_other_and_without_a_reporter_as_they_like(folder):
    cluster = Cluster.found(folder)
    drives, load = Drives(cluster), Load(cluster)
    for device in drives.transports:
        drives.ask(device, "PATCH", {"free_zones": MARKS})
    # Every drive has been told.
    assert Trial.until(lambda: all(status["hold_seconds"] for status in drives.all().values()), 60)
    before, watch = cleaned(drives), Watch(drives)
    watch.start()

    def all_have_cleaned():
        load.put(20)
        return all(watch.ahead.get(device) for device in drives.transports)

    had = Trial.until(all_have_cleaned, 240)
    forced = [status["is_urgent"] for status in drives.all().values()]
    print(f"{watch.looks} looks, ahead in {watch.ahead}, overlaps {watch.overlaps}, urgent {forced}, before {before}, now {cleaned(drives)}")
    assert had, watch.ahead
    words = {drive["turn"] for node in cluster.status() for drive in node["drives"]}
    watch.end()
    assert not watch.overlaps
    assert words <= {"its turn", "waits for its turn", "held back"} and words

    # Nobody tells them anything any more.
    for node in cluster.nodes:
        node.processes()["reporter"].kill()
    assert Trial.until(lambda: not any(status["hold_seconds"] for status in drives.all().values()), 60)
    before = cleaned(drives)

    def all_go_on():
        load.put(20)
        now = cleaned(drives)
        return all(now[device] > before[device] for device in before)

    assert Trial.until(all_go_on, 240)
    assert load.client.get_object("turns", "1")[1] == load.data
    assert command(folder, "heal").returncode == 0
    assert Trial.until(lambda: all(status["hold_seconds"] for status in drives.all().values()), 60)


def test_of_a_code_the_fragments_of_other_drives_are_read(folder):
    cluster = Cluster.found(folder)
    load = Load(cluster)
    client = load.client
    client.put_container("coded", {"X-Storage-Policy": "zoned-ec"})
    client.put_object("coded", "o", load.data)
    for node in cluster.nodes:
        node.processes()["reporter"].kill()
    memcache = MemcacheRing([f"{node.ip}:{settings.PORTS['memcached']}" for node in cluster.nodes], logger=get_logger({}))
    try:
        for node, device in cluster.devices():
            name = f"{node.ip}:{settings.PORTS['object']}/{device}"

            def read():
                """How often its drive was asked for a fragment in a few reads."""
                log = node.log / "object.log"
                asked = log.read_text(errors="replace").count(f'"GET /{device}/')
                for _ in range(5):
                    memcache.set_multi({news.TURNS: {"at": time.time(), "turns": {name: {}}}}, news.SERVER, time=30)
                    assert client.get_object("coded", "o")[1] == load.data
                return log.read_text(errors="replace").count(f'"GET /{device}/') - asked

            # A proxy asks for news beside its requests: it knows soon.
            assert Trial.until(lambda: read() == 0, 60), device
    finally:
        assert command(folder, "heal").returncode == 0
