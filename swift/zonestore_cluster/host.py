"""Nodes of this machine: a network address and an /etc/swift each, in namespaces that a process holds."""

import os
import subprocess
from pathlib import Path

from zonestore_cluster.processes import Failed, start

BRIDGE = "zscluster0"
SUBNET = "10.91.0"
# The machine itself, as nodes see it.
HERE = f"{SUBNET}.254"
ETC = "/etc/swift"


def address(number):
    """Of the node with this number, from 1."""
    return f"{SUBNET}.{number}"


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
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


def network_up():
    if Path(f"/sys/class/net/{BRIDGE}").exists():
        return
    run("ip", "link", "add", BRIDGE, "type", "bridge")
    run("ip", "address", "add", f"{HERE}/24", "dev", BRIDGE)
    run("ip", "link", "set", BRIDGE, "up")


def network_down():
    if Path(f"/sys/class/net/{BRIDGE}").exists():
        run("ip", "link", "delete", BRIDGE)


def hold(number, etc, log):
    """Makes a node's namespaces; the process that holds them."""
    Path(ETC).mkdir(exist_ok=True)
    holding = f"mount --bind {etc} {ETC} && exec sleep infinity"
    process = start(["unshare", "--net", "--mount", "--propagation", "private", "sh", "-c", holding], log)
    link = _link(number)
    subprocess.run(["ip", "link", "delete", link], capture_output=True)
    # `unshare` has become the shell once its namespace is another.
    process.wait_until(lambda: os.readlink(f"/proc/{process.pid}/ns/net") != os.readlink("/proc/self/ns/net"))
    run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", process.pid)
    run("ip", "link", "set", link, "master", BRIDGE, "up")
    for words in (["link", "set", "lo", "up"], ["address", "add", f"{address(number)}/24", "dev", "eth0"],
                  ["link", "set", "eth0", "up"]):
        run("nsenter", "-t", process.pid, "-n", "ip", *words)
    return process


def inside(holder):
    """What a command of a node begins with."""
    return ["nsenter", "-t", str(holder), "-n", "-m", "--"]


def connect(number, connected):
    """Cuts a node off from all others, or lets it back."""
    run("ip", "link", "set", _link(number), "up" if connected else "down")


def is_connected(number):
    flags = Path(f"/sys/class/net/{_link(number)}/flags")
    return flags.exists() and bool(int(flags.read_text(), 16) & 1)
