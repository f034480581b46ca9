"""A node's part in giving turns: follows the table of turns, and writes it while it has the lease.

The table and the lease are in memcached. The lease is a counter that memcached forgets after some seconds: who counts the first leads
for less long than that. Nothing is lost with either: turns end by themselves, and a drive that hears nothing decides for itself.

Two nodes may both believe that they lead. So what follows a table is claimed, by a counter too (claims.py): each table has one successor,
which knows all turns that were given before.
"""

import time

from swift.common.exceptions import MemcacheConnectionError

from zonestore_swift import news, turns
from zonestore_swift.claims import Claims
from zonestore_swift.errors import Refused
from zonestore_swift.sharing import name_of
from zonestore_swift.together import each

LEASE = "zonestore/turns/lease"
# memcached counts whole seconds, and may forget a second early; the rest is for a write that takes long.
LEASE_SECONDS, LED_SECONDS = 5, 3


def rules(conf):
    """Of [zonestore-reporter]: `turn_seconds`, `patience_seconds`, `clean_at_once`."""
    found = turns.Rules(float(conf.get("turn_seconds", 30)), patience_seconds=float(conf.get("patience_seconds", 300)),
                        at_once=conf.get("clean_at_once", "20%"))
    # A shift that is shorter would give no turn to anybody.
    if not turns.LEAST_SECONDS <= found.turn_seconds <= 240:
        raise ValueError("turn_seconds: from 2 to 240")
    try:
        found.most(100)
    except (ValueError, OverflowError):
        raise ValueError('clean_at_once: a number of drives, or a share of them such as "20%"') from None
    return found


class Coordinator:
    def __init__(self, conf, memcache, sharing, logger, clock=time.monotonic):
        self.memcache, self.sharing, self.logger, self.clock = memcache, sharing, logger, clock
        self.rules = rules(conf)
        # The last round that was told to each drive.
        self.followed = {}
        self.led_until, self.is_answered, self.can_lead = float("-inf"), False, True
        self.claims = Claims(memcache, clock)
        # What the table was at the last look, since when, and when it last became another one.
        self.kept, self.looked, self.since, self.changed = None, clock(), clock(), float("-inf")

    def step(self, drives, places):
        """Leads if nobody else does, and tells each drive whether it may clean. `drives`: by name; `places`: the address and port by which
        the rings have each device of this node."""
        groups = self.sharing.groups()
        if groups is None and self.can_lead:
            self.logger.warning("this node gives no turns: a ring cannot be read")
        self.can_lead = groups is not None
        # The lease first: what is read then is the last that another one has written. Who knows of no zoned drive leaves it to others.
        is_leading = self.can_lead and bool(groups.drives()) and bool(places) and self.leads()
        table = self.look()
        if is_leading and self.is_answered:
            table = self.lead(groups, table, min(places.values())) or table
        if table and self.clock() - self.changed <= turns.BELIEVED_SECONDS:
            heard = [name for name in drives if name in places and list(places[name]) in self.kept["nodes"]]
            each(heard, lambda name: self.tell(table, places[name], name, drives[name]))

    def look(self):
        """The table. None if there is none, or memcached does not answer."""
        now = self.clock()
        found = self.memcache.get_multi([news.TURNS], news.SERVER)
        self.is_answered = bool(found)
        if not found:
            return None
        self.see(found[0], now)
        return turns.Table.decode(self.kept)

    def see(self, kept, now):
        if not isinstance(kept, dict) or not isinstance(kept.get("nodes"), list) or "by" not in kept or not isinstance(kept.get("at"), (int, float)):
            kept = None
        if kept != self.kept:
            # What is there at the first look may have been there for long.
            self.changed = now if self.kept is not None else self.changed
            # It was written after the last look, whatever the clocks are.
            age = time.time() - kept["at"] if kept else 0.0
            self.kept, self.since = kept, now - min(max(age, 0.0), now - self.looked)
        self.looked = now

    def leads(self):
        now = self.clock()
        if now >= self.led_until:
            try:
                if self.memcache.incr(LEASE, time=LEASE_SECONDS) == 1:
                    self.led_until = now + LED_SECONDS
            except MemcacheConnectionError:
                pass
        return self.clock() < self.led_until

    def lead(self, groups, table, place):
        """Writes the next table, in the name of a place. None if nothing can be said."""
        write_until = self.claims.claim(f"{self.kept['by']}/{self.kept['at']}" if table else "none")
        if write_until is None:
            return None
        heard = self.memcache.get_multi([news.key(*place) for place in self.sharing.places], news.SERVER)
        now = self.clock()
        if heard is None:
            return None
        told, nodes, others = hear(self.sharing.places, heard)
        # The time before the first table says nothing of drives: memcached may have been away.
        elapsed = max(0.0, now - self.since) if table else 0.0
        next_table = turns.decide(groups.joined(others), told, table or turns.Table.lost(), elapsed, self.rules)
        kept = {"at": time.time(), "by": list(place), "nodes": nodes, **next_table.encoded()}
        if self.clock() >= min(self.led_until, write_until):
            return None
        self.memcache.set_multi({news.TURNS: kept}, news.SERVER, time=news.KEPT_SECONDS)
        for name in sorted(next_table.turns.keys() - (table.turns.keys() if table else ())):
            self.logger.info("%s may clean", name)
        self.kept, self.looked, self.since, self.changed = kept, now, now, now
        return next_table

    def tell(self, table, place, name, drive):
        if table.round < self.followed.get(name, 0):
            return
        try:
            drive.take_turn(*turns.said(table, name_of({"ip": place[0], "port": place[1], "device": name})))
            self.followed[name] = table.round
        except Refused as refused:
            self.logger.warning("%s: %s", name, refused)


def hear(places, heard):
    """What is told of each drive by nodes whose news are fresh, which nodes these are, and the other names of drives that have several
    places in the rings: for each the name of the first place, by which the drive is told."""
    told, nodes, others, now = {}, [], {}, time.time()
    for (ip, port), node in zip(places, heard):
        if not news.is_fresh(node, now):
            continue
        nodes.append([ip, port])
        for device, row in news.rows_of(node, now).items():
            name, first = name_of({"ip": ip, "port": port, "device": device}), row.get("first_place")
            if isinstance(first, list) and len(first) == 2:
                others[name] = name_of({"ip": first[0], "port": first[1], "device": device})
            elif found := turns.Told.decode(row):
                told[name] = found
    return told, nodes, others
