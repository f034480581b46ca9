"""The service, as its unit describes it."""

import re
import shutil
import subprocess

import pytest

import chroot
from service import UNIT, unit

# What systemd-analyze gives a unit without any hardening is 96.
EXPOSURE = 20


def test_it_is_ready_when_it_answers_and_says_when_it_stops(service):
    service.start()
    # Nobody signed: it is the server that refuses.
    assert service.answers() == 403
    client = service.client()
    client.create_bucket(Bucket="first")
    client.put_object(Bucket="first", Key="a", Body=b"an object")
    assert service.stop() == ("STOPPING=1", 0)
    service.start()
    assert service.client().get_object(Bucket="first", Key="a")["Body"].read() == b"an object"
    assert service.stop() == ("STOPPING=1", 0)


def test_a_second_drive_has_a_unit_and_a_configuration_of_its_own(system):
    one, other = unit(system), unit(system, UNIT.replace(".service", "@.service"))
    assert other["Service"].pop("ExecStart") == one["Service"].pop("ExecStart").replace("zonestore.toml", "%i.toml")
    assert dict(one["Service"]) == dict(other["Service"])


def test_systemd_knows_every_line_of_the_unit(system):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is missing")
    for path in [UNIT, UNIT.replace(".service", "@.service")]:
        done = analyze("verify", "--man=no", "--recursive-errors=no", str(system.file(path)))
        # The program is in the chroot, not here.
        said = [line for line in done.stderr.splitlines() if "zonestore" in line and "is not executable" not in line]
        assert not said


def test_the_unit_is_hardened(system):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is missing")
    done = analyze("security", "--offline=true", f"--threshold={EXPOSURE}", str(system.file(UNIT)))
    exposed = "\n".join(line for line in done.stdout.splitlines() if not re.match(r"\W*✓", line))
    assert done.returncode == 0, exposed + done.stderr


def analyze(*arguments):
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, timeout=chroot.TIMEOUT)
