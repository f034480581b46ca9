"""Private connections."""

import os
import shutil
import socket
import ssl
import subprocess
import sys

import pytest

from configured import Configured
from zonestore import TIMEOUT

TLS = '[tls]\ncertificate = "server.pem"\nkey = "server.key"\n'


def certify(folder, name="server"):
    """A certificate for this machine, made now; each has another serial number."""
    key, certificate = folder / f"{name}.key", folder / f"{name}.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    command = [*command.split(), *names, "-keyout", key, "-out", certificate]
    subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT)
    key.chmod(0o600)
    return certificate


@pytest.fixture
def certificate(tmp_path):
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    return certify(tmp_path)


@pytest.fixture
def server(tmp_path, certificate):
    server = Configured(tmp_path, TLS).start()
    yield server
    server.stop()


def connect(server, context):
    raw = socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT)
    return context.wrap_socket(raw, server_hostname="localhost")


def trusting(certificate=None):
    context = ssl.create_default_context(cafile=certificate)
    if certificate is None:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def test_objects_go_both_ways(server, certificate, data):
    assert server.endpoint.startswith("https://")
    s3 = server.as_admin(verify=str(certificate))
    s3.create_bucket(Bucket="photos")
    body = data(3_000_000)
    s3.put_object(Bucket="photos", Key="k", Body=body)
    assert s3.get_object(Bucket="photos", Key="k")["Body"].read() == body
    target = dict(Bucket="photos", Key="a b/ü")
    target["UploadId"] = s3.create_multipart_upload(**target)["UploadId"]
    part = dict(PartNumber=1, ETag=s3.upload_part(**target, PartNumber=1, Body=body)["ETag"])
    done = s3.complete_multipart_upload(**target, MultipartUpload={"Parts": [part]})
    assert done["Location"] == f"{server.endpoint}/photos/a%20b/%C3%BC"
    url = s3.generate_presigned_url("get_object", dict(Bucket="photos", Key="k"))
    fetched = subprocess.run(["curl", "-sS", "--cacert", certificate, url], capture_output=True, timeout=TIMEOUT)
    assert fetched.stdout == body, fetched.stderr


def test_s3cmd_speaks_it_by_the_key_file(tmp_path, certificate):
    folder = tmp_path / "s3cmd"
    folder.mkdir()
    server = Configured(folder)
    for name in ("server.pem", "server.key"):
        shutil.copy(tmp_path / name, folder / name)
    server.config.write_text(TLS)
    server.keys_of_environment = False
    server.start()
    s3cmd = os.path.join(os.path.dirname(sys.executable), "s3cmd")
    command = [s3cmd if os.path.exists(s3cmd) else "s3cmd", "-c", f"{server.drive}.keys", f"--ca-certs={certificate}"]
    if shutil.which(command[0]) is None:
        pytest.skip("s3cmd is not installed")
    for more in (["mb", "s3://first"], ["ls"]):
        done = subprocess.run([*command, *more], capture_output=True, text=True, timeout=TIMEOUT)
        assert done.returncode == 0, done.stderr
    assert "s3://first" in done.stdout
    server.stop()


@pytest.mark.parametrize("request_", [b"GET / HTTP/1.1\r\nhost: a\r\n\r\n", b"PUT /b/k HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n"])
def test_plain_http_is_told_so(server, request_):
    with socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT) as plain:
        plain.sendall(request_)
        answer = b""
        while piece := plain.recv(4096):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 400 ") and b"text/plain" in answer and b"https://" in answer
    length = int(answer.split(b"content-length: ")[1].split(b"\r\n")[0])
    assert len(answer.partition(b"\r\n\r\n")[2]) == length


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_old_versions_are_refused(server):
    for version, is_spoken in [
        (ssl.TLSVersion.TLSv1_1, False), (ssl.TLSVersion.TLSv1_2, True), (ssl.TLSVersion.TLSv1_3, True),
    ]:
        context = trusting()
        context.set_ciphers("DEFAULT@SECLEVEL=0")
        context.minimum_version = context.maximum_version = version
        try:
            with connect(server, context) as connection:
                assert is_spoken, version
                assert connection.version() == version.name.replace("_", ".")
        except (ssl.SSLError, ConnectionError):
            assert not is_spoken, version


def serial(server):
    with connect(server, trusting()) as connection:
        return connection.getpeercert(binary_form=True)


def test_the_certificate_is_exchanged(server, tmp_path, certificate):
    s3 = server.as_admin(verify=str(certificate))
    s3.create_bucket(Bucket="photos")
    before = serial(server)
    certify(tmp_path)
    server.hang_up()
    assert serial(server) != before
    # A connection that was there goes on with the one it had; it needs no handshake.
    assert s3.head_bucket(Bucket="photos")
    assert server.as_admin(verify=str(certificate)).head_bucket(Bucket="photos")


def test_a_broken_certificate_changes_nothing(server, tmp_path):
    before = serial(server)
    (tmp_path / "server.pem").write_text("no certificate")
    server.hang_up()
    assert server.said("stays as it was") >= 1
    assert serial(server) == before


def test_a_handshake_that_is_never_finished_keeps_out_nobody(server, certificate):
    idle = [socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT) for _ in range(300)]
    for one in idle[::2]:
        one.sendall(b"\x16\x03\x01")
    assert server.as_admin(verify=str(certificate)).list_buckets()
    # Its time ends, or it makes room: either way the server closes it.
    idle[0].settimeout(TIMEOUT)
    try:
        while idle[0].recv(100):
            pass
    except ConnectionError:
        pass
    for one in idle:
        one.close()


def test_a_client_that_does_not_know_it_stays_away(server, certificate):
    from botocore.exceptions import SSLError

    with pytest.raises(SSLError):
        server.as_admin().list_buckets()
