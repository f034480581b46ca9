"""Tests of a file system that is used for long: killed, remounted, frozen, with a larger journal in each age."""

import random
import re
import subprocess

from bench import KILLS, OPERATIONS, ROUNDS, SEED, STATISTICS, check, program, statistics

# Sizes of the journal, in MiB.
AGES = (16, 64, 256, 1024)


def go_on(bench, seed, seconds, options=""):
    """What was synced is there, and a storm goes on with it until the guest is killed."""
    bench.guest(f"""
        lazy /dev/ubda /mnt; storm verify /mnt $LAZY_SHARE; storm forget-touched /mnt $LAZY_SHARE
        storm storm /mnt $LAZY_SHARE --seed {seed} --operations 1000000 --sync-every 20 --drop-every 100 {options}
        """, code=124, kill_after=seconds)


def is_as_replayed(bench):
    """A lazy mount has what was synced, and the same tree as a replay, in which e2fsck finds nothing."""
    replayed, other = bench.copy("replayed"), bench.copy("other")
    bench.fsck(replayed)
    bench.guest("""
        mount -t ext4 -o ro,noload /dev/ubda /mnt; storm digest /mnt >/tmp/1
        mkdir /tmp/lazy; lazy /dev/ubdb /tmp/lazy ro; storm digest /tmp/lazy >/tmp/2; cmp /tmp/1 /tmp/2
        storm verify /tmp/lazy $LAZY_SHARE
        """, disks=[replayed, other])


def test_kill(bench):
    """The guest is killed at any moment: what was synced is there, by lazy mount and by replay alike."""
    chance = random.Random(SEED)
    bench.mkfs(extra=("-I", "1024"))
    for number in range(KILLS):
        go_on(bench, SEED * 1000 + number, chance.uniform(0.3, 6.0))
        is_as_replayed(bench)


# What comes between two storms, while the file system is mounted.
BETWEEN = {
    "unmounted": "umount /mnt; lazy /dev/ubda /mnt",
    "unmounted, and mounted without lazy": "umount /mnt; mount -t ext4 /dev/ubda /mnt; umount /mnt; lazy /dev/ubda /mnt",
    "read-only for a moment": "mount -o remount,ro /mnt; mount -o remount,rw /mnt",
    "frozen for a moment": "fsfreeze -f /mnt; fsfreeze -u /mnt",
    "out of memory": "echo 3 >/proc/sys/vm/drop_caches",
}


def test_ageing(bench):
    """
    The journal is filled once; then storms with fsync, and in between a kill, or two remounts or the like; nothing is lost
    in any journal's size.
    """
    chance = random.Random(SEED)
    for age in AGES:
        bench.empty_share()
        with open(bench.image, "wb") as file:
            file.truncate((512 + 3 * age) << 20)
        subprocess.run([program("mke2fs"), "-q", "-F", "-t", "ext4", "-I", "1024", "-J", f"size={age}", "-E", "lazy_journal_init=1",
                        str(bench.image)], check=True)
        said = bench.guest("lazy /dev/ubda /mnt; storm fill /mnt; umount /mnt", timeout=600)
        print(f"   a journal of {age} MiB: {re.search('^filled .*', said, re.M).group(0)}", flush=True)
        published = cleaned = mapped = 0
        for number in range(ROUNDS):
            seed = f"{SEED}{age}{number}"
            between = [chance.choice(list(BETWEEN.values())) for _ in range(2)]
            said = bench.guest(f"""
                lazy /dev/ubda /mnt; storm verify /mnt $LAZY_SHARE; storm forget-touched /mnt $LAZY_SHARE
                for number in 1 2 3; do
                    storm storm /mnt $LAZY_SHARE --seed {seed}$number --operations {OPERATIONS // 5} --fsync --drop-every 300
                    case $number in 1) {between[0]} ;; 2) {between[1]} ;; esac
                    storm verify /mnt $LAZY_SHARE
                done
                {STATISTICS}; umount /mnt""", timeout=240 + OPERATIONS)
            numbers = statistics(said)
            published, cleaned, mapped = published + numbers["published"], cleaned + numbers["cleaned"], max(mapped, numbers["mapped"])
            go_on(bench, seed, bench.slower * chance.uniform(0.3, 4.0), "--fsync")
            is_as_replayed(bench)
        check(mapped > 0, "nothing was in the log")
        print(f"   then {published} blocks logged, {cleaned} written home by the last of several mounts; "
              f"{mapped} in the log at most", flush=True)
