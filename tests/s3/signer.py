"""SigV4 by hand, so that every part of a request can be made wrong on purpose."""

import base64
import datetime
import hashlib
import hmac
import http.client
import urllib.parse
import zlib

from zonestore import ACCESS_KEY, REGION, SECRET_KEY, TIMEOUT

EMPTY = hashlib.sha256(b"").hexdigest()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def crc32(data):
    return base64.b64encode(zlib.crc32(data).to_bytes(4, "big")).decode()


def hmac256(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


class Signer:
    def __init__(self, server, secret_key=SECRET_KEY, access_key=ACCESS_KEY, service="s3", age_seconds=0, source=None):
        self.server = server
        self.source = source
        self.access_key = access_key
        now = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=age_seconds)
        self.time = now.strftime("%Y%m%dT%H%M%SZ")
        self.date = self.time[:8]
        self.scope = f"{self.date}/{REGION}/{service}/aws4_request"
        key = hmac256(b"AWS4" + secret_key.encode(), self.date)
        for part in (REGION, service, "aws4_request"):
            key = hmac256(key, part)
        self.key = key

    @property
    def host(self):
        return f"127.0.0.1:{self.server.port}"

    def sign(self, kind, *lines):
        text = "\n".join([kind, self.time, self.scope, *lines])
        return hmac.new(self.key, text.encode(), hashlib.sha256).hexdigest()

    def headers(self, method, path, query="", payload=EMPTY, unsigned=(), **headers):
        """Headers for a request; those named in `unsigned` are sent and not signed."""
        send = {"host": self.host, "x-amz-date": self.time, "x-amz-content-sha256": payload}
        send.update({name.replace("_", "-").lower(): value for name, value in headers.items()})
        names = sorted(name for name in send if name not in unsigned)
        canonical = "\n".join([
            method,
            urllib.parse.quote(path, safe="/~"),
            "&".join(map("=".join, sorted(part.partition("=")[::2] for part in query.split("&") if part))),
            *(f"{name}:{send[name].strip()}" for name in names),
            "",
            ";".join(names),
            payload,
        ])
        self.seed = self.sign("AWS4-HMAC-SHA256", sha256(canonical.encode()))
        send["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={self.access_key}/{self.scope}, "
            f"SignedHeaders={';'.join(names)}, Signature={self.seed}"
        )
        return send

    def presign(self, method, path, expires="3600", **headers):
        """Path and query of a presigned request; headers travel in the query."""
        query = {
            "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
            "X-Amz-Credential": f"{self.access_key}/{self.scope}",
            "X-Amz-Date": self.time,
            "X-Amz-Expires": expires,
            "X-Amz-SignedHeaders": "host",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        text = "&".join(f"{name}={urllib.parse.quote(value, safe='')}" for name, value in sorted(query.items()))
        canonical = "\n".join([method, path, text, f"host:{self.host}", "", "host", "UNSIGNED-PAYLOAD"])
        return f"{path}?{text}&X-Amz-Signature={self.sign('AWS4-HMAC-SHA256', sha256(canonical.encode()))}"

    def request(self, method, path, query="", body=b"", payload=None, **headers):
        """Signs and sends; returns status, headers and body."""
        if payload is None:
            payload = sha256(body)
        return self.send(method, path, query, body, self.headers(method, path, query, payload, **headers))

    def send(self, method, path, query, body, headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, TIMEOUT, self.source)
        try:
            target = urllib.parse.quote(path, safe="/~") + ("?" + query if query else "")
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            if body is not None and "content-length" not in headers:
                connection.putheader("content-length", str(len(body)))
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders()
            if body:
                connection.send(body)
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()
        finally:
            connection.close()

    def put_chunked(self, path, data, chunk=70000, spoil=None, trailer=None, signed=True, **headers):
        """A put in aws-chunked framing; `spoil` says what is made wrong."""
        kind = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD" if signed else "STREAMING-UNSIGNED-PAYLOAD"
        if trailer or not signed:
            kind += "-TRAILER"
            headers["x_amz_trailer"] = "x-amz-checksum-crc32"
        headers["x_amz_decoded_content_length"] = str(len(data) + (1 if spoil == "length" else 0))
        headers["content_encoding"] = headers.get("content_encoding", "aws-chunked")
        headers = self.headers("PUT", path, payload=kind, **headers)
        previous, body = self.seed, b""
        pieces = [data[at:at + chunk] for at in range(0, len(data), chunk)]
        if spoil != "no last chunk":
            pieces.append(b"")
        for number, piece in enumerate(pieces):
            head = f"{len(piece):x}"
            if signed:
                previous = self.sign("AWS4-HMAC-SHA256-PAYLOAD", previous, EMPTY, sha256(piece))
                head += ";chunk-signature=" + previous
            if spoil == "chunk data" and number == 0:
                piece = bytes([piece[0] ^ 1]) + piece[1:]
            if spoil == "chunk signature" and number == 0:
                head = head[:-1] + ("0" if head[-1] != "0" else "1")
            body += head.encode() + b"\r\n" + piece + (b"\r\n" if piece else b"")
        if trailer or not signed:
            value = crc32(data if spoil != "trailer" else data + b"x")
            text = f"x-amz-checksum-crc32:{value}"
            if spoil == "trailer without a value":
                text = text.replace(":", "")
            if spoil != "no trailer":
                body += text.encode() + b"\r\n"
                if signed:
                    signature = self.sign(
                        "AWS4-HMAC-SHA256-TRAILER", previous, sha256(text.encode() + b"\n")
                    )
                    if spoil == "trailer signature":
                        signature = signature[::-1]
                    body += f"x-amz-trailer-signature:{signature}\r\n".encode()
        if spoil != "no last chunk":
            body += b"\r\n"
        return self.send("PUT", path, "", body, headers)


def code(body):
    """The code in an error document."""
    start = body.find(b"<Code>")
    return body[start + 6:body.find(b"</Code>")].decode() if start >= 0 else None
