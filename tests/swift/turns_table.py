#!/usr/bin/env python3
"""The table of what the rule of turns says, `turns.json`: this rule and the one of the simulation (crates/sim/tests/turns.rs) must say it.

    tests/swift/turns_table.py     writes it anew; what changes in it has changed in the rule
"""

import json
import random
from dataclasses import asdict
from pathlib import Path

from zonestore_swift import shifts
from zonestore_swift.turns import Groups, Rules, Table, Told, decide

TABLE = Path(__file__).with_name("turns.json")
HISTORIES, STEPS, RINGS = 24, 10, 24


def numbered(table):
    """Keys of JSON are text."""
    return {str(key): value for key, value in table.items()}


def history(seed):
    """Drives that tell anything, in a cluster of any form."""
    dice = random.Random(f"turns {seed}")
    nodes = dice.randint(2, 5)
    drives = list(range(nodes * dice.randint(1, 3)))
    groups = []
    for _ in range(dice.randint(1, 12)):
        width = dice.randint(1, min(4, len(drives)))
        groups.append((sorted(dice.sample(drives, width)), dice.choice((1, 1, 2))))
    its_shifts = dice.choice((None, {drive: drive % nodes for drive in drives}))
    rules = Rules(dice.choice((5.0, 30.0)), 3.0, dice.choice((10.0, 300.0)), dice.choice(("100%", "20%", "35.5%", "2", "0")))
    table, steps = dice.choice((Table(), Table.lost())), []
    begin = table
    for _ in range(STEPS):
        elapsed = dice.choice((0.0, 0.5, 1.0, 1.25, 4.0))
        told = {}
        for drive in drives:
            if dice.random() < 0.1:
                continue
            has_turn = drive in table.turns
            cleans = dice.random() < (0.6 if has_turn else 0.08)
            told[drive] = Told(max(0, table.round - dice.choice((0, 0, 0, 1, 3))), not cleans and dice.random() < 0.7, cleans,
                               dice.random() < 0.05, dice.randint(0, 4), dice.choice((0.0, 7.5)) if has_turn else 0.0)
        table = decide(Groups(groups, its_shifts), told, table, elapsed, rules)
        steps.append({"elapsed": elapsed, "told": numbered({drive: said(row) for drive, row in told.items()}), "table": encoded(table)})
    return {"groups": groups, "shifts": its_shifts and [its_shifts[drive] for drive in drives], "drives": len(drives), "rules": asdict(rules),
            "before": encoded(begin), "steps": steps}


def said(row):
    """What is not as it mostly is."""
    return {key: value for key, value in asdict(row).items() if value != getattr(Told(), key)}


def encoded(table):
    return {key: numbered(value) if isinstance(value, dict) else value for key, value in table.encoded().items()}


def ring(seed):
    """Drives in zones and machines, replicas as far apart as they can be, and what shifts follow."""
    dice = random.Random(f"shifts {seed}")
    zones, nodes, each = dice.choice((1, 2, 3, 4, 6)), dice.randint(1, 4), dice.randint(2, 6)
    zone_of = [zone for zone in range(zones) for _ in range(nodes * each)]
    node_of = [drive // each for drive in range(len(zone_of))]
    width, limit = dice.choice(((3, 1), (3, 1), (2, 1), (6, 2), (4, 3)))
    width = min(width, len(zone_of))
    groups = []
    for _ in range(dice.choice((20, 60))):
        row = []
        while len(row) < width:
            free = [drive for drive in range(len(zone_of)) if drive not in row]
            used = [zone_of[drive] for drive in row]
            fewest = min(used.count(zone_of[drive]) for drive in free)
            # Now and then one is astray.
            row.append(dice.choice([drive for drive in free if used.count(zone_of[drive]) == fewest or dice.random() < 0.002]))
        groups.append((sorted(row), limit))
    tiers = [zone_of, node_of]
    found = shifts.find(groups, [dict(enumerate(parts)) for parts in tiers])
    return {"drives": len(zone_of), "groups": groups, "tiers": tiers, "shifts": found and [found[drive] for drive in range(len(zone_of))]}


def made():
    return {"turns": [history(seed) for seed in range(HISTORIES)], "shifts": [ring(seed) for seed in range(RINGS)]}


def read():
    return json.loads(TABLE.read_text())


if __name__ == "__main__":
    TABLE.write_text("{" + ",\n".join(
        json.dumps(name) + ": [\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "]"
        for name, cases in made().items()) + "}\n")
