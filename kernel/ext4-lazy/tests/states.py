"""Runs in the guest: what a lazy mount makes of every state that a power cut may leave.

    states.py IMAGE LOG SHARE HOMES --seed N --states N

IMAGE is the device before the log of dm-log-writes; SHARE has a folder with a model for each mark; HOMES lists the blocks
that were ever logged. SHARE/digests gets a line for each state: a checksum of each of those blocks as a lazy mount shows them, which
the host compares with a replay, or what went wrong. Every 25th state is written to, mounted anew, compared with the model
and with a replay, and checked here.
"""

import argparse
import os
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import kinds  # noqa: E402
import storm  # noqa: E402
from power_cuts import Homes, cuts  # noqa: E402
from state_disk import LOOP, MOUNT, MS_RDONLY, Mounted, Wrong, attach, fsck, put  # noqa: E402


def write_more(chance):
    """A storm of its own beside what is there, so that the log goes on behind the one that was cut."""
    with Mounted("lazy"):
        top = MOUNT / "after the cut"
        top.mkdir()
        for number in range(chance.randrange(40)):
            (top / str(number)).write_bytes(b"x" * chance.randrange(9000))
        os.sync()
        for number in range(0, len(os.listdir(top)), 3):
            (top / str(number)).unlink()
    with Mounted("lazy"):
        for path in (MOUNT / "after the cut").iterdir():
            path.unlink()
        (MOUNT / "after the cut").rmdir()


def compare(models, mark, kind):
    """With the model, what is there of a mounted state."""
    if "encrypt" in kind:
        kinds.unlock(MOUNT)
    if mark is not None and (wrong := storm.verify(MOUNT / "top" if kind else MOUNT, models / mark)):
        raise Wrong("; ".join(wrong[:5]))


def look_closely(models, mark, kind, chance):
    write_more(chance)
    with Mounted("lazy", MS_RDONLY):
        compare(models, mark, kind)
        lazy = storm.digest(MOUNT)
    with Mounted("errors=remount-ro", MS_RDONLY):
        compare(models, mark, kind)
        if storm.digest(MOUNT) != lazy:
            raise Wrong("the lazy mount and the replay differ")
    fsck("-f", "-n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("image", type=pathlib.Path)
    parser.add_argument("log", type=pathlib.Path)
    parser.add_argument("share", type=pathlib.Path)
    parser.add_argument("homes", type=pathlib.Path)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--states", type=int, required=True)
    parser.add_argument("--kind", default="")
    options = parser.parse_args()
    first = options.image.read_bytes()
    homes = Homes(first, [int(word) for word in options.homes.read_text().split()])
    attach(first)
    chance = random.Random(options.seed)
    with open(options.share / "digests", "w") as results:
        for cut in cuts(first, options.log, options.seed, options.states):
            put(cut.image)
            try:
                with Mounted("lazy", MS_RDONLY):
                    # The device's page cache is its own.
                    line = homes.sums(LOOP)
                    if "encrypt" in options.kind:
                        # The host cannot read it.
                        compare(options.share, cut.mark, options.kind)
                if cut.thorough:
                    look_closely(options.share, cut.mark, options.kind, chance)
            except (Wrong, OSError) as wrong:
                line = f"wrong {wrong}".replace("\n", " ")
            results.write(line + "\n")


main()
