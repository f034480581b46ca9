"""zonestore serve: endpoint, keys, stopping, and everything that can be in the way."""

import json
import os
import resource
import shlex
import signal
import socket
import stat
import subprocess
import pytest
from conftest import IN_THE_BACKGROUND, TIMEOUT, ignores, without_override


def s3cmd(command, folder, env=None):
    done = subprocess.run(
        shlex.split(command) if isinstance(command, str) else command,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        env={**os.environ, **(env or {})},
    )
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def test_the_three_commands_it_prints_work(zonestore, serve, tmp_path):
    (tmp_path / "README.md").write_text("# hello\n")
    server = serve("my drive.zoned", "--create", "--profile", "test-small", "--size", "128MiB")
    text = server.read_until("Ctrl-C")
    commands = [line.strip() for line in text.splitlines() if line.startswith("  s3cmd")]
    assert len(commands) == 3
    outputs = [s3cmd(command, tmp_path) for command in commands]
    assert "s3://first/README.md" in outputs[2]
    assert server.stop(signal.SIGINT) == 0
    assert zonestore("store", "get", "my drive.zoned", "first/README.md").out == b"# hello\n"
    zonestore("store", "fsck", "--deep", "my drive.zoned")


def test_a_server_in_the_background_outlives_ctrl_c_and_ends_by_sigterm(serve, store):
    server = serve(store, before=IN_THE_BACKGROUND)
    server.read_until(f"`kill {server.process.pid}` stops")
    assert ignores(server.process, signal.SIGINT)
    for _ in range(2):
        server.process.send_signal(signal.SIGINT)
    with socket.create_connection(server.host.rsplit(":", 1)) as connection:
        connection.sendall(b"GET /-/healthy HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
    assert server.stop(signal.SIGTERM) == 0


def test_keys_are_made_once_in_a_file_only_the_owner_reads(serve, store):
    first = serve(store)
    shown = first.first_line + first.read_until("Ctrl-C")
    first.stop()
    keys = store.with_name("d.zoned.keys")
    assert stat.S_IMODE(keys.stat().st_mode) == 0o600
    secret = next(line.split(" = ")[1] for line in keys.read_text().splitlines() if "secret" in line)
    # Output that is not a terminal may be a log: no secrets in it.
    assert secret not in shown + "".join(first.output)
    second = serve(store)
    second.stop()
    assert secret in keys.read_text()
    assert second.host in keys.read_text()


def test_keys_that_others_can_read_are_refused(zonestore, serve, store):
    serve(store).stop()
    keys = store.with_name("d.zoned.keys")
    keys.chmod(0o644)
    assert "chmod 600" in zonestore.try_("serve", store, "--s3", "127.0.0.1:0").failed(8)


def test_keys_come_from_the_environment(zonestore, serve, store, tmp_path):
    env = {"ZONESTORE_ACCESS_KEY": "me", "ZONESTORE_SECRET_KEY": "a secret of mine"}
    server = serve(store, env=env)
    text = server.read_until("Ctrl-C")
    [makes] = [line for line in text.splitlines() if line.endswith(" mb s3://first")]
    assert "secret of mine" not in text and "--secret_key" not in makes
    s3cmd(["sh", "-c", makes], tmp_path, env)
    assert "s3://first" in s3cmd(["sh", "-c", makes.replace(" mb s3://first", " ls")], tmp_path, env)
    server.stop()
    assert not store.with_name("d.zoned.keys").exists()
    half = {"ZONESTORE_ACCESS_KEY": "me"}
    zonestore.try_("serve", store, "--s3", "127.0.0.1:0", env=half).failed(2)


def test_json_says_where_and_no_secret(zonestore, store):
    process = zonestore.start("serve", store, "--s3", "127.0.0.1:0", "--json")
    lines = []
    while not lines or lines[-1] != "}\n":
        lines.append(process.stdout.readline())
        assert lines[-1], process.stderr.read()
    value = json.loads("".join(lines))
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0
    assert value["endpoint"].startswith("http://127.0.0.1:")
    assert "secret" not in "".join(value)


def test_a_drive_that_is_served_is_in_use(zonestore, serve, store):
    server = serve(store)
    for command in (
        "store fsck",
        "store mkfs --force",
        "drive reset --all --yes",
        "fs mkfs --force",
        "serve --s3 127.0.0.1:0",
        "serve --create --s3 127.0.0.1:0",
    ):
        error = zonestore.try_(*command.split(), store).failed(4)
        assert "in use" in error, command
    error = zonestore.try_("rocksdb", store, "--", "ldb", "scan").failed(4)
    assert "in use" in error
    assert server.stop() == 0
    zonestore("store", "df", store)


def test_a_drive_that_is_refused_gets_no_keys(zonestore, drive, tmp_path):
    zonestore.try_("serve", drive, "--s3", "127.0.0.1:0").failed(7)
    assert os.listdir(tmp_path) == ["d.zoned"]


def test_keys_that_cannot_be_had_are_explained(zonestore, store, tmp_path):
    keys = store.with_name("d.zoned.keys")
    keys.symlink_to("nowhere/keys")
    error = zonestore.try_("serve", store, "--s3", "127.0.0.1:0").failed(3)
    assert "nowhere/keys" in error and "hint: " in error
    keys.unlink()
    tmp_path.chmod(0o555)
    try:
        done = subprocess.run(
            without_override([str(zonestore.path), "serve", str(store), "--s3", "127.0.0.1:0"]),
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
    finally:
        tmp_path.chmod(0o755)
    assert done.returncode == 1 and "ZONESTORE_ACCESS_KEY" in done.stderr, done.stderr
    zonestore("store", "df", store)


def test_create_does_not_pass_over_what_a_drive_is(zonestore, serve, store):
    start = "serve", store, "--s3", "127.0.0.1:0", "--create"
    error = zonestore.try_(*start, "--profile", "zns-zn540", "--size", "1GiB").failed(2)
    assert "--profile zns-zn540: it is test-small" in error and "--size 1 GiB: it has 128 MiB" in error
    assert "--max-open 3: it has 16" in zonestore.try_(*start, "--max-open", "3").failed(2)
    assert serve(store, "--create", "--profile", "test-small", "--size", "128MiB").stop() == 0
    assert serve(store, "--create").stop() == 0


def test_a_server_may_have_as_many_files_open_as_it_is_allowed(serve, store):
    usual, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, most))
    try:
        server = serve(store)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (usual, most))
    assert resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE) == (most, most)


def test_logs_in_a_file_have_no_colours(zonestore, serve, store):
    store.with_name("d.zoned.sock").write_text("in the way")
    server = serve(store)
    server.stop()
    assert "WARN" in server.output[1] and "\x1b" not in server.output[1]


def test_a_port_in_use_is_one_clear_line(zonestore, store):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        error = zonestore.try_("serve", store, "--s3", address).failed(4)
        assert address in error
        # Nothing is made for an address that cannot be had.
        new = store.with_name("folder") / "new.zoned"
        zonestore.try_("serve", new, "--create", "--s3", address).failed(4)
        assert not new.parent.exists()
    zonestore("store", "df", store)


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1", "127.0.0.1:99999", ":"])
def test_an_address_that_is_none_is_a_mistake_of_usage(zonestore, store, address):
    zonestore.try_("serve", store, "--s3", address).failed(2)


def test_killed_and_started_again_everything_acknowledged_is_there(
    zonestore, serve, store, tmp_path
):
    data = os.urandom(2_000_000)
    (tmp_path / "data").write_bytes(data)
    for number in range(3):
        server = serve(store)
        client = f"s3cmd -c {store}.keys"
        if number == 0:
            s3cmd(f"{client} mb s3://kept", tmp_path)
        s3cmd(f"{client} put data s3://kept/{number}", tmp_path)
        server.stop(signal.SIGKILL)
    zonestore("store", "fsck", "--deep", store)
    for number in range(3):
        assert zonestore("store", "get", store, f"kept/{number}").out == data


def test_what_the_command_line_stored_is_served(zonestore, serve, store, tmp_path):
    zonestore("store", "put", store, "-", "mine/o", stdin=b"from the command line")
    server = serve(store)
    client = f"s3cmd -c {store}.keys"
    assert "s3://mine" in s3cmd(f"{client} ls", tmp_path)
    s3cmd(f"{client} get s3://mine/o out", tmp_path)
    assert (tmp_path / "out").read_bytes() == b"from the command line"
    assert server.stop() == 0


@pytest.mark.parametrize("closed", [False, True])
def test_a_greeting_that_nobody_can_read_ends_no_server(zonestore, store, closed):
    reader, writer = os.pipe()
    if closed:
        os.close(reader)
    with open("/dev/full", "wb") as full:
        server = subprocess.Popen(
            [zonestore.path, "serve", store, "--s3", "127.0.0.1:0"],
            stdout=writer if closed else full,
            stderr=subprocess.PIPE,
            text=True,
            env=zonestore.environment,
        )
    for line in server.stderr:
        if "could not be printed" in line:
            break
    zonestore("store", "health", store)
    server.terminate()
    assert server.wait(TIMEOUT) == 0, server.stderr.read()
