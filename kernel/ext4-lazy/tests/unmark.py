"""Takes the mark of lazy writeback off the superblock of each of these images or devices, as `ext4lazy off` does before e2fsck."""

import pathlib
import stat
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import journal  # noqa: E402

for word in sys.argv[1:]:
    path = pathlib.Path(word)
    if path.exists() and (stat.S_ISBLK(path.stat().st_mode) or path.is_file()):
        journal.unmark(path)
