"""What holds of every command: errors as JSON, logs without secrets, completions, manual pages, widths."""

import fcntl
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import termios
import urllib.request

import pytest

from conftest import TIMEOUT


def error_of(outcome):
    """The error of a command under --json: one line, and nothing else there."""
    (line,) = outcome.err.splitlines()
    error = json.loads(line)["error"]
    assert error["exit_code"] == outcome.code and error["message"] and "\n" not in error["message"]
    assert set(error) == {"kind", "exit_code", "message", "hint"}
    return error


def test_errors_are_json_for_programs(zonestore, store, tmp_path):
    (tmp_path / "text").write_text("no drive\n" * 1000)
    for command, kind in (
        ("nonsense", "usage"),
        ("", "usage"),
        ("drive", "usage"),
        ("store put", "usage"),
        (f"store get {store} no-slash", "usage"),
        (f"store put {store} - x/", "usage"),
        ("drive info none", "not_found"),
        (f"store get {store} c/o", "not_found"),
        ("store df text", "damaged"),
        (f"store mkfs {store}", "refused"),
        (f"fs rm -r {store} /", "refused"),
        (f"drive create {store}", "refused"),
        ("bench rocksdb text", "refused"),
    ):
        for arguments in (["--json", *command.split()], [*command.split(), "--json"]):
            outcome = zonestore.try_(*arguments)
            assert error_of(outcome)["kind"] == kind, (command, outcome.err)
            assert outcome.out == b"", command
    # What is behind -- is another program's.
    outcome = zonestore.try_("rocksdb", "none", "--", "ldb", "--json")
    assert outcome.failed(3)
    # What was found is still one value on standard output.
    assert zonestore.try_("--help").code == 0 and zonestore("--help", "--json").text


def test_completions_and_manual_pages(zonestore, tmp_path):
    for shell in ("bash", "zsh", "fish", "elvish", "powershell"):
        script = zonestore("completions", shell).text
        assert "zonestore" in script and "mkfs" in script
    script = tmp_path / "completions"
    script.write_text(zonestore("completions", "bash").text)
    subprocess.run(["bash", "-n", script], check=True)
    pages = zonestore("man", "pages", "--json").json["pages"]
    names = sorted(os.listdir(tmp_path / "pages"))
    assert len(names) == pages and {"zonestore.1", "zonestore-store-put.1"} <= set(names)
    text = (tmp_path / "pages" / "zonestore.1").read_text()
    assert "Exit codes" in text and "130" in text
    if shutil.which("man"):
        shown = subprocess.run(
            ["man", "--warnings", "-l", tmp_path / "pages" / "zonestore-store-rm.1"],
            capture_output=True, text=True, env={**os.environ, "MANWIDTH": "80"}, check=True,
        )
        assert "--recursive" in shown.stdout


def test_what_is_on_a_drive_is_said(zonestore, drive):
    content = lambda: zonestore("drive", "info", drive, "--json").json["content"]
    assert content() == "empty" and "nothing" in zonestore("drive", "info", drive).text
    zonestore("fs", "mkfs", drive)
    assert content() == "bluefs" and "BlueFS" in zonestore("drive", "info", drive).text
    zonestore("drive", "reset", "--all", "--yes", drive)
    assert content() == "empty"
    zonestore("store", "mkfs", drive)
    assert content() == "store" and "object store" in zonestore("drive", "info", drive).text
    for command in ("store", "fs"):
        assert "object store" in zonestore.try_(command, "mkfs", drive).failed(8)


def test_a_busy_drive_names_its_user(zonestore, drive):
    with open(drive, "r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        name = open("/proc/self/comm").read().strip()
        for command in ("drive info", "store df", "fs ls", "store mkfs", "fs mkfs --force"):
            error = zonestore.try_(*command.split(), drive).failed(4)
            assert f"in use by {name} (pid {os.getpid()})" in error, error
    zonestore("zea", "mkfs", "--fs", drive)
    with open(drive, "r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        # What it names has to know such a drive.
        assert "fs top" not in zonestore.try_("zea", "df", drive).failed(4)


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_log_has_classes_and_changes_and_no_secrets(zonestore, store, form):
    """Also at the most talkative: everything that a request is signed with is worth as much as a key."""
    env = {
        "ZONESTORE_ACCESS_KEY": "AKIDEXAMPLE",
        "ZONESTORE_SECRET_KEY": "a-secret-of-mine",
        "RUST_LOG": "trace",
    }
    import boto3
    from botocore.config import Config

    for level in ("", "trace"):
        env["RUST_LOG"] = level
        server_env = {k: v for k, v in env.items() if v}
        process = zonestore.start(
            *("serve", store, "--s3", "127.0.0.1:0", "--log-format", form), env=server_env
        )
        endpoint = "http://" + process.stdout.readline().rsplit("http://", 1)[1].strip()
        client = boto3.client(
            "s3", endpoint_url=endpoint, region_name="us-east-1",
            aws_access_key_id=env["ZONESTORE_ACCESS_KEY"],
            aws_secret_access_key=env["ZONESTORE_SECRET_KEY"],
            config=Config(signature_version="s3v4", s3={"addressing_style": "path"}),
        )
        sent = []
        client.meta.events.register(
            "before-send.s3", lambda request, **_: sent.append(request.headers["Authorization"])
        )
        if level == "":
            client.create_bucket(Bucket="first")
        for _ in range(12):
            client.put_object(Bucket="first", Key="key", Body=b"x" * 5000)
        url = client.generate_presigned_url("get_object", Params={"Bucket": "first", "Key": "key"})
        assert urllib.request.urlopen(url).read() == b"x" * 5000
        process.send_signal(signal.SIGTERM)
        out, log = process.communicate(timeout=TIMEOUT)
        assert process.returncode == 0, log
        signatures = [
            (auth.decode() if isinstance(auth, bytes) else auth).rsplit("Signature=", 1)[1]
            for auth in sent
        ]
        for secret in (*signatures, url.rsplit("X-Amz-Signature=", 1)[1].split("&")[0],
                       env["ZONESTORE_SECRET_KEY"]):
            assert secret not in log + out
        if level == "":
            lines = log.splitlines()
            if form == "json":
                lines = [json.loads(line) for line in lines]
                told = [(x["method"], x["about"], x["status"], x["count"]) for x in lines
                        if x["message"] == "answered"]
                assert ("PUT", "object", 200, 1) in told and ("PUT", "object", 200, 10) in told
                assert ("GET", "object", 200, 1) in told and ("PUT", "bucket", 200, 1) in told
                messages = [line["message"] for line in lines]
                assert "serving" in messages and "the store is unmounted" in messages
            else:
                assert "serving" in log and "unmounted" in log
                assert sum("answered" in line and "PUT" in line for line in lines) == 3


def on_terminal(zonestore, columns, *arguments):
    """What a command shows on a terminal of so many columns; how far a model's run is goes elsewhere."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen(
        [zonestore.path, *map(str, arguments)], cwd=zonestore.folder, stdin=slave, stdout=slave,
        stderr=subprocess.DEVNULL if arguments[0] == "model" else slave, env={**zonestore.environment, "TERM": "xterm", "NO_COLOR": "1"},
        start_new_session=True,
    )
    os.close(slave)
    shown = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(master)
    process.wait(timeout=TIMEOUT)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", shown.decode())


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_nothing_is_wider_than_the_terminal(zonestore, store, columns):
    run = "model run st5000as0011 --rw randwrite --iodepth 31 --no-write-cache --runtime 5s"
    for command in (
        f"drive report {store} --zones 0..3", "drive profiles", "model list", "experiment list", f"drive info {store}",
        f"store df {store}", "store df none", run, "--help", "help store put", f"fs top --once {store}",
    ):
        if command == run and columns < 80:
            continue
        shown = on_terminal(zonestore, columns, *command.split())
        # A path without a gap stays whole.
        lines = [line for line in shown.splitlines() if str(store) not in line]
        wide = [line for line in lines if len(line) > max(columns, 76 if "top" in command else 0)]
        assert not wide and lines, (command, wide)
    # Programs get each line whole.
    report = zonestore("drive", "report", store, "--zones", "0..3").text.splitlines()
    assert len(report) == 3 and all("zcond:" in line for line in report)


def test_names_of_files_move_no_cursor(zonestore, drive, tmp_path):
    zonestore("fs", "mkfs", drive)
    (tmp_path / "in").write_bytes(b"x")
    name = "red\x1b[31m"
    zonestore("fs", "put", drive, "in", f"/{name}")
    assert r"$'red\x1b[31m'" in on_terminal(zonestore, 80, "fs", "ls", drive)
    # Programs get names as they are.
    assert name in zonestore("fs", "ls", drive).text
    (entry,) = zonestore("fs", "ls", drive, "--json").json["entries"]
    assert entry["name"] == name


def test_tables_and_paragraphs_are_broken_once(zonestore):
    lines = on_terminal(zonestore, 80, "experiment", "list").splitlines()
    ids = {experiment["id"] for experiment in zonestore("experiment", "list", "--json").json["experiments"]}
    # What goes on in a second line stands below the cell that it continues.
    first = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert set(first) == ids | {"id"} and len(lines) > len(first)
    help = on_terminal(zonestore, 60, "experiment", "run", "--help")
    (paragraph,) = [part for part in help.split("\n\n") if part.startswith("Drives are models")]
    assert all(len(line) > 40 for line in paragraph.splitlines()[:-1]), paragraph


@pytest.fixture
def disk(tmp_path):
    """A small disk of the host."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system takes root")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=80m", "tmpfs", disk])
    if mounted.returncode != 0:
        pytest.skip("no tmpfs can be mounted here")
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_on_a_full_disk_of_the_host_deletes_go_on(zonestore, disk):
    drive = disk / "d.zoned"
    zonestore("drive", "create", drive, "--profile", "test-small", "--size", "256MiB")
    zonestore("store", "mkfs", drive)
    data = os.urandom(4 << 20)
    stored = 0
    while True:
        outcome = zonestore.try_("store", "put", drive, "-", f"bucket/{stored}", stdin=data)
        if outcome.code != 0:
            break
        stored += 1
    assert "host's disk" in outcome.failed(5) and stored >= 8, (stored, outcome.err)
    space = zonestore("store", "df", drive, "--json").json
    assert space["host_free_bytes"] > 8 << 20 and space["available_bytes"] < 4 << 20
    assert "host's disk: " in zonestore("store", "df", drive).text
    # Somebody else takes all that is left but two MiB: one object after the other can go.
    with open(disk / "other", "wb") as other:
        other.write(bytes(space["host_free_bytes"] - (2 << 20)))
    assert "host's disk" in zonestore.try_(
        "store", "put", drive, "-", "bucket/small", stdin=b"x").failed(5)
    for number in range(stored):
        zonestore("store", "rm", drive, f"bucket/{number}")
    zonestore("store", "clean", drive)
    (disk / "other").unlink()
    free = zonestore("store", "df", drive, "--json").json["host_free_bytes"]
    assert free > stored * (4 << 20), "the host has its space again"
    # But for some zones of metadata, which may be what the last object takes.
    for number in range(stored - 1):
        zonestore("store", "put", drive, "-", f"bucket/{number}", stdin=data)
    zonestore("store", "fsck", "--deep", drive)


def test_behind_a_full_disk_of_the_host_the_same_command_goes_on(zonestore, store, disk):
    for number in range(3):
        zonestore("store", "put", store, "-", f"c/{number}", stdin=os.urandom(8 << 20))
    zonestore("store", "backup", store, "--to", "b.tar")
    for number, (command, then) in enumerate([
        (["restore", "b.tar"], "the same command then goes on"),
        (["salvage", store], "the same command then goes on"),
        (["backup", store], "behind `store mkfs --force` on it, the same command begins again"),
    ]):
        target = disk / f"{number}.zoned"
        zonestore("drive", "create", target, "--profile", "test-small", "--size", "128MiB")
        zonestore("store", "mkfs", target)
        space = zonestore("store", "df", target, "--json").json
        taken = space["host_free_bytes"] - space["host_kept_bytes"] - (9 << 20)
        with open(disk / "other", "wb") as other:
            os.posix_fallocate(other.fileno(), 0, taken)
        error = zonestore.try_("store", *command, "--to", target).failed(5)
        assert "free space on the host's disk" in error and then in error and "larger" not in error, error
        (disk / "other").unlink()
        if "--force" in then:
            zonestore("store", "mkfs", "--force", target)
        zonestore("store", *command, "--to", target)
        assert zonestore("store", "ls", target, "c", "--json").json["objects"]
        target.unlink()


def test_a_drive_whose_creation_found_the_disk_full_is_created_at_the_next_start(zonestore, serve, disk):
    create = "serve", disk / "n.zoned", "--create", "--profile", "test-small", "--size", "128MiB"
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_bsize
    # Enough for a drive, not for the store on it.
    with open(disk / "other", "wb") as other:
        os.posix_fallocate(other.fileno(), 0, free - (256 << 10))
    error = zonestore.try_(*create, "--s3", "127.0.0.1:0").failed(5)
    assert "drive: write at byte" in error, error
    assert [path.name for path in disk.iterdir()] == ["other"]
    (disk / "other").unlink()
    assert serve(*create[1:]).stop() == 0
    assert sorted(path.name for path in disk.iterdir()) == ["n.zoned", "n.zoned.keys"]


@pytest.mark.parametrize(
    ("kept", "command"),
    [
        ("s", "model run seagate-cmr --runtime 300s --every 1s --state s --json"),
        ("o/figure-2.6.json", "experiment run figure-2.6 --out o"),
    ],
)
def test_results_are_kept_although_nobody_reads_the_output(zonestore, tmp_path, kept, command):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([zonestore.path, *command.split()], cwd=tmp_path, stdout=writer, env=zonestore.environment)
    os.close(writer)
    assert done.returncode == 141
    assert (tmp_path / kept).stat().st_size > 0
