"""What drives say of themselves, so that reads go to those that have time. Pure, but for `News`, which asks memcached."""

import time

from swift.common.concurrency import spawn_n

# One memcached has the news of all nodes, so that one call reads them.
SERVER = "zonestore/drives"
# Whose turn it is to clean: one for all nodes.
TURNS = "zonestore/turns"
# News that are older say nothing: the reporter of that node may be gone.
STALE_SECONDS = 5.0
# How long memcached keeps what nobody renews.
KEPT_SECONDS = 30
ASK_SECONDS = 1.0

WELL, CLEANS, SLOW, FAILING = range(4)


def key(ip, port):
    return f"{SERVER}/{ip}:{port}"


def rank(row):
    """The better, the lower. A drive with several faults counts by its worst. One that is worn serves as well as any."""
    if row.get("grade", "good") not in ("good", "worn") or row.get("failed"):
        return FAILING
    if row.get("slow"):
        return SLOW
    return CLEANS if row.get("cleans") or row.get("turn") else WELL


def is_fresh(told, now):
    """Whether this was told a short time ago; what memcached has may be anything."""
    return isinstance(told, dict) and isinstance(told.get("at"), (int, float)) and abs(now - told["at"]) <= STALE_SECONDS


def rows_of(told, now):
    """What was told a short time ago of each drive: a table for each name."""
    drives = told.get("drives") if is_fresh(told, now) else None
    return {name: row for name, row in drives.items() if isinstance(row, dict)} if isinstance(drives, dict) else {}


def of_node(node, news, now):
    """What was told of a node's drive a short time ago: a table, empty if nothing was."""
    return rows_of(news.get((node["ip"], node["port"])), now).get(node["device"], {})


def ordered(nodes, news, now):
    """`nodes` with the better drives first, otherwise in their order. All stay: the last one may have the only copy. Who has been given a
    turn to clean counts as cleaning at once, before its node can tell it."""
    table = news.get(TURNS)
    turns = table.get("turns") if is_fresh(table, now) else None

    def of(node):
        row = of_node(node, news, now)
        has_turn = isinstance(turns, dict) and f"{node['ip']}:{node['port']}/{node['device']}" in turns
        return rank({**row, "turn": has_turn or row.get("turn")})

    return sorted(nodes, key=of)


class News:
    """The latest news of all nodes that were asked for. Asking never waits: what comes is there for the next one."""

    def __init__(self, memcache, clock=time.time, spawn=spawn_n):
        self.memcache, self.clock, self.spawn = memcache, clock, spawn
        self.known = {}
        self.asked = 0.0
        # The drives of each place that served at the last look, and when a drive was first seen to serve again.
        self.serving, self.returned = {}, {}

    def of(self, nodes):
        for node in nodes:
            self.known.setdefault((node["ip"], node["port"]), None)
        now = self.clock()
        if abs(now - self.asked) >= ASK_SECONDS:
            self.asked = now
            self.spawn(self.ask)
        return self.known

    def ask(self):
        places = [place for place in self.known if place != TURNS]
        told = self.memcache.get_multi([key(*place) for place in places] + [TURNS], SERVER)
        if told:
            self.known.update(zip([*places, TURNS], told))
            for place in places:
                self.see(place)

    def see(self, place):
        now = self.clock()
        serving = {name for name, row in rows_of(self.known[place], now).items() if rank(row) != FAILING}
        # At the first look nothing is known of what was before.
        for name in serving - self.serving.get(place, serving):
            self.returned[(*place, name)] = now
        self.serving[place] = serving

    def has_returned(self, node, moment):
        """Whether a drive serves that failed, or was not heard of, and has come back after that moment."""
        row = of_node(node, self.known, self.clock())
        return bool(row) and rank(row) != FAILING and self.returned.get((node["ip"], node["port"], node["device"]), moment) > moment
