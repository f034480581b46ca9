"""zonestore smrfs: mkfs, mount, unmount, fsck, df, top, dump, clean; zonestore age."""

import errno
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import TIMEOUT

SHAPE = "--profile test-small --size 64MiB --zone-size 1MiB --conventional 4".split()


def can_mount():
    return os.geteuid() == 0 and os.access("/dev/fuse", os.R_OK | os.W_OK)


mounting = pytest.mark.skipif(not can_mount(), reason="mounting needs root and /dev/fuse")


@pytest.fixture
def drive(zonestore):
    zonestore("drive", "create", "d.zoned", *SHAPE)
    zonestore(*"smrfs mkfs d.zoned --label photos".split())
    return "d.zoned"


@pytest.fixture
def caveat(zonestore):
    zonestore(*"drive create c.zoned --profile test-small --size 64MiB --zone-size 1MiB --conventional 64".split())
    zonestore(*"smrfs mkfs c.zoned --kind caveat --isolation-distance 16 --no-overlap-range 6 --label mail".split())
    return "c.zoned"


def unmount(zonestore, drive, place):
    """Behind umount the process does the last commit, and lets the drive go: whoever comes next waits for that."""
    subprocess.run(["umount", place], check=True)
    return zonestore("smrfs", "df", drive, "--json").json


def test_a_new_file_system_is_empty_and_clean(zonestore, drive):
    space = zonestore("smrfs", "df", drive, "--json").json
    assert (space["label"], space["whole_files"]) == ("photos", False)
    assert (space["space"]["used_bytes"], space["space"]["inodes"]) == (0, 1)
    assert space["space"]["free_bands"] == space["space"]["bands"] == 60
    assert "photos" in zonestore("smrfs", "df", drive).text
    assert "no errors" in zonestore("smrfs", "fsck", drive, "--deep").text
    assert zonestore("drive", "info", drive, "--json").json["content"] == "smrfs"


def test_what_is_there_is_not_erased_without_force(zonestore, drive):
    assert "smrfs" in zonestore.try_("smrfs", "mkfs", drive).failed(8)
    zonestore("smrfs", "mkfs", drive, "--force", "--whole-files")
    assert zonestore("smrfs", "df", drive, "--json").json["whole_files"] is True


def test_other_drives_are_refused(zonestore, tmp_path):
    zonestore("drive", "create", "d.zoned", *SHAPE)
    assert "mkfs" in zonestore.try_("smrfs", "fsck", "d.zoned").failed(7)
    assert "power of two" in zonestore.try_(*"smrfs mkfs d.zoned --block-size 5KiB".split()).failed(2)
    zonestore(*"drive create tiny.zoned --profile test-small --size 8MiB --zone-size 1MiB --conventional 1".split())
    assert "too small" in zonestore.try_("smrfs", "mkfs", "tiny.zoned").failed(2)
    assert zonestore.try_("smrfs", "df", "none.zoned").code == 3


def test_wrong_options_change_nothing(zonestore, drive, caveat):
    wrong = ["--block-size 5KiB", "--clean-when-full", "--isolation-distance 4"]
    for options in wrong:
        said = zonestore.try_("smrfs", "mkfs", drive, "--force", *options.split()).failed(2)
        assert "help smrfs mkfs" in said and "another drive" not in said or "isolation" in options
    # The last one fits on the drive, but not beside the header and the bitmap.
    for options in ("--no-overlap-range 20", "--unshingled 64KiB", "--unshingled 1TiB", "--unshingled 65024KiB"):
        more = ["--force", "--isolation-distance", 16, *options.split()]
        assert "help smrfs mkfs" in zonestore.try_("smrfs", "mkfs", caveat, *more).failed(2)
    both = "--kind strict-append --isolation-distance 4".split()
    assert "leave one" in zonestore.try_("smrfs", "mkfs", caveat, "--force", *both).failed(2)
    for made, label in ((drive, "photos"), (caveat, "mail")):
        assert zonestore("smrfs", "df", made, "--json").json["label"] == label


def test_a_damaged_header_of_a_caveat_scriptor_drive_is_no_other_drive(zonestore, caveat, tmp_path):
    path = tmp_path / caveat
    whole = path.read_bytes()
    header = whole.index(b"ZSCAVEAT")
    copy = whole.rindex(b"ZSCAVEAT")
    assert copy > header
    for places, code in (([header], 6), ([copy], 6), ([header, copy], 6)):
        for at in (0, 8, 20):
            content = bytearray(whole)
            for place in places:
                content[place + at] ^= 1
            path.write_bytes(content)
            said = zonestore.try_("smrfs", "fsck", caveat).failed(code)
            assert not any(word in said for word in ("another drive", "mkfs", "program version")), said
    path.write_bytes(whole)
    zonestore("smrfs", "fsck", caveat)


@mounting
def test_files_are_there_behind_a_mount_and_the_drive_is_free(zonestore, drive, tmp_path):
    place = tmp_path / "mnt"
    place.mkdir()
    said = zonestore("smrfs", "mount", drive, str(place)).text
    assert str(place) in said
    try:
        (place / "a").mkdir()
        (place / "a" / "file").write_bytes(os.urandom(300_000))
        wanted = (place / "a" / "file").read_bytes()
        # Before 1970, and not on the second.
        os.utime(place / "a" / "file", ns=(-9_750_000_000, -9_750_000_000))
        assert os.stat(place / "a" / "file").st_mtime_ns == -9_750_000_000
        os.link(place / "a" / "file", place / "b")
        assert zonestore.try_("smrfs", "df", drive).failed(4)
        assert os.statvfs(place).f_bfree * 4096 > 40 << 20
    finally:
        space = unmount(zonestore, drive, place)
    assert space["space"]["inodes"] == 3
    assert "no errors" in zonestore("smrfs", "fsck", drive, "--deep").text
    zonestore("smrfs", "mount", drive, str(place), "--read-only")
    try:
        assert (place / "b").read_bytes() == wanted
        with pytest.raises(OSError):
            (place / "c").touch()
    finally:
        unmount(zonestore, drive, place)


@mounting
def test_files_on_a_caveat_scriptor_drive(zonestore, caveat, tmp_path):
    place = tmp_path / "mnt"
    place.mkdir()
    zonestore("smrfs", "mount", caveat, str(place), "--fit", "next")
    try:
        for n in range(40):
            (place / str(n)).write_bytes(os.urandom(100_000))
        wanted = (place / "7").read_bytes()
        # sync(2) does not reach file systems of FUSE; what is removed before it is written leaves no hole.
        with open(place / "1", "rb") as file:
            os.fsync(file.fileno())
        for n in range(0, 40, 2):
            (place / str(n)).unlink()
        mounted = zonestore("smrfs", "df", str(place), "--json").json
        assert (mounted["label"], mounted["caveat"]) == ("mail", True)
        told = zonestore("smrfs", "top", str(place), "--once").text
        assert "unusable" in told and "durable by" in told
    finally:
        space = unmount(zonestore, caveat, place)["space"]
    # Each hole is of 25 blocks, of which 16 are of no use.
    assert space["unusable_bytes"] >= 19 * 16 * 4096
    assert space["available_bytes"] < space["capacity_bytes"] - space["used_bytes"]
    assert "no errors" in zonestore("smrfs", "fsck", caveat, "--deep").text
    dumped = zonestore("smrfs", "dump", caveat, "--json").json
    assert (dumped["isolation_distance"], dumped["no_overlap_range"]) == (16, 6)
    assert sum(count for _, count in dumped["readable"]) >= dumped["unshingled"] + 20 * 25
    # The same drive takes another file system, and says so first.
    assert "smrfs" in zonestore.try_("smrfs", "mkfs", caveat).failed(8)
    zonestore("smrfs", "mkfs", caveat, "--force", "--clean-when-full")
    assert zonestore("smrfs", "df", caveat, "--json").json["space"]["reserve_bytes"] > 0
    zonestore("smrfs", "clean", caveat)
    assert wanted


@mounting
def test_unmounting_waits_and_the_helpers_of_mount_and_umount_do(zonestore, drive, tmp_path):
    place = tmp_path / "mnt"
    place.mkdir()
    assert "mounted here" in zonestore.try_("smrfs", "unmount", str(place)).failed(3)
    packaging = Path(__file__).parents[2] / "packaging"
    environment = {**os.environ, "ZONESTORE": str(zonestore.path)}
    mount = [packaging / "mount.zonestore-smrfs", tmp_path / drive, place, "-o", "rw,noatime,buffer=1MiB,commit=600"]
    restrictions = {"nosuid", "nodev", "noexec"}
    for options, expected in [
        ("nosuid", {"nosuid"}),
        ("nodev,noexec", {"nodev", "noexec"}),
        ("users,exec", {"nosuid", "nodev"}),
        ("nosuid,defaults", {"nosuid"}),
        ("", set()),
    ]:
        subprocess.run([*mount[:4], f"{mount[4]},{options}"], env=environment, check=True, cwd=tmp_path)
        kernel = Path("/proc/self/mountinfo").read_text().splitlines()
        (line,) = [line.split() for line in kernel if f" {place} " in line and " fuse.smrfs " in line]
        assert restrictions & set(line[5].split(",")) == expected, options
        if options:
            unmount(zonestore, drive, place)
    (place / "one").write_bytes(b"1" * 500_000)
    subprocess.run([packaging / "umount.fuse.smrfs", place], env=environment, check=True)
    # Nobody has it.
    assert zonestore("drive", "info", drive, "--json").json["content"] == "smrfs"
    for round in range(5):
        zonestore("smrfs", "mount", drive, str(place), "--commit-seconds", "600")
        try:
            assert (place / "one").stat().st_size == 500_000
            (place / f"{round}").write_bytes(b"2" * 3_000_000)
        finally:
            subprocess.run(["umount", place], check=True)
    # The last commit of the mount before is what a mount or a check finds, without anybody waiting.
    assert zonestore("smrfs", "df", drive, "--json").json["space"]["inodes"] == 7
    assert subprocess.run([*mount[:3], "-o", "nonsense"], env=environment, capture_output=True).returncode == 1


@mounting
def test_a_mount_that_fails_says_why(zonestore, drive, tmp_path):
    assert "no directory" in zonestore.try_("smrfs", "mount", drive, str(tmp_path / "none")).failed(3)
    zonestore("drive", "create", "empty.zoned", *SHAPE)
    assert "mkfs" in zonestore.try_("smrfs", "mount", "empty.zoned", str(tmp_path)).failed(7)


@mounting
def test_what_is_mounted_or_left_says_what_to_do(zonestore, drive, caveat, tmp_path):
    place, file = tmp_path / "mnt", tmp_path / "file"
    place.mkdir()
    file.write_bytes(b"")
    assert "not a directory" in zonestore.try_("smrfs", "mount", drive, file).failed(2)
    assert "--log" in zonestore.try_("smrfs", "mount", drive, place, "--log", tmp_path / "none/log").failed(3)
    assert "name a file" in zonestore.try_("smrfs", "mount", drive, place, "--log", tmp_path).failed(1)
    for command in ("top", "df", "unmount"):
        assert "smrfs mount" in zonestore.try_("smrfs", command, place).failed(3)
    # Options of the other kind.
    assert "--policy" in zonestore.try_("smrfs", "mount", drive, place, "--fit", "next").failed(2)
    assert "--fit" in zonestore.try_("smrfs", "mount", caveat, place, "--policy", "greedy").failed(2)
    zonestore("smrfs", "mount", drive, place)
    for command in ("smrfs fsck", "zea ls", "store df"):
        assert f"smrfs top {place}" in zonestore.try_(*command.split(), drive).failed(4)
    for command in ("fsck", "clean", "dump"):
        said = zonestore.try_("smrfs", command, place).failed(2)
        assert str(tmp_path / drive) in said and f"smrfs unmount {place}" in said, said
    with open(place / "open", "wb"):
        said = zonestore.try_("smrfs", "unmount", place).failed(4)
        assert f"fuser -vm {place}" in said and "umount -l" in said, said
    listed = subprocess.run(["fuser", tmp_path / drive], capture_output=True, text=True).stdout
    os.kill(int(listed.split()[0]), 9)
    for command in (["top"], ["df"], ["unmount"], ["mount", drive]):
        while "umount -l" not in (said := zonestore.try_("smrfs", *command, place).failed(1)):
            assert "in use" in said, said
    subprocess.run(["umount", "-l", place], check=True)
    zonestore("smrfs", "fsck", drive, "--deep")
    # A mount that is in no tree any more, and does not end before its last file is closed.
    zonestore("smrfs", "mount", drive, place)
    with open(place / "open", "wb"):
        subprocess.run(["umount", "-l", place], check=True)
        waiting = zonestore.start("smrfs", "df", drive)
        assert "last file" in waiting.stderr.readline()
    assert waiting.wait(timeout=TIMEOUT) == 0


@mounting
def test_a_signal_takes_no_other_mount_away(zonestore, drive, caveat, tmp_path):
    place = tmp_path / "mnt"
    place.mkdir()

    def top():
        listed = subprocess.run(["findmnt", "-no", "FSTYPE", "--mountpoint", place], capture_output=True, text=True)
        return listed.stdout.split()[-1:]

    mounted = zonestore.start("smrfs", "mount", drive, place, "--foreground")
    try:
        assert str(place) in mounted.stdout.readline()
        # Below another one it stays, and so does the other one.
        subprocess.run(["mount", "-t", "tmpfs", "none", place], check=True)
        mounted.terminate()
        assert "mounted over it" in mounted.stderr.readline()
        assert "no file system of smrfs" in zonestore.try_("smrfs", "unmount", place).failed(3)
        assert top() == ["tmpfs"]
        subprocess.run(["umount", place], check=True)
        # It is in no tree any more, and another drive is in its place.
        with open(place / "open", "wb"):
            subprocess.run(["umount", "-l", place], check=True)
            zonestore("smrfs", "mount", caveat, place)
            mounted.terminate()
            assert "files in it are open" in mounted.stderr.readline()
            assert top() == ["fuse.smrfs"]
        assert mounted.wait(timeout=TIMEOUT) == 0
        unmount(zonestore, caveat, place)
    finally:
        mounted.kill()
        while subprocess.run(["umount", "-l", place], check=False, capture_output=True).returncode == 0:
            pass


@mounting
def test_a_full_host_is_no_broken_drive(zonestore, tmp_path):
    host, place = tmp_path / "host", tmp_path / "mnt"
    host.mkdir()
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "none", host], check=True)
    try:
        drive = str(host / "d.zoned")
        zonestore("drive", "create", drive, *SHAPE)
        zonestore("smrfs", "mkfs", drive)
        zonestore("smrfs", "mount", drive, place)
        (place / "kept").write_bytes(b"kept")
        subprocess.run(["sync", "-d", place / "kept"], check=True)
        with pytest.raises(OSError) as full:
            with open(place / "large", "wb") as file:
                for _ in range(20):
                    file.write(os.urandom(1 << 20))
                    os.fsync(file.fileno())
        assert full.value.errno == errno.ENOSPC
        said = zonestore.try_("smrfs", "unmount", place)
        assert said.code == 0 or f"umount -i {place}" in said.err, said.err
        subprocess.run(["umount", "-i", place], check=said.code != 0, capture_output=True)
        subprocess.run(["mount", "-o", "remount,size=64m", host], check=True)
        zonestore("smrfs", "mount", drive, place)
        assert (place / "kept").read_bytes() == b"kept"
        unmount(zonestore, drive, place)
        assert "no errors" in zonestore("smrfs", "fsck", drive, "--deep").text
    finally:
        subprocess.run(["umount", "-l", place], check=False, capture_output=True)
        subprocess.run(["umount", "-l", host], check=True)


@mounting
def test_a_mount_in_the_background_keeps_nothing_of_its_callers(zonestore, drive, tmp_path):
    (tmp_path / "mnt").mkdir()
    mount = f'"{zonestore.path}" smrfs mount -- {drive} mnt'

    def shell(script):
        subprocess.run(["bash", "-ec", script], cwd=tmp_path, check=True, timeout=TIMEOUT)

    try:
        # A lock, the end of a pipe, and the directory that it was started in.
        shell(f"exec 7>lock; flock -n 7; {mount}; exec 7>&-; flock -n lock true")
        shell("umount mnt")
        shell(f"mkfifo pipe; cat pipe & exec 8>pipe; {mount}; exec 8>&-; wait $!")
        listed = subprocess.run(["fuser", tmp_path / drive], capture_output=True, text=True).stdout
        process = Path("/proc", listed.split()[0])
        assert os.readlink(process / "cwd") == "/"
        # Without --log nothing collects what it says.
        assert os.readlink(process / "fd/2") == "/dev/null"
        # A file of the mount before: the drive is free when it is closed, and whoever gave up does not come back.
        shell(f"exec 5>mnt/open; echo all >&5; umount -l mnt; ! timeout 1 {mount}; exec 5>&-; timeout 30 {mount}")
        assert (tmp_path / "mnt/open").read_text() == "all\n"
    finally:
        unmount(zonestore, drive, tmp_path / "mnt")
    assert "no errors" in zonestore("smrfs", "fsck", drive, "--deep").text


@mounting
def test_what_is_dead_is_cleaned(zonestore, drive, tmp_path):
    place = tmp_path / "mnt"
    place.mkdir()
    zonestore("smrfs", "mount", drive, str(place))
    try:
        for n in range(60):
            (place / str(n)).write_bytes(os.urandom(300_000))
        # What is removed before it is written leaves nothing dead.
        with open(place / "1", "rb") as file:
            os.fsync(file.fileno())
        for n in range(0, 60, 2):
            (place / str(n)).unlink()
    finally:
        before = unmount(zonestore, drive, place)["space"]
    assert before["dead_bytes"] > 8 << 20
    path = tmp_path / drive
    metadata = path.read_bytes()
    cleaned = zonestore("smrfs", "clean", drive, "--json").json
    assert cleaned["cleaned_bands"] > 5
    after = zonestore("smrfs", "df", drive, "--json").json["space"]
    assert after["free_bands"] > before["free_bands"]
    assert after["used_bytes"] == before["used_bytes"]
    assert "no errors" in zonestore("smrfs", "fsck", drive, "--deep").text
    # Neither copy of the metadata that goes back to its state before is taken for the newest.
    whole = path.read_bytes()
    at, size = whole.index(b"ZSTRAPPD"), 2 << 20
    for start in at, at + size:
        path.write_bytes(whole[:start] + metadata[start : start + size] + whole[start + size :])
        seen = zonestore.try_("smrfs", "df", drive, "--json")
        assert seen.code == 6 or seen.json["space"] == after


@mounting
def test_damage_is_found(zonestore, drive, tmp_path):
    place = tmp_path / "mnt"
    place.mkdir()
    zonestore("smrfs", "mount", drive, str(place))
    try:
        (place / "file").write_bytes(b"needle" * 2000)
    finally:
        unmount(zonestore, drive, place)
    path = tmp_path / drive
    raw = path.read_bytes()
    at = raw.index(b"needle" * 100)
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(b"N")
    assert "1 error" in zonestore.try_("smrfs", "fsck", drive, "--deep").failed(6)
    assert zonestore("smrfs", "fsck", drive).code == 0


def test_a_directory_ages_the_same_for_the_same_seed(zonestore, tmp_path):
    age = "age", "--bytes", "8MiB", "--seed", "7", "--json"
    whole = zonestore(*age, "one", "--operations", "600").json
    assert whole["operations"] == 600 and whole["steady"]
    # In two parts.
    zonestore(*age, "two", "--operations", "250")
    rest = zonestore(*age, "two", "--operations", "600").json
    assert rest["resumed_at"] == 250

    def files(name):
        found = (tmp_path / name).rglob("*")
        return {f.relative_to(tmp_path / name): f.read_bytes() for f in found if f.is_file() and f.name[0] != "."}

    assert files("one") == files("two")
    assert sum(len(data) for data in files("one").values()) <= 8 << 20
    # Its note is not set back, after which operations would be carried out again on files of later ones.
    assert "600 operations are done" in zonestore.try_(*age[:-1], "two", "--operations", "250").failed(8)
    assert zonestore(*age, "two", "--operations", "600").json["resumed_at"] == 600
    refused = zonestore.try_(*age[:-1], "two", "--operations", "700", "--random-removals", "5")
    assert "another run" in refused.failed(8)
    # A file takes whole blocks.
    (tmp_path / "sizes").write_text("4097 1\n")
    small = "age", "--bytes", "8191", "--seed", "7", "three", "--sizes", "sizes"
    assert "does not fit" in zonestore.try_(*small).failed(2)
    (tmp_path / "sizes").write_text("8192 1\nmany 2\n")
    assert "line 2" in zonestore.try_(*age[:-1], "three", "--sizes", "sizes").failed(2)
    assert "128 MiB" in zonestore.try_(*age[:-1], "three", "--sizes", "/dev/zero").failed(2)


@mounting
@pytest.mark.skipif(not (shutil.which("cc") and shutil.which("make")), reason="a compiler and make")
@pytest.mark.parametrize("kind", ["drive", "caveat"])
def test_a_tree_is_unpacked_made_and_removed(zonestore, kind, request, tmp_path):
    """In small; `TREE=… scripts/posix` does it with a kernel."""
    path, place, source = request.getfixturevalue(kind), tmp_path / "mnt", tmp_path / "tree"
    place.mkdir()
    for n in range(60):
        folder = source / f"part{n % 6}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"f{n}.c").write_text(f"int f{n}(int x) {{ return x * {n}; }}\n" + "/* " + "words " * 50 * n + "*/\n")
    rules = "objects = $(patsubst %.c,%.o,$(wildcard part*/*.c))\nall.a: $(objects)\n\tar -rc $@ $^\n"
    (source / "Makefile").write_text(rules)
    tar = tmp_path / "tree.tar"
    subprocess.run(["tar", "-cf", tar, "-C", source, "."], check=True)
    zonestore("smrfs", "mount", path, str(place))
    try:
        subprocess.run(["tar", "-xf", tar, "-C", place], check=True)
        subprocess.run(["make", "-s", "-j2", "-C", place], check=True)
        made = (place / "all.a").read_bytes()
        unmount(zonestore, path, place)
        assert "no errors" in zonestore("smrfs", "fsck", path, "--deep").text
        zonestore("smrfs", "mount", path, str(place))
        assert (place / "all.a").read_bytes() == made
        subprocess.run(["diff", "-r", "-x", "*.o", "-x", "all.a", source, place], check=True)
        subprocess.run(["make", "-q", "-C", place], check=True)
        shutil.rmtree(place, ignore_errors=True)
    finally:
        space = unmount(zonestore, path, place)["space"]
    assert (space["inodes"], space["used_bytes"]) == (1, 0)


@mounting
@pytest.mark.parametrize("kind", ["drive", "caveat"])
def test_space_is_set_aside(zonestore, kind, request, tmp_path):
    path, place = request.getfixturevalue(kind), tmp_path / "mnt"
    place.mkdir()
    zonestore("smrfs", "mount", path, str(place))
    try:
        with open(place / "file", "wb") as file:
            os.posix_fallocate(file.fileno(), 0, 8 << 20)
            told = zonestore("smrfs", "df", str(place)).text
            assert ["preallocated", "8", "MiB"] in [line.split() for line in told.splitlines()]
            with pytest.raises(OSError):
                (place / "rest").write_bytes(bytes(64 << 20))
            file.write(b"x" * (8 << 20))
            os.fsync(file.fileno())
    finally:
        space = unmount(zonestore, path, place)["space"]
    assert space["preallocated_bytes"] == 0
    assert "no errors" in zonestore("smrfs", "fsck", path, "--deep").text
