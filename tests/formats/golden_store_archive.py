"""Archives of a store: a full backup, one since it, and a part that was exported."""

from hashlib import sha256

FOLDER = "store-archive-1"
FIRST = {
    "photos/large": b"".join(b"line %07d\n" % line for line in range(9000)),
    "photos/removed": b"x" * 5000,
    "texts/changed": b"the first text\n",
    "texts/name with spaces, and é": b"text\n",
}


def make(golden):
    drive = golden.scratch / "d.zoned"
    shape = ["--zone-size", "256KiB", "--size", "24MiB", "--conventional", "4", "--max-active", "24", "--max-open", "24"]
    golden.run("drive", "create", drive, "--profile", "test-small", *shape)
    golden.run("store", "mkfs", drive)
    for path, content in FIRST.items():
        golden.run("store", "put", drive, "-", path, stdin=content)
    golden.run("store", "backup", drive, "--to", "full.tar")
    keep(golden, "full", FIRST, "as `store backup` writes it")
    later = {**FIRST, "texts/changed": b"the second text\n" * 1000, "texts/new": b""}
    del later["photos/removed"]
    for path in ("texts/changed", "texts/new"):
        golden.run("store", "put", drive, "-", path, stdin=later[path])
    golden.run("store", "rm", drive, "photos/removed")
    golden.run("store", "backup", drive, "--since", "full.tar", "--to", "since.tar")
    keep(golden, "since", later, "as `store backup --since` writes it: what has changed", follows=["full"])
    golden.run("store", "export", drive, "texts", "--to", "export.tar")
    texts = {path: content for path, content in later.items() if path.startswith("texts/")}
    keep(golden, "export", texts, "a collection, as `store export` writes it", imported=True)


def keep(golden, name, objects, about, **more):
    objects = {path: [len(content), sha256(content).hexdigest()] for path, content in objects.items()}
    archive = (golden.scratch / f"{name}.tar").read_bytes()
    golden.keep(name, archive, about=about, exit_code=0, objects=objects, **more)
