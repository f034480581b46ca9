"""The states that a power cut may leave, one after the other: the same on the host and in the guest for the same seed."""

import collections
import os
import random
import zlib

import log_writes


class Homes:
    """The blocks of a file system that were ever logged, and checksums of what a device or an image has there."""

    def __init__(self, first, numbers):
        """`first` is what an image of it began with."""
        def number(at, size):
            return int.from_bytes(first[at:at + size], "little")

        self.numbers, self.block, self.inode = numbers, 1024 << number(1048, 4), number(1112, 2)
        groups = -(-number(1028, 4) // number(1056, 4))
        # Descriptors have 64 bytes with the feature "64bit"; those of inodes lie within 32 bits here.
        size = number(1278, 2) if number(1120, 4) & 0x80 else 32
        length = -(-number(1064, 4) * self.inode // self.block)
        tables = [number((1024 // self.block + 1) * self.block + group * size + 8, 4) for group in range(groups)]
        self.tables = {start + offset for start in tables for offset in range(length)}

    def sums(self, path):
        with open(path, "rb", buffering=0) as file:
            return " ".join(f"{zlib.crc32(self.content(file, number)):x}" for number in self.numbers)

    def content(self, file, number):
        """
        Of inodes without a name nothing counts: a file that was open and deleted in front of the cut is freed by a mount and by
        e2fsck, each at its own time.
        """
        data = os.pread(file.fileno(), self.block, number * self.block)
        if number not in self.tables:
            return data
        inodes = [data[at:at + self.inode] for at in range(0, len(data), self.inode)]
        return b"".join(inode if any(inode[26:28]) else bytes(len(inode)) for inode in inodes)


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
