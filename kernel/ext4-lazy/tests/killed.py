"""Tests of how `ext4lazy off` is run: killed at any of its writes, several at once, on files with odd names."""

import os
import random
import shutil
import signal
import subprocess
import time

import journal
from bench import DAMAGES, HERE, SEED, check, program
from damage import off
from superblock import contents, make, right

# For LD_PRELOAD: of all programs of a group together, the write of this number to a file kills the group before it is done.
SHIM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void count(int file)
{
    struct stat it, other;
    long number = 0, last = atol(getenv("KILL_AT"));
    int counter;

    if (fstat(file, &it) || stat(getenv("KILL_FILE"), &other) || it.st_ino != other.st_ino || it.st_dev != other.st_dev)
        return;
    counter = open(getenv("KILL_COUNT"), O_RDWR | O_CREAT, 0600);
    if (syscall(SYS_pread64, counter, &number, sizeof(number), 0) < 0)
        abort();
    if (++number == last)
        kill(0, SIGKILL);
    syscall(SYS_pwrite64, counter, &number, sizeof(number), 0);
    close(counter);
}

ssize_t write(int file, const void *data, size_t length)
{
    count(file);
    return syscall(SYS_write, file, data, length);
}

ssize_t pwrite64(int file, const void *data, size_t length, off_t at)
{
    count(file);
    return syscall(SYS_pwrite64, file, data, length, at);
}

ssize_t pwrite(int file, const void *data, size_t length, off_t at)
{
    return pwrite64(file, data, length, at);
}
"""


class Killer:
    """Runs `ext4lazy off`, and kills it and what it has started before a write to the image."""

    def __init__(self, folder, image):
        self.image, self.count, self.library = image, folder / "count", folder / "shim.so"
        (folder / "shim.c").write_text(SHIM)
        subprocess.run([program("cc"), "-shared", "-fPIC", "-o", str(self.library), str(folder / "shim.c")], check=True)

    def off(self, number, *options):
        """Whether it was killed; 0 kills never. Then the number of its writes is read with `writes`."""
        self.count.unlink(missing_ok=True)
        variables = {"LD_PRELOAD": self.library, "KILL_AT": number, "KILL_FILE": self.image, "KILL_COUNT": self.count}
        done = subprocess.run([str(HERE / "ext4lazy"), "off", *options, str(self.image)], capture_output=True, text=True, check=False,
                              start_new_session=True, env={**os.environ, **{key: str(value) for key, value in variables.items()}})
        check(done.returncode in (0, -signal.SIGKILL), f"write {number}: {done.stdout}{done.stderr}")
        return done.returncode != 0

    def writes(self):
        return int.from_bytes(self.count.read_bytes(), "little")


def is_torn(bench, image, good, log, name):
    """e2fsck writes the superblock in pieces: between two, its checksum is wrong, which is said, and e2fsck -b brings all home."""
    if journal.is_whole_at_home(image):
        return False
    done = off(image)
    check(done.returncode == 1 and "wrong checksum" in done.stderr and "\nhint: e2fsck -f -b" in done.stderr, f"{name}: {done.stdout}{done.stderr}")
    done = subprocess.run([program("e2fsck"), "-f", "-y", "-b", "8193", str(image)], capture_output=True, text=True, check=False)
    check(done.returncode in (0, 1), f"{name}: {done.stdout}{done.stderr}")
    bench.fsck(image, replay=False)
    return True


def test_off_is_killed(bench):
    """
    `ext4lazy off` is killed in front of each of its writes, the first that takes the mark away and those of e2fsck among them. It is
    marked then, or a replay by anybody brings all home; and `ext4lazy off` begins again, and has all home, with lazy mounts as well.
    """
    chance = random.Random(SEED)
    image, other = bench.folder / "killed", bench.folder / "other"
    for name, options in (("unmounted", ()), ("after a crash", ()), ("after a crash, without checksums", ()), ("unmounted", ("--force",))):
        log = make(bench, name)
        if options:
            # Damage in the middle of the log: what is in front of it goes home.
            commits = [offset for offset, kind, _, _ in log.walk() if kind == journal.COMMIT]
            log.put(commits[-3], bytes(log.block_size))
        first, killer = bench.image.read_bytes(), Killer(bench.folder, image)
        shutil.copy(bench.image, image)
        check(not killer.off(0, *options), f"{name}: it was killed")
        good, writes = contents(image, log), killer.writes()
        check(options or good == right(bench, log), f"{name}: something else is home")
        numbers = {*range(1, 6), *range(writes - 5, writes + 1), *chance.sample(range(1, writes + 1), min(DAMAGES, writes))}
        unmarked = torn = 0
        for number in sorted(numbers):
            at = f"{name}{' by force' if options else ''}, killed in front of write {number} of {writes}"
            image.write_bytes(first)
            check(killer.off(number, *options), f"{at}: it was not killed")
            check(number > 1 or image.read_bytes() == first, f"{at}: it was written")
            unmarked += not journal.is_marked(image)
            if is_torn(bench, image, good, log, at):
                torn += 1
                continue
            shutil.copy(image, other)
            done = off(image, *options)
            check(done.returncode == 0 and contents(image, log) == good, f"{at}: something else is home behind a second run: {done.stdout}{done.stderr}")
            if not journal.is_marked(other) and not options:
                bench.fsck(other)
                check(contents(other, log) == good, f"{at}: something else is home behind a replay")
        check(unmarked and (options or unmarked < len(numbers)), f"{name}: {unmarked} states of {len(numbers)} have no mark")
        print(f"   {name}{' by force' if options else ''}: {len(numbers)} of {writes} writes, {unmarked} without the mark, {torn} with a torn superblock", flush=True)
        if not options:
            # Half of it is home; the log has all.
            image.write_bytes(first)
            killer.off(writes // 2)
            bench.guest("lazy /dev/ubda /mnt; ls /mnt/1/f /mnt/28/f; mkdir /mnt/new; umount /mnt; mount -t ext4 /dev/ubda /mnt; ls -d /mnt/28/f /mnt/new; "
                        "umount /mnt", disks=[image])
            bench.fsck(image, replay=False)


def test_off_at_once(bench):
    """Several of `ext4lazy off` on one image: one does it, the others write nothing, and say why or that all is home."""
    log = make(bench, "after a crash")
    good, image = right(bench, log), bench.copy("killed")
    runs = [subprocess.Popen([str(HERE / "ext4lazy"), "off", str(image)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(6)]
    ends = [(run.wait(), *run.communicate()) for run in runs]
    check(sum("recovering journal" in said for _, said, _ in ends) == 1, f"{ends}")
    for code, said, wrong in ends:
        check("everything is home" in said if code == 0 else "another program has locked" in wrong and "\nhint: " in wrong, f"{ends}")
    check(contents(image, log) == good, "something else is home")


def off_when_unlocked(image):
    for _ in range(20):
        done = off(image)
        if "another program has locked" not in done.stderr:
            break
    return done


def test_off_is_killed_alone(bench):
    """`ext4lazy off` is killed, and e2fsck is not: another one does not begin beside it. Interrupted, it says how to go on."""
    log = make(bench, "after a crash")
    good, image, folder = right(bench, log), bench.copy("killed"), bench.folder / "programs"
    folder.mkdir()
    (folder / "e2fsck").write_text('#!/bin/sh\n: >"$STARTED"; sleep 8; exec "$E2FSCK" "$@"')
    (folder / "e2fsck").chmod(0o755)
    variables = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "E2FSCK": program("e2fsck"), "STARTED": str(bench.folder / "started")}
    for number in (signal.SIGKILL, signal.SIGINT):
        (bench.folder / "started").unlink(missing_ok=True)
        run = subprocess.Popen([str(HERE / "ext4lazy"), "off", str(image)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables)
        while not (bench.folder / "started").exists():
            check(run.poll() is None, "it has ended before")
            time.sleep(0.05)
        run.send_signal(number)
        run.wait()
        if number == signal.SIGINT:
            wrong = run.stderr.read()
            check("Traceback" not in wrong and "it was interrupted" in wrong and "\nhint: " in wrong, wrong)
            continue
        done = off(image)
        check(done.returncode == 1 and "another program has locked" in done.stderr, f"{done.stdout}{done.stderr}")
        done = off_when_unlocked(image)
        check(done.returncode == 0 and contents(image, log) == good, f"something else is home: {done.stdout}{done.stderr}")
        shutil.copy(bench.image, image)
    # The program in place of e2fsck has started another one.
    done = off_when_unlocked(image)
    check(done.returncode == 0 and contents(image, log) == good, f"something else is home: {done.stdout}{done.stderr}")


def test_off_of_odd_names(bench):
    """A name that e2fsprogs takes for something else is refused before anything is looked at; any other is no matter."""
    log = make(bench, "unmounted")
    first, good = bench.image.read_bytes(), right(bench, log)
    folder = bench.folder / "names"
    folder.mkdir()
    for name in ("a b", 'a"b', "-a", "--force", "\u00fc"):
        image = folder / name
        image.write_bytes(first)
        done = subprocess.run([str(HERE / "ext4lazy"), "off", "--", name], cwd=folder, capture_output=True, text=True, check=False)
        check(done.returncode == 0 and contents(image, log) == good, f"{name!r}: {done.stdout}{done.stderr}")
    # Which of these is looked at?
    (folder / "a").write_bytes(first)
    for name in ("a?b", "a?offset=0", "a\nb"):
        (folder / name).write_bytes(first)
        for command in ("status", "off"):
            done = subprocess.run([str(HERE / "ext4lazy"), command, name], cwd=folder, capture_output=True, text=True, check=False)
            check(done.returncode == 1 and "means something else" in done.stderr and "\nhint: " in done.stderr, f"{name!r}: {done.stdout}{done.stderr}")
        check((folder / name).read_bytes() == (folder / "a").read_bytes() == first, f"{name!r}: something was written")
