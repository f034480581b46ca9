"""Zones with extents: as they were put, and what can be wrong with one."""

from hashlib import sha256

FOLDER = "zea-1"
DATAS = [bytes([n]) * (1 + n * 900) for n in range(1, 9)]


def make(golden):
    drive = golden.drive("d.zoned", conventional=0)
    golden.run("zea", "mkfs", drive, "--zones", "2", "--back-pointers", "4")
    for number, data in enumerate(DATAS):
        golden.run("zea", "put", drive, "-", "--address", number % 5, "--zone", number % 2, stdin=data)
    whole = drive.read_bytes()
    extents = {zone: [[n % 5, n, sha256(DATAS[n]).hexdigest()] for n in range(zone, len(DATAS), 2)] for zone in (0, 1)}
    golden.keep("whole", whole, about="eight extents in two zones", exit_code=0, extents=extents, whole=len(DATAS))
    damaged = flipped(whole, whole.index(DATAS[2][:900]) + 100)
    about = "a flipped bit in an extent: the others are as they were"
    golden.keep("data", damaged, "whole", about=about, exit_code=6, extents=extents, whole=len(DATAS) - 1)
    label = whole.index(b"ZSZEALBL")
    golden.keep("label", flipped(whole, label + 20), "whole", about="one copy of a label", exit_code=0, extents=extents, whole=len(DATAS))
    marker = whole.index(b"ZSZEAEXT")
    fewer = {0: extents[0][1:], 1: extents[1]}
    about = "the metadata of a zone's first extent"
    golden.keep("metadata", flipped(whole, marker + 40), "whole", about=about, exit_code=6, extents=fewer, whole=len(DATAS) - 1)


def flipped(content, at):
    return content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :]
