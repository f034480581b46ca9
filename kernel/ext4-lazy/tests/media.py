"""Tests of blocks of the drive that cannot be read or written."""

import re

import journal
from bench import BAD_BLOCKS, HERE, SEED, STATISTICS, check, program

KINDS = {"copy of a block", "descriptor block", "revoke block", "commit record", "journal superblock"}
# More blocks than the first commit has.
ONE_COMMIT = 16
# Directories that go leave revoke records.
OLD = """
    lazy /dev/ubda /mnt; mkdir /mnt/kept; python3 -c 'open("/mnt/kept/file", "wb").write(b"kept " * 3000)'
    for i in 0 1 2; do mkdir /mnt/old$i; touch /mnt/old$i/$(seq -s _ 50); done; sync; """
UNMOUNTED = OLD + "umount /mnt"
KILLED = OLD + ": >$LAZY_SHARE/done; sleep 1000"
OTHER_DEVICE = "mke2fs -q -F -O journal_dev -b 4096 /dev/ubdb; mke2fs -q -F -t ext4 -b 4096 -J device=/dev/ubdb /dev/ubda; "

# A file system that is on d as well, and its journal on j. A device that is taken for one without a cache gets no flushes, which
# would wait for what is suspended.
ON_DM = """
    export DM_DISABLE_UDEV=1
    mke2fs -q -F -O journal_dev -b 4096 /dev/ubdb
    # The superblock is not logged for orphans, and nothing else has copies that nobody asked for.
    mke2fs -q -F -t ext4 -b 4096 -O orphan_file -E lazy_itable_init=0 -J device=/dev/ubdb /dev/ubda
    # With newer kernels a table gives the cache back.
    no_cache() { for cache in /sys/block/{ubd,vd,dm-}*/queue/write_cache; do [ ! -e $cache ] || echo "write through" >$cache; done; }
    no_cache
    dmsetup create d --table "0 $(blockdev --getsz /dev/ubda) linear /dev/ubda 0"
    dmsetup create j --table "0 $(blockdev --getsz /dev/ubdb) linear /dev/ubdb 0"
    no_cache
    suspended() { dmsetup suspend --noflush --nolockfs $1; }
"""


def test_media_errors(bench):
    """Blocks that cannot be read or written: an error with the block, never a hang, and nothing lost when it is mended."""
    bench.mkfs()
    places = bench.journal().places
    first, last = min(places), max(places)
    check(last - first < len(places) + 16, "the journal is in pieces")
    sectors = (192 << 20) >> 9
    log_start, log_end = first * 8 + 8, (last + 1) * 8
    script = f"""
        export DM_DISABLE_UDEV=1
        good="0 {sectors} linear /dev/ubda 0"
        bad_log="0 {log_start} linear /dev/ubda 0
{log_start} {log_end - log_start} error
{log_end} {sectors - log_end} linear /dev/ubda {log_end}"
        bad_home="0 {log_start} flakey /dev/ubda 0 0 3600 1 error_writes
{log_start} {log_end - log_start} linear /dev/ubda {log_start}
{log_end} {sectors - log_end} flakey /dev/ubda {log_end} 0 3600 1 error_writes"
        table() {{ dmsetup suspend --noflush --nolockfs d; echo "$1" | dmsetup load d; dmsetup resume d; }}
        dmsetup create d --table "$good"
        lazy /dev/mapper/d /mnt; storm storm /mnt $LAZY_SHARE --seed {SEED} --operations 200
        echo 3 >/proc/sys/vm/drop_caches
        echo == the log cannot be read
        table "$bad_log"; fails ls -lR /mnt >/dev/null
        dmesg | grep -m1 'cannot read log block'
        table "$good"; storm verify /mnt $LAZY_SHARE
        echo == home cannot be written
        # With nothing to commit, or when the commit is done too soon, ext4 flushes the device first, and dm-flakey refuses that too.
        table "$bad_home"
        for i in $(seq 20); do
            touch /mnt; fails fsfreeze -f /mnt
            ! dmesg | grep -q 'cannot write block .* home' || break
        done
        dmesg | grep -m1 'cannot write block .* home'
        fails touch /mnt/x; umount /mnt
        table "$good"; lazy /dev/mapper/d /mnt; storm verify /mnt $LAZY_SHARE; umount /mnt
        """
    bench.guest(script, expect_errors=True, timeout=120)
    bench.fsck(bench.image)


def test_bad_blocks(bench):
    """One block after the other can be neither read nor written: errors, no hang, and nothing lost when it is mended."""
    bench.mkfs(size="32M", journal=5, extra=("-I", "1024", "-N", "4000"))
    # Of the first storm, metadata is at home alone.
    bench.guest(f"""
        mount -t ext4 /dev/ubda /mnt; storm storm /mnt $LAZY_SHARE --seed {SEED}9 --operations 500; umount /mnt
        lazy /dev/ubda /mnt; storm storm /mnt $LAZY_SHARE --seed {SEED} --operations 100; umount /mnt""")
    bench.copy("share/first")
    log = bench.journal()
    copies, replayed = log.copies(), bench.copy("replayed")
    bench.fsck(replayed)
    # Homes of what is in the log, the log from its superblock on, and what is at home alone.
    homes, places = set(copies), set(log.places)
    alone = bench.metadata(replayed) - homes - places
    check(homes and len(alone) > 20, f"{len(homes)} blocks are in the log, {len(alone)} of metadata are not")
    blocks = sorted(homes | places | alone)
    said = bench.guest(f"""
        export DM_DISABLE_UDEV=1
        python3 {HERE}/tests/bad_blocks.py $LAZY_SHARE/first $LAZY_SHARE {BAD_BLOCKS} {SEED} {" ".join(map(str, blocks))}""",
                       expect_errors=True, timeout=120 + 60 * min(BAD_BLOCKS, len(blocks)))
    found = re.search(r"^.* bad blocks of .*$", said, re.M).group(0)
    asked, met = map(int, re.search(r"^(\d+) bad .* (\d+) of them met", found).groups())
    check(met > 0.8 * asked, found)
    print(f"   {len(homes)} homes of copies, {len(places)} blocks of the log, {len(alone)} of other metadata: {found}", flush=True)


def test_log_cannot_be_written(bench):
    """
    One block of the log after the other cannot be written, of each kind: the kernel says which one it is and what it is for, nothing
    hangs, and whatever an fsync has promised is there when it is mended.
    """
    log, both = bench.folder / "log", [bench.image, bench.folder / "log"]
    for name, script, disks, most in (("unmounted", UNMOUNTED, both[:1], max(BAD_BLOCKS, ONE_COMMIT)),
                                      ("another device", OTHER_DEVICE + UNMOUNTED, both, ONE_COMMIT),
                                      ("at the mount after a crash", OTHER_DEVICE + KILLED, both, 0)):
        bench.empty_share()
        bench.mkfs(size="32M", journal=4)
        with open(log, "wb") as file:
            file.truncate(5 << 20)
        bench.guest(script, disks=disks, **({} if most else {"code": 124, "kill_when": bench.share / "done"}))
        if not most:
            # What a power cut leaves of a transaction.
            its = journal.Journal(program("debugfs"), bench.image, log)
            end, sequence = its.head()
            its.put(its.after(end, 3), its.commit_record(sequence))
        bench.copy("share/first")
        bench.copy("log", "share/log")
        its = "$LAZY_SHARE/log" if len(disks) > 1 else "-"
        said = bench.guest(f"export DM_DISABLE_UDEV=1; python3 {HERE}/tests/bad_log.py $LAZY_SHARE/first {its} {most}", code=None,
                           expect_errors=True, timeout=120 + 30 * most).split("-- kernel")[0]
        print(f"   {name}: {'; '.join(said.strip().splitlines()[-len(KINDS) - 2:])}", flush=True)
        check(said.strip().endswith(" 0 of them with something wrong"), f"{name}: {said[-3000:]}")
        met = {kind for kind, _ in re.findall(r"^(.*): (\d+)$", said, re.M)}
        # There, the number of an interrupted transaction is used up by a commit record.
        missing = (KINDS if most else {"commit record"}) - met
        check(not missing, f"{name}: no bad {', '.join(missing)} was met")


def empty(bench):
    """The two devices that ON_DM makes a file system of."""
    for image, megabytes in ((bench.image, 32), (bench.folder / "log", 5)):
        with open(image, "wb") as file:
            file.truncate(megabytes << 20)


def test_errors_of_old_copies(bench):
    """
    The cleaner waits for a block that the drive then gives up, in the log or at home; meanwhile a commit has a newer copy of it. The
    error is no matter: nothing is aborted, and all is there.
    """
    log = bench.folder / "log"
    for where, device, block in (("the log", "j", "$2"), ("home", "d", "$1")):
        empty(bench)
        said = bench.guest(rf"""{ON_DM}
            [ -e /sys/kernel/tracing/events ] || mount -t tracefs tracefs /sys/kernel/tracing
            echo 1 | tee /sys/kernel/tracing/events/jbd2*/jbd2_lazy_publish/enable >/dev/null
            # Changes a file, and says home and copy of the only block that the commit has.
            changed() {{
                echo >/sys/kernel/tracing/trace; chmod $1 /mnt/20; sync /mnt/20
                sed -n 's/.* jbd2_lazy_publish: .* block \([0-9]*\) log block \([0-9]*\) .*/\1 \2/p' /sys/kernel/tracing/trace
            }}
            # One request, that of the cleaner.
            stuck() {{
                for i in 1 2 3; do read reads writes </sys/block/$dm/inflight; [ $((reads + writes)) = 1 ] || return 1; sleep 0.1; done
            }}
            mounted() {{ lazy /dev/mapper/d /mnt rw,journal_path=/dev/mapper/j; }}
            mounted; touch /mnt/{{1..40}}; sync
            set -- $(changed 600); [ $# = 2 ]; home=$1 at=$(({block} * 8))
            disk=$(dmsetup table {device} | cut -d' ' -f4) dm=dm-$(dmsetup info -c --noheadings -o minor {device})
            dmsetup create bad --table "0 8 linear $disk $at"
            printf '%s\n' "0 $at linear $disk 0" "$at 8 linear /dev/mapper/bad 0" \
                "$((at + 8)) $(($(blockdev --getsz /dev/mapper/{device}) - at - 8)) linear $disk $((at + 8))" | dmsetup load {device}
            suspended {device}; dmsetup resume {device}; no_cache; suspended bad
            n=100; until stuck; do n=$((n + 1)); touch /mnt/$n; sync /mnt/$n; done
            {STATISTICS} | grep -x 'cleaned 0'; set -- $(changed 640); [ $1 = $home ]
            dmsetup load bad --table "0 8 error"; dmsetup resume bad
            until {STATISTICS} | grep -q '^clean_batches [1-9]' || dmesg | grep -q 'JBD2.*: error -5'; do sleep 0.1; done
            suspended bad; dmsetup load bad --table "0 8 linear $disk $at"; dmsetup resume bad
            touch /mnt/last; sync /mnt/last; umount /mnt
            mounted; [ $(stat -c %a /mnt/20) = 640 ]; [ -e /mnt/$n ]; [ -e /mnt/last ]; umount /mnt""",
                           disks=[bench.image, log])
        check(not re.search(r"JBD2: .*cannot|Aborting journal", said.split("-- kernel")[1]), f"{where}: {said[-3000:]}")
        found = "[ $(stat -c %a /mnt/20) = 640 ]; [ -e /mnt/last ]"
        bench.guest(f"mount -t ext4 -o journal_path=/dev/ubdb /dev/ubda /mnt; {found}; umount /mnt", disks=[bench.image, log])
        bench.fsck(bench.image, replay=False, external=log)
