"""The log of ext4 on an image, read from its format alone: where it ends, and what is at a block of it."""

import re
import struct
import subprocess

MAGIC = 0xC03B3998
DESCRIPTOR, COMMIT, REVOKE = 1, 2, 5
SAME_UUID, LAST_TAG = 2, 8


class Journal:
    def __init__(self, debugfs, image):
        self.image = image
        # The leaves alone: a large journal has blocks of its extent tree as well.
        words = subprocess.run([debugfs, "-R", "dump_extents -l <8>", str(image)], capture_output=True, text=True, check=True).stdout
        self.places = []
        for first, last in re.findall(r"^ *\d+/ *\d+ +\d+/ *\d+ +\d+ *- *\d+ +(\d+) *- *(\d+) ", words, re.M):
            self.places += range(int(first), int(last) + 1)
        self.read_superblock()

    def read_superblock(self):
        """Where the log begins is in it, and of what kind its tags are."""
        with open(self.image, "rb") as file:
            file.seek(1024 + 24)
            self.block_size = 1024 << struct.unpack("<I", file.read(4))[0]
        superblock = self.block(0)
        self.maxlen, self.first, self.sequence, self.start = struct.unpack(">IIII", superblock[16:32])
        self.incompatible = struct.unpack(">I", superblock[40:44])[0]
        self.uuid = superblock[48:64]

    def start_at(self, offset):
        """An empty log is to be gone on with from there, as if it had transactions in front of that."""
        superblock = bytearray(self.block(0))
        superblock[24:32] = struct.pack(">II", self.sequence + 1, offset)
        if self.incompatible & 0x18:
            superblock[252:256] = bytes(4)
            superblock[252:256] = struct.pack(">I", crc32c(0xFFFFFFFF, superblock[:1024]))
        self.put(0, bytes(superblock))
        self.read_superblock()

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

    def tags(self, block):
        """The homes of the blocks that follow a descriptor block."""
        # csum v3 has tags of 16 bytes; the descriptor's own checksum is at its end.
        assert self.incompatible & 0x10, "the log has no checksums of version 3"
        position, homes = 12, []
        while position + 16 <= self.block_size - 4:
            low, flags, high = struct.unpack(">III", block[position:position + 12])
            homes.append(high << 32 | low)
            position += 16 + (0 if flags & SAME_UUID else 16)
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
            if magic != MAGIC or found != sequence:
                return end, sequence
            if kind == DESCRIPTOR:
                offset = self.after(offset, 1 + len(self.tags(self.block(offset))))
            elif kind == COMMIT:
                offset = end = self.after(offset)
                sequence += 1
            else:
                offset = self.after(offset)

    def commit_record(self, sequence):
        block = bytearray(self.block_size)
        block[:12] = struct.pack(">III", MAGIC, COMMIT, sequence)
        block[48:56] = struct.pack(">Q", 1 << 33)
        block[16:20] = struct.pack(">I", crc32c(crc32c(0xFFFFFFFF, self.uuid), block))
        return bytes(block)


def crc32c(value, data):
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value
