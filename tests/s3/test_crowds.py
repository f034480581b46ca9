"""Signed requests are answered while a crowd is connected that asks for nothing, or ever so slowly.

How long they take beside it is measured by `scripts/crowds`; nothing is asserted of that, for it depends on the machine."""

import resource

import pytest

from crowd import Beside, allow_files, ask

ASKED = 500


@pytest.fixture(autouse=True)
def many_files():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if not allow_files():
        pytest.skip("too few files may be open")
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_signed_requests_are_answered_in_a_crowd(make_server):
    server = make_server()
    s3 = server.client()
    s3.create_bucket(Bucket="photos")
    s3.put_object(Bucket="photos", Key="k", Body=b"x" * 1000)
    with Beside(server) as others:
        # Of the address with the most strangers the first makes room; on a slow machine that may be one who is about to ask.
        ask(server, ASKED, source=("127.0.0.2", 0))
        assert others.is_alive()
    assert server.alive()
    assert [one["Key"] for one in s3.list_objects_v2(Bucket="photos")["Contents"]] == ["k"]
