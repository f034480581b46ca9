"""BlueFS in two copies: whole, with one copy of a file damaged, and with one copy of the journal gone."""

from hashlib import sha256

FOLDER = "bluefs-7"
FILES = {"/a/1.sst": b"".join(b"line %06d of a table\n" % line for line in range(3000)), "/a/b/2.sst": b"small", "/empty": b""}


def make(golden):
    drive = golden.scratch / "d.zoned"
    shape = ["--zone-size", "64KiB", "--size", "4MiB", "--conventional", "2"]
    golden.run("drive", "create", drive, "--profile", "test-small", *shape)
    golden.run("fs", "mkfs", drive, "--metadata-copies", "2")
    for path, content in FILES.items():
        golden.run("fs", "put", drive, "-", path, stdin=content)
    whole = drive.read_bytes()
    keep(golden, "whole", whole, "after an unmount")
    for name, bytes_, about in [("file", b"line 001000 of", "a file"), ("journal", b"2.sst", "the journal")]:
        first = whole.index(bytes_)
        assert whole.index(bytes_, first + 1) > first
        damaged = bytearray(whole)
        damaged[first] ^= 4
        keep(golden, f"{name}-copy", bytes(damaged), f"a flipped bit in one copy of {about}: the other counts", "whole")


def keep(golden, name, content, about, base=None):
    files = {path: [len(data), sha256(data).hexdigest()] for path, data in FILES.items()}
    golden.keep(name, content, base, about=about, exit_code=0, files=files)
