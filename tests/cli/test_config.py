"""zonestore config, and a server that is told everything by its configuration."""

import json
import os
import signal
import urllib.request

import pytest
from conftest import TIMEOUT

KEY = '[[key]]\naccess_key = "me"\nsecret_key = "a secret of mine"\nadmin = true\n'


@pytest.fixture
def config(tmp_path):
    def write(text, mode=0o600):
        path = tmp_path / "zonestore.toml"
        path.write_text(text)
        path.chmod(mode)
        return path

    return write


def test_the_example_is_sound_and_says_nothing(zonestore, config):
    example = zonestore("config", "example").text
    assert "#[serve]" in example and "#clean_pace = " in example
    shown = zonestore("config", "check", config(example)).text
    assert "serve.s3: 127.0.0.1:9000 (default)" in shown and "sound; 0 keys; it names no drive" in shown, shown


def test_what_would_be_used_is_shown_and_no_secret(zonestore, config, tmp_path):
    (tmp_path / "robot.secret").write_text("the robot's secret")
    (tmp_path / "robot.secret").chmod(0o600)
    path = config(
        KEY + '[[key]]\naccess_key = "robot"\nsecret_file = "robot.secret"\n'
        'rights = [{ bucket = "logs-*", may = ["read", "list"] }]\n[serve]\nclean_hours = "22:00-06:00"\n'
        "[limits.key]\nrequests = 50\n"
    )
    outcome = zonestore("config", "check", path)
    for line in (
        'serve.clean_hours = "22:00-06:00"', "serve.clean_pace: full (default)", "limits.key.requests = 50",
        'rights = [{ bucket = "logs-*", may = ["read", "list"] }]', "2 keys",
    ):
        assert line in outcome.text, line
    assert "secret of mine" not in outcome.text and "robot's secret" not in outcome.text
    assert zonestore("config", "check", path, "--json").json["keys"] == ["me", "robot"]


@pytest.mark.parametrize("text, mode, code, words", [
    ("[serve]\nclean_pase = 1\n", 0o600, 2, ["zonestore.toml: line 2", 'is "clean_pace" meant?']),
    ("[serve]\ncache = \"much\"\n", 0o600, 2, ["line 2"]),
    (KEY, 0o644, 8, ["others can read", "chmod 600"]),
    (KEY + KEY, 0o600, 2, ["there twice"]),
    ('[tls]\ncertificate = "none.pem"\nkey = "none.key"\n', 0o600, 3, ["none.key"]),
])
def test_what_is_wrong_is_said(zonestore, config, text, mode, code, words):
    path = config(text, mode)
    for command in (("config", "check", path), ("serve", "--config", path)):
        error = zonestore.try_(*command).failed(code)
        assert all(word in error for word in words) and "hint: " in error, error


def test_a_configuration_that_is_not_there(zonestore):
    assert "none.toml" in zonestore.try_("config", "check", "none.toml").failed(3)
    assert "no drive" in zonestore.try_("serve", "--config", "/dev/null").failed(2)
    assert zonestore.try_("serve").code == 2


def test_a_server_is_told_everything_by_its_configuration(zonestore, config, store):
    path = config(KEY + f'[serve]\ndrive = "{store.name}"\ns3 = "127.0.0.1:0"\n[log]\nformat = "json"\n')
    process = zonestore.start("serve", "--config", path)
    first, keys = process.stdout.readline(), process.stdout.readline()
    endpoint = first[first.index("http://"):].strip()
    assert urllib.request.urlopen(endpoint + "/-/ready").read() == b"ready\n"
    assert not store.with_name("d.zoned.keys").exists()
    process.send_signal(signal.SIGTERM)
    _, log = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0 and keys.startswith("Keys: 1, from")
    assert "serving" in [json.loads(line)["message"] for line in log.splitlines()]


def test_the_command_line_wins(zonestore, config, store, serve):
    path = config('[serve]\ndrive = "elsewhere"\ns3 = "no such host:1"\n')
    # The address comes from the fixture, the drive from here.
    server = serve(store, "--config", path)
    assert server.stop() == 0
    assert store.with_name("d.zoned.keys").exists()


@pytest.mark.parametrize("what", ["d.zoned", "zonestore.toml", "robot.secret", "d.zoned.keys", "folder"])
@pytest.mark.parametrize("log", ["file", "access", "audit"])
def test_a_log_is_no_other_file(zonestore, store, config, tmp_path, what, log):
    (tmp_path / "folder").mkdir()
    (tmp_path / "robot.secret").write_text("the robot's secret")
    (tmp_path / "robot.secret").chmod(0o600)
    (tmp_path / "d.zoned.keys").write_text("[default]\naccess_key = a\nsecret_key = b\n")
    (tmp_path / "link").symlink_to(tmp_path / what)
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file() and path.name != "zonestore.toml"}
    robot = '[[key]]\naccess_key = "robot"\nsecret_file = "robot.secret"\nadmin = true\n'
    for named in (what, "link"):
        path = config(f'{robot}[serve]\ndrive = "{store}"\ns3 = "127.0.0.1:0"\n[log]\n{log} = "{tmp_path / named}"\n')
        zonestore.try_("serve", "--config", path).failed(2)
    assert all(path.read_bytes() == content for path, content in before.items() if path.name != "link")


def test_a_pipe_is_no_file_of_a_configuration(zonestore, config, tmp_path):
    os.mkfifo(tmp_path / "robot.secret", 0o600)
    path = config('[[key]]\naccess_key = "robot"\nsecret_file = "robot.secret"\nadmin = true\n')
    for command in (("config", "check", path), ("serve", "--config", path)):
        outcome = zonestore.try_(*command)
        assert outcome.code != 0 and "a pipe, no file" in outcome.err, outcome.err


def test_a_password_of_the_collector_is_not_shown(zonestore, config):
    path = config('[trace]\nto = "http://me:my-secret@127.0.0.1:4318"\n')
    shown = zonestore("config", "check", path).text + zonestore("config", "check", path, "--json").text
    assert "…@127.0.0.1:4318" in shown and "my-secret" not in shown, shown


@pytest.mark.parametrize(
    "line, why",
    [
        ('[serve]\ns3 = "300.1.2.3:99999"', "s3 in [serve]: 300.1.2.3:99999: ports end at 65535"),
        ('[serve]\ns3 = "300.1.2.3:9000"', "s3 in [serve]: 300.1.2.3:9000: no IPv4 address"),
        ('[serve]\ns3 = "[::zz]:9000"', "s3 in [serve]: [::zz]:9000: no IPv6 address"),
        ('[serve]\ns3 = "[::zz]"', "s3 in [serve]"),
        ('[serve]\ns3_domain = "a..b"', "--s3-domain"),
        ('[trace]\nto = "http://300.1.2.3:4318"', "no IPv4 address"),
        ('[trace]\nto = "http://localhost:99999"', "ports end"),
        ('[log]\nfile = "a.log"\naccess = "./a.log"', "[log] access and file are one file"),
        ('[log]\naccess = "a.log"\naudit = "link.log"', "[log] audit and access are one file"),
    ],
)
def test_what_cannot_be_is_refused_with_field_and_reason(zonestore, config, tmp_path, line, why):
    (tmp_path / "link.log").symlink_to("a.log")
    if "link" in line:
        (tmp_path / "a.log").touch()
    failed = zonestore.try_("config", "check", config(line + "\n"))
    assert why in failed.failed(2), failed.err
