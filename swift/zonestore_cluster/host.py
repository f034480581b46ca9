"""Nodes of this machine: a network address and an /etc/swift each, in namespaces that a process holds."""

import os
import shlex
import subprocess
from pathlib import Path

from zonestore_cluster.processes import Failed, start

BRIDGE = "zscluster0"
SUBNET = "10.91.0"
# The machine itself, as nodes see it.
HERE = f"{SUBNET}.254"
MOST_NODES = 253
ETC = "/etc/swift"


def address(number):
    """Of the node with this number, from 1."""
    return f"{SUBNET}.{number}"


def run(*command):
    # In a session of its own: Ctrl-C ends the command that asks between two steps, not in one.
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, start_new_session=True)
    if done.returncode:
        words = " ".join(str(part) for part in command)
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


def _link(number):
    return f"zsc{number}"


def _label(folder):
    """A cluster's name on its bridge: the end of its path, of which the kernel keeps 255 bytes."""
    return os.fsdecode(os.fsencode(folder)[-255:])


def _owner():
    """Whose bridge it is. None: nobody's, or of a cluster none of whose nodes has a process any more, with which its link goes."""
    bridge = Path(f"/sys/class/net/{BRIDGE}")
    if not bridge.exists() or not any((bridge / "brif").iterdir()):
        return None
    return os.fsdecode((bridge / "ifalias").read_bytes()).removesuffix("\n") or None


def check_free(folder):
    """No other cluster has the network."""
    owner = _owner()
    if owner not in (None, _label(folder)):
        raise Failed(f"the cluster in {owner} runs on this machine, which has a network for one",
                     f"stop it: scripts/cluster --folder {shlex.quote(owner)} down")


def network_up(folder):
    check_free(folder)
    if not Path(f"/sys/class/net/{BRIDGE}").exists():
        run("ip", "link", "add", BRIDGE, "type", "bridge")
    run("ip", "link", "set", BRIDGE, "alias", _label(folder))
    run("ip", "address", "replace", f"{HERE}/24", "dev", BRIDGE)
    run("ip", "link", "set", BRIDGE, "up")


def network_down(folder):
    """That of another cluster stays."""
    if Path(f"/sys/class/net/{BRIDGE}").exists() and _owner() in (None, _label(folder)):
        run("ip", "link", "delete", BRIDGE)


def hold(number, etc, log):
    """Makes a node's namespaces; the process that holds them."""
    Path(ETC).mkdir(exist_ok=True)
    holding = f"mount --bind {etc} {ETC} && exec sleep infinity"
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
    subprocess.run(["ip", "link", "delete", link], capture_output=True)
    # `unshare` has become the shell once its namespace is another.
    process.wait_until(lambda: os.readlink(f"/proc/{process.pid}/ns/net") != os.readlink("/proc/self/ns/net"))
    run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", process.pid)
    run("ip", "link", "set", link, "master", BRIDGE, "up")
    for words in (["link", "set", "lo", "up"], ["address", "add", f"{address(number)}/24", "dev", "eth0"],
                  ["link", "set", "eth0", "up"]):
        run("nsenter", "-t", process.pid, "-n", "ip", *words)


def inside(holder):
    """What a command of a node begins with."""
    return ["nsenter", "-t", str(holder), "-n", "-m", "--"]


def connect(folder, number, connected):
    """Cuts a node off from all others, or lets it back."""
    check_free(folder)
    run("ip", "link", "set", _link(number), "up" if connected else "down")


def is_connected(folder, number):
    flags = Path(f"/sys/class/net/{_link(number)}/flags")
    return _owner() in (None, _label(folder)) and flags.exists() and bool(int(flags.read_text(), 16) & 1)
