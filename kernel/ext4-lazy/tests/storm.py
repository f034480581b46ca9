"""Runs in the guest: creates, renames, deletes and syncs, and compares a file system with what it should hold.

The model is a dictionary of paths: a directory's value is None, a file's is [size, seed], a symbolic link's its target.
It is written to FOLDER/model at every sync, and what is touched after that to FOLDER/touched, so that after a kill
everything can be compared that nobody was changing. A file of which fsync() has ended is in FOLDER/touched as well, as
`=[name, [size, seed]]`: it has to be there as long as it is not touched again.

    storm.py storm MOUNT FOLDER --seed N --operations N [--sync-every N] [--drop-every N] [--fsync]
    storm.py verify MOUNT FOLDER
    storm.py digest MOUNT
    storm.py begin TOP --kind KIND      makes the directory TOP of a mounted file system for a storm of that kind (kinds.py)
    storm.py unlock MOUNT               reads what is encrypted
    storm.py fill MOUNT          logs as many blocks as the log has, and a tenth more; what it made for that is gone at the end
"""

import argparse
import functools
import hashlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import kinds  # noqa: E402

LARGEST = 24 << 10


@functools.lru_cache(maxsize=4096)
def content(size, seed):
    return random.Random(seed).randbytes(size)


class Storm:
    def __init__(self, mount, folder, seed, mark=None, kind=""):
        self.mount, self.folder, self.random, self.kind = mount, folder, random.Random(seed), kind
        self.mark, self.marks = mark, 0
        self.model = load(folder)
        self.touched = None
        self.count = 0

    def path(self, name):
        # All names are in lower case.
        return self.mount / (name.upper() if "casefold" in self.kind and self.random.random() < 0.5 else name)

    def touch(self, *names):
        """Says what is about to change, before it does."""
        self.touched.write("".join(name + "\n" for name in names))
        keep(self.touched)

    def sync(self):
        os.sync()
        save(self.folder, self.model)
        if self.touched:
            self.touched.close()
        # In this order: a kill between the two leaves more to be touched than was.
        self.touched = open(self.folder / "touched", "w")
        if self.mark:
            # One more folder with a model, and what it is durable in front of in dm-log-writes' log.
            folder = self.folder / str(self.marks)
            folder.mkdir()
            save(folder, self.model)
            self.touched = open(folder / "touched", "w")
            subprocess.run(["dmsetup", "message", self.mark, "0", "mark", str(self.marks)], check=True)
            self.marks += 1

    def pick(self, kind):
        names = [name for name, value in self.model.items() if kind(value)]
        return self.random.choice(names) if names else None

    def directory(self):
        names = [name for name, value in self.model.items() if value is None]
        if len(names) < 4 or (len(names) < 60 and self.random.random() < 0.03):
            parent = self.random.choice(names) + "/" if names and self.random.random() < 0.5 else ""
            name = f"{parent}d{self.count}-{self.random.getrandbits(24):x}"
            self.touch(name)
            self.path(name).mkdir()
            self.model[name] = None
            return name
        return self.random.choice(names)

    def create(self):
        folder = self.directory()
        for _ in range(self.random.choice((1, 1, 8, 40))):
            name = f"{folder}/f{self.count}-{self.random.getrandbits(24):x}"
            self.count += 1
            size = self.random.choice((0, 0, 100, 5000, LARGEST))
            seed = self.random.getrandbits(30)
            self.touch(name)
            self.path(name).write_bytes(content(size, seed))
            self.model[name] = [size, seed]

    def link(self):
        name = f"{self.directory()}/l{self.count}"
        self.count += 1
        target = "x" * self.random.choice((10, 70, 900)) + str(self.count)
        self.touch(name)
        self.path(name).symlink_to(target)
        self.model[name] = target

    def unlink(self):
        for _ in range(self.random.choice((1, 10, 30))):
            name = self.pick(lambda value: value is not None)
            if name:
                self.touch(name)
                self.path(name).unlink()
                del self.model[name]

    def rename(self):
        name = self.pick(lambda value: value is not None)
        if name:
            new = f"{self.directory()}/r{self.count}"
            self.count += 1
            self.touch(name, new)
            self.path(name).rename(self.path(new))
            self.model[new] = self.model.pop(name)

    def fsync(self):
        """Of some files: one of them at a time is promised."""
        for _ in range(self.random.choice((1, 1, 4))):
            name = self.pick(lambda value: isinstance(value, list))
            if name:
                descriptor = os.open(self.path(name), os.O_RDONLY)
                os.fsync(descriptor)
                os.close(descriptor)
                self.touch("=" + json.dumps([name, self.model[name]]))

    def remove_tree(self):
        top = self.pick(lambda value: value is None)
        if top:
            inside = sorted((n for n in self.model if n == top or n.startswith(top + "/")), reverse=True)
            self.touch(*inside)
            for name in inside:
                if self.model.pop(name) is None:
                    self.path(name).rmdir()
                else:
                    self.path(name).unlink()

    def attribute(self):
        name = self.pick(lambda value: isinstance(value, list))
        if name:
            self.touch(name)
            os.setxattr(self.path(name), "user.a", b"v" * self.random.choice((10, 800)))

    def seal(self):
        for _ in range(self.random.choice((1, 4))):
            name = self.pick(lambda value: isinstance(value, list))
            if name and not kinds.is_sealed(self.path(name)):
                # If this is interrupted, the file is what it was.
                kinds.seal(self.path(name))

    def run(self, operations, sync_every, drop_every, fsync):
        self.sync()
        calls = [self.create] * 8 + [self.unlink] * 5 + [self.rename] * 3 + [self.link, self.attribute]
        if fsync:
            calls += [self.fsync] * 8
        if "verity" in self.kind:
            calls += [self.seal] * 3
        for number in range(1, operations + 1):
            if number % 97 == 0:
                self.remove_tree()
            self.random.choice(calls)()
            if number % sync_every == 0:
                self.sync()
            if drop_every and number % drop_every == 0:
                pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
        self.sync()


def keep(file):
    """What is written is the host's now: the guest's own cache of it dies with the guest."""
    file.flush()
    os.fsync(file.fileno())


def save(folder, model):
    new = folder / "model.new"
    with open(new, "w") as file:
        json.dump(model, file)
        keep(file)
    new.rename(folder / "model")


def load(folder):
    path = folder / "model"
    return json.loads(path.read_text()) if path.exists() else {}


def walk(mount):
    for folder, folders, files in os.walk(mount):
        for name in folders + files:
            path = pathlib.Path(folder) / name
            # A storm's names are in lower case, whatever they were made by.
            relative = str(path.relative_to(mount)).lower()
            if relative.split("/")[0] != "lost+found":
                yield relative, path


def is_right(path, value):
    if isinstance(value, str):
        return path.is_symlink() and os.readlink(path) == value
    if value is None:
        return not path.is_symlink() and path.is_dir()
    return path.is_file() and path.read_bytes() == content(*value)


def load_touched(folder):
    """What was being changed since the last sync, and those files of it that are promised nevertheless."""
    path = folder / "touched"
    touched, promised = set(), {}
    for line in path.read_text().splitlines() if path.exists() else ():
        if line.startswith("="):
            name, value = json.loads(line[1:])
            promised[name] = value
        else:
            touched.add(line)
            promised.pop(line, None)
    return touched, promised


def verify(mount, folder):
    """Returns what is wrong. After a kill, the model goes on from what is there of what was being changed."""
    model = load(folder)
    touched, promised = load_touched(folder)
    touched -= set(promised)
    model.update(promised)
    wrong = []
    found = dict(walk(mount))
    for name, value in model.items():
        if name in touched:
            continue
        if name not in found:
            wrong.append(f"{name} is missing")
        elif not is_right(found[name], value):
            wrong.append(f"{name} is not what it should be")
    wrong += [f"{name} should not be there" for name in found if name not in model and name not in touched]
    return wrong


def forget_touched(mount, folder):
    """Removes what was being changed, so that the model is exact again."""
    model = load(folder)
    for name in sorted(load_touched(folder)[0], reverse=True):
        target = mount / name
        if not target.is_symlink() and target.is_dir():
            for inside in sorted((n for n in model if n.startswith(name + "/")), reverse=True):
                remove(mount / inside)
                model.pop(inside)
            for inside, below in sorted(((n, p) for n, p in walk(target)), reverse=True):
                remove(below)
            remove(target)
        elif os.path.lexists(target):
            target.unlink()
        model.pop(name, None)
    for name in [n for n in model if not os.path.lexists(mount / n)]:
        model.pop(name)
    os.sync()
    save(folder, model)
    with open(folder / "touched", "w") as file:
        keep(file)


def remove(path):
    if not path.is_symlink() and path.is_dir():
        path.rmdir()
    elif os.path.lexists(path):
        path.unlink()


def digest(mount):
    total = hashlib.sha256()
    for name, path in sorted(walk(mount)):
        state = path.lstat()
        total.update(repr((name, state.st_mode, state.st_size, state.st_nlink, state.st_mtime_ns)).encode())
        if path.is_symlink():
            total.update(os.readlink(path).encode("utf-8", "surrogateescape"))
        elif path.is_file():
            total.update(path.read_bytes())
            for attribute in sorted(os.listxattr(path)):
                total.update(attribute.encode() + os.getxattr(path, attribute))
    return total.hexdigest()


def statistics():
    (path,) = pathlib.Path("/proc/fs").glob("jbd2*/*/lazy")
    return {name: int(value) for name, value in (line.split() for line in path.read_text().splitlines())}


def fill(mount):
    start = statistics()
    wanted = start["published"] + start["log_blocks"] * 11 // 10
    # Some four inodes are in a block: ten times all of them are the log.
    files, top = [], mount / "fill"
    for number in range(start["log_blocks"] * 4 // 10):
        if number % 500 == 0:
            folder = top / str(number)
            folder.mkdir(parents=True)
        files.append(f"{folder}/{number}")
        os.close(os.open(files[-1], os.O_CREAT))
    rounds = 0
    while statistics()["published"] < wanted:
        rounds += 1
        for file in files:
            os.utime(file, (rounds, rounds))
        os.sync()
    shutil.rmtree(top)
    os.sync()
    end = statistics()
    print(f"filled {end['published'] - start['published']} in {rounds} rounds, {end['mapped']} mapped, {end['cleaned']} written home")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=("storm", "verify", "forget-touched", "digest", "fill", "begin", "unlock"))
    parser.add_argument("mount", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--operations", type=int, default=1000)
    parser.add_argument("--sync-every", type=int, default=50)
    parser.add_argument("--drop-every", type=int, default=0)
    parser.add_argument("--fsync", action="store_true", help="of single files too")
    parser.add_argument("--kind", default="", help="casefold, encrypt, verity, or several of them")
    parser.add_argument("--mark", help="a device of dm-log-writes")
    options = parser.parse_args()
    if options.command == "storm":
        Storm(options.mount, options.folder, options.seed, options.mark, options.kind).run(
            options.operations, options.sync_every, options.drop_every, options.fsync)
    elif options.command == "digest":
        print(digest(options.mount))
    elif options.command == "fill":
        fill(options.mount)
    elif options.command == "begin":
        kinds.begin(options.mount, options.kind)
    elif options.command == "unlock":
        kinds.unlock(options.mount)
    elif options.command == "forget-touched":
        forget_touched(options.mount, options.folder)
    else:
        wrong = verify(options.mount, options.folder)
        for line in wrong[:20]:
            print(line)
        sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
