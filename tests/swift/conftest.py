"""Both back ends, both kinds of policies, and what a test does with an object."""

import sys
from pathlib import Path

import pytest
from swift.common import storage_policy, utils
from swift.common.storage_policy import EC_POLICY, ECStoragePolicy, StoragePolicy, StoragePolicyCollection

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "swift"), str(Path(__file__).parent)]

utils.HASH_PATH_SUFFIX, utils.HASH_PATH_PREFIX = b"suffix", b""

from backends import DaemonProcess, Files, Zoned  # noqa: E402
from objects import Objects  # noqa: E402

PLAIN = StoragePolicy(0, "plain", is_default=True)
CODED = ECStoragePolicy(1, "coded", ec_type="liberasurecode_rs_vand", ec_ndata=4, ec_nparity=3, ec_segment_size=4096)


@pytest.fixture(autouse=True)
def policies(monkeypatch):
    monkeypatch.setattr(storage_policy, "_POLICIES", StoragePolicyCollection([PLAIN, CODED]))


@pytest.fixture(scope="session")
def daemon(tmp_path_factory):
    daemon = DaemonProcess(tmp_path_factory.mktemp("daemon"))
    yield daemon
    daemon.stop()


@pytest.fixture
def own(tmp_path, plain):
    """Objects on a daemon that a test may stop."""
    daemon = DaemonProcess(tmp_path)
    objects = Objects(Zoned(tmp_path / "devices", daemon), plain)
    objects.daemon = daemon
    yield objects
    daemon.stop()


@pytest.fixture(scope="session")
def other_daemon(tmp_path_factory):
    daemon = DaemonProcess(tmp_path_factory.mktemp("other"))
    yield daemon
    daemon.stop()


@pytest.fixture(params=["replication", EC_POLICY])
def policy(request):
    return PLAIN if request.param == "replication" else CODED


@pytest.fixture
def plain():
    return PLAIN


@pytest.fixture
def coded():
    return CODED


@pytest.fixture(params=["files", "zoned"])
def backend(request, tmp_path):
    if request.param == "files":
        return Files(tmp_path / "files")
    return Zoned(tmp_path / "zoned", request.getfixturevalue("daemon"))


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path / "files")


@pytest.fixture
def zoned(tmp_path, daemon):
    return Zoned(tmp_path / "zoned", daemon)


@pytest.fixture
def objects(backend, policy):
    """Objects of one partition that no other test has, on one back end."""
    return Objects(backend, policy)


@pytest.fixture
def plain_objects(backend, plain):
    return Objects(backend, plain)


@pytest.fixture
def coded_objects(backend, coded):
    return Objects(backend, coded)
