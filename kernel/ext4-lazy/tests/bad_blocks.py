"""Runs in the guest: one block after the other of a lazy file system can be neither read nor written.

    bad_blocks.py IMAGE MODELS MOST SEED BLOCK…

With each, the file system is mounted, read, written to and emptied of its journal: whatever of that fails must do so with
an error, and soon. When the block is whole again, all that was synced is there, and e2fsck finds nothing. Before, the same
is done with a device that is whole, and its requests are recorded: of the blocks that are named, those that one of them was
for are taken, at most MOST.
"""

import contextlib
import os
import pathlib
import random
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import storm  # noqa: E402
from state_disk import LOOP, MOUNT, MS_RDONLY, Mounted, Wrong, attach, fsck, put  # noqa: E402

DEVICE, NAME = "/dev/mapper/bad", "bad"
TRACING = pathlib.Path("/sys/kernel/tracing")
SECTORS_OF_A_BLOCK = 8
SLOW_SECONDS = 45


@contextlib.contextmanager
def mapped(sectors, block=None):
    """The device with one bad block, or with none."""
    if block is None:
        table = [f"0 {sectors} linear {LOOP} 0"]
    else:
        start, end = block * SECTORS_OF_A_BLOCK, (block + 1) * SECTORS_OF_A_BLOCK
        table = [f"0 {start} linear {LOOP} 0"] if start else []
        table += [f"{start} {SECTORS_OF_A_BLOCK} error"]
        table += [f"{end} {sectors - end} linear {LOOP} {end}"] if end < sectors else []
    subprocess.run(["dmsetup", "create", NAME], input="\n".join(table), text=True, check=True)
    try:
        yield
    finally:
        subprocess.run(["dmsetup", "remove", NAME], check=True)


def asked_for(work):
    """Blocks that are read and written by `work`; not those that are only read ahead, whose errors nobody sees."""
    if not (TRACING / "trace").exists():
        subprocess.run(["mount", "-t", "tracefs", "tracefs", str(TRACING)], check=True)
    event, device = TRACING / "events/block/block_rq_issue", os.stat(LOOP).st_rdev
    (TRACING / "buffer_size_kb").write_text("8192")
    (event / "filter").write_text(f"dev == {os.major(device) << 20 | os.minor(device)}")
    (event / "enable").write_text("1")
    work()
    (event / "enable").write_text("0")
    blocks = set()
    for kind, sector, sectors in re.findall(r"block_rq_issue: \S+ (\S+) \d+ \(.*?\) (\d+) \+ (\d+)", (TRACING / "trace").read_text()):
        if "A" not in kind:
            blocks.update(range(int(sector) // SECTORS_OF_A_BLOCK, (int(sector) + int(sectors)) // SECTORS_OF_A_BLOCK))
    return blocks


def use():
    """Everything once; each part may fail. Returns how many did."""
    failed = 0

    def attempt(work):
        nonlocal failed
        try:
            work()
        except (OSError, subprocess.CalledProcessError):
            failed += 1

    def write():
        top = MOUNT / "new"
        top.mkdir()
        # Directories have blocks of their own, so that the log goes round.
        for number in range(24):
            for inner in range(40):
                (top / f"{number}" / f"{inner}").mkdir(parents=True)
            (top / f"file{number}").write_bytes(b"x" * 5000)
            os.sync()

    try:
        with Mounted("lazy", device=DEVICE):
            attempt(lambda: storm.digest(MOUNT))
            attempt(write)
            attempt(lambda: subprocess.run(["fsfreeze", "-f", str(MOUNT)], check=True, capture_output=True))
            with contextlib.suppress(subprocess.CalledProcessError):
                subprocess.run(["fsfreeze", "-u", str(MOUNT)], check=True, capture_output=True)
    except Wrong:
        failed += 1
    return failed


def look(models):
    """What is new may be there or not."""
    with Mounted("lazy", MS_RDONLY):
        wrong = [line for line in storm.verify(MOUNT, models) if not line.startswith("new")]
        lazy = storm.digest(MOUNT)
    if wrong:
        raise Wrong("; ".join(wrong[:5]))
    with Mounted("errors=remount-ro", MS_RDONLY):
        if storm.digest(MOUNT) != lazy:
            raise Wrong("the lazy mount and the replay differ")
    # Errors that ext4 has met are noted in the superblock, and e2fsck mends that.
    fsck("-f", "-y", good=(0, 1))


def main():
    image, models = pathlib.Path(sys.argv[1]).read_bytes(), pathlib.Path(sys.argv[2])
    most, seed, *named = map(int, sys.argv[3:])
    attach(image)
    sectors, wrong, failed = len(image) // 512, 0, 0
    with mapped(sectors):
        found = sorted(asked_for(use) & set(named))
    chosen = sorted(random.Random(seed).sample(found, min(most, len(found))))
    for block in chosen:
        put(image)
        with mapped(sectors, block):
            start = time.monotonic()
            failed += use() > 0
            seconds = time.monotonic() - start
        try:
            if seconds > SLOW_SECONDS:
                raise Wrong(f"it took {seconds:.0f} s")
            look(models)
        except (Wrong, OSError) as error:
            wrong += 1
            print(f"block {block} was bad: {error}", flush=True)
            subprocess.run(["umount", str(MOUNT)], check=False, capture_output=True)
    print(f"{len(chosen)} bad blocks of {len(found)} that are asked for, {failed} of them met, {wrong} of them with something wrong "
          "after it", flush=True)
    sys.exit(1 if wrong else 0)


main()
