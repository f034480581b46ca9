"""The power goes, or a bit turns over: what is lost, and who notices."""

import mmap
import os
import random
import re
import threading
import time

from drive import MIB, ZONE_MIB, Failed, NullBlk, Zloop, run
from files import Damaged, Full
from steps import KIB, Content, content


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


def control(system, mib):
    """A power cut during puts that are not synced: whether the test sees a loss where there has to be one."""
    system.syncs = False
    try:
        return power_cuts(system, mib, "short")
    finally:
        system.syncs = True


def power_cut(system, drive, number):
    system.format(drive)
    objects = Content(64 * KIB)
    acknowledged = []
    gone, stop = threading.Event(), threading.Event()
    early = []

    def client():
        index = 0
        while not stop.is_set():
            # Every third is one that is there already.
            key = index if index % 3 else max(0, index - 30)
            try:
                system.put(f"c{key}", objects.of(key << 32 | index))
            except Exception as error:  # Without power: whatever it says.
                if not gone.is_set():
                    early.append(error)
                acknowledged.append((key, None, index))
                return
            acknowledged.append((key, index, index))
            index += 1

    thread = threading.Thread(target=client)
    thread.start()
    time.sleep(random.Random(number).uniform(6, 10))
    gone.set()
    drive.cut()
    stop.set()
    thread.join(120)
    if early:
        raise Failed(f"with the power on: {early[0]}")
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
