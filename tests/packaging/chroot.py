"""A minimal Debian 12 in a folder, with what the package depends on and nothing else."""

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 600
RELEASE = "bookworm"


def missing():
    """What keeps this machine from making one, in a word; None if nothing does."""
    if os.geteuid() != 0:
        return "making a chroot needs root"
    for program, package in [("dpkg-deb", "dpkg"), ("dpkg-shlibdeps", "dpkg-dev"), ("mmdebstrap", "mmdebstrap"), ("unshare", "util-linux")]:
        if shutil.which(program) is None:
            return f"{program} is missing: apt-get install {package}"
    return None


def dependencies(package):
    """The names of the packages that `package` depends on."""
    field = subprocess.run(["dpkg-deb", "--field", package, "Depends"], capture_output=True, text=True, check=True).stdout
    return sorted(re.match(r"[a-z0-9.+-]+", entry.strip())[0] for entry in field.split(","))


def base(package):
    """An archive of the system, made once for the same dependencies. None, with why, without a mirror."""
    names = dependencies(package)
    digest = hashlib.sha256(" ".join([RELEASE, *names]).encode()).hexdigest()[:12]
    archive = package.parent / f"chroot-{digest}.tar"
    if archive.exists():
        return archive, None
    partial = archive.with_name(f"partial-{os.getpid()}.tar")
    command = ["mmdebstrap", "--quiet", "--variant=essential", f"--include={','.join(names)}", RELEASE, str(partial)]
    made = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    if made.returncode != 0:
        partial.unlink(missing_ok=True)
        return None, made.stderr.strip().splitlines()[-1:]
    partial.rename(archive)
    return archive, None


class Chroot:
    """The system, unpacked."""

    def __init__(self, folder, archive):
        self.path = folder
        subprocess.run(["tar", "-xf", archive, "-C", folder, "--numeric-owner"], check=True, timeout=TIMEOUT)

    def file(self, path):
        return self.path / path.lstrip("/")

    def command(self, *arguments, user="root"):
        """What runs a program inside, with a /proc of its own that goes with it; the process is the program's."""
        inside = f'mount -t proc proc "{self.path}/proc" && exec chroot --userspec={user}:{user} "{self.path}" "$@"'
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", inside, "sh", *arguments]

    def run(self, *arguments, code=0, user="root"):
        """Runs a program to its end; returns all that it printed."""
        done = subprocess.run(
            self.command(*map(str, arguments), user=user),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"},
        )
        assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}"
        return done.stdout

    def install(self, package):
        shutil.copy(package, self.file("/tmp/zonestore.deb"))
        return self.run("dpkg", "--install", "--force-confold", "--force-unsafe-io", "/tmp/zonestore.deb")
