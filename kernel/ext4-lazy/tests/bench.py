"""The bench that the tests of lazy writeback are done on: an image, a share, and the guest on them."""

import os
import pathlib
import re
import shutil
import subprocess

import journal

HERE = pathlib.Path(__file__).resolve().parents[1]
RUN, STORM = HERE / "run", HERE / "tests" / "storm.py"
SEED = int(os.environ.get("LAZY_SEED", "1"))
ROUNDS = int(os.environ.get("LAZY_ROUNDS", "1"))
KILLS = int(os.environ.get("LAZY_KILLS", "6"))
CUTS = int(os.environ.get("LAZY_CUTS", "300"))
STATES_OF_A_LOG = int(os.environ.get("LAZY_STATES_OF_A_LOG", "500"))
STRESS_SECONDS = int(os.environ.get("LAZY_STRESS_SECONDS", "1"))
BAD_BLOCKS = int(os.environ.get("LAZY_BAD_BLOCKS", "40"))
DAMAGES = int(os.environ.get("LAZY_DAMAGES", "40"))
OPERATIONS = int(os.environ.get("LAZY_OPERATIONS", "1500"))
# What the kernel says when something is wrong with it. User-mode Linux itself looks at a new process's memory without RCU (6.1),
# and has structures that are not aligned (6.12).
TROUBLE = (r"BUG|WARNING:(?! suspicious RCU usage\n.*\n.*\n.*lib/maple_tree)|Kernel panic|blocked for more than|"
           r"list_(?:add|del) corruption|UBSAN(?!: misaligned-access in (?!\S*/fs/(?:ext4|jbd2)/))|unreferenced object")


class Failure(Exception):
    """What is not as it should be."""


def check(condition, words):
    if not condition:
        raise Failure(words)


def program(name):
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/sbin:/usr/sbin")
    check(found, f"{name} is missing: apt-get install e2fsprogs dmsetup stress-ng")
    return found


class Bench:
    """A folder with an image and a share, and the guest on it."""

    def __init__(self, folder, slower=1):
        self.slower = slower
        self.folder, self.image, self.share = folder, folder / "disk", folder / "share"
        self.share.mkdir()

    def mkfs(self, size="192M", block=4096, journal=16, extra=()):
        with open(self.image, "wb") as file:
            file.truncate(int(size[:-1]) << 20)
        subprocess.run([program("mke2fs"), "-q", "-F", "-t", "ext4", "-b", str(block), "-J", f"size={journal}", *extra,
                        str(self.image)], check=True)

    def guest(self, script, *, disks=None, code=0, expect_errors=False, **options):
        """Runs a script of bash; returns what it and (below a line) the kernel said."""
        command = [str(RUN), "--share", str(self.share), "--console"]
        options["timeout"] = self.slower * options.get("timeout", 600)
        for key, value in options.items():
            command += [f"--{key.replace('_', '-')}", str(value)]
        for disk in disks or [self.image]:
            command += ["--disk", str(disk)]
        prelude = (f"storm() {{ python3 {STORM} \"$@\"; }}; lazy() {{ mount -t $LAZY_TYPE -o lazy,\"${{3:-rw}}\" \"$1\" \"$2\"; }}; "
                   f"unmark() {{ python3 {HERE}/tests/unmark.py \"$@\"; }}; "
                   # With `!` in front of it, a command ends a script only if it is the last one.
                   "fails() { ! \"$@\" || { echo \"succeeded: $*\"; exit 9; }; }; "
                   # The packaged ext4 refuses what is marked.
                   "[ $LAZY_TYPE = ext4 ] || mount() { [ \"$1 $2\" != '-t ext4' ] || unmark \"$@\"; command mount \"$@\"; }; ")
        result = subprocess.run([*command, "--", "bash", "-ec", prelude + script], capture_output=True, text=True,
                                errors="replace", check=False)
        said = result.stdout + "\n-- kernel\n" + result.stderr
        trouble = re.search(rf"^.*({TROUBLE}{'' if expect_errors else '|EXT4-fs error'}).*$", said, re.M)
        check(not trouble, f"the kernel said: {trouble and trouble.group(0)}\n{said[-3000:]}")
        # Its code is that of a guest that was stopped in front of it, too.
        check("kill_when" not in options or options["kill_when"].exists(), f"the time was up\n{said[-2000:]}")
        check(code is None or result.returncode == code, f"exit code {result.returncode}, expected {code}\n{result.stdout[-2000:]}\n{said[-2000:]}")
        return said

    def journal(self):
        return journal.Journal(program("debugfs"), self.image)

    def copy(self, *names):
        """Of the image, or of what the first of two names is in the bench's folder."""
        source = self.folder / names[0] if len(names) == 2 else self.image
        subprocess.run(["cp", "--sparse=always", str(source), str(self.folder / names[-1])], check=True)
        return self.folder / names[-1]

    def metadata(self, image):
        """Blocks of an image without a log that hold metadata, and not zeros alone: those that e2image copies."""
        copy = self.folder / "metadata"
        subprocess.run([program("e2image"), "-r", str(image), str(copy)], check=True, capture_output=True)
        size = self.journal().block_size
        with open(copy, "rb") as file:
            return {number for number, block in enumerate(iter(lambda: file.read(size), b"")) if any(block)}

    def empty_share(self):
        for old in list(self.share.iterdir()):
            shutil.rmtree(old) if old.is_dir() else old.unlink()

    def fsck(self, image, replay=True, external=None):
        """What `ext4lazy off` is: everything home by replaying the log; then the check may find nothing."""
        if replay:
            journal.unmark(image)
            done = subprocess.run([program("e2fsck"), "-E", "journal_only", "-y", str(image)], capture_output=True,
                                  text=True, check=False)
            check(done.returncode in (0, 1), f"e2fsck does not replay: {done.stdout}{done.stderr}")
        options = ["-j", str(external)] if external else []
        done = subprocess.run([program("e2fsck"), "-f", "-n", *options, str(image)], capture_output=True, text=True, check=False)
        check(done.returncode == 0, f"e2fsck is not content: {done.stdout}{done.stderr}")


def statistics(said):
    return {name: int(value) for name, value in re.findall(
        r"^(mapped|log_blocks|log_free|published|revoked|reads|read_again|cleaned|clean_batches) (\d+)$", said, re.M)}


STATISTICS = "cat /proc/fs/jbd2*/*/lazy"
