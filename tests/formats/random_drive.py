"""Drives with a history from a seed: files that come and go, and a LevelDB program that is killed at times."""

import random

PYTHON = "/usr/bin/python3"
SHAPES = [
    ["--zone-size", "64KiB", "--zone-capacity", "56KiB", "--size", "3MiB", "--conventional", "2"],
    ["--zone-size", "256KiB", "--size", "6MiB", "--conventional", "0"],
    ["--zone-size", "128KiB", "--zone-capacity", "124KiB", "--size", "6MiB", "--conventional", "7"],
    ["--zone-size", "128KiB", "--size", "6MiB", "--conventional", "1", "--max-open", "8", "--max-active", "8"],
]


def make(zonestore, seed, copies=1):
    """Answers the drive and what was put there."""
    chance = random.Random(seed)
    drive = zonestore.folder / "d.zoned"
    zonestore("drive", "create", drive, "--profile", "test-small", *SHAPES[seed % len(SHAPES)])
    zonestore("fs", "mkfs", drive, "--metadata-copies", copies)
    files = {}
    for _ in range(chance.randint(4, 10)):
        kind = chance.random()
        if kind < 0.5 or not files:
            path = f"/{chance.choice('ab')}/{chance.randint(1, 6)}.sst"
            content = chance.randbytes(chance.choice([0, 1, 4096, 30_000, 200_000]))
            zonestore("fs", "put", drive, "-", path, stdin=content)
            files[path] = content
        elif kind < 0.7:
            path = chance.choice(sorted(files))
            zonestore("fs", "rm", drive, path)
            del files[path]
        else:
            leveldb(zonestore, drive, chance, kill=chance.random() < 0.6)
    if seed % 2:
        # Notes of what is not synced stay beside the drive.
        leveldb(zonestore, drive, chance, kill=True)
    return drive, files


def leveldb(zonestore, drive, chance, kill):
    """Some puts and deletes, most of them not synced; a small memtable makes tables and new logs."""
    statements = f"""
import os, plyvel, random
chance = random.Random({chance.random()})
db = plyvel.DB('/db', create_if_missing=True, write_buffer_size=64 << 10, compression=None)
for i in range(chance.randint(1, 300)):
    key = b'%04d' % chance.randrange(100)
    if chance.random() < .1: db.delete(key)
    else: db.put(key, chance.randbytes(chance.randrange(1500)), sync=chance.random() < .1)
if {kill}: os.kill(os.getpid(), 9)
db.close()
"""
    outcome = zonestore.try_("leveldb", drive, "--", PYTHON, "-c", statements)
    assert outcome.code == (-9 if kill else 0), outcome.err
