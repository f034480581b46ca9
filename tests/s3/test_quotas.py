"""What one key, or one address, may ask for."""

import http.client
import time
from xml.etree import ElementTree

import pytest

from configured import ADMIN, Configured, key, write
import status as statuses
from signer import Signer, code
from zonestore import TIMEOUT

MIB = 1 << 20
ROBOT = ("robot", "the robot's secret")


@pytest.fixture
def limited(tmp_path):
    servers = []

    def start(limits):
        servers.append(Configured(tmp_path, key(*ROBOT) + limits).start())
        return servers[0]

    yield start
    for server in servers:
        server.stop()


def ask(server, who, method="GET", path="/", body=b""):
    status, headers, body = Signer(server, who[1], who[0]).request(method, path, body=body)
    return status, headers.get("retry-after"), code(body)


def until_refused(ask):
    """What is answered, up to the first 503. The slower the machine is the more it has to be asked."""
    answers = []
    while len(answers) < 200 and (not answers or answers[-1][0] != 503):
        answers.append(ask())
    return answers


def test_requests_of_a_key(limited):
    server = limited("[limits.key]\nrequests = 2\n")
    *answers, refused = until_refused(lambda: ask(server, ROBOT))
    assert refused == (503, "1", "SlowDown")
    assert len(answers) >= 2 and {answer[0] for answer in answers} == {200}
    # Another key has its own.
    assert ask(server, ADMIN)[0] == 200
    deadline = time.monotonic() + TIMEOUT
    while ask(server, ROBOT)[0] != 200:
        assert time.monotonic() < deadline
        time.sleep(0.3)


def test_bytes_of_a_key_count_in_both_directions(limited):
    server = limited("[limits.key]\nbytes = \"64KiB\"\n")
    admin = server.as_admin()
    admin.create_bucket(Bucket="photos")
    assert ask(server, ROBOT, "PUT", "/photos/k", bytes(20 * MIB))[0] == 200
    # Before its body is read: the connection does not wait for the rest.
    sign = Signer(server, ROBOT[1], ROBOT[0])
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT)
    connection.putrequest("PUT", "/photos/k2", skip_host=True, skip_accept_encoding=True)
    for name, value in sign.headers("PUT", "/photos/k2", payload="UNSIGNED-PAYLOAD").items():
        connection.putheader(name, value)
    connection.putheader("content-length", str(100 * MIB))
    connection.endheaders()
    answer = connection.getresponse()
    assert (answer.status, code(answer.read())) == (503, "SlowDown")
    assert int(answer.headers["retry-after"]) > 1
    connection.close()
    assert [one["Key"] for one in admin.list_objects_v2(Bucket="photos")["Contents"]] == ["k"]
    assert admin.get_object(Bucket="photos", Key="k")["Body"].read() == bytes(20 * MIB)
    assert ask(server, ADMIN)[2] == "SlowDown"
    # The limit is taken away, and with it what was counted.
    write(server.config, key(*ADMIN) + key(*ROBOT))
    server.hang_up()
    assert ask(server, ROBOT)[0] == 200


def test_addresses_are_counted_before_signatures(limited):
    server = limited("[limits.address]\nrequests = 2\n")
    answers = until_refused(lambda: ask(server, ("nobody", "unknown")))
    assert {answer[2] for answer in answers} == {"InvalidAccessKeyId", "SlowDown"}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT)
    connection.request("GET", "/-/healthy")
    assert connection.getresponse().status == 200
    # Another address has its own.
    other = http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT, source_address=("127.0.0.2", 0))
    other.request("GET", "/", headers=Signer(server, ADMIN[1], ADMIN[0]).headers("GET", "/"), body=b"")
    assert other.getresponse().status == 200


@pytest.mark.parametrize("of", ["key", "address"])
def test_connections_too_many_are_ended(limited, of):
    server = limited(f"[limits.{of}]\nconnections = 2\n")
    sign = Signer(server, ROBOT[1], ROBOT[0])

    def connect():
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT)
        connection.request("GET", "/", headers=sign.headers("GET", "/"))
        answer = connection.getresponse()
        answer.read()
        return connection, answer

    kept = [connect() for _ in range(2)]
    assert [(answer.status, answer.headers["connection"]) for _, answer in kept] == [(200, None)] * 2
    over, answer = connect()
    assert answer.status == 503 and answer.headers["retry-after"] == "1"
    assert answer.headers["connection"] == "close"
    assert over.sock is None or over.sock.recv(1) == b""
    # Those that were there go on, and when one goes another may come.
    connection, _ = kept[0]
    connection.request("GET", "/", headers=sign.headers("GET", "/"))
    assert connection.getresponse().status == 200
    kept[1][0].close()
    server.wait_until(lambda: connect()[1].status == 200)


@pytest.mark.parametrize("of, who", [("key", ROBOT), ("address", ("nobody", "unknown"))], ids=["key", "address"])
def test_who_is_told_to_slow_down_is_told_for_what(limited, of, who):
    server = limited(f"[limits.{of}]\nrequests = 1\n")
    _, headers, body = until_refused(lambda: Signer(server, who[1], who[0]).request("GET", "/photos/k"))[-1]
    error = ElementTree.fromstring(body)
    assert (error.findtext("Code"), headers["content-type"]) == ("SlowDown", "application/xml")
    assert error.findtext("Resource") == "/photos/k"
    assert error.findtext("RequestId") == headers["x-amz-request-id"]


def test_the_page_counts_for_its_address_but_not_with_the_keys(limited):
    server = limited("[limits.address]\nrequests = 2\n")
    for path in ("/-/", "/-/status.json"):
        answers = {answer[0] for answer in until_refused(lambda: statuses.ask(server, path, keys=None))}
        assert 503 in answers and answers < {200, 401, 503}
    # One more may be answered, for time goes on; of a tenth guess it would be told that there were too many.
    for _ in range(9):
        answered, headers, _ = statuses.ask(server, "/-/status.json", keys=("admin", "a guess"))
        if answered == 503:
            break
    assert answered == 503 and int(headers["Retry-After"]) == 1
    server.wait_until(lambda: ask(server, ("nobody", "unknown"))[2] == "SlowDown")
    for _ in range(20):
        assert statuses.ask(server, "/-/status.json", keys=ADMIN)[0] == 200
        assert statuses.ask(server, "/-/ready", keys=None)[0] == 200


def test_a_key_without_the_right_may_not_look_and_does_not_count_as_wrong(limited):
    server = limited(key("reader", "the reader's secret", [("photos", ["read"])]))
    for _ in range(12):
        assert statuses.ask(server, "/-/status.json", keys=("reader", "the reader's secret"))[0] == 403
    assert statuses.ask(server, "/-/status.json", keys=("reader", "a guess"))[0] == 401
    assert statuses.ask(server, "/-/status.json", keys=ADMIN)[0] == 200
