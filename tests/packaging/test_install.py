"""What the package puts where, and what goes and stays with it."""

import shutil
import stat
import subprocess

import pytest

import chroot
from service import CONFIGURATION


def test_programs_find_their_libraries(system):
    assert "zonestore" in system.run("zonestore", "--version")
    for library in ["rocksdb", "leveldb", "preload"]:
        linked = system.run("ldd", f"/usr/lib/zonestore/libzonestore_{library}.so")
        assert "not found" not in linked
    system.run("zonestore", "drive", "create", "/tmp/d.zoned", "--profile", "test-small", "--size", "64MiB")
    system.run("zonestore", "fs", "mkfs", "/tmp/d.zoned")
    # Libraries are looked for before the program is: only that is missing here.
    assert "rocksdb-tools" in system.run("zonestore", "rocksdb", "/tmp/d.zoned", "--", "ldb", "scan", code=3)
    system.run("rm", "/tmp/d.zoned")


def test_the_configuration_is_sound_and_its_users_alone(system):
    assert ": sound;" in system.run("zonestore", "config", "check", CONFIGURATION, user="zonestore")
    status = system.file(CONFIGURATION).stat()
    user = int(system.run("id", "-u", "zonestore"))
    assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (user, 0o600)
    for folder, mode in [("/var/lib/zonestore", 0o700), ("/var/log/zonestore", 0o750)]:
        status = system.file(folder).stat()
        assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (user, mode)


def test_an_upgrade_keeps_the_configuration_and_its_mode(system, package):
    path = system.file(CONFIGURATION)
    path.write_text(path.read_text() + "\n# ours\n")
    path.chmod(0o640)
    user = system.run("id", "zonestore")
    system.install(package)
    assert path.read_text().endswith("# ours\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert system.run("id", "zonestore") == user


def test_a_purge_leaves_data_and_says_so(system, package):
    drive = system.file("/var/lib/zonestore/d.zoned")
    drive.write_bytes(b"objects")
    said = system.run("dpkg", "--purge", "zonestore")
    assert "/var/lib/zonestore stay" in said
    assert drive.read_bytes() == b"objects"
    assert not system.file("/etc/zonestore").exists()
    assert not system.file("/var/log/zonestore").exists()
    # A second purge, and one of a folder without drives, have nothing to say.
    drive.unlink()
    system.install(package)
    assert "stay" not in system.run("dpkg", "--purge", "zonestore")


def test_documents_and_completions_are_there(package):
    files = subprocess.run(["dpkg-deb", "--contents", package], capture_output=True, text=True, check=True).stdout
    for path in [
        "usr/share/man/man1/zonestore-serve.1.gz",
        "usr/share/bash-completion/completions/zonestore",
        "usr/share/zsh/vendor-completions/_zonestore",
        "usr/share/fish/vendor_completions.d/zonestore.fish",
        "usr/share/doc/zonestore/install.md",
        "etc/logrotate.d/zonestore",
    ]:
        assert f"./{path}\n" in files


def test_lintian_finds_no_error(package):
    if shutil.which("lintian") is None:
        pytest.skip("lintian is missing")
    # There is no address to write to yet.
    ignored = "--suppress-tags=bogus-mail-host,bogus-mail-host-in-debian-changelog"
    done = subprocess.run(
        ["lintian", "--allow-root", "--fail-on", "error", ignored, package],
        capture_output=True, text=True, timeout=chroot.TIMEOUT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
