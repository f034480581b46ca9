"""Boots user-mode Linux over this machine's files, for lab/run --uml and kernel/ext4-lazy/run.

The guest's root is this machine's, read-only; /tmp, /run, /mnt and /dev/shm are memory of its own. A disk is /dev/ubda
there, the next one /dev/ubdb.
"""

import dataclasses
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile

TIME_UP, GUEST_DIED = 124, 125


@dataclasses.dataclass
class Guest:
    """What is booted, and what it does. `prelude` is lines of shell before the command, `arguments` are the kernel's."""

    kernel: pathlib.Path
    command: list
    prelude: str = ""
    arguments: tuple = ()
    disks: tuple = ()
    share: pathlib.Path | None = None
    memory: str = "512M"
    timeout: float = 300
    # Seconds from the begin of the command, or from when there is the file `kill_when`, to SIGKILL.
    kill_after: float | None = None
    kill_when: pathlib.Path | None = None
    console: bool = False


INIT = """#!/bin/bash
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/shm /dev/pts
for folder in /dev/shm /tmp /run /mnt; do mount -t tmpfs tmpfs $folder; done
mount -t devpts devpts /dev/pts
ln -sfn /proc/self/fd /dev/fd
mkdir /run/exchange
mount -t hostfs -o {exchange} none /run/exchange
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C
exec </dev/null >>/run/exchange/output 2>&1
{share}
cd {folder}
{prelude}
: >/run/exchange/begun
{command}
echo $? >/run/exchange/exit
leaks=/sys/kernel/debug/kmemleak
if mount -t debugfs debug /sys/kernel/debug 2>/dev/null && [ -e $leaks ]; then
    # What is younger than five seconds is not reported.
    sleep 6; echo scan >$leaks; cat $leaks >/dev/kmsg
fi
dmesg >/run/exchange/messages 2>&1
sync -f /run/exchange
exec /sbin/poweroff -f
"""


def init(exchange, guest):
    share = ""
    if guest.share:
        share = f"mkdir /run/share; mount -t hostfs -o {shlex.quote(str(guest.share.resolve()))} none /run/share"
    script = exchange / "init"
    script.write_text(INIT.format(exchange=exchange, share=share, folder=shlex.quote(os.getcwd()), prelude=guest.prelude,
                                  command=shlex.join(guest.command)))
    script.chmod(0o755)
    return script


def wait(process, exchange, guest):
    """What passes on the guest's output meanwhile; whether it ended by itself."""
    waited, step, begun, printed = 0.0, 0.02, None, 0
    output = exchange / "output"
    while True:
        try:
            process.wait(step)
            ended = True
        except subprocess.TimeoutExpired:
            ended = False
        waited += step
        if begun is None and (guest.kill_when or exchange / "begun").exists():
            begun = waited
        if output.exists():
            with open(output, "rb") as file:
                file.seek(printed)
                part = file.read()
            printed += len(part)
            sys.stdout.buffer.write(part)
            sys.stdout.buffer.flush()
        if ended:
            return True
        if waited >= guest.timeout:
            return False
        if guest.kill_after is not None and begun is not None and waited - begun >= guest.kill_after:
            return False


def run(guest):
    """The command's exit code; TIME_UP when the time was up, or the guest was killed as asked; GUEST_DIED."""
    missing = [str(disk) for disk in guest.disks if not disk.exists()]
    if missing:
        print(f"run: there is no {', '.join(missing)}\nhint: truncate -s 1G FILE", file=sys.stderr)
        return GUEST_DIED
    with tempfile.TemporaryDirectory(prefix="uml.") as name:
        exchange = pathlib.Path(name)
        (exchange / "uml").mkdir()
        command = [str(guest.kernel.resolve()), "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro",
                   f"init={init(exchange, guest)}", f"mem={guest.memory}", "con=null", "con0=null,fd:1", "quiet",
                   "loglevel=7", f"uml_dir={exchange / 'uml'}", "panic=-1", *guest.arguments]
        command += [f"ubd{chr(ord('a') + i)}={disk.resolve()}" for i, disk in enumerate(guest.disks)]
        with open(exchange / "console", "wb") as console:
            # A group of its own: user-mode Linux has a process for each of its processes.
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=console, stderr=console,
                                       start_new_session=True, env={**os.environ, "TMPDIR": "/dev/shm"})
        ended = False
        try:
            ended = wait(process, exchange, guest)
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        return outcome(exchange, guest, ended)


def outcome(exchange, guest, ended):
    def text(name):
        path = exchange / name
        return path.read_text(errors="replace") if path.exists() else ""

    if guest.console:
        # From where our init is run on.
        sys.stderr.write((text("messages") or text("console")).rpartition("    uml_dir=")[2])
    if text("exit").strip().isdigit():
        return int(text("exit"))
    if not ended:
        if guest.kill_after is None:
            print(f"run: stopped after {guest.timeout:g} s", file=sys.stderr)
            sys.stderr.write("".join(text("console").splitlines(True)[-25:]))
        return TIME_UP
    print("run: the guest ended before the command did", file=sys.stderr)
    sys.stderr.write("".join(text("console").splitlines(True)[-40:]))
    return GUEST_DIED
