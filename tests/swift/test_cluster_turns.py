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
from zonestore_swift.turns import BELIEVED_SECONDS, HOLD_SECONDS

# Cleaning begins when a tenth of a drive is written, and takes long enough to be seen.
HELD_TO = {"free_zones": "5%..90%", "pace": "4MiB/s"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    if why := missing():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("turns") / "it"
    up = command(folder, "up", "--nodes", "2", "--drives", "2", "--size", "2GiB", "--zone-size", "8MiB", "--quiet")
    try:
        assert up.returncode == 0, up.stderr
        short_turns(folder)
        yield folder
    finally:
        command(folder, "down", "--remove")


def short_turns(folder):
    for node in Cluster.found(folder).nodes:
        conf = node.etc / "object-server.conf"
        conf.write_text(conf.read_text().replace("[zonestore-reporter]", "[zonestore-reporter]\nturn_seconds = 8"))
    kill_reporters(folder)
    heal(folder)


def kill_reporters(folder):
    for node in Cluster.found(folder).nodes:
        node.processes()["reporter"].kill()


def heal(folder):
    healed = command(folder, "heal")
    assert healed.returncode == 0, healed.stderr


class Drives:
    """What each drive's daemon says of its cleaner."""

    def __init__(self, cluster):
        self.transports = {device: Transport(str(node.socket(device)), 2, 30) for node, device in cluster.devices()}

    def ask(self, device, method="GET", question=None):
        return self.transports[device].ask(method, f"/v1/drives/{device}/store/cleaner", question)

    def all(self, backwards=False):
        devices = list(self.transports)
        return {device: self.ask(device) for device in (reversed(devices) if backwards else devices)}


class Watch(threading.Thread):
    """Looks again and again who cleans, and why. Each look asks all drives twice, the second time backwards: what is so both times was
    so at once, if that took less time than a turn goes and comes again in.

    Reporters may stand still for so long that turns end without a word, and drives decide for themselves. What has begun so may
    overlap; what is `wrong` may not."""

    def __init__(self, drives):
        super().__init__(daemon=True)
        self.drives, self.ends = drives, threading.Event()
        self.looks, self.sure, self.overlaps, self.wrong, self.ahead, self.turns = 0, 0, [], [], {}, []

    def run(self):
        untold, looked = set(), 0.0
        while not self.ends.wait(0.02):
            begun, passes = time.monotonic(), [self.drives.all(), self.drives.all(backwards=True)]
            of_each = {device: [found[device] for found in passes] for device in passes[0]}
            ahead, turns = set(), set()
            for device, both in of_each.items():
                if all(status["in_hand"] and status["in_hand"]["why"] == "ahead" for status in both):
                    ahead.add(device)
                    self.ahead[device] = self.ahead.get(device, 0) + 1
                if all(status["turn_seconds"] for status in both):
                    turns.add(device)
            # Between looks that are further apart nobody knows.
            told = begun - looked < 3 and all(
                status["hold_seconds"] >= HOLD_SECONDS - BELIEVED_SECONDS for both in of_each.values() for status in both)
            untold, looked = untold & (ahead | turns) if told else set(of_each), time.monotonic()
            self.looks += 1
            if looked - begun > 1:
                continue
            self.sure += not untold
            if len(turns - untold) > 1:
                self.turns.append(turns)
            if len(ahead) > 1:
                self.overlaps.append(ahead)
            if len(ahead - untold) > 1:
                self.wrong.append(ahead)

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
        drives.ask(device, "PATCH", HELD_TO)
    # Every drive has been told.
    assert Trial.until(lambda: all(status["hold_seconds"] for status in drives.all().values()), 600)
    before, watch = cleaned(drives), Watch(drives)
    watch.start()

    def all_have_cleaned():
        load.put(20)
        return all(watch.ahead.get(device) for device in drives.transports)

    had = Trial.until(all_have_cleaned, 900)
    words = set()

    def all_are_told():
        words.clear()
        words.update(drive["turn"] for node in cluster.status() for drive in node["drives"])
        return words and words <= {"its turn", "waits for its turn", "held back"}

    told = Trial.until(all_are_told, 600)
    watch.end()
    print(f"{watch.looks} looks, {watch.sure} sure, ahead in {watch.ahead}, at once {watch.wrong}, cleaned {before} and then {cleaned(drives)}")
    assert had, watch.ahead
    assert not watch.wrong and not watch.turns
    assert told, words

    # Nobody tells them anything any more.
    kill_reporters(folder)
    assert Trial.until(lambda: not any(status["hold_seconds"] for status in drives.all().values()), 600)
    before, watch = cleaned(drives), Watch(drives)
    watch.start()

    def all_go_on():
        load.put(20)
        now = cleaned(drives)
        # Now several at once: it can be seen.
        return watch.overlaps and all(now[device] > before[device] for device in before)

    went_on = Trial.until(all_go_on, 900)
    watch.end()
    print(f"without reporters: {watch.looks} looks, ahead in {watch.ahead}, {len(watch.overlaps)} at once")
    assert went_on
    assert load.client.get_object("turns", "1")[1] == load.data
    heal(folder)
    assert Trial.until(lambda: all(status["hold_seconds"] for status in drives.all().values()), 600)


def test_of_a_code_the_fragments_of_other_drives_are_read(folder):
    cluster = Cluster.found(folder)
    load = Load(cluster)
    client = load.client
    client.put_container("coded", {"X-Storage-Policy": "zoned-ec"})
    client.put_object("coded", "o", load.data)
    kill_reporters(folder)
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
            assert Trial.until(lambda: read() == 0, 600), device
    finally:
        heal(folder)
