"""Tests of what others do to a lazy file system, mounted or not: each of these could lose what is in the log alone."""

import hashlib
import os
import re
import shutil
import subprocess

import journal
from bench import HERE, SEED, STATISTICS, check, program, statistics
from damage import headers, off

# Calls of ioctl() that no program of the machine makes.
IOCTL = r"""
    call() { python3 -c '
import fcntl, os, struct, sys
CALLS = {"checkpoint": (0x4004662b, int(sys.argv[3])), "shutdown": (0x8004587d, int(sys.argv[3])), "swap boot": (0x6611, None)}
number, argument = CALLS[sys.argv[1]]
fd = os.open(sys.argv[2], os.O_RDWR if sys.argv[1] == "swap boot" else os.O_RDONLY)
fcntl.ioctl(fd, number, 0 if argument is None else struct.pack("I", argument))
' "$1" "$2" "${3:-0}"; }
    drop() { echo 3 >/proc/sys/vm/drop_caches; }
"""


def goes_home(bench, script, disks=None):
    """`script` finds nothing wrong below /mnt in a lazy mount, in a replay of the same, and in what e2fsck is content with."""
    replayed = bench.copy("replayed")
    bench.guest(f"{IOCTL} lazy /dev/ubda /mnt; {script} umount /mnt")
    bench.fsck(replayed)
    bench.guest(f"{IOCTL} mount -t ext4 /dev/ubda /mnt; {script} umount /mnt", disks=[replayed])
    bench.fsck(bench.image)


def test_device_is_held(bench):
    """With blocks of 1 KiB, the page cache of a device that is held open outlives the mount, and holds what is at home."""
    bench.mkfs(size="64M", block=1024, journal=4)
    bench.guest(f"""
        {IOCTL} exec 5</dev/ubda
        for i in 1 2 3; do
            lazy /dev/ubda /mnt; storm storm /mnt $LAZY_SHARE --seed {SEED}$i --operations 100; umount /mnt
            drop; cat <&5 >/dev/null; lazy /dev/ubda /mnt; storm verify /mnt $LAZY_SHARE; umount /mnt
        done""")
    goes_home(bench, "storm verify /mnt $LAZY_SHARE;")


def test_backup_superblock(bench):
    """A backup superblock does not say that the journal has something: a mount with it is refused, and e2fsck replays."""
    bench.mkfs(size="300M", journal=4)
    bench.guest(f"lazy /dev/ubda /mnt; storm storm /mnt $LAZY_SHARE --seed {SEED} --operations 100; umount /mnt")
    before = bench.image.read_bytes()
    # The option counts blocks of 1 KiB.
    said = bench.guest("fails lazy /dev/ubda /mnt sb=131072; fails mount -t $LAZY_TYPE -o sb=131072 /dev/ubda /mnt; "
                       "fails mount -t $LAZY_TYPE -o ro,sb=131072 /dev/ubda /mnt")
    check(said.count("metadata that is not home") == 2 and "not supported with a backup superblock" in said, said[-2000:])
    check(bench.image.read_bytes() == before, "something was written")
    copy = bench.copy("by-backup")
    done = subprocess.run([program("e2fsck"), "-f", "-y", "-b", "32768", str(copy)], capture_output=True, text=True, check=False)
    check(done.returncode == 1 and "recovering journal" in done.stdout, done.stdout + done.stderr)
    bench.fsck(copy, replay=False)
    bench.guest("mount -t ext4 /dev/ubda /mnt; storm verify /mnt $LAZY_SHARE", disks=[copy])
    goes_home(bench, "storm verify /mnt $LAZY_SHARE;")


def test_flush_fails(bench):
    """The drive does not flush what was written home: the tail stays, and what is in the log is brought home later."""
    log = bench.folder / "log"
    for image, megabytes in ((bench.image, 64), (log, 8)):
        with open(image, "wb") as file:
            file.truncate(megabytes << 20)
    # Behind the file system is a sector that takes no flush.
    end = (60 << 20) >> 9
    said = bench.guest(f"""{IOCTL}
        export DM_DISABLE_UDEV=1
        table() {{ dmsetup suspend --noflush --nolockfs d; echo "$1" | dmsetup load d; dmsetup resume d; }}
        good="0 {end} linear /dev/ubda 0
{end} 8 linear /dev/ubda {end}"
        bad="0 {end} linear /dev/ubda 0
{end} 8 flakey /dev/ubda {end} 0 3600 1 error_writes"
        echo "$good" | dmsetup create d
        mke2fs -q -F -O journal_dev -b 4096 /dev/ubdb; mke2fs -q -F -t ext4 -b 4096 -E lazy_itable_init=0 -J device=/dev/ubdb /dev/mapper/d 60M
        lazy /dev/mapper/d /mnt; storm storm /mnt $LAZY_SHARE --seed {SEED} --operations 100
        table "$bad"; touch /mnt; fails call checkpoint /mnt 2
        dmesg | grep -m1 'cannot flush what was written home'
        {STATISTICS}; fails touch /mnt/x; umount /mnt
        table "$good"; lazy /dev/mapper/d /mnt; {STATISTICS}; storm verify /mnt $LAZY_SHARE
        # At an unmount, whose tail moves over what was logged again; ext4 has to know. The tail would stay with anything else in the log.
        for try in 1 2 3 4 5 6; do
            call checkpoint /mnt 2; for i in 1 2 3; do chmod 70$i /mnt; sync; done
            ! {STATISTICS} | grep -qx 'mapped 1' || break
        done
        {STATISTICS} | grep -x 'mapped 1'; dmesg -C; table "$bad"; umount /mnt
        dmesg | grep -m1 'cannot flush what was written home'; dmesg | grep -m1 'clean up the journal'
        table "$good"; lazy /dev/mapper/d /mnt; storm verify /mnt $LAZY_SHARE; umount /mnt""",
                       disks=[bench.image, log], expect_errors=True)
    check("mapped 0" not in said.rsplit("log_blocks", 1)[0].rsplit("clean_batches", 1)[-1], f"the log was given up: {said[-2000:]}")
    bench.guest("mount -t ext4 /dev/ubda /mnt; storm verify /mnt $LAZY_SHARE", disks=[bench.image, log])


def test_calls(bench):
    """What may be called on a mounted file system, one after the other, with checks in between; then it is killed."""
    bench.mkfs(size="96M", journal=4, extra=("-O", "metadata_csum_seed,project", "-I", "1024"))
    right = "storm verify /mnt/s $LAZY_SHARE; (cd /mnt/f; md5sum --quiet -c $LAZY_SHARE/sums); "
    bench.guest(f"""{IOCTL}
        lazy /dev/ubda /mnt discard; mkdir /mnt/s /mnt/f
        storm storm /mnt/s $LAZY_SHARE --seed {SEED} --operations 60
        # Two files in many pieces each. A guest that nothing happens in may wait for minutes until os.urandom() has what it wants.
        python3 -c '
import os, random
files = [os.open(f"/mnt/f/{{number}}", os.O_WRONLY | os.O_CREAT) for number in (1, 2)]
for _ in range(40):
    for file in files: os.write(file, random.randbytes(4096)); os.fsync(file)'
        for i in 3 4 5; do head -c 9000 /dev/urandom >/mnt/f/$i; done; cp /mnt/f/5 /mnt/boot
        sync; (cd /mnt/f; md5sum * >$LAZY_SHARE/sums); sync $LAZY_SHARE/sums
        gone() {{ mkdir /mnt/gone; (cd /mnt/gone; seq -f %0200g 1 300 | xargs touch); sync; rm -r /mnt/gone; sync; }}
        gone; drop; {right}
        gone; fstrim /mnt; drop; {right}
        e4defrag /mnt/f >/dev/null; sync; drop; {right}
        call 'swap boot' /mnt/boot; call 'swap boot' /mnt/boot; cmp /mnt/boot /mnt/f/5; rm /mnt/boot
        chattr -e /mnt/f/3; sync; drop; {right} chattr +e /mnt/f/3; sync; drop; {right}
        chattr -p 7 /mnt/f/4; e2label /dev/ubda lazy-label
        tune2fs -U 01234567-89ab-cdef-0123-456789abcdef /dev/ubda >/dev/null
        gone; call checkpoint /mnt 2; {STATISTICS} | grep -qx 'mapped 0'; drop; {right}
        storm storm /mnt/s $LAZY_SHARE --seed {SEED}9 --operations 40; gone; fstrim /mnt
        {STATISTICS}; : >$LAZY_SHARE/done; sleep 1000""", code=124, kill_when=bench.share / "done", timeout=600)
    goes_home(bench, right + "[ $(e2label /dev/ubda) = lazy-label ]; lsattr -p /mnt/f/4 | grep -q '^ *7 '; "
              "dumpe2fs -h /dev/ubda 2>/dev/null | grep -q 'UUID.*01234567-89ab-cdef-0123-456789abcdef'; ")


def test_freezes(bench):
    """Frozen in the middle of a storm that keeps the cleaner busy: the drive then has a file system that needs no replay."""
    bench.mkfs(size="48M", journal=4, extra=("-I", "1024"))
    said = bench.guest(f"""
        lazy /dev/ubda /mnt; storm storm /mnt $LAZY_SHARE --seed {SEED} --operations 800 --sync-every 5 & job=$!
        for i in 1 2 3; do
            sleep 1; fsfreeze -f /mnt; {STATISTICS} | grep -x 'mapped 0'
            # What the drive has, and not the page cache.
            dd if=/dev/ubda of=$LAZY_SHARE/frozen$i bs=1M iflag=direct conv=sparse status=none; fsfreeze -u /mnt
        done
        wait $job; {STATISTICS}; storm verify /mnt $LAZY_SHARE; umount /mnt""")
    check(statistics(said.rsplit("mapped ", 1)[1])["cleaned"] > 0, "the cleaner had nothing to do")
    for number in (1, 2, 3):
        bench.fsck(bench.share / f"frozen{number}", replay=False)
    goes_home(bench, "storm verify /mnt $LAZY_SHARE;")


def test_snapshots(bench):
    """
    Snapshots below a file system that is being written to (dm-snapshot): of one that is frozen for it, which needs no replay, and of
    one that is not, which is what a power cut leaves. Each goes on by itself while the other is there, and has what was synced.
    """
    bench.mkfs(size="96M", journal=4, extra=("-I", "1024"))
    stores = [bench.folder / name for name in ("frozen", "cut")]
    for store in stores:
        with open(store, "wb") as file:
            file.truncate(96 << 20)
    sectors = (96 << 20) >> 9
    take = f"""
        take() {{
            dmsetup suspend $3 origin; cp -r $LAZY_SHARE /tmp/$1
            dmsetup create $1 --table "0 {sectors} snapshot /dev/mapper/real $2 P 8"; dmsetup resume origin
        }}"""
    bench.guest(f"""{take}
        export DM_DISABLE_UDEV=1
        dmsetup create real --table "0 {sectors} linear /dev/ubda 0"
        dmsetup create origin --table "0 {sectors} snapshot-origin /dev/mapper/real"
        lazy /dev/mapper/origin /mnt; storm storm /mnt $LAZY_SHARE --seed {SEED} --operations 300 --sync-every 5
        storm storm /mnt $LAZY_SHARE --seed {SEED}9 --operations 800 --sync-every 5 & job=$!; sleep {bench.slower}
        take frozen /dev/ubdb ''; sleep {bench.slower}; take cut /dev/ubdc --nolockfs; wait $job
        e2fsck -f -n /dev/mapper/frozen
        mkdir /tmp/m; for name in frozen cut; do
            lazy /dev/mapper/$name /tmp/m; {STATISTICS}; storm verify /tmp/m /tmp/$name; storm forget-touched /tmp/m /tmp/$name
            storm storm /tmp/m /tmp/$name --seed {SEED}8 --operations 100; umount /tmp/m
            lazy /dev/mapper/$name /tmp/m; storm verify /tmp/m /tmp/$name; umount /tmp/m
        done
        storm verify /mnt $LAZY_SHARE; umount /mnt; dmsetup remove frozen; dmsetup remove cut; dmsetup remove origin; dmsetup remove real""",
                disks=[bench.image, *stores])
    goes_home(bench, "storm verify /mnt $LAZY_SHARE;")


def test_shutdown(bench):
    """The file system is shut down in each way that there is; what was synced is there."""
    bench.mkfs(size="64M", journal=4)
    for how in (0, 1, 2):
        bench.guest(f"""{IOCTL}
            lazy /dev/ubda /mnt; storm verify /mnt $LAZY_SHARE
            storm storm /mnt $LAZY_SHARE --seed {SEED}{how} --operations 100
            call shutdown /mnt {how}; fails touch /mnt/x; umount /mnt""", expect_errors=True)
        replayed = bench.copy("replayed")
        bench.fsck(replayed)
        bench.guest("mount -t ext4 /dev/ubda /mnt; storm verify /mnt $LAZY_SHARE", disks=[replayed])
    # The errors that it has left in the superblock are for e2fsck.
    bench.fsck(bench.image)
    bench.guest("lazy /dev/ubda /mnt; storm verify /mnt $LAZY_SHARE; umount /mnt")


# Programs for file systems that are not mounted, with what they are to do; those that are not there are left out.
PROGRAMS = (
    "e2fsck -n", "e2fsck -p", "e2fsck -f -y", "dumpe2fs", "tune2fs -l", "tune2fs -L label", "tune2fs -f -O ^has_journal",
    "tune2fs -O ^metadata_csum", "tune2fs -I 512", "resize2fs -P", "resize2fs -f", "resize2fs -f -M", "e2label", "debugfs -w -R ls",
    "e2image -r -a", "zerofree", "partclone.ext4 -c -s", "fsck.ext4 -p",
)


def test_tools(bench):
    """Programs that are started on an unmounted image refuse it with an error, whatever they are asked for, and change nothing."""
    bench.mkfs(size="64M", journal=4)
    bench.guest(f"lazy /dev/ubda /mnt; storm storm /mnt $LAZY_SHARE --seed {SEED} --operations 150; umount /mnt")
    first = hashlib.sha256(bench.image.read_bytes()).digest()
    here = []
    for name, *words in map(str.split, PROGRAMS):
        path = shutil.which(name, path=os.environ.get("PATH", "") + ":/sbin:/usr/sbin")
        if not path:
            continue
        here.append(name)
        more = {"e2label": ["label"], "e2image": [str(bench.folder / "copy")], "partclone.ext4": ["-o", str(bench.folder / "copy")]}.get(name, [])
        done = subprocess.run([path, *words, str(bench.image), *more], capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        check(done.returncode or "Filesystem not open" in said, f"{name} {words} ends with 0: {said}")
        check(hashlib.sha256(bench.image.read_bytes()).digest() == first, f"{name} {words} has changed the image")
    # What the mark is taken off replays the journal or asks for it, as behind a crash.
    for command in ("e2fsck -p", "tune2fs -L label", "tune2fs -O ^metadata_csum", "tune2fs -O ^has_journal", "resize2fs"):
        copy, (name, *words) = bench.copy("copy"), command.split()
        journal.unmark(copy)
        if name == "resize2fs":
            with open(copy, "r+b") as file:
                file.truncate(100 << 20)
        subprocess.run([program(name), *words, str(copy)], capture_output=True, text=True, check=False)
        bench.fsck(copy)
        bench.guest("mount -t ext4 /dev/ubda /mnt; storm verify /mnt $LAZY_SHARE", disks=[copy])
    print(f"   {', '.join(sorted(set(here)))}", flush=True)


# Whether the superblock on the drive has the mark, and whether the page cache has it there.
MARKS = r"""
    marks() { python3 -c '
import mmap, os, sys
page = mmap.mmap(-1, 4096)
os.preadv(os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT), [page], 0)
with open(sys.argv[1], "rb") as file: cached = file.read(4096)
found = ["drive"] * (page[1024 + 99] >> 6 & 1) + ["cache"] * (cached[1024 + 99] >> 6 & 1)
if "+".join(found) != sys.argv[2]: raise SystemExit(f"{sys.argv[3]}: marked are {found}, expected {sys.argv[2]}")
' /dev/ubda "$1" "$2"; }
"""


def test_marked_at_home(bench):
    """
    The superblock on the drive is marked while the log holds metadata, and that of a mounted file system is not: programs for mounted
    ones work. What freezing, remounting and a replay leave is not marked, whatever the cleaner has written home.
    """
    for features in ((), ("-O", "^metadata_csum")):
        bench.empty_share()
        bench.mkfs(size="48M", journal=4, extra=("-I", "1024", *features))
        said = bench.guest(f"""{MARKS}
            # The page cache outlives each mount.
            exec 5</dev/ubda; marks '' "mke2fs"
            lazy /dev/ubda /mnt; marks drive "a mount"
            storm storm /mnt $LAZY_SHARE --seed {SEED} --operations 600; marks drive "the cleaner"; {STATISTICS}
            tune2fs -c 77 /dev/ubda >/dev/null; fsfreeze -f /mnt; marks '' "freezing"; fsfreeze -u /mnt; marks drive "thawing"
            mount -o remount,ro /mnt; marks '' "read-only"; mount -o remount,rw /mnt; marks drive "read-write"
            touch /mnt; umount /mnt; marks drive+cache "an unmount"
            fails lazy /dev/ubda /mnt nodelalloc; marks drive+cache "a mount that is refused"
            fails mount -t $LAZY_TYPE -o journal_dev=0x700 /dev/ubda /mnt; marks drive+cache "a journal that is not there"
            mount -t $LAZY_TYPE -o ro,noload /dev/ubda /mnt; marks drive "noload"; umount /mnt; marks drive+cache "noload, and an unmount"
            lazy /dev/ubda /mnt ro; marks drive "a read-only mount"; storm verify /mnt $LAZY_SHARE; tune2fs -c 55 /dev/ubda >/dev/null
            umount /mnt; marks drive+cache "what tune2fs has written"
            lazy /dev/ubda /mnt; tune2fs -c 55 /dev/ubda >/dev/null; sync; touch /mnt; umount /mnt; marks drive+cache "the same, read-write"
            cp --sparse=always /dev/ubda $LAZY_SHARE/left
            mount -t $LAZY_TYPE /dev/ubda /mnt; marks '' "a replay"; storm verify /mnt $LAZY_SHARE; umount /mnt
            lazy /dev/ubda /mnt; touch /mnt; umount /mnt; marks drive+cache "lazy again"
            mount -t $LAZY_TYPE -o ro /dev/ubda /mnt; marks '' "a read-only replay"; storm verify /mnt $LAZY_SHARE; umount /mnt""")
        check(statistics(said.rsplit("mapped ", 1)[1])["cleaned"] > 0, "the cleaner had nothing to do")
        bench.fsck(bench.image, replay=False)
        left = bench.share / "left"
        done = off(left)
        check(done.returncode == 0 and "everything is home" in done.stdout, f"{done.stdout}{done.stderr}")
        bench.fsck(left, replay=False)


def test_marked_behind_an_error(bench):
    """What a program has written to the superblock while an error had made the file system read-only has its mark after the unmount."""
    bench.mkfs(size="32M", journal=4)
    bench.guest(f"""{MARKS}
        exec 5</dev/ubda; lazy /dev/ubda /mnt errors=remount-ro; mkdir /mnt/a; sync
        echo 1 >$(echo /sys/fs/ext4*/*/trigger_fs_error); while touch /mnt/x 2>/dev/null; do sleep 0.1; done
        tune2fs -c 77 /dev/ubda >/dev/null; sync; marks '' "tune2fs"; umount /mnt; marks drive+cache "an unmount behind an error"
        lazy /dev/ubda /mnt; ls -d /mnt/a; umount /mnt""", expect_errors=True)


# What the file system is before it is made larger: 5 groups, and 20 then. New groups need new blocks of descriptors.
GROWS = {
    "reserved descriptors": ("-E", "desc_size=512,resize=400000"),
    "descriptors in groups": ("-O", "meta_bg,^resize_inode"),
    "no reserved descriptors": ("-O", "^resize_inode"),
    "without flex_bg": ("-O", "^flex_bg,^64bit", "-E", "resize=400000"),
    "clusters": ("-O", "bigalloc,^resize_inode", "-C", "8192"),
}


def test_resize_forms(bench):
    """Each way in which a mounted file system gets descriptors for new groups, and a kill behind it."""
    for name, options in GROWS.items():
        bench.empty_share()
        bench.mkfs(size="40M", block=1024, journal=4, extra=options)
        with open(bench.image, "r+b") as file:
            file.truncate(164000 << 10)
        bench.guest(f"""
            lazy /dev/ubda /mnt; storm storm /mnt $LAZY_SHARE --seed {SEED} --operations 60
            for size in 73729 163841; do
                resize2fs /dev/ubda ${{size}}K 2>&1; storm storm /mnt $LAZY_SHARE --seed {SEED}$size --operations 60
            done
            storm verify /mnt $LAZY_SHARE; : >$LAZY_SHARE/done; sleep 1000""", code=124, kill_when=bench.share / "done")
        goes_home(bench, "storm verify /mnt $LAZY_SHARE; [ $(stat -f -c %b /mnt) -gt 120000 ] || [ $(stat -f -c %S /mnt) -gt 1024 ]; ")
        print(f"   {name}: ok", flush=True)


def test_unmounted_while_read(bench):
    """Somebody reads the whole device over and over while it is mounted and unmounted: all is there each time."""
    bench.mkfs(size="48M", journal=4)
    bench.guest(f"""
        lazy /dev/ubda /mnt; storm storm /mnt $LAZY_SHARE --seed {SEED} --operations 100; umount /mnt
        (while [ ! -e /tmp/end ]; do cat /dev/ubda >/dev/null; echo 1 >/proc/sys/vm/drop_caches; done) & job=$!
        for i in $(seq 1 12); do lazy /dev/ubda /mnt; storm verify /mnt $LAZY_SHARE; touch /mnt; umount /mnt; done
        : >/tmp/end; wait $job""")
    goes_home(bench, "storm verify /mnt $LAZY_SHARE;")


def shown_behind_a_replay(bench, name):
    """What dumpe2fs says of a copy of the image, and the copy, behind what e2fsck -p does to it."""
    copy = bench.copy(name)
    journal.unmark(copy)
    subprocess.run([program("e2fsck"), "-E", "journal_only", "-y", str(copy)], capture_output=True, check=False)
    return subprocess.run([program("dumpe2fs"), "-h", str(copy)], capture_output=True, text=True, check=True).stdout


def test_errors_are_kept(bench):
    """
    An error that the journal has recorded goes into the superblock at the next mount, read-only or not. If the machine dies then, a
    replay has it, although the log had a superblock without it.
    """
    for option in ("rw", "ro"):
        bench.empty_share()
        bench.mkfs(size="32M", journal=4, extra=("-O", "^orphan_file"))
        # The superblock is logged: it has the list of orphans.
        bench.guest("""
            lazy /dev/ubda /mnt errors=remount-ro
            python3 -c 'import os; file = open("/mnt/orphan", "w"); os.unlink("/mnt/orphan"); os.sync()'
            echo 1 >$(echo /sys/fs/ext4*/*/trigger_fs_error); while touch /mnt/x 2>/dev/null; do sleep 0.1; done; sleep 1
            : >$LAZY_SHARE/done; sleep 1000""", code=124, kill_when=bench.share / "done", expect_errors=True)
        for number in (1, 2):
            (bench.share / "done").unlink()
            bench.guest(f"lazy /dev/ubda /mnt {option}; [ {option} = ro ] || mkdir /mnt/{number}; sync; "
                        "dmesg >$LAZY_SHARE/said; sync $LAZY_SHARE/said; : >$LAZY_SHARE/done; sleep 1000",
                        code=124, kill_when=bench.share / "done", expect_errors=True)
            said = (bench.share / "said").read_text()
            check(number > 1 or "error recorded from previous mount" in said, f"the journal had recorded nothing: {said[-2000:]}")
            check("mounting fs with errors" in said or option == "ro", f"the mount does not know of it: {said[-2000:]}")
            shown = shown_behind_a_replay(bench, "replayed")
            check(re.search(r"^Filesystem state: +clean with errors$", shown, re.M) and "trigger_test_error" in shown,
                  f"{option}, mount {number}: the error is forgotten: {shown}")
        done = subprocess.run([program("e2fsck"), "-p", str(bench.folder / "replayed")], capture_output=True, text=True, check=False)
        check(done.returncode in (0, 1), f"{done.stdout}{done.stderr}")
        bench.fsck(bench.folder / "replayed", replay=False)


def test_orphans_are_told(bench):
    """With orphan_file, the superblock says that there may be orphans, also before a mount logs it for another reason."""
    for mount in ("lazy /dev/ubda /mnt", "lazy /dev/ubda /mnt ro; mount -o remount,rw /mnt"):
        bench.empty_share()
        bench.mkfs(size="32M", journal=4, extra=("-O", "orphan_file"))
        # A directory that is somebody's is an orphan without a file that was opened, at which ext4 logs the superblock.
        bench.guest("lazy /dev/ubda /mnt; mkdir /mnt/a; sync; umount /mnt")
        bench.guest(f"{mount}; mkdir /mnt/d; cd /mnt/d; rmdir /mnt/d; sync; : >$LAZY_SHARE/done; sleep 1000",
                    code=124, kill_when=bench.share / "done")
        copy = bench.copy("replayed")
        journal.unmark(copy)
        done = subprocess.run([program("e2fsck"), "-p", str(copy)], capture_output=True, text=True, check=False)
        check(done.returncode in (0, 1) and "Clearing orphaned inode" in done.stdout, f"{mount}: {done.stdout}{done.stderr}")
        # Without lazy, too, e2fsck leaves the orphan file as it was until it looks at all.
        subprocess.run([program("e2fsck"), "-f", "-y", str(copy)], capture_output=True, check=False)
        bench.fsck(copy, replay=False)
        bench.guest("lazy /dev/ubda /mnt; ls -d /mnt/a; [ ! -e /mnt/d ]; umount /mnt")
        bench.fsck(bench.image)


def test_traced(bench):
    """Each tracepoint says what the statistics count."""
    bench.mkfs(size="32M", journal=4)
    said = bench.guest(f"""
        [ -e /sys/kernel/tracing/events ] || mount -t tracefs tracefs /sys/kernel/tracing
        cd /sys/kernel/tracing; for i in events/jbd2*/jbd2_lazy_*/enable; do echo 1 >$i; done
        lazy /dev/ubda /mnt; mkdir -p /mnt/a /mnt/b/{{1..50}}/c; sync; rmdir /mnt/a; sync
        echo 3 >/proc/sys/vm/drop_caches; ls -R /mnt/b >/dev/null; fsfreeze -f /mnt; {STATISTICS}; fsfreeze -u /mnt; umount /mnt
        grep -v '^#' trace""")
    counted = statistics(said)
    lines = {name: re.findall(rf" jbd2_lazy_{name}: dev \d+,\d+ (.*)", said) for name in ("mount", "publish", "read", "forget", "clean")}
    check([line.split(" tail")[0] for line in lines["mount"]] == ["mapped 0"], f"{lines['mount']}")
    check(len(lines["read"]) == counted["reads"] > 0, f"{counted} {lines}")
    check(len(lines["forget"]) == counted["revoked"] > 0, f"{counted} {lines}")
    check(len(lines["publish"]) >= counted["published"] > 0, f"{counted} {lines}")
    written = [re.fullmatch(r"copies (\d+) written (\d+) error 0", line).group(2) for line in lines["clean"]]
    check(sum(map(int, written)) == counted["cleaned"] > 0, f"{counted} {lines}")


def test_nested(bench):
    """A lazy file system in a file of another one, both in storms, and little memory: neither waits for the other, and both have all."""
    bench.mkfs(size="192M", journal=4, extra=("-I", "1024"))
    for name in ("in", "out"):
        (bench.share / name).mkdir()
    mounts = "lazy /dev/ubda /mnt; mkdir -p /tmp/in; losetup /dev/loop0 /mnt/inner; lazy /dev/loop0 /tmp/in; "
    verify = "storm verify /mnt/s $LAZY_SHARE/out; storm verify /tmp/in $LAZY_SHARE/in; "
    said = bench.guest(f"""
        lazy /dev/ubda /mnt; mkdir /mnt/s; truncate -s 64M /mnt/inner; mke2fs -q -F -t ext4 -b 4096 -I 1024 -J size=4 /mnt/inner; umount /mnt
        {mounts}
        storm storm /mnt/s $LAZY_SHARE/out --seed {SEED} --operations 500 --drop-every 50 & job=$!
        storm storm /tmp/in $LAZY_SHARE/in --seed {SEED}9 --operations 500 --drop-every 50
        wait $job; {STATISTICS}; {verify}
        : >$LAZY_SHARE/done; sleep 1000""", code=124,
                       kill_when=bench.share / "done", memory="96M" if bench.slower == 1 else "256M")
    check(min(int(number) for number in re.findall(r"^cleaned (\d+)$", said, re.M)) > 0, f"a cleaner had nothing to do: {said[-2000:]}")
    bench.guest(f"{mounts}{verify} umount /tmp/in; losetup -d /dev/loop0; umount /mnt")
    bench.fsck(bench.image)


def test_remount_of_noload(bench):
    """A mount that has not read the log may not become writable: the replay would write over what is written."""
    bench.mkfs(size="64M", journal=4)
    bench.guest(f"lazy /dev/ubda /mnt; storm storm /mnt $LAZY_SHARE --seed {SEED} --operations 100; umount /mnt")
    before = bench.image.read_bytes()
    said = bench.guest("mount -t $LAZY_TYPE -o ro,noload /dev/ubda /mnt; fails mount -o remount,rw /mnt; fails touch /mnt/new; "
                       "mount -o remount,ro /mnt; umount /mnt")
    check("because of noload; unmount, and mount without noload" in said, said[-2000:])
    check(bench.image.read_bytes() == before, "it was written")
    goes_home(bench, "storm verify /mnt $LAZY_SHARE;")
    # A log with nothing is no reason.
    bench.guest("mount -t $LAZY_TYPE -o ro,noload /dev/ubda /mnt; mount -o remount,rw /mnt; touch /mnt/new; umount /mnt")


# Somebody who holds pages of a device: mapped, or in a pipe that nobody reads.
HOLDER = r"""
import mmap, os, subprocess, sys
device, how, block, options = sys.argv[1:]
log = [int(number) * int(block) for number in open(os.environ["LAZY_SHARE"] + "/places").read().split()]
file = os.open(device, os.O_RDONLY)
size = os.lseek(file, 0, os.SEEK_END)
mapped = mmap.mmap(file, size, mmap.MAP_SHARED, mmap.PROT_READ)
pipes = []
def hold():
    if how == "mapped":
        sum(mapped[at] for at in range(0, size, 4096))
        return
    for reader in [end for pipe in pipes for end in pipe]:
        os.close(reader)
    pipes.clear()
    for at in range(0, size, 65536):
        pipes.append(os.pipe())
        os.splice(file, pipes[-1][1], 65536, offset_src=at)
def sh(command):
    print(command, flush=True)
    subprocess.run(["bash", "-ec", command], check=True)
def same():
    # By a mapping of its own, and by a read; of what is home the page cache may have what the log has.
    sh(f"dd if={device} of=/dev/shm/direct bs=1M iflag=direct status=none; cp {device} /dev/shm/read")
    direct, read = (open(f"/dev/shm/{name}", "rb").read() for name in ("direct", "read"))
    for at in log:
        part = slice(at, at + int(block))
        assert mapped[part] == read[part] == direct[part], f"the page cache has something else at {at}"
mount = "mount -t $LAZY_TYPE -o lazy /dev/ubda /mnt"
for number in range(2):
    hold()
    sh(f"{mount}; rm -rf /mnt/d*; mkdir /mnt/d{number}; for i in $(seq 60); do echo $i >/mnt/d{number}/$i; done; sync")
    hold()
    sh(f"for i in $(seq 20); do mv /mnt/d{number}/$i /mnt/d{number}/x$i; case $i in *5) sync ;; esac; done; umount /mnt")
    same()
sh(f"python3 UNMARK /dev/ubda; e2fsck -fy {options} /dev/ubda || [ $? = 1 ]; {mount}; test $(ls /mnt/d1 | wc -l) = 60; umount /mnt")
"""


def test_device_is_mapped(bench):
    """Who maps the device, or has its pages in a pipe, keeps nothing old of the log: behind an unmount the next to read it is e2fsck."""
    (bench.share / "holder").write_text(HOLDER.replace("UNMARK", f"{HERE}/tests/unmark.py"))
    for how in ("mapped", "in a pipe"):
        for block in (1024, 4096):
            bench.mkfs(size="12M", block=block, journal=4 if block == 4096 else 1)
            (bench.share / "places").write_text(" ".join(map(str, bench.journal().places)))
            said = bench.guest(f"python3 $LAZY_SHARE/holder /dev/ubda '{how}' {block} ''")
            check("checksum" not in said.lower().split("-- kernel")[0], said[-3000:])
            bench.fsck(bench.copy("replayed"))
    outside = bench.folder / "log"
    for disk, megabytes in ((bench.image, 12), (outside, 5)):
        with open(disk, "wb") as file:
            file.truncate(megabytes << 20)
    (bench.share / "places").write_text(" ".join(map(str, range(2, 5 << 10))))
    bench.guest("""
        mke2fs -q -F -O journal_dev -b 1024 /dev/ubdb; mke2fs -q -F -t ext4 -b 1024 -J device=/dev/ubdb /dev/ubda
        python3 $LAZY_SHARE/holder /dev/ubdb mapped 1024 '-j /dev/ubdb'""", disks=[bench.image, outside])


def test_root_is_replayed(bench):
    """
    e2fsck replays the log of a root that is mounted read-only, behind a crash and behind an unmount: it may not become writable then,
    and the next mount has all. A mount behind a crash writes the superblock before it commits.
    """
    # What is below e2fsck has to be its root.
    root = r"""
        mkdir -p /mnt/proc /mnt/dev /mnt/sbin; cp $(PATH=$PATH:/sbin:/usr/sbin command -v e2fsck) /mnt/sbin
        for library in $(ldd /mnt/sbin/e2fsck | grep -o '/[^ ]*'); do mkdir -p /mnt${library%/*}; cp $library /mnt$library; done"""
    for end in ("call shutdown /mnt 2; umount /mnt", "umount /mnt"):
        bench.mkfs(size="64M", journal=4)
        said = bench.guest(f"""{IOCTL}
            lazy /dev/ubda /mnt; {root}; mkdir /mnt/d; for i in $(seq 100); do echo $i >/mnt/d/$i; done; sync; touch /mnt/e; sync; {end}
            lazy /dev/ubda /mnt ro; mount -t proc p /mnt/proc; mount --bind /dev /mnt/dev
            chroot /mnt /sbin/e2fsck -p /dev/ubda; umount /mnt/proc /mnt/dev; fails mount -o remount,rw /mnt; umount /mnt
            lazy /dev/ubda /mnt; ls /mnt/e; test $(ls /mnt/d | wc -l) = 100; mkdir /mnt/n; sync; call shutdown /mnt 2; umount /mnt
            lazy /dev/ubda /mnt; ls -d /mnt/n; rmdir /mnt/n; sync; call shutdown /mnt 2; umount /mnt
            lazy /dev/ubda /mnt; fails ls -d /mnt/n; umount /mnt""", expect_errors=True)
        check("recovering journal" in said and "e2fsck has replayed the journal since the mount" in said, said[-3000:])
        bench.fsck(bench.image)


def test_resized_at_home(bench):
    """resize2fs -f works on what is at home: no lazy mount, and not `ext4lazy off`, writes the log over what it has made."""
    bench.mkfs(size="64M", journal=4)
    bench.guest(f"lazy /dev/ubda /mnt; storm storm /mnt $LAZY_SHARE --seed {SEED} --operations 100; umount /mnt")
    first = bench.image.read_bytes()
    for size in ("96M", "48M", "-M"):
        bench.image.write_bytes(first + bytes(32 << 20))
        # It would be refused.
        journal.unmark(bench.image)
        words = ("-M", str(bench.image)) if size == "-M" else (str(bench.image), size)
        subprocess.run([program("resize2fs"), "-f", *words], check=True, capture_output=True)
        before = bench.image.read_bytes()
        said = bench.guest("fails lazy /dev/ubda /mnt; fails lazy /dev/ubda /mnt ro")
        check(said.count("without replaying the journal; nothing was written") == 2, f"{size}: {said[-2000:]}")
        check(bench.image.read_bytes() == before, f"{size}: a mount has written")
        done = off(bench.image)
        check(done.returncode == 1 and "without a replay; nothing was written" in done.stderr, f"{size}: {done.stdout}{done.stderr}")
        check(bench.image.read_bytes() == before, f"{size}: ext4lazy off has written")


def test_mark_cannot_be_written(bench):
    """
    The superblock cannot be written home when a frozen file system goes on: nothing is committed then to a log that nobody would look at,
    the fsync fails, and what was there before is there, without a replay too.
    """
    end = (60 << 20) >> 9
    bench.mkfs(size="64M")
    said = bench.guest(f"""{IOCTL} {MARKS}
        export DM_DISABLE_UDEV=1
        table() {{ dmsetup suspend --noflush --nolockfs d; echo "$1" | dmsetup load d; dmsetup resume d; }}
        good="0 {end} linear /dev/ubda 0"
        bad="0 8 flakey /dev/ubda 0 0 3600 1 error_writes
8 {end - 8} linear /dev/ubda 8"
        echo "$good" | dmsetup create d; mke2fs -q -F -t ext4 -b 4096 -J size=4 /dev/mapper/d 60M
        lazy /dev/mapper/d /mnt; mkdir /mnt/a; sync; fsfreeze -f /mnt; marks '' "freezing"; table "$bad"; fsfreeze -u /mnt
        fails python3 -c 'import os; os.mkdir("/mnt/b"); os.fsync(os.open("/mnt/b", os.O_RDONLY))'
        dmesg | grep -m1 'Aborting journal'; marks '' "an error"; umount /mnt; table "$good"; dd if=/dev/mapper/d of=$LAZY_SHARE/left bs=1M iflag=direct status=none
        lazy /dev/mapper/d /mnt; ls -d /mnt/a; fails ls -d /mnt/b; mkdir /mnt/c; sync; marks drive "the next mount"; umount /mnt
        lazy /dev/mapper/d /mnt; ls -d /mnt/c; umount /mnt""", expect_errors=True)
    check("while writing superblock" in said, said[-2000:])
    subprocess.run([program("e2fsck"), "-p", str(bench.share / "left")], capture_output=True, check=False)
    bench.fsck(bench.share / "left", replay=False)


UUIDS = ("11111111-2222-3333-4444-555555555555", "11111111-2222-3333-4444-666666666666")


def test_journal_of_another_time(bench):
    """
    A journal on another device that is of an earlier or later time than the file system, wiped, or another's: each mount, and
    `ext4lazy`, refuse it with nothing written. Those of the same time, unmounted or after a crash, go together.
    """
    log, tool = bench.folder / "log", str(HERE / "ext4lazy")
    for disk, megabytes in ((bench.image, 32), (log, 5)):
        with open(disk, "wb") as file:
            file.truncate(megabytes << 20)
    make = (f"mke2fs -q -F -O journal_dev -b 4096 -U {UUIDS[0]} /dev/ubdb; "
            f"mke2fs -q -F -t ext4 -b 4096 -U {UUIDS[1]} -J device=/dev/ubdb /dev/ubda; ")
    crash = {"code": 124, "kill_when": bench.share / "done"}
    times = {
        "first": (make + "lazy /dev/ubda /mnt; mkdir /mnt/d; sync; for i in $(seq 100); do echo $i >/mnt/d/$i; done; umount /mnt", {}),
        "second": ("lazy /dev/ubda /mnt; rm -r /mnt/d; mkdir /mnt/e; sync; for i in $(seq 100); do echo $i >/mnt/e/$i; done; umount /mnt", {}),
        "crashed": ("lazy /dev/ubda /mnt; for i in 1 2 3; do mkdir /mnt/e$i; sync; done; : >$LAZY_SHARE/done; sleep 1000", crash),
        # Killed right behind a mount of an empty log, that has committed nothing yet.
        "begun": ("mount -t $LAZY_TYPE /dev/ubda /mnt; umount /mnt; lazy /dev/ubda /mnt ro; umount /mnt; lazy /dev/ubda /mnt; "
                  ": >$LAZY_SHARE/done; sleep 1000", crash),
        "other": (make + "lazy /dev/ubda /mnt; for i in $(seq 100); do mkdir /mnt/$i; sync; done; umount /mnt", {}),
        "wiped": (make, {}),
    }
    states = {}
    for name, (script, options) in times.items():
        (bench.share / "done").unlink(missing_ok=True)
        bench.guest(script, disks=[bench.image, log], **options)
        states[name] = bench.image.read_bytes(), log.read_bytes()
    mounts = "lazy /dev/ubda /mnt ro", "lazy /dev/ubda /mnt", "mount -t $LAZY_TYPE -o ro /dev/ubda /mnt", "mount -t $LAZY_TYPE /dev/ubda /mnt"
    for own, others, words in (("second", "first", "earlier"), ("first", "second", "later"), ("first", "crashed", "later"),
                               ("crashed", "first", "earlier"), ("second", "wiped", "earlier"), ("second", "other", "another")):
        bench.image.write_bytes(states[own][0])
        log.write_bytes(states[others][1])
        said = bench.guest("; ".join(f"fails {mount}" for mount in mounts), disks=[bench.image, log])
        check(said.count(f"{words} ") >= len(mounts) and said.count("bring both back from the same time") == len(mounts),
              f"{own}, with the journal of {others}: {said[-3000:]}")
        for command in ("status", "off"):
            done = subprocess.run([tool, command, "--journal", str(log), str(bench.image)], capture_output=True, text=True, check=False)
            check(done.returncode == 1 and f"{words} " in done.stdout + done.stderr, f"{own}, {others}: {command}: {done.stdout}{done.stderr}")
        check((bench.image.read_bytes(), log.read_bytes()) == (states[own][0], states[others][1]), f"{own}, {others}: something was written")
        done = subprocess.run([tool, "off", "--force", "--journal", str(log), str(bench.image)], capture_output=True, text=True, check=False)
        check(done.returncode == 0, f"{own}, {others}: --force: {done.stdout}{done.stderr}")
    # The journal of an earlier time has a commit record with a wrong checksum as well, behind others.
    bench.image.write_bytes(states["second"][0])
    log.write_bytes(states["first"][1])
    its = journal.Journal(program("debugfs"), bench.image, log)
    record = [offset for offset, kind in headers(its) if kind == journal.COMMIT][-1]
    block = its.block(record)
    its.put(record, block[:100] + bytes([block[100] ^ 1]) + block[101:])
    before = bench.image.read_bytes(), log.read_bytes()
    said = bench.guest("; ".join(f"fails {mount}" for mount in mounts), disks=[bench.image, log])
    check((bench.image.read_bytes(), log.read_bytes()) == before, "a wrong commit record: something was written")
    check(said.count("the log is damaged") == len(mounts), said[-3000:])
    for name, (image, content) in states.items():
        for mount in mounts[1::2]:
            bench.image.write_bytes(image)
            log.write_bytes(content)
            bench.guest(f"{mount}; umount /mnt; lazy /dev/ubda /mnt; touch /mnt; sync; umount /mnt; lazy /dev/ubda /mnt; umount /mnt; "
                        "mount -t $LAZY_TYPE /dev/ubda /mnt; umount /mnt", disks=[bench.image, log])
            bench.fsck(bench.image, replay=False, external=log)
        if name != "wiped":
            bench.image.write_bytes(image)
            log.write_bytes(content)
            done = subprocess.run([tool, "off", "--journal", str(log), str(bench.image)], capture_output=True, text=True, check=False)
            check(done.returncode == 0 and "everything is home" in done.stdout, f"{name}: {done.stdout}{done.stderr}")
            bench.fsck(bench.image, replay=False, external=log)


def test_discard_of_aborted(bench):
    """With the option discard, blocks that only an aborted transaction has freed keep what they have: the file system uses them."""
    bench.mkfs(size="96M", journal=8)
    said = bench.guest(f"""{IOCTL}
        lazy /dev/ubda /mnt discard; for k in 1 2 3; do
            mkdir /mnt/d$k; (cd /mnt/d$k; seq -f %0200g 1 300 | xargs touch); for i in 1 2 3 4; do head -c 700000 /dev/urandom >/mnt/d$k/f$i; done
        done
        sync; (cd /mnt; md5sum d*/f*) >$LAZY_SHARE/sums
        # A discard is done, and reads as zeros, or this says nothing.
        mkdir /mnt/e; head -c 4096 /dev/urandom >/mnt/e/f; sync; at=$(filefrag -v /mnt/e/f | awk '$1 == "0:" {{ print $4 + 0 }}')
        rm -r /mnt/e; sync; for i in $(seq 50); do [ $(awk '{{ print $12 }}' /sys/block/ubda/stat) = 0 ] || break; sleep 0.1; done
        echo discards $(awk '{{ print $12 }}' /sys/block/ubda/stat) $(dd if=/dev/ubda bs=4096 skip=$at count=1 iflag=direct status=none | tr -d '\\0' | wc -c)
        rm -r /mnt/d*; call shutdown /mnt 2; fails fstrim /mnt; umount /mnt; cat /sys/block/ubda/stat""", expect_errors=True)
    found = re.search(r"^discards (\d+) (\d+)$", said, re.M)
    check(found and int(found.group(1)) > 0 and found.group(2) == "0", f"nothing was discarded: {said[-1500:]}")
    goes_home(bench, "(cd /mnt; md5sum --quiet -c $LAZY_SHARE/sums); test $(ls /mnt/d2 | wc -l) = 304; ")


# The n-th allocation of a mount, and of the unmount behind it, fails, until there is none.
ALLOCATIONS = r"""
import ctypes, os, subprocess
libc = ctypes.CDLL(None, use_errno=True)
kind = os.environ["LAZY_TYPE"].encode()
subprocess.run("mount -t debugfs d /sys/kernel/debug; cd /sys/kernel/debug/failslab; echo N >ignore-gfp-wait; echo 1 >interval; "
               "echo 0 >verbose; echo -1 >times; echo 0 >probability", shell=True, check=True)
def failing(number, work):
    # Files are opened first: that needs memory as well.
    begin, ask, end = (os.open("/proc/self/fail-nth", os.O_RDWR) for _ in range(3))
    os.write(begin, str(number).encode())
    work()
    left = int(os.read(ask, 20).strip(b"\0\n"))
    os.write(end, b"0")
    for file in (begin, ask, end): os.close(file)
    return left
def mount(): return libc.mount(b"/dev/ubda", b"/mnt", kind, 0, b"lazy")
def unmount(): return libc.umount2(b"/mnt", 0)
counts = []
for work, before, behind in ((mount, lambda: 0, unmount), (unmount, mount, unmount)):
    for number in range(1, 3000):
        before()
        left = failing(number, work)
        behind()
        if mount(): raise SystemExit(f"no mount behind allocation {number}: {ctypes.get_errno()}")
        found = sorted(os.listdir("/mnt"))
        unmount()
        if found != sorted(["lost+found", *map(str, range(1, 41))]): raise SystemExit(f"allocation {number}: {found}")
        if left: break
    counts.append(number - 1)
print("allocations", *counts)
"""


def test_allocations_fail(bench):
    """Each allocation of a mount and of an unmount fails in turn: no warning, and all that was there is there."""
    (bench.share / "allocations").write_text(ALLOCATIONS)
    bench.mkfs(size="32M", journal=4)
    said = bench.guest("""
        lazy /dev/ubda /mnt; for i in $(seq 40); do mkdir /mnt/$i; done; umount /mnt
        if [ -e /proc/self/fail-nth ]; then python3 $LAZY_SHARE/allocations; else echo this kernel has no failslab; fi""", expect_errors=True)
    found = re.search(r"^allocations (\d+) (\d+)$|^this kernel has no failslab$", said, re.M)
    check(found and (found.group(1) is None or int(found.group(1)) > 50), said[-2000:])
    print(f"   {found.group(0)}", flush=True)
    bench.fsck(bench.image)


def test_journal_is_cut_off(bench):
    """A journal on another device that is shorter than its log: a lazy mount refuses it, as `ext4lazy` does, and writes nothing."""
    log = bench.folder / "log"
    for disk, megabytes in ((bench.image, 32), (log, 5)):
        with open(disk, "wb") as file:
            file.truncate(megabytes << 20)
    bench.guest("mke2fs -q -F -O journal_dev -b 4096 /dev/ubdb; mke2fs -q -F -t ext4 -b 4096 -J device=/dev/ubdb /dev/ubda; "
                "lazy /dev/ubda /mnt; mkdir /mnt/d; umount /mnt", disks=[bench.image, log])
    first = bench.image.read_bytes(), log.read_bytes()
    with open(log, "r+b") as file:
        file.truncate(3 << 20)
    said = bench.guest("fails lazy /dev/ubda /mnt; fails lazy /dev/ubda /mnt ro", disks=[bench.image, log])
    check(said.count("the journal has 1280 blocks, and its device 768") == 2, said[-2000:])
    check((bench.image.read_bytes(), log.read_bytes()) == (first[0], first[1][:3 << 20]), "something was written")
    done = subprocess.run([str(HERE / "ext4lazy"), "off", "--journal", str(log), str(bench.image)], capture_output=True, text=True, check=False)
    check(done.returncode == 1 and "1280 blocks, and there are 768" in done.stdout + done.stderr, done.stdout + done.stderr)
    log.write_bytes(first[1])
    bench.guest("lazy /dev/ubda /mnt; ls -d /mnt/d; umount /mnt", disks=[bench.image, log])


def test_truncated_by_name(bench):
    """A file in its inode that nobody has opened since the mount is made longer by its name."""
    bench.mkfs(size="32M", journal=4, extra=("-I", "512", "-O", "inline_data"))
    truncate = "python3 -c 'import os, sys; os.truncate(sys.argv[1], 100000)' /mnt/f"
    for mount in ("lazy", "mount -t $LAZY_TYPE"):
        # Without lazy the file reads as zeros until its block is written home.
        bench.guest(f"""
            lazy /dev/ubda /mnt; echo hi >/mnt/f; umount /mnt
            {mount} /dev/ubda /mnt; {truncate}; [ "{mount}" != lazy ] || [ $(head -n 1 /mnt/f) = hi ]; umount /mnt
            lazy /dev/ubda /mnt; [ $(head -n 1 /mnt/f) = hi ] && [ $(stat -c %s /mnt/f) = 100000 ]; umount /mnt""")
    bench.fsck(bench.image)
