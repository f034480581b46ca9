"""Which drives may clean together because no object has too many of its parts on them: shifts. Pure.

A ring keeps the replicas of an object in different regions, zones or machines. Where all drives of one zone clean at once, every object
is read elsewhere, and with three zones a third of all drives cleans. Drives that have a turn as they come reach that only where each
shares objects with few others: of drives that share with `n` others, about ln(n) / n of all have a turn then.
"""

import math
from collections import Counter

# With more zones or machines than this it takes long until a shift comes again.
MOST = 32
# A ring that is being changed has some objects where they should not be; who shares these takes turns inside of a shift.
ASTRAY = 0.05
# Drives, at least, that are asked how many others they share with.
SOME = 256


def find(groups, tiers):
    """The number of each drive's shift; None if turns as they come are as good. `groups`: pairs of drives and how many of them may
    clean at once; `tiers`: for each way to divide the drives the part that each is in, such as its region, or its zone."""
    groups = list(groups)
    found = [shifts for parts in tiers if (shifts := _of(groups, parts))]
    best = min(found, key=lambda shifts: max(shifts.values()), default=None)
    if best is None:
        return None
    count, share = 1 + max(best.values()), _as_they_come(groups)
    return best if 1 / count > share else None


def _of(groups, parts):
    """Shifts of whole parts, each part in the first one where it fits. None if a part by itself is too many."""
    names = sorted(set(parts.values()))
    if not 1 < len(names) <= MOST:
        return None
    patterns = Counter((frozenset(Counter(parts[drive] for drive in drives).items()), limit) for drives, limit in groups)
    astray = {pattern for pattern in patterns if max(count for _, count in pattern[0]) > pattern[1]}
    if sum(patterns[pattern] for pattern in astray) > ASTRAY * len(groups):
        return None
    kept = [(dict(counts), limit) for counts, limit in patterns.keys() - astray]
    shifts = []
    for name in names:
        for shift in shifts:
            together = {*shift, name}
            if all(sum(counts.get(part, 0) for part in together) <= limit for counts, limit in kept):
                shift.add(name)
                break
        else:
            shifts.append({name})
    number = {name: index for index, shift in enumerate(shifts) for name in shift}
    return {drive: number[part] for drive, part in parts.items()}


def _as_they_come(groups):
    """The share of all drives that has a turn then. Of sets that may have several at once, each drive counts for a part of one."""
    drives = sorted({drive for members, _ in groups for drive in members})
    some = set(drives[::max(1, len(drives) // SOME)])
    others = {}
    for members, limit in groups:
        for drive in some.intersection(members):
            shared = others.setdefault(drive, {})
            shared.update((other, max(shared.get(other, 0.0), 1 / limit)) for other in members if other != drive)
    if not others:
        return 1.0
    mean = sum(sum(shared.values()) for shared in others.values()) / len(others)
    return 1.0 if mean <= math.e else math.log(mean) / mean
