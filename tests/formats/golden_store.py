"""Drives with a store: after an unmount with one copy of metadata and with two, and as a power cut leaves one."""

import shutil
import subprocess
from hashlib import sha256

FOLDER = "store-3"
OBJECTS = {
    "photos/large": b"".join(b"line %07d\n" % line for line in range(30000)),
    "photos/small": b"a few bytes\n",
    "photos/empty": b"",
    "texts/changed": b"the second text\n" * 1000,
    "texts/name with spaces, and é": b"text\n",
}


def make(golden):
    for name, copies, about in [("one-copy", 1, "metadata in one copy"), ("two-copies", 2, "metadata in two copies")]:
        drive = golden.scratch / f"{name}.zoned"
        shape = ["--zone-size", "256KiB", "--size", "24MiB", "--conventional", "4", "--max-active", "24", "--max-open", "24"]
        golden.run("drive", "create", drive, "--profile", "test-small", *shape)
        golden.run("store", "mkfs", drive, "--metadata-copies", copies)
        for path, content in [("texts/changed", b"the first text\n"), ("texts/removed", b"x" * 5000), *OBJECTS.items()]:
            golden.run("store", "put", drive, "-", path, stdin=content)
        golden.run("store", "rm", drive, "texts/removed")
        keep(golden, name, drive, f"after an unmount, {about}")
    killed = golden.scratch / "killed.zoned"
    shutil.copy(golden.scratch / "two-copies.zoned", killed)
    mounted = subprocess.Popen([golden.program, "serve", killed, "--s3", "127.0.0.1:0"], stdout=subprocess.PIPE)
    assert b"serves" in mounted.stdout.readline()
    mounted.kill()
    mounted.wait()
    keep(golden, "killed", killed, "mounted once more, and killed")


def keep(golden, name, drive, about):
    objects = {path: [len(content), sha256(content).hexdigest()] for path, content in OBJECTS.items()}
    golden.keep(name, drive.read_bytes(), about=about, exit_code=0, objects=objects)
