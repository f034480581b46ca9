"""The zoned drive that every system gets: its shape, its counters, its power switch.

Two of the kernel's emulated drives. null_blk keeps its zones in the guest's memory, has a volatile
write cache and counts; zloop keeps a file a zone and can forget what was not flushed. Both have the
same shape, and no FUA, so that every forced write shows as a flush.
"""

import os
import pathlib
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
MIB = 1 << 20
ZONE_MIB = 16
# mkfs.xfs takes no conventional part below 300 MiB, so the others have it too.
CONVENTIONAL = 20
# What a whole run takes, and one that only looks whether all goes.
SIZES_MIB = {"long": 2048, "short": 1024}


class Counts:
    """What the drive has been asked since it was made."""

    def __init__(self, writes, bytes_written, bytes_read, flushes):
        self.writes, self.bytes_written, self.bytes_read, self.flushes = writes, bytes_written, bytes_read, flushes

    def since(self, earlier):
        return Counts(self.writes - earlier.writes, self.bytes_written - earlier.bytes_written,
                      self.bytes_read - earlier.bytes_read, self.flushes - earlier.flushes)


def parse_stat(text):
    """/sys/block/DRIVE/stat as in the kernel's block/stat.rst: sectors are of 512 bytes."""
    field = [int(word) for word in text.split()]
    if len(field) < 17:
        raise ValueError(f"{len(field)} fields in the drive's statistics, and the flushes are the sixteenth")
    return Counts(field[4], field[6] * 512, field[2] * 512, field[15])


class NullBlk:
    name = "nullb0"
    path = "/dev/nullb0"

    def __init__(self, mib):
        self.mib = mib
        run("modprobe", "configfs")
        run("modprobe", "null_blk", "nr_devices=0")
        if not os.path.ismount("/sys/kernel/config"):
            run("mount", "-t", "configfs", "config", "/sys/kernel/config")
        run(HERE.parent / "null_blk", "create", self.name, f"size={mib}", f"zone_size={ZONE_MIB}",
            f"zone_capacity={ZONE_MIB}", f"zone_nr_conv={CONVENTIONAL}", "zone_max_open=0", "zone_max_active=0",
            "cache_size=16", "fua=0")

    def counts(self):
        return parse_stat(pathlib.Path(f"/sys/block/{self.name}/stat").read_text())

    def remove(self):
        run(HERE.parent / "null_blk", "remove", self.name)


class Zloop:
    name = "zloop0"
    path = "/dev/zloop0"

    def __init__(self, mib):
        self.folder = pathlib.Path("/dev/zloop-files")
        run("modprobe", "zloop")
        os.makedirs(self.folder, exist_ok=True)
        if not os.path.ismount(self.folder):
            run("mount", "-t", "tmpfs", "-o", "size=90%", "zloop", self.folder)
        run("find", self.folder, "-mindepth", "1", "-delete")
        (self.folder / "0").mkdir()
        self.how = (f"id=0,capacity_mb={mib},zone_size_mb={ZONE_MIB},conv_zones={CONVENTIONAL},"
                    f"base_dir={self.folder},buffered_io,discard_write_cache")
        self.control(f"add {self.how}")

    def control(self, words):
        with open("/dev/zloop-control", "w") as file:
            file.write(words)

    def cut(self):
        """The power goes under whoever uses the drive: what was not flushed of a sequential zone is lost."""
        self.control("remove id=0")

    def restore(self):
        """It is back, after nobody has the old one open any more."""
        self.control(f"add {self.how}")
        wait_for(self.path, lambda: os.path.exists(self.path))


def run(*command, check=True, timeout=600):
    """A command that has to succeed; what it said is in the error."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", timeout=timeout)
    if check and done.returncode:
        last = " / ".join(done.stdout.strip().splitlines()[-3:])
        raise Failed(f"{pathlib.Path(command[0]).name}: {last or f'exit code {done.returncode}'}")
    return done.stdout


class Failed(Exception):
    """A step that did not go, in words for the report."""


def wait_for(what, condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Failed(f"no {what} after {seconds} s")
        time.sleep(0.05)
