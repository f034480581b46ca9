"""What a whole Swift needs on this machine: a Python with it, its source, and an /etc/swift that nobody else sees."""

import ctypes
import itertools
import os
import subprocess
import sys
import xml.etree.ElementTree
from collections import Counter
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


LIBC = ctypes.CDLL(None, use_errno=True)


def checked(result):
    if result:
        raise OSError(ctypes.get_errno(), "a mount namespace of its own needs root")


def own_mounts():
    """From now on nobody else sees what this process mounts."""
    checked(LIBC.unshare(CLONE_NEWNS))
    checked(LIBC.mount(None, b"/", None, MS_REC | MS_PRIVATE, None))


def mount_xfs(image, size, place, direct=False):
    """A file system as Swift's documentation wants it, in a file of this disk, or `direct` on it: past the page cache of the file."""
    with open(image, "wb") as file:
        file.truncate(size)
    run("mkfs.xfs", "-q", image)
    run("mount", "-o", "loop,noatime", image, place)
    if direct:
        device = subprocess.run(["findmnt", "-n", "-o", "SOURCE", place], check=True, capture_output=True, text=True).stdout.strip()
        run("losetup", "--direct-io=on", device)


def own_etc(folder):
    """A mount namespace of this process, in which /etc/swift is a folder of ours. Swift reads its policies from nowhere else."""
    own_mounts()
    own_folder(folder / "etc", "/etc/swift")


def own_folder(folder, place):
    """In a namespace of `own_etc`: who looks at `place` sees this folder."""
    folder.mkdir(exist_ok=True)
    os.makedirs(place, exist_ok=True)
    checked(LIBC.mount(str(folder).encode(), str(place).encode(), None, MS_BIND, None))


def zonestore():
    """The program: ZONESTORE_BIN, or what was built."""
    built = [ROOT / "target" / kind / "zonestore" for kind in ("release", "debug")]
    return os.environ.get("ZONESTORE_BIN") or next((str(path) for path in built if path.exists()), "zonestore")


def run_inside(script, folder, arguments, *before):
    """Runs a script again with the Python that has Swift, in a namespace of its own. Returns its exit code. `before`: a command that
    makes more namespaces."""
    python, package = environment(folder)
    tests = source(folder, python)
    own_etc(folder)
    searched = os.pathsep.join([str(package), str(ROOT / "tests" / "swift"), str(ROOT / "swift")])
    return subprocess.run(
        [*before, python, script, *arguments, "--inside", folder], env={**os.environ, "PYTHONPATH": searched, "SWIFT_SOURCE": str(tests)}).returncode


def outcomes(folder, arguments, **variables):
    """Runs tests of Swift's source with pytest, and says of each whether it passed, failed or was skipped."""
    report, log = folder / "report.xml", folder / "pytest.log"
    with open(log, "w") as out:
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", f"--junit-xml={report}", *arguments],
            cwd=os.environ["SWIFT_SOURCE"], stdout=out, stderr=out, env={**os.environ, **variables})
    print(log.read_text()[-20000:])
    found = {}
    for case in xml.etree.ElementTree.parse(report).iter("testcase") if report.exists() else ():
        kinds = {child.tag for child in case}
        outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        test = f"{case.get('classname')}.{case.get('name')}"
        # A test may pass and its end fail.
        if found.get(test) != "failed":
            found[test] = outcome
    return found


def show(found, backend):
    counts = Counter(found.values())
    print(", ".join(f"{counts[word]} {word}" for word in ("passed", "failed", "skipped")), f"({backend})", flush=True)
    for test, outcome in found.items():
        if outcome == "failed":
            print(f"  failed: {test}", flush=True)


def show_files(found):
    """For each file of tests what came of it with each back end, side by side."""
    counts = {}
    for backend, ends in found.items():
        for test, outcome in ends.items():
            module = ".".join(itertools.takewhile(lambda part: not part[:1].isupper(), test.split(".")[:-1]))
            counts.setdefault(module, {each: Counter() for each in found})[backend][outcome] += 1
    for module, ends in counts.items():
        print(f"{module}:", "; ".join(
            f"{backend} " + ", ".join(f"{ends[backend][word]} {word}" for word in ("passed", "failed", "skipped")) for backend in found), flush=True)


def compare(stock, ours):
    """1 if a test fails on zoned drives alone."""
    others = {test: (stock.get(test), outcome) for test, outcome in ours.items() if stock.get(test) != outcome}
    for test, (there, here) in others.items():
        print(f"{test}: {there} on files, {here} on zoned drives")
    print(f"{len(others)} of {len(ours)} tests end differently")
    return 1 if not ours or any(here == "failed" for _, here in others.values()) else 0
