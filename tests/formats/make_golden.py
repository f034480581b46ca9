#!/usr/bin/env python3
"""Makes the golden images of the present versions, by hand and once: what is there stays, byte for byte.
Needs ZONESTORE_BIN with its libraries beside it, and Debian's python3-plyvel.

    ZONESTORE_BIN=target/debug/zonestore tests/formats/make_golden.py [NAME…]

With names (bluefs, bluefs_copies, drive_file, unsynced, backup, model_state, smrfs, smrfs_2, caveat_2, store, store_archive, zea, zeafs) only those. A new version of a format gets
new images in a folder of its own; those of versions that are not read any more stay, as refused ones."""

import lzma
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent))
import golden
import golden_backup
import golden_bluefs
import golden_bluefs_copies
import golden_bluefs_superblocks
import golden_bluefs_zones
import golden_caveat_2
import golden_drive_file
import golden_model_state
import golden_smrfs
import golden_smrfs_2
import golden_store
import golden_store_archive
import golden_unsynced
import golden_zea
import golden_zeafs

MAKERS = {
    "bluefs": golden_bluefs,
    "bluefs_copies": golden_bluefs_copies,
    "bluefs_superblocks": golden_bluefs_superblocks,
    "bluefs_zones": golden_bluefs_zones,
    "caveat_2": golden_caveat_2,
    "drive_file": golden_drive_file,
    "unsynced": golden_unsynced,
    "backup": golden_backup,
    "model_state": golden_model_state,
    "smrfs": golden_smrfs,
    "smrfs_2": golden_smrfs_2,
    "store": golden_store,
    "store_archive": golden_store_archive,
    "zea": golden_zea,
    "zeafs": golden_zeafs,
}


class Golden:
    """A folder of images, and the program that makes what goes into them."""

    def __init__(self, folder, scratch):
        self.folder, self.scratch = folder, scratch
        self.program = Path(os.environ["ZONESTORE_BIN"]).absolute()
        folder.mkdir(parents=True, exist_ok=True)

    def run(self, *arguments, stdin=b"", code=0):
        done = subprocess.run([self.program, *map(str, arguments)], cwd=self.scratch, input=stdin, capture_output=True)
        assert done.returncode == code, (arguments, done.returncode, done.stderr)
        return done.stdout

    def drive(self, name, conventional=2):
        """64 KiB zones of which 56 can be written, 48 of them."""
        shape = ["--zone-size", "64KiB", "--zone-capacity", "56KiB", "--size", "3MiB", "--conventional", conventional]
        self.run("drive", "create", name, "--profile", "test-small", *shape)
        return self.scratch / name

    def leveldb(self, drive, statements, code=0):
        """Statements with an open database `db`, in a process of its own."""
        opening = "import os, plyvel; db = plyvel.DB('/db', create_if_missing=True)"
        self.run("leveldb", drive, "--", "/usr/bin/python3", "-c", f"{opening}\n{statements}", code=code)

    def keep(self, name, content, base=None, **expected):
        """One image with what has to be answered: a file, or what differs from the image `base`. Refuses to
        replace one."""
        if base:
            old = golden.image(self.folder.name, base)
            changed = golden.difference(old, content)
            expected["changed"] = {"from": base, "length": len(content), "bytes": changed}
        else:
            with (self.folder / f"{name}.xz").open("xb") as image:
                image.write(lzma.compress(bytes(content), preset=9))
        with (self.folder / f"{name}.json").open("x") as expectation:
            expectation.write(json.dumps(expected, indent=1) + "\n")
        print(self.folder.name, name)


def main(names):
    for name in names or MAKERS:
        maker = MAKERS[name]
        folder = Path(__file__).parent / "golden" / maker.FOLDER
        if folder.exists():
            sys.exit(f"{folder} is there already, and stays as it is")
        with TemporaryDirectory() as scratch:
            maker.make(Golden(folder, Path(scratch)))


if __name__ == "__main__":
    main(sys.argv[1:])
