"""States of a disk, of a zoned flash drive and of a host-aware disk with the text of their profiles, and what can be wrong with one.
A new version comes with every change of a model's types: these are then refused, and stay as that."""

import struct

from checksums import crc64_nvme

FOLDER = "model-state-5"
RUNS = {
    "disk": ["st4000lm016", "--rw", "read", "--runtime", "1s"],
    "zoned-flash": ["zns-zn540", "--rw", "write", "--size", "4GiB", "--runtime", "1s"],
    "host-aware": ["ha-smr-8tb", "--rw", "randwrite", "--bs", "1MiB", "--runtime", "1s"],
}


def make(golden):
    for name, (profile, *options) in RUNS.items():
        text = golden.run("model", "show", profile)
        (golden.scratch / "profile.toml").write_bytes(text)
        golden.run("model", "run", "./profile.toml", *options, "--state", f"{name}.state")
        state = (golden.scratch / f"{name}.state").read_bytes()
        golden.keep(f"{name}-profile", text, about="the profile of a state", profile_of=name)
        golden.keep(name, state, about="after a second", exit_code=0, clock=clock(state), model_bytes=len(state) - 48)
    disk = (golden.scratch / "disk.state").read_bytes()
    refuse(golden, "magic", patched(disk, 3, b"X"), 8, "magic", "another magic")
    for version in (4, 6):
        says = [f"version {version}", "5"]
        content = patched(disk, 8, struct.pack("<I", version))
        refuse(golden, f"version-{version}", content, 8, "version", "another version with a right checksum", says)
    about = "a reserved byte that is not zero: no reader looks at it"
    expected = {"exit_code": 0, "clock": clock(disk), "model_bytes": len(disk) - 48}
    golden.keep("reserved", patched(disk, 13, b"X"), "disk", about=about, **expected)
    refuse(golden, "cut", disk[: len(disk) // 2], 6, "length", "half of it")
    refuse(golden, "header-only", disk[:40], 6, "magic", "the header is cut off")
    refuse(golden, "long", disk + bytes(1), 6, "length", "a byte too many")
    refuse(golden, "bit", disk[:99] + bytes([disk[99] ^ 4]) + disk[100:], 6, "checksum", "a flipped bit in the model")
    clock_bit = disk[:25] + bytes([disk[25] ^ 4]) + disk[26:]
    refuse(golden, "clock-bit", clock_bit, 6, "checksum", "a flipped bit in the clock")
    refuse(golden, "profile", patched(disk, 16, bytes(8)), 8, "profile", "the state of another profile", ["profile"])


def clock(state):
    return struct.unpack_from("<Q", state, 24)[0]


def refuse(golden, name, content, code, what, about, says=()):
    golden.keep(name, content, "disk", about=about, exit_code=code, says=list(says), refused=what)


def patched(state, at, field):
    """With a right checksum."""
    state = state[:at] + field + state[at + len(field) :]
    return state[:40] + struct.pack("<Q", crc64_nvme(state[:40] + state[48:])) + state[48:]
