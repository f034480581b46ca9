"""The states that a power cut may leave, one after the other: the same on the host and in the guest for the same seed."""

import collections
import random

import log_writes


class Cut:
    """A state: the image, what was synced before it, and what is to be done with it."""

    def __init__(self, number, kept, units, mark, image, thorough):
        self.number, self.kept, self.units, self.mark, self.image, self.thorough = number, kept, units, mark, image, thorough

    def __str__(self):
        return f"behind entry {self.number}, {self.kept} of {self.units} units kept that were not flushed, mark {self.mark}"


def parts(chance, units, often, whole):
    """
    What may be kept of the units that are not flushed, `often` times at most and none twice, as numbers with a bit for each
    unit: all of them first if it is to be whole, then every part if there are no more than that, else any.
    """
    every = 1 << units
    seen = set()
    if whole:
        seen.add(every - 1)
        yield every - 1
    if every <= often:
        yield from (part for part in range(every) if part not in seen)
        return
    while len(seen) < often:
        probability = chance.choice((0, 0.1, 0.5, 0.9))
        part = sum(1 << unit for unit in range(units) if chance.random() < probability)
        if part not in seen:
            seen.add(part)
            yield part


def places(log):
    """The entries of a log behind which something else may be there than before them, or more has been promised."""
    return [number for number, entry in enumerate(log_writes.read(log)) if entry.length or entry.mark]


def cuts(first, log, seed, states):
    """Behind every entry of the log as often as the number of states allows: all of it is kept, then any part."""
    chance = random.Random(seed)
    numbers = places(log)
    whole, rest = divmod(states, len(numbers))
    often = collections.Counter(chance.sample(numbers, rest))
    often.update({number: whole for number in numbers})
    drive = log_writes.Drive(len(first))
    drive.durable[:] = first
    mark, done = None, 0
    for number, entry in enumerate(log_writes.read(log)):
        drive.take(entry)
        if entry.mark and entry.mark.isdigit():
            mark = entry.mark
        if not often[number]:
            continue
        units = drive.units()
        for part in parts(chance, len(units), often[number], whole or number % 2 == 0):
            done += 1
            yield Cut(number, part.bit_count(), len(units), mark, drive.cut(units, part), done % 25 == 0)
