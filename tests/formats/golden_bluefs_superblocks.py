"""The golden drives with BlueFS, with superblocks that are damaged in more than one place."""

import struct

import golden as images
from golden_bluefs import Image, keep

FOLDER = "bluefs-6-superblocks"


def make(golden):
    clean, killed = (Image(images.image("bluefs-6", name), f"../bluefs-6/{name}") for name in ("clean", "killed"))
    newest = clean.fs.superblock.generation
    keep(golden, "unmount", flipped(clean, newest), "the unmount's are damaged: those of the mount count")
    about = "those of a mount that was killed are damaged: the one before names a journal that is gone"
    keep(golden, "mount", flipped(killed, killed.fs.superblock.generation), about, 6, ["durable", "damaged"])
    about = "one ring ends far behind the other, which counts"
    behind = clean
    for zone, offset in clean.superblocks():
        if zone < 2 and offset > 0:
            behind = behind.flipped(zone, offset + 40)
    keep(golden, "ring-behind", behind, about)
    about = "a number of a role that there is not, with right checksums: no superblock, so the drive has none"
    golden_role = clean.patched_superblocks(84, struct.pack("<I", 3))
    expected = {"about": about, "exit_code": 6, "says": ["superblock"], "refused": "NoSuperblock"}
    golden.keep("role", golden_role.content, golden_role.base, **expected)


def flipped(image, generation):
    for zone, offset in image.superblocks(generation):
        image = image.flipped(zone, offset + 40)
    return image
