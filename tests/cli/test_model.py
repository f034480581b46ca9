"""zonestore model: the models, and a block device of each over NBD."""

import json
import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
from pathlib import Path

import pytest
from conftest import TIMEOUT, without_override

READ, WRITE, DISCONNECT, FLUSH, TRIM = range(5)
FUA = 1
# A client's flags, and the wish for the export without a name.
GO = struct.pack(">I8sIIIH", 3, b"IHAVEOPT", 7, 6, 0, 0)


class Export:
    """A running `zonestore model export`."""

    def __init__(self, zonestore, profile, *options, before=()):
        self.socket = zonestore.folder / "s"
        self.uri = f"nbd+unix:///?socket={self.socket}"
        self.process = zonestore.start("model", "export", profile, "--nbd", "s", "--json", *options, before=before)
        self.first_line = self.process.stderr.readline()
        if " at nbd" not in self.first_line:
            out, err = self.process.communicate(timeout=TIMEOUT)
            pytest.fail(f"no export: {self.first_line}{out}{err}")

    def stop(self, how=signal.SIGTERM):
        """Ends it; what it printed."""
        self.process.send_signal(how)
        return self.ended()

    def line_with(self, text):
        """The next line on standard error that has it."""
        # readline() knows no time limit.
        hangs = threading.Timer(TIMEOUT, self.process.kill)
        hangs.start()
        try:
            while text not in (line := self.process.stderr.readline()):
                assert line, "it ended"
            return line
        finally:
            hangs.cancel()

    def ended(self):
        out, err = self.process.communicate(timeout=TIMEOUT)
        assert self.process.returncode == 0, err
        assert "panicked" not in err
        return json.loads(out)


@pytest.fixture
def export(zonestore):
    exports = []

    def start(profile, *options, **more):
        exports.append(Export(zonestore, profile, *options, **more))
        return exports[-1]

    yield start
    for one in exports:
        if one.process.poll() is None:
            one.process.kill()
            one.process.communicate()


def received(stream, count):
    got = b""
    while len(got) < count:
        part = stream.recv(count - len(got))
        if not part:
            raise EOFError
        got += part
    return got


def connected(path):
    stream = socket.socket(socket.AF_UNIX)
    stream.settimeout(TIMEOUT)
    stream.connect(str(path))
    return stream


class Client:
    """As much of an NBD client as the tests need; requests and answers one by one, or not."""

    def __init__(self, path):
        self.stream = connected(path)
        assert self.bytes(18)[:16] == b"NBDMAGICIHAVEOPT"
        self.stream.sendall(GO)
        self.size = None
        while self.size is None or kind != 1:
            _, _, kind, length = struct.unpack(">QIII", self.bytes(20))
            data = self.bytes(length)
            if kind == 3 and data[:2] == b"\0\0":
                self.size, self.flags = struct.unpack(">QH", data[2:])

    def bytes(self, count):
        return received(self.stream, count)

    def send(self, command, cookie, offset=0, length=0, payload=b"", flags=0):
        self.stream.sendall(struct.pack(">IHHQQI", 0x25609513, flags, command, cookie, offset, length) + payload)

    def answer(self):
        magic, error, cookie = struct.unpack(">IIQ", self.bytes(16))
        assert magic == 0x67446698
        return error, cookie

    def read(self, offset, length):
        self.send(READ, 1, offset, length)
        assert self.answer() == (0, 1)
        return self.bytes(length)

    def write(self, offset, payload, flags=0):
        self.send(WRITE, 2, offset, len(payload), payload, flags)
        assert self.answer() == (0, 2)

    def close(self):
        self.stream.close()


def test_the_models_are_listed_and_shown(zonestore):
    models = {model["name"]: model for model in zonestore("model", "list", "--json").json["models"]}
    assert models["seagate-cmr"]["class"] == "conventional" and models["seagate-cmr"]["exported"]
    assert models["st5000as0011"]["class"] == "drive-managed"
    assert not models["hm-smr-14tb"]["exported"] and not models["zns-zn540"]["exported"]
    assert models["seagate-cmr"]["bytes"] == 4000787030016
    lines = zonestore("model", "list").text.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(models)
    shown = zonestore("model", "show", "st5000as0011").text
    assert "map_extents = " in shown and "# " in shown


def test_a_profile_of_ones_own(zonestore, tmp_path, export):
    text = zonestore("model", "show", "wd5000ys").text
    mine = tmp_path / "mine.toml"
    mine.write_text(text.replace('name = "wd5000ys"', 'name = "mine"').replace("capacity_bytes = ", "capacity_bytes = 8388608 #"))
    assert zonestore("model", "show", "mine.toml").text == mine.read_text()
    running = export("mine.toml")
    client = Client(running.socket)
    assert client.size == 8 << 20
    client.close()
    assert running.stop()["profile"] == "mine"
    mine.write_text(text.replace("rpm", "rpn"))
    wrong = zonestore.try_("model", "show", "mine.toml").failed(2)
    line = next(n for n, text in enumerate(mine.read_text().splitlines(), 1) if text.startswith("rpn"))
    assert "rpn" in wrong and f"line {line}:" in wrong
    zonestore.try_("model", "show", "./none.toml").failed(3)


def test_what_cannot_be_exported_says_why(zonestore, tmp_path):
    for name, word in (("hm-smr-14tb", "zones"), ("zns-zn540", "zones"), ("caveat-scriptor", "damages")):
        refused = zonestore.try_("model", "export", name, "--nbd", "s").failed(8)
        assert word in refused and "model list" in refused
    assert "nonsense" in zonestore.try_("model", "export", "nonsense", "--nbd", "s").failed(3)
    assert zonestore.try_("model", "export", "seagate-cmr", "--nbd", "s", "--speed-up", "0").code == 2
    for wrong in ("", "localhost:99999", "127.0.0.1:1x"):
        assert "HOST:PORT" in zonestore.try_("model", "export", "seagate-cmr", "--nbd", wrong).failed(2)
    both = zonestore.try_("model", "export", "seagate-cmr", "--nbd", "s", "--data", "f", "--state", "f")
    assert "same file" in both.failed(2) and not (tmp_path / "f").exists()
    (tmp_path / "s").write_text("mine")
    zonestore.try_("model", "export", "seagate-cmr", "--nbd", "s").failed(8)
    assert (tmp_path / "s").read_text() == "mine"


def test_a_run_in_virtual_time(zonestore, tmp_path):
    def run(*arguments):
        return zonestore("model", "run", *arguments, "--json").json

    reads = run("seagate-cmr")
    assert reads["requests"]["read"]["requests"] > 4000 and "late" not in reads
    assert 60 <= reads["seconds"] < 60.1 and reads["every"] == []
    assert run("seagate-cmr") == reads, "the same every time"
    assert run("seagate-cmr", "--seed", "2") != reads
    # The cliff of figure 3.1: table 2.2's 182,000 writes, and then hardly any.
    writes = ("st5000as0011", "--rw", "randwrite", "--iodepth", "31", "--no-write-cache", "--runtime", "4min")
    every = run(*writes, "--every", "20s")["every"]
    assert [stretch["from_seconds"] for stretch in every] == [20 * n for n in range(len(every))]
    rates = [stretch["requests_per_second"] for stretch in every]
    assert min(rates[:7]) > 1000 and 0 < max(rates[8:12]) < 20
    assert sum(rates[:12]) * 20 == pytest.approx(182_250, rel=0.03)
    # Zones are filled in order; from a kept state it goes on at the write pointers.
    filled = ("zns-zn540", "--rw", "write", "--bs", "1MiB", "--runtime", "2s", "--state", "z")
    first = run(*filled)["requests"]["write"]
    assert first["errors"] == 0 and first["requests"] > 1077
    second = run(*filled)["requests"]["write"]
    assert second["errors"] == 0 and second["requests"] == pytest.approx(first["requests"], rel=0.1)
    # Only what was written is read; a full drive has no room.
    reads = run("zns-zn540", "--state", "z", "--runtime", "1s")["requests"]["read"]
    assert reads["errors"] == 0 and reads["requests"] > 10_000
    empty = zonestore.try_("model", "run", "zns-zn540").failed(8)
    assert "nothing in its zones" in empty and "--rw write" in empty
    assert run("zns-zn540", "--rw", "write", "--bs", "1MiB", "--size", "4MiB")["requests"]["write"]["requests"] == 4
    people = zonestore("model", "run", "seagate-cmr", "--runtime", "4s", "--every", "2s").text
    assert "requests/s" in people and " 2 s " in people and "median" in people
    assert "in order" in zonestore.try_("model", "run", "hm-smr-14tb", "--rw", "randwrite").failed(8)
    for wrong in (("--bs", "5000"), ("--bs", "0"), ("--bs", "33MiB"), ("--size", "1KiB"), ("--iodepth", "0")):
        assert zonestore.try_("model", "run", "seagate-cmr", *wrong).code == 2
    assert zonestore.try_("model", "run", "nonsense").code == 3


def test_a_run_goes_on_where_the_last_one_ended(zonestore):
    run = ("model", "run", "st5000as0011", "--rw", "randwrite", "--iodepth", "31", "--no-write-cache")
    rates = [
        zonestore(*run, "--runtime", "100s", "--state", "s", "--json").json["requests_per_second"] for _ in range(3)
    ]
    # Other blocks each time, so that the cache is full in the second one as it would be in one run.
    assert rates[0] > 1000 and rates[1] < 900 and rates[2] < 20


def test_the_switches_of_a_run_are_not_kept(zonestore):
    run = ("model", "run", "seagate-cmr", "--rw", "randwrite", "--runtime", "1s", "--state", "s", "--json")
    rates = [zonestore(*run, *off).json["requests_per_second"] for off in (["--no-write-cache"], [], ["--no-write-cache"])]
    assert rates[1] > 2 * rates[0] and rates[1] > 2 * rates[2]


def test_a_run_that_is_interrupted_says_how_far_it_came(zonestore, tmp_path):
    process = zonestore.start(
        "model", "run", "seagate-cmr", "--runtime", "300d", "--every", "10d", "--state", "s", "--json"
    )
    # The file is there a moment before its lock, and whoever else asked then would have it.
    while process.poll() is None and f" {process.pid} " not in Path("/proc/locks").read_text():
        time.sleep(0.01)
    # Nobody else goes on with the drive meanwhile.
    assert "in use" in zonestore.try_("model", "run", "seagate-cmr", "--state", "s").failed(4)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 1 and "interrupted after" in err
    report = json.loads(out)
    assert 0 < report["seconds"] < 300 * 86400
    more = zonestore("model", "run", "seagate-cmr", "--state", "s", "--json").json
    assert more["requests"]["read"]["requests"] > 4000


def test_a_run_says_what_it_did_not_measure(zonestore, tmp_path):
    note = zonestore("model", "run", "ssd-15gb", "--runtime", "1s").err
    assert "nothing was ever written" in note and "hint: " in note
    assert zonestore("model", "run", "seagate-cmr", "--runtime", "1s").err == ""
    failed = zonestore.try_("model", "run", "caveat-scriptor", "--runtime", "1s")
    assert failed.code == 1 and "every request failed" in failed.err and "never written" in failed.err
    # A file that was made for a state is gone if there is none to keep.
    zonestore.try_("model", "run", "zns-zn540", "--state", "s").failed(8)
    assert not (tmp_path / "s").exists()
    for wrong in (("--runtime", "0s"), ("--every", "0s"), ("--size", "100TiB")):
        assert zonestore.try_("model", "run", "seagate-cmr", *wrong).code == 2


def test_a_socket_that_is_in_use(zonestore, export):
    running = export("seagate-cmr")
    zonestore.try_("model", "export", "seagate-cmr", "--nbd", "s").failed(4)
    running.stop()
    assert not running.socket.exists()


def test_data_and_counts(export):
    running = export("ssd-15gb", "--speed-up", "1000")
    client = Client(running.socket)
    assert client.read(0, 5000) == bytes(5000)
    client.write(4000, b"a" * 200)
    client.write(client.size - 3, b"end", FUA)
    client.send(FLUSH, 3)
    assert client.answer() == (0, 3)
    assert client.read(3999, 202) == b"\0" + b"a" * 200 + b"\0"
    client.send(TRIM, 4, 4096, 8192)
    assert client.answer() == (0, 4)
    assert client.read(4095, 3) == b"a\0\0"
    # What cannot be: behind the end, nothing, an unknown command.
    client.send(READ, 5, client.size - 1, 2)
    assert client.answer() == (22, 5)
    client.send(WRITE, 6, client.size - 1, 2, b"xx")
    assert client.answer() == (28, 6)
    client.send(READ, 7)
    assert client.answer() == (22, 7)
    client.send(77, 8)
    assert client.answer() == (95, 8)
    # Gone without a word; the next one finds everything.
    client.close()
    client = Client(running.socket)
    assert client.read(client.size - 3, 3) == b"end"
    client.send(DISCONNECT, 9)
    with pytest.raises(EOFError):
        client.bytes(1)
    report = running.stop()
    requests = report["requests"]
    assert [requests[kind]["requests"] for kind in ("read", "write", "flush", "trim")] == [4, 2, 1, 1]
    assert requests["read"]["bytes"] == 5000 + 202 + 3 + 3
    assert report["model"]["writes"] == 2 and report["model"]["flash"]["programmed_blocks"] >= 0


def delayed(path):
    """Whether a file has written blocks that the host's file system has not even found a place for yet."""
    done = subprocess.run(["filefrag", "-v", str(path)], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"no map of extents here: {done.stderr}")
    return "delalloc" in done.stdout


@pytest.mark.parametrize("how", ["flush", "FUA"])
def test_what_was_acknowledged_as_durable_is_on_the_hosts_disk(export, tmp_path, how):
    running = export("seagate-cmr", "--data", "d", "--speed-up", "1000")
    client = Client(running.socket)
    client.write(1 << 30, b"a" * 8192)
    if not delayed(tmp_path / "d"):
        pytest.skip("this file system finds places at once")
    if how == "flush":
        client.send(FLUSH, 3)
        assert client.answer() == (0, 3)
    else:
        client.write(1 << 31, b"b" * 8192, FUA)
    assert not delayed(tmp_path / "d")


def test_a_name_that_cannot_be_made_durable_is_refused(zonestore, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    # Files can be made in it, and it cannot be opened, so not synced.
    folder.chmod(0o300)
    # The second time the file is there.
    for _ in range(2):
        process = zonestore.start("model", "export", "seagate-cmr", "--nbd", "s", "--data", "folder/d", before=without_override([]))
        first = process.stderr.readline()
        process.kill()
        process.communicate()
        assert first.startswith("zonestore: folder/d: Permission denied"), first


def test_many_requests_under_way_and_several_clients(export):
    running = export("seagate-cmr", "--speed-up", "100")

    def work(number):
        client = Client(running.socket)
        base = number << 30
        for n in range(64):
            client.send(WRITE, n, base + n * (1 << 22), 4, struct.pack(">HH", number, n))
        assert sorted(client.answer() for _ in range(64)) == [(0, n) for n in range(64)]
        for n in range(64):
            client.send(READ, n, base + n * (1 << 22), 4)
        for _ in range(64):
            error, cookie = client.answer()
            assert error == 0
            assert client.bytes(4) == struct.pack(">HH", number, cookie)
        done.append(number)

    done = []
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == [0, 1, 2, 3]
    assert running.stop()["requests"]["write"]["requests"] == 256


def test_what_breaks_the_protocol_ends_that_client_alone(export):
    running = export("seagate-cmr", "--speed-up", "1000")
    good = Client(running.socket)
    for sent in (b"\xff" * 4, struct.pack(">I", 3) + b"nonsense" * 9, b"GET / HTTP/1.0\r\n\r\n"):
        other = connected(running.socket)
        other.sendall(sent)
        # Nothing behind the greeting.
        with pytest.raises((EOFError, ConnectionResetError)):
            received(other, 19)
    bad = Client(running.socket)
    bad.send(WRITE, 1, 0, 0xFFFFFFFF)
    with pytest.raises((EOFError, ConnectionResetError)):
        bad.answer()
    # Half a request.
    bad = Client(running.socket)
    bad.stream.sendall(b"\x25\x60")
    bad.close()
    assert good.read(0, 1) == b"\0"
    running.stop()


def test_clients_without_a_thread_are_turned_away_alone(export, tmp_path):
    user = []
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("setpriv is not installed")
        # The limit does not count for root.
        capabilities = "+dac_override"
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                f"--inh-caps={capabilities}", f"--ambient-caps={capabilities}"]
    usual, _ = resource.getrlimit(resource.RLIMIT_NPROC)

    def limit(threads):
        soft = "unlimited" if threads == resource.RLIM_INFINITY else threads
        subprocess.run([*user, "prlimit", "--pid", str(running.process.pid), f"--nproc={soft}:"], check=True)

    running = export("seagate-cmr", "--speed-up", "1000", "--state", "d.state", before=user)
    good, half = Client(running.socket), connected(running.socket)
    received(half, 18)
    # Its threads are there once it is answered.
    assert good.read(0, 1) == b"\0"
    limit(1)
    # It has the thread that takes requests, and gets none that sends answers.
    half.sendall(GO)
    with pytest.raises((EOFError, ConnectionResetError)):
        received(half, 1 << 20)
    # As many as there are places for.
    for _ in range(64):
        with pytest.raises((EOFError, ConnectionResetError)):
            received(connected(running.socket), 1)
    assert good.read(0, 1) == b"\0"
    limit(usual)
    assert Client(running.socket).read(0, 1) == b"\0"
    limit(1)
    assert running.stop()["requests"]["read"]["requests"] == 3
    assert (tmp_path / "d.state").stat().st_size > 0


def test_clients_without_descriptors_wait_or_are_turned_away(export):
    running = export("seagate-cmr", "--speed-up", "1000")
    good = Client(running.socket)
    pid = running.process.pid
    usual, most = resource.prlimit(pid, resource.RLIMIT_NOFILE)

    def used():
        return {int(name) for name in os.listdir(f"/proc/{pid}/fd")}

    def limit(free):
        """Leaves it so many descriptors, of those that are not used."""
        unused = [number for number in range(usual) if number not in before]
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (unused[free], most))

    before = used()
    for free in (1, 2):
        limit(free)
        with pytest.raises((EOFError, ConnectionResetError)):
            received(connected(running.socket), 1 << 20)
        line = running.line_with("turned away")
        assert "Too many open files" in line and "there are too many" not in line
        until = time.monotonic() + TIMEOUT
        while used() != before and time.monotonic() < until:
            time.sleep(0.01)
    limit(0)
    other = connected(running.socket)
    running.line_with("clients have to wait")
    assert good.read(0, 1) == b"\0"
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (usual, most))
    received(other, 18)
    running.stop()


def test_once_it_ends_with_its_client(export):
    running = export("seagate-cmr", "--once")
    # As fio does: once to see how large it is, and again to use it.
    client = Client(running.socket)
    client.close()
    client = Client(running.socket)
    client.write(0, b"x")
    client.close()
    report = running.ended()
    assert report["requests"]["write"]["requests"] == 1
    assert not running.socket.exists()


def test_a_signal_ends_it_with_clients_and_requests_under_way(export):
    for how in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        running = export("seagate-cmr", "--speed-up", "0.001")
        client = Client(running.socket)
        # Takes a quarter of an hour at that pace.
        for n in range(64):
            client.send(READ, n, n << 35, 4096)
        other = Client(running.socket)
        assert other.size == client.size
        report = running.stop(how)
        assert report["requests"]["read"]["requests"] < 64
        with pytest.raises((EOFError, ConnectionResetError)):
            client.bytes(64 * (16 + 4096))


def test_statistics_for_people(zonestore):
    process = zonestore.start("model", "export", "seagate-cmr", "--nbd", "s", "--once", "--speed-up", "100")
    first = process.stderr.readline()
    assert "3.64 TiB" in first and "without a name" in process.stderr.readline()
    client = Client(zonestore.folder / "s")
    for n in range(20):
        client.read(n << 33, 4096)
    client.close()
    out, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, err
    row = next(line for line in out.splitlines() if line.startswith("read"))
    assert row.split()[1] == "20" and "ms" in row
    assert "seeks" in out and "median" in out


def test_over_tcp(zonestore):
    process = zonestore.start("model", "export", "ssd-15gb", "--nbd", "127.0.0.1:0", "--json")
    address = process.stderr.readline().split("nbd://")[1].strip()
    with socket.create_connection(address.rsplit(":", 1), timeout=TIMEOUT) as stream:
        assert stream.recv(18)[:8] == b"NBDMAGIC"
    process.send_signal(signal.SIGTERM)
    assert json.loads(process.communicate(timeout=TIMEOUT)[0])["profile"] == "ssd-15gb"


def test_data_and_state_stay(zonestore, tmp_path, export):
    kept = ("--data", "d.bytes", "--state", "d.state", "--speed-up", "1000")
    running = export("st5000as0011", "--no-write-cache", *kept)
    client = Client(running.socket)
    for n in range(30):
        client.write(n << 36, b"%04d" % n, FUA)
    # Nobody else gets the file.
    zonestore.try_("model", "export", "st5000as0011", "--nbd", "t", "--data", "d.bytes").failed(4)
    client.close()
    first = running.stop()
    assert first["model"]["writes"] == 30
    assert os.stat(tmp_path / "d.bytes").st_blocks * 512 < 4 << 20
    running = export("st5000as0011", *kept)
    client = Client(running.socket)
    assert client.read(7 << 36, 4) == b"0007"
    client.close()
    second = running.stop()
    # Only what came since; the blocks that were written are in the persistent cache still, or cleaned.
    assert second["model"]["writes"] == 0 and second["model"]["reads"] == 1

    def refused(code, *arguments):
        return zonestore.try_("model", "export", *arguments, "--nbd", "t").failed(code)

    assert "another profile" in refused(8, "st8000as0002", "--state", "d.state")
    assert "not the data" in refused(8, "seagate-cmr", "--data", "d.bytes")
    state = bytearray((tmp_path / "d.state").read_bytes())
    version, state[8] = state[8], 99
    (tmp_path / "newer").write_bytes(state)
    assert "version 99" in refused(8, "st5000as0011", "--state", "newer")
    state[8], state[-1] = version, state[-1] ^ 1
    (tmp_path / "damaged").write_bytes(state)
    assert "damaged" in refused(6, "st5000as0011", "--state", "damaged")
    (tmp_path / "other").write_text("what is this?")
    assert "not the state" in refused(8, "st5000as0011", "--state", "other")
    assert (tmp_path / "other").read_text() == "what is this?"
    refused(3, "st5000as0011", "--state", "nowhere/state")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.bytes", "d.state", "damaged", "newer", "other"]


def fio(running, *options):
    """Runs fio's nbd engine on an export; its one job's report."""
    if shutil.which("fio") is None:
        pytest.fail("fio is not installed: scripts/setup --test")
    done = subprocess.run(
        ["fio", "--name=x", "--ioengine=nbd", f"--uri={running.uri}", "--output-format=json", *options],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        cwd=running.socket.parent,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout[done.stdout.index("{\n") :])["jobs"][0]


@pytest.mark.parametrize("profile", ["seagate-cmr", "st5000as0011", "emulated-smr-1", "emulated-smr-3", "ha-smr-8tb", "ssd-15gb"])
def test_fio_verifies_what_it_wrote(export, profile):
    running = export(profile, "--speed-up", "2000")
    for options in (("--rw=randwrite", "--bsrange=512-64k"), ("--rw=write", "--bs=256k")):
        job = fio(
            running, *options, "--iodepth=8", "--size=12m", "--verify=crc32c", "--verify_fatal=1", "--do_verify=1",
            "--randseed=7", "--verify_state_save=0",
        )
        assert job["error"] == 0 and job["read"]["total_ios"] > 0
    report = running.stop()
    assert report["requests"]["read"]["errors"] == report["requests"]["write"]["errors"] == 0
    assert report["requests"]["write"]["bytes"] >= 24 << 20


def test_fio_waits_at_least_as_long_as_the_drive_takes(export):
    """On a slow machine longer; how much longer on a quick one, docs/models.md says."""
    running = export("seagate-cmr")
    job = fio(
        running, "--rw=randread", "--bs=4k", "--size=1t", "--number_ios=40", "--norandommap", "--randseed=7"
    )
    read = running.stop()["requests"]["read"]
    assert read["requests"] == job["read"]["total_ios"] == 40
    # The histogram behind the model's mean keeps three digits.
    assert job["read"]["clat_ns"]["mean"] / 1e3 >= read["latency_us"]["mean"] * 0.999
    assert 5_000 < read["latency_us"]["mean"] < 30_000


@pytest.mark.parametrize(
    "profile, field, value",
    [
        ("seagate-cmr", "command_us", "nan"),
        ("seagate-cmr", "capacity_bytes", "3"),
        ("st5000as0011", "map_merge_ms", "-1.0"),
        ("emulated-smr-1", "cache_bands", "1000000007"),
        ("emulated-smr-3", "band_blocks", "1"),
        ("emulated-smr-3", "capacity_bytes", "9223372036854775807"),
        ("wd40nmzw", "zone_cache_bands", '"many"'),
        ("hm-smr-14tb", "zone_size_bytes", "4096"),
        ("zns-zn540", "program_us", "1e300"),
        ("ssd-15gb", "superblocks", "1000000007"),
    ],
)
def test_a_profile_that_cannot_be_says_which_field(zonestore, tmp_path, profile, field, value):
    lines = zonestore("model", "show", profile).text.splitlines()
    changed = [f"{field} = {value}" if line.startswith(f"{field} = ") else line for line in lines]
    assert changed != lines
    (tmp_path / "mine.toml").write_text("\n".join(changed))
    refused = zonestore.try_("model", "run", "mine.toml", "--runtime", "2s").failed(2)
    assert field in refused and value.strip('"').removesuffix(".0") in refused.replace("NaN", "nan") and len(refused) < 400


def test_paths_that_are_not_utf8_are_taken_or_the_argument_is_named(zonestore):
    name = os.fsdecode(b"./\xff.toml")
    (zonestore.folder / name).write_text(zonestore("model", "show", "seagate-cmr").text)
    assert zonestore("model", "show", name).text == zonestore("model", "show", "seagate-cmr").text
    zonestore("model", "run", name, "--runtime", "1s")
    zonestore("skylight", name, "--quick")
    zonestore("sim", "cluster", "--drive", name, "--nodes", "3", "--drives", "1", "--time", "5s", "--warm-up", "1s")
    missing = os.fsdecode(b"./\xff\xff.toml")
    for command in (("model", "show"), ("model", "run"), ("model", "export", "--nbd", "s"), ("skylight",), ("sim", "cluster", "--drive")):
        assert zonestore.try_(*command, missing).code == 3
    refused = zonestore.try_("model", "export", "seagate-cmr", "--nbd", os.fsdecode(b"\xff"))
    assert refused.code == 2 and "--nbd" in refused.err


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_profile_that_never_comes_can_be_interrupted(zonestore, tmp_path, sent):
    pipe = tmp_path / "profile"
    os.mkfifo(pipe)
    process = zonestore.start("model", "run", "./profile", "--runtime", "1s")
    # It can be opened once the process waits for it; then the process reads.
    while True:
        assert process.poll() is None
        try:
            writer = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
            break
        except OSError:
            time.sleep(0.01)
    try:
        process.send_signal(sent)
        assert process.wait(TIMEOUT) == -sent
    finally:
        process.kill()
        os.close(writer)
