"""zonestore drive: create, profiles, report, info, reset, conformance."""

import os
import re
from conftest import digest

ZONE_LINE = re.compile(
    r"^  start: 0x[0-9a-f]{9}, len 0x[0-9a-f]{6}, cap 0x[0-9a-f]{6}, wptr 0x[0-9a-f]{6} "
    r"reset:\d non-seq:\d, zcond:[ \d]\d\([a-z]{2}\) \[type: \d\([A-Z_]+\)\]$"
)


def test_profiles_are_listed(zonestore):
    text = zonestore("drive", "profiles").text
    profiles = {profile["name"]: profile for profile in zonestore("drive", "profiles", "--json").json}
    assert {"hm-smr-14tb", "ha-smr-8tb", "zns-zn540", "test-small"} <= set(profiles)
    assert all(name in text for name in profiles)
    models = {model["name"] for model in zonestore("model", "list", "--json").json["models"]}
    assert models == {name for name, profile in profiles.items() if profile["model"]}
    assert set(profiles) - models == {"test-small"}


def test_every_profile_with_zones_makes_a_drive_and_others_say_why_not(zonestore):
    for profile in zonestore("drive", "profiles", "--json").json:
        name = profile["name"]
        made = zonestore.try_("drive", "create", f"{name}.zoned", "--profile", name)
        if profile["zones"]:
            assert made.code == 0, made.err
        else:
            assert "no zones" in made.failed(2)
    host_aware = zonestore("drive", "info", "ha-smr-8tb.zoned", "--json").json["geometry"]
    assert host_aware["sequential_kind"] == "sequential_write_preferred"


def test_a_new_drive_is_sparse_and_has_the_shape_asked_for(zonestore, tmp_path):
    made = zonestore(
        *"drive create d.zoned --profile hm-smr-14tb --size 64GiB --json".split()
    ).json
    assert made["geometry"]["zone_size"] == 256 << 20
    assert made["geometry"]["zone_count"] == 256
    assert made["geometry"]["conventional_zones"] == 3
    assert made["geometry"]["max_open_zones"] == 128
    status = os.stat(tmp_path / "d.zoned")
    assert status.st_size > 60 << 30 and status.st_blocks * 512 < 10 << 20


def test_every_part_of_the_shape_can_be_chosen(zonestore):
    shape = zonestore(
        *"drive create d.zoned --profile zns-zn540 --size 64MiB --zone-size 1MiB".split(),
        *"--zone-capacity 768K --conventional 2 --max-open 3 --max-active 5 --json".split(),
    ).json["geometry"]
    assert shape["zone_capacity"] == 768 << 10
    assert (shape["conventional_zones"], shape["zone_count"]) == (2, 64)
    assert (shape["max_open_zones"], shape["max_active_zones"]) == (3, 5)


def test_impossible_drives_are_mistakes_of_usage(zonestore, tmp_path):
    create = "drive", "create", "d.zoned"
    assert "floppy" in zonestore.try_(*create, "--profile", "floppy").failed(2)
    zonestore.try_(*create, "--size", "1GiB").failed(2)
    assert zonestore.try_(*create, "--size", "big").code == 2
    zonestore.try_(*create, "--max-open", "9", "--max-active", "8").failed(2)
    zonestore.try_(*create, "--zone-capacity", "1GiB").failed(2)
    assert not (tmp_path / "d.zoned").exists()
    zonestore.try_("drive", "create", "no/such/folder.zoned").failed(3)


def test_an_existing_file_is_never_overwritten(zonestore, tmp_path):
    precious = tmp_path / "precious"
    precious.write_bytes(b"do not touch" * 1000)
    before = digest(precious)
    assert "exists" in zonestore.try_("drive", "create", precious).failed(8)
    assert digest(precious) == before


def test_foreign_files_are_refused_and_left_alone(zonestore, tmp_path):
    foreign = tmp_path / "letter.txt"
    foreign.write_bytes(b"Dear reader,\n" * 10_000)
    empty = tmp_path / "empty"
    empty.touch()
    before = digest(foreign)
    for command in (
        ("drive", "report"),
        ("drive", "info"),
        ("drive", "reset", "--all", "--yes"),
        ("store", "mkfs", "--force"),
        ("store", "fsck"),
        ("fs", "mkfs", "--force"),
        ("serve",),
        ("serve", "--create"),
    ):
        assert "not a drive" in zonestore.try_(*command, foreign).failed(6)
        zonestore.try_(*command, empty).failed(6)
        zonestore.try_(*command, tmp_path).failed(6)
    assert digest(foreign) == before
    assert empty.stat().st_size == 0


def test_a_damaged_header_is_named_and_left_alone(zonestore, drive):
    with open(drive, "r+b") as file:
        file.seek(40)
        byte = file.read(1)[0]
        file.seek(40)
        file.write(bytes([byte ^ 0xFF]))
    before = digest(drive)
    for command in ("report", "info"):
        zonestore.try_("drive", command, drive).failed(6)
    zonestore.try_("store", "mkfs", drive, "--force").failed(6)
    assert digest(drive) == before


def test_a_rotten_version_is_damage(zonestore, drive):
    with open(drive, "r+b") as file:
        file.seek(8)
        file.write(b"\x07")
    assert "checksum" in zonestore.try_("drive", "info", drive).failed(6)


def test_a_drive_of_another_length_is_damaged(zonestore, drive):
    whole = drive.stat().st_size
    for length in (1 << 20, whole - 1):
        os.truncate(drive, length)
        error = zonestore.try_("drive", "info", drive).failed(6)
        assert str(length) in error and str(whole) in error and "cut short" in error
    os.truncate(drive, whole + 3)
    error = zonestore.try_("drive", "info", drive).failed(6)
    assert f"truncate -s {whole}" in error
    os.truncate(drive, whole)
    zonestore("drive", "info", drive)


def test_mistakes_name_the_option(zonestore, drive):
    create = "drive", "create", "x.zoned"
    for options, named in (
        ("--size 1K", "--size"),
        ("--zone-size 1000", "--zone-size"),
        ("--zone-capacity 100GiB", "--zone-capacity"),
        ("--conventional 9999", "--conventional"),
        ("--max-open 9 --max-active 8", "--max-open 9"),
        ("--profile floppy", "--profile"),
    ):
        assert named in zonestore.try_(*create, *options.split()).failed(2).splitlines()[0]
    for zones in ("abc", "1..x"):
        error = zonestore.try_("drive", "report", drive, "--zones", zones)
        assert error.code == 2 and "A..B" in error.err and "64GiB" not in error.err


def test_a_missing_drive_is_not_found(zonestore):
    for command in (
        "drive report x.zoned",
        "drive info x.zoned",
        "drive reset x.zoned --all --yes",
        "store mkfs x.zoned",
        "store df x.zoned",
        "store fsck x.zoned",
        "serve x.zoned",
        "fs mkfs x.zoned",
        "fs ls x.zoned",
        "rocksdb x.zoned -- ldb scan",
    ):
        assert "x.zoned" in zonestore.try_(*command.split()).failed(3)


def test_report_reads_like_blkzone(zonestore, drive):
    lines = zonestore("drive", "report", drive).text.splitlines()
    assert len(lines) == 128
    assert all(ZONE_LINE.match(line) for line in lines), lines[0]
    assert lines[0].endswith("zcond: 0(nw) [type: 1(CONVENTIONAL)]")
    assert lines[4] == (
        "  start: 0x000002000, len 0x000800, cap 0x000800, wptr 0x000000 "
        "reset:0 non-seq:0, zcond: 1(em) [type: 2(SEQ_WRITE_REQUIRED)]"
    )
    report = zonestore("drive", "report", drive, "--json").json
    assert [zone["id"] for zone in report["zones"]] == list(range(128))
    some = zonestore("drive", "report", drive, "--zones", "4..6").text.splitlines()
    assert some == lines[4:6]
    one = zonestore("drive", "report", drive, "--zones", "7").text.splitlines()
    assert one == lines[7:8]
    zonestore.try_("drive", "report", drive, "--zones", "120..130").failed(3)
    assert zonestore.try_("drive", "report", drive, "--zones", "6..4").code == 2


def test_info_says_how_full_the_zones_are(zonestore, store):
    info = zonestore("drive", "info", store, "--json").json
    assert info["profile"] == "test-small"
    assert sum(info["conditions"].values()) == 128
    text = zonestore("drive", "info", store).text
    assert info["uuid"] in text and "test-small" in text


def test_reset_asks_before_it_destroys(zonestore, store):
    assert "--yes" in zonestore.try_("drive", "reset", store, "--all").failed(8)
    zonestore("store", "df", store)
    assert zonestore.try_("drive", "reset", store).code == 2
    assert zonestore.try_("drive", "reset", store, "--all", "--zone", "5").code == 2
    zonestore.try_("drive", "reset", store, "--zone", "0", "--yes").failed(2)
    zonestore.try_("drive", "reset", store, "--zone", "128", "--yes").failed(3)
    zonestore("drive", "reset", store, "--all", "--yes", "--json").json
    report = zonestore("drive", "report", store, "--json").json
    assert {zone["condition"] for zone in report["zones"]} == {"not_write_pointer", "empty"}
    zonestore.try_("store", "df", store).failed(7)
    # What is empty can be formatted without force.
    zonestore("store", "mkfs", store)


def test_reset_of_one_zone_leaves_the_others(zonestore, store):
    def written():
        zones = zonestore("drive", "report", store, "--json").json["zones"]
        return {zone["id"]: zone["write_pointer"] for zone in zones if zone["write_pointer"]}

    (zonestore.folder / "file").write_bytes(os.urandom(3 << 20))
    zonestore("store", "put", store, "file", "c/o")
    before = written()
    victim = max(before)
    zonestore("drive", "reset", store, "--zone", victim, "--yes")
    del before[victim]
    assert written() == before


def test_conformance_destroys_only_when_told_to(zonestore, store):
    assert "--yes-erase" in zonestore.try_("drive", "conformance", store).failed(8)
    zonestore("store", "fsck", store)


def test_a_drive_file_conforms(zonestore):
    zonestore(*"drive create c.zoned --profile zns-zn540 --size 64MiB --zone-size 1MiB".split())
    found = zonestore(*"drive conformance c.zoned --yes-erase --json".split()).json
    assert found["conforms"] and not any("differs" in note for note in found["notes"])


def test_devices_that_are_no_drives_are_refused(zonestore):
    assert "not a drive" in zonestore.try_("drive", "info", "/dev/null").failed(6)
