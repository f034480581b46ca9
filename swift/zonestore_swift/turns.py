"""Which drives of a cluster may clean now: the rule that gives turns. Pure: news and what was said before in, what is said now out.

A turn is for so many seconds, and is told with the seconds that are left, never with a time of the day: clocks need not agree. It is
over once its drive has followed a later round and cleans no more, or when it is too old for anybody to believe in it. Until then it counts.

Where rings keep replicas apart by zones, turns go by *shifts*: drives that have no object in common clean together, one shift after the
other. Without, a few drives that are given a turn as they come keep nearly all others from theirs (shifts.py).

The simulation of clusters has the same rule (crates/sim/src/cluster/turns); tests/swift/turns.json has what both must say.
"""

import copy
import math
from collections import Counter
from dataclasses import asdict, dataclass, field, replace

# A table of turns that nobody renewed for so long is not believed by the drives' nodes.
BELIEVED_SECONDS = 5.0
# So a turn may end that much later at its drive than it was said, and a second for rounding.
LATE_SECONDS = BELIEVED_SECONDS + 1
# A drive that nobody tells anything any more decides for itself after so long. A new coordinator is there sooner.
HOLD_SECONDS = 15
# A shift that is over sooner gives no turn any more.
LEAST_SECONDS = 2.0


@dataclass(frozen=True)
class Rules:
    turn_seconds: float = 30.0
    # A turn in which nothing was cleaned for so long ends.
    idle_seconds: float = 3.0
    # Who has waited longer goes first, and is not held up by drives that clean because they must.
    patience_seconds: float = 300.0
    # How many drives have a turn at once: a number, or a share of those that tell something ("20%"), one at least.
    at_once: str = "20%"

    def most(self, drives):
        text = self.at_once.strip()
        share = int(drives * float(text[:-1]) / 100) if text.endswith("%") else int(text)
        return max(1, share)


def _seconds(value):
    """JSON in Python has Infinity and NaN, which no turn lasts."""
    found = float(value)
    if not math.isfinite(found):
        raise ValueError(value)
    return found


@dataclass(frozen=True)
class Told:
    """What the news say of a drive."""

    # The last round that its node had followed when it looked.
    followed: int = 0
    # There is a zone that it would clean.
    waits: bool = False
    # It has a zone in hand.
    cleans: bool = False
    # It cleans whatever is said, for hardly any zone is free.
    urgent: bool = False
    # Zones that may be filled until that is so.
    spare: int = 0
    # Seconds that it believes to be left of its turn.
    turn: float = 0.0

    @classmethod
    def decode(cls, row):
        """None if the drive does not answer."""
        try:
            if row.get("failed"):
                return None
            return cls(int(row.get("followed", 0)), bool(row.get("waits")), bool(row.get("cleans")), bool(row.get("urgent")),
                       int(row.get("spare", 0)), _seconds(row.get("turn", 0)))
        except (TypeError, ValueError, AttributeError, OverflowError):
            return None


@dataclass(frozen=True)
class Turn:
    round: int
    left: float
    # How long it had waited for it.
    waited: float = 0.0
    # For so long nothing has been cleaned in it.
    idle: float = 0.0


@dataclass(frozen=True)
class Ending:
    """A turn that its drive may not have seen the end of."""

    round: int
    left: float


@dataclass(frozen=True)
class Table:
    """What is said, by round: whose turn it is, whose ends, and how long the others have waited."""

    round: int = 0
    turns: dict = field(default_factory=dict)
    ending: dict = field(default_factory=dict)
    waiting: dict = field(default_factory=dict)
    # For so long nobody is given a turn.
    quiet: float = 0.0
    # Whose turns they are, and for how long if others wait.
    shift: int = 0
    shift_left: float = 0.0

    @classmethod
    def lost(cls):
        """In the place of one that is not there any more: who has a turn is known once all have told it."""
        return cls(quiet=BELIEVED_SECONDS)

    def encoded(self):
        return asdict(self)

    @classmethod
    def decode(cls, kept):
        """None if it is none: what is kept elsewhere may be anything."""
        try:
            turns = {name: Turn(int(turn["round"]), *(_seconds(turn[key]) for key in ("left", "waited", "idle")))
                     for name, turn in kept["turns"].items()}
            ending = {name: Ending(int(end["round"]), _seconds(end["left"])) for name, end in kept["ending"].items()}
            waiting = {name: _seconds(waited) for name, waited in kept["waiting"].items()}
            shift = int(kept.get("shift", 0)), _seconds(kept.get("shift_left", 0))
            return cls(int(kept["round"]), turns, ending, waiting, _seconds(kept["quiet"]), *shift)
        except (TypeError, KeyError, ValueError, AttributeError, OverflowError):
            return None


class Groups:
    """Which drives have replicas or fragments of the same objects, and how many of each group may clean at once."""

    def __init__(self, groups, shifts=None):
        """`groups`: pairs of drives and the limit. One that says no more than others is no harm. `shifts`: the number of each drive's;
        None if drives have turns as they come."""
        self.limits, self._of, self.shifts = [], {}, shifts or {}
        self.shift_count = 1 + max(self.shifts.values(), default=-1)
        for number, (drives, limit) in enumerate(groups):
            self.limits.append(limit)
            for drive in drives:
                self._of.setdefault(drive, []).append(number)

    def joined(self, others):
        """The same groups, with those of a drive's other names under its first one. `others`: that for each of them."""
        if not others:
            return self
        joined = copy.copy(self)
        joined._of = dict(self._of)
        for name, first in others.items():
            joined._of[first] = {*joined._of.pop(name, ()), *joined._of.get(first, ())}
        return joined

    def of(self, drive):
        return self._of.get(drive, ())

    def drives(self):
        return self._of.keys()

    def count(self, drives):
        return Counter(group for drive in drives for group in self.of(drive))

    def have_room(self, drive, *counts):
        return all(sum(count[group] for count in counts) < self.limits[group] for group in self.of(drive))


def decide(groups, told, before, elapsed, rules=Rules()):
    """The next table. `told`: for each drive whose news are fresh what they say; `before`: the last table;
    `elapsed`: seconds since then, rather too few than too many."""
    number = 1 + max([before.round, *(drive.followed for drive in told.values())])
    turns, ending = _go_on(told, before, elapsed, number, rules)
    # Nobody gave them a turn: they must clean, or somebody asked for it, or nobody could tell them to wait.
    unasked = {name for name, drive in told.items() if drive.cleans and name not in turns and name not in ending}
    # Whoever is not heard of, or is on the way out, keeps its place.
    waiting = {name: waited for name, waited in before.waiting.items() if name in ending or name not in told and name in groups.drives()}
    for name, drive in told.items():
        if drive.waits and name not in turns and name not in ending and name not in unasked:
            waiting[name] = before.waiting.get(name, 0.0) + elapsed
    for name in _giving_way(groups, told, turns, ending, unasked, rules):
        turn = turns.pop(name)
        ending[name] = Ending(number, turn.left + LATE_SECONDS)
        waiting[name] = turn.waited
    quiet = max(0.0, before.quiet - elapsed)
    shift, shift_left = _shift(groups, told, turns, waiting, before, elapsed, rules)
    if not quiet:
        for name in _next(groups, told, {*turns, *ending}, unasked, waiting, (shift, shift_left), rules):
            is_aged = waiting[name] >= rules.patience_seconds
            # A shift ends for all of its drives at once.
            left = min(rules.turn_seconds, shift_left) if groups.shifts and not is_aged else rules.turn_seconds
            turns[name] = Turn(number, left, waiting.pop(name))
    return Table(number, turns, ending, waiting, quiet, shift, shift_left)


def said(table, name):
    """What is said to a drive: the seconds of its turn, and until when it is held back behind that."""
    turn = int(table.turns[name].left) if name in table.turns else 0
    return turn, turn + HOLD_SECONDS


def _go_on(told, before, elapsed, number, rules):
    """Turns that go on, and those that end."""
    turns, ending = {}, {}
    for name, end in before.ending.items():
        drive = told.get(name)
        is_seen = drive is not None and drive.followed >= end.round and not drive.cleans and drive.turn <= 0
        if end.left > elapsed and not is_seen:
            ending[name] = replace(end, left=end.left - elapsed)
    for name, turn in before.turns.items():
        drive, left = told.get(name), turn.left - elapsed
        is_idle = drive is not None and drive.followed >= turn.round and not drive.cleans
        idle = turn.idle + elapsed if is_idle else 0.0
        if left <= 0 or idle >= rules.idle_seconds:
            ending[name] = Ending(number, max(left, 0.0) + LATE_SECONDS)
        else:
            turns[name] = replace(turn, left=left, idle=idle)
    for name, drive in told.items():
        # A table was lost, or another one was believed.
        if drive.turn > 0 and name not in turns and name not in ending:
            ending[name] = Ending(number, drive.turn + LATE_SECONDS)
    return turns, ending


def _giving_way(groups, told, turns, ending, unasked, rules):
    """Whose turn ends because a drive cleans that must. Who has waited long goes on."""
    count, forced = groups.count([*turns, *ending, *unasked]), groups.count(unasked)
    found = []
    for name, turn in sorted(turns.items()):
        if (name in told and told[name].urgent) or turn.waited >= rules.patience_seconds:
            continue
        if any(forced[group] and count[group] > groups.limits[group] for group in groups.of(name)):
            count.subtract(groups.of(name))
            found.append(name)
    return found


def _shift(groups, told, turns, waiting, before, elapsed, rules):
    """Which shift it is, and how long it goes on. It ends when its time is over, or nobody of it has anything to clean; not while nobody
    else waits."""
    if not groups.shifts:
        return 0, 0.0
    now = before.shift % groups.shift_count
    wanting = {groups.shifts.get(name) for name in waiting if name in told} - {None}
    others = wanting - {now}
    if not others:
        return now, rules.turn_seconds
    left = before.shift_left - elapsed
    if left > 0 and (now in wanting or any(groups.shifts.get(name) == now for name in turns)):
        return now, left
    return min(others, key=lambda shift: (shift - now) % groups.shift_count), rules.turn_seconds


def _next(groups, told, active, unasked, waiting, shift, rules):
    """Who has a turn from now on. Who has waited long goes first, the longest before the others; then who has the fewest spare
    zones, of the shift that it is. A drive that has waited long and cannot go yet keeps the place free that it needs."""
    def may_go(name):
        its = groups.shifts.get(name)
        return its is None or waiting[name] >= rules.patience_seconds or its == shift[0] and shift[1] >= LEAST_SECONDS

    def order(name):
        waited = waiting[name]
        return (0, 0, -waited, name) if waited >= rules.patience_seconds else (1, told[name].spare, -waited, name)

    most, found = rules.most(len(told)), []
    count, forced, kept = groups.count(active), groups.count(unasked), Counter()
    for name in sorted((name for name in waiting if name in told and name not in active and may_go(name)), key=order):
        is_aged = waiting[name] >= rules.patience_seconds
        others, taken = (Counter(), 0) if is_aged else (forced, len(unasked))
        if len(active) + len(found) + taken < most and groups.have_room(name, count, kept, others):
            count.update(groups.of(name))
            found.append(name)
        elif is_aged:
            kept.update(groups.of(name))
    return found
