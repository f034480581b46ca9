"""The metrics: those that the document lists, and what a client counts itself."""

import collections
import os
import re
import shutil
import subprocess
import time

import pytest

import status
import zonestore

DOCUMENT = os.path.join(zonestore.ROOT, "docs", "metrics.md")
DASHBOARD = os.path.join(zonestore.ROOT, "docs", "grafana.json")
PROMTOOL = shutil.which("promtool") or os.path.join(zonestore.ROOT, "target", "promtool", "promtool")


@pytest.fixture(scope="module")
def worked(tmp_path_factory):
    """A server that has answered a load, and what its client counted."""
    drive = zonestore.make_drive(tmp_path_factory.mktemp("metrics") / "d.zoned", "256MiB")
    server = zonestore.Server(drive, "--clean-pace", "100MiB/s").start()
    s3 = server.client()
    counts, sent, received = collections.Counter(), collections.Counter(), collections.Counter()

    def done(operation, code=200):
        counts[operation, str(code)] += 1

    s3.create_bucket(Bucket="load")
    done("CreateBucket")
    for number in range(40):
        data = bytes([number]) * (number * 9973)
        s3.put_object(Bucket="load", Key=f"{number % 25}", Body=data)
        done("PutObject")
        sent["PutObject"] += len(data)
        got = s3.get_object(Bucket="load", Key=f"{number % 25}")["Body"].read()
        assert got == data
        done("GetObject")
        received["GetObject"] += len(got)
    for number in range(5):
        s3.head_object(Bucket="load", Key=f"{number}")
        done("HeadObject")
        part = s3.get_object(Bucket="load", Key="20", Range="bytes=10-109")["Body"].read()
        done("GetObject", 206)
        received["GetObject"] += len(part)
        with pytest.raises(s3.exceptions.NoSuchKey):
            s3.get_object(Bucket="load", Key="missing")
        done("GetObject", 404)
    for number in range(10):
        s3.delete_object(Bucket="load", Key=f"{number}")
        done("DeleteObject", 204)
    stranger = server.client(secret_key="wrong")
    with pytest.raises(stranger.exceptions.ClientError):
        stranger.list_buckets()
    done("refused", 403)
    yield server, counts, sent, received
    server.stop()
    os.unlink(drive)


def test_metrics_of_a_load_are_the_clients_own_counts(worked):
    server, counts, sent, received = worked
    values, _ = status.metrics(server)
    told = {}
    for (name, labels), value in values.items():
        if name == "zonestore_s3_requests_total":
            labels = dict(labels)
            told[labels["operation"], labels["code"]] = value
    assert told == counts

    def of(name, operation):
        return values[name, frozenset({("operation", operation)})]

    assert of("zonestore_s3_received_bytes_total", "PutObject") == sent["PutObject"]
    # The errors' documents are bytes, too.
    errors = of("zonestore_s3_sent_bytes_total", "GetObject") - received["GetObject"]
    assert 0 < errors < 5 * 1024
    for operation in {operation for operation, _ in counts}:
        all_of = sum(n for (name, _), n in counts.items() if name == operation)
        assert of("zonestore_s3_request_duration_seconds_count", operation) == all_of
        assert of("zonestore_s3_request_duration_seconds_sum", operation) > 0
    assert values["zonestore_s3_requests_in_flight", frozenset()] == 0
    assert values["zonestore_s3_aborted_total", frozenset()] == 0
    assert values["zonestore_drive_written_bytes_total", frozenset()] >= sent["PutObject"]
    assert values["zonestore_user_written_bytes_total", frozenset()] >= sent["PutObject"]
    zones = sum(v for (name, _), v in values.items() if name == "zonestore_zones")
    assert zones == 256
    part = {dict(labels)["part"]: v for (n, labels), v in values.items() if n == "zonestore_space_bytes"}
    assert part["capacity"] == part["live"] + part["pinned"] + part["dead"] + part["free"]


def test_what_is_told_is_what_is_documented(worked):
    _, told = status.metrics(worked[0])
    with open(DOCUMENT) as file:
        rows = re.findall(r"^\| `(\w+)` \| (\w+) \|", file.read(), re.MULTILINE)
    documented = dict(rows)
    assert len(rows) == len(documented)
    assert told == documented


def test_the_dashboard_asks_for_what_there_is(worked):
    values, told = status.metrics(worked[0])
    series = {name for name, _ in values}
    with open(DASHBOARD) as file:
        asked = set(re.findall(r"(?:zonestore|process)_\w+", file.read()))
    assert asked <= series | set(told)


def test_promtool_finds_nothing_to_complain_of(worked):
    if not os.path.exists(PROMTOOL):
        pytest.skip("promtool is not there: scripts/setup --test")
    text = status.ask(worked[0], "/-/metrics")[2]
    checked = subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, b"")


def test_a_client_that_leaves_is_counted(worked):
    server, _, _, _ = worked
    before = status.metrics(server)[0]["zonestore_s3_aborted_total", frozenset()]
    s3 = server.client()
    s3.put_object(Bucket="load", Key="large", Body=bytes(32 << 20))
    body = s3.get_object(Bucket="load", Key="large")["Body"]
    body.read(10)
    body.close()
    s3.close()
    deadline = time.monotonic() + zonestore.TIMEOUT
    while (values := status.metrics(server)[0])["zonestore_s3_aborted_total", frozenset()] != before + 1:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert values["zonestore_s3_requests_in_flight", frozenset()] == 0
    newest = status.document(server)["requests"]["log"][0]
    assert (newest["operation"], newest["is_whole"]) == ("GetObject", False)
