"""Spans of requests, as a collector receives them."""

import http.server
import threading
import time

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse

from signer import Signer

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
# Batches go out at once.
SOON = {"OTEL_BSP_SCHEDULE_DELAY": "50"}


class Collector:
    """Decodes what comes; while `refuses`, it answers 503, and nothing before it `goes_on`. Each answer rejects `rejects` spans."""

    def __init__(self):
        self.spans, self.resources, self.paths, self.asked = [], [], set(), 0
        self.refuses, self.rejects = False, 0
        self.goes_on = threading.Event()
        self.goes_on.set()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                collector.asked += 1
                collector.goes_on.wait()
                if not collector.refuses:
                    collector.take(self.path, self.headers["content-type"], body)
                self.send_response(503 if collector.refuses else 200)
                answer = ExportTraceServiceResponse(partial_success={"rejected_spans": collector.rejects}).SerializeToString()
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def take(self, path, kind, body):
        assert kind == "application/x-protobuf"
        self.paths.add(path)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resources.append(attributes(resource.resource))
            for scope in resource.scope_spans:
                self.spans.extend(scope.spans)


def attributes(of):
    """By name; numbers and text as they are."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in of.attributes}


@pytest.fixture
def collector():
    collector = Collector()
    yield collector
    collector.goes_on.set()
    collector.server.shutdown()


@pytest.fixture
def traced(make_server, collector, monkeypatch):
    for name, value in SOON.items():
        monkeypatch.setenv(name, value)

    def start(*arguments):
        return make_server(arguments=["--trace-to", collector.url, *arguments])

    return start


def test_each_request_is_a_span_with_what_the_store_did(traced, collector):
    server = traced()
    sign = Signer(server)
    assert sign.request("PUT", "/photos")[0] == 200
    parent = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
    put = sign.request("PUT", "/photos/k", body=b"x" * 100_000, **parent)
    assert put[0] == 200
    assert sign.request("GET", "/photos/k")[2] == b"x" * 100_000
    assert sign.request("GET", "/photos/none")[0] == 404
    assert Signer(server, "wrong").request("GET", "/photos/k")[0] == 403
    server.stop()
    assert collector.paths == {"/v1/traces"}
    assert all(resource["service.name"] == "zonestore" for resource in collector.resources)
    roots = {}
    for span in collector.spans:
        if "http.request.method" in attributes(span):
            roots[span.name, attributes(span)["http.response.status_code"]] = span
    assert set(roots) == {("CreateBucket", 200), ("PutObject", 200), ("GetObject", 200), ("GetObject", 404), ("GET", 403)}
    span = roots["PutObject", 200]
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, SPAN)
    told = attributes(span)
    assert told["aws.request_id"] == put[1]["x-amz-request-id"] and told["aws.s3.bucket"] == "photos"
    assert (told["http.request.method"], told["rpc.method"]) == ("PUT", "PutObject")
    assert told["http.request.body.size"] >= 100_000 and span.end_time_unix_nano > span.start_time_unix_nano
    assert attributes(roots["GetObject", 200])["http.response.body.size"] == 100_000
    assert roots["GetObject", 200].trace_id != span.trace_id and not roots["GetObject", 200].parent_span_id

    def children(of):
        return {one.name: one for one in collector.spans if one.parent_span_id == of.span_id}

    commit = children(span)["commit"]
    assert commit.trace_id == span.trace_id
    assert attributes(children(commit)["flush"])["durability"] == "Synced"
    assert attributes(children(roots["GetObject", 200])["read"]) == {"offset": 0, "bytes": 100_000}
    assert children(roots["GET", 403]) == {}
    # No name of an object, no secret.
    everything = str(collector.spans)
    assert "/photos/k" not in everything and server.client()._request_signer._credentials.secret_key not in everything


def test_a_part_of_all_requests(traced, collector):
    server = traced("--trace-ratio", "0")
    sign = Signer(server)
    sign.request("PUT", "/photos")
    # A client that traces decides for itself.
    sign.request("PUT", "/photos/k", body=b"x", traceparent=f"00-{TRACE}-{SPAN}-01")
    sign.request("PUT", "/photos/k", body=b"x", traceparent=f"00-{TRACE}-{SPAN}-00")
    server.stop()
    assert {span.trace_id.hex() for span in collector.spans} == {TRACE}
    assert [span.name for span in collector.spans if span.parent_span_id.hex() == SPAN] == ["PutObject"]


def test_requests_wait_for_no_collector(traced, collector):
    collector.refuses = True
    server = traced()
    sign = Signer(server)
    assert sign.request("PUT", "/photos")[0] == 200
    while not any("spans cannot be sent" in line or "503" in line for line in list(server.output)) and not collector.asked:
        pass
    # Nobody listens any more.
    collector.server.shutdown()
    collector.server.server_close()
    for number in range(3000):
        assert sign.request("GET", "/photos/none")[0] == 404
    server.stop()
    assert sum("spans cannot be sent" in line for line in server.output) == 1


@pytest.mark.parametrize("option", [["--trace-to", "there"], ["--trace-to", "http://there", "--trace-ratio", "2"]])
def test_what_is_no_collector_is_refused(make_server, option):
    with pytest.raises(AssertionError):
        make_server(arguments=option)


def missing(server):
    """How many spans the server says are lost, at its end."""
    said = [line for line in server.output if "has not taken all spans" in line]
    return int(said[0].split("spans=")[1]) if said else 0


def test_spans_that_a_collector_rejects_are_lost(traced, collector, monkeypatch):
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "600000")
    collector.rejects = 1
    server = traced()
    assert Signer(server).request("PUT", "/photos")[0] == 200
    server.stop()
    # All spans of one request are one batch.
    assert collector.asked == missing(server) == 1 and len(collector.spans) > 1


def test_an_end_does_not_wait_for_a_collector_that_does_not_answer(traced, collector):
    server = traced()
    collector.goes_on.clear()
    assert Signer(server).request("PUT", "/photos")[0] == 200
    # It ends although nothing has been answered, which the exporter waits five seconds for, and tries again.
    server.stop()
    assert not collector.spans and missing(server) >= 1


def test_an_end_does_not_wait_for_a_collector_that_is_gone(traced, collector, monkeypatch):
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "600000")
    server = traced()
    collector.server.shutdown()
    collector.server.server_close()
    assert Signer(server).request("PUT", "/photos")[0] == 200
    server.stop()
    assert missing(server) >= 1


def test_the_last_spans_reach_a_collector_that_takes_its_time(traced, collector, monkeypatch):
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "600000")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4")
    take = collector.take

    def slowly(*arguments):
        time.sleep(0.04)
        take(*arguments)

    collector.take = slowly
    # All batches together take longer than it waits for one. On a machine that stands still, even one may.
    for _ in range(5):
        collector.spans.clear()
        server = traced()
        sign = Signer(server)
        for _ in range(200):
            assert sign.request("GET", "/photos/none")[0] == 404
        server.stop()
        if not missing(server):
            break
    assert sum("http.request.method" in attributes(span) for span in collector.spans) == 200
