"""What is done to every system, and what is counted meanwhile."""

import random
import re
import threading
import time

from drive import CONVENTIONAL, MIB, ZONE_MIB, Failed, run
from files import Damaged, Full

KIB = 1 << 10
PUT_SIZES = {"4 KiB": 4 * KIB, "64 KiB": 64 * KIB, "1 MiB": MIB, "16 MiB": 16 * MIB}
# Puts of each size: enough that a system's start is lost in them.
PUTS = {"long": (1500, 800, 200, 20), "short": (100, 50, 20, 2)}


def content(size, seed):
    """Bytes that no system can compress, different for each seed."""
    return random.Random(seed).randbytes(size)


class Content:
    """Objects of one size that are cut from one block of random bytes, each told by its first bytes."""

    def __init__(self, size):
        self.size = size
        self.block = content(size, size)

    def of(self, number):
        return number.to_bytes(16, "big") + self.block[16:]


def ratio(counts, bytes_of_user):
    return round(counts.bytes_written / bytes_of_user, 3)


def puts(system, drive, length):
    """Durable puts of each size into an empty system, by one client and by eight."""
    rows = {}
    for (name, size), number in zip(PUT_SIZES.items(), PUTS[length]):
        rows[name] = put_row(system, drive, size, number, 1)
    rows["4 KiB, 8 clients"] = put_row(system, drive, PUT_SIZES["4 KiB"], PUTS[length][0], 8)
    return rows


def put_row(system, drive, size, number, clients):
    system.format(drive)
    objects = Content(size)
    before = drive.counts()
    done, refused = [], []

    def client(first):
        for index in range(first, number, clients):
            try:
                system.put(f"o{index}", objects.of(index))
                done.append(index)
            except (Full, OSError, Failed) as error:
                refused.append(str(error))

    threads = [threading.Thread(target=client, args=(first,)) for first in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    acknowledged = drive.counts().since(before)
    system.sync()
    system.stop()
    settled = drive.counts().since(before)
    if not done:
        return {"puts": 0, "refused": len(refused), "said": sorted(set(refused))}
    return {"puts": len(done), "object_bytes": size, "device_bytes_per_user_byte": ratio(acknowledged, len(done) * size),
            "with_sync_and_unmount": ratio(settled, len(done) * size),
            "flushes_per_put": round(acknowledged.flushes / len(done), 3),
            "writes_per_put": round(acknowledged.writes / len(done), 2),
            "refused": len(refused), "said": sorted(set(refused))}


def fill(system, objects, keys, first, seconds, words):
    """Puts until the system has said for so long that it is full, and in which words; the next number."""
    deadline = None
    while True:
        try:
            system.put(f"f{first}", objects.of(first))
        except Full as error:
            words.add(str(error))
            deadline = deadline or time.monotonic() + seconds
            if time.monotonic() > deadline:
                return first
            time.sleep(0.5)
            continue
        deadline = None
        keys.append(first)
        first += 1


def kernel_words():
    """What the kernel said last that is an error."""
    return run("dmesg", "--level=err,crit,alert,emerg", check=False).strip().splitlines()[-4:]


def full_drive(system, drive, length):
    """Fills it with objects of 1 MiB, deletes when full, fills again, and overwrites at 80 % of what it took."""
    patience = 20 if length == "long" else 5
    objects = Content(MIB)
    keys, words = [], set()
    system.format(drive)
    raw = drive.mib * MIB
    before = drive.counts()
    following, broken = 0, None
    try:
        following = fill(system, objects, keys, 0, patience, words)
    except (OSError, Failed) as error:
        broken = f"{error.strerror or error}" if isinstance(error, OSError) else str(error)
    filled = drive.counts().since(before)
    capacity = len(keys) * MIB
    row = {"raw_bytes": raw, "stored_bytes": capacity, "stored_of_raw": round(capacity / raw, 4),
           "stored_of_sequential": round(capacity / (raw - CONVENTIONAL * ZONE_MIB * MIB), 4),
           "device_bytes_per_user_byte": ratio(filled, max(capacity, MIB)), "said": sorted(words)}
    if broken:
        yield row | {"error": broken, "kernel_said": kernel_words()}
        return
    yield dict(row)
    row["after_full"] = {}
    deleted, chance = 0, random.Random(7)
    try:
        for _ in range(len(keys) // 10):
            system.delete(f"f{keys.pop(chance.randrange(len(keys)))}")
            deleted += 1
        again = len(keys)
        following = fill(system, objects, keys, following, patience, words)
        row["after_full"] = {"deleted": deleted, "put_again": len(keys) - again}
        system.sync()
        system.stop()
        system.start()
        wrong = sum(system.get(f"f{key}") != objects.of(key) for key in chance.sample(keys, min(100, len(keys))))
        row["after_full"]["wrong_of_100"] = wrong
    except (OSError, Full, Failed, Damaged) as error:
        row["after_full"].update(deleted=deleted, error=str(error))
        yield dict(row)
        return
    yield dict(row)
    yield from overwrites(system, drive, row, objects, keys, chance)


def overwrites(system, drive, row, objects, keys, chance):
    live = int(row["stored_bytes"] / MIB * 0.8)
    chance.shuffle(keys)
    while len(keys) > live:
        system.delete(f"f{keys.pop()}")
    system.sync()
    done, middle, wanted = 0, None, live
    start = drive.counts()
    refused = 0
    try:
        while done < wanted:
            key = keys[chance.randrange(len(keys))]
            try:
                system.put(f"f{key}", objects.of(key))
            except Full:
                refused += 1
                if refused > 40:
                    break
                time.sleep(0.5)
                continue
            done += 1
            if done == wanted // 2:
                middle = drive.counts()
        end = drive.counts()
        row["overwrite"] = {"live_of_raw": round(live * MIB / row["raw_bytes"], 4), "objects": live, "overwritten": done,
                            "refused_as_full": refused, "device_bytes_per_user_byte": ratio(end.since(start), max(done, 1) * MIB)}
        if middle is not None and done > wanted // 2:
            row["overwrite"]["second_half"] = ratio(end.since(middle), (done - wanted // 2) * MIB)
    except (OSError, Failed, Damaged) as error:
        row["overwrite"] = {"overwritten": done, "error": str(error)}
    yield dict(row)
    system.stop()


def database(system, drive, length):
    """RocksDB's db_bench: random keys into an empty database, then as many over them."""
    keys = 100_000 if length == "long" else 5000
    value = 400
    system.format(drive)
    before = drive.counts()
    words = system.database([
        "--benchmarks=fillrandom,overwrite,waitforcompaction", f"--num={keys}", "--seed=7", "--threads=1", "--key_size=20",
        f"--value_size={value}", "--write_buffer_size=4194304", "--target_file_size_base=4194304",
        "--max_bytes_for_level_base=16777216", "--compression_type=none", "--max_background_jobs=2", "--disable_wal=0"])
    run("sync")
    system.stop()
    counts = drive.counts().since(before)
    return {"keys": keys, "value_bytes": value, "device_bytes_per_user_byte": ratio(counts, 2 * keys * (value + 20)),
            "flushes": counts.flushes, "writes": counts.writes,
            "operations": re.findall(r"^(\w+)\s*:.*?(\d+) operations", words, re.M)}
