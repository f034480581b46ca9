"""Who may clean when: the rule by itself, and a cluster of nodes whose messages get lost."""

import json
import os
import random

import pytest
import turns_table
from zonestore_swift import turns
from zonestore_swift.claims import WRITE_SECONDS, Claims
from zonestore_swift.turns import Ending, Groups, Rules, Table, Told, Turn, decide, said

SEED = int(os.environ.get("SEED") or 1)
HISTORIES = int(os.environ.get("HISTORIES") or 8)

WAITS = Told(waits=True, spare=5)
PAIR = Groups([({"a", "b"}, 1)])


def rules(**changed):
    return Rules(**{"at_once": "100%", **changed})


def test_one_replica_of_an_object_at_a_time_and_the_one_with_the_fewest_zones_first():
    told = {"a": WAITS, "b": Told(waits=True, spare=2), "c": WAITS}
    groups = Groups([({"a", "b"}, 1), ({"b", "c"}, 1)])
    table = decide(groups, told, Table(), 1, rules())
    assert set(table.turns) == {"b"} and set(table.waiting) == {"a", "c"}
    assert said(table, "b") == (30, 30 + turns.HOLD_SECONDS) and said(table, "a") == (0, turns.HOLD_SECONDS)
    # The others have nothing to do with each other.
    told = {"a": WAITS, "b": Told(), "c": WAITS}
    assert set(decide(groups, told, Table(), 1, rules()).turns) == {"a", "c"}


def test_of_a_code_as_many_as_it_can_spare():
    drives = set("abcdef")
    for limit in (1, 2, 3):
        assert len(decide(Groups([(drives, limit)]), dict.fromkeys(drives, WAITS), Table(), 1, rules()).turns) == limit
    # Replicas of another policy on the same drives.
    both = Groups([(drives, 3), ({"a", "b", "c"}, 1), ({"d", "e", "f"}, 1)])
    assert len(decide(both, dict.fromkeys(drives, WAITS), Table(), 1, rules()).turns) == 2


@pytest.mark.parametrize("at_once, most", [("3", 3), ("20%", 2), ("1%", 1), ("0", 1), (" 100% ", 10)])
def test_a_budget_for_all_drives(at_once, most):
    told = {f"d{number}": WAITS for number in range(10)}
    groups = Groups([({name}, 1) for name in told])
    assert len(decide(groups, told, Table(), 1, rules(at_once=at_once)).turns) == most
    # Who cleans without a turn counts.
    told["d9"] = Told(cleans=True, urgent=True)
    assert len(decide(groups, told, Table(), 1, rules(at_once=at_once)).turns) == max(most - 1, 0)


def test_a_turn_counts_until_its_drive_is_seen_to_have_ended_it():
    table = decide(PAIR, {"a": WAITS}, Table(), 1, rules())
    assert set(table.turns) == {"a"}
    table = decide(PAIR, {"a": Told(followed=table.round, cleans=True), "b": WAITS}, table, 30, rules())
    assert not table.turns and table.ending["a"] == Ending(table.round, turns.LATE_SECONDS)
    for seen in (Told(followed=table.round - 1), Told(followed=table.round, cleans=True), Told(followed=table.round, turn=1)):
        assert not decide(PAIR, {"a": seen, "b": WAITS}, table, 1, rules()).turns
    # It waits again, behind the other one.
    again = decide(PAIR, {"a": Told(followed=table.round, waits=True, spare=5), "b": WAITS}, table, 1, rules())
    assert set(again.turns) == {"b"} and not again.ending
    # Nothing is heard of it: it cannot believe in its turn for ever.
    assert not decide(PAIR, {"b": WAITS}, table, turns.LATE_SECONDS - 1, rules()).turns
    assert set(decide(PAIR, {"b": WAITS}, table, turns.LATE_SECONDS, rules()).turns) == {"b"}


def test_a_turn_in_which_nothing_is_cleaned_ends():
    table = Table(7, {"a": Turn(7, 30)})
    for follows, cleans, idle in ((6, False, 0), (7, False, 2), (7, True, 0), (7, False, 2)):
        table = decide(PAIR, {"a": Told(followed=follows, cleans=cleans)}, table, 2, rules())
        assert table.turns["a"].idle == idle
    assert set(decide(PAIR, {"a": Told(followed=7)}, table, 2, rules()).ending) == {"a"}


def test_who_must_clean_has_the_place_of_who_only_would_until_that_one_has_waited_long():
    told = {"a": Told(followed=5, cleans=True), "b": Told(followed=5, cleans=True, urgent=True)}
    gives_way = decide(PAIR, told, Table(5, {"a": Turn(4, 30, waited=10)}), 1, rules())
    assert not gives_way.turns and set(gives_way.ending) == {"a"} and gives_way.waiting == {"a": 10}
    assert said(gives_way, "a")[0] == 0
    # It has not heard of that yet, and keeps its place.
    assert decide(PAIR, told, gives_way, 1, rules()).waiting == {"a": 10}
    held = {"a": Told(followed=6, waits=True), "b": Told(followed=6, cleans=True, urgent=True)}
    still = decide(PAIR, held, gives_way, 1, rules())
    assert not still.turns and still.waiting == {"a": 11}
    # A drive that must for ever does not hold the others up for ever.
    assert set(decide(PAIR, held, still, 300, rules()).turns) == {"a"}
    assert set(decide(PAIR, told, Table(5, {"a": Turn(4, 30, waited=300)}), 1, rules()).turns) == {"a"}
    urgent = {**told, "a": Told(followed=5, cleans=True, urgent=True)}
    assert set(decide(PAIR, urgent, Table(5, {"a": Turn(4, 30)}), 1, rules()).turns) == {"a"}


def test_neighbours_that_take_turns_do_not_starve_the_one_between_them():
    groups = Groups([({"a", "b"}, 1), ({"b", "c"}, 1)])
    table = Table(3, {"a": Turn(3, 20)}, {}, {"b": 400.0, "c": 2.0})
    table = decide(groups, {"a": Told(cleans=True), "b": WAITS, "c": WAITS}, table, 1, rules())
    # c could go, and b could not behind it.
    assert set(table.turns) == {"a"}
    table = decide(groups, {"a": Told(followed=9), "b": WAITS, "c": WAITS}, Table(3, {}, {"a": Ending(3, 5)}, table.waiting), 1, rules())
    assert set(table.turns) == {"b"}


def test_a_lost_table_gives_nobody_a_turn_until_all_have_told_theirs():
    table = decide(PAIR, {"b": WAITS}, Table.lost(), 0, rules())
    assert not table.turns and table.quiet == turns.BELIEVED_SECONDS
    table = decide(PAIR, {"a": Told(followed=90, cleans=True, turn=20), "b": WAITS}, table, turns.BELIEVED_SECONDS, rules())
    assert table.round == 91 and set(table.ending) == {"a"} and not table.turns
    assert set(decide(PAIR, {"a": Told(followed=91), "b": WAITS}, table, 1, rules()).turns) == {"b"}


def test_what_memcached_has_may_be_anything():
    table = Table(3, {"a": Turn(2, 5.5, 1.0, 0.0)}, {"b": Ending(3, 2.0)}, {"c": 7.0}, 1.5)
    assert Table.decode(json.loads(json.dumps(table.encoded()))) == table
    assert Table.decode({**table.encoded(), "new": 1}) == table
    for junk in (None, 7, {}, [], {**table.encoded(), "turns": 7}, {**table.encoded(), "turns": {"a": {"round": 1}}},
                 {**table.encoded(), "waiting": {"a": None}}):
        assert Table.decode(junk) is None
    for junk in (None, 7, {"failed": True}, {"followed": "x"}, {"turn": []}):
        assert Told.decode(junk) is None
    assert Told.decode({}) == Told()
    for number in (float("inf"), float("nan"), 10 ** 400):
        for junk in ({"round": number}, {"quiet": number}, {"shift_left": number}, {"waiting": {"c": number}},
                     {"turns": {"a": {"round": 2, "left": number, "waited": 1, "idle": 0}}}, {"ending": {"b": {"round": 3, "left": number}}}):
            found = Table.decode(json.loads(json.dumps({**table.encoded(), **junk})))
            assert found is None or junk == {"round": 10 ** 400}
        assert Told.decode({"turn": number}) is None


class Drive:
    """What the daemon does with what it is told: its own clock, and no memory of anything that was over."""

    def __init__(self, dice):
        self.spare, self.low = dice.randint(0, 6), dice.randint(2, 6)
        self.turn = self.hold = 0.0
        self.writes = dice.choice((0.02, 0.1, 0.3))
        self.cleans = self.is_forced = False

    def is_held(self, now):
        return self.turn <= now < self.hold

    @property
    def is_urgent(self):
        return self.spare <= 0

    def go_on(self, now, seconds, dice):
        self.spare = max(0.0, self.spare - dice.random() * 2 * self.writes * seconds)
        is_forced = self.is_urgent or self.is_forced and self.spare < 1
        self.is_forced = is_forced and self.is_held(now)
        self.cleans = self.spare < self.low and (is_forced or not self.is_held(now))
        if self.cleans:
            self.spare = min(self.low, self.spare + seconds * 0.7)

    def row(self, now, followed):
        waits = self.spare < self.low and self.is_held(now) and not self.cleans
        return Told(followed, waits, self.cleans, self.is_urgent, int(self.spare), max(0.0, self.turn - now))

    def take(self, now, turn, hold):
        self.turn, self.hold = now + turn, now + hold


class Counters(dict):
    """Of memcached."""

    def incr(self, key, time):
        self[key] = self.get(key, 0) + 1
        return self[key]


class Cluster:
    """Nodes that tell, follow and lead as coordinator.py does, each once a second at a time of its own."""

    def __init__(self, dice, lost=0.0, leaders=1, late=0.3):
        self.dice, self.lost, self.late = dice, lost, late
        count = dice.randint(3, 5)
        self.nodes = [[f"{node}{drive}" for drive in range(dice.randint(1, 3))] for node in range(count)]
        self.drives = {name: Drive(dice) for node in self.nodes for name in node}
        self.sets = [self.pick(3) for _ in range(dice.randint(2, 30))]
        coded = [self.pick(min(count, 5)) for _ in range(dice.randint(0, 10))]
        self.limits = [1] * len(self.sets) + [2] * len(coded)
        self.sets += coded
        # Any two of a node may clean at once, as far as the sets say.
        shifts = {name: number for number, node in enumerate(self.nodes) for name in node} if dice.random() < 0.5 else None
        self.groups = Groups(zip(self.sets, self.limits), shifts)
        self.rules = Rules(turn_seconds=10, patience_seconds=60, at_once=dice.choice(("20%", "50%", "100%")))
        self.now, self.news, self.kept, self.written = 0.0, {}, None, 0.0
        self.leaders, self.halves = leaders, None
        self.followed = dict.fromkeys(self.drives, 0)
        self.seen = [(None, 0.0, -99.0, 0.0)] * count
        self.due = [dice.random() for _ in range(count)]
        self.writes = []
        counters = Counters()
        self.claims = [Claims(counters, lambda: self.now) for _ in self.nodes]
        self.alive = set(range(count))
        for drive in self.drives.values():
            drive.take(0, 0, 15)

    def pick(self, count):
        nodes = self.dice.sample(self.nodes, count)
        return {self.dice.choice(node) for node in nodes}

    def gets_through(self):
        return self.dice.random() >= self.lost

    def tick(self, seconds=0.25):
        self.now += seconds
        # What a second leader writes comes later, over what the first one wrote.
        for moment, table in [write for write in self.writes if write[0] <= self.now]:
            self.kept, self.written = table, self.now
            self.writes.remove((moment, table))
        for number in sorted(self.alive, key=lambda _: self.dice.random()):
            if self.due[number] <= self.now:
                self.due[number] = self.now + 1 + self.dice.random() * self.late
                self.act(number)
        for drive in self.drives.values():
            drive.go_on(self.now, seconds, self.dice)

    def act(self, number):
        if self.gets_through():
            for name in self.nodes[number]:
                self.news[name] = self.now, self.drives[name].row(self.now, self.followed[name])
        if not self.gets_through():
            return
        kept, since, changed, looked = self.seen[number]
        if self.kept is not kept:
            since, changed = max(self.written, looked), self.now if kept is not None else changed
            kept = self.kept
        # The lease goes to any node that lives; with two leaders, so does another one at the same time.
        table = kept
        if number in sorted(self.alive, key=lambda node: (node + self.now // 7) % len(self.nodes))[:self.leaders]:
            told = {name: row for name, (at, row) in self.news.items() if self.now - at <= 5}
            # Who begins to write may take its time, or never come to it.
            until = self.claims[number].claim(kept.round if kept else "none")
            if until and self.gets_through():
                table = decide(self.groups, told, kept or Table.lost(), self.now - since if kept else 0, self.rules)
                if self.leaders > 1:
                    assert until <= self.now + WRITE_SECONDS
                    self.writes.append((self.now + 3 * self.dice.random(), table))
                else:
                    self.kept, kept, since, changed, self.written = table, table, self.now, self.now, self.now
        self.seen[number] = kept, since, changed, self.now
        if kept is None or self.now - changed > turns.BELIEVED_SECONDS:
            return
        for name in self.nodes[number]:
            if kept.round >= self.followed[name] and self.gets_through():
                self.drives[name].take(self.now, *said(kept, name))
                self.followed[name] = kept.round

    def most_over(self):
        """By how many more drives than may at once are cleaned anywhere, without need. Not of those that are told nothing any more."""
        def unforced(name):
            drive = self.drives[name]
            return drive.turn > self.now or drive.cleans and drive.hold > self.now and not drive.is_forced

        return max(sum(map(unforced, names)) - limit for names, limit in zip(self.sets, self.limits))

    def with_turn(self):
        return [name for name, drive in self.drives.items() if drive.turn > self.now]


@pytest.mark.parametrize("lost", [0, 0.3])
@pytest.mark.parametrize("history", range(HISTORIES))
def test_no_two_replicas_are_cleaned_at_once_without_need_and_nobody_starves(history, lost):
    dice = random.Random(f"{SEED} {history} {lost}")
    cluster = Cluster(dice, lost)
    last = dict.fromkeys(cluster.drives, 0.0)
    most = cluster.rules.most(len(cluster.drives))
    given = set()
    while cluster.now < 400:
        cluster.tick()
        assert cluster.most_over() <= 0, cluster.now
        assert len(cluster.with_turn()) <= most
        given.update(cluster.with_turn())
        for name, drive in cluster.drives.items():
            if drive.spare >= drive.low or drive.turn > cluster.now or drive.cleans:
                last[name] = cluster.now
            # Patience, then everybody who came before.
            turn = cluster.rules.turn_seconds + turns.LATE_SECONDS + 5
            assert cluster.now - last[name] < cluster.rules.patience_seconds + len(cluster.drives) * turn, (name, cluster.now)
    assert given, "nobody ever had a turn"


@pytest.mark.parametrize("lost", [0, 0.3])
@pytest.mark.parametrize("history", range(HISTORIES))
def test_two_leaders_at_once_give_no_turn_too_many(history, lost):
    cluster = Cluster(random.Random(f"{SEED} two {history} {lost}"), lost, leaders=2)
    given, most = set(), cluster.rules.most(len(cluster.drives))
    while cluster.now < 200:
        cluster.tick()
        assert cluster.most_over() <= 0
        assert len(cluster.with_turn()) <= most
        given.update(cluster.with_turn())
    assert given


@pytest.mark.parametrize("history", range(HISTORIES))
def test_without_a_leader_drives_decide_for_themselves(history):
    cluster = Cluster(random.Random(f"{SEED} none {history}"))
    while cluster.now < 60:
        cluster.tick()
    cluster.leaders = 0
    while cluster.now < 60 + turns.BELIEVED_SECONDS + 10 + turns.HOLD_SECONDS + 2:
        cluster.tick()
    assert not any(drive.is_held(cluster.now) for drive in cluster.drives.values())
    # A node that dies takes its drives with it, and no others.
    cluster.leaders = 1
    cluster.alive.remove(0)
    while cluster.now < 140:
        cluster.tick()
    while cluster.now < 240:
        cluster.tick()
        names = [name for number in cluster.alive for name in cluster.nodes[number]]
        assert all(cluster.drives[name].hold > cluster.now for name in names)


def test_the_simulation_has_the_same_rule():
    """Both must say what the table says. Numbers of JSON are exact."""
    assert json.loads(json.dumps(turns_table.made())) == turns_table.read(), "tests/swift/turns_table.py writes it anew"
