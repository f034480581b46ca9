"""Turns through memcached: who leads, who follows, and what becomes of both when something is away."""

import json
import os
import time
import types

import pytest
from swift.common.concurrency import Timeout, sleep
from swift.common.exceptions import MemcacheConnectionError
from swift.common.ring import Ring
from swift.common.storage_policy import ECStoragePolicy, StoragePolicy
from swift.common.utils import get_logger
from zonestore_cluster import rings
from zonestore_swift import claims, coordinator, news, reporter, sharing, turns
from zonestore_swift.coordinator import Coordinator
from zonestore_swift.errors import Refused
from zonestore_swift.together import each

ZONED = "egg:zonestore-swift#replication.zoned"
PLACES = [("10.0.0.1", 6200), ("10.0.0.2", 6200), ("10.0.0.3", 6200)]


class Memcache(dict):
    """What Swift's client of memcached does, in memory, with a clock of its own."""

    def __init__(self, clock):
        self.clock, self.is_away = clock, False

    def set_multi(self, mapping, server_key, time):
        if not self.is_away:
            self.update({key: (json.dumps(value), self.clock() + time) for key, value in mapping.items()})

    def get_multi(self, keys, server_key):
        if self.is_away:
            return None
        return [json.loads(self[key][0]) if key in self and self[key][1] > self.clock() else None for key in keys]

    def incr(self, key, time):
        if self.is_away:
            raise MemcacheConnectionError
        value, until = self.get(key, (0, 0))
        value, until = (value + 1, until) if until > self.clock() else (1, self.clock() + time)
        self[key] = value, until
        return value


class Drive:
    def __init__(self):
        self.told = []

    def take_turn(self, *seconds):
        self.told.append(seconds)


class Broken(Drive):
    def take_turn(self, *seconds):
        raise Refused("failed", "it is away")


class Sharing:
    def __init__(self, groups, devices=()):
        self.places, self._groups, self._devices = PLACES, groups, devices

    def devices(self):
        return self._devices

    def groups(self):
        return self._groups


class Nodes:
    """Three, each with a drive `d`."""

    def __init__(self, monkeypatch):
        self.now = 1000.0
        # The clock of the news too.
        monkeypatch.setattr(time, "time", lambda: self.now)
        self.memcache = Memcache(lambda: self.now)
        self.names = [f"{ip}:{port}/d" for ip, port in PLACES]
        self.sharing = Sharing(turns.Groups([(self.names, 1)]))
        self.nodes = [self.node() for _ in PLACES]
        self.drives = [Drive() for _ in PLACES]
        self.rows = [{} for _ in PLACES]
        # The longest time that a drive was told nothing, and since when it is.
        self.silent, self.since = [0] * len(PLACES), [self.now] * len(PLACES)

    def node(self, **conf):
        return Coordinator({"clean_at_once": "100%", **conf}, self.memcache, self.sharing, get_logger({}), lambda: self.now)

    def second(self, alive=(0, 1, 2)):
        self.now += 1
        for number in alive:
            node = self.nodes[number]
            row = {"followed": node.followed.get("d", 0), **self.rows[number]}
            self.memcache.set_multi({news.key(*PLACES[number]): {"at": self.now, "drives": {"d": row}}}, news.SERVER, news.KEPT_SECONDS)
            told = len(self.drives[number].told)
            node.step({"d": self.drives[number]}, {"d": PLACES[number]})
            if len(self.drives[number].told) > told:
                self.silent[number], self.since[number] = max(self.silent[number], self.now - self.since[number]), self.now

    def seconds(self, count, alive=(0, 1, 2)):
        for drive in self.drives:
            drive.told.clear()
        for _ in range(count):
            self.second(alive)

    def until_a_turn(self, seconds=20):
        while not self.with_turn():
            seconds -= 1
            assert seconds, "nobody has a turn"
            self.second()

    def with_turn(self):
        return [number for number, drive in enumerate(self.drives) if drive.told and drive.told[-1][0] > 0]


@pytest.fixture
def nodes(monkeypatch):
    return Nodes(monkeypatch)


def test_one_leads_and_all_follow(nodes):
    nodes.rows[1] = {"waits": True, "spare": 3}
    nodes.until_a_turn()
    assert nodes.with_turn() == [1]
    turn, hold = nodes.drives[1].told[-1]
    assert 20 <= turn <= 30 and hold == turn + turns.HOLD_SECONDS
    assert nodes.drives[0].told[-1] == (0, turns.HOLD_SECONDS)
    # It cleans, the others wait, and one of them is the next.
    nodes.rows = [{"waits": True, "spare": 3}, {"cleans": True, "turn": 9}, {"waits": True, "spare": 3}]
    nodes.seconds(10)
    assert nodes.with_turn() == [1]
    nodes.rows[1] = {}
    nodes.seconds(8)
    assert len(nodes.with_turn()) == 1 and nodes.with_turn() != [1]


def test_the_lease_is_one_nodes_at_a_time_and_goes_on_when_that_is_gone(nodes):
    for _ in range(40):
        nodes.second()
        assert sum(node.led_until > nodes.now for node in nodes.nodes) <= 1
    table = nodes.memcache.get_multi([news.TURNS], news.SERVER)[0]
    leader = PLACES.index(tuple(table["by"]))
    others = [number for number in range(3) if number != leader]
    nodes.rows[others[0]] = {"waits": True}
    nodes.seconds(turns.BELIEVED_SECONDS.__ceil__() + coordinator.LEASE_SECONDS, others)
    assert nodes.with_turn() == others[:1]
    # No drive has been left alone meanwhile for so long that it would have cleaned by itself.
    assert all(nodes.silent[number] < turns.HOLD_SECONDS - 5 for number in others)


def test_of_two_that_believe_that_they_lead_one_writes_what_follows(nodes):
    nodes.seconds(10)
    nodes.rows = [{"waits": True}] * 3
    for _ in range(40):
        # The lease is lost each second: everybody leads.
        for node in nodes.nodes:
            node.led_until = nodes.now + 10
        before = nodes.memcache.get_multi([news.TURNS], news.SERVER)[0]
        nodes.second()
        after = nodes.memcache.get_multi([news.TURNS], news.SERVER)[0]
        assert len({*before["turns"], *after["turns"]} - {*after["ending"]}) <= 1
        assert len(nodes.with_turn()) <= 1
    assert nodes.with_turn()


def test_the_right_to_write_is_one_nodes_and_goes_on_if_that_one_does_not(nodes):
    one, other = (claims.Claims(nodes.memcache, lambda: nodes.now) for _ in range(2))
    assert one.claim("a") == nodes.now + claims.WRITE_SECONDS
    assert one.claim("a") is None and other.claim("a") is None
    # Nothing was written.
    nodes.now += claims.OVER_SECONDS - 0.1
    assert one.claim("a") is None and other.claim("a") is None
    nodes.now += 0.1
    assert [bool(other.claim("a")), bool(one.claim("a"))] == [True, False]
    assert one.claim("b") and not other.claim("b")
    nodes.memcache.is_away = True
    assert other.claim("c") is None


def test_a_call_that_hangs_holds_up_no_other():
    asked = []

    def call(name):
        asked.append(name)
        if name == "hangs":
            sleep(60)
        return name

    found = each(["hangs", "a", "b"], call, lambda name: f"{name}: late", seconds=0.05)
    assert found == {"hangs": "hangs: late", "a": "a", "b": "b"} and asked[1:] == ["a", "b"]
    assert each([], call) == {}


def test_who_comes_new_does_not_believe_what_may_be_old(nodes):
    nodes.rows[0] = {"waits": True}
    nodes.seconds(12)
    assert nodes.with_turn() == [0]
    for drive in nodes.drives:
        drive.told.clear()
    # All have ended but one that starts, and the lease is somebody's who is gone.
    nodes.nodes[1] = nodes.node()
    nodes.memcache[coordinator.LEASE] = 1, nodes.now + 100
    nodes.seconds(9, [1])
    assert not nodes.drives[1].told


def test_without_memcached_or_rings_nothing_is_told(nodes):
    nodes.seconds(10)
    nodes.memcache.is_away = True
    nodes.seconds(10)
    assert all(len(drive.told) <= turns.BELIEVED_SECONDS for drive in nodes.drives)
    nodes.seconds(1)
    assert not any(drive.told for drive in nodes.drives)
    nodes.memcache.is_away = False
    nodes.seconds(10)
    assert all(drive.told for drive in nodes.drives)
    nodes.nodes[0].sharing = Sharing(None)
    nodes.seconds(10)
    assert all(drive.told for drive in nodes.drives), "the others lead"
    nodes.nodes[1].sharing = Sharing(turns.Groups([]))
    nodes.sharing._groups = None
    nodes.seconds(10)
    nodes.seconds(1)
    assert not any(drive.told for drive in nodes.drives)


def test_a_memcached_that_starts_again_gives_no_second_turn(nodes):
    nodes.rows = [{"waits": True}, {"waits": True}, {"waits": True}]
    nodes.until_a_turn()
    [first] = nodes.with_turn()
    nodes.rows[first] = {"cleans": True, "turn": 20}
    nodes.seconds(3)
    nodes.memcache.clear()
    for second in range(20):
        nodes.second()
        # The first one is told to wait, and until it has seen that it counts.
        assert [number for number in nodes.with_turn() if number != first] == []
    nodes.rows[first] = {"waits": True}
    nodes.until_a_turn()


def test_a_node_that_nobody_hears_is_not_held_back(nodes):
    nodes.seconds(10)
    for drive in nodes.drives:
        drive.told.clear()
    for _ in range(12):
        nodes.second([0, 1])
        # Its clock is wrong: its news count for nothing.
        nodes.memcache.set_multi({news.key(*PLACES[2]): {"at": nodes.now - 60, "drives": {"d": {}}}}, news.SERVER, 30)
        nodes.nodes[2].step({"d": nodes.drives[2]}, {"d": PLACES[2]})
    late = len(nodes.drives[2].told)
    nodes.nodes[2].step({"d": nodes.drives[2]}, {"d": PLACES[2]})
    assert late <= news.STALE_SECONDS + 1 and len(nodes.drives[2].told) == late
    assert len(nodes.drives[0].told) == 12


def test_a_drive_that_does_not_answer_has_followed_nothing(nodes):
    nodes.drives[0] = Broken()
    nodes.seconds(10)
    assert nodes.nodes[0].followed == {} and nodes.nodes[1].followed["d"] > 0


def test_an_older_round_is_not_followed(nodes):
    nodes.seconds(10)
    node, drive = nodes.nodes[0], nodes.drives[0]
    drive.told.clear()
    node.tell(turns.Table(node.followed["d"] - 1), PLACES[0], "d", drive)
    assert not drive.told
    node.tell(turns.Table(node.followed["d"] + 1), PLACES[0], "d", drive)
    assert drive.told == [(0, turns.HOLD_SECONDS)]


@pytest.mark.parametrize("junk", [7, [], {"nodes": 3}, {"nodes": [list(PLACES[0])], "round": "x"}])
def test_what_memcached_has_may_be_anything(nodes, junk):
    nodes.seconds(10)
    nodes.memcache.set_multi({news.TURNS: junk}, news.SERVER, 30)
    nodes.memcache.set_multi({news.key(*PLACES[0]): junk}, news.SERVER, 30)
    nodes.seconds(10)
    assert nodes.drives[1].told


@pytest.mark.parametrize("wrong", [{"turn_seconds": "1"}, {"turn_seconds": "300"}, {"clean_at_once": "many"}, {"clean_at_once": "x%"}])
def test_wrong_options_are_refused(nodes, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        nodes.node(**wrong)


def test_who_shares_objects_is_what_the_rings_say(tmp_path):
    places = [(node, f"10.0.0.{node}", 6200, f"d{node}{drive}") for node in (1, 2, 3) for drive in "ab"]
    for name, replicas in (("object", 3), ("object-1", 6), ("object-2", 3)):
        rings.save(tmp_path / f"{name}.ring.gz", replicas, places)
    plain = StoragePolicy(0, "plain", is_default=True, diskfile_module=ZONED)
    coded = ECStoragePolicy(1, "coded", ec_type="liberasurecode_rs_vand", ec_ndata=3, ec_nparity=3,
                            diskfile_module="egg:zonestore-swift#erasure_coding.zoned")
    files = StoragePolicy(2, "files")
    found = sharing.Sharing(str(tmp_path), policies=[plain, coded, files])
    groups = found.groups()
    assert found.places == PLACES
    names = [f"{ip}:{port}/{device}" for _, ip, port, device in places]
    assert set(groups.drives()) == set(names)
    # Drives of a node never have replicas of one object here: both may clean.
    count = groups.count([names[0]])
    assert groups.have_room(names[1], count)
    others = [each for each in sharing.sets_of(Ring(tmp_path, ring_name="object")) if names[0] in each]
    assert others and all(len({name.split(":")[0] for name in each}) == 3 for each in others)
    assert not any(groups.have_room(name, count) for each in others for name in each)
    assert not sharing.Sharing(str(tmp_path), policies=[files]).groups().drives()

    assert [sharing.limit(coded, fragments) for fragments in (0, 1, 3, 9, -1)] == [2, 1, 3, 3, 1]
    assert sharing.limit(plain, 3) == 1
    only_coded = sharing.Sharing(str(tmp_path), policies=[coded]).groups()
    assert only_coded.have_room(names[1], only_coded.count(names[:1]))
    assert not only_coded.have_room(names[2], only_coded.count(names[:2]))

    # Where each shares with few, drives as they come are as good.
    assert groups.shift_count == 0
    # Machines that are not alike make a ring in which drives share with many.
    many = [(node % 3, f"10.0.0.{node}", 6200, f"d{node}{drive}") for node in range(1, 13) for drive in "abcd"[:3 + node % 2]]
    (tmp_path / "many").mkdir()
    rings.save(tmp_path / "many" / "object.ring.gz", 3, many, 9)
    by_zones = sharing.Sharing(str(tmp_path / "many"), policies=[plain]).groups()
    assert by_zones.shift_count == 3
    assert {by_zones.shifts[f"{ip}:{port}/{device}"] for zone, ip, port, device in many if zone == 1} == {1}

    # A drive more.
    time.sleep(0.01)
    rings.save(tmp_path / "object.ring.gz", 3, [*places, (4, "10.0.0.4", 6200, "d4a")])
    assert "10.0.0.4:6200/d4a" in found.groups().drives() and ("10.0.0.4", 6200) in found.places
    (tmp_path / "object.ring.gz").unlink()
    assert found.groups() is None


def test_the_first_table_gives_no_turn_before_five_quiet_seconds(nodes):
    nodes.rows[0] = {"waits": True, "spare": 3}
    nodes.memcache.is_away = True
    nodes.seconds(60)
    nodes.memcache.is_away = False
    for _ in range(5):
        nodes.second(alive=[0])
        assert not nodes.with_turn()
    nodes.seconds(5, alive=[0])
    assert nodes.with_turn() == [0]


def test_a_reporter_tells_its_drives(zoned, daemon, monkeypatch, tmp_path):
    memcache = Memcache(time.time)
    # The drive may be asked late.
    monkeypatch.setattr(turns, "HOLD_SECONDS", 200)
    monkeypatch.setattr(reporter, "load_memcache", lambda conf, logger: memcache)
    teller = reporter.Reporter({"zonestore_socket": str(daemon.socket), "bind_ip": "10.0.0.1", "bind_port": "6200"})
    teller.sharing = teller.coordinator.sharing = Sharing(
        turns.Groups([([f"10.0.0.1:6200/{daemon.device}"], 1)]), [{"ip": "10.0.0.1", "port": 6200, "device": daemon.device}])
    drive = teller.drives.drive(daemon.device)
    try:
        for _ in range(3):
            teller.run_once()
        status = drive.store("cleaner")
        assert status["turn_seconds"] == 0 and 0 < status["hold_seconds"] <= turns.HOLD_SECONDS
        [row] = memcache.get_multi([news.key("10.0.0.1", 6200)], news.SERVER)[0]["drives"].values()
        assert row["followed"] == teller.coordinator.followed[daemon.device] - 1
    finally:
        drive.take_turn(0, 0)
    assert drive.store("cleaner")["hold_seconds"] == 0
    silent = reporter.Reporter({"zonestore_socket": str(daemon.socket), "coordinate": "no"})
    silent.run_once()
    assert drive.store("cleaner")["hold_seconds"] == 0


class Store(Drive):
    """A drive that has nothing to clean."""

    def store(self, what):
        return {"health": {"grade": "good"}, "waiting": []}.get(what, {})


class Teller:
    """A reporter of the drives `a` and `b`, on a ring of these places."""

    def __init__(self, monkeypatch, folder, **conf):
        self.folder, self.memcache, self.warnings = folder, Memcache(time.time), []
        monkeypatch.setattr(reporter, "load_memcache", lambda conf, logger: self.memcache)
        monkeypatch.setattr(sharing, "POLICIES", [StoragePolicy(0, "plain", is_default=True, diskfile_module=ZONED)])
        logger = types.SimpleNamespace(warning=lambda text, *words: self.warnings.append(text % words), info=lambda *words: None)
        self.reporter = reporter.Reporter({"swift_dir": str(folder), **conf}, logger)
        self.drives = {"a": Store(), "b": Store()}
        self.reporter.drives = types.SimpleNamespace(names=lambda: ["a", "b"], is_served=lambda name: True, drive=self.drives.get)

    def ring(self, *places):
        rings.save(self.folder / "object.ring.gz", 2, [(number, *place) for number, place in enumerate(places)])

    def told(self, ip, port):
        [found] = self.memcache.get_multi([news.key(ip, port)], news.SERVER)
        return found and sorted(found["drives"])


def test_a_reporter_on_all_addresses_tells_by_the_address_of_the_ring(tmp_path, monkeypatch):
    teller = Teller(monkeypatch, tmp_path)
    teller.ring(("127.0.0.1", 6200, "a"), ("127.0.0.1", 6201, "b"), ("10.255.0.9", 6200, "b"))
    teller.reporter.run_once()
    assert teller.told("127.0.0.1", 6200) == ["a"] and not teller.warnings
    replicated = {"ip": "10.255.0.1", "port": 6200, "replication_ip": "127.0.0.1", "replication_port": 6200}
    assert teller.reporter.is_local(["127.0.0.1"], replicated)
    # The port is another server's, and the other address another node's.
    assert teller.told("127.0.0.1", 6201) is teller.told("10.255.0.9", 6200) is teller.told("0.0.0.0", 6200) is None


def test_a_reporter_tells_each_drive_by_its_port(tmp_path, monkeypatch):
    teller = Teller(monkeypatch, tmp_path, ring_ip="10.255.0.1", servers_per_port="2")
    teller.ring(("10.255.0.1", 6210, "a"), ("10.255.0.1", 6211, "b"), ("10.255.0.9", 6210, "b"))
    for _ in range(3):
        teller.reporter.run_once()
    assert teller.told("10.255.0.1", 6210) == ["a"] and teller.told("10.255.0.1", 6211) == ["b"]
    assert teller.told("10.255.0.9", 6210) is None
    [table] = teller.memcache.get_multi([news.TURNS], news.SERVER)
    assert table["nodes"] == [["10.255.0.1", 6210], ["10.255.0.1", 6211]]
    assert all(drive.told[-1] == (0, turns.HOLD_SECONDS) for drive in teller.drives.values())


def test_a_drive_with_two_places_is_one(tmp_path, monkeypatch):
    teller = Teller(monkeypatch, tmp_path, ring_ip="10.255.0.1", servers_per_port="2")
    places = [("10.255.0.1", 6210), ("10.255.0.1", 6211)]
    teller.ring(*((*place, "a") for place in places), ("10.255.0.9", 6210, "b"))
    teller.reporter.run_once()
    # Proxies look for it at either place.
    assert [teller.told(*place) for place in places] == [["a"], ["a"]]
    heard = teller.memcache.get_multi([news.key(*place) for place in places], news.SERVER)
    told, nodes, others = coordinator.hear(places, heard)
    first, second = (f"{ip}:{port}/a" for ip, port in places)
    assert (list(told), nodes, others) == ([first], [list(place) for place in places], {second: first})
    # Whoever shares with it by either name waits for it, and nobody else.
    groups = turns.Groups([({first, "x"}, 1), ({second, "y"}, 1), ({"z"}, 1)]).joined(others)
    told = {first: turns.Told(cleans=True, turn=9.0), **dict.fromkeys("xyz", turns.Told(waits=True))}
    table = turns.Table(3, {first: turns.Turn(3, 20.0)})
    found = turns.decide(groups, told, table, 1.0, turns.Rules(at_once="100%"))
    assert found.turns.keys() == {first, "z"} and not found.ending


@pytest.mark.parametrize("length", [0, 1, 5, 12, 20, 50, 100, 200])
def test_a_ring_that_is_being_copied_ends_no_reporter(tmp_path, monkeypatch, length):
    teller = Teller(monkeypatch, tmp_path)
    teller.ring(("127.0.0.1", 6200, "a"), ("10.255.0.9", 6200, "b"))
    teller.reporter.run_once()
    path = tmp_path / "object.ring.gz"
    whole = path.read_bytes()
    assert len(whole) > length
    path.write_bytes(whole[:length])
    os.utime(path, (1, 1))
    teller.memcache.clear()
    for _ in range(3):
        teller.reporter.run_once()
    # Once for the ring, and once for turns.
    assert teller.told("127.0.0.1", 6200) == ["a"] and len(teller.warnings) == 2, teller.warnings
    path.write_bytes(whole)
    os.utime(path, (2, 2))
    teller.reporter.run_once()
    assert teller.reporter.coordinator.can_lead and len(teller.warnings) == 2


def test_a_round_that_fails_is_not_the_last_one(tmp_path, monkeypatch):
    teller = Teller(monkeypatch, tmp_path)
    rounds, logged = iter([ValueError("odd"), Timeout(), None, KeyboardInterrupt()]), []

    def run_once():
        if (error := next(rounds)) is not None:
            raise error

    monkeypatch.setattr(teller.reporter, "run_once", run_once)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    teller.reporter.logger.exception = logged.append
    with pytest.raises(KeyboardInterrupt):
        teller.reporter.run_forever()
    assert len(logged) == 2 and next(rounds, "none") == "none"


def test_a_reporter_that_nobody_hears_says_so_once(tmp_path, monkeypatch):
    teller = Teller(monkeypatch, tmp_path, bind_ip="10.255.0.1", coordinate="no")
    for _ in range(2):
        teller.reporter.run_once()
    teller.ring(("10.255.0.8", 6200, "a"), ("10.255.0.9", 6200, "b"))
    for _ in range(2):
        teller.reporter.run_once()
    assert len(teller.warnings) == 1 and "ring_ip 10.255.0.1, port 6200" in teller.warnings[0] and not teller.memcache
    # A ring that is there, and goes again, is known.
    (tmp_path / "object.ring.gz").unlink()
    teller.ring(("10.255.0.1", 6200, "a"), ("10.255.0.9", 6200, "b"))
    os.utime(tmp_path / "object.ring.gz", (1, 1))
    teller.reporter.run_once()
    (tmp_path / "object.ring.gz").unlink()
    teller.memcache.clear()
    teller.reporter.run_once()
    assert teller.told("10.255.0.1", 6200) == ["a"] and len(teller.warnings) == 1
