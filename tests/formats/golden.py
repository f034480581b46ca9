"""The golden images beside this file: bytes that were written once, and what has to be answered for each."""

import json
import lzma
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"


def names(folder):
    """Of every image of one format and version."""
    found = sorted(path.stem for path in (GOLDEN / folder).glob("*.json"))
    assert found, f"no golden images in {folder}"
    return found


def image(folder, name):
    """Its bytes: a file of its own, or another one with some bytes changed."""
    if "changed" not in (answer := expected(folder, name)):
        return lzma.decompress((GOLDEN / folder / f"{name}.xz").read_bytes())
    changed = answer["changed"]
    content = bytearray(image(folder, changed["from"]))[: changed["length"]].ljust(changed["length"], b"\0")
    for at, new in changed["bytes"].items():
        new = bytes.fromhex(new)
        content[int(at) : int(at) + len(new)] = new
    return bytes(content)


def expected(folder, name):
    return json.loads((GOLDEN / folder / f"{name}.json").read_text())


def difference(old, new):
    """Changed bytes by their place, as `image` applies them; `new` is cut off or goes on with zeros."""
    runs = {}
    at = 0
    end = min(len(old), len(new))
    assert not any(new[end:])
    while at < end:
        if old[at : at + 4096] == new[at : at + 4096]:
            at += 4096
        elif old[at] == new[at]:
            at += 1
        else:
            start = at
            while at < end and old[at : at + 8] != new[at : at + 8]:
                at += 1
            runs[start] = new[start:at].hex()
    return runs
