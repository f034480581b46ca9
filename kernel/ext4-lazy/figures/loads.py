"""Runs in the guest: the loads of chapter 3 of CMU-CS-20-130, each stage with a cold cache and a trace of its requests.

    loads.py directories|files|journal|postmark|processor MOUNT FOLDER --seed N --count N …

`processor` is not recorded: its host measures what it takes. Of the others, for each stage FOLDER/NUMBER-STAGE is what the tracepoint block_rq_issue said, and FOLDER/stages has a line of JSON: its
name, seconds that it took here, and seconds of the processor.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import time

TRACING = pathlib.Path("/sys/kernel/tracing")
WIDTH_OF_DIRECTORIES = 800_000 ** (1 / 10)
WIDTH_OF_FILES = 600_000 ** (1 / 20)
# 100,000 files in more than 60,000 directories.
WIDTH_OF_JOURNAL = 2.6
FILE = b"lazy" * 1024


def busy():
    """Seconds of the processor since the boot, idle time left out."""
    numbers = [int(word) for word in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return (sum(numbers) - numbers[3] - numbers[4]) / os.sysconf("SC_CLK_TCK")


class Recorder:
    def __init__(self, folder, device):
        self.folder, self.number = folder, 0
        if not (TRACING / "trace").exists():
            subprocess.run(["mount", "-t", "tracefs", "tracefs", str(TRACING)], check=True)
        (TRACING / "trace_clock").write_text("mono")
        (TRACING / "buffer_size_kb").write_text(str(96 << 10))
        event = TRACING / "events/block/block_rq_issue"
        number = os.stat(device).st_rdev
        (event / "filter").write_text(f"dev == {os.major(number) << 20 | os.minor(number)}")
        (event / "enable").write_text("1")

    def stage(self, name, work, *, cold=True, end=os.sync):
        """Does `work`, then `end`; both are recorded."""
        if cold:
            os.sync()
            # The first time frees what keeps checkpointed buffers in memory, the second time those buffers.
            for _ in range(2):
                pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
        (TRACING / "trace").write_text("")
        (TRACING / "tracing_on").write_text("1")
        start, used = time.monotonic(), busy()
        work()
        seconds, processor = time.monotonic() - start, busy() - used
        done = time.monotonic()
        end()
        (TRACING / "tracing_on").write_text("0")
        shutil.copyfile(TRACING / "trace", self.folder / f"{self.number}-{name}")
        with open(self.folder / "stages", "a") as file:
            json.dump({"name": name, "seconds": round(seconds, 2), "processor": round(processor, 2), "done": done}, file)
            file.write("\n")
        self.number += 1


def tree(leaves, width):
    """Paths of a tree's inner nodes, parents first, and of its leaves: each level is `width` times the one above."""
    depth, above, inner = 1, [""], []
    while width ** (depth + 0.5) < leaves:
        level = [f"{above[number % len(above)]}/{len(inner) + number:08d}" for number in range(round(width ** depth))]
        inner += level
        above, depth = level, depth + 1
    return inner, [f"{above[number % len(above)]}/l{number:08d}" for number in range(leaves)]


def run(*words):
    """A command whose output goes nowhere; through a pipe, because tar does not read files for /dev/null."""
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        while process.stdout.read(1 << 20):
            pass
    if process.returncode:
        raise SystemExit(f"{words[0]} ended with {process.returncode}")


def directories(recorder, mount, options):
    inner, leaves = tree(options.count, WIDTH_OF_DIRECTORIES)
    random.Random(options.seed).shuffle(leaves)

    def make():
        for name in inner + leaves:
            os.mkdir(f"{mount}/tree{name}")

    os.mkdir(f"{mount}/tree")
    recorder.stage("MakeDirs", make)
    recorder.stage("ListDirs", lambda: run("ls", "-1R", f"{mount}/tree"))
    recorder.stage("TarDirs", lambda: run("tar", "-cf", "-", "-C", str(mount), "tree"))
    recorder.stage("RemoveDirs", lambda: run("rm", "-rf", f"{mount}/tree"))


def make_files(mount, inner, leaves):
    for name in inner:
        os.mkdir(f"{mount}/tree{name}")
    for name in leaves:
        with open(f"{mount}/tree{name}", "wb", buffering=0) as file:
            file.write(FILE)


def files(recorder, mount, options):
    inner, leaves = tree(options.count, WIDTH_OF_FILES)
    random.Random(options.seed).shuffle(leaves)
    os.mkdir(f"{mount}/tree")
    recorder.stage("CreateFiles", lambda: make_files(mount, inner, leaves))
    recorder.stage("FindFiles", lambda: run("find", f"{mount}/tree"))
    recorder.stage("TarFiles", lambda: run("tar", "-cf", "-", "-C", str(mount), "tree"))
    recorder.stage("RemoveFiles", lambda: run("rm", "-rf", f"{mount}/tree"))


def journal(recorder, mount, options):
    """Figure 3.5: creating, without writing back what is dirty at the end."""
    inner, leaves = tree(options.count, WIDTH_OF_JOURNAL)
    random.Random(options.seed).shuffle(leaves)
    os.mkdir(f"{mount}/tree")
    recorder.stage("Create", lambda: make_files(mount, inner, leaves), end=lambda: None)


def processor(mount, options):
    """Creates, reads with a cold cache, and removes, so that all that lazy writeback does is done often."""
    inner, leaves = tree(options.count, WIDTH_OF_JOURNAL)
    for _ in range(3):
        os.mkdir(f"{mount}/tree")
        make_files(mount, inner, leaves)
        os.sync()
        for _ in range(2):
            pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
        run("find", f"{mount}/tree", "-size", "+1M")
        run("rm", "-rf", f"{mount}/tree")
        os.sync()


class Postmark:
    """What Postmark does: files of 512 bytes to 1 MiB, read or appended to, created or deleted."""

    SMALLEST, LARGEST = 512, 1 << 20

    def __init__(self, mount, seed, files_, folders):
        self.random, self.mount = random.Random(seed), mount
        self.data = self.random.randbytes(self.LARGEST)
        self.folders = [f"{mount}/s{number}" for number in range(folders)]
        self.files, self.made, self.first = {}, 0, files_
        self.names = []

    def create(self):
        name = f"{self.random.choice(self.folders)}/{self.made}"
        self.made += 1
        size = self.random.randint(self.SMALLEST, self.LARGEST)
        with open(name, "wb", buffering=0) as file:
            file.write(self.data[:size])
        self.files[name] = size
        self.names.append(name)

    def pick(self):
        return self.random.randrange(len(self.names))

    def working_set(self):
        for folder in self.folders:
            os.mkdir(folder)
        for _ in range(self.first):
            self.create()

    def transaction(self):
        name = self.names[self.pick()]
        if self.random.random() < 0.5:
            with open(name, "rb", buffering=0) as file:
                while file.read(1 << 20):
                    pass
        else:
            more = self.random.randint(0, max(self.LARGEST - self.files[name], 0))
            with open(name, "ab", buffering=0) as file:
                file.write(self.data[:more])
            self.files[name] += more
        if self.random.random() < 0.5:
            self.create()
        else:
            place = self.pick()
            self.names[place], self.names[-1] = self.names[-1], self.names[place]
            name = self.names.pop()
            os.unlink(name)
            del self.files[name]

    def transactions(self, count, seconds):
        """Evenly over so many seconds, if this machine is fast enough."""
        start = time.monotonic()
        for number in range(count):
            ahead = start + seconds * number / count - time.monotonic()
            if ahead > 0.01:
                time.sleep(ahead)
            self.transaction()


def postmark(recorder, mount, options):
    load = Postmark(mount, options.seed, options.files, options.folders)
    recorder.stage("WorkingSet", load.working_set)
    recorder.stage("Transactions", lambda: load.transactions(options.count, options.seconds), cold=False)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("load", choices=("directories", "files", "journal", "postmark", "processor"))
    parser.add_argument("mount", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--device")
    parser.add_argument("--options", help="of mounting")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, required=True, help="leaves of the tree, or transactions")
    parser.add_argument("--files", type=int, help="of Postmark's working set")
    parser.add_argument("--folders", type=int)
    parser.add_argument("--seconds", type=float, help="that Postmark's transactions are to take")
    options = parser.parse_args()
    if options.load == "processor":
        processor(options.mount, options)
        return
    recorder = Recorder(options.folder, options.device)
    loads = {"directories": directories, "files": files, "journal": journal, "postmark": postmark}
    loads[options.load](recorder, options.mount, options)
    for state in pathlib.Path("/proc/fs/jbd2").glob("*/lazy"):
        shutil.copyfile(state, options.folder / "map")
    subprocess.run(["umount", str(options.mount)], check=True)
    recorder.stage("Mount", lambda: subprocess.run(
        ["mount", "-t", "ext4", "-o", options.options, options.device, str(options.mount)], check=True), end=lambda: None)


main()
