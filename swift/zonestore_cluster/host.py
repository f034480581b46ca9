"""Nodes of this machine: a network address and an /etc/swift each, in namespaces that a process holds."""

import contextlib
import fcntl
import json
import os
import shlex
import subprocess
import time
from pathlib import Path

from zonestore_cluster.processes import Failed, start

BRIDGE = "zscluster0"
# Its name while nothing is written on it.
UNMARKED = "zscluster0new"
MARK = "zonestore cluster: "
SUBNET = "10.91.0"
# The machine itself, as nodes see it.
HERE = f"{SUBNET}.254"
MOST_NODES = 253
ETC = "/etc/swift"
LOCK = "/run/zonestore-cluster.lock"


def address(number):
    """Of the node with this number, from 1."""
    return f"{SUBNET}.{number}"


def default_folder():
    return Path(os.environ.get("CLUSTER") or Path(__file__).resolve().parents[2] / "target" / "cluster")


def command(folder, words):
    """What to type for a cluster."""
    folder = Path(folder).resolve()
    return f"scripts/cluster {words}" if folder == default_folder().resolve() else f"scripts/cluster --folder {shlex.quote(str(folder))} {words}"


def run(*words):
    # In a session of its own: Ctrl-C ends the command that asks between two steps, not in one.
    done = subprocess.run([str(part) for part in words], capture_output=True, text=True, start_new_session=True)
    if done.returncode:
        words = " ".join(str(part) for part in words)
        raise Failed(f"{words}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def check():
    """Whether this machine can have nodes."""
    if os.geteuid() != 0:
        raise Failed("network namespaces need root", "run it as root, or in a virtual machine")
    done = subprocess.run(["unshare", "--net", "--mount", "true"], capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"this machine makes no namespaces: {done.stderr.strip()}",
                     "in a container, it needs the right to (CAP_SYS_ADMIN)")


@contextlib.contextmanager
def alone(say):
    """One command at a time makes or changes clusters of this machine, which has a network for one."""
    with open(LOCK, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another command is at work on a cluster of this machine; waiting for its end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _link(number):
    return f"zsc{number}"


def _label(folder):
    """What is written on a cluster's bridge: the end of its path, in the 255 bytes that the kernel keeps."""
    return MARK + os.fsdecode(os.fsencode(folder)[len(MARK) - 255:])


def _owner():
    """What is written on the bridge. None: there is none, or that of a cluster none of whose nodes has a process any more, with which its link
    goes. Nothing else that has this name is ours to change."""
    bridge = _interface(BRIDGE)
    if not bridge.exists():
        return None
    label = os.fsdecode((bridge / "ifalias").read_bytes()).removesuffix("\n")
    if not label.startswith(MARK):
        raise _not_ours(BRIDGE)
    return label if any((bridge / "brif").iterdir()) else None


def _interface(name):
    return Path(f"/sys/class/net/{name}")


def _not_ours(name):
    return Failed(f"the network interface {name} of this machine is of no cluster, and a cluster needs the name",
                  f"give it another name: ip link set {name} down && ip link set {name} name OTHER")


def check_free(folder):
    """No other cluster has the network, nor anybody else its name or addresses."""
    owner = _owner()
    if owner not in (None, _label(folder)):
        other = owner.removeprefix(MARK)
        raise Failed(f"the cluster in {other} runs on this machine, which has a network for one",
                     f"stop it: {command(other, 'down')}")
    for route in json.loads(run("ip", "-json", "-4", "route", "show", "table", "all", "to", "root", f"{SUBNET}.0/24") or "[]"):
        if route.get("dev") != BRIDGE:
            raise Failed(f"this machine has a way to {route['dst']} already, by {route.get('dev', 'a route of its own')}: "
                         f"a cluster's nodes have the addresses {SUBNET}.0/24",
                         "take the address or route away while the cluster runs, or use another machine")


def network_up(folder):
    check_free(folder)
    if not _interface(BRIDGE).exists():
        # It has the name only with the mark on it.
        subprocess.run(["ip", "link", "delete", UNMARKED], capture_output=True)
        run("ip", "link", "add", UNMARKED, "type", "bridge")
        run("ip", "link", "set", UNMARKED, "alias", _label(folder))
        run("ip", "link", "set", UNMARKED, "name", BRIDGE)
    run("ip", "link", "set", BRIDGE, "alias", _label(folder))
    run("ip", "address", "replace", f"{HERE}/24", "dev", BRIDGE)
    run("ip", "link", "set", BRIDGE, "up")


def network_down(folder):
    """What is another cluster's, or of none, stays."""
    try:
        owner = _owner()
    except Failed:
        return
    if _interface(BRIDGE).exists() and owner in (None, _label(folder)):
        run("ip", "link", "delete", BRIDGE)


def hold(number, etc, log):
    """Makes a node's namespaces; the process that holds them."""
    # It stays: whoever removes the folder below a mount takes the mount out of all namespaces.
    Path(ETC).mkdir(exist_ok=True)
    holding = f"mount --bind {shlex.quote(str(etc))} {ETC} && exec sleep infinity"
    process = start(["unshare", "--net", "--mount", "--propagation", "private", "sh", "-c", holding], log)
    try:
        _wire(number, process)
    except BaseException:
        # Nobody else knows of it.
        process.kill()
        raise
    return process


def _wire(number, process):
    link = _link(number)
    # That of a process that has ended goes by itself, on a busy machine some time later, and leaves the bridge first.
    until = time.monotonic() + 20
    while _interface(link).exists():
        if (_interface(link) / "master").resolve().name == BRIDGE:
            subprocess.run(["ip", "link", "delete", link], capture_output=True)
        elif time.monotonic() > until:
            raise _not_ours(link)
        time.sleep(0.05)
    # `unshare` has become the shell once its namespace is another.
    process.wait_until(lambda: os.readlink(f"/proc/{process.pid}/ns/net") != os.readlink("/proc/self/ns/net"))
    run("ip", "link", "add", link, "master", BRIDGE, "type", "veth", "peer", "name", "eth0", "netns", process.pid)
    run("ip", "link", "set", link, "up")
    for words in (["link", "set", "lo", "up"], ["address", "add", f"{address(number)}/24", "dev", "eth0"],
                  ["link", "set", "eth0", "up"]):
        run("nsenter", "-t", process.pid, "-n", "ip", *words)


def holds(process):
    """Whether a node's namespaces still have its /etc/swift."""
    return Path(f"/proc/{process.pid}/root{ETC}/swift.conf").exists()


def inside(holder):
    """What a command of a node begins with."""
    return ["nsenter", "-t", str(holder), "-n", "-m", "--"]


def connect(folder, number, connected):
    """Cuts a node off from all others, or lets it back."""
    check_free(folder)
    if not _interface(_link(number)).exists():
        raise Failed(f"node{number} is down and has no network", f"{command(folder, 'heal')} starts it")
    run("ip", "link", "set", _link(number), "up" if connected else "down")


def is_connected(folder, number):
    flags = _interface(_link(number)) / "flags"
    return _owner() in (None, _label(folder)) and flags.exists() and bool(int(flags.read_text(), 16) & 1)
