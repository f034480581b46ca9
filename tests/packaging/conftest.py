"""One package and one minimal system for all tests; each test has the package installed anew."""

import os
import subprocess
from pathlib import Path

import pytest

import chroot
from service import Service


@pytest.fixture(scope="session")
def package():
    """The package, made of the program under test, packed quickly."""
    why = chroot.missing()
    if why:
        pytest.skip(why)
    environment = {**os.environ, "DEB_LEVEL": "-z1"}
    made = subprocess.run([chroot.ROOT / "scripts/deb"], env=environment, capture_output=True, text=True, timeout=chroot.TIMEOUT)
    assert made.returncode == 0, made.stderr
    return Path(made.stdout.strip())


@pytest.fixture(scope="session")
def empty_system(package, tmp_path_factory):
    archive, why = chroot.base(package)
    if archive is None:
        pytest.skip(f"no chroot can be made here: {why}")
    folder = tmp_path_factory.mktemp("chroot")
    yield chroot.Chroot(folder, archive)
    subprocess.run(["rm", "-rf", "--one-file-system", folder], check=True)


@pytest.fixture
def system(empty_system, package):
    """The system with the package as a first install leaves it."""
    empty_system.install(package)
    yield empty_system
    empty_system.run("dpkg", "--purge", "zonestore")
    empty_system.run("rm", "-rf", "/var/lib/zonestore")


@pytest.fixture
def service(system):
    service = Service(system)
    yield service
    service.end()
