"""The control socket of a served drive: the same commands, answered by the server."""

import fcntl
import json
import os
import pty
import shutil
import signal
import socket
import stat
import subprocess
import threading

import pytest

from conftest import TIMEOUT, Server, without_override
from test_serve import s3cmd
from test_store import put


def ask(sock, method, path, body=b"", head=""):
    """A raw request; answers status and body."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(TIMEOUT)
        connection.connect(str(sock))
        connection.sendall(
            f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{head}"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        answer = b""
        while part := connection.recv(65536):
            answer += part
    front, _, body = answer.partition(b"\r\n\r\n")
    return int(front.split()[1]), body


JSON = "Content-Type: application/json\r\n"


@pytest.fixture
def filled(zonestore, store):
    """A store with some objects, a removed one among them."""
    for number in range(3):
        put(zonestore, store, f"kept/{number}", os.urandom(1_500_000))
    put(zonestore, store, "kept/small", b"x")
    put(zonestore, store, "other/o", b"x")
    zonestore("store", "rm", store, "kept/1")
    return store


def test_a_served_drive_answers_as_a_drive_at_rest(zonestore, serve, filled):
    questions = [
        *("store ls", "store ls -l", "drive info"),
        *("store ls -l {} kept", "store ls {} kept/sm", "drive report --zones 0..3"),
    ]

    def answers(option=""):
        return {
            q: zonestore(*(q if "{}" in q else q + " {}").format(filled).split(), *option.split()).text
            for q in questions
        }

    at_rest, json_at_rest = answers(), answers("--json")
    server = serve(filled)
    served, json_served = answers(), answers("--json")
    for question in questions:
        if question != "drive info":
            assert served[question] == at_rest[question]
            assert json_served[question] == json_at_rest[question]
    info, info_at_rest = json.loads(json_served["drive info"]), json.loads(json_at_rest["drive info"])
    assert info.keys() == info_at_rest.keys()
    for name in ("path", "profile", "uuid", "geometry"):
        assert info[name] == info_at_rest[name]
    assert len(zonestore("drive", "report", filled).text.splitlines()) == 128
    space = zonestore("store", "df", filled, "--json").json
    assert sum(space[f"{part}_bytes"] for part in ("live", "dead", "free")) == space["capacity_bytes"]
    assert "capacity" in zonestore("store", "df", filled).text
    zonestore.try_("store", "ls", filled, "nope").failed(3)
    zonestore.try_("store", "ls", filled, "kept/nope").failed(3)
    zonestore.try_("drive", "report", filled, "--zones", "120..130").failed(3)
    assert server.stop() == 0


def test_the_cleaner_is_held_to_what_it_is_told(zonestore, serve, filled):
    server = serve(filled, "--clean-pace", "20MiB/s", "--clean-free-zones", "2..10%")
    clean = lambda *options: zonestore("store", "clean", filled, *options)
    status = clean("--status", "--json").json
    assert (status["pace"], status["hours"], status["free_zones"]) == ("20MiB/s", "always", "2..10%")
    assert status["pace_bytes_per_second"] == 20 << 20 and status["is_in_hours"]
    assert status["free_now"] > 10 and status["dirty_live_bytes"] > 0
    assert status["seconds_left"] is not None and status["in_hand"] is None
    assert "pace 20MiB/s; hours always; free zones for data 2..10% (2.." in clean("--status").text
    # What is not named stays as it is.
    text = clean("--pace", "idle:200ms", "--hours", "22:00-06:00", "--start").text
    assert "pace idle:200ms; hours 22:00-06:00 (UTC+" in text and "in the background" in text
    status = clean("--pace", "full", "--json").json
    assert (status["pace"], status["hours"], status["free_zones"]) == ("full", "22:00-06:00", "2..10%")
    wrong = ask(f"{filled}.sock", "PATCH", "/v1/store/cleaner", b'{"pase": "full"}', JSON)
    assert wrong[0] == 400 and json.loads(wrong[1])["kind"] == "invalid"
    for option, value in (("--pace", "fast"), ("--hours", "25:00-1:00"), ("--free-zones", "50%..1")):
        assert zonestore.try_("store", "clean", filled, option, value).code == 2
    assert zonestore.try_("store", "clean", filled, "--all", "--pace", "full").code == 2
    assert server.stop() == 0
    zonestore.try_("store", "clean", filled, "--pace", "full").failed(3)


def test_more_objects_than_one_answer_holds(zonestore, serve, store, tmp_path):
    if shutil.which("rclone") is None:
        pytest.skip("rclone is not installed")
    server = serve(store)
    names = [f"n{number:04}" for number in range(1100)]
    folder = tmp_path / "many"
    folder.mkdir()
    for name in names:
        (folder / name).write_bytes(b"")
    keys = dict(
        line.split(" = ", 1) for line in (tmp_path / "d.zoned.keys").read_text().splitlines() if " = " in line
    )
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
        "RCLONE_CONFIG_Z_TYPE": "s3",
        "RCLONE_CONFIG_Z_PROVIDER": "Other",
        "RCLONE_CONFIG_Z_ENDPOINT": server.endpoint,
        "RCLONE_CONFIG_Z_ACCESS_KEY_ID": keys["access_key"],
        "RCLONE_CONFIG_Z_SECRET_ACCESS_KEY": keys["secret_key"],
    }
    subprocess.run(
        ["rclone", "copy", "--transfers", "16", folder, "z:many"], env=env, check=True, timeout=TIMEOUT
    )
    assert zonestore("store", "ls", store, "many").text.split() == names


def test_the_server_cleans(zonestore, serve, filled):
    # What the mount resets itself is not left for the cleaner: this goes while the store is served.
    server = serve(filled)
    s3cmd(f"s3cmd -c {filled}.keys rm s3://kept/0", filled.parent)
    clean = lambda *options: zonestore("store", "clean", filled, *options)
    status = clean("--status", "--json").json
    assert status["dirty_zones"] > 0 and status["dead_bytes"] > 1_000_000
    assert status["automatic"] and not status["requested"]
    assert "dead bytes" in clean("--status").text
    assert "stop" in clean("--stop").text
    assert not clean("--status", "--json").json["automatic"]
    one = clean("--zones", "1", "--json").json
    assert one["zones_cleaned"] == len(one["zones"]) == 1 and one["bytes_freed"] > 0 and not one["stopped"]
    assert one["mount_zones_reset"] == 0 and "pace" not in one
    rest = clean("--json").json
    assert rest["dirty_zones"] == 0
    # It counts what this command did, not what the server has done since its start.
    assert clean("--json").json["zones_cleaned"] == 0
    # df and status count the zones that are free for data alike.
    free = zonestore("store", "df", filled, "--json").json["free_zones_for_data"]
    assert clean("--status", "--json").json["free_now"] == free
    assert f"({free} now)" in clean("--status").text
    assert clean("--start", "--json").json["automatic"]
    assert zonestore.try_("store", "clean", filled, "--start", "--stop").code == 2
    assert server.stop() == 0
    zonestore("store", "fsck", "--deep", filled)
    assert "no server" in zonestore.try_("store", "clean", filled, "--start").failed(3)
    assert "no server" in zonestore.try_("store", "clean", filled, "--stop").failed(3)


def test_a_job_ends_when_somebody_stops_the_cleaner(zonestore, serve, filled):
    server = serve(filled)
    s3cmd(f"s3cmd -c {filled}.keys rm s3://kept/0", filled.parent)
    status = json.loads(ask(f"{filled}.sock", "GET", "/v1/store/cleaner")[1])
    order = lambda **what: json.loads(
        ask(f"{filled}.sock", "POST", "/v1/store/cleaner", json.dumps(what).encode(), JSON)[1]
    )
    order(action="stop")
    answer = order(action="one", job=status["job"])
    assert answer["stopped"] and answer["zone"] is None and answer["did"]["zones_cleaned"] == 0
    # What is asked for afterwards is done.
    answer = order(action="one")
    assert not answer["stopped"] and answer["zone"] is not None
    assert server.stop() == 0


def test_who_has_the_drive_is_said_and_what_to_do(zonestore, serve, store):
    server = serve(store)
    for command in ("store fsck", "store mkfs --force", "drive reset --all --yes", "fs ls"):
        error = zonestore.try_(*command.split(), store).failed(4)
        assert f"in use by zonestore serve (pid {server.process.pid})" in error
        assert f"kill {server.process.pid}" in error
    error = zonestore.try_("store", "put", store, "-", "c/o", stdin=b"x").failed(4)
    assert f"pid {server.process.pid}" in error


def test_a_server_that_has_another_number_here_is_not_to_be_killed_by_it(zonestore, store):
    apart = ["unshare", "--pid", "--fork", "--kill-child=TERM"]
    if subprocess.run([*apart, "true"], capture_output=True).returncode != 0:
        pytest.skip("a PID namespace")
    server = Server(zonestore.start("serve", store, "--s3", "127.0.0.1:0", before=apart))
    try:
        error = zonestore.try_("store", "fsck", store).failed(4)
        assert "in use by zonestore serve" in error and "pid 1" not in error
        assert "stop it first;" in error and "kill" not in error
    finally:
        server.stop(signal.SIGKILL)


def test_the_socket_is_the_owners_and_goes_with_the_server(zonestore, serve, store):
    sock = store.with_name("d.zoned.sock")
    old = os.umask(0)
    try:
        server = serve(store)
    finally:
        os.umask(old)
    assert stat.S_IMODE(sock.stat().st_mode) == 0o600
    assert server.stop() == 0
    assert not sock.exists()


def test_a_socket_left_by_a_kill_is_in_nobodys_way(zonestore, serve, store):
    sock = store.with_name("d.zoned.sock")
    serve(store).stop(signal.SIGKILL)
    assert sock.exists()
    zonestore("store", "df", store)
    server = serve(store)
    zonestore("store", "df", store)
    assert server.stop() == 0
    assert not sock.exists()
    # Somebody else has the drive, and the socket is stale.
    serve(store).stop(signal.SIGKILL)
    with open(store, "r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert f"(pid {os.getpid()})" in zonestore.try_("store", "df", store).failed(4)


def test_a_path_longer_than_a_sockets_address(zonestore, serve, store, tmp_path):
    deep = tmp_path / ("d" * 120) / ("e" * 120)
    deep.mkdir(parents=True)
    for name in ("d.zoned", "n" * 200 + ".zoned"):
        drive = deep / name
        shutil.copy(store, drive)
        env = {"ZONESTORE_ACCESS_KEY": "a", "ZONESTORE_SECRET_KEY": "bbbbbbbb"}
        server = serve(drive, env=env)
        assert zonestore("store", "df", drive).err == ""
        # By another way to the same file.
        link = tmp_path / "link"
        link.unlink(missing_ok=True)
        link.symlink_to(drive)
        zonestore("store", "df", link)
        assert server.stop() == 0
        assert os.listdir(deep) == [name]
        drive.unlink()


def test_what_has_the_sockets_name_is_left_alone(zonestore, serve, store):
    mine = store.with_name("d.zoned.sock")
    mine.write_text("mine")
    server = serve(store)
    assert "in use" in zonestore.try_("store", "df", store).failed(4)
    assert server.stop() == 0
    assert mine.read_text() == "mine"
    assert "d.zoned.sock" in server.output[1]


def test_only_the_owner_may_ask(zonestore, serve, store):
    serve(store)
    sock = store.with_name("d.zoned.sock")
    sock.chmod(0)
    done = subprocess.run(
        without_override([str(zonestore.path), "store", "df", str(store)]),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    assert done.returncode == 4, done.stderr
    assert "only the user who runs the server" in done.stderr and "hint: " in done.stderr


def imposter(drive, answer):
    """Holds a drive and answers everything at its socket with `answer`."""
    held = open(drive, "r+b")
    fcntl.flock(held, fcntl.LOCK_EX)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(drive) + ".sock")
    listener.listen()

    def run():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.recv(65536)
            connection.sendall(answer)
            connection.close()

    threading.Thread(target=run, daemon=True).start()
    return held, listener


def http(value):
    body = json.dumps(value).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def test_a_server_of_another_version_is_named(zonestore, store):
    hello = {"service": "zonestore", "api_versions": [2, 3], "program_version": "9.1", "pid": 4711}
    keep = imposter(store, http(hello))
    error = zonestore.try_("store", "df", store).failed(1)
    assert "[2, 3]" in error and "9.1" in error and "4711" in error
    # Nobody is told to kill a process that this one is not.
    refused = zonestore.try_("store", "fsck", store).failed(4)
    assert "in use by zonestore serve" in refused and "4711" not in refused
    del keep


@pytest.mark.parametrize(
    "answer", [b"", b"SSH-2.0-OpenSSH\r\n", http({"hello": 1}), http([]), b"HTTP/1.1 200 OK\r\n\r\nx"]
)
def test_what_is_no_server_is_said_so(zonestore, store, answer):
    keep = imposter(store, answer)
    zonestore.try_("store", "df", store).failed(4)
    del keep


def test_the_interface_is_versioned_bounded_and_answers_errors_in_json(serve, store):
    serve(store)
    sock = store.with_name("d.zoned.sock")
    status, body = ask(sock, "GET", "/")
    assert status == 200 and json.loads(body)["api_versions"] == [1]
    for method, path, body, status, kind in (
        ("GET", "/v2/store/space", b"", 404, "unknown_call"),
        ("DELETE", "/v1/store/space", b"", 405, "unknown_call"),
        ("GET", "/v1/store/objects", b"", 400, "invalid"),
        ("GET", "/v1/drive/zones?first=-1&count=x", b"", 400, "invalid"),
        ("GET", "/v1/store/objects?collection=n&prefix=&from=&limit=1", b"", 404, "not_found"),
        ("POST", "/v1/store/cleaner", b"{", 400, "invalid"),
        ("POST", "/v1/store/cleaner", b'{"action":"explode"}', 400, "invalid"),
        ("PATCH", "/v1/store/cleaner", b"[null]", 400, "invalid"),
        ("POST", "/v1/store/cleaner", b'{"action":"' + b"x" * 50_000, 413, "too_large"),
        # Read to its end, and so answered, although nobody wants it.
        ("DELETE", "/v2/nothing", b"x" * 3_000_000, 404, "unknown_call"),
    ):
        found, answer = ask(sock, method, path, body, JSON)
        answer = json.loads(answer)
        assert (found, answer["kind"]) == (status, kind), (path, answer)
        assert answer["message"]
    # A chunked body that does not end is not waited for.
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(TIMEOUT)
        connection.connect(str(sock))
        connection.sendall(f"POST /v1/store/cleaner HTTP/1.1\r\nHost: x\r\n{JSON}Transfer-Encoding: chunked\r\n\r\n".encode())
        assert connection.recv(65536).startswith(b"HTTP/1.1 400 ")
    status, body = ask(sock, "GET", "/v1/drive/zones?first=126&count=4294967295")
    assert status == 200 and [zone["id"] for zone in json.loads(body)] == [126, 127]


def test_a_silent_connection_does_not_keep_the_server(serve, store):
    server = serve(store)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(store) + ".sock")
        connection.sendall(b"GET /v1")
        assert server.stop() == 0


def on_terminal(zonestore, *arguments):
    """What a command shows on a terminal."""
    near, far = pty.openpty()
    process = subprocess.Popen(
        [zonestore.path, *map(str, arguments)], stdout=far, cwd=zonestore.folder, stdin=subprocess.DEVNULL
    )
    os.close(far)
    shown = b""
    while True:
        try:
            part = os.read(near, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(near)
    assert process.wait(timeout=TIMEOUT) == 0
    return shown.replace(b"\r\n", b"\n").decode()


def test_names_cannot_mislead_a_terminal(zonestore, store):
    evil = "a\nb\x1b[2Jc"
    put(zonestore, store, f"c/{evil}", b"x")
    put(zonestore, store, "c/plain", b"x")
    assert on_terminal(zonestore, "store", "ls", store, "c") == "$'a\\nb\\x1b[2Jc'\nplain\n"
    (zonestore.folder / "file").write_bytes(b"x")
    shown = on_terminal(zonestore, "store", "put", store, "file", f"c/{evil}")
    assert "\x1b" not in shown and "$'c/a\\n" in shown
    # Programs get exact names.
    assert zonestore("store", "ls", store, "c").text == f"{evil}\nplain\n"
    assert zonestore("store", "ls", "-0", store, "c").text == f"{evil}\0plain\0"
    assert on_terminal(zonestore, "store", "ls", "--null", store, "c") == f"{evil}\0plain\0"
    names = [o["name"] for o in zonestore("store", "ls", store, "c", "--json").json["objects"]]
    assert names == [evil, "plain"]
