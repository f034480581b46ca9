"""ZoneStore on the drive, used as clients use it: signed PUT, GET and DELETE at its S3 endpoint."""

import hashlib
import hmac
import http.client
import os
import pathlib
import subprocess
import time

from drive import Failed, run, wait_for
from files import Damaged, Full

HOST, PORT, BUCKET = "127.0.0.1", 9000, "compared"
ACCESS, SECRET, REGION = "comparison", "comparison-secret", "us-east-1"
LOG = "/tmp/serve.log"


def signature(method, path, stamp):
    """The Authorization of a request without a query, by Signature Version 4 with an unsigned payload."""
    scope = f"{stamp[:8]}/{REGION}/s3/aws4_request"
    names = "host;x-amz-content-sha256;x-amz-date"
    request = (f"{method}\n{path}\n\nhost:{HOST}:{PORT}\nx-amz-content-sha256:UNSIGNED-PAYLOAD\nx-amz-date:{stamp}\n\n"
               f"{names}\nUNSIGNED-PAYLOAD")
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = b"AWS4" + SECRET.encode()
    for part in (*scope.split("/"), text):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return f"AWS4-HMAC-SHA256 Credential={ACCESS}/{scope}, SignedHeaders={names}, Signature={key.hex()}"


class ZoneStore:
    label = "ZoneStore"

    def __init__(self):
        self.program = os.environ["ZONESTORE_BIN"]
        self.server = None

    def format(self, drive):
        self.device = drive.path
        self.made = run(self.program, "store", "mkfs", "--force", self.device)
        self.start()
        self.request("PUT", "", b"")

    def start(self):
        run("modprobe", "-q", "tcp_cubic", check=False)
        environment = dict(os.environ, ZONESTORE_ACCESS_KEY=ACCESS, ZONESTORE_SECRET_KEY=SECRET, RUST_LOG="warn")
        with open(LOG, "ab") as log:
            self.server = subprocess.Popen([self.program, "serve", self.device, "--s3", f"{HOST}:{PORT}", "--cache", "0"],
                                           env=environment, stdout=log, stderr=log)
        wait_for("server", self.answers, 600)

    def answers(self):
        if self.server.poll() is not None:
            last = pathlib.Path(LOG).read_text(errors="replace").strip().splitlines()[-3:]
            raise Failed("serve: " + " / ".join(last))
        try:
            return self.plain("GET", "/-/ready") == 200
        except OSError:
            return False

    def plain(self, method, path):
        connection = http.client.HTTPConnection(HOST, PORT, timeout=600)
        try:
            connection.request(method, path)
            return connection.getresponse().status
        finally:
            connection.close()

    def request(self, method, key, body=None):
        path = f"/{BUCKET}/{key}" if key else f"/{BUCKET}"
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        headers = {"x-amz-date": stamp, "x-amz-content-sha256": "UNSIGNED-PAYLOAD",
                   "authorization": signature(method, path, stamp)}
        connection = http.client.HTTPConnection(HOST, PORT, timeout=600)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            data = answer.read()
        except http.client.HTTPException as error:
            # A body that ends early: what was read is damaged, and the client sees it.
            raise Damaged(f"{type(error).__name__}") from error
        finally:
            connection.close()
        if answer.status < 300:
            return data
        words = data.decode(errors="replace")
        if answer.status == 507 or "InsufficientStorage" in words or "no space" in words.lower():
            raise Full(f"HTTP {answer.status}")
        if method == "GET" and answer.status == 500:
            raise Damaged(f"HTTP {answer.status}")
        raise Failed(f"{method} {path}: HTTP {answer.status}: {words[:200]}")

    def put(self, key, data):
        self.request("PUT", key, data)

    def get(self, key):
        return self.request("GET", key)

    def delete(self, key):
        self.request("DELETE", key)

    def sync(self):
        """Nothing waits: each answer came behind a flush."""

    def stop(self):
        self.server.terminate()
        self.server.wait(600)

    def abandon(self):
        self.server.kill()
        self.server.wait(600)

    def database(self, arguments):
        """db_bench on BlueFS; the store goes, for BlueFS takes the whole drive."""
        self.stop()
        run(self.program, "fs", "mkfs", "--force", self.device)
        return run(self.program, "rocksdb", self.device, "--", "db_bench", *arguments, timeout=1800)
