#!/usr/bin/env python3
"""The power goes below the kernel, again and again, while a drive is written to; then all that was acknowledged is read.

    power_cuts.py store|bluefs|rocksdb [--cuts N] [--seed N] [--conventional N]

Runs in a guest that has zloop (lab/run --uml). Each cut drops what the drive was not told to flush; what is on it stays, and
the next round goes on with that. The exit code is 1 if something was lost, wrong, or could not be mounted.
"""

import argparse
import concurrent.futures
import ctypes
import hashlib
import os
import pathlib
import random
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "compare"))
from drive import Failed, run  # noqa: E402
from files import Damaged, Full  # noqa: E402
from store import LOG, ZoneStore  # noqa: E402

DRIVE = "/dev/zloop0"
PROGRAM = os.environ.setdefault("ZONESTORE_BIN", str(HERE.parent / "target/debug/zonestore"))
GONE = None


def content(key, version, most):
    """What a key holds in a version: of any length up to `most`, mostly short."""
    seed = hashlib.sha256(f"{key} {version}".encode()).digest()
    length = int.from_bytes(seed[:8], "little") % (1 << (most.bit_length() - 1 - seed[8] % 6))
    return (seed * (length // len(seed) + 1))[:length]


class Store:
    """The object store, served: several clients at once."""

    clients, keys, most = 4, 12, 1 << 20
    puts_a_cut = 5, 40

    def __init__(self):
        self.server = ZoneStore()

    def format(self):
        run(PROGRAM, "store", "mkfs", "--force", DRIVE)
        self.server.device = DRIVE
        self.begin()
        self.server.request("PUT", "", b"")

    def begin(self):
        self.server.start()

    def put(self, key, version):
        self.server.put(key, content(key, version, self.most))

    def remove(self, key):
        self.server.delete(key)

    def held(self, keys):
        held = {}
        for key in keys:
            try:
                held[key] = self.server.get(key)
            except Failed as error:
                if "HTTP 404" not in str(error):
                    raise
                held[key] = GONE
        return held

    def end(self):
        self.server.stop()

    def abandon(self):
        self.server.abandon()
        pathlib.Path(LOG).write_bytes(b"")

    def check(self):
        run(PROGRAM, "store", "fsck", "--deep", DRIVE)


class BlueFs:
    """Files that are copied in, each by a program of its own."""

    clients, keys, most = 1, 12, 1 << 20
    puts_a_cut = 2, 12

    def __init__(self):
        folder = pathlib.Path(tempfile.mkdtemp(dir="/dev/shm"))
        self.file, self.archive = folder / "file", folder / "archive"

    def format(self):
        run(PROGRAM, "fs", "mkfs", "--force", DRIVE)

    def begin(self):
        pass

    def put(self, key, version):
        self.file.write_bytes(content(key, version, self.most))
        run(PROGRAM, "fs", "put", DRIVE, self.file, f"/{key}")

    def remove(self, key):
        run(PROGRAM, "fs", "rm", DRIVE, f"/{key}")

    def held(self, keys):
        run(PROGRAM, "fs", "backup", "--force", DRIVE, self.archive)
        with tarfile.open(self.archive) as archive:
            held = {file.name.strip("/"): archive.extractfile(file).read() for file in archive if file.isfile()}
        return {key: held.get(key, GONE) for key in keys}

    def end(self):
        pass

    abandon = end

    def check(self):
        run(PROGRAM, "fs", "fsck", "--deep", DRIVE)


class RocksDb:
    """Keys of a database on BlueFS, each synced; memtables are small, so that there are flushes and compactions."""

    clients, keys, most = 1, 200, 4096
    puts_a_cut = 20, 160

    def format(self):
        run(PROGRAM, "fs", "mkfs", "--force", DRIVE)
        self.begin()

    def begin(self):
        self.words = tempfile.TemporaryFile()
        self.program = subprocess.Popen([PROGRAM, "rocksdb", DRIVE, "--", "python3", __file__, "database"], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.words)
        self.answer("open")

    def answer(self, *words):
        self.program.stdin.write(" ".join(map(str, words)) + "\n")
        self.program.stdin.flush()
        answer = self.program.stdout.readline().strip()
        if not answer.startswith("ok"):
            self.words.seek(0)
            raise Failed(f"{words[0]}: {answer} {self.words.read()[-500:].decode(errors='replace')}")
        return answer.removeprefix("ok").strip()

    def put(self, key, version):
        self.answer("put", key, version)

    def remove(self, key):
        self.answer("remove", key)

    def held(self, keys):
        words = {key: self.answer("get", key) for key in keys}
        return {key: GONE if word == "gone" else bytes.fromhex(word) for key, word in words.items()}

    def end(self):
        self.program.stdin.close()
        if self.program.wait(600):
            raise Failed(f"the database's program ended with {self.program.returncode}")

    def abandon(self):
        subprocess.run(["pkill", "-KILL", "-P", str(self.program.pid)], check=False)
        self.program.kill()
        self.program.wait(600)

    def check(self):
        run(PROGRAM, "fs", "fsck", "--deep", DRIVE)
        run(PROGRAM, "rocksdb", DRIVE, "--", "ldb", "checkconsistency")


def database():
    """RocksDB by its C interface: commands on standard input, an answer to each."""
    rocksdb = ctypes.CDLL("librocksdb.so.7.8")
    for name in ("options_create", "writeoptions_create", "readoptions_create", "open", "get"):
        getattr(rocksdb, f"rocksdb_{name}").restype = ctypes.c_void_p
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    error = ctypes.c_char_p()
    options = pointer(rocksdb.rocksdb_options_create())
    rocksdb.rocksdb_options_set_create_if_missing(options, 1)
    rocksdb.rocksdb_options_set_compression(options, 0)
    rocksdb.rocksdb_options_set_write_buffer_size(options, size(128 << 10))
    rocksdb.rocksdb_options_set_target_file_size_base(options, ctypes.c_uint64(128 << 10))
    rocksdb.rocksdb_options_set_max_bytes_for_level_base(options, ctypes.c_uint64(512 << 10))
    synced, reading = pointer(rocksdb.rocksdb_writeoptions_create()), pointer(rocksdb.rocksdb_readoptions_create())
    rocksdb.rocksdb_writeoptions_set_sync(synced, 1)
    store = None

    def do(word, key=b"", version=b""):
        nonlocal store
        of = (store, synced, key, size(len(key)))
        if word == b"open":
            store = pointer(rocksdb.rocksdb_open(options, b"/db", ctypes.byref(error)))
        elif word == b"put":
            value = content(key.decode(), version.decode(), RocksDb.most)
            rocksdb.rocksdb_put(*of, value, size(len(value)), ctypes.byref(error))
        elif word == b"remove":
            rocksdb.rocksdb_delete(*of, ctypes.byref(error))
        else:
            length = size()
            value = rocksdb.rocksdb_get(store, reading, key, size(len(key)), ctypes.byref(length), ctypes.byref(error))
            return "gone" if value is None else ctypes.string_at(value, length.value).hex()
        return ""

    for line in sys.stdin.buffer:
        answer = do(*line.split())
        print(f"failed: {error.value.decode(errors='replace')}" if error.value else f"ok {answer}", flush=True)
        if error.value:
            return
    rocksdb.rocksdb_close(store)


class Keys:
    """What was asked for and acknowledged: of each key the versions that it may have, GONE among them."""

    def __init__(self, prefix, number):
        self.names = [f"{prefix}k{n}" for n in range(number)]
        self.allowed = {name: [GONE] for name in self.names}
        self.acknowledged = 0
        self.version = 0


def client(load, keys, chance, enough, gone):
    """Puts and removes until the power is gone."""
    while not gone.is_set():
        key = chance.choice(keys.names)
        removes = keys.allowed[key] != [GONE] and chance.random() < 0.15
        keys.version += 1
        wanted = GONE if removes else keys.version
        # Until there is an answer it may have the one or the other.
        before, keys.allowed[key] = keys.allowed[key], [*keys.allowed[key], wanted]
        try:
            if removes:
                load.remove(key)
            else:
                load.put(key, keys.version)
        except Full:
            # A device that is gone takes no byte either, in the kernel's words.
            if not gone.is_set():
                keys.allowed[key] = before
            continue
        except (OSError, ValueError, Failed, Damaged) as error:
            if not gone.is_set():
                raise Failed(f"{key}, with the power on: {error}") from error
            return
        keys.allowed[key] = [wanted]
        keys.acknowledged += 1
        enough(keys.acknowledged)


def cut(load, all_keys, chance, threads):
    """One round: some are acknowledged, then the power goes in the middle of what follows."""
    wanted = chance.randrange(*load.puts_a_cut)
    before = sum(keys.acknowledged for keys in all_keys)
    reached, gone = threading.Event(), threading.Event()

    def enough(_):
        if sum(keys.acknowledged for keys in all_keys) - before >= wanted:
            reached.set()

    working = [threads.submit(client, load, keys, random.Random(chance.random()), enough, gone) for keys in all_keys]
    while not reached.wait(0.01) and not all(work.done() for work in working):
        pass
    early = not reached.is_set()
    # In the middle of one, at any part of it.
    time.sleep(chance.random() * 0.03)
    gone.set()
    run(HERE / "zloop", "cut")
    for work in working:
        work.result(600)
    load.abandon()
    if early:
        raise Failed("the clients ended before the power did")
    run(HERE / "zloop", "restore")


def look(load, all_keys):
    """What is not as it was acknowledged. What is there now is what the next round may count on."""
    load.check()
    load.begin()
    wrong = []
    for keys in all_keys:
        for key, found in load.held(keys.names).items():
            fitting = [version for version in keys.allowed[key]
                       if found == (GONE if version is GONE else content(key, version, load.most))]
            if not fitting:
                what = "lost" if found is GONE else f"wrong ({len(found)} bytes)"
                wrong.append(f"{key} is {what}, and has to be of version {keys.allowed[key]}")
            keys.allowed[key] = fitting[:1] or keys.allowed[key]
    return wrong


LOADS = {"store": Store, "bluefs": BlueFs, "rocksdb": RocksDb}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("load", choices=LOADS)
    parser.add_argument("--cuts", type=int, default=int(os.environ.get("LAB_CUTS", "8")))
    parser.add_argument("--seed", type=int, default=int(os.environ.get("LAB_SEED", "1")))
    parser.add_argument("--conventional", type=int, default=0, help="conventional zones: they lose nothing (default: none)")
    options = parser.parse_args()
    if options.cuts < 1:
        parser.error("--cuts: at least one")
    chance = random.Random(f"{options.load} {options.seed} {options.conventional}")
    load = LOADS[options.load]()
    run(HERE / "zloop", "create", f"conv_zones={options.conventional}")
    load.format()
    all_keys = [Keys(f"{number}", load.keys) for number in range(load.clients)]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(load.clients) as threads:
        for number in range(options.cuts):
            try:
                cut(load, all_keys, chance, threads)
                wrong = look(load, all_keys)
            except Failed as error:
                wrong = [str(error)]
            for line in wrong:
                print(f"cut {number}: {line}", flush=True)
            failed += bool(wrong)
            if wrong:
                break
    load.abandon() if failed else load.end()
    run(HERE / "zloop", "cut", check=False)
    acknowledged = sum(keys.acknowledged for keys in all_keys)
    print(f"{options.load}: {acknowledged} acknowledged, {number + 1} cuts, {failed} of them with something wrong "
          f"(seed {options.seed}, {options.conventional} conventional zones)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(database() if sys.argv[1:] == ["database"] else main())
