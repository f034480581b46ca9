"""Runs in the guest: one block of the log after the other cannot be written.

    bad_log.py IMAGE LOG MOST

LOG is the device of the journal, or - if that is inside. Some work is done once with everything whole, and that says which blocks
of the log it writes: the first MOST of them are bad in turn, and the journal's superblock is. With each, the kernel says which
block it is, where in the log, and what it is for; nothing hangs; and once it can be written again, all that an fsync has
promised is there: after a reboot in that moment, and after an unmount. A line for each kind of block says how many were met.
With MOST 0, the block behind the log's end is bad at the mount already.
"""

import collections
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1])]
import journal  # noqa: E402
import storm  # noqa: E402
from state_disk import LOOP, MOUNT, MS_RDONLY, STATE, Mounted, Wrong, attach, fsck, put  # noqa: E402

ROUNDS = 3
SLOW_SECONDS = 45
SECTORS_OF_A_BLOCK = 8
SUPERBLOCK = "journal superblock"
TOLD = re.compile(r"JBD2: (\S+): cannot write (?:log )?block (\d+)(?: \(offset (\d+)\))?, (?:a |the )(.*?)"
                  r"(?: (?:of|in) transaction (\d+))?: error (-\d+)")


class Disks:
    """The file system, and its journal, which is on it or on a device of its own."""

    def __init__(self, image, log):
        self.image, self.log = image, log
        self.log_loop, self.log_state = ("/dev/loop1", pathlib.Path("/tmp/state-of-the-log")) if log else (LOOP, STATE)
        attach(image)
        if log:
            attach(log, self.log_loop, self.log_state)

    def put(self, states=None):
        """As they were at first, or as `states` has them."""
        image, log = states or (self.image, self.log)
        put(image)
        if log:
            put(log, self.log_state)

    def states(self):
        return STATE.read_bytes(), self.log_state.read_bytes() if self.log else None

    def options(self, *options, log=None):
        return ",".join([*options, *([f"journal_path={log or self.log_loop}"] if self.log else [])])

    def journal(self):
        return journal.Journal(shutil.which("debugfs"), STATE, self.log_state if self.log else None)

    @contextlib.contextmanager
    def mapped(self, *tables):
        """The log's device, with the first of these tables: a function goes on to the next one."""
        def go_on():
            for command in (("suspend", "--noflush", "--nolockfs"), ("load",), ("resume",)):
                dmsetup(*command, table=tables[1] if command == ("load",) else None)

        dmsetup("create", table=tables[0])
        try:
            yield "/dev/mapper/bad", go_on if len(tables) > 1 else lambda: None
        finally:
            dmsetup("remove")

    def table(self, block=None, bad="error"):
        """One with a bad block, or with none."""
        sectors = len(self.log or self.image) // 512
        start, end = (block or 0) * SECTORS_OF_A_BLOCK, ((block or 0) + 1) * SECTORS_OF_A_BLOCK
        parts = [(0, sectors, "")] if block is None else [(0, start, ""), (start, end, bad), (end, sectors, "")]
        lines = []
        for first, behind, kind in parts:
            place = f"{self.log_loop} {first}"
            target = {"": f"linear {place}", "error": "error", "flakey": f"flakey {place} 0 3600 1 error_writes"}[kind]
            if first < behind:
                lines.append(f"{first} {behind - first} {target}")
        return "\n".join(lines)


def dmsetup(command, *options, table=None):
    subprocess.run(["dmsetup", command, *options, "bad"], input=table, text=True, check=True)


class Messages:
    """What the kernel says from now on."""

    def __init__(self):
        self.file = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(self.file, 0, os.SEEK_END)

    def read(self):
        lines = []
        with contextlib.suppress(BlockingIOError):
            while True:
                lines.append(os.read(self.file, 8192).decode(errors="replace").partition(";")[2].partition("\n")[0])
        return lines


def use(disks, bad, go_on):
    """A directory goes, and another comes, with an fsync: which of those were promised, and the states right behind the last one."""
    promised = []
    with Mounted(disks.options("lazy", log=bad), device=LOOP if disks.log else bad):
        go_on()
        try:
            for number in range(ROUNDS):
                shutil.rmtree(MOUNT / f"old{number}")
                top = MOUNT / f"new{number}"
                top.mkdir()
                with open(top / "file", "wb") as file:
                    file.write(content(number))
                    file.flush()
                    os.fsync(file.fileno())
                promised.append(number)
        except OSError:
            # Whatever is in the log is read on; or nothing at all, as ext4 has it from 6.6 on.
            pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
            with contextlib.suppress(OSError):
                if wrong := compare(promised):
                    raise Wrong(f"with the log aborted: {wrong}") from None
        else:
            # As a commit that nobody asked for.
            (MOUNT / "last").mkdir()
        states = disks.states()
    return promised, states


def content(number):
    return f"{number} ".encode() * 3000


def compare(promised):
    """What of that is not there."""
    with open(MOUNT / "kept" / "file", "rb") as file:
        if file.read() != content("kept"):
            return "what was there before is not"
    for number in promised:
        if (MOUNT / f"old{number}").exists():
            return f"old{number} is there again"
        if (MOUNT / f"new{number}" / "file").read_bytes() != content(number):
            return f"new{number} is not as it was"
    return None


def look(disks, promised):
    with Mounted(disks.options("lazy"), MS_RDONLY):
        wrong = compare(promised)
    if wrong:
        raise Wrong(wrong)
    with Mounted(disks.options("lazy")):
        (MOUNT / "after").mkdir()
        os.sync()
    with Mounted(disks.options("lazy")):
        (MOUNT / "after").rmdir()
        os.sync()
        lazy = storm.digest(MOUNT)
    with Mounted(disks.options("errors=remount-ro"), MS_RDONLY):
        if storm.digest(MOUNT) != lazy:
            raise Wrong("the lazy mount and the replay differ")
    # That ext4 has met an error is noted in the superblock, and e2fsck takes it back without a question.
    said = fsck("-f", "-y", *(["-j", str(disks.log_state)] if disks.log else []), good=(0, 1))
    if "? yes" in said:
        raise Wrong(f"e2fsck: {said[-1500:]}")


def told(lines, offset, block, states, disks):
    """What kind of block the kernel says that it is; None if nothing had to be written there."""
    found = next(filter(None, map(TOLD.search, lines)), None)
    if found is None:
        if any("Aborting journal" in line for line in lines):
            raise Wrong(f"the journal was aborted without a word of the block: {lines}")
        return None
    device, number, its_offset, kind, transaction, error = found.groups()
    if int(number) != block or error != "-5" or not device.startswith("dm-"):
        raise Wrong(f"it says: {found.group(0)}")
    if kind == SUPERBLOCK:
        return kind
    if int(its_offset) != offset:
        raise Wrong(f"it says: {found.group(0)}")
    if copy := re.fullmatch(r"copy of block (\d+) of (\S+)", kind):
        disks.put(states)
        home = home_of(disks.journal(), offset, int(transaction))
        its_device = "loop0" if disks.log else device.partition("-8")[0]
        if home != int(copy.group(1)) or copy.group(2) != its_device:
            raise Wrong(f"it says: {found.group(0)}, and the descriptor block says {home}")
        return "copy of a block"
    return kind


def home_of(log, offset, transaction):
    """What the last descriptor block in front of it says."""
    for before in range(offset - 1, log.first - 1, -1):
        if log.header(before) == (journal.MAGIC, journal.DESCRIPTOR, transaction):
            homes = log.tags(log.block(before))
            return homes[offset - before - 1] if offset - before <= len(homes) else None
    return None


def one(disks, offset, block, tables):
    """The kind of block that it is."""
    disks.put()
    messages, promised, states = Messages(), [], None
    start = time.monotonic()
    with disks.mapped(*tables) as (bad, go_on):
        try:
            promised, states = use(disks, bad, go_on)
        except Wrong as refusal:
            # At the mount, where the number of an interrupted transaction is used up.
            if not str(refusal).startswith("mount "):
                raise
    unmounted = disks.states()
    if time.monotonic() - start > SLOW_SECONDS:
        raise Wrong(f"it took {time.monotonic() - start:.0f} s")
    lines = messages.read()
    os.close(messages.file)
    kind = told(lines, offset, block, unmounted, disks)
    if kind is None and len(promised) < ROUNDS:
        raise Wrong(f"of {ROUNDS} fsyncs {len(promised)} were well, and the kernel says {lines}")
    for state in (states or unmounted, unmounted):
        disks.put(state)
        look(disks, promised)
    return kind


def main():
    image, log, most = pathlib.Path(sys.argv[1]).read_bytes(), sys.argv[2], int(sys.argv[3])
    disks = Disks(image, None if log == "-" else pathlib.Path(log).read_bytes())
    its = disks.journal()
    begin = its.head()[0]
    with disks.mapped(disks.table()) as (whole, go_on):
        promised, _ = use(disks, whole, go_on)
    end = disks.journal().head()[0]
    if len(promised) < ROUNDS or not begin < end:
        sys.exit(f"with everything whole, {len(promised)} fsyncs were well, and the log is from {begin} to {end}")
    kinds, wrong = collections.Counter(), 0
    # The first transaction of these has each kind of block.
    for offset in [its.top, *range(begin, min(end, begin + most))] if most else [begin]:
        block = its.places[offset]
        tables = [disks.table(), disks.table(block)] if most else [disks.table(block, "flakey")]
        try:
            kinds[one(disks, offset, block, tables)] += 1
        except (Wrong, OSError, subprocess.CalledProcessError) as error:
            wrong += 1
            print(f"offset {offset} of the log was bad: {error}", flush=True)
            for command in (["umount", str(MOUNT)], ["dmsetup", "remove", "bad"]):
                subprocess.run(command, check=False, capture_output=True)
    for kind, count in kinds.items():
        print(f"{kind or 'not met'}: {count}", flush=True)
    print(f"{sum(kinds.values()) + wrong} bad blocks, {wrong} of them with something wrong", flush=True)
    sys.exit(1 if wrong else 0)


main()
