"""Tests of what happens to a log that is damaged, and of what must not be taken for damage."""

import json
import random
import re
import struct
import subprocess

import journal
from bench import DAMAGES, HERE, KILLS, SEED, STATISTICS, check, program, statistics

NAMES = {journal.DESCRIPTOR: "descriptor", journal.REVOKE: "revoke block", journal.COMMIT: "commit record"}
# Directories that go leave revoke records.
LOG = """
    log() {
        lazy /dev/ubda /mnt
        for i in $(seq $1 $2); do
            mkdir /mnt/$i; echo $i >/mnt/$i/f; sync
            case $i in *[369]) rm -r /mnt/$i; sync ;; esac
        done
    }
    log 1 40"""
# One that is unmounted, one whose machine dies, and one that dies behind the end of an older one.
ENDS = {
    "unmounted": (LOG + "; umount /mnt", False),
    "after a crash": (LOG + "; : >$LAZY_SHARE/done; sleep 1000", True),
    "after a crash of a second mount": (LOG + """
        umount /mnt; log 50 79; : >$LAZY_SHARE/done; sleep 1000""", True),
}


def headers(log):
    """Offset and type of each block of the log that describes others, in the order of the log."""
    found, offset, end = [], log.start, log.head()[0]
    while offset != end:
        kind = log.header(offset)[1]
        found.append((offset, kind))
        offset = log.after(offset, 1 + (len(log.tags(log.block(offset))) if kind == journal.DESCRIPTOR else 0))
    return found


def ways(block, chance):
    """Each way in which a block may be damaged: a name, and what it is then."""
    def bit(first, last):
        changed = bytearray(block)
        changed[chance.randrange(first, last)] ^= 1 << chance.randrange(8)
        return bytes(changed)

    yield "magic", bit(0, 4)
    yield "type", bit(4, 8)
    yield "sequence", bit(8, 12)
    yield "older sequence", block[:8] + struct.pack(">I", struct.unpack(">I", block[8:12])[0] - chance.randrange(1, 9) & 0xFFFFFFFF) + block[12:]
    yield "zeros", bytes(len(block))
    yield "noise", chance.randbytes(len(block))
    yield "half", block[:len(block) // 2] + bytes(len(block) // 2)
    yield "a bit of the rest", bit(12, 200)


def damages(log, chance, crashed):
    """Each way for blocks of each kind: the first, the last, and some between."""
    yield {"name": "none", "writes": []}
    found = headers(log)
    last = found[-1][0]

    def write(offset, data):
        return [log.places[offset] * log.block_size, data.hex()]

    some = []
    for kind, name in NAMES.items():
        offsets = [offset for offset, its in found if its == kind]
        check(len(offsets) > 5, f"the log has {len(offsets)} of kind {name}")
        for offset in {offsets[0], offsets[-1], *chance.sample(offsets, 4)}:
            for way, data in ways(log.block(offset), chance):
                # Without it, the last commit was interrupted; and without checksums, a wrong header is none.
                gone = ("zeros", "noise") if log.has_checksums else ("zeros", "noise", "magic", "type", "sequence", "older sequence")
                if data == log.block(offset) or (crashed and offset == last and way in gone):
                    continue
                some.append({"name": f"{name} at {offset}: {way}", "writes": [write(offset, data)]})
    for _ in range(8):
        offset, length = chance.choice(found[:-8])[0], chance.randrange(2, 20)
        some.append({"name": f"{length} blocks at {offset}: zeros",
                     "writes": [write(log.after(offset, number), bytes(log.block_size)) for number in range(length)]})
    yield from chance.sample(some, min(DAMAGES, len(some)))


def test_damaged_log(bench):
    """
    Each kind of block of the log in turn is not what it was: bits of the header, zeros, noise. A mount is refused with nothing
    written, or all that was committed is there, after an unmount and after a crash; and `ext4lazy off` does as a mount does.
    """
    chance = random.Random(SEED)
    for name, (script, crashed) in ENDS.items():
        for features in ((), ("-O", "^metadata_csum,^64bit")) if name == "after a crash" else ((),):
            bench.empty_share()
            bench.mkfs(size="32M", journal=4, extra=features)
            bench.guest(script, **({"code": 124, "kill_when": bench.share / "done"} if crashed else {}))
            log = bench.journal()
            listed = list(damages(log, chance, crashed))
            if features:
                # Without checksums, what is not of the header is anything.
                listed = [damage for damage in listed if not re.search("half|a bit of|noise", damage["name"])]
            bench.copy("share/first")
            (bench.share / "damages").write_text(json.dumps(listed))
            said = bench.guest(f"python3 {HERE}/tests/damaged.py $LAZY_SHARE/first $LAZY_SHARE/damages", code=None,
                               expect_errors=True, timeout=180 + 20 * len(listed))
            found = re.search(r"^(\d+) refused, (\d+) as without damage, (\d+) wrong$", said, re.M)
            check(found and found.group(3) == "0", f"{name}{' without checksums' if features else ''}: {said.split('-- kernel')[0][-3000:]}")
            print(f"   {name}{', without checksums' if features else ''}: {len(listed)} states, {found.group(0)}", flush=True)
            check(int(found.group(1)) > len(listed), "most were not refused")
            off_does_as_a_mount(bench, name, chance.sample(listed[1:], min(3, len(listed) - 1)))


def off_does_as_a_mount(bench, name, listed):
    """`ext4lazy off` refuses the image and leaves its log as it is; with --force it ends with everything home that is in front."""
    image = bench.copy("damaged")
    for damage in listed:
        bench.copy("damaged")
        with open(image, "r+b") as file:
            for at, data in damage["writes"]:
                file.seek(at)
                file.write(bytes.fromhex(data))
        before = image.read_bytes()
        done = off(image)
        check(done.returncode == 1, f"{name}: {damage['name']}: ext4lazy off ends with {done.returncode}: {done.stdout}{done.stderr}")
        # e2fsck's undo has its own idea of the superblock's times.
        check(image.read_bytes()[8192:] == before[8192:], f"{name}: {damage['name']}: ext4lazy off has changed it")
        done = off(image, "--force")
        check(done.returncode == 0, f"{name}: {damage['name']}: ext4lazy off --force: {done.stdout}{done.stderr}")
        subprocess.run([program("e2fsck"), "-f", "-y", str(image)], capture_output=True, check=False)
        bench.fsck(image, replay=False)


def test_wrong_commit_time(bench):
    """A transaction behind the damage has a time that is none: `ext4lazy off` says what else is known of it, and goes on if it is forced."""
    bench.mkfs(size="32M", journal=4, extra=("-O", "^metadata_csum,^64bit"))
    bench.guest("lazy /dev/ubda /mnt; for i in 1 2 3 4 5 6; do mkdir /mnt/$i; sync; done; umount /mnt")
    log = bench.journal()
    records = [offset for offset, kind in headers(log) if kind == journal.COMMIT]
    last = log.block(records[-1])
    log.put(records[2], bytes(log.block_size))
    log.put(records[-1], last[:48] + b"\xff" * 8 + last[56:])
    done = off(bench.image)
    check(done.returncode == 1 and "left out: " in done.stdout and "left as it was" in done.stderr, f"{done.stdout}{done.stderr}")
    done = off(bench.image, "--force")
    check(done.returncode == 0 and "in front of the damage is home" in done.stdout, f"--force: {done.stdout}{done.stderr}")
    subprocess.run([program("e2fsck"), "-f", "-y", str(bench.image)], capture_output=True, check=False)
    bench.fsck(bench.image, replay=False)


def off(image, *options):
    return subprocess.run([str(HERE / "ext4lazy"), "off", *options, str(image)], capture_output=True, text=True, check=False)


def test_mounts_with_a_wrong_copy(bench):
    """A copy that a mount needs is not what was logged: each mount is refused, and each says why, however many there are."""
    bench.mkfs()
    bench.guest("lazy /dev/ubda /mnt; mkdir /mnt/a; sync; umount /mnt")
    log = bench.journal()
    # The group descriptors.
    place = log.copies()[1]
    good = log.block(place)
    log.put(place, good[:100] + bytes([good[100] ^ 1]) + good[101:])
    said = bench.guest("for i in $(seq 30); do fails mount -t $LAZY_TYPE -o lazy /dev/ubda /mnt; done", expect_errors=True)
    told = said.split("-- kernel")[1].count(f"wrong checksum of log block {log.places[place]}, the copy of block 1")
    check(told == 30, f"of 30 mounts {told} say why")
    log.put(place, good)
    bench.guest("lazy /dev/ubda /mnt; ls -d /mnt/a; umount /mnt")
    bench.fsck(bench.image)


def test_left_overs(bench):
    """What older logs have left behind the end is no damage: those of a replay, of another file system, of a log begun anew."""
    bench.mkfs(size="64M", journal=4)
    storms = "; ".join(f"storm storm /mnt $LAZY_SHARE --seed {SEED}{number} --operations 200 --sync-every 5" for number in range(2))
    bench.guest(f"lazy /dev/ubda /mnt; {storms}; umount /mnt")
    bench.fsck(bench.image)
    # The transactions of the new log have numbers far below those that are behind its end.
    log = bench.journal()
    superblock = bytearray(log.block(0))
    superblock[24:28] = struct.pack(">I", 1)
    superblock[252:256] = bytes(4)
    superblock[252:256] = struct.pack(">I", journal.crc32c(0xFFFFFFFF, superblock[:1024]))
    log.put(0, bytes(superblock))
    for _ in range(3):
        bench.guest("""lazy /dev/ubda /mnt; storm verify /mnt $LAZY_SHARE; cd /mnt/lost+found; mkdir -p new; sync; touch new/f; sync
            rm -r new; : >$LAZY_SHARE/done; sleep 1000""", code=124, kill_when=bench.share / "done")
        (bench.share / "done").unlink()
    check(bench.journal().sequence < 30, "the log has not begun anew")
    check(bench.journal().damage() is None, "ext4lazy off takes it for damaged")
    # The same journal with the blocks of another file system behind its end.
    subprocess.run([program("mke2fs"), "-q", "-F", "-t", "ext4", "-J", "size=4", "-E", "lazy_journal_init=1", str(bench.image)], check=True)
    bench.empty_share()
    bench.guest("lazy /dev/ubda /mnt; mkdir /mnt/a; sync; : >$LAZY_SHARE/done; sleep 1000", code=124, kill_when=bench.share / "done")
    bench.guest("lazy /dev/ubda /mnt; ls -d /mnt/a; umount /mnt; lazy /dev/ubda /mnt; ls -d /mnt/a; umount /mnt")
    bench.fsck(bench.image)


def test_kills_without_checksums(bench):
    """Behind the end of a log that has wrapped are commit records of former rounds: without checksums they are no damage either."""
    chance = random.Random(SEED)
    for number in range(max(2, KILLS // 2)):
        bench.empty_share()
        bench.mkfs(size="40M", block=1024, journal=1, extra=("-O", "^metadata_csum"))
        said = bench.guest(f"""
            lazy /dev/ubda /mnt
            for i in $(seq 400); do
                mkdir /mnt/$i; [ $((i % 2)) = 0 ] || [ $i = 1 ] || rmdir /mnt/$((i - 1)); sync -f /mnt
                [ $i != 250 ] || {{ {STATISTICS}; : >$LAZY_SHARE/begins; }}
            done
            : >$LAZY_SHARE/done; sleep 1000""", code=124, kill_when=bench.share / ("begins" if number else "done"),
                           kill_after=bench.slower * chance.uniform(0, 0.4))
        numbers = statistics(said)
        check(numbers["published"] > numbers["log_blocks"], f"the log did not wrap: {numbers}")
        check(bench.journal().damage() is None, "ext4lazy off takes the log for damaged")
        bench.fsck(bench.copy("replayed"))
        # Each even one is removed by the next.
        last = 399 if (bench.share / "done").exists() else 249
        bench.guest(f"lazy /dev/ubda /mnt; ls -d /mnt/{last}; umount /mnt; lazy /dev/ubda /mnt; ls -d /mnt/{last}; umount /mnt")
        bench.fsck(bench.image)


def test_read_only_mounts(bench):
    """A read-only mount takes nothing of the log, also of one whose machine died: any number of them fits a small journal."""
    bench.mkfs(size="64M", journal=4)
    bench.guest(f"""lazy /dev/ubda /mnt; storm storm /mnt $LAZY_SHARE --seed {SEED} --operations 300
        : >$LAZY_SHARE/done; sleep 1000""", code=124, kill_when=bench.share / "done")
    free = []
    for number in range(3):
        (bench.share / "done").unlink(missing_ok=True)
        said = bench.guest(f"""
            for i in $(seq 1 30); do lazy /dev/ubda /mnt ro; {STATISTICS}; umount /mnt; done
            lazy /dev/ubda /mnt ro; storm verify /mnt $LAZY_SHARE
            : >$LAZY_SHARE/done; sleep 1000""", code=124, kill_when=bench.share / "done")
        free += [statistics(part)["log_free"] for part in re.findall(r"mapped (?:.*\n){9}", said)]
        # The log of a mount that was written to and died has no end in the superblock.
        bench.guest("lazy /dev/ubda /mnt; mkdir /mnt/d; sync; rmdir /mnt/d; sync; : >$LAZY_SHARE/killed; sleep 1000",
                    code=124, kill_when=bench.share / "killed")
        (bench.share / "killed").unlink()
    for start in range(0, 90, 30):
        part = free[start:start + 30]
        # An unmount may move the tail.
        check(len(part) == 30 and part == sorted(part), f"free blocks of the log after each read-only mount: {part}")
    bench.fsck(bench.image)


def test_tuned(bench):
    """What tune2fs changes in a mounted lazy file system is kept, by the next mount and by a replay."""
    program("tune2fs")
    bench.mkfs()
    shown = """d() { dumpe2fs -h /dev/ubda 2>/dev/null | sed -nE 's/^(Maximum mount count|Reserved block count|Errors behavior|Mount count): +/\\1 /p;
        s/^Default mount options: +/options /p' | paste -sd, ; }; """
    said = bench.guest(f"""{shown}
        # The superblock is logged: it has the list of orphans.
        lazy /dev/ubda /mnt; python3 -c 'import os; file = open("/mnt/orphan", "w"); os.unlink("/mnt/orphan"); os.sync()'
        tune2fs -c 77 -m 3 -e remount-ro -o ^acl /dev/ubda >/dev/null; echo 1 $(d); umount /mnt
        lazy /dev/ubda /mnt; echo 2 $(d); umount /mnt
        lazy /dev/ubda /mnt ro; tune2fs -c 55 /dev/ubda >/dev/null; umount /mnt
        lazy /dev/ubda /mnt ro; echo 3 $(d); {STATISTICS}; umount /mnt""")
    check(statistics(said)["mapped"] > 0, "nothing was in the log")
    for number, most in ((1, 77), (2, 77), (3, 55)):
        line = re.search(rf"^{number} (.*)", said, re.M).group(1)
        for words in (f"Maximum mount count {most}", "Errors behavior Remount read-only", "options user_xattr", "Reserved block count 1474"):
            check(words in line, f"{number}: {words} is not in: {line}")
    done = off(bench.copy("replayed"))
    check(done.returncode == 0, done.stdout + done.stderr)
    words = subprocess.run([program("dumpe2fs"), "-h", str(bench.folder / "replayed")], capture_output=True, text=True, check=True).stdout
    check(re.search(r"Maximum mount count: +55\b", words) and re.search(r"Mount count: +2\b", words), words)
    bench.fsck(bench.folder / "replayed", replay=False)
