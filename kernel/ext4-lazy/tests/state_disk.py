"""Runs in the guest: a disk image in memory, mounted again and again without a process for it."""

import ctypes
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import journal  # noqa: E402

MS_RDONLY = 1
LIBC = ctypes.CDLL(None, use_errno=True)
STATE, MOUNT, LOOP = pathlib.Path("/tmp/state"), pathlib.Path("/tmp/mount"), "/dev/loop0"


class Wrong(Exception):
    """A state that is not as it should be."""


class Mounted:
    def __init__(self, options, flags=0, device=LOOP, patched=False):
        """Without lazy, by the packaged ext4 if there is one, or by the patched one."""
        self.options, self.flags, self.device, self.patched = options, flags, device, patched or "lazy" in options

    def __enter__(self):
        kind = os.environ.get("LAZY_TYPE", "ext4").encode() if self.patched else b"ext4"
        if kind == b"ext4" and os.environ.get("LAZY_TYPE") == "ext4lazy":
            # The packaged ext4 refuses what is marked.
            journal.unmark(self.device)
        if LIBC.mount(self.device.encode(), bytes(MOUNT), kind, self.flags, self.options.encode()):
            raise Wrong(f"mount -o {self.options}: {os.strerror(ctypes.get_errno())}")

    def __exit__(self, *_):
        if LIBC.umount2(bytes(MOUNT), 0):
            raise Wrong(f"umount: {os.strerror(ctypes.get_errno())}")


def attach(image, loop=LOOP, state=STATE):
    state.write_bytes(image)
    MOUNT.mkdir(exist_ok=True)
    subprocess.run(["/sbin/losetup", loop, str(state)], check=True)


def put(image, state=STATE):
    with open(state, "r+b") as file:
        file.write(image)


def fsck(*options, good=(0,)):
    done = subprocess.run(["/sbin/e2fsck", *options, str(STATE)], capture_output=True, text=True, errors="replace", check=False)
    if done.returncode not in good:
        raise Wrong(f"e2fsck {' '.join(options)}: {done.stdout[-1500:]}{done.stderr[-500:]}")
    return done.stdout
