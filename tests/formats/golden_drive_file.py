"""A drive file with a zone in every state, encoded from the document, and what can be wrong with one."""

import struct

from checksums import crc32c

FOLDER = "file-drive-2"
BLOCK, ZONE, CAPACITY, COUNT = 4096, 65536, 57344, 13
DATA = 1 << 20
# Condition, write pointer and prepared end in blocks; then the blocks of data, and what a reader finds.
ZONES = [
    (1, 0, 0, [3], "not_write_pointer", 0),
    (5, 0, 0, [0], "read_only", 0),
    (2, 0, 0, [], "empty", 0),
    (3, 3, 0, [0, 1, 2], "closed", 3),
    (4, 14, 0, [0, 13], "full", 14),
    (5, 2, 0, [0, 1], "read_only", 2),
    (6, 5, 0, [0], "offline", 5),
    (3, 1, 9, [0], "closed", 1),
    (3, 1, 9, [0, 1, 2, 5], "closed", 6),
    (3, 1, 14, [0, 13], "full", 14),
    (3, 2, 6, [0, 1, 2, 8], "closed", 3),
    (2, 0, 0, [0, 1], "empty", 0),
    (3, 13, 0, [12], "closed", 13),
]


def make(golden):
    states = image()
    keep(golden, "states", states, "a zone in every state; the data of some tells the write pointer")
    keep(golden, "preferred", image(kind=3, prepared=False), "the kind of zones that may be written anywhere")
    keep(golden, "version-1", image(version=1, prepared=False), "the version before, which knows no prepared end")
    for name, about, content in damaged(states):
        golden.keep(name, content, "states", about=about, exit_code=6, says=[], refused="Damaged")
    foreign = b"\x7fELF" + states[4:]
    golden.keep("magic", foreign, "states", about="another magic", exit_code=6, says=[], refused="Foreign")
    for version in (0, 3):
        says = [f"version {version}", "2"]
        content = header(states, 8, struct.pack("<I", version))
        about = "another version with a right checksum"
        golden.keep(f"version-{version}", content, "states", about=about, exit_code=1, says=says, refused="OtherVersion")


def damaged(states):
    """Name, what is wrong, and the drive."""
    yield "header-bit", "a flipped bit in the reserved bytes of the header", flipped(states, 3000)
    yield "short", "a block is missing at the end", states[:-BLOCK]
    yield "long", "a block too much", states + bytes(BLOCK)
    for name, at, form, value in [
        ("block-size", 32, "<I", 3000),
        ("zone-count", 36, "<I", 0),
        ("zone-size", 40, "<Q", 65537),
        ("capacity", 48, "<Q", ZONE + BLOCK),
        ("conventional", 56, "<I", COUNT + 1),
        ("sequential-kind", 60, "<B", 1),
        ("reserved", 61, "<B", 1),
        ("max-active", 68, "<I", 1),
        ("max-append", 72, "<I", 1000),
        ("table-offset", 80, "<Q", 8192),
        ("data-offset", 88, "<Q", 2 << 20),
        ("profile-length", 96, "<B", 64),
        ("profile-text", 97, "<B", 0xFF),
        ("label-rest", 287, "<B", 1),
    ]:
        about = f"a wrong field of the header with a right checksum: {name}"
        yield f"header-{name}", about, header(states, at, struct.pack(form, value))
    yield "entry-bit", "a flipped bit in the entry of zone 3", flipped(states, BLOCK + 3 * 64 + 20)
    for name, zone, at, form, value in [
        ("number", 3, 0, "<I", 4),
        ("kind", 3, 4, "<B", 3),
        ("condition-none", 3, 5, "<B", 0),
        ("condition-unknown", 3, 5, "<B", 7),
        ("condition-kind", 3, 5, "<B", 1),
        ("reserved", 3, 6, "<H", 1),
        ("pointer-in-block", 3, 8, "<Q", 5000),
        ("pointer-high", 5, 8, "<Q", ZONE),
        ("empty-written", 2, 8, "<Q", BLOCK),
        ("closed-at-0", 3, 8, "<Q", 0),
        ("closed-at-capacity", 3, 8, "<Q", CAPACITY),
        ("full-below", 4, 8, "<Q", BLOCK),
        ("prepared-below", 3, 16, "<Q", BLOCK),
        ("prepared-high", 3, 16, "<Q", ZONE),
        ("prepared-full", 4, 16, "<Q", CAPACITY),
        ("prepared-conventional", 0, 16, "<Q", BLOCK),
    ]:
        about = f"zone {zone}: a wrong field with a right checksum: {name}"
        yield f"entry-{name}", about, entry(states, zone, at, struct.pack(form, value))


def keep(golden, name, content, about):
    prepared = name == "states"
    zones = [[found, end * BLOCK] for *_, found, end in (ZONES if prepared else map(plain, ZONES))]
    base = None if prepared else "states"
    golden.keep(name, content, base, about=about, exit_code=0, zones=zones, label="golden", profile="by-hand")


def plain(zone):
    """Without a prepared end the entry alone counts."""
    condition, pointer, _, data, found, _ = zone
    return (condition, pointer, 0, data, "closed" if condition == 3 else found, pointer)


def image(version=2, kind=2, prepared=True):
    zones = ZONES if prepared else list(map(plain, ZONES))
    content = bytearray(DATA + COUNT * ZONE)
    content[:16] = struct.pack("<8sII", b"ZoneDrv\0", version, 0)
    content[16:32] = bytes(range(16))
    content[32:61] = struct.pack("<IIQQIB", BLOCK, COUNT, ZONE, CAPACITY, 2, kind)
    content[64:76] = struct.pack("<III", 4, 6, 65536)
    content[80:96] = struct.pack("<QQ", BLOCK, DATA)
    content[96:104] = b"\x07by-hand"
    content[160:167] = b"\x06golden"
    content = header(content, 8, struct.pack("<I", version))
    for number, (condition, pointer, end, data, *_) in enumerate(zones):
        fields = (number, 1 if number < 2 else kind, condition, 0, pointer * BLOCK, end * BLOCK)
        content = entry(content, number, 0, struct.pack("<IBBHQQ", *fields))
        for block in data:
            at = DATA + number * ZONE + block * BLOCK
            content = content[: at + 7] + b"x" + content[at + 8 :]
    return content


def flipped(content, at):
    return content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :]


def header(content, at, field):
    """A field of it, with the right checksum."""
    block = bytearray(content[:BLOCK])
    block[at : at + len(field)] = field
    block[12:16] = bytes(4)
    block[12:16] = struct.pack("<I", crc32c(block))
    return bytes(block) + bytes(content[BLOCK:])


def entry(content, zone, at, field):
    start = BLOCK + 64 * zone
    new = bytearray(content[start : start + 64])
    new[at : at + len(field)] = field
    new[60:] = struct.pack("<I", crc32c(new[:60]))
    return content[:start] + bytes(new) + content[start + 64 :]
