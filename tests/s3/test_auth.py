"""Who may come in."""

import datetime
import re
import urllib.error
import urllib.request

import pytest

from signer import Signer, code
from zonestore import REGION


def test_wrong_keys(server, bucket, refused):
    wrong = server.client(secret_key="wrong")
    assert refused(wrong.list_buckets) == ("SignatureDoesNotMatch", 403)
    assert refused(wrong.put_object, Bucket=bucket, Key="k", Body=b"x" * 100_000)[0] == "SignatureDoesNotMatch"
    unknown = server.client(access_key="nobody")
    assert refused(unknown.list_buckets) == ("InvalidAccessKeyId", 403)
    assert refused(server.client().head_object, Bucket=bucket, Key="k") == ("404", 404)


def test_other_regions_are_served(server, bucket):
    assert server.client(region_name="eu-central-1").head_bucket(Bucket=bucket)


def test_strangers(server, bucket):
    for path in ("/", f"/{bucket}", f"/{bucket}/k"):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(server.endpoint + path)
        assert caught.value.code == 403 and code(caught.value.read()) == "AccessDenied"
    assert urllib.request.urlopen(server.endpoint + "/-/healthy").read() == b"ok\n"


def test_old_signatures(server, sign, bucket):
    headers = {"host": sign.host, "authorization": "AWS key:c2lnbmF0dXJl", "date": "Tue, 01 Jan 2030 00:00:00 GMT"}
    status, _, body = sign.send("GET", f"/{bucket}", "", b"", headers)
    assert (status, code(body)) == (400, "InvalidRequest")


def other_second(time):
    """A time of the same minute, and of no other day."""
    return time[:-2] + ("8Z" if time[-2] == "9" else "9Z")


def test_what_was_signed_cannot_be_changed(sign, bucket):
    path = f"/{bucket}/k"
    assert sign.request("PUT", path, body=b"x", x_amz_meta_a="1")[0] == 200
    headers = sign.headers("PUT", path, x_amz_meta_a="1")
    for change in [
        lambda h: h.update({"x-amz-meta-a": "2"}),
        lambda h: h.update({"host": "elsewhere"}),
        lambda h: h.update({"x-amz-date": other_second(h["x-amz-date"])}),
        lambda h: h.pop("x-amz-meta-a"),
    ]:
        changed = dict(headers)
        change(changed)
        status, _, body = sign.send("PUT", path, "", b"", changed)
        assert (status, code(body)) == (403, "SignatureDoesNotMatch")
        assert b"<Message>" in body
    for method, target, query in [("DELETE", path, ""), ("PUT", path + "2", ""), ("PUT", path, "partNumber=1")]:
        status, _, body = sign.send(method, target, query, b"", headers)
        assert (status, code(body)) == (403, "SignatureDoesNotMatch")


def test_what_was_not_signed_is_refused(sign, bucket):
    status, _, body = sign.request(
        "PUT", f"/{bucket}/k", body=b"x", x_amz_meta_a="1", unsigned=("x-amz-meta-a",)
    )
    assert (status, code(body)) == (403, "AccessDenied")


def test_old_requests(server, bucket):
    sign = Signer(server)
    past = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(minutes=20)
    stale = Signer(server)
    stale.time = past.strftime("%Y%m%dT%H%M%SZ")
    if stale.time[:8] != sign.date:
        pytest.skip("the day has just begun")
    status, _, body = stale.request("GET", f"/{bucket}")
    assert (status, code(body)) == (403, "RequestTimeTooSkewed")
    assert_times(body, stale.time)
    early = Signer(server, age_seconds=-1200)
    if early.date != sign.date:
        pytest.skip("the day is about to end")
    status, body = fetch(f"http://{early.host}{early.presign('GET', f'/{bucket}/k')}")
    assert (status, code(body)) == (403, "RequestTimeTooSkewed")
    assert_times(body, early.time)


def assert_times(body, signed):
    """As S3 tells them, so that a user sees by how much a clock is wrong."""
    now = datetime.datetime.now(datetime.timezone.utc)
    found = dict(re.findall(r"<(RequestTime|ServerTime|MaxAllowedSkewMilliseconds)>([^<]*)<", body.decode()))
    server = datetime.datetime.strptime(found.pop("ServerTime"), "%Y-%m-%dT%H:%M:%S%z")
    assert abs(now - server) < datetime.timedelta(minutes=5)
    assert found == {"RequestTime": signed, "MaxAllowedSkewMilliseconds": "900000"}


def fetch(url, method="GET", data=None, headers=None):
    request = urllib.request.Request(url, data=data, method=method, headers=headers or {})
    try:
        response = urllib.request.urlopen(request)
        return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_presigned_urls(s3, bucket, data):
    body = data(300_000)
    target = dict(Bucket=bucket, Key="a key/ü+%")
    put = s3.generate_presigned_url("put_object", target)
    assert fetch(put, "PUT", body)[0] == 200
    get = s3.generate_presigned_url("get_object", target)
    assert fetch(get) == (200, body)
    assert fetch(get, headers={"Range": "bytes=5-9"}) == (206, body[5:10])
    # Only for what was signed.
    assert fetch(get, "DELETE")[0] == 403
    assert fetch(get.replace("a%20key", "b%20key"))[0] == 403
    delete = s3.generate_presigned_url("delete_object", target)
    assert fetch(delete, "DELETE")[0] == 204
    assert fetch(get)[0] == 404
    shown = s3.generate_presigned_url("list_objects_v2", dict(Bucket=bucket))
    assert fetch(shown)[0] == 200


def test_presigned_urls_expire(server, s3, bucket):
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    # Signed an hour ago: no test has to wait, and none comes too late.
    sign = Signer(server, age_seconds=3600)
    alive = server.endpoint + sign.presign("GET", f"/{bucket}/k", expires="36000")
    assert fetch(alive) == (200, b"x")
    ended = server.endpoint + sign.presign("GET", f"/{bucket}/k", expires="1800")
    status, body = fetch(ended)
    assert (status, code(body)) == (403, "AccessDenied")
    status, body = fetch(ended.replace("X-Amz-Expires=1800&", "X-Amz-Expires=36000&"))
    assert (status, code(body)) == (403, "SignatureDoesNotMatch")


def test_presigned_urls_carry_what_was_signed(s3, bucket):
    target = dict(Bucket=bucket, Key="k", ContentType="text/plain", Metadata={"a": "1"})
    url = s3.generate_presigned_url("put_object", target)
    headers = {"Content-Type": "text/plain", "x-amz-meta-a": "1"}
    assert fetch(url, "PUT", b"x", headers)[0] == 200
    assert s3.head_object(Bucket=bucket, Key="k")["Metadata"] == {"a": "1"}
    assert fetch(url, "PUT", b"x", dict(headers, **{"x-amz-meta-a": "2"}))[0] == 403
    assert fetch(url, "PUT", b"x", dict(headers, **{"x-amz-meta-b": "2"}))[0] == 403
    assert REGION in url


def test_forms_are_refused(server, bucket):
    form = b'--x\r\nContent-Disposition: form-data; name="key"\r\n\r\nk\r\n--x--\r\n'
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    status, body = fetch(f"{server.endpoint}/{bucket}", "POST", form, headers)
    assert (status, code(body)) == (501, "NotImplemented")
