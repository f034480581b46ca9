"""The log of ext4 on an image, read from its format alone: where it ends, and what is at a block of it."""

import re
import struct
import subprocess

MAGIC = 0xC03B3998
DESCRIPTOR, COMMIT, REVOKE = 1, 2, 5
SAME_UUID, LAST_TAG = 2, 8
CSUM_V2, CSUM_V3, BITS_64 = 0x8, 0x10, 0x2
# What lazy writeback says of the log's end, in the padding of the superblock (docs/ext4-lazy.md).
RECORD_OFFSET, RECORD_MAGIC, RECORD_VERSION = 0xD8, b"LZY", 1
COMMIT_ID_OFFSET = 64


class Record:
    """What the journal's superblock says of the end of the log: what is in front of `sequence` was committed."""

    def __init__(self, identifier, version, sequence, head):
        self.identifier, self.version, self.sequence, self.head = identifier, version, sequence, head


class Damage:
    """The log ends at `offset` in front of transaction `sequence`, which was committed, as the block `proof` of the log says."""

    def __init__(self, offset, sequence, proof):
        self.offset, self.sequence, self.proof = offset, sequence, proof


class Journal:
    def __init__(self, debugfs, image, external=None):
        """`image` is the file system; the log is in it, or in `external`."""
        self.image = external or image
        with open(image, "rb") as file:
            file.seek(1024 + 24)
            self.block_size = 1024 << struct.unpack("<I", file.read(4))[0]
        # The offset of the log's superblock.
        self.top = 0
        if external:
            # Behind the block with the superblock that tells what the device is; both count.
            self.top = 1024 // self.block_size + 1
            self.places = range(self.top + 1)
            self.read_superblock()
            self.places = range(self.maxlen)
            return
        # The leaves alone: a large journal has blocks of its extent tree as well.
        words = debugger(debugfs, image, "dump_extents -l <8>")
        self.places = []
        for first, last in re.findall(r"^ *\d+/ *\d+ +\d+/ *\d+ +\d+ *- *\d+ +(\d+) *- *(\d+) ", words, re.M):
            self.places += range(int(first), int(last) + 1)
        if not self.places:
            self.places = [int(debugger(debugfs, image, "bmap <8> 0"))]
            self.read_superblock()
            self.places = blocks_of_a_list(debugger(debugfs, image, "stat <8>"), self.maxlen)
        self.read_superblock()

    def read_superblock(self):
        """Where the log begins is in it, and of what kind its tags are."""
        superblock = self.block(self.top)
        if struct.unpack(">I", superblock[:4])[0] != MAGIC:
            raise ValueError(f"{self.image} has no journal")
        self.maxlen, self.first, self.sequence, self.start = struct.unpack(">IIII", superblock[16:32])
        self.incompatible = struct.unpack(">I", superblock[40:44])[0]
        self.uuid = superblock[48:64]
        self.seed = crc32c(0xFFFFFFFF, self.uuid)

    def start_at(self, offset):
        """An empty log is to be gone on with from there, as if it had transactions in front of that."""
        superblock = bytearray(self.block(self.top))
        superblock[24:32] = struct.pack(">II", self.sequence + 1, offset)
        if self.has_checksums:
            superblock[252:256] = bytes(4)
            superblock[252:256] = struct.pack(">I", crc32c(0xFFFFFFFF, superblock[:1024]))
        self.put(self.top, bytes(superblock))
        self.read_superblock()

    @property
    def has_checksums(self):
        return bool(self.incompatible & (CSUM_V2 | CSUM_V3))

    def block(self, offset):
        with open(self.image, "rb") as file:
            file.seek(self.places[offset] * self.block_size)
            return file.read(self.block_size)

    def put(self, offset, data):
        with open(self.image, "r+b") as file:
            file.seek(self.places[offset] * self.block_size)
            file.write(data)

    def header(self, offset):
        """Magic, type and transaction of a block of the log."""
        return struct.unpack(">III", self.block(offset)[:12])

    def after(self, offset, blocks=1):
        offset += blocks
        return offset if offset < self.maxlen else offset - self.maxlen + self.first

    def tag_bytes(self):
        if self.incompatible & CSUM_V3:
            return 16
        return 8 + (4 if self.incompatible & BITS_64 else 0) + (2 if self.incompatible & CSUM_V2 else 0)

    def tags(self, block):
        """The homes of the blocks that follow a descriptor block."""
        size, position, homes = self.tag_bytes(), 12, []
        while position + size <= self.block_size - (4 if self.has_checksums else 0):
            if self.incompatible & CSUM_V3:
                low, flags, high = struct.unpack(">III", block[position:position + 12])
            else:
                low, flags = struct.unpack(">IxxH", block[position:position + 8])
                high = struct.unpack(">I", block[position + 8:position + 12])[0] if self.incompatible & BITS_64 else 0
            homes.append(high << 32 | low)
            position += size + (0 if flags & SAME_UUID else 16)
            if flags & LAST_TAG:
                break
        return homes

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

    def head(self):
        """The block behind the last committed transaction, and the next transaction."""
        offset, sequence, end = self.start, self.sequence, self.start
        while True:
            magic, kind, found = self.header(offset)
            if magic != MAGIC or found != sequence or kind not in (DESCRIPTOR, COMMIT, REVOKE) or not self.is_whole(self.block(offset)):
                return end, sequence
            if kind == DESCRIPTOR:
                offset = self.after(offset, 1 + len(self.tags(self.block(offset))))
            elif kind == COMMIT:
                offset = end = self.after(offset)
                sequence = sequence + 1 & 0xFFFFFFFF
            else:
                offset = self.after(offset)

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

    # Where the log ends, and whether that is damage: as check_end() of the kernel patches has it.

    def record(self):
        """The superblock's record, or None if it has none of this log."""
        superblock = self.block(self.top)
        identifier, magic, sequence, start, head_sequence, head = struct.unpack(">Q4sIIII", superblock[RECORD_OFFSET:RECORD_OFFSET + 28])
        if not self.start or magic[:3] != RECORD_MAGIC or (sequence, start) != (self.sequence, self.start):
            return None
        return Record(identifier, magic[3], head_sequence, head)

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
        first = True
        while first or offset != self.start:
            yield offset
            offset, first = self.after(offset), False

    def damage(self):
        """What is wrong with the log's end, or None. All of it is looked at, whereas a mount stops after 64 MiB."""
        record = self.record()
        if record is None:
            return None
        offset, sequence = self.head()
        if 0 < (record.sequence - sequence) & 0xFFFFFFFF < 1 << 31:
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
                transaction["committed"] = struct.unpack(">Q", block[48:56])[0]
            else:
                homes = self.tags(block)
                transaction["blocks"].update(homes)
                skipped = len(homes)
        return found


def debugger(debugfs, image, command):
    return subprocess.run([debugfs, "-R", command, str(image)], capture_output=True, text=True, check=True).stdout


def blocks_of_a_list(words, count):
    """The blocks of a file without extents, from what debugfs says of its inode."""
    places = {}
    for first, last, block in re.findall(r"\((\d+)(?:-(\d+))?\):(\d+)", words):
        for number in range(int(first), int(last or first) + 1):
            places[number] = int(block) + number - int(first)
    return [places[number] for number in range(count)]


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
