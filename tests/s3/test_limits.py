"""What clients may not do: too much, too long, half of it, and never the end of it."""

import http.client
import os
import signal
import socket
import threading
import time

import pytest

import status as statuses
from signer import Signer, code
from zonestore import TIMEOUT

MIB = 1 << 20


def resident_bytes(server):
    with open(f"/proc/{server.process.pid}/status") as status:
        for line in status:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


def wait_until(true):
    """Waits for another process to get there."""
    deadline = time.monotonic() + TIMEOUT
    while not true():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def raw_put(sign, path, length, source="127.0.0.1", **headers):
    """An open connection that has sent the head of a put of `length` bytes."""
    send = sign.headers("PUT", path, payload="UNSIGNED-PAYLOAD", **headers)
    address = ("127.0.0.1", sign.server.port)
    connection = socket.create_connection(address, timeout=TIMEOUT, source_address=(source, 0))
    lines = [f"PUT {path} HTTP/1.1", f"content-length: {length}"]
    lines += [f"{name}: {value}" for name, value in send.items()]
    connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
    return connection


def test_a_client_that_leaves_leaves_nothing(sign, s3, bucket, data, refused):
    s3.put_object(Bucket=bucket, Key="old", Body=b"old")
    for key in ("old", "new"):
        connection = raw_put(sign, f"/{bucket}/{key}", 4 * MIB)
        connection.sendall(data(3 * MIB))
        connection.close()
    # The server works on; and once it has noticed, nothing has changed.
    for _ in range(3):
        assert s3.get_object(Bucket=bucket, Key="old")["Body"].read() == b"old"
        assert refused(s3.head_object, Bucket=bucket, Key="new") == ("404", 404)


def test_objects_have_a_limit(sign, s3, bucket):
    connection = raw_put(sign, f"/{bucket}/k", 5 * 1024 * MIB + 1)
    answer = connection.recv(65536)
    connection.close()
    assert answer.startswith(b"HTTP/1.1 400") and b"EntityTooLarge" in answer


def test_a_put_needs_a_length(sign, bucket):
    path = f"/{bucket}/k"
    headers = sign.headers("PUT", path, payload="UNSIGNED-PAYLOAD")
    headers["transfer-encoding"] = "chunked"
    status, _, body = sign.send("PUT", path, "", None, headers)
    assert (status, code(body)) == (411, "MissingContentLength")


def test_heads_have_a_limit(sign, bucket):
    status, _, _ = sign.request("GET", f"/{bucket}", x_filler="x" * 20_000)
    assert status == 431
    many = {f"x_filler_{n}": "x" for n in range(200)}
    status, _, _ = sign.request("GET", f"/{bucket}", **many)
    assert status == 431


def test_documents_have_a_limit(sign, s3, bucket):
    body = b"<Delete>" + b"<Object><Key>x</Key></Object>" * 200_000 + b"</Delete>"
    status, _, answer = sign.request("POST", f"/{bucket}", "delete", body=body)
    assert (status, code(answer)) == (400, "MaxMessageLengthExceeded")
    status, _, answer = sign.request("PUT", f"/{bucket}", body=body)
    assert (status, code(answer)) == (400, "MaxMessageLengthExceeded")


def test_an_early_answer_arrives_at_a_client_that_still_sends(sign, bucket, data):
    body = data(20 * MIB)
    status, _, answer = Signer(sign.server, secret_key="wrong").request("PUT", f"/{bucket}/k", body=body)
    assert (status, code(answer)) == (403, "SignatureDoesNotMatch")
    status, _, answer = sign.request("PUT", "/no-such-bucket/k", body=body)
    assert (status, code(answer)) == (404, "NoSuchBucket")


def test_an_attack_by_entities_is_only_a_malformed_document(sign, bucket):
    laughs = b'<!DOCTYPE d [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><Delete><Object><Key>&b;</Key></Object></Delete>'
    status, _, answer = sign.request("POST", f"/{bucket}", "delete", body=laughs)
    assert (status, code(answer)) == (400, "MalformedXML")


def test_nonsense_is_answered_or_cut_off(server, s3):
    for text in [b"\r\n\r\n", b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"GET / HTTP/9.9\r\n\r\n", os.urandom(5000)]:
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT)
        connection.sendall(text)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass
        connection.close()
    assert s3.list_buckets()


@pytest.mark.parametrize("path", ["/%ff", "/bucket/%ff%fe", "/bucket/a%00b", "/bucket/%C0%80"])
def test_names_that_are_no_text(sign, s3, path):


    connection = http.client.HTTPConnection("127.0.0.1", sign.server.port, timeout=TIMEOUT)
    connection.request("GET", path)
    assert connection.getresponse().status in (400, 403)
    connection.close()


def test_memory_is_bounded(make_server, data):
    """More slow uploads and downloads than there are turns; what is held stays small."""
    server = make_server("1GiB")
    s3 = server.client()
    s3.create_bucket(Bucket="bucket")
    s3.put_object(Bucket="bucket", Key="big", Body=data(64 * MIB))
    before = resident_bytes(server)
    connections = []
    for number in range(60):
        connection = raw_put(Signer(server), f"/bucket/slow-{number}", 64 * MIB)
        connection.setblocking(False)
        connections.append(connection)
        url = s3.generate_presigned_url("get_object", dict(Bucket="bucket", Key="big"))
        reader = socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT)
        path = url.split(str(server.port), 1)[1]
        reader.sendall(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\n\r\n".encode())
        connections.append(reader)
    piece = data(MIB)
    for _ in range(40):
        for connection in connections[::2]:
            try:
                connection.send(piece)
            except (BlockingIOError, ConnectionError):
                # Not at the moment, or told to slow down.
                pass
    grown = resident_bytes(server) - before
    for connection in connections:
        connection.close()
    # As docs/s3.md says: 32 of the uploads have 4 MiB each, and the downloads 3 MiB.
    assert grown < 400 * MIB, f"{grown >> 20} MiB"
    wait_until(lambda: "Contents" in s3.list_objects_v2(Bucket="bucket"))
    assert [entry["Key"] for entry in s3.list_objects_v2(Bucket="bucket")["Contents"]] == ["big"]


def test_a_server_stops_with_grace(make_server, data):
    server = make_server()
    s3 = server.client()
    s3.create_bucket(Bucket="bucket")
    body = data(4 * MIB)
    connection = raw_put(Signer(server), "/bucket/k", len(body))
    connection.sendall(body[:MIB])
    s3.list_buckets()
    answer = []

    def finish():
        connection.sendall(body[MIB:])
        answer.append(connection.recv(65536))

    # Not before it has begun: an idle connection is closed.
    wait_until(lambda: statuses.metrics(server)[0]["zonestore_s3_requests_in_flight", frozenset()] == 1)
    server.process.send_signal(signal.SIGTERM)
    thread = threading.Thread(target=finish)
    thread.start()
    thread.join()
    assert server.process.wait(timeout=TIMEOUT) == 0
    assert answer[0].startswith(b"HTTP/1.1 200"), answer
    server.start()
    found = server.client().get_object(Bucket="bucket", Key="k")["Body"].read()
    assert found == body


def test_strangers_keep_nobody_out(server, sign, s3):
    """More connections than there are slots, idle, slow and half said; a client gets its answer at once."""
    connections = []
    for number in range(650):
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT)
        connections.append(connection)
        text = [b"", b"GET / HTTP/1.1\r\nhost: x\r\n", b"PUT /b/k HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nx"]
        try:
            connection.sendall(text[number % 3])
        except ConnectionError:
            # It has made room for another already.
            pass
    assert server.client().list_buckets() and s3.list_buckets()
    assert sign.request("HEAD", "/-/healthy")[0] == 200
    for connection in connections:
        connection.close()


def test_slow_bodies_give_way(make_server):
    server = make_server()
    s3 = server.client()
    s3.create_bucket(Bucket="bucket")
    connections = [raw_put(Signer(server), f"/bucket/slow-{number}", MIB) for number in range(60)]
    for connection in connections:
        connection.sendall(b"a little")
    # boto3 does not try again here: it waits, and is not told to slow down.
    s3.put_object(Bucket="bucket", Key="k", Body=b"data")
    assert [entry["Key"] for entry in s3.list_objects_v2(Bucket="bucket")["Contents"]] == ["k"]
    for connection in connections:
        connection.close()


@pytest.mark.parametrize("source", ["127.0.0.2", "127.0.{}.{}"], ids=["one address", "many addresses"])
def test_a_crowd_of_slow_bodies_keeps_nobody_out(make_server, source):
    """More signed bodies that stand still than turns and slots, and a client of another address."""
    server = make_server()
    s3 = server.client()
    s3.create_bucket(Bucket="bucket")
    connections = []
    for number in range(600):
        address = source.format(1 + number // 250, 2 + number % 250)
        try:
            connection = raw_put(Signer(server), f"/bucket/slow-{number}", MIB, address)
            connections.append(connection)
            connection.sendall(b"a little")
        except ConnectionError:
            # It has made room for another already.
            pass
    for number in range(3):
        # boto3 does not try again here, and a connection of its own each time is one more to wait for.
        server.client().put_object(Bucket="bucket", Key=f"k{number}", Body=b"data")
    assert [entry["Key"] for entry in s3.list_objects_v2(Bucket="bucket")["Contents"]] == ["k0", "k1", "k2"]
    for connection in connections:
        connection.close()


def test_readers_that_stand_still_give_way(make_server, data):
    server = make_server("1GiB")
    s3 = server.client()
    s3.create_bucket(Bucket="bucket")
    s3.put_object(Bucket="bucket", Key="big", Body=data(64 * MIB))
    path = s3.generate_presigned_url("get_object", dict(Bucket="bucket", Key="big")).split(str(server.port), 1)[1]
    connections = []
    for _ in range(80):
        reader = socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT, source_address=("127.0.0.2", 0))
        reader.sendall(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\n\r\n".encode())
        connections.append(reader)
    assert s3.get_object(Bucket="bucket", Key="big")["Body"].read(5) == data(64 * MIB)[:5]
    for connection in connections:
        connection.close()


def test_a_client_that_closes_its_side_gets_its_answer(sign, bucket, data):
    connection = raw_put(sign, f"/{bucket}/k", MIB)
    connection.sendall(data(MIB))
    connection.shutdown(socket.SHUT_WR)
    assert connection.recv(65536).startswith(b"HTTP/1.1 200")
    connection.close()
