"""The daemon's calls: as docs/daemon.yaml describes them, for whoever may ask, as long as it runs."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import yaml
from backends import DaemonProcess, binary

import zonestore_swift

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = os.environ.get("SCHEMATHESIS_EXAMPLES") or "15"
SEED = os.environ.get("SEED") or "1"
# What the document cannot say is refused as well: times that are the same, bounds that cross, whole numbers written
# with a point, two parameters that exclude each other, a second time beyond the last that there is, an index of more than
# 32 bits.
CONFIGURATION = """
[parameters]
"path.device" = "sda1"

[checks.positive_data_acceptance]
expected-statuses = ["2xx", 404, 409, 410, 416]

[checks.negative_data_rejection]
expected-statuses = ["4xx"]

[[operations]]
include-operation-id = ["changeCleaner", "orderCleaner", "takeTurn", "open", "put", "makeDurable", "remove"]
checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 404, 409, 410]
"""


@pytest.fixture
def calls(tmp_path):
    daemon = DaemonProcess(tmp_path)
    yield daemon
    daemon.stop()


def command(*arguments):
    return subprocess.run([binary(), *map(str, arguments)], capture_output=True, text=True, timeout=600)


class Relay:
    """Connections to a port of this host go on to a Unix socket."""

    def __init__(self, path):
        self.path = str(path)
        self.loop = asyncio.new_event_loop()
        self.server = self.loop.run_until_complete(asyncio.start_server(self.answer, "127.0.0.1", 0))
        self.port = self.server.sockets[0].getsockname()[1]
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    async def answer(self, reader, writer):
        there, back = await asyncio.open_unix_connection(self.path)
        await asyncio.gather(self.pump(reader, back), self.pump(there, writer), return_exceptions=True)

    async def pump(self, reader, writer):
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        finally:
            writer.close()

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)


def test_answers_are_as_the_document_says(calls, tmp_path):
    configuration = tmp_path / "schemathesis.toml"
    configuration.write_text(CONFIGURATION)
    relay = Relay(calls.socket)
    tool = Path(sys.executable).with_name("schemathesis")
    run = subprocess.run(
        [tool, "--config-file", configuration, "run", ROOT / "docs/daemon.yaml", "--url", f"http://127.0.0.1:{relay.port}",
         # An HTTP client cannot speak what comes behind their answers (test_sending.py, test_receiving.py).
         "--exclude-operation-id", "sending", "--exclude-operation-id", "receiving",
         "--max-examples", EXAMPLES, "--seed", SEED, "--suppress-health-check", "all", "--no-color"],
        capture_output=True, text=True, cwd=tmp_path, timeout=600)
    relay.stop()
    assert run.returncode == 0, run.stdout[-8000:]
    assert calls.process.poll() is None
    # Every other call of the document was tried.
    selected, there, tested = map(int, re.search(r"Selected: (\d+)/(\d+)\s+Tested: (\d+)", run.stdout).groups())
    assert there - 2 == selected == tested > 25


def test_the_document_knows_all_names_of_files():
    tested = (ROOT / "crates/serve/swift-files/src/file_name.rs").read_text().partition("fn forms()")[2].partition("]")[0]
    names = re.findall('"(.*)"', tested)
    assert len(names) > 5
    pattern = yaml.safe_load((ROOT / "docs/daemon.yaml").read_text())["components"]["schemas"]["fileName"]["pattern"]
    assert [name for name in [*names, f"1402464677.04188#{2 ** 32 - 1}.data"] if not re.search(pattern, name)] == []


def test_the_document_is_served(calls):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(calls.socket))
        connection.sendall(b"GET /v1/openapi.yaml HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = b""
        while part := connection.recv(1 << 16):
            answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200") and b"application/yaml" in head
    assert body == (ROOT / "docs/daemon.yaml").read_bytes()


def test_other_commands_ask_the_daemon(calls):
    for words in (["store", "df"], ["store", "health"], ["drive", "report"], ["store", "clean", "--status"]):
        if words[-1].startswith("--"):
            run = command(*words[:-1], calls.drive, words[-1])
        else:
            run = command(*words, calls.drive)
        assert run.returncode == 0, (words, run.stderr)
    run = command("store", "fsck", calls.drive)
    assert run.returncode != 0 and "in use" in run.stderr


def test_a_killed_daemon_starts_again_and_an_old_id_means_nothing(calls):
    transport = zonestore_swift.transport.Transport(str(calls.socket), 2, 60)
    staged = transport.ask("POST", "/v1/drives/sda1/swift/staged", body=b"x" * 100_000)
    calls.stop(signal.SIGKILL)
    assert calls.socket.exists()
    calls.start()
    transport = zonestore_swift.transport.Transport(str(calls.socket), 2, 60)
    transport.ask("PUT", "/v1/drives/sda1/swift/policies/0", body=b'{"kind": "replication"}')
    path = f"/v1/drives/sda1/swift/0/1/{'0' * 32}/files/1402464677.04188.data?staged={staged['staged']}"
    with pytest.raises(zonestore_swift.errors.Gone):
        transport.ask("PUT", path, body=b"metadata")
    calls.stop()
    assert not calls.socket.exists()


def test_what_is_wrong_is_told_with_what_to_do(calls, tmp_path):
    second = command("daemon", f"other={calls.drive}", "--socket", calls.socket)
    assert second.returncode != 0 and "another process listens there" in second.stderr
    second = command("daemon", f"other={calls.drive}", "--socket", tmp_path / "2.sock")
    assert second.returncode != 0 and "in use" in second.stderr
    assert not (tmp_path / "2.sock").exists()
    blank = tmp_path / "blank.zoned"
    assert command("drive", "create", blank, "--profile", "hm-smr-14tb", "--size", "1GiB", "--zone-size", "8MiB").returncode == 0
    for arguments, words in (
        ([blank], "store mkfs"),
        ([tmp_path / "none.zoned"], "none.zoned"),
        ([f"a={blank}", f"a={blank}"], "two drives are named a"),
        ([f"a/b={blank}"], "no name of a device"),
        ([blank, "--user", "nobody-knows"], "there is no user"),
    ):
        run = command("daemon", *arguments, "--socket", tmp_path / "3.sock")
        assert run.returncode not in (0, 101) and words in run.stderr, run.stderr
        assert not (tmp_path / "3.sock").exists()
    (tmp_path / "file").write_text("mine")
    run = command("daemon", blank, "--socket", tmp_path / "file")
    assert run.returncode != 0 and (tmp_path / "file").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_strangers_are_not_let_in(calls):
    # Whatever somebody did to the file's mode.
    calls.socket.chmod(0o777)
    for parent in calls.socket.parents:
        if parent.stat().st_uid == 0 and parent != Path("/") and str(parent).startswith("/tmp"):
            parent.chmod(parent.stat().st_mode | 0o055)
    asking = f"""
import os, socket
os.setuid(65534)
connection = socket.socket(socket.AF_UNIX)
connection.connect({str(calls.socket)!r})
connection.sendall(b"GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
print(len(connection.recv(100)))
"""
    run = subprocess.run([sys.executable, "-c", asking], capture_output=True, text=True, timeout=600)
    assert run.stdout.strip() == "0" or "reset" in run.stderr.lower() or "BrokenPipe" in run.stderr, run


def test_an_error_is_read_by_who_still_writes(calls):
    for target, kind in (("/v1/drives/sda1/swift/staged?size=x", b"invalid"), ("/v1/drives/none/swift/staged", b"no_drive"),
                         (f"/v1/drives/sda1/swift/9/1/{'0' * 32}/files/1402464677.04188.ts", b"too_large")):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(calls.socket))
            method = "PUT" if "files" in target else "POST"
            head = f"{method} {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 8000000\r\n\r\n"
            connection.sendall(head.encode() + bytes(8_000_000))
            assert kind in connection.recv(1 << 16)
