"""zonestore's cluster: up, down, status, kill, heal."""

import signal

# Python loses a Ctrl-C that comes while it imports. There is nothing to clear up yet: let it end.
interrupt = signal.getsignal(signal.SIGINT)
if interrupt is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import argparse
import contextlib
import json
import os
import shutil
import sys
import time
from pathlib import Path

from zonestore_cluster import host
from zonestore_cluster.cluster import PLAN, Cluster, clear, is_remainder
from zonestore_cluster.node import MOST_DRIVES
from zonestore_cluster.processes import Failed

ROOT = Path(__file__).resolve().parents[2]
# What options of `up` are if they are not given.
SHAPE = {"nodes": 4, "drives": 2, "profile": "hm-smr-14tb", "size": "64GiB", "zone-size": "64MiB", "default-policy": "zoned",
         "workers": 0, "interval": 10, "quiet": False}


def binary():
    named = os.environ.get("ZONESTORE_BIN") or shutil.which("zonestore")
    if named:
        if not (os.path.isfile(named) and os.access(named, os.X_OK)):
            raise Failed(f"{named} is no program", "ZONESTORE_BIN names the zonestore to take; without it one is looked for")
        return str(Path(named).resolve())
    built = [path for kind in ("release", "debug") if (path := ROOT / "target" / kind / "zonestore").exists()]
    if not built:
        raise Failed("there is no zonestore", "build it: cargo build --release")
    return str(max(built, key=lambda path: path.stat().st_mtime))


def say(line):
    print(line, file=sys.stderr, flush=True)


def up(arguments):
    folder = arguments.folder
    begun = time.monotonic()
    asked = {option: value for option in SHAPE if (value := getattr(arguments, option.replace("-", "_"))) is not None}
    if (folder / PLAN).exists():
        cluster = Cluster.found(folder)
        refuse_change(cluster, asked)
        say(f"the cluster in {folder} goes on; its shape stays as it was made")
    else:
        shape = {**SHAPE, **asked}
        plan = {"nodes": shape["nodes"], "drives": shape["drives"], "zonestore": binary(),
                "shape": ["--profile", shape["profile"], "--size", shape["size"], "--zone-size", shape["zone-size"]],
                "background": not shape["quiet"], "interval": shape["interval"], "workers": shape["workers"],
                "default": shape["default-policy"]}
        cluster = Cluster(folder, plan)
        cluster.make()
    cluster.start(say)
    say(f"up in {time.monotonic() - begun:.0f} s")
    show_endpoints(cluster, arguments)


def refuse_change(cluster, asked):
    """A cluster that exists keeps what it was made with."""
    different = cluster.different(asked)
    if different:
        words = ", ".join(f"--{option}" if asked[option] is True else f"--{option} {asked[option]} (it has {has})" for option, has in different.items())
        up, remove = (host.command(cluster.folder, words) for words in ("up", "down --remove"))
        raise Failed(f"the cluster in {cluster.folder} keeps the shape it was made with; it cannot have {words}",
                     f"`{up}` alone goes on with it; for another one, `{remove}` first, which forgets all its objects", code=2)
    named = os.environ.get("ZONESTORE_BIN")
    if named and (served := cluster.plan["zonestore"]) != str(Path(named).resolve()):
        say(f"its drives are served by {served}, with which it was made, and not by ZONESTORE_BIN")


def show_endpoints(cluster, arguments):
    ends = cluster.endpoints()
    if arguments.json:
        print(json.dumps({**ends, "drives_to_lose": cluster.drives_to_lose()}))
        return
    print(f"Swift: {ends['swift']}  user {ends['user']}  key {ends['key']}")
    print(f"S3:    {ends['s3']}  access key {ends['user']}  secret key {ends['key']}")
    lost = ", ".join(f"{name} {count}" for name, count in cluster.drives_to_lose().items())
    print(f"Writes go on with so many drives lost: {lost}")
    print(f"Try:   curl -i -H 'X-Auth-User: {ends['user']}' -H 'X-Auth-Key: {ends['key']}' {ends['swift']}")


def down(arguments):
    folder = arguments.folder
    if not (folder / PLAN).exists():
        ended = Cluster.end_left(folder)
        if arguments.remove and is_remainder(folder):
            clear(folder.resolve())
            say(f"{folder} is removed: it had what was left of a cluster")
            return
        if ended:
            say("stopped; its folder has another name or is gone")
            return
    cluster = Cluster.found(folder)
    if arguments.remove:
        cluster.remove()
        say(f"stopped, and {folder} is removed with all objects")
    else:
        cluster.stop()
        say(f"stopped; `{host.command(folder, 'up')}` goes on with the same objects")


def status(arguments):
    cluster = Cluster.found(arguments.folder)
    found = cluster.status()
    if arguments.json:
        print(json.dumps(found))
        return
    for node in found:
        state = "connected" if node["connected"] else "cut off"
        print(f"{node['node']}  {node['address']}  {state}  {node['running']} processes"
              + (f"; not running: {', '.join(node['not_running'])}" if node["not_running"] else ""))
        for drive in node["drives"]:
            print("  " + of_drive(drive))
    ends = cluster.endpoints()
    print(f"Swift: {ends['swift']}   S3: {ends['s3']}")
    if not all(node["connected"] and not node["not_running"] and all(drive["served"] for drive in node["drives"]) for node in found):
        say(f"hint: `{host.command(cluster.folder, 'heal')}` starts what does not run and connects what is cut off")


def of_drive(drive):
    if not drive["served"]:
        return f"{drive['drive']}  not served: {drive['why']}"
    used = drive["zones"] - drive["free_zones"]
    share = used / max(drive["zones"], 1)
    bar = ("█" * round(share * 20)).ljust(20, "·")
    room = f"{drive['available_bytes'] / 2**20:.1f} MiB available" if drive["available_bytes"] else "full"
    idle = "has nothing to clean" if drive["turn"] == "must" else "does not clean"
    return (f"{drive['drive']}  {bar}  {used} of {drive['zones']} zones, {room}, {drive['live_bytes'] / 2**20:.1f} MiB live,"
            f" {drive['dead_bytes'] / 2**20:.1f} MiB dead, {'cleans' if drive['cleans'] else idle} ({drive['turn']}), health {drive['health']}")


def kill(arguments):
    cluster = Cluster.found(arguments.folder)
    heals = f"`{host.command(arguments.folder, 'heal')}`"
    if arguments.what == "node":
        cluster.node(arguments.which).kill()
        say(f"{arguments.which}: all its processes are gone; {heals} starts them again")
    elif arguments.what == "network":
        host.connect(cluster.folder, cluster.node(arguments.which).number, False)
        say(f"{arguments.which} is cut off; {heals} lets it back")
    else:
        cluster.of_device(arguments.which).kill_drive(arguments.which, arguments.lose)
        after = "an empty one takes its place" if arguments.lose else "it is served again"
        say(f"{arguments.which} is gone; with {heals}, {after}")


def heal(arguments):
    Cluster.found(arguments.folder).start(say)


def whole(least, most):
    """Numbers that an option takes."""
    def number(text):
        if not text.isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text}: a number from {least} to {most}")
        return int(text)
    return number


def main():
    parser = argparse.ArgumentParser(
        prog="scripts/cluster", description="A Swift cluster of zoned drives on this machine, in network namespaces.",
        epilog="Objects stay in the folder until `down --remove`.")
    parser.add_argument("--folder", type=Path, default=host.default_folder(), help="where all of it is [target/cluster]")
    parser.add_argument("--json", action="store_true", help="answer in JSON")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    command = commands.add_parser("up", help="make a cluster, or go on with the one that there is")
    command.add_argument("--nodes", type=whole(1, host.MOST_NODES), help="[4]")
    command.add_argument("--drives", type=whole(1, MOST_DRIVES), help="of each node [2]")
    command.add_argument("--profile", help="what the drives are like [hm-smr-14tb] (`zonestore help drive create`)")
    command.add_argument("--size", help="of each drive, which takes only what is written [64GiB]")
    command.add_argument("--zone-size", help="[64MiB]")
    command.add_argument("--default-policy", choices=["zoned", "zoned-ec", "files"], help="[zoned]")
    command.add_argument("--workers", type=whole(0, 1000), help="processes of each server, replicator and reconstructor, for object "
                         "servers of each port [one, without a parent]")
    command.add_argument("--interval", type=whole(1, 1_000_000), help="seconds between two rounds of replicators and the like [10]")
    command.add_argument("--quiet", action="store_true", default=None, help="only servers: no replicator, auditor, updater, expirer")
    command.set_defaults(run=up)
    command = commands.add_parser("down", help="stop everything")
    command.add_argument("--remove", action="store_true", help="and remove the folder with all objects")
    command.set_defaults(run=down)
    command = commands.add_parser("status", help="nodes, drives, how full their zones are, who cleans, whose turn it is")
    command.set_defaults(run=status)
    command = commands.add_parser("kill", help="kill node N, kill network N (cut it off), kill drive D")
    command.add_argument("what", choices=["node", "network", "drive"])
    command.add_argument("which")
    command.add_argument("--lose", action="store_true", help="kill drive: all on it is lost")
    command.set_defaults(run=kill)
    command = commands.add_parser("heal", help="start what does not run, connect what is cut off, replace drives that are lost")
    command.set_defaults(run=heal)
    arguments = parser.parse_args()
    signal.signal(signal.SIGINT, interrupt)
    # `scripts/cluster status | head` ends as other programs do.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        # Nobody else sees what runs.
        host.check()
        with contextlib.nullcontext() if arguments.run is status else host.alone(say):
            arguments.run(arguments)
    except Failed as failed:
        print(f"cluster: {failed}", file=sys.stderr)
        if failed.hint:
            print(f"hint: {failed.hint}", file=sys.stderr)
        return failed.code
    except OSError as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("cluster: interrupted; give the command again to go on", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
