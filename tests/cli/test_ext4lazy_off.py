"""`ext4lazy off` on images whose journal has what is nowhere else. debugfs writes it, as a kernel would."""

import shutil
import struct
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

OFF = Path(__file__).parents[2] / "kernel/ext4-lazy/ext4lazy"
sys.path.insert(0, str(OFF.parent))
import journal  # noqa: E402

PATH = "/usr/sbin:/sbin:/usr/bin:/bin"
DESCRIPTOR = bytes.fromhex("c03b399800000001")
BLOCK, PLACE = 1024, 9000

pytestmark = pytest.mark.skipif(not shutil.which("debugfs", path="/usr/sbin:/sbin:/usr/bin"), reason="needs e2fsprogs")


def run(*words, **options):
    options = {"env": {"PATH": PATH}, **options}
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)


@pytest.fixture
def image(tmp_path):
    image, block, commands = tmp_path / "image", tmp_path / "block", tmp_path / "commands"
    with open(image, "wb") as file:
        file.truncate(64 << 20)
    block.write_bytes(b"here" * (BLOCK // 4))
    commands.write_text(f"jo -c\njw -b {PLACE} {block}\njc\n")
    run("mke2fs", "-q", "-F", "-t", "ext4", "-b", BLOCK, "-J", "size=4", image, check=True)
    run("debugfs", "-w", "-f", commands, image, check=True)
    return image


def mark(image):
    """As the kernel does at home while the log has something: nobody but these programs opens the file system."""
    data = bytearray(image.read_bytes())
    data[1024 + 96:1024 + 100] = struct.pack("<I", struct.unpack("<I", data[1024 + 96:1024 + 100])[0] | journal.FS_LAZY_LOG)
    data[2044:2048] = journal.checksum_at_home(data[1024:2044])
    image.write_bytes(data)


def damage(image):
    """The log's only transaction is not whole, and was committed, as the record in the journal's superblock says."""
    log = journal.Journal(shutil.which("debugfs", path=PATH), image)
    superblock = bytearray(log.block(0))
    superblock[0xD8:0xF8] = struct.pack(">Q4sIIIII", 1, b"LZY\1", log.sequence, log.start, log.sequence + 1, 0, 0)
    superblock[252:256] = struct.pack(">I", journal.superblock_checksum(superblock))
    log.put(0, bytes(superblock))
    descriptor = bytearray(log.block(log.start))
    descriptor[20] ^= 1
    log.put(log.start, bytes(descriptor))


def at_home(image):
    return image.read_bytes()[PLACE * BLOCK:][:4] == b"here"


def test_everything_goes_home(image):
    assert not at_home(image)
    done = run(OFF, "off", image)
    assert (done.returncode, at_home(image)) == (0, True), done.stderr
    assert "everything is home" in done.stdout


def test_a_damaged_journal_is_left_as_it_was(image):
    whole = image.read_bytes()
    damaged = bytearray(whole)
    damaged[whole.index(DESCRIPTOR) + 20] ^= 1
    image.write_bytes(damaged)
    done = run(OFF, "off", image)
    assert done.returncode == 1 and "is left as it was" in done.stderr, done.stdout + done.stderr
    assert "everything is home" not in done.stdout
    # What was said of it can be said again, and with the byte put right it goes home.
    log = whole.index(DESCRIPTOR)
    kept = bytearray(image.read_bytes())
    assert kept[log:log + 4 * BLOCK] == damaged[log:log + 4 * BLOCK]
    kept[log + 20] ^= 1
    image.write_bytes(kept)
    assert run(OFF, "off", image).returncode == 0 and at_home(image)


def test_what_others_refuse_goes_home(image):
    mark(image)
    assert "unsupported feature" in run("e2fsck", "-f", "-y", image).stderr
    assert run(OFF, "status", image).returncode == 0
    done = run(OFF, "off", image)
    assert (done.returncode, at_home(image)) == (0, True), done.stderr
    assert "unsupported feature" not in run("e2fsck", "-f", "-n", image).stderr


def test_a_torn_superblock_is_not_the_journal(image):
    torn = bytearray(image.read_bytes())
    torn[1024 + 48] ^= 1
    image.write_bytes(torn)
    done = run(OFF, "off", image)
    assert done.returncode == 1 and "superblock" in done.stderr and "wrong checksum" in done.stderr, done.stdout + done.stderr
    assert "hint: e2fsck -f -b" in done.stderr and image.read_bytes() == torn


@pytest.mark.parametrize("options", [(), ("--force",)], ids=["whole", "damaged, by force"])
@pytest.mark.parametrize(("script", "words"), [
    ("exit 8", "ended with code 8"),
    ("kill -TERM $$", "ended by signal 15"),
    ("kill -INT $PPID; exec sleep 5", "it was interrupted"),
    ("exit 0", "replayed"),
], ids=["an error", "a signal", "interrupted", "nothing is done"])
def test_what_is_not_replayed_stays_marked(image, tmp_path, script, words, options):
    """With --force as well: a replay by others would leave out what is behind the damage, in silence."""
    if options:
        damage(image)
    mark(image)
    before = image.read_bytes()
    instead = tmp_path / "e2fsck"
    instead.write_text(f"#!/bin/sh\n{script}\n")
    instead.chmod(0o755)
    done = run("env", "--default-signal=INT", OFF, "off", *options, image, env={"PATH": f"{tmp_path}:{PATH}"})
    assert done.returncode == 1 and words in done.stderr, done.stdout + done.stderr
    assert ("off --force" in done.stderr) == bool(options or script == "exit 0"), done.stderr
    assert image.read_bytes() == before
    # What it says is the way on, behind a program that an interrupt came too early to stop.
    run("flock", image, "true")
    done = run(OFF, "off", *options, image)
    assert (done.returncode, at_home(image)) == (0, not options), done.stdout + done.stderr


def test_all_group_descriptors_of_a_large_file_system_are_kept(image):
    data = bytearray(image.read_bytes())
    data[1024 + 0x150:1024 + 0x154] = (1).to_bytes(4, "little")
    image.write_bytes(data)
    tool = ModuleType("ext4lazy")
    SourceFileLoader("ext4lazy", str(OFF)).exec_module(tool)
    log = SimpleNamespace(block_size=BLOCK, has_64_bits=True, places=[0], top=0)
    descriptors = tool.kept(SimpleNamespace(path=image, log=None), log)[1][2]
    # Of 64 bytes, for each group of 8,192 blocks; the last one is of the blocks behind 4 TiB.
    assert len(descriptors) >= ((1 << 32) + (64 << 10)) // 8192 * 64
