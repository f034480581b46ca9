"""What a whole Swift needs on this machine: a Python with it, its source, and an /etc/swift that nobody else sees."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERSION = "2.38.3"
WANTED = [f"swift=={VERSION}", "pyeclib==1.8.0", "python-swiftclient", "python-keystoneclient", "keystonemiddleware", "boto", "boto3",
          "pytest", "pytest-subtests", "requests-mock", "setuptools", "pbr", "wheel"]
CLONE_NEWNS, MS_REC, MS_PRIVATE, MS_BIND = 0x20000, 0x4000, 0x40000, 0x1000


def run(*command, **options):
    subprocess.run([str(part) for part in command], check=True, **options)


def environment(folder):
    """A Python that has Swift, its tests' needs and this package."""
    venv = Path(os.environ.get("SWIFT_VENV") or folder / "venv")
    python = venv / "bin" / "python"
    if not python.exists():
        run(sys.executable, "-m", "venv", venv)
        run(python, "-m", "pip", "install", "--quiet", *WANTED)
    package = folder / "package"
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target", package, ROOT / "swift")
    return python, package


def source(folder, python):
    named = os.environ.get("SWIFT_SOURCE")
    if named:
        return Path(named)
    run(python, "-m", "pip", "download", "--quiet", "--no-binary", "swift", "--no-deps", "--no-build-isolation",
        f"swift=={VERSION}", "-d", folder)
    run("tar", "-xf", folder / f"swift-{VERSION}.tar.gz", "-C", folder)
    return folder / f"swift-{VERSION}"


def own_etc(folder):
    """A mount namespace of this process, in which /etc/swift is a folder of ours. Swift reads its policies from nowhere else."""
    libc = ctypes.CDLL(None, use_errno=True)
    etc = folder / "etc"
    etc.mkdir()
    os.makedirs("/etc/swift", exist_ok=True)

    def checked(result):
        if result:
            raise OSError(ctypes.get_errno(), "a mount namespace of its own needs root")

    checked(libc.unshare(CLONE_NEWNS))
    checked(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None))
    checked(libc.mount(str(etc).encode(), b"/etc/swift", None, MS_BIND, None))


def zonestore():
    """The program: ZONESTORE_BIN, or what was built."""
    built = [ROOT / "target" / kind / "zonestore" for kind in ("release", "debug")]
    return os.environ.get("ZONESTORE_BIN") or next((str(path) for path in built if path.exists()), "zonestore")


def run_inside(script, folder, arguments):
    """Runs a script again with the Python that has Swift, in a namespace of its own. Returns its exit code."""
    python, package = environment(folder)
    tests = source(folder, python)
    own_etc(folder)
    searched = os.pathsep.join([str(package), str(ROOT / "tests" / "swift")])
    return subprocess.run(
        [python, script, *arguments, "--inside", folder], env={**os.environ, "PYTHONPATH": searched, "SWIFT_SOURCE": str(tests)}).returncode
