"""What drives tell proxies, and what proxies make of it."""

import itertools
import time
import types

import pytest
from backends import DaemonProcess
from swift.common import error_limiter
from swift.common.concurrency import sleep
from swift.common.error_limiter import ErrorLimiter
from swift.proxy import server
from zonestore_swift import coordinator, news, proxy, reporter, turns
from zonestore_swift.errors import Refused

NODES = [{"ip": f"10.0.0.{n}", "port": 6200, "device": f"d{n}"} for n in range(1, 5)]


def told(rows, at):
    return {(node["ip"], node["port"]): {"at": at, "drives": {node["device"]: row}} for node, row in zip(NODES, rows)}


def test_the_better_drives_come_first_and_none_goes():
    rows = [{"grade": "failing"}, {"slow": True}, {"cleans": True}, {"grade": "worn"}]
    for nodes in itertools.permutations(NODES):
        found = news.ordered(nodes, told(rows, 100), 102)
        assert [node["device"] for node in found] == ["d4", "d3", "d2", "d1"]
    # Whatever is told of all of them, they all stay, in the order in which they came.
    for row in ({}, {"grade": "worn"}, {"cleans": True}, {"failed": True}):
        assert news.ordered(NODES, told([row] * 4, 100), 102) == NODES


def test_a_turn_counts_from_the_moment_it_is_given():
    def turn(*names, at=100):
        return {news.TURNS: {"at": at, "turns": {f"10.0.0.{name[1:]}:6200/{name}": {} for name in names}}}

    def order(found):
        return [node["device"] for node in news.ordered(NODES, found, 102)]

    assert order(turn("d1", "d3")) == ["d2", "d4", "d1", "d3"]
    # Its own node's news do not speak of it yet.
    well = told([{"cleans": False, "turn": 0, "grade": "good"}] * 4, 100)
    assert order({**well, **turn("d1")}) == ["d2", "d3", "d4", "d1"]
    # Or they still do.
    assert order(told([{"turn": 7}, {}, {}, {}], 100)) == ["d2", "d3", "d4", "d1"]
    # A drive that fails goes behind it all the same, and what is old says nothing.
    assert order({**told([{}, {"grade": "failing"}, {}, {}], 100), **turn("d1")}) == ["d3", "d4", "d1", "d2"]
    for junk in (turn("d1", at=90), {news.TURNS: None}, {news.TURNS: 7}, {news.TURNS: {"at": 100}}, {news.TURNS: {"at": 100, "turns": 7}}):
        assert order(junk) == ["d1", "d2", "d3", "d4"]


@pytest.mark.parametrize("now", [100 + news.STALE_SECONDS + 1, 100 - news.STALE_SECONDS - 1])
def test_old_news_say_nothing(now):
    assert news.ordered(NODES, told([{"cleans": True}, {}, {}, {}], 100), now) == NODES


def test_what_memcached_has_may_be_anything():
    place = (NODES[0]["ip"], NODES[0]["port"])
    drives = [None, {}, 7, [], "d1", *({"d1": row} for row in ({}, None, 5, [], "grade", {"slow": {}}))]
    for junk in [None, {}, 7, [], {"at": 100}, {"at": "now"}, *({"at": 100, "drives": each} for each in drives)]:
        assert news.ordered(NODES, {place: junk}, 100) == NODES
        coordinator.hear([place], [{**junk, "at": time.time()} if isinstance(junk, dict) else junk])
    # A grade that nobody knows is none that is good.
    assert news.rank({"grade": "ruined"}) == news.FAILING
    odd = {"at": 100, "drives": {"d1": {"grade": []}}}
    assert news.ordered(NODES, {place: odd}, 100) == [*NODES[1:], NODES[0]]


class Memcache(dict):
    """What Swift's client of memcached does, in memory."""

    def set_multi(self, mapping, server_key, time):
        self.update(mapping)

    def incr(self, key, time):
        return 2

    def get_multi(self, keys, server_key):
        return [self.get(key) for key in keys]


def test_a_reporter_tells_and_a_proxy_hears(zoned, daemon, monkeypatch):
    memcache = Memcache()
    monkeypatch.setattr(reporter, "load_memcache", lambda conf, logger: memcache)
    conf = {"zonestore_socket": str(daemon.socket), "bind_ip": "10.0.0.1", "bind_port": "6200"}
    teller = reporter.Reporter(conf)
    device = {"ip": "10.0.0.1", "port": 6200, "device": daemon.device, "region": 1, "zone": 1}
    monkeypatch.setattr(teller.sharing, "devices", lambda: [device])
    teller.run_once()
    row = memcache[news.key("10.0.0.1", 6200)]["drives"][daemon.device]
    spare = row.pop("spare")
    assert spare > 100 and row == {"cleans": False, "slow": False, "grade": "good", "waits": False, "urgent": False, "turn": 0, "followed": 0}

    clock = [time.time()]
    heard = news.News(memcache, lambda: clock[0], spawn=lambda call: call())
    nodes = [{"ip": "10.0.0.1", "port": 6200, "device": daemon.device}, {"ip": "10.0.0.2", "port": 6200, "device": "other"}]
    heard.of(nodes)
    assert news.ordered(nodes, heard.of(nodes), clock[0]) == nodes
    row["cleans"] = True
    # Not asked again within a second.
    assert heard.of(nodes)[("10.0.0.1", 6200)]["drives"][daemon.device]["cleans"]
    assert news.ordered(nodes, heard.of(nodes), clock[0]) == nodes[::-1]
    clock[0] += news.STALE_SECONDS + 1
    assert news.ordered(nodes, heard.of(nodes), clock[0]) == nodes


def test_drives_of_a_daemon_that_is_away_fail(tmp_path, monkeypatch):
    """Else nothing would be told of them, and proxies would ask them before drives that clean."""
    memcache = Memcache()
    monkeypatch.setattr(reporter, "load_memcache", lambda conf, logger: memcache)
    daemon = DaemonProcess(tmp_path)
    try:
        teller = reporter.Reporter({"zonestore_socket": str(daemon.socket), "bind_ip": "10.0.0.1", "bind_port": "6200"})
        device = {"ip": "10.0.0.1", "port": 6200, "device": daemon.device, "region": 1, "zone": 1}
        monkeypatch.setattr(teller.sharing, "devices", lambda: [device])
        for is_there in (True, False):
            teller.run_once()
            row = memcache[news.key("10.0.0.1", 6200)]["drives"][daemon.device]
            assert (news.rank(row) == news.WELL) == is_there and (row == {"failed": True}) == (not is_there)
            daemon.stop()
    finally:
        daemon.stop()


def test_a_daemon_of_an_earlier_version_may_say_less(monkeypatch):
    memcache = Memcache()
    monkeypatch.setattr(reporter, "load_memcache", lambda conf, logger: memcache)
    teller = reporter.Reporter({"coordinate": "no"})
    monkeypatch.setattr(teller, "drives", types.SimpleNamespace(
        is_served=lambda name: True, drive=lambda name: types.SimpleNamespace(store=lambda what: {})))
    row = teller.row("d1")
    assert row["grade"] == "good" and not row["cleans"] and news.rank(row) == news.WELL
    assert turns.Told.decode(row) == turns.Told()


def test_a_drive_whose_health_is_late_does_not_fail(monkeypatch):
    memcache = Memcache()
    monkeypatch.setattr(reporter, "load_memcache", lambda conf, logger: memcache)
    monkeypatch.setattr(reporter, "GRADE_SECONDS", 0)
    teller = reporter.Reporter({"coordinate": "no", "bind_ip": "10.0.0.1"})
    asked, is_late, refused = [], False, None

    def store(what):
        asked.append(what)
        if what.startswith("health") and is_late:
            sleep(60)
        if what.startswith("health") and refused:
            raise refused
        return {"grade": "failing"} if what.startswith("health") else {}

    monkeypatch.setattr(teller, "drives", types.SimpleNamespace(
        names=lambda: ["d1"], is_served=lambda name: True, drive=lambda name: types.SimpleNamespace(store=store)))
    monkeypatch.setattr(teller.sharing, "devices", lambda: [{"ip": "10.0.0.1", "port": 6200, "device": "d1"}])

    def grades():
        found = []
        for _ in range(2):
            teller.run_once()
            found.append(memcache[news.key("10.0.0.1", 6200)]["drives"]["d1"].get("grade"))
        return found

    # The last one that is known counts.
    for is_late, grade in ((True, "good"), (False, "failing"), (True, "failing")):
        asked.clear()
        assert grades() == [grade, grade] and asked.count("health?recent=true") == 1
        teller.grades["d1"] = teller.grades["d1"][0], float("-inf")
    # One that is refused is no late one.
    is_late, refused = False, Refused("failed", "no answer")
    assert grades() == [None, None]


def test_the_proxy_sorts_the_list_that_it_is_given(monkeypatch):
    monkeypatch.setattr(server.Application, "__init__", lambda self, conf: None)
    monkeypatch.setattr(server.Application, "sort_nodes", lambda self, nodes, policy=None: nodes)
    memcache = Memcache({news.key(*place): row for place, row in told([{"cleans": True}, {}, {}, {}], time.time()).items()})
    application = proxy.Application({}, memcache=memcache)
    application.news.spawn = lambda call: call()
    nodes = list(NODES)
    assert application.sort_nodes(nodes) is nodes
    assert [node["device"] for node in nodes] == ["d2", "d3", "d4", "d1"]


WELL = {"grade": "good", "cleans": True}


@pytest.mark.parametrize("away", [{"failed": True}, {"grade": "failing"}, None], ids=["failed", "failing", "unheard"])
def test_a_drive_that_was_away_is_asked_before_its_minute_is_over(monkeypatch, away):
    monkeypatch.setattr(server.Application, "__init__", lambda self, conf: None)
    clock, memcache, node = [time.time()], Memcache({"some": 1}), NODES[0]
    application = proxy.Application({}, memcache=memcache)
    application.news = heard = news.News(memcache, lambda: clock[0], spawn=lambda call: call())
    application.logger = types.SimpleNamespace(increment=lambda name: None, debug=lambda *arguments: None)
    application.error_limiter = ErrorLimiter(60, 10)
    monkeypatch.setattr(error_limiter, "time", lambda: clock[0])

    def passes(row, seconds=1):
        """Whether the drive is asked, that many seconds after this was told."""
        memcache.update({news.key(*place): told for place, told in told([row], clock[0]).items()})
        clock[0] += seconds
        heard.of(NODES)
        return not application.error_limited(node)

    stale = news.STALE_SECONDS + 1
    assert passes(WELL)
    # It is full, or its object server hangs: its news are good all the time.
    application.error_limiter.limit(node)
    assert not any(passes(WELL) for _ in range(10)) and not application.error_limited(NODES[1])
    # It goes and comes back.
    assert not passes(away or WELL, 1 if away else stale)
    assert passes(WELL) and passes(WELL)
    # One more error, and it has to go and come back again.
    application.error_limiter.increment(node)
    assert not passes(WELL)
    assert not passes(away or WELL, 1 if away else stale)
    assert passes(WELL)
    # It has, but does not serve now.
    assert not passes(WELL, stale) and not passes({"failed": True})


def test_a_proxy_that_has_just_begun_knows_of_no_return(monkeypatch):
    memcache = Memcache()
    heard = news.News(memcache, spawn=lambda call: call())
    memcache.update({news.key(*place): told for place, told in told([WELL], time.time()).items()})
    heard.of(NODES)
    assert heard.known and not heard.has_returned(NODES[0], 0)


def test_a_memcached_that_is_away_costs_the_order_only():
    class Away(Memcache):
        def get_multi(self, keys, server_key):
            return None

    heard = news.News(Away(), spawn=lambda call: call())
    assert news.ordered(NODES, heard.of(NODES), time.time()) == NODES
