"""Runs in the guest: what a mount, lazy or not, makes of a log with damage to its blocks.

    damaged.py IMAGE DAMAGES

DAMAGES is JSON: a list of {name, writes: [[byte, hex], …]}. With each, a mount is refused and changes nothing, or it shows the
same tree as without damage. The first one is none, and must not be refused.
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import storm  # noqa: E402
from state_disk import MOUNT, MS_RDONLY, STATE, Mounted, Wrong, attach, put  # noqa: E402


def main():
    image = pathlib.Path(sys.argv[1]).read_bytes()
    attach(image)
    good, refused, shown, wrong = None, 0, 0, 0
    listed = json.loads(pathlib.Path(sys.argv[2]).read_text())
    for damage, options in ((damage, options) for damage in listed for options in ("lazy", "errors=remount-ro")):
        damaged = bytearray(image)
        for at, data in damage["writes"]:
            data = bytes.fromhex(data)
            damaged[at:at + len(data)] = data
        put(damaged)
        try:
            with Mounted(options, MS_RDONLY, patched=True):
                digest = storm.digest(MOUNT)
        except Wrong as refusal:
            refused += 1
            if good is None or STATE.read_bytes() != damaged:
                wrong += 1
                print(f"{damage['name']}, {options}: {refusal}, and {'it is not damaged' if good is None else 'something was written'}", flush=True)
            continue
        except OSError as error:
            # An error where a damaged copy is read.
            refused += 1
            print(f"   {damage['name']}, {options}: {error.strerror}", flush=True)
            continue
        shown += 1
        good = good or digest
        if digest != good:
            wrong += 1
            print(f"{damage['name']}, {options}: something else is shown", flush=True)
    print(f"{refused} refused, {shown} as without damage, {wrong} wrong", flush=True)
    sys.exit(1 if wrong else 0)


main()
