"""Runs in the guest: what directories and files may be beside ordinary: names of any case, encrypted, with fs-verity."""

import fcntl
import os
import struct
import subprocess

# The same in each mount: nothing is secret here.
KEY = bytes(range(64))
ADD_KEY, SET_POLICY, ENABLE_VERITY, MEASURE_VERITY = 0xC0506617, 0x800C6613, 0x40806685, 0xC0046686


def call(path, number, argument):
    file = os.open(path, os.O_RDONLY)
    try:
        fcntl.ioctl(file, number, argument)
    finally:
        os.close(file)
    return argument


def unlock(mount):
    """Adds the key to a mounted file system; returns the key's identifier."""
    # A key that is named by what it is (type 2), its length behind 40 bytes of that, and itself behind the structure.
    return bytes(call(mount, ADD_KEY, bytearray(struct.pack("<I36xI36x", 2, len(KEY)) + KEY))[8:24])


def begin(top, kind):
    """Makes the directory `top` of a mounted file system, in which everything is of that kind."""
    os.mkdir(top)
    if "encrypt" in kind:
        # Version 2, AES-256 in XTS and CTS, names padded to 32 bytes.
        call(top, SET_POLICY, struct.pack("<BBBB4x16s", 2, 1, 4, 3, unlock(os.path.dirname(top))))
    if "casefold" in kind:
        subprocess.run(["chattr", "+F", top], check=True)


def seal(path):
    """From here on the file's content cannot be changed, and is compared with a tree of checksums behind it."""
    call(path, ENABLE_VERITY, struct.pack("<III116x", 1, 1, 4096))


def is_sealed(path):
    try:
        call(path, MEASURE_VERITY, bytearray(struct.pack("<HH64x", 0, 64)))
    except OSError:
        return False
    return True
