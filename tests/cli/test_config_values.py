"""Whatever a field says: `config check` finds sound what `serve` takes, and nothing else."""

import re
import select

import pytest

BAD = [
    '""', '"x y"', "-1", "0", "1", "true", "[]", "9223372036854775807", '"127.0.0.1:99999"', '"no such host:1"',
    '"s3.example.com:80"', '"nowhere/at/all"', '"."', '"zonestore.toml"', '"1KiB"', '"4096TiB"', '"100%..1%"',
    '"25:00-26:00"', '"\\u0000"',
]
# What a key, a drive and a certificate need besides the field that is tried.
KEY = {"access_key": '"me"', "secret_key": '"a secret of mine"', "admin": "true"}
SHAPE = {"profile": '"test-small"', "size": '"64MiB"'}


def fields(example):
    """Section and name of each field that there is."""
    section = None
    for line in example.splitlines():
        if found := re.match(r"#\[+([\w.]+)\]+$", line):
            section = found.group(1)
        elif found := re.match(r"#(\w+) = ", line):
            yield section, found.group(1)


def written(section, name, value):
    """A configuration that is sound but for this field, which `value` is tried in."""
    sections = {"serve": {"s3": '"127.0.0.1:0"', "drive": '"d.zoned"', "create": "true"}, "drive": dict(SHAPE), "key": dict(KEY)}
    if name == "secret_file":
        del sections["key"]["secret_key"]
    if section == "key.rights" or name == "rights":
        del sections["key"]["admin"]
    if section == "key.rights":
        rights = {"bucket": '"photos"', "may": '["read"]', name: value}
        section, name, value = "key", "rights", "[{ %s }]" % ", ".join(f"{n} = {v}" for n, v in rights.items())
    sections.setdefault(section, {})[name] = value
    text = ""
    for section, said in sections.items():
        text += f"[[{section}]]\n" if section == "key" else f"[{section}]\n"
        text += "".join(f"{name} = {value}\n" for name, value in said.items())
    return text


def serves(zonestore, path):
    """Whether a server comes up, and what it says."""
    process = zonestore.start("serve", "--config", path)
    select.select([process.stdout], [], [])
    is_up = process.stdout.readline().startswith("ZoneStore serves ")
    process.kill()
    return is_up, process.communicate()[1]


def test_what_is_sound_is_served_and_nothing_else(zonestore, tmp_path):
    path, drive = tmp_path / "zonestore.toml", tmp_path / "d.zoned"
    example = list(fields(zonestore("config", "example").text)) + [("key.rights", "bucket"), ("key.rights", "may")]
    assert len(example) > 35
    served, differ = 0, []
    for section, name in example:
        for value in BAD + (["[[]]", '["fly"]'] if name in ("rights", "may") else []):
            text = written(section, name, value)
            path.write_text(text)
            path.chmod(0o600)
            checked = zonestore.try_("config", "check", path)
            is_up, why = serves(zonestore, path)
            if is_up != (checked.code == 0):
                differ.append((section, name, value, checked.code, checked.err, is_up, why))
            assert "panicked" not in checked.err + why
            served += is_up
            for left in tmp_path.glob("d.zoned*"):
                left.unlink()
    assert served > 20 and differ == []


def test_a_drive_that_is_there_has_the_shape_that_is_asked_for(zonestore, store, tmp_path):
    path = tmp_path / "zonestore.toml"
    for shape, sound in [("", True), ('profile = "test-small"\n', True), ('profile = "hm-smr-14tb"\n', False), ('size = "1GiB"\n', False)]:
        path.write_text(f'[serve]\ndrive = "{store}"\ns3 = "127.0.0.1:0"\n[drive]\n{shape}')
        checked = zonestore.try_("config", "check", path)
        assert (checked.code == 0) == serves(zonestore, path)[0] == sound, (shape, checked.err)


@pytest.mark.parametrize("made, words", [
    ([], "nothing: it is empty"), ([["fs", "mkfs"]], "BlueFS"), ([["smrfs", "mkfs"]], "a POSIX file system"), ([["store", "mkfs"]], None),
])
@pytest.mark.parametrize("creates", ["false", "true"])
def test_a_drive_that_is_there_has_a_store_or_gets_one(zonestore, tmp_path, made, words, creates):
    path, drive = tmp_path / "zonestore.toml", tmp_path / "there.zoned"
    zonestore("drive", "create", drive, "--profile", "test-small", "--size", "64MiB")
    for command in made:
        zonestore(*command, drive)
    path.write_text(f'[serve]\ndrive = "{drive}"\ns3 = "127.0.0.1:0"\ncreate = {creates}\n')
    checked = zonestore.try_("config", "check", path)
    is_sound = words is None or (not made and creates == "true")
    assert serves(zonestore, path)[0] == is_sound == (checked.code == 0), checked.err
    assert is_sound or (checked.code == 7 and words in checked.err)


def test_a_server_that_runs_keeps_nobody_from_checking(zonestore, store, serve, tmp_path):
    serve(store)
    path = tmp_path / "zonestore.toml"
    path.write_text(f'[serve]\ndrive = "{store}"\n[log]\nfile = "server.log"\n')
    assert "sound" in zonestore("config", "check", path).text
    assert not (tmp_path / "server.log").exists()


@pytest.mark.parametrize("rights", ["[]", '[{ bucket = "photos", may = [] }]'])
def test_a_key_that_may_do_nothing_is_refused(zonestore, tmp_path, rights):
    path = tmp_path / "zonestore.toml"
    path.write_text(f'[[key]]\naccess_key = "me"\nsecret_key = "a secret of mine"\nrights = {rights}\n')
    path.chmod(0o600)
    assert "nothing" in zonestore.try_("config", "check", path).failed(2)


@pytest.mark.parametrize("section, field", [("log", "access"), ("log", "audit"), ("log", "file"), ("tls", "certificate"), ("serve", "drive")])
def test_an_empty_path_is_refused_also_in_the_folder_of_the_configuration(zonestore, section, field):
    path = zonestore.folder / "zonestore.toml"
    path.write_text(f'[{section}]\n{field} = ""\n')
    for command in (["config", "check"], ["serve", "--config"]):
        refused = zonestore.try_(*command, path.name)
        assert refused.code == 2 and f"line 2: [{section}] {field} is empty" in refused.err


def test_a_configuration_without_a_drive_says_where_one_is_named(zonestore, tmp_path):
    path = tmp_path / "zonestore.toml"
    path.write_text("")
    checked = zonestore("config", "check", path).text
    assert "serve.drive: none: it has to be said\n" in checked
    assert f"sound; 0 keys; it names no drive, so one has to be named beside it: zonestore serve DRIVE --config {path}" in checked
