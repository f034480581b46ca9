"""Tests of what is in the log, and whether others are told of it."""

import subprocess

import journal
from bench import STATISTICS, check, program, statistics
from damage import off
from media import ON_DM, empty

# Files that are open and have no name, on a file system that is frozen and copied.
COPIED = """
    lazy /dev/ubda /mnt; mkdir /mnt/d; for i in $(seq 50); do echo $i >/mnt/d/$i; done; sync
    python3 -c '
import os
files = [os.open(f"/mnt/d/{i}", os.O_RDWR) for i in range(1, 20)]
for i in range(1, 20): os.unlink(f"/mnt/d/{i}")
os.sync()
os.system("fsfreeze -f /mnt; dd if=/dev/ubda of=/dev/ubdb bs=1M iflag=direct oflag=direct status=none; fsfreeze -u /mnt")'
    umount /mnt; """


def test_orphans_of_a_read_only_mount(bench):
    """
    The copy of a frozen file system needs no replay, and has orphans: a read-only mount frees them, and its log has what is not at home.
    The superblock says so, and whoever mounts it goes on.
    """
    image = bench.folder / "copied"
    for feature in ("^orphan_file", "orphan_file"):
        bench.mkfs(size="32M", journal=4, extra=("-O", feature))
        bench.copy("copied")
        bench.guest(COPIED, disks=[bench.image, image])
        check(not journal.Journal(program("debugfs"), image).needs_recovery, f"{feature}: the copy is to be replayed")
        said = bench.guest("lazy /dev/ubda /mnt ro; sync; [ $(ls /mnt/d | wc -l) = 31 ]; umount /mnt", disks=[image])
        check("orphan inodes deleted" in said, f"{feature}: no orphan was freed: {said[-2000:]}")
        check(journal.is_marked(image), f"{feature}: the superblock is not marked")
        for mount in ("mount -t $LAZY_TYPE -o ro", "lazy"):
            bench.guest(f"{mount} /dev/ubda /mnt; [ $(ls /mnt/d | wc -l) = 31 ]; umount /mnt", disks=[bench.copy("copied", "other")])
        check(off(image).returncode == 0, f"{feature}: not all goes home")
        # With orphan_file, a replay leaves orphan_present, without lazy as with it.
        subprocess.run([program("e2fsck"), "-f", "-p", str(image)], capture_output=True, check=False)
        bench.fsck(image, replay=False)


def test_begun_short_of_space(bench):
    """
    A read-only mount frees an orphan, and has to free space of the log first: the superblock at home says nevertheless, before the
    first commit, with which transaction the log goes on.
    """
    empty(bench)
    disks, crash = [bench.image, bench.folder / "log"], {"code": 124, "kill_when": bench.share / "done"}
    # What is written home waits, so the cleaner does; a handle needs a third of the log, or a quarter with 6.1, and 32 blocks.
    bench.guest(f"""{ON_DM}
        dmsetup remove j; lazy /dev/mapper/d /mnt rw,commit=300
        # The first file that is opened has the superblock logged. The cleaner would mark that, too.
        touch /mnt/first; fsfreeze -f /mnt; fsfreeze -u /mnt
        mkdir /mnt/d; exec 7>/mnt/d/open; rm /mnt/d/open; sync /mnt/d; suspended d
        part=3; case $(uname -r) in 6.1.*) part=4; esac
        needed=$(($(blockdev --getsz /dev/ubdb) / 8 / part + 32)) n=0
        free() {{ awk '$1 == "log_free" {{ print $2 }}' /proc/fs/jbd2*/*/lazy; }}
        while [ $(free) -ge $needed ]; do n=$((n + 1)); touch /mnt/d/$n; sync /mnt/d/$n; done
        : >$LAZY_SHARE/done; sleep 1000""", disks=disks, **crash)
    (bench.share / "done").unlink()
    end = journal.Journal(program("debugfs"), *disks).head()[1]
    said = bench.guest("lazy /dev/ubda /mnt ro; until grep -q '^published [1-9]' /proc/fs/jbd2*/*/lazy; do sleep 0.1; done; "
                       f"{STATISTICS}; : >$LAZY_SHARE/done; sleep 1000", disks=disks, **crash)
    check(statistics(said)["cleaned"] > 0, f"there was space: {said[-2000:]}")
    seen = journal.Seen(journal.read(bench.image, 1024, 1024))
    check(seen.exists and seen.sequence == end, f"the superblock says transaction {seen.sequence}, the log went on with {end}")
    bench.guest("lazy /dev/ubda /mnt; [ -e /mnt/d/1 ]; umount /mnt; mount -t ext4 /dev/ubda /mnt; umount /mnt", disks=disks)
    bench.fsck(bench.image, replay=False, external=disks[1])


def test_noload_writes_nothing(bench):
    """
    The machine dies, and the superblock at home names files without a name: a mount with ro,noload frees none of them, which the log
    would not know, and writes nothing at all. The next mount frees them.
    """
    for feature in ("^orphan_file", "orphan_file"):
        for options in ("lazy", "rw"):
            bench.mkfs(size="32M", journal=4, extra=("-O", feature))
            bench.guest(f"""
                mount -t $LAZY_TYPE -o {options} /dev/ubda /mnt; python3 -c '
import fcntl, os, struct
files = [os.open(f"/mnt/{{i}}", os.O_CREAT | os.O_RDWR) for i in range(9)]
for file in files: os.write(file, bytes(9000)); os.fsync(file)
for i in range(1, 9): os.unlink(f"/mnt/{{i}}")
os.sync()
# So the superblock at home names them.
os.system("fsfreeze -f /mnt; fsfreeze -u /mnt")
os.mkdir("/mnt/d"); os.sync()
fcntl.ioctl(os.open("/mnt", os.O_RDONLY), 0x8004587D, struct.pack("I", 2))'
                umount /mnt""")
            first = bench.image.read_bytes()
            bench.guest("mount -t $LAZY_TYPE -o ro,noload /dev/ubda /mnt; ls /mnt; umount /mnt")
            check(bench.image.read_bytes() == first, f"{feature}, {options}: it was written to")
            said = bench.guest(f"mount -t $LAZY_TYPE -o {options} /dev/ubda /mnt; ls -d /mnt/0 /mnt/d; umount /mnt")
            check("8 orphan inodes deleted" in said, f"{feature}, {options}: {said[-2000:]}")
            if options == "lazy":
                check(off(bench.image).returncode == 0, f"{feature}: not all goes home")
            bench.fsck(bench.image, replay=False)


def test_off_with_an_orphan_file(bench):
    """Files without a name are in the orphan file when the machine dies: behind `ext4lazy off` nobody takes free inodes for them."""
    bench.mkfs(size="32M", journal=4, extra=("-O", "orphan_file"))
    bench.guest("""
        lazy /dev/ubda /mnt; python3 -c '
import fcntl, os, struct
files = [os.open(f"/mnt/{i}", os.O_CREAT | os.O_RDWR) for i in range(40)]
for i in range(1, 40): os.unlink(f"/mnt/{i}")
os.sync()
# What is in the log is the file system, as when the machine dies.
fcntl.ioctl(os.open("/mnt", os.O_RDONLY), 0x8004587D, struct.pack("I", 2))'
        umount /mnt""")
    done = off(bench.image)
    check(done.returncode == 0 and "everything is home" in done.stdout, done.stdout + done.stderr)
    for mount in ("mount -t $LAZY_TYPE -o ro", "mount -t $LAZY_TYPE", "lazy"):
        bench.guest(f"{mount} /dev/ubda /mnt; ls /mnt/0; umount /mnt", disks=[bench.copy("other")])
    bench.fsck(bench.image, replay=False)


def test_dead_transactions(bench):
    """
    The oldest copy dies, and with it all of many transactions have died: the log's tail moves over all of them, with one less and one
    more than are dropped together among their numbers.
    """
    bench.mkfs(size="32M", block=1024, journal=4)
    # Directories with inodes in different blocks.
    bench.guest("mount -t $LAZY_TYPE /dev/ubda /mnt; for i in $(seq 12); do mkdir /mnt/$i; done; umount /mnt")
    for number in (63, 64, 65, 129, 400):
        image = bench.copy("dead")
        said = bench.guest(f"""lazy /dev/ubda /mnt; python3 -c '
import os
top = {{name: os.open("/mnt/" + name, os.O_RDONLY) for name in ("1", "12")}}
def commit(name, mode): os.fchmod(top[name], 0o700 + mode); os.fsync(top[name])
commit("1", 1)
for i in range({number}): commit("12", i % 8)
print(open(next(os.path.join(at, "lazy") for at, _, names in os.walk("/proc/fs") if "lazy" in names)).read())
commit("1", 2); commit("12", 9)'
            {STATISTICS}; umount /mnt""", disks=[image])
        before, behind = map(statistics, said.split("mapped ")[1:])
        check(before["log_blocks"] - before["log_free"] >= 3 * number, f"{number}: the tail has moved before: {before}")
        log = journal.Journal(program("debugfs"), image)
        left = sum(kind == journal.COMMIT for _, kind, _, _ in log.walk())
        check(left == 2, f"{number}: the log has {left} transactions, and two of them have copies that count: {behind}")
        bench.fsck(image)
