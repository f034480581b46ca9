"""Tests of what is made of a journal's superblock that is damaged, and of images with damage anywhere: right, or refused."""

import json
import os
import random
import re
import subprocess

import journal
from bench import DAMAGES, HERE, SEED, STATISTICS, check, program, statistics
from damage import off

SCRIPT = """
    lazy /dev/ubda /mnt
    for i in $(seq 1 30); do
        mkdir /mnt/$i; echo $i >/mnt/$i/f; sync -f /mnt
        case $i in *[369]) rm -r /mnt/$i; sync -f /mnt ;; esac
    done; """
END = ": >$LAZY_SHARE/done; sleep 1000"
# An image that is unmounted, one whose machine dies, and one that dies when its log no longer begins at the journal's first block.
IMAGES = {
    "unmounted": (SCRIPT + "umount /mnt", ()),
    "unmounted, without checksums": (SCRIPT + "umount /mnt", ("-O", "^metadata_csum")),
    "after a crash": (SCRIPT + END, ()),
    "after a crash, without checksums": (SCRIPT + END, ("-O", "^metadata_csum")),
    "after a freeze and a crash, without checksums": ("lazy /dev/ubda /mnt; touch /mnt/a; sync; fsfreeze -f /mnt; fsfreeze -u /mnt; umount /mnt; "
                                                      + SCRIPT + END, ("-O", "^metadata_csum")),
}
# Of the superblock, in bytes: what it says of the log, and lazy writeback's record with the checksum.
PARTS = (range(0x00, 0x20), range(0xD8, 0x100))
SECONDS = 60


def make(bench, name):
    script, features = IMAGES[name]
    bench.empty_share()
    bench.mkfs(size="16M", block=1024, journal=1, extra=features)
    crashed = END in script
    bench.guest(script, **({"code": 124, "kill_when": bench.share / "done"} if crashed else {}))
    return bench.journal()


def contents(image, log):
    """All of an image but the journal and the superblock, which e2fsck writes as it likes."""
    data = bytearray(image.read_bytes())
    for place in {*log.places, 1024 // log.block_size}:
        data[place * log.block_size:(place + 1) * log.block_size] = bytes(log.block_size)
    return data


def right(bench, log):
    replayed = bench.copy("replayed")
    done = off(replayed)
    check(done.returncode == 0, f"ext4lazy off: {done.stdout}{done.stderr}")
    return contents(replayed, log)


def off_or_refused(image, log, good, name):
    """What is wrong with what the tool does, or None."""
    before = image.read_bytes()
    for command in ("status", "off"):
        try:
            done = subprocess.run([str(HERE / "ext4lazy"), command, str(image)], capture_output=True, text=True, errors="replace",
                                  check=False, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return f"{name}: {command} does not end"
        said = done.stdout + done.stderr
        if "Traceback" in said or done.returncode not in (0, 1):
            return f"{name}: {command} ends with {done.returncode}: {said[-600:]}"
        if command == "status" or done.returncode:
            if image.read_bytes() != before:
                return f"{name}: {command} has changed the image, and says {said}"
            if command == "off" and "\nhint: " not in done.stderr:
                return f"{name}: there is no hint: {said}"
        elif contents(image, log) != good:
            return f"{name}: something else is home, and it says {said}"
    return None


def flipped(data, at, bit):
    return [at, bytes([data[at] ^ 1 << bit]).hex()]


def test_superblock_bits(bench):
    """
    Each bit of what the journal's superblock says of the log, and of the record: a mount and `ext4lazy off` are refused, or show
    what is there without damage; and --force brings all of it home if the record can tell.
    """
    chance = random.Random(SEED)
    for name in IMAGES:
        log = make(bench, name)
        good = right(bench, log)
        first = bench.copy("share/first").read_bytes()
        top = log.places[0] * log.block_size
        bits = [(at, bit) for part in PARTS for at in part for bit in range(8)]
        bits = sorted(chance.sample(bits, min(DAMAGES, len(bits))) + [(0x1B, 0), (0x1F, chance.randrange(8))])
        listed = [{"name": "none", "writes": []}]
        listed += [{"name": f"byte {at:#x}, bit {bit}", "writes": [flipped(first, top + at, bit)]} for at, bit in bits]
        (bench.share / "damages").write_text(json.dumps(listed))
        said = bench.guest(f"python3 {HERE}/tests/damaged.py $LAZY_SHARE/first $LAZY_SHARE/damages", code=None, expect_errors=True,
                           timeout=180 + 10 * len(listed))
        line = said.split("-- kernel")[0].strip().splitlines()[-1]
        check(line.endswith(" 0 wrong"), f"{name}: {said.split('-- kernel')[0][-3000:]}")
        wrong, image = [], bench.folder / "damaged"
        for damage in listed[1:]:
            put(image, first, damage["writes"])
            wrong += filter(None, [off_or_refused(image, log, good, damage["name"])])
        check(not wrong, f"{name}: " + "\n".join(wrong[:10]))
        for at in (0x1B, 0x1F):
            put(image, first, [flipped(first, top + at, 0)])
            done = off(image, "--force")
            check(done.returncode == 0 and contents(image, log) == good, f"{name}: byte {at:#x}: --force: {done.stdout}{done.stderr}")
        print(f"   {name}: {len(listed)} states, {line}", flush=True)


def put(image, first, writes):
    data = bytearray(first)
    for at, words in writes:
        words = bytes.fromhex(words)
        data[at:at + len(words)] = words
    image.write_bytes(data)


def test_off_behind_the_cleaner(bench):
    """The cleaner has written a part home, so that bitmaps and group descriptors there are of different times: no damage."""
    bench.mkfs(size="32M", journal=4, extra=("-I", "1024"))
    said = bench.guest(f"lazy /dev/ubda /mnt; storm storm /mnt $LAZY_SHARE --seed {SEED} --operations 600; {STATISTICS}; umount /mnt")
    check(statistics(said)["cleaned"] > 0, "the cleaner had nothing to do")
    done = subprocess.run([str(HERE / "ext4lazy"), "status", str(bench.image)], capture_output=True, text=True, check=False)
    check(done.returncode == 0 and "metadata may be in it" in done.stdout, f"status: {done.stdout}{done.stderr}")
    done = off(bench.image)
    check(done.returncode == 0 and "everything is home" in done.stdout, f"off: {done.stdout}{done.stderr}")
    bench.fsck(bench.image, replay=False)
    bench.guest("mount -t ext4 /dev/ubda /mnt; storm verify /mnt $LAZY_SHARE")


# What is wrong with the journal's superblock so that it does not tell where the log begins: bytes of it that are others then.
UNTOLD = {
    "no superblock": range(0, 1024),
    "no magic": (3,),
    "both places wrong": (0x1B, 0x1F, 0xE6),
}


def without(data, top, places):
    damaged = bytearray(data)
    for place in places:
        damaged[top + place] = 0 if len(places) > 10 else damaged[top + place] ^ 2
    return damaged


def test_made_again(bench):
    """
    The journal's superblock is gone. `ext4lazy off` writes nothing; with --force it makes another from what the log has, which has
    come round, and all is home. Of a log with damage in the middle as well, that is what is behind the damage.
    """
    for features in ((), ("-O", "^metadata_csum,^64bit"), ("-U", "clear")):
        bench.empty_share()
        bench.mkfs(size="32M", journal=4, extra=("-I", "1024", *features))
        if "-U" in features:
            # The checksums in the log are of the UUID that the journal was made with.
            subprocess.run([program("tune2fs"), "-f", "-U", "random", str(bench.image)], check=True, capture_output=True)
        said = bench.guest(f"lazy /dev/ubda /mnt; storm storm /mnt $LAZY_SHARE --seed {SEED} --operations 500; {STATISTICS}; umount /mnt")
        check(statistics(said)["cleaned"] > 0, "the log has not come round")
        log, image = bench.journal(), bench.folder / "made-again"
        first, top, good = bench.image.read_bytes(), log.places[0] * log.block_size, right(bench, log)
        for name, places in UNTOLD.items():
            if places == UNTOLD["both places wrong"] and not log.has_checksums:
                # That is what somebody else leaves who has replayed it.
                continue
            damaged = without(first, top, places)
            image.write_bytes(damaged)
            done = off(image)
            check(done.returncode == 1 and "\nhint: " in done.stderr, f"{name}: {done.stdout}{done.stderr}")
            check(image.read_bytes() == damaged, f"{name}: ext4lazy off has changed it")
            done = off(image, "--force")
            check(done.returncode == 0 and "was made again" in done.stdout and "left out" not in done.stdout, f"{name}: {done.stdout}{done.stderr}")
            check(contents(image, log) == good, f"{name}: something else is home, and it says {done.stdout}{done.stderr}")
            bench.guest("mount -t ext4 /dev/ubda /mnt; storm verify /mnt $LAZY_SHARE", disks=[image])
            bench.fsck(image, replay=False)
        if not log.has_checksums:
            continue
        live = [offset for offset in log.behind(log.start) if log.header(offset)[:2] == (journal.MAGIC, journal.DESCRIPTOR)]
        offset = next(offset for offset in live[len(live) // 2:] if log.header(offset)[2] < log.head()[1] - 1)
        damaged = without(first, top, UNTOLD["no superblock"])
        damaged[log.places[offset] * log.block_size + 20] ^= 1
        image.write_bytes(damaged)
        done = off(image, "--force")
        check(done.returncode == 0 and "some in front of them are damaged, and left out" in done.stdout, f"{done.stdout}{done.stderr}")
        check(f"has transactions {log.header(offset)[2] + 1}-{log.head()[1] - 1}" in done.stdout, f"{done.stdout}{done.stderr}")


def test_made_again_outside(bench):
    """The same of a journal that is another device."""
    outside = bench.folder / "log"
    for disk in (bench.image, outside):
        with open(disk, "wb") as file:
            file.truncate(16 << 20)
    bench.guest(f"""
        mke2fs -q -F -O journal_dev -b 1024 /dev/ubdb; mke2fs -q -F -t ext4 -b 1024 -J device=/dev/ubdb /dev/ubda
        lazy /dev/ubda /mnt; storm storm /mnt $LAZY_SHARE --seed {SEED} --operations 100 --sync-every 3; umount /mnt""", disks=[bench.image, outside])
    log = journal.Journal(program("debugfs"), bench.image, outside)
    log.put(log.top, bytes(log.block_size))
    done = off(bench.image, "--journal", str(outside))
    check(done.returncode == 1 and "\nhint: " in done.stderr, f"{done.stdout}{done.stderr}")
    done = off(bench.image, "--force", "--journal", str(outside))
    check(done.returncode == 0 and "was made again" in done.stdout, f"{done.stdout}{done.stderr}")
    bench.fsck(bench.image, replay=False, external=outside)
    bench.guest("mount -t ext4 /dev/ubda /mnt; storm verify /mnt $LAZY_SHARE", disks=[bench.image, outside])


def test_made_again_of_another_mount(bench):
    """A log that a mount without lazy has used last is not taken for one of lazy writeback when its superblock is gone."""
    bench.mkfs(size="32M", journal=4)
    bench.guest("lazy /dev/ubda /mnt; for i in $(seq 20); do mkdir /mnt/$i; sync; done; umount /mnt")
    bench.guest("mount -t ext4 /dev/ubda /mnt; mkdir /mnt/stock; sync; : >$LAZY_SHARE/done; sleep 1000", code=124, kill_when=bench.share / "done")
    log = bench.journal()
    bench.image.write_bytes(without(bench.image.read_bytes(), log.places[0] * log.block_size, UNTOLD["no superblock"]))
    done = off(bench.image, "--force")
    check("cannot be made again: the last mount of it was without lazy writeback" in done.stdout, f"{done.stdout}{done.stderr}")


# What of the journal is others than it was so that nobody can tell where its log begins.
GIVEN_UP = {
    "no journal": lambda log: ((offset, bytes(log.block_size)) for offset in range(log.maxlen)),
    "no superblock, and a wrong last commit record": lambda log: (
        (0, bytes(log.block_size)),
        (log.head()[0] - 1, log.block(log.head()[0] - 1)[:100] + b"x" + log.block(log.head()[0] - 1)[101:])),
}


def test_given_up(bench):
    """
    Nobody can tell where the log begins. `ext4lazy off` writes nothing, and tune2fs does not take the journal away; but with --force,
    e2fsck and tune2fs -j the file system can be used again, and has what was there before the first lazy mount and was left alone.
    """
    bench.mkfs(size="32M", journal=4, extra=("-I", "1024"))
    bench.guest(f"""
        mount -t ext4 /dev/ubda /mnt; mkdir /mnt/before; for i in $(seq 1 20); do head -c 9000 /dev/urandom >/mnt/before/$i; done
        (cd /mnt/before; md5sum *) >$LAZY_SHARE/sums; umount /mnt
        lazy /dev/ubda /mnt; mkdir /mnt/s; storm storm /mnt/s $LAZY_SHARE --seed {SEED} --operations 500; {STATISTICS}; umount /mnt""")
    log, image = bench.journal(), bench.folder / "given-up"
    first = bench.image.read_bytes()
    for name, writes in GIVEN_UP.items():
        damaged = bytearray(first)
        for offset, data in writes(log):
            at = log.places[offset] * log.block_size
            damaged[at:at + len(data)] = data
        image.write_bytes(damaged)
        done = off(image)
        check(done.returncode == 1 and "Traceback" not in done.stderr and "\nhint: " in done.stderr, f"{name}: {done.stdout}{done.stderr}")
        check(image.read_bytes() == damaged, f"{name}: ext4lazy off has changed it")
        for force in ((), ("-f",), ("-f", "-f")):
            copy = bench.copy("given-up", "tuned")
            journal.unmark(copy)
            done = subprocess.run([program("tune2fs"), *force, "-O", "^has_journal", str(copy)], capture_output=True, text=True, check=False)
            check(done.returncode == 1 and "e2fsck" in done.stdout + done.stderr, f"{name}: {done.stdout}{done.stderr}")
        done = off(image, "--force")
        check(done.returncode == 0 and f"now: e2fsck -f {image}" in done.stdout, f"{name}: {done.stdout}{done.stderr}")
        done = subprocess.run([program("e2fsck"), "-f", "-y", str(image)], capture_output=True, text=True, check=False)
        check(done.returncode in (0, 1), f"{name}: {done.stdout}{done.stderr}")
        shown = subprocess.run([program("dumpe2fs"), "-h", str(image)], capture_output=True, text=True, check=True).stdout
        gone = "has_journal" not in shown
        if gone:
            subprocess.run([program("tune2fs"), "-j", str(image)], capture_output=True, check=True)
        bench.fsck(image, replay=False)
        said = bench.guest("""
            lazy /dev/ubda /mnt; (cd /mnt/before; md5sum --quiet -c $LAZY_SHARE/sums); touch /mnt/new; sync
            echo left $(find /mnt/s 2>/dev/null | wc -l) $(ls /mnt/lost+found | wc -l); umount /mnt
            lazy /dev/ubda /mnt; ls /mnt/new; umount /mnt""", disks=[image])
        bench.fsck(image)
        left, found = re.search(r"^left (\d+) (\d+)$", said, re.M).groups()
        print(f"   {name}: {left} names of the lazy mount, {found} in lost+found, {'without a' if gone else 'with an empty'} journal", flush=True)


def test_moved_by_others(bench):
    """A log that others have replayed, moved or thrown away is no damage, whatever the record says that they do not know of."""
    for features in ((), ("-O", "^metadata_csum")):
        bench.empty_share()
        bench.mkfs(size="16M", block=1024, journal=1, extra=features)
        bench.guest(SCRIPT + END, code=124, kill_when=bench.share / "done")
        check(bench.journal().start == bench.journal().first, "the log does not begin at the journal's first block")
        # A mount without lazy replays it and begins at the same block, in front of its first commit and behind it.
        for script in ("mount -t ext4 -o ro /dev/ubda /mnt; ", "mount -t ext4 /dev/ubda /mnt; ",
                       "mount -t ext4 /dev/ubda /mnt; touch /mnt/new; sync; "):
            (bench.share / "done").unlink()
            copy = bench.copy("moved")
            bench.guest(script + END, code=124, kill_when=bench.share / "done", disks=[copy])
            bench.guest("lazy /dev/ubda /mnt; ls /mnt/1/f; umount /mnt", disks=[copy])
            done = off(copy)
            check(done.returncode == 0, f"{script}: {done.stdout}{done.stderr}")
            bench.fsck(copy, replay=False)
        copy = bench.copy("moved")
        bench.fsck(copy)
        bench.guest("lazy /dev/ubda /mnt; ls /mnt/1/f; umount /mnt; mount -t ext4 /dev/ubda /mnt; ls /mnt/1/f; umount /mnt", disks=[copy])
        bench.fsck(copy)


def test_off_of_anything(bench):
    """Damage of any kind anywhere in an image: `ext4lazy off` never ends with a traceback, or with other contents and no word."""
    chance = random.Random(SEED)
    image, counts = bench.folder / "damaged", {}
    for name in ("after a crash, without checksums", "unmounted"):
        log = make(bench, name)
        good, first, size = right(bench, log), bench.image.read_bytes(), log.block_size
        for number in range(DAMAGES):
            data = bytearray(first)
            words = damage(data, log, chance)
            image.write_bytes(data)
            wrong = off_or_refused(image, log, good, f"{name}, number {number} of seed {SEED}: {words}")
            check(not wrong, wrong)
            counts[words.split()[0]] = counts.get(words.split()[0], 0) + 1
        # Of what is not there, or is no image.
        for path in (bench.folder / "nothing", bench.folder):
            done = off(path)
            check(done.returncode == 1 and "hint: " in done.stderr and "Traceback" not in done.stderr, f"{path}: {done.stderr}")
        check(size and bench.image.read_bytes() == first, "the image was changed")
    print(f"   {counts}", flush=True)


def damage(data, log, chance):
    """Changes an image; returns what it has done."""
    size, top = log.block_size, log.places[0] * log.block_size
    kind = chance.choice(["superblock", "superblock", "journal", "journal", "journal", "header", "header", "block", "cut"])
    if kind == "cut":
        length = chance.randrange(len(data))
        del data[length:]
        return f"cut to {length} bytes"
    # Labels, times and the like of the superblock may be anything: it is put back as the log has it, or is not looked at.
    at, length = {"superblock": (1024, 0x180), "journal": (top, 0x100), "header": (0, 60), "block": (0, size)}[kind]
    if kind in ("header", "block"):
        live = [offset for offset in log.behind(log.start)][:(log.head()[0] - log.start) % (log.maxlen - log.first)]
        if not log.has_checksums:
            # The last commit record may look like one that was never written.
            live = live[:-1]
        if kind == "header":
            live = [offset for offset in live if log.header(offset)[0] == journal.MAGIC]
        elif not log.has_checksums:
            # Nobody can tell what a copy was.
            live = [offset for offset in live if log.header(offset)[0] == journal.MAGIC]
        at = log.places[chance.choice(live)] * size
    if kind == "block":
        data[at:at + size] = bytes(size) if chance.randrange(2) else data[log.places[chance.choice(live)] * size:][:size]
        return f"block at {at}"
    # Without a checksum a tag of a descriptor block may name any home.
    byte = at + chance.randrange(length if kind != "header" or log.has_checksums else 12)
    if chance.randrange(3):
        data[byte] ^= 1 << chance.randrange(8)
        return f"{kind} bit of byte {byte - at:#x} at {at}"
    byte &= ~3
    data[byte:byte + 4] = chance.choice([bytes(4), b"\xff" * 4, chance.randbytes(4), chance.randrange(2 * log.maxlen).to_bytes(4, "big")])
    return f"{kind} word {byte - at:#x} at {at}"


def test_off_in_use(bench):
    """An image that is mounted through a loop device, a journal that has two file systems: `ext4lazy off` writes nothing, and says why."""
    bench.mkfs(size="32M", journal=4)
    bench.guest("lazy /dev/ubda /mnt; mkdir /mnt/a /mnt/b; sync; umount /mnt")
    log = bench.journal()
    image = bench.copy("share/damaged")
    log.image = image
    # Its last commit record.
    log.put(log.head()[0] - 1, bytes(log.block_size))
    before = image.read_bytes()
    said = bench.guest(f"""
        mkdir /tmp/m; mount -t ext4 -o loop,ro,noload $LAZY_SHARE/damaged /tmp/m; cd $LAZY_SHARE
        fails python3 {HERE}/ext4lazy off --force damaged 2>&1; umount /tmp/m; fails python3 {HERE}/ext4lazy off damaged 2>&1""")
    check("damaged is in use, as /dev/loop" in said and "is damaged (above)" in said, said[-2000:])
    check(image.read_bytes() == before, "it was written")
    disks = [bench.folder / name for name in ("one", "log", "two")]
    for disk in disks:
        with open(disk, "wb") as file:
            file.truncate(16 << 20)
    tool = f"python3 {HERE}/ext4lazy off --journal /dev/ubdb /dev/ubda"
    said = bench.guest(f"""
        exec 2>&1; mke2fs -q -F -O journal_dev -b 4096 /dev/ubdb; mke2fs -q -F -t ext4 -b 4096 -J device=/dev/ubdb /dev/ubda
        lazy /dev/ubda /mnt; mkdir /mnt/a; sync; umount /mnt; mke2fs -q -F -t ext4 -b 4096 -J device=/dev/ubdb /dev/ubdc
        fails {tool}; tune2fs -O ^has_journal /dev/ubdc; fails {tool}; {tool} --force; e2fsck -f -n -j /dev/ubdb /dev/ubda""", disks=disks)
    check(said.count("is marked as that of another file system too") == 2 and "everything is home" in said, said[-2000:])


# Files that are open and have no name when the machine dies, more crashes with the same log; an image of each.
ORPHANS = r"""python3 - <<'EOF'
import fcntl, os, struct, subprocess
def sh(command): subprocess.run(command, shell=True, check=True)
for number in range(CRASHES):
    sh("mount -t $LAZY_TYPE -o lazy /dev/ubda /mnt")
    if not number:
        for i in range(134): os.mkdir(f"/mnt/d{i}")
    files = []
    for i in range(8):
        files.append(os.open(f"/mnt/o{i}", os.O_CREAT | os.O_RDWR))
        os.write(files[-1], b"x" * 3000)
    os.sync()
    for i in range(8): os.unlink(f"/mnt/o{i}")
    for j in range(0, 2 * number + 2, 2): open(f"/mnt/d{j}/{number}", "w").close()
    os.sync()
    # What is in the log is the file system, as when the machine dies.
    top = os.open("/mnt", os.O_RDONLY)
    fcntl.ioctl(top, 0x8004587D, struct.pack("I", 2))
    for file in [top, *files]: os.close(file)
    sh(f"umount /mnt; dd if=/dev/ubda of=$LAZY_SHARE/{number} bs=1M iflag=direct conv=sparse status=none")
EOF
"""


def test_off_with_orphans(bench):
    """Behind each of many crashes with orphans and quota `ext4lazy off` brings all home, however many blocks e2fsck writes."""
    crashes = 60
    bench.mkfs(size="24M", block=1024, journal=2, extra=("-O", "quota", "-N", "12000"))
    bench.guest(ORPHANS.replace("CRASHES", str(crashes)))
    for number in range(crashes):
        image = bench.share / str(number)
        done = off(image)
        check(done.returncode == 0 and "everything is home" in done.stdout, f"crash {number}: {done.stdout}{done.stderr}")
        bench.fsck(image, replay=False)
        image.unlink()


# What e2fsck does in place of what it is asked for: it is ended before, in the middle of the replay, behind it, or ends badly.
ENDED = {
    "before": ("kill -TERM $$", "ended by signal 15", False),
    "in the middle": (r"""python3 -c '
import sys
sys.path.insert(0, sys.argv[1])
import journal
log = journal.Journal(sys.argv[2], sys.argv[3])
# Half of what a replay writes, and the journal thrown away, as e2fsck does when it is told of an error.
copies = sorted(log.copies().items())
with open(sys.argv[3], "r+b") as file:
    for home, offset in copies[::2]:
        file.seek(home * log.block_size)
        file.write(log.block(offset))
log.start_at(0)' "$FOLDER" "$DEBUGFS" "$IMAGE"; kill -ABRT $$""", "ended by signal 6", False),
    "with an error": ("echo 'No space for it'; exit 8", "ended with code 8", False),
    "behind it": ('"$E2FSCK" "$@"; kill -ABRT $$', "ended by signal 6", True),
}


def test_off_is_ended(bench):
    """e2fsck does not end as it should. That is no damage, `ext4lazy off` says what it is, and nothing of the log is lost."""
    log = make(bench, "after a crash")
    first, good = bench.image.read_bytes(), right(bench, log)
    image, folder = bench.folder / "ended", bench.folder / "programs"
    folder.mkdir()
    for name, (script, words, home) in ENDED.items():
        image.write_bytes(first)
        (folder / "e2fsck").write_text("#!/bin/sh\n" + script)
        (folder / "e2fsck").chmod(0o755)
        variables = {"PATH": f"{folder}:{os.environ['PATH']}", "FOLDER": HERE, "E2FSCK": program("e2fsck"), "DEBUGFS": program("debugfs"), "IMAGE": image}
        done = subprocess.run([str(HERE / "ext4lazy"), "off", str(image)], capture_output=True, text=True, check=False,
                              env={**os.environ, **{key: str(value) for key, value in variables.items()}})
        said = done.stdout + done.stderr
        check(done.returncode == 1 and words in done.stderr and "\nhint: " in done.stderr, f"{name}: {said}")
        check("is damaged" not in said and ("is home" in done.stderr or "are home" in done.stderr) == home, f"{name}: {said}")
        if name in ("before", "with an error"):
            check(image.read_bytes() == first, f"{name}: it was written")
        done = off(image)
        check(done.returncode == 0 and contents(image, log) == good, f"{name}: something else is home: {done.stdout}{done.stderr}")


def test_off_of_a_torn_superblock(bench):
    """
    e2fsck writes the superblock in pieces, and its checksum is wrong between two of them. `ext4lazy` says that it is the superblock, not
    the journal, and writes nothing; e2fsck -b brings all home.
    """
    make(bench, "unmounted")
    first, image = bench.image.read_bytes(), bench.folder / "torn"
    # Without a checksum: the journal's inode.
    plain = bytearray(first)
    plain[1024 + 100:1024 + 104] = (int.from_bytes(first[1024 + 100:1024 + 104], "little") & ~journal.FS_METADATA_CSUM).to_bytes(4, "little")
    put(image, plain, [flipped(first, 1024 + 0xE0, 1)])
    before = image.read_bytes()
    done = off(image)
    check(done.returncode == 1 and "its journal is inode 10" in done.stderr and image.read_bytes() == before, f"{done.stdout}{done.stderr}")
    # The time of the last write.
    put(image, first, [flipped(first, 1024 + 48, 3)])
    before = image.read_bytes()
    for command in ("status", "off"):
        done = subprocess.run([str(HERE / "ext4lazy"), command, str(image)], capture_output=True, text=True, check=False)
        check(done.returncode == 1 and "superblock of" in done.stderr and "wrong checksum" in done.stderr and "\nhint: e2fsck -f -b" in done.stderr,
              f"{command}: {done.stdout}{done.stderr}")
        check("is damaged" not in done.stderr and image.read_bytes() == before, f"{command}: {done.stdout}{done.stderr}")
    done = subprocess.run([program("e2fsck"), "-f", "-y", "-b", "8193", str(image)], capture_output=True, text=True, check=False)
    check(done.returncode in (0, 1) and "recovering journal" in done.stdout, f"{done.stdout}{done.stderr}")
    bench.fsck(image, replay=False)
    check(off(image).returncode == 0, "something is in the log")
    bench.guest("lazy /dev/ubda /mnt; ls /mnt/1/f /mnt/28/f; umount /mnt", disks=[image])


def test_off_of_a_wrong_copy(bench):
    """A bit of any copy in the log is wrong: `ext4lazy off` names its block and writes nothing, if it is not revoked."""
    chance = random.Random(SEED)
    log = make(bench, "unmounted")
    first, good = bench.image.read_bytes(), right(bench, log)
    copies, revoked = [], set()
    for offset, kind, _, block in log.walk():
        if kind == journal.DESCRIPTOR:
            copies += [(log.after(offset, number), home) for number, home in enumerate(log.tags(block), 1)]
        elif kind == journal.REVOKE:
            revoked.update(log.revoked(block))
    count = {offset for offset, home in copies if home not in revoked}
    check(count, f"the log from {log.start} to {log.head()} has no copy that counts; {len(copies)} are revoked")
    named, image = 0, bench.folder / "damaged"
    for offset, _ in chance.sample(copies, min(DAMAGES, len(copies))) + [(chance.choice(sorted(count)), None)]:
        place = log.places[offset]
        put(image, first, [flipped(first, place * log.block_size + chance.randrange(log.block_size), 3)])
        damaged = image.read_bytes()
        wrong = off_or_refused(image, log, good, f"copy at {offset}")
        check(not wrong, wrong)
        if image.read_bytes() == damaged:
            named += 1
            said = off(image).stdout
            check(f"block {place} ({offset} of the journal), the copy of block" in said and "wrong checksum" in said, said)
        else:
            check(offset not in count, f"the copy at {offset} is not revoked, and its damage is not told")
    print(f"   {named} refused", flush=True)


def test_given_up_by_e2fsck(bench):
    """
    A bit of a copy in the log is wrong, and e2fsck, or `ext4lazy off --force`, has replayed the rest and thrown the log away. Whoever
    mounts the file system then, with lazy or without, and writes to it, finds no damage.
    """
    bench.mkfs(size="32M", journal=4)
    bench.guest("lazy /dev/ubda /mnt; for k in 1 2 3 4 5; do mkdir /mnt/d$k; for i in $(seq 30); do echo $i >/mnt/d$k/$i; done; sync; done; umount /mnt")
    log, first = bench.journal(), bench.image.read_bytes()
    copies = [log.after(offset, number) for offset, kind, _, block in log.walk() if kind == journal.DESCRIPTOR
              for number in range(1, 1 + len(log.tags(block)))]
    image = bench.folder / "given-up"
    ways = {"e2fsck -fy": ("e2fsck", "-f", "-y"), "e2fsck -p": ("e2fsck", "-p"), "off --force": None}
    for name, words in ways.items():
        put(image, first, [flipped(first, log.places[copies[-1]] * log.block_size + 100, 3)])
        if words:
            journal.unmark(image)
            done = subprocess.run([program(words[0]), *words[1:], str(image)], capture_output=True, text=True, check=False)
            check(done.returncode in (0, 1, 4) and "checksum" in done.stdout + done.stderr, f"{name}: {done.stdout}{done.stderr}")
        else:
            done = off(image, "--force")
            check(done.returncode == 0 and "now: e2fsck -f" in done.stdout, f"{name}: {done.stdout}{done.stderr}")
        subprocess.run([program("e2fsck"), "-f", "-y", str(image)], capture_output=True, check=False)
        bench.fsck(image, replay=False)
        done = off(image)
        check(done.returncode == 0 and "everything is home" in done.stdout, f"{name}: {done.stdout}{done.stderr}")
        bench.copy("given-up", "other")
        bench.guest("""
            for options in ro,lazy ro lazy rw; do mount -t $LAZY_TYPE -o $options /dev/ubda /mnt; ls /mnt/d1 >/dev/null; umount /mnt; done
            lazy /dev/ubda /mnt; mkdir /mnt/new; sync; umount /mnt; lazy /dev/ubda /mnt; ls -d /mnt/new; umount /mnt
            mount -t $LAZY_TYPE /dev/ubdb /mnt; mkdir /mnt/new; sync; umount /mnt""", disks=[image, bench.folder / "other"])
        bench.fsck(image)
