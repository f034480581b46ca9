"""Tests of what ext4 may have beside lazy writeback: features, external and large journals, resizing."""

import random
import subprocess

import journal
from bench import HERE, KILLS, OPERATIONS, SEED, STATISTICS, check, program, statistics
from damage import headers

# What mke2fs is to do, by the name of the feature.
FEATURES = {
    "inline data": ("-O", "inline_data", "-I", "256"),
    "clusters": ("-O", "bigalloc", "-C", "16384"),
    "quota": ("-O", "quota", "-E", "quotatype=usrquota:grpquota:prjquota"),
    "large attributes": ("-O", "ea_inode"),
    "checksum seed": ("-O", "metadata_csum_seed"),
    "no checksums": ("-O", "^metadata_csum,^64bit"),
    "blocks by lists": ("-O", "^extents,^64bit,^flex_bg"),
    "orphan file": ("-O", "orphan_file"),
    "large directories": ("-O", "large_dir,project"),
}

# The same, and of which kind a storm's directory is to be (kinds.py).
KINDS = {
    "names of any case": (("-O", "casefold", "-E", "encoding=utf8"), "casefold"),
    "encrypted": (("-O", "encrypt"), "encrypt"),
    "encrypted names of any case": (("-O", "casefold,encrypt", "-E", "encoding=utf8"), "casefold,encrypt"),
    "fs-verity": (("-O", "verity"), "verity"),
}


def test_features(bench):
    """With each feature: a storm that wraps the log, remounts, a replay; e2fsck finds nothing."""
    for name, (options, kind) in ({name: (options, "") for name, options in FEATURES.items()} | KINDS).items():
        bench.empty_share()
        bench.mkfs(size="96M", journal=4, extra=options)
        top = "/mnt/top" if kind else "/mnt"
        unlock = "storm unlock /mnt" if "encrypt" in kind else ":"
        said = bench.guest(f"""
            lazy /dev/ubda /mnt; {f"storm begin {top} --kind {kind}" if kind else ""}
            storm storm {top} $LAZY_SHARE --seed {SEED} --operations 1600 --drop-every 300 --kind "{kind}"
            head -c 200000 /dev/urandom >/tmp/value; : >/mnt/large
            python3 -c 'import os, sys; os.setxattr("/mnt/large", "user.large", open("/tmp/value", "rb").read(60000))' || true
            # The cleaner may have written all home that there was.
            sync; rm /mnt/large; sync; touch /mnt; sync; {STATISTICS}; storm verify {top} $LAZY_SHARE; umount /mnt
            lazy /dev/ubda /mnt; {unlock}; storm verify {top} $LAZY_SHARE; umount /mnt""")
        numbers = statistics(said)
        check(numbers["cleaned"] > 0 and numbers["mapped"] > 0, f"{name}: {numbers}")
        bench.fsck(bench.copy("replayed"))
        bench.guest(f"mount -t ext4 -o ro /dev/ubda /mnt; {unlock}; storm verify {top} $LAZY_SHARE", disks=[bench.folder / "replayed"])
        print(f"   {name}: {numbers['published']} blocks logged, {numbers['cleaned']} written home", flush=True)


# A file in its inode gets a block: by each call that does that, and for no other reason.
CONVERT = """python3 -c '
import mmap, os, sys
def fallocated(fd): os.posix_fallocate(fd, 0, 9000)
def truncated(fd): os.ftruncate(fd, 30000)
def mapped(fd):
    with mmap.mmap(fd, 6) as words: words[5:6] = b"y"
for convert in (fallocated, truncated, mapped):
    for number in range(int(sys.argv[2])):
        fd = os.open(f"{sys.argv[1]}/{convert.__name__}{number}", os.O_RDWR | os.O_CREAT)
        os.write(fd, b"HELLOx"); os.fsync(fd); convert(fd); os.fsync(fd); os.close(fd)
' /mnt """


def test_inline_files_get_blocks(bench):
    """The block that a file gets when its data leaves the inode is data: it is at home, written over there, and freed."""
    def read(words):
        """All files begin with them; the file system's own pages are dropped before."""
        return f"echo 3 >/proc/sys/vm/drop_caches; for i in /mnt/*ed*; do [ $(head -c 5 $i) = {words} ]; done; "

    external = bench.folder / "log"
    for log in (None, external):
        bench.empty_share()
        bench.mkfs(size="32M", journal=4, extra=("-O", "inline_data", "-I", "256"))
        disks, journal_of_it = [bench.image], ""
        if log:
            with open(external, "wb") as file:
                file.truncate(8 << 20)
            disks, journal_of_it = [bench.image, external], """
                mke2fs -q -F -O journal_dev -b 4096 /dev/ubdb
                mke2fs -q -F -t ext4 -b 4096 -O inline_data -I 256 -J device=/dev/ubdb /dev/ubda"""
        clean = "fsfreeze -f /mnt; fsfreeze -u /mnt; "
        bench.guest(f"""{journal_of_it}
            lazy /dev/ubda /mnt; {CONVERT} 5; sync; {read("HELLO")}
            # What is written over is newer than what the log may have, for the cleaner and after a remount.
            for i in /mnt/*ed*; do printf LATER | dd of=$i conv=notrunc,fsync status=none; done
            {read("LATER")} umount /mnt; lazy /dev/ubda /mnt; {read("LATER")} {clean} {read("LATER")}
            # Files that take the blocks of others that had such a one, in a file system that is full.
            rm /mnt/*ed*; {CONVERT} 20; sync; rm /mnt/*ed*; sync
            python3 -c 'with open("/mnt/big", "wb", 0) as file:
                try:
                    while file.write(b"B" * (1 << 20)): pass
                except OSError: pass'
            sync; umount /mnt; lazy /dev/ubda /mnt
            [ $(tr -d B </mnt/big | wc -c) = 0 ]; {clean} echo 3 >/proc/sys/vm/drop_caches
            [ $(tr -d B </mnt/big | wc -c) = 0 ]; rm /mnt/big; sync
            {CONVERT} 5; for i in /mnt/*ed*; do printf LATER | dd of=$i conv=notrunc,fsync status=none; done
            : >$LAZY_SHARE/done; sleep 1000""", disks=disks, code=124, kill_when=bench.share / "done")
        # The replay.
        bench.guest(f"mount -t ext4 /dev/ubda /mnt; {read('LATER')} umount /mnt; e2fsck -f -n {'-j /dev/ubdb' if log else ''} /dev/ubda",
                    disks=disks)


def test_quota_is_kept(bench):
    """Limits of users are kept over remounts and a kill, and e2fsck counts what the quota files say."""
    bench.mkfs(extra=FEATURES["quota"])
    bench.guest("""
        lazy /dev/ubda /mnt; mkdir -m 777 /mnt/d; touch /mnt/d/f; chown 1000 /mnt/d/f
        for i in $(seq 1 200); do echo $i >/mnt/d/$i; chown $((1000 + i % 7)) /mnt/d/$i; done; sync
        rm /mnt/d/1*; umount /mnt; lazy /dev/ubda /mnt
        for i in $(seq 300 400); do echo $i >/mnt/d/$i; chown 1003 /mnt/d/$i; done; sync
        : >$LAZY_SHARE/done; sleep 1000""", code=124, kill_when=bench.share / "done")
    bench.fsck(bench.copy("replayed"))
    bench.guest("lazy /dev/ubda /mnt; rm /mnt/d/2*; umount /mnt")
    bench.fsck(bench.image)


def test_external_journal(bench):
    """The journal is another device: storms, remounts, a kill; then lazy mount and replay have the same tree."""
    log = bench.folder / "log"
    for image, megabytes in ((bench.image, 192), (log, 8)):
        with open(image, "wb") as file:
            file.truncate(megabytes << 20)
    disks = [bench.image, log]
    said = bench.guest(f"""
        mke2fs -q -F -O journal_dev -b 4096 /dev/ubdb; mke2fs -q -F -t ext4 -b 4096 -I 1024 -J device=/dev/ubdb /dev/ubda
        lazy /dev/ubda /mnt; storm storm /mnt $LAZY_SHARE --seed {SEED} --operations 600 --drop-every 100
        {STATISTICS}; umount /mnt
        lazy /dev/ubda /mnt; storm verify /mnt $LAZY_SHARE
        fsfreeze -f /mnt; {STATISTICS} | grep -qx 'mapped 0'; fsfreeze -u /mnt; umount /mnt""", disks=disks)
    numbers = statistics(said)
    check(numbers["cleaned"] > 0 and numbers["mapped"] > 0, f"the log was not used: {numbers}")
    chance = random.Random(SEED)
    for number in range(max(2, KILLS // 2)):
        bench.guest(f"""
            lazy /dev/ubda /mnt; storm verify /mnt $LAZY_SHARE; storm forget-touched /mnt $LAZY_SHARE
            storm storm /mnt $LAZY_SHARE --seed {SEED}{number} --operations 1000000 --sync-every 20 --drop-every 100
            """, disks=disks, code=124, kill_after=chance.uniform(0.3, 4.0))
        # e2fsck looks for the journal by what its own copy of the device is called, and takes the first.
        copies = [bench.copy("replayed"), bench.copy("log", "replayed-log")]
        bench.guest("unmark /dev/ubda; e2fsck -E journal_only -y -j /dev/ubdb /dev/ubda || [ $? -le 1 ]; e2fsck -f -n -j /dev/ubdb /dev/ubda; "
                    "mount -t ext4 /dev/ubda /mnt; storm verify /mnt $LAZY_SHARE; storm digest /mnt >$LAZY_SHARE/digest",
                    disks=copies)
        copies = [bench.copy("other"), bench.copy("log", "other-log")]
        bench.guest("lazy /dev/ubda /mnt; storm verify /mnt $LAZY_SHARE; storm digest /mnt | cmp - $LAZY_SHARE/digest",
                    disks=copies)
    # The kills may have come before anything was logged.
    bench.guest("lazy /dev/ubda /mnt; mkdir /mnt/last; sync; rmdir /mnt/last; sync; umount /mnt", disks=disks)
    # Everything goes home from a journal in a file; with a commit record gone, nothing does.
    log_file = journal.Journal(program("debugfs"), bench.image, log)
    commit = next(offset for offset, kind in headers(log_file) if kind == journal.COMMIT)
    kept = log_file.block(commit)
    command = [str(HERE / "ext4lazy"), "off", "--journal", str(log), str(bench.image)]
    log_file.put(commit, bytes(log_file.block_size))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    check(done.returncode == 1 and "left out" in done.stdout, f"{done.stdout}{done.stderr}")
    log_file.put(commit, kept)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"{done.stdout}{done.stderr}")
    bench.fsck(bench.image, replay=False, external=log)


def test_empty_external_journal(bench):
    """Killed right behind its mount: nothing is in the journal on another device, and `ext4lazy off` says that all is home."""
    log = bench.folder / "log"
    for image, megabytes in ((bench.image, 32), (log, 8)):
        with open(image, "wb") as file:
            file.truncate(megabytes << 20)
    bench.guest("""
        mke2fs -q -F -O journal_dev -b 4096 /dev/ubdb; mke2fs -q -F -t ext4 -b 4096 -J device=/dev/ubdb /dev/ubda
        lazy /dev/ubda /mnt; : >$LAZY_SHARE/done; sleep 1000""", disks=[bench.image, log], code=124, kill_when=bench.share / "done")
    done = subprocess.run([str(HERE / "ext4lazy"), "off", "--journal", str(log), str(bench.image)], capture_output=True,
                          text=True, check=False)
    check(done.returncode == 0 and "everything is home" in done.stdout, f"{done.stdout}{done.stderr}")
    bench.guest("lazy /dev/ubda /mnt; touch /mnt/f; umount /mnt; mount -t ext4 /dev/ubda /mnt; ls /mnt/f; umount /mnt",
                disks=[bench.image, log])
    bench.fsck(bench.image, replay=False, external=log)


def test_resize(bench):
    """A mounted file system is made larger, in the middle of writing; the guest is killed at any moment of that."""
    program("resize2fs")
    chance = random.Random(SEED)
    for number in range(max(2, KILLS // 2)):
        bench.empty_share()
        bench.mkfs(size="64M", journal=4, extra=("-E", "resize=200000"))
        with open(bench.image, "r+b") as file:
            file.truncate(400 << 20)
        bench.guest(f"""
            lazy /dev/ubda /mnt; storm storm /mnt $LAZY_SHARE --seed {SEED}{number} --operations 60
            [ {number} = 0 ] || : >$LAZY_SHARE/begins
            for size in 100 150 260 400; do
                resize2fs /dev/ubda ${{size}}M; storm storm /mnt $LAZY_SHARE --seed $size --operations 30
            done
            storm verify /mnt $LAZY_SHARE; [ $(stat -f -c %b /mnt) -gt 80000 ]
            umount /mnt; lazy /dev/ubda /mnt; storm verify /mnt $LAZY_SHARE; [ $(stat -f -c %b /mnt) -gt 80000 ]
            : >$LAZY_SHARE/begins; sleep 1000""", code=124, kill_when=bench.share / "begins",
                    kill_after=bench.slower * chance.uniform(0, 1.5))
        bench.fsck(bench.copy("replayed"))
        # Interrupted, all is written home, and the mount has to be tried again.
        bench.guest("""lazy /dev/ubda /mnt || lazy /dev/ubda /mnt; storm verify /mnt $LAZY_SHARE; resize2fs /dev/ubda
            umount /mnt; lazy /dev/ubda /mnt; storm verify /mnt $LAZY_SHARE; [ $(stat -f -c %b /mnt) -gt 80000 ]; umount /mnt
            """)
        bench.fsck(bench.image)


def test_large_journal(bench):
    """A journal of 8 GiB: blocks behind 4 GiB of it are mapped, and it wraps."""
    with open(bench.image, "wb") as file:
        file.truncate(24 << 30)
    subprocess.run([program("mke2fs"), "-q", "-F", "-t", "ext4", "-J", "size=8192", "-N", "100000",
                    "-E", "lazy_journal_init=1,lazy_itable_init=1", str(bench.image)], check=True)
    bench.guest("lazy /dev/ubda /mnt; touch /mnt/first; sync; fsfreeze -f /mnt; fsfreeze -u /mnt; umount /mnt")
    log = bench.journal()
    # What is in the log goes home; then it goes on near its end.
    bench.fsck(bench.image)
    log.start_at(log.maxlen - 60)
    subprocess.run([program("debugfs"), "-w", "-R", "feature needs_recovery", str(bench.image)], check=True, capture_output=True)
    said = bench.guest(f"""
        lazy /dev/ubda /mnt; ls /mnt/first; rm /mnt/first
        storm storm /mnt $LAZY_SHARE --seed {SEED} --operations {OPERATIONS // 5} --drop-every 60; {STATISTICS}
        umount /mnt; lazy /dev/ubda /mnt; storm verify /mnt $LAZY_SHARE; {STATISTICS}; umount /mnt""")
    numbers = statistics(said.rsplit("mapped ", 1)[0])
    check(numbers["published"] > 60 and numbers["cleaned"] == 0, f"it did not wrap: {numbers}")
    bench.fsck(bench.copy("replayed"))
    print(f"   {numbers}", flush=True)


def test_huge_journal(bench):
    """A journal on a device of 4 TiB, of as many blocks as it can have: its log wraps at its end, and the map is not refused."""
    log = bench.folder / "log"
    blocks = (1 << 32) - 1
    for image, size in ((bench.image, 64 << 20), (log, blocks << 10)):
        with open(image, "wb") as file:
            file.truncate(size)
    disks = [bench.image, log]
    # Without checksums: its superblock is changed here.
    bench.guest(f"""
        mke2fs -q -F -O journal_dev -b 1024 -E lazy_journal_init=1,nodiscard /dev/ubdb {blocks}
        mke2fs -q -F -t ext4 -b 1024 -O ^metadata_csum -J device=/dev/ubdb /dev/ubda
        lazy /dev/ubda /mnt; touch /mnt/first; fsfreeze -f /mnt; fsfreeze -u /mnt; umount /mnt
        mount -t ext4 /dev/ubda /mnt; ls /mnt/first; umount /mnt""", disks=disks)
    of_the_log = journal.Journal(program("debugfs"), bench.image, log)
    check(of_the_log.maxlen == blocks and of_the_log.start == 0, f"{of_the_log.maxlen} blocks, from {of_the_log.start}")
    of_the_log.start_at(blocks - 60)
    subprocess.run([program("debugfs"), "-w", "-R", "feature needs_recovery", str(bench.image)], check=True, capture_output=True)
    said = bench.guest(f"""
        lazy /dev/ubda /mnt; ls /mnt/first; rm /mnt/first; storm storm /mnt $LAZY_SHARE --seed {SEED} --operations 100 --drop-every 20
        {STATISTICS}; : >$LAZY_SHARE/done; sleep 1000""", disks=disks, code=124, kill_when=bench.share / "done")
    numbers = statistics(said)
    of_the_log.read_superblock()
    check(numbers["published"] > 60 and of_the_log.start >= blocks - 60, f"it did not wrap: {of_the_log.start}, {numbers}")
    # Behind a kill: a lazy mount, and a replay of the same.
    bench.guest("lazy /dev/ubda /mnt; storm verify /mnt $LAZY_SHARE; umount /mnt", disks=disks)
    bench.guest("mount -t ext4 /dev/ubda /mnt; storm verify /mnt $LAZY_SHARE; umount /mnt", disks=disks)
    bench.fsck(bench.image, replay=False, external=log)
    print(f"   {numbers}", flush=True)
