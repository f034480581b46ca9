"""
A superblock for a journal that has lost its own, from what lazy writeback has left in its log.

Commit records and descriptor blocks carry the log's ID, and transactions are numbered. The log is taken from the oldest
transaction on behind which none is missing. That is at its tail or in front of it. What is in front of the tail does no harm
when it is replayed: it is superseded, revoked, or home as it is here.
"""

import collections
import struct

import journal
from journal import COMMIT, CSUM_V2, CSUM_V3, BITS_64, DESCRIPTOR, MAGIC, REVOKE, Unreadable, after, crc32c

LAZY_COMMIT = 0x4C
REVOKE_FEATURE = 0x1
COMPATIBLE_CHECKSUM_TYPE = 4
# Commit records that have to agree on the checksums' seed.
WITNESSES = 9


def crc32c_back(value, data):
    """What was in front of `data` for `value` to be behind it."""
    for byte in reversed(data):
        number = BY_TOP[value >> 24]
        value = ((value ^ journal.TABLE[number]) << 8 | (number ^ byte)) & 0xFFFFFFFF
    return value


BY_TOP = {entry >> 24: number for number, entry in enumerate(journal.TABLE)}


def uuid_of_seed(seed):
    """A UUID of which the checksum is the seed."""
    front = bytes(12)
    wanted = crc32c_back(seed, bytes(4))
    return front + (crc32c(0xFFFFFFFF, front) ^ wanted).to_bytes(4, "little")


class Found:
    """What the blocks of a log say, by their headers."""

    def __init__(self, log):
        self.log = log
        # By ID: the commit records' transactions and offsets; by transaction: the offsets of its blocks with a header.
        self.commits, self.headers = collections.defaultdict(dict), collections.defaultdict(list)
        self.foreign, self.tag_bytes = {}, collections.Counter()
        for offset in range(log.top + 1, len(log.places)):
            front = journal.read(log.image, log.places[offset] * log.block_size, 80)
            magic, kind, sequence = struct.unpack(">III", front[:12])
            if magic != MAGIC or kind not in (COMMIT, DESCRIPTOR, REVOKE):
                continue
            self.headers[sequence].append(offset)
            if kind == COMMIT and front[14] == LAZY_COMMIT:
                self.commits[front[64:72]][sequence] = offset
            elif kind == COMMIT:
                self.foreign[sequence] = offset
            elif kind == DESCRIPTOR:
                self.tag_bytes[front.find(b"ext4lazy", 12) - 12] += 1

    def newest(self):
        """The ID of the log that was used last, and its newest transaction."""
        found = [(sequence, identifier) for identifier, commits in self.commits.items() for sequence in commits]
        if not found:
            raise Unreadable("nothing of lazy writeback is in its log")
        sequence, identifier = found[0]
        for other in found[1:]:
            if after(other[0], sequence):
                sequence, identifier = other
        return identifier, sequence

    def incompatible(self):
        """The features by which tags have this size."""
        bits = BITS_64 if self.log.has_64_bits else 0
        plain = 12 if bits else 8
        sizes = {16: CSUM_V3, plain + 2: CSUM_V2, plain: 0}
        for size, _ in self.tag_bytes.most_common():
            if size in sizes:
                return REVOKE_FEATURE | bits | sizes[size]
        raise Unreadable("no descriptor block is in its log")


def seed(log, offsets):
    """The seed of the checksums that most of these commit records have."""
    seeds = collections.Counter()
    for offset in offsets:
        block = log.block(offset)
        stored = struct.unpack(">I", block[16:20])[0]
        seeds[crc32c_back(stored, block[:16] + bytes(4) + block[20:])] += 1
    return seeds.most_common(1)[0][0]


def rebuild(log):
    """
    Writes a superblock for the log, of which nothing is known but its blocks. Returns the first and the last transaction that it
    has, and whether these are all of the log.
    """
    found = Found(log)
    identifier, last = found.newest()
    commits = found.commits[identifier]
    log.first, log.maxlen, log.incompatible = log.top + 1, len(log.places), found.incompatible()
    log.uuid = log.its_uuid
    if log.has_checksums:
        newest = sorted(commits, key=lambda sequence: (last - sequence) & 0xFFFFFFFF)[:WITNESSES]
        log.seed = seed(log, [commits[sequence] for sequence in newest])
        if log.seed != crc32c(0xFFFFFFFF, log.uuid):
            log.uuid = uuid_of_seed(log.seed)
    # Of a mount without lazy writeback that was the last one, the log may be anything.
    if any(after(sequence, last) and log.is_whole(log.block(offset)) for sequence, offset in found.foreign.items()):
        raise Unreadable("the last mount of it was without lazy writeback, so that nobody can tell where its log begins")
    first = last
    while (first - 1) & 0xFFFFFFFF in commits:
        first = (first - 1) & 0xFFFFFFFF
    end = log.after(commits[last])
    places = sorted(found.headers[first], key=lambda offset: (offset - end) % (log.maxlen - log.first))
    # What an older journal has left may have the same number.
    start = next((offset for offset in places if log.head(offset, first)[1] != first), places[0])
    is_all = all(sequence == first or after(sequence, first) for sequence in commits)
    while (broken := log.head(start, first)[1]) != (last + 1) & 0xFFFFFFFF:
        if broken == last:
            raise Unreadable(f"its newest transaction, {last}, is damaged too")
        # What is in front of the damage cannot be brought home without what is in it.
        start, first, is_all = log.after(commits[broken]), (broken + 1) & 0xFFFFFFFF, False
    log.put(log.top, superblock(log, first, start))
    log.read_superblock()
    return first, last, is_all


def superblock(log, sequence, start):
    block = bytearray(log.block_size)
    block[:32] = struct.pack(">IIIIIIII", MAGIC, max(journal.SUPERBLOCKS), 0, log.block_size, log.maxlen, log.first, sequence, start)
    block[40:44] = struct.pack(">I", log.incompatible)
    block[48:68] = log.uuid + struct.pack(">I", 1)
    if log.top:
        block[256:272] = log.its_uuid
    if log.has_checksums:
        block[80] = COMPATIBLE_CHECKSUM_TYPE
        block[252:256] = struct.pack(">I", journal.superblock_checksum(block))
    return bytes(block)
