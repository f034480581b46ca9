#!/usr/bin/python3
"""Runs in the lab's guest: one system through all steps, its results as JSON in the shared directory.

    guest.py SYSTEM long|short STEP,STEP…
"""

import json
import os
import pathlib
import platform
import sys
import traceback

import damage
import steps
from drive import SIZES_MIB, Failed, NullBlk
from files import Btrfs, Ext4OnDmZoned, F2fs, Xfs, XfsOnDmZoned
from store import ZoneStore

SYSTEMS = {"zonestore": ZoneStore, "xfs": Xfs, "f2fs": F2fs, "btrfs": Btrfs, "dmz-ext4": Ext4OnDmZoned,
           "dmz-xfs": XfsOnDmZoned}


def remove(system, drive):
    """A system that broke may hold it still; the guest ends with it."""
    try:
        system.abandon()
        drive.remove()
    except (Failed, OSError, AttributeError):
        pass


def with_drive(system, mib, step, *arguments):
    drive = NullBlk(mib)
    result = step(system, drive, *arguments)
    remove(system, drive)
    return result


def main():
    name, length, wanted = sys.argv[1], sys.argv[2], sys.argv[3].split(",")
    system = SYSTEMS[name]()
    mib = SIZES_MIB[length]
    path = pathlib.Path(os.environ["LAB_SHARE"]) / f"{name}.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    results["label"], results["kernel"], results["length"] = system.label, platform.release(), length

    def keep(step, value):
        results[step] = value
        path.write_text(json.dumps(results, indent=1))
        print(f"{name}: {step}: {json.dumps(value)}", flush=True)

    for step in wanted:
        try:
            print(f"{name}: {step} …", flush=True)
            if step == "flip":
                keep(step, damage.flipped_byte(system, mib))
            elif step == "cuts":
                keep(step, damage.power_cuts(system, SIZES_MIB["short"], length))
            elif step == "control":
                # ZoneStore has no way not to sync.
                if not hasattr(system, "syncs"):
                    continue
                keep(step, damage.control(system, SIZES_MIB["short"]))
            elif step == "full":
                drive = NullBlk(mib)
                for row in steps.full_drive(system, drive, length):
                    keep(step, row)
                remove(system, drive)
            else:
                keep(step, with_drive(system, mib, getattr(steps, step), length))
        except Exception as error:
            traceback.print_exc()
            keep(step, dict(results.get(step) or {}, error=f"{type(error).__name__}: {error}"))
            # The next step would find what this one left behind.
            sys.exit(3)


main()
