"""The states that a power cut may leave, one after the other: the same on the host and in the guest for the same seed."""

import collections
import random

import log_writes


class Cut:
    """A state: the image, what was synced before it, and what is to be done with it."""

    def __init__(self, number, kept, mark, image, thorough):
        self.number, self.kept, self.mark, self.image, self.thorough = number, kept, mark, image, thorough

    def __str__(self):
        return f"behind write {self.number}, {self.kept} of what was not flushed kept, mark {self.mark}"


def cuts(first, log, seed, states):
    """Behind every write of the log as often as the number of states allows; first all of it is kept, then any part."""
    chance = random.Random(seed)
    entries = list(log_writes.read(log))
    whole, rest = divmod(states, len(entries))
    often = collections.Counter(chance.sample(range(len(entries)), rest))
    drive = log_writes.Drive(len(first))
    drive.durable[:] = first
    mark, done = None, 0
    for number, entry in enumerate(entries):
        drive.take(entry)
        if entry.mark and entry.mark.isdigit():
            mark = entry.mark
        for again in range(often[number] + whole):
            kept = 1 if again == 0 and number % 2 == 0 else chance.choice((0, 0.1, 0.5, 0.9))
            done += 1
            yield Cut(number, kept, mark, drive.cut(chance, kept), done % 25 == 0)
