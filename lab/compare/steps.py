"""What is done to every system, and what is counted meanwhile."""

import mmap
import os
import random
import re
import threading
import time

from drive import MIB, ZONE_MIB, Failed, NullBlk, Zloop, run
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

    def client(first):
        for index in range(first, number, clients):
            system.put(f"o{index}", objects.of(index))

    threads = [threading.Thread(target=client, args=(first,)) for first in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    acknowledged = drive.counts().since(before)
    system.sync()
    system.stop()
    settled = drive.counts().since(before)
    return {"puts": number, "object_bytes": size, "device_bytes_per_user_byte": ratio(acknowledged, number * size),
            "with_sync_and_unmount": ratio(settled, number * size),
            "flushes_per_put": round(acknowledged.flushes / number, 3),
            "writes_per_put": round(acknowledged.writes / number, 2)}


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


def full_drive(system, drive, length):
    """Fills it with objects of 1 MiB, deletes when full, fills again, and overwrites at 80 % of what it took."""
    patience = 20 if length == "long" else 5
    objects = Content(MIB)
    keys, words = [], set()
    system.format(drive)
    raw = drive.mib * MIB
    before = drive.counts()
    following = fill(system, objects, keys, 0, patience, words)
    filled = drive.counts().since(before)
    capacity = len(keys) * MIB
    row = {"raw_bytes": raw, "stored_bytes": capacity, "stored_of_raw": round(capacity / raw, 4),
           "stored_of_sequential": round(capacity / (raw - 20 * ZONE_MIB * MIB), 4),
           "device_bytes_per_user_byte": ratio(filled, max(capacity, MIB)), "said": sorted(words)}
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


def power_cuts(system, mib, length):
    """The power goes in the middle of synced puts, and what was not flushed with it; what was acknowledged is looked for."""
    rounds = []
    for number in range(5 if length == "long" else 1):
        drive = Zloop(mib)
        try:
            rounds.append(power_cut(system, drive, number))
        except (OSError, Failed, Damaged, Full) as error:
            rounds.append({"error": f"{type(error).__name__}: {error}"})
            system.abandon()
        finally:
            drive.cut()
    return rounds


def power_cut(system, drive, number):
    system.format(drive)
    objects = Content(64 * KIB)
    acknowledged = []
    stop = threading.Event()

    def client():
        index = 0
        while not stop.is_set():
            # Every third is one that is there already.
            key = index if index % 3 else max(0, index - 30)
            try:
                system.put(f"c{key}", objects.of(key << 32 | index))
            except Exception:  # The power is gone: whatever it says.
                acknowledged.append((key, None, index))
                return
            acknowledged.append((key, index, index))
            index += 1

    thread = threading.Thread(target=client)
    thread.start()
    time.sleep(random.Random(number).uniform(6, 10))
    drive.cut()
    stop.set()
    thread.join(120)
    system.abandon()
    drive.restore()
    latest = {}
    for key, index, attempt in acknowledged:
        latest.setdefault(key, set())
        # The put that the cut hit may have got there or not.
        latest[key] = {index} if index is not None else latest[key] | {attempt, None if not latest[key] else attempt}
    outcome = {"acknowledged": sum(index is not None for _, index, _ in acknowledged), "lost": 0, "wrong": 0}
    try:
        system.start()
    except Failed as error:
        return outcome | {"mount": str(error), "lost": outcome["acknowledged"]}
    outcome["mount"] = "as usual"
    for key, allowed in latest.items():
        wanted = [objects.of(key << 32 | index) for index in allowed if index is not None]
        try:
            found = system.get(f"c{key}")
        except (OSError, Failed, Damaged):
            outcome["lost"] += not (None in allowed)
            continue
        outcome["wrong"] += found not in wanted
    system.put("after", b"still writes" * 100)
    system.stop()
    return outcome


def flipped_byte(system, mib):
    """One byte of an object's data is changed on the drive while nobody looks; then the object is read."""
    drive = NullBlk(mib)
    try:
        system.format(drive)
        data = content(MIB, 99)
        for number in range(3):
            system.put(f"n{number}", content(MIB, number))
        system.put("victim", data)
        system.sync()
        system.stop()
        places = flip(drive, data[MIB // 2:MIB // 2 + 4096])
        system.start()
        run("sh", "-c", "echo 3 >/proc/sys/vm/drop_caches")
        try:
            found = system.get("victim")
        except (Damaged, OSError, Failed) as error:
            outcome = f"noticed: {error}"
        else:
            outcome = "unnoticed" if found != data else "the right bytes"
        system.stop()
        return {"copies_found": places, "outcome": outcome}
    finally:
        try:
            drive.remove()
        except (Failed, OSError):
            pass


def flip(drive, needle):
    """Writes the zones that hold these bytes again, with one bit changed, and keeps each write pointer."""
    places = 0
    size = ZONE_MIB * MIB
    for zone in range(drive.mib // ZONE_MIB):
        with open(drive.path, "rb") as file:
            file.seek(zone * size)
            held = file.read(size)
        at = held.find(needle)
        if at < 0:
            continue
        places += 1
        report = run("blkzone", "report", "--offset", zone * size // 512, "--count", 1, drive.path)
        changed = bytearray(held)
        changed[at + 100] ^= 1
        if "CONVENTIONAL" not in report:
            if "(fu)" not in report:
                changed = changed[:int(re.search(r"wptr 0x([0-9a-f]+)", report).group(1), 16) * 512]
            run("blkzone", "reset", "--offset", zone * size // 512, "--count", 1, drive.path)
        write_directly(drive.path, zone * size, changed)
    return places


def write_directly(path, offset, data):
    descriptor = os.open(path, os.O_WRONLY | os.O_DIRECT)
    try:
        for start in range(0, len(data), MIB):
            piece = data[start:start + MIB]
            with mmap.mmap(-1, len(piece)) as aligned:
                aligned.write(bytes(piece))
                os.pwrite(descriptor, aligned, offset + start)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
