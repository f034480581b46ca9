"""The log of ext4 on an image, read from its format alone: where it ends, and what is at a block of it."""

import os
import re
import struct
import subprocess
import zlib

MAGIC = 0xC03B3998
DESCRIPTOR, COMMIT, REVOKE = 1, 2, 5
SUPERBLOCKS = (3, 4)
SAME_UUID, LAST_TAG = 2, 8
CSUM_V2, CSUM_V3, BITS_64 = 0x8, 0x10, 0x2
KNOWN_INCOMPATIBLE = 0x3F
# Of the file system.
FS_MAGIC, FS_BITS_64, FS_NEEDS_RECOVERY, FS_METADATA_CSUM = 0xEF53, 0x80, 0x4, 0x400
# At home alone, while the log holds metadata: every other program refuses the file system.
FS_LAZY_LOG = 1 << 30
# That the log is in.
INODE = 8
# What lazy writeback says of the log's end, in the padding of the superblock (docs/ext4-lazy.md).
RECORD_OFFSET, RECORD_MAGIC, RECORD_VERSION = 0xD8, b"LZY", 1
COMMIT_ID_OFFSET = 64
# What the file system's superblock says of the log, beside its mark.
HOME_OFFSET, HOME_MAGIC = 0x3E0, 0x4C5A5901
# In seconds, the end of year 9999: no program shows a later time.
LAST_TIME = 253402300799
# Blocks of which checksums are made together.
AT_ONCE = 1024


class Unreadable(Exception):
    """Why there is no log to be read: one line."""


class Record:
    """
    What the journal's superblock says of the end of the log, which begins with transaction `first` at `start`: what is in front of
    `sequence` was committed.
    """

    def __init__(self, block):
        (self.identifier, magic, self.first, self.start, self.sequence, self.head,
         self.checksum) = struct.unpack(">Q4sIIIII", block[RECORD_OFFSET:RECORD_OFFSET + 32])
        self.exists, self.version = magic[:3] == RECORD_MAGIC, magic[3]
        # With what is the same as long as the journal is; 0 is none.
        right = zlib.crc32(block[12:24] + block[RECORD_OFFSET:RECORD_OFFSET + 28]) or 1
        self.is_whole = self.checksum in (0, right)


class Seen:
    """
    What the file system's superblock says of the log that it was used with: what is in front of `sequence` was committed, and if it was
    `left`, by an unmount, nothing else was.
    """

    def __init__(self, its):
        self.identifier, magic, self.sequence, left = struct.unpack("<QIII", its[HOME_OFFSET:HOME_OFFSET + 20])
        features = struct.unpack("<I", its[96:100])[0]
        self.exists = magic == HOME_MAGIC and bool(features & FS_LAZY_LOG) and bool(features & FS_NEEDS_RECOVERY)
        self.left = bool(left)


def after(number, other):
    """Whether a transaction's number is behind another's."""
    return 0 < (number - other) & 0xFFFFFFFF < 1 << 31


class Damage:
    """The log ends at `offset` in front of transaction `sequence`, which was committed, as the block `proof` of the log says."""

    def __init__(self, offset, sequence, proof):
        self.offset, self.sequence, self.proof = offset, sequence, proof


class Journal:
    def __init__(self, debugfs, image, external=None, claim=False, superblock=True):
        """
        `image` is the file system; the log is in it, or in `external`, of which it becomes the only user if it has a `claim`. Without
        `superblock` that of the log is not looked at: it is to be made again.
        """
        self.claim = claim
        self.image = external or image
        its = read(image, 1024, 1024)
        if struct.unpack("<H", its[56:58])[0] != FS_MAGIC or struct.unpack("<I", its[24:28])[0] > 6:
            raise Unreadable(f"{image} has no superblock of ext4")
        self.block_size = 1024 << struct.unpack("<I", its[24:28])[0]
        features = struct.unpack("<I", its[96:100])[0]
        self.has_64_bits, self.needs_recovery = bool(features & FS_BITS_64), bool(features & FS_NEEDS_RECOVERY)
        self.its, self.its_uuid = its, its[104:120]
        # The offset of the log's superblock.
        self.top = 0
        if external:
            # Behind the block with the superblock that tells what the device is; both count.
            self.top = 1024 // self.block_size + 1
            self.places = range(size_of(external) // self.block_size)
            if len(self.places) <= self.top:
                raise Unreadable(f"{external} has {size_of(external)} bytes, and a journal's superblock would be behind that")
            if superblock:
                self.read_superblock()
            return
        # The leaves alone: a large journal has blocks of its extent tree as well.
        words = debugger(debugfs, image, "dump_extents -l <8>")
        self.places = []
        for first, last in re.findall(r"^ *\d+/ *\d+ +\d+/ *\d+ +\d+ *- *\d+ +(\d+) *- *(\d+) ", words, re.M):
            self.places += range(int(first), int(last) + 1)
        if not self.places:
            words = debugger(debugfs, image, "bmap <8> 0")
            if not re.fullmatch(r"[1-9]\d*\s*", words):
                raise Unreadable("the journal's inode has no blocks")
            self.places = blocks_of_a_list(debugger(debugfs, image, "stat <8>"))
        if superblock:
            self.read_superblock()

    def read_superblock(self):
        """Where the log begins is in it, and of what kind its tags are; as jbd2 does, it believes nothing that cannot be."""
        superblock = self.block(self.top)
        magic, kind = struct.unpack(">II", superblock[:8])
        if magic != MAGIC or kind not in SUPERBLOCKS:
            raise Unreadable("it has no journal superblock")
        size, self.maxlen, self.first, self.sequence, self.start = struct.unpack(">IIIII", superblock[12:32])
        self.incompatible = struct.unpack(">I", superblock[40:44])[0] if kind == max(SUPERBLOCKS) else 0
        self.uuid = superblock[48:64]
        self.users = struct.unpack(">I", superblock[64:68])[0]
        self.seed = crc32c(0xFFFFFFFF, self.uuid)

        def require(holds, words):
            if not holds:
                raise Unreadable(f"its superblock is damaged: {words}")

        require(size == self.block_size, f"it has blocks of {size} bytes, the file system of {self.block_size}")
        require(self.maxlen <= len(self.places), f"it has {self.maxlen} blocks, and there are {len(self.places)}")
        require(self.top < self.first < self.maxlen, f"its log begins at block {self.first} of {self.maxlen}")
        # Where the log begins may be known from the record: that is not the end of it.
        self.problem = None
        if self.start and not self.first <= self.start < self.maxlen:
            self.problem = f"its tail is block {self.start}, and its log is blocks {self.first} to {self.maxlen - 1}"
        require(not self.incompatible & ~KNOWN_INCOMPATIBLE, f"it has features that are not known ({self.incompatible:#x})")
        require(not self.start or bool(self.incompatible & BITS_64) == self.has_64_bits,
                "it and the file system differ in the size of block numbers")
        stored = struct.unpack(">I", superblock[252:256])[0]
        if self.top:
            # mke2fs lets another file system in, and tune2fs does not let the right one out; neither writes the checksum.
            alone = superblock[:64] + struct.pack(">I", 1) + superblock[68:256] + self.its_uuid + bytes(752) + superblock[1024:]
            if superblock != alone and (self.users != 1 or (self.has_checksums and stored == superblock_checksum(alone))):
                if not self.claim:
                    raise Unreadable("it is marked as that of another file system too, so that nobody replays it")
                if self.has_checksums:
                    alone = alone[:252] + struct.pack(">I", superblock_checksum(alone)) + alone[256:]
                self.put(self.top, alone)
                superblock, stored = alone, struct.unpack(">I", alone[252:256])[0]
        if self.has_checksums:
            if stored != superblock_checksum(superblock):
                self.problem = "it has a wrong checksum"
                record = Record(superblock)
                restored = superblock[:24] + struct.pack(">II", record.first, record.start) + superblock[32:]
                require(stored == superblock_checksum(restored), self.problem)
        elif stored:
            for bit in (CSUM_V2, CSUM_V3):
                changed = superblock[:40] + struct.pack(">I", self.incompatible | bit) + superblock[44:]
                require(stored != superblock_checksum(changed), "it has lost the mark that it has a checksum")

    def start_at(self, offset, sequence=None):
        """The log is to begin there; an empty one as if it had transactions in front of that."""
        superblock = bytearray(self.block(self.top))
        superblock[24:32] = struct.pack(">II", self.sequence + 1 if sequence is None else sequence, offset)
        if self.has_checksums:
            superblock[252:256] = struct.pack(">I", superblock_checksum(superblock))
        self.put(self.top, bytes(superblock))
        self.read_superblock()

    @property
    def has_checksums(self):
        return bool(self.incompatible & (CSUM_V2 | CSUM_V3))

    def block(self, offset):
        if offset >= len(self.places):
            raise Unreadable(f"it has {len(self.places)} blocks, and needs one more at least")
        return read(self.image, self.places[offset] * self.block_size, self.block_size)

    def put(self, offset, data):
        with open(self.image, "r+b") as file:
            file.seek(self.places[offset] * self.block_size)
            file.write(data)

    def header(self, offset):
        """Magic, type and transaction of a block of the log."""
        return struct.unpack(">III", self.block(offset)[:12])

    def after(self, offset, blocks=1):
        return self.first + (offset + blocks - self.first) % (self.maxlen - self.first)

    def tag_bytes(self):
        if self.incompatible & CSUM_V3:
            return 16
        return 8 + (4 if self.incompatible & BITS_64 else 0) + (2 if self.incompatible & CSUM_V2 else 0)

    def tags(self, block):
        """The homes of the blocks that follow a descriptor block."""
        return [home for home, _ in self.described(block)]

    def described(self, block):
        """The blocks that follow a descriptor block: the home of each, and its checksum (of 16 bits with CSUM_V2; else None)."""
        size, position, found = self.tag_bytes(), 12, []
        while position + size <= self.block_size - (4 if self.has_checksums else 0):
            checksum = None
            if self.incompatible & CSUM_V3:
                low, flags, high, checksum = struct.unpack(">IIII", block[position:position + 16])
            else:
                low, checksum, flags = struct.unpack(">IHH", block[position:position + 8])
                high = struct.unpack(">I", block[position + 8:position + 12])[0] if self.incompatible & BITS_64 else 0
                if not self.incompatible & CSUM_V2:
                    checksum = None
            found.append((high << 32 | low, checksum))
            position += size + (0 if flags & SAME_UUID else 16)
            if flags & LAST_TAG:
                break
        return found

    def walk(self):
        """Each block of the log that has a header, up to the last commit record: its offset, type, transaction and content."""
        offset, (end, following) = self.start, self.head()
        left = self.maxlen - self.first if following != self.sequence else 0
        while left > 0:
            block = self.block(offset)
            kind, sequence = struct.unpack(">II", block[4:12])
            yield offset, kind, sequence, block
            blocks = 1 + (len(self.tags(block)) if kind == DESCRIPTOR else 0)
            offset, left = self.after(offset, blocks), left - blocks
            if offset == end:
                break

    def revoked(self, block):
        """The homes that a revoke block names."""
        size = 8 if self.incompatible & BITS_64 else 4
        end = min(struct.unpack(">I", block[12:16])[0], self.block_size)
        return [int.from_bytes(block[at:at + size], "big") for at in range(16, end - size + 1, size)]

    def resized(self):
        """
        Whether a program has changed the file system's size at home without a replay: the number of blocks there, and in the log. The
        superblock of the log is not older than that at home, and has more blocks if resizing while mounted was interrupted.
        """
        home, at = (0, 1024) if self.block_size > 1024 else (1, 0)
        offset = self.copies().get(home) if self.start else None
        if offset is None:
            return None
        (blocks, written), (its, its_time) = map(size_and_time, (self.block(offset)[at:at + 1024], self.its))
        return (its, blocks) if blocks and its != blocks and (its > blocks or its_time > written) else None

    def wrong_copies(self, homes):
        """
        What of the log a replay cannot write home, with a reason, by the offset: copies with a wrong checksum, or of a home that is
        not below `homes`. What is revoked is not looked at by a replay either.
        """
        revokes, copies = {}, []
        for offset, kind, sequence, block in self.walk():
            if kind == REVOKE:
                revokes.update((home, sequence) for home in self.revoked(block))
            elif kind == DESCRIPTOR:
                for number, (home, checksum) in enumerate(self.described(block), 1):
                    copies.append((self.after(offset, number), home, sequence, checksum))
        wrong = {offset: f"the copy of block {home} in transaction {sequence}, and there are {homes} blocks"
                 for offset, home, sequence, _ in copies if home >= homes}
        copies = [copy for copy in copies if copy[3] is not None
                  and not (copy[1] in revokes and not after(copy[2], revokes[copy[1]]))]
        mask = 0xFFFFFFFF if self.incompatible & CSUM_V3 else 0xFFFF
        for first in range(0, len(copies), AT_ONCE):
            some = copies[first:first + AT_ONCE]
            seeds = [crc32c(self.seed, struct.pack(">I", copy[2])) for copy in some]
            found = crc32c_of_many(seeds, b"".join(self.block(copy[0]) for copy in some), self.block_size)
            for (offset, home, sequence, checksum), its in zip(some, found):
                if its & mask != checksum:
                    wrong[offset] = f"the copy of block {home} in transaction {sequence}, has a wrong checksum"
        return wrong

    def copies(self):
        """Where in the log the newest committed copy of each block is, by the block; revoke records are not looked at."""
        found, offset, end = {}, self.start, self.head()[0]
        while offset != end:
            if self.header(offset)[1] == DESCRIPTOR:
                for home in self.tags(self.block(offset)):
                    offset = self.after(offset)
                    found[home] = offset
            offset = self.after(offset)
        return found

    def head(self, start=None, sequence=None):
        """The block behind the last committed transaction, and the next transaction."""
        if start is None:
            start, sequence = self.start, self.sequence
        offset, end, left = start, start, self.maxlen - self.first
        while left > 0:
            block = self.block(offset)
            magic, kind, found = struct.unpack(">III", block[:12])
            if magic != MAGIC or found != sequence or kind not in (DESCRIPTOR, COMMIT, REVOKE) or not self.is_whole(block):
                break
            blocks = 1 + (len(self.tags(block)) if kind == DESCRIPTOR else 0)
            offset, left = self.after(offset, blocks), left - blocks
            if kind == COMMIT:
                end, sequence = offset, sequence + 1 & 0xFFFFFFFF
        return end, sequence

    def commit_record(self, sequence):
        block = bytearray(self.block_size)
        block[:12] = struct.pack(">III", MAGIC, COMMIT, sequence)
        block[48:56] = struct.pack(">Q", 1 << 33)
        block[16:20] = struct.pack(">I", crc32c(self.seed, block))
        return bytes(block)

    def is_whole(self, block):
        """Whether a descriptor, revoke or commit block has the right checksum, if it has one."""
        if not self.has_checksums:
            return True
        at = 16 if struct.unpack(">I", block[4:8])[0] == COMMIT else self.block_size - 4
        found = struct.unpack(">I", block[at:at + 4])[0]
        return crc32c(self.seed, block[:at] + bytes(4) + block[at + 4:]) == found

    # Where the log begins and ends, and whether that is damage: as check_start() and check_end() of the kernel patches have it.

    def record(self):
        """The superblock's record, or None if it has none of this log."""
        record = Record(self.block(self.top))
        return record if self.start and record.exists and (record.first, record.start) == (self.sequence, self.start) else None

    def begins(self, record):
        """Whether the log that the record is about is still where it says."""
        if not self.first <= record.start < self.maxlen:
            return False
        offset = record.start
        for _ in range(self.maxlen - self.first):
            block = self.block(offset)
            magic, kind, sequence = struct.unpack(">III", block[:12])
            if magic != MAGIC or sequence != record.first:
                return False
            # Revoke records come first, and have no ID.
            if kind != REVOKE:
                return self.is_of(block, record.identifier)
            offset = self.after(offset)
        return False

    def wrong_start(self):
        """
        Whether the superblock and its record differ in a way that is damage: what is wrong, and the record if the log begins where
        that says; or None.
        """
        record = Record(self.block(self.top))
        if self.problem:
            told = record.exists and record.is_whole and self.begins(record)
            return f"its superblock is damaged: {self.problem}", record if told else None
        # Both superblocks say that the log is empty: who has found damage in it has given it up.
        if not self.start and not self.needs_recovery:
            return None
        same_block, same_sequence = record.start == self.start, record.first == self.sequence
        if not record.exists or not (same_block or same_sequence) or (self.start and record.version != RECORD_VERSION):
            return None
        if not record.is_whole:
            return ("its superblock is damaged: what it says of the log's end has a wrong checksum", None) if self.start else None
        if (same_block and same_sequence) or not self.begins(record):
            return None
        # Who replays the log uses up the transaction behind its end, and may begin anew at the same block.
        if same_block and record.start == self.first and self.sequence == self.head(record.start, record.first)[1] + 1 & 0xFFFFFFFF:
            return None
        return (f"its superblock is damaged: the log begins with transaction {record.first} at block {record.start}, and it says "
                f"transaction {self.sequence} at block {self.start}", record)

    def another_time(self):
        """Whether the log is not the one that the file system was used with last, as check_time() of the patches has it: words, or None."""
        seen, record = Seen(self.its), self.record()
        if not seen.exists or self.problem:
            return None
        end = self.head()[1] if self.start else self.sequence + 1 & 0xFFFFFFFF
        if record and record.identifier != seen.identifier:
            return "it is of another file system or time"
        if after(seen.sequence, end):
            return (f"it is of an earlier time, or its end is gone: it ends in front of transaction {end}, and the file system was used with "
                    f"what is in front of {seen.sequence}")
        if record and seen.left and end != seen.sequence:
            return (f"it is of a later time: it ends in front of transaction {end}, and the file system was unmounted in front of "
                    f"{seen.sequence}")
        return None

    def is_of(self, block, identifier):
        """Whether a commit record or a descriptor block is of the log with this identifier."""
        words = struct.pack(">Q", identifier)
        if struct.unpack(">I", block[4:8])[0] == COMMIT:
            return block[COMMIT_ID_OFFSET:COMMIT_ID_OFFSET + 8] == words
        uuid = 12 + self.tag_bytes()
        return block[uuid:uuid + 16] == b"ext4lazy" + words

    def proves_commit(self, block, sequence, identifier):
        """Whether a block behind the end proves that the transaction there, which is not whole, was committed."""
        magic, kind, found = struct.unpack(">III", block[:12])
        # Without a checksum, a commit record of a former round differs from a damaged one in nothing.
        if self.has_checksums and (magic == MAGIC) + (kind == COMMIT) + (found == sequence) == 2:
            right = struct.pack(">III", MAGIC, COMMIT, sequence) + block[12:]
            if self.is_of(right, identifier) and self.is_whole(right):
                return True
        later = (found - sequence) & 0xFFFFFFFF
        if magic != MAGIC or later >= 1 << 31 or kind not in (COMMIT, DESCRIPTOR) or not self.is_of(block, identifier):
            return False
        return self.is_whole(block) if later else kind == COMMIT

    def behind(self, offset):
        """The offsets from there to the log's tail."""
        for _ in range(self.maxlen - self.first):
            yield offset
            offset = self.after(offset)
            if offset == self.start:
                return

    def damage(self):
        """What is wrong with the log's end, or None. All of it is looked at, whereas a mount stops after 64 MiB."""
        record = self.record()
        if record is None:
            return None
        offset, sequence = self.head()
        if after(record.sequence, sequence):
            return Damage(offset, sequence, 0)
        if record.head and record.sequence == sequence:
            return None if record.head == offset else Damage(offset, sequence, 0)
        for behind in self.behind(offset):
            if self.proves_commit(self.block(behind), sequence, record.identifier):
                return Damage(offset, sequence, behind)
        return None

    def left_out(self, damage):
        """What is still to be recognised behind the damage: by transaction, when it was committed (or None), and of what blocks."""
        record, found = self.record(), {}
        skipped = 0
        for offset in self.behind(damage.offset):
            if skipped:
                skipped -= 1
                continue
            block = self.block(offset)
            magic, kind, sequence = struct.unpack(">III", block[:12])
            if magic != MAGIC or (sequence - damage.sequence) & 0xFFFFFFFF >= 1 << 31 or kind not in (COMMIT, DESCRIPTOR):
                continue
            if not self.is_of(block, record.identifier) or not self.is_whole(block):
                continue
            transaction = found.setdefault(sequence, {"committed": None, "blocks": set()})
            if kind == COMMIT:
                seconds = struct.unpack(">Q", block[48:56])[0]
                transaction["committed"] = seconds if seconds <= LAST_TIME else None
            else:
                homes = self.tags(block)
                transaction["blocks"].update(homes)
                skipped = len(homes)
        return found


def read(path, at, length):
    with open(path, "rb") as file:
        file.seek(at)
        data = file.read(length)
    if len(data) < length:
        raise Unreadable(f"{path} ends at byte {at + len(data)}, and there is something to be read behind that")
    return data


def size_of(path):
    """Of a file or a device, in bytes."""
    with open(path, "rb") as file:
        return file.seek(0, os.SEEK_END)


def is_marked(path):
    """Whether the superblock at home says that the log holds metadata."""
    its = read(path, 1024, 1024)
    return its[56:58] == FS_MAGIC.to_bytes(2, "little") and bool(struct.unpack("<I", its[96:100])[0] & FS_LAZY_LOG)


def unmark(path):
    """Other programs do not refuse the file system from here on."""
    if is_marked(path):
        turn_mark(path)


def mark(path):
    """Other programs refuse the file system, which is ext4, from here on."""
    if not is_marked(path):
        turn_mark(path)


def turn_mark(path):
    its = bytearray(read(path, 1024, 1024))
    was_right = its[1020:] == checksum_at_home(its[:1020])
    its[96:100] = struct.pack("<I", struct.unpack("<I", its[96:100])[0] ^ FS_LAZY_LOG)
    # A wrong checksum stays wrong.
    if struct.unpack("<I", its[100:104])[0] & FS_METADATA_CSUM and was_right:
        its[1020:] = checksum_at_home(its[:1020])
    with open(path, "r+b") as file:
        file.seek(1024)
        file.write(its)
        file.flush()
        os.fsync(file.fileno())


def is_whole_at_home(path):
    """Whether the file system's superblock has the right checksum, or none."""
    its = read(path, 1024, 1024)
    return not struct.unpack("<I", its[100:104])[0] & FS_METADATA_CSUM or its[1020:] == checksum_at_home(its[:1020])


def checksum_at_home(its):
    return struct.pack("<I", crc32c(0xFFFFFFFF, its))


def debugger(debugfs, image, command):
    # Bitmaps are not to be looked at (-c): at home they are of other times than the group descriptors, with checksums of them. Nor is
    # the mark (-f), which only a command can ask for.
    path = str(image).replace('"', '""')
    done = subprocess.run([debugfs, "-f", "-"], input=f'open -f -c "{path}"\n{command}\n', capture_output=True, text=True,
                          errors="replace", check=False)
    # Behind its version.
    said = done.stderr.strip().splitlines()[1:]
    if done.returncode or "Filesystem not open" in done.stderr:
        raise Unreadable(f"debugfs cannot read its inode: {' '.join(said)}")
    # It says each command, too.
    return "".join(line for line in done.stdout.splitlines(True) if not line.startswith("debugfs: "))


def has_orphans(debugfs, image, inode):
    """Whether an orphan file names an inode."""
    done = subprocess.run([debugfs, "-R", f"cat <{inode}>", str(image)], capture_output=True, check=False)
    size = 1024 << struct.unpack("<I", read(image, 1024 + 24, 4))[0]
    # Each block ends with a magic number and a checksum.
    return any(any(done.stdout[at:at + size - 8]) for at in range(0, len(done.stdout), size))


def blocks_of_a_list(words):
    """The blocks of a file without extents, from what debugfs says of its inode, as far as they are all there."""
    places = {}
    for first, last, block in re.findall(r"\((\d+)(?:-(\d+))?\):(\d+)", words):
        for number in range(int(first), int(last or first) + 1):
            places[number] = int(block) + number - int(first)
    return [places[number] for number in range(len(places)) if number in places]


def size_and_time(superblock):
    """Of a file system, in blocks, and when it was written; 0 if it is none."""
    if superblock[56:58] != FS_MAGIC.to_bytes(2, "little"):
        return 0, 0
    low, written, features, high = (struct.unpack("<I", superblock[at:at + 4])[0] for at in (4, 48, 96, 0x150))
    return low | (high << 32 if features & FS_BITS_64 else 0), written


def superblock_checksum(block):
    return crc32c(0xFFFFFFFF, block[:252] + bytes(4) + block[256:1024])


def table():
    values = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        values.append(value)
    return values


TABLE = table()


def crc32c(value, data):
    for byte in data:
        value = value >> 8 ^ TABLE[(value ^ byte) & 0xFF]
    return value


# The same, of byte 0 to 3 of its entries.
PLANES = [bytes(entry >> shift & 0xFF for entry in TABLE) for shift in (0, 8, 16, 24)]


def crc32c_of_many(values, data, size):
    """As crc32c() of each value and the piece of `data` with that size that is its own, in a fraction of the time."""
    number = len(values)
    # Byte 0 of each of the values, byte 1 …; all bytes with the same place in their pieces are taken at once.
    planes = [int.from_bytes(bytes(value >> shift & 0xFF for value in values), "little") for shift in (0, 8, 16, 24)]
    for at in range(size):
        index = (planes[0] ^ int.from_bytes(data[at::size], "little")).to_bytes(number, "little")
        looked_up = [int.from_bytes(index.translate(plane), "little") for plane in PLANES]
        planes = [planes[1] ^ looked_up[0], planes[2] ^ looked_up[1], planes[3] ^ looked_up[2], looked_up[3]]
    low, *others = (plane.to_bytes(number, "little") for plane in planes)
    return [a | b << 8 | c << 16 | d << 24 for a, b, c, d in zip(low, *others)]
