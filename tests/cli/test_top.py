"""zonestore fs top: who owns which zone, on drives at rest and on drives in use."""

import fcntl
import json
import os
import pty
import shutil
import signal
import struct
import subprocess
import termios
import time
from xml.etree import ElementTree

import pytest

from conftest import TIMEOUT
from test_store import put


@pytest.fixture
def file_system(zonestore, tmp_path):
    drive = tmp_path / "r.zoned"
    shape = "--profile hm-smr-14tb --size 2GiB --zone-size 16MiB --max-active 14"
    zonestore(*f"drive create r.zoned {shape}".split())
    zonestore("fs", "mkfs", drive)
    return drive


def look(zonestore, drive):
    return zonestore("fs", "top", drive, "--json").json


def look_until(zonestore, drive, found):
    """Looks until something is there; every look has to succeed."""
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        seen = look(zonestore, drive)
        if found(seen):
            return seen
    pytest.fail(f"not seen: {json.dumps(seen['totals'])} {seen['owners']} {seen['notes']}")


def check_sums(seen):
    """What every look has to fulfil."""
    zones = seen["zones"]
    assert [zone["zone"] for zone in zones] == list(range(seen["geometry"]["zone_count"]))
    assert sum(share["zones"] for share in seen["owners"].values()) == len(zones)
    assert sum(seen["totals"]["conditions"].values()) == len(zones)
    for zone in zones:
        known = zone["unnamed_bytes"] + (zone["live_bytes"] or 0) + (zone["dead_bytes"] or 0)
        # Without a write pointer nobody knows how much is written.
        has_pointer = zone["condition"] not in ("not_write_pointer", "read_only", "offline")
        assert (zone["written_bytes"] is not None) == has_pointer, zone
        written = zone["written_bytes"] if has_pointer else zone["capacity"]
        assert known <= written <= zone["capacity"], zone


def test_an_empty_file_system(zonestore, file_system):
    seen = look(zonestore, file_system)
    check_sums(seen)
    assert seen["user"] == "nobody" and seen["notes"] == [] and not seen["has_store"]
    assert seen["owners"]["superblock"]["zones"] == 4
    assert seen["owners"]["journal"]["zones"] == 1
    assert seen["totals"]["live_bytes"] == seen["totals"]["dead_bytes"] == 0
    assert seen["totals"]["open_zones"] == 0
    text = zonestore("fs", "top", file_system, "--once").text
    assert "superblock" in text and "128 zones of 16 MiB" in text
    # No terminal: once, without being told.
    assert "superblock" in zonestore("fs", "top", file_system).text


def test_files_that_come_and_go(zonestore, file_system):
    for name in ("000001.sst", "000002.sst"):
        zonestore("fs", "put", file_system, "-", f"/db/{name}", stdin=os.urandom(3 << 20))
    seen = look(zonestore, file_system)
    check_sums(seen)
    assert seen["files"] == 2
    assert seen["totals"]["live_bytes"] == 6 << 20
    assert seen["totals"]["space_amplification"] == 1
    zonestore("fs", "rm", file_system, "/db/000001.sst")
    seen = look(zonestore, file_system)
    check_sums(seen)
    totals = seen["totals"]
    assert totals["live_bytes"] == 3 << 20
    # Dead, or its zone is empty again.
    assert totals["dead_bytes"] in (0, 3 << 20)
    assert totals["live_bytes"] == zonestore("fs", "df", file_system, "--json").json["live_bytes"]


@pytest.mark.skipif(shutil.which("db_bench") is None, reason="rocksdb-tools is not installed")
def test_a_drive_that_db_bench_uses(zonestore, file_system):
    bench = zonestore.start(
        *("rocksdb", file_system, "--", "db_bench", "--benchmarks=fillrandom,overwrite"),
        *("--num=20000000", "--value_size=400", "--write_buffer_size=4194304"),
        *("--compression_type=none", "--target_file_size_base=4194304"),
    )
    try:
        owners = lambda seen: set(seen["owners"])
        seen = look_until(
            zonestore,
            file_system,
            lambda seen: {"wal", "manifest"} <= owners(seen)
            and owners(seen) & {"sst", "shared_ssts"}
            and seen["totals"]["dead_bytes"] > 0,
        )
        check_sums(seen)
        process = seen["user"]["process"]
        assert process["pid"] == bench.pid and process["name"] == "db_bench"
        assert 0 < seen["totals"]["active_zones"] <= 14
        # The file does not say which of the active zones are open.
        assert seen["totals"]["open_zones"] is None
        text = zonestore("fs", "top", file_system, "--once").text
        assert "in use by db_bench" in text and "of 14" in text
        assert bench.poll() is None, bench.communicate()
    finally:
        bench.kill()
        bench.communicate()
    # Looking has not hurt: what was killed is whole, and nobody has it now.
    zonestore("fs", "fsck", file_system)
    seen = look(zonestore, file_system)
    check_sums(seen)
    assert seen["user"] == "nobody" and seen["totals"]["unnamed_bytes"] == 0


def test_a_store_at_rest_and_served(zonestore, serve, store):
    for number in range(3):
        put(zonestore, store, f"kept/{number}", os.urandom(1_500_000))
    zonestore("store", "rm", store, "kept/1")
    seen = look(zonestore, store)
    check_sums(seen)
    assert seen["has_store"] and seen["user"] == "nobody"
    assert seen["owners"]["objects"]["zones"] > 0
    assert not seen["totals"]["dead_is_complete"]
    assert any("store df" in note for note in seen["notes"])
    server = serve(store)
    seen = look(zonestore, store)
    check_sums(seen)
    assert seen["user"] == {"server": {"pid": server.process.pid}}
    assert seen["totals"]["dead_is_complete"] and seen["notes"] == []
    assert seen["totals"]["open_zones"] is not None
    space = zonestore("store", "df", store, "--json").json
    assert seen["owners"]["objects"]["live_bytes"] == space["live_bytes"] - space["inline_bytes"]
    assert "served by zonestore" in zonestore("fs", "top", store, "--once").text
    assert server.stop() == 0


def test_what_is_no_drive_and_what_is_no_file_system(zonestore, drive, tmp_path):
    (tmp_path / "text").write_text("no drive\n" * 1000)
    zonestore.try_("fs", "top", tmp_path / "text").failed(6)
    zonestore.try_("fs", "top", tmp_path).failed(6)
    zonestore.try_("fs", "top", tmp_path / "none").failed(3)
    assert "fs mkfs" in zonestore.try_("fs", "top", drive).failed(7)
    assert zonestore.try_("fs", "top", drive, "--interval", "0").code == 2


class Screen:
    """`fs top` in a terminal of its own."""

    def __init__(self, zonestore, drive, rows=24, columns=80, locale="C.UTF-8"):
        self.master, self.slave = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.slave)
        self.process = subprocess.Popen(
            [zonestore.path, "fs", "top", str(drive), "--interval", "0.1"],
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            env={**zonestore.environment, "TERM": "xterm-256color", "LC_ALL": locale},
            start_new_session=True,
        )
        self.seen = ""

    def resize(self, rows, columns):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read_until(self, mark):
        os.set_blocking(self.master, False)
        deadline = time.monotonic() + TIMEOUT
        while mark not in self.seen:
            assert time.monotonic() < deadline, (mark, self.seen[-2000:])
            try:
                self.seen += os.read(self.master, 65536).decode(errors="replace")
            except BlockingIOError:
                time.sleep(0.01)

    def left(self):
        """Everything is as it was before; answers the exit code."""
        self.read_until("\x1b[?1049l")
        code = self.process.wait(TIMEOUT)
        assert termios.tcgetattr(self.slave) == self.before
        assert self.seen.rindex("\x1b[?1049l") > self.seen.rindex("\x1b[?1049h")
        assert self.seen.rindex("\x1b[?25h") > self.seen.rindex("\x1b[?25l")
        os.close(self.master)
        os.close(self.slave)
        return code


def test_the_screen_draws_and_gives_the_terminal_back(zonestore, file_system):
    screen = Screen(zonestore, file_system)
    screen.read_until("superblock")
    assert "\x1b[?1049h" in screen.seen
    assert termios.tcgetattr(screen.slave) != screen.before
    # Another size, and it is drawn anew.
    screen.seen = screen.seen.replace("superblock", "")
    screen.resize(40, 120)
    screen.process.send_signal(signal.SIGWINCH)
    screen.read_until("superblock")
    os.write(screen.master, b"\x1b[B \x1b[A")
    os.write(screen.master, b"q")
    assert screen.left() == 0


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_only_a_locale_with_utf8_gets_more_than_ascii(zonestore, file_system, tmp_path, locale):
    named = file_system.rename(tmp_path / "naïve.zoned")
    screen = Screen(zonestore, named, locale=locale)
    screen.read_until("superblock")
    os.write(screen.master, b"q")
    assert screen.left() == 0
    has_utf8 = locale != "C"
    assert screen.seen.isascii() != has_utf8 and ("─" in screen.seen) == has_utf8, screen.seen
    assert ("digits are eighths" in screen.seen) != has_utf8


def test_control_c_and_a_signal_give_the_terminal_back(zonestore, file_system):
    for leave in (
        lambda screen: os.write(screen.master, b"\x03"),
        lambda screen: screen.process.send_signal(signal.SIGTERM),
    ):
        screen = Screen(zonestore, file_system)
        screen.read_until("superblock")
        leave(screen)
        assert screen.left() == 0


def test_a_drive_that_goes_while_it_is_shown(zonestore, file_system):
    screen = Screen(zonestore, file_system)
    screen.read_until("superblock")
    file_system.unlink()
    # Only what changes is drawn; another size draws everything.
    columns = 200
    while "there is no such drive" not in screen.seen:
        columns = 399 - columns
        screen.seen = screen.seen.replace("superblock", "")
        screen.resize(24, columns)
        screen.process.send_signal(signal.SIGWINCH)
        screen.read_until("superblock")
    os.write(screen.master, b"q")
    assert screen.left() == 0


def test_a_terminal_that_goes_ends_it(zonestore, file_system):
    screen = Screen(zonestore, file_system)
    screen.read_until("superblock")
    os.close(screen.slave)
    os.close(screen.master)
    assert screen.process.wait(TIMEOUT) != 0


def test_the_map_is_drawn(zonestore, file_system, tmp_path):
    picture = tmp_path / "map.svg"
    seen = zonestore("fs", "top", file_system, "--json", "--svg", picture).json
    cells = [
        cell
        for cell in ElementTree.parse(picture).getroot().iter("{http://www.w3.org/2000/svg}rect")
        if cell.get("class") == "cell" and float(cell.get("height")) > 13
    ]
    assert len(cells) == len(seen["zones"])
    # A drive is never drawn over.
    assert "drive" in zonestore.try_("fs", "top", file_system, "--svg", file_system).failed(8)
    zonestore("fs", "fsck", file_system)
