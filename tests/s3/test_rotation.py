"""Keys, rights and limits that change while the server runs."""

import time

import pytest
from botocore.exceptions import ClientError

from configured import ADMIN, Configured, key, write
from zonestore import TIMEOUT, Server, make_drive

OLD, NEW = ("robot-1", "the first secret"), ("robot-2", "the second secret")


def is_known(client):
    try:
        return bool(client.list_buckets())
    except ClientError:
        return False


@pytest.fixture
def server(tmp_path):
    server = Configured(tmp_path, key(*OLD)).start()
    yield server
    server.stop()


def test_a_key_is_exchanged_without_a_gap(server, refused):
    old, new = server.client(*OLD), server.client(*NEW)
    old.create_bucket(Bucket="photos")
    assert refused(new.list_buckets) == ("InvalidAccessKeyId", 403)
    server.configure(key(*ADMIN) + key(*OLD) + key(*NEW))
    assert old.list_buckets() and new.list_buckets()
    server.configure(key(*ADMIN) + key(*NEW))
    # On the connection that it has open, too.
    assert refused(old.head_bucket, Bucket="photos") == ("403", 403)
    assert refused(old.put_object, Bucket="photos", Key="k", Body=b"x") == ("InvalidAccessKeyId", 403)
    assert new.head_bucket(Bucket="photos")


def test_a_change_is_noticed_without_a_signal(server):
    write(server.config, key(*ADMIN) + key(*NEW))
    server.wait_until(lambda: server.said("configuration read"))
    assert server.client(*NEW).list_buckets()


def test_rights_are_taken_away(server, refused):
    robot = server.client(*OLD)
    robot.create_bucket(Bucket="photos")
    robot.put_object(Bucket="photos", Key="k", Body=b"x")
    server.configure(key(*ADMIN) + key(*OLD, [("photos", ["read"])]))
    assert robot.get_object(Bucket="photos", Key="k")["Body"].read() == b"x"
    assert refused(robot.delete_object, Bucket="photos", Key="k") == ("AccessDenied", 403)


@pytest.mark.parametrize("broken, why", [
    ("[[key]\n", "line 1"),
    (key(*ADMIN).replace("admin =", "amdin ="), "is \"admin\" meant?"),
    (key(*NEW).replace("secret_key", "secret_file"), "No such file"),
])
def test_a_broken_configuration_changes_nothing(server, broken, why):
    server.configure(broken)
    assert server.said("stays as it was") and server.said(why), "".join(server.output)
    assert server.as_admin().list_buckets() and server.client(*OLD).list_buckets()


def test_a_configuration_that_others_can_read_changes_nothing(server):
    write(server.config, key(*NEW), mode=0o644)
    server.hang_up()
    assert server.said("others can read")
    assert server.client(*OLD).list_buckets()


def test_secret_files_are_read_again(tmp_path, refused):
    secret = tmp_path / "robot.secret"
    write(secret, "the first secret\n")
    entry = '[[key]]\naccess_key = "robot-1"\nsecret_file = "robot.secret"\nadmin = true\n'
    server = Configured(tmp_path, entry).start()
    robot = server.client(*OLD)
    assert robot.list_buckets()
    write(secret, "another secret\n")
    server.wait_until(lambda: server.said("configuration read"))
    assert refused(robot.list_buckets) == ("SignatureDoesNotMatch", 403)
    assert server.client(OLD[0], "another secret").list_buckets()
    server.stop()


def test_the_last_key_that_goes_lets_nobody_in(server, refused):
    server.configure("# no keys\n")
    for who in (ADMIN, OLD):
        assert refused(server.client(*who).list_buckets) == ("InvalidAccessKeyId", 403)


def test_the_key_beside_the_drive_is_read_again(tmp_path, refused):
    keys = tmp_path / "d.zoned.keys"
    text = "[default]\naccess_key = mine\nsecret_key = the {} secret\nuse_https = False\nhost_base = \nhost_bucket = \n"
    write(keys, text.format("first"))
    server = Server(make_drive(tmp_path / "d.zoned", "256MiB"), keys_of_environment=False).start()
    assert server.client("mine", "the first secret").list_buckets()
    write(keys, text.format("second"))
    deadline = time.monotonic() + TIMEOUT
    while not is_known(server.client("mine", "the second secret")):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert refused(server.client("mine", "the first secret").list_buckets) == ("SignatureDoesNotMatch", 403)
    server.stop()


def test_what_no_server_would_start_with_is_refused_with_all_that_came_with_it(server):
    said = server.said("configuration stays as it was")
    server.configure(key(*ADMIN) + key(*NEW) + '[log]\naccess = "nowhere/at/all.log"\n')
    assert server.said("configuration stays as it was") > said
    assert not is_known(server.client(*NEW)) and is_known(server.client(*OLD))
