"""Clients that people use: s3cmd, rclone, and the command line of AWS."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

import zonestore

MIB = 1 << 20


@pytest.fixture
def tree(tmp_path, data):
    """A directory with all kinds of files."""
    root = tmp_path / "tree"
    files = {
        "empty": 0, "small.txt": 10, "block.bin": 4096, "dir/medium": 300_000, "dir/sub/large": 20 * MIB + 5,
        "with space/ünï cödé.txt": 1234, "dir/plus+and&percent%.dat": 99, "[brackets]": 5,
    }
    for number, (name, size) in enumerate(files.items()):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data(size, number))
    return root


def read_tree(root):
    found = {}
    for directory, _, names in os.walk(root):
        for name in names:
            path = os.path.join(directory, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, root)] = hashlib.sha256(file.read()).hexdigest()
    return found


def call(*command, env=None, check=True):
    result = subprocess.run(
        [str(part) for part in command],
        capture_output=True, text=True, errors="surrogateescape", env=env, timeout=zonestore.TIMEOUT,
    )
    if check:
        assert result.returncode == 0, f"{command}\n{result.stdout}{result.stderr}"
    return result


@pytest.fixture
def s3cmd(server, tmp_path):
    config = tmp_path / "s3cfg"
    config.write_text(
        "[default]\n"
        f"access_key = {zonestore.ACCESS_KEY}\nsecret_key = {zonestore.SECRET_KEY}\n"
        f"host_base = 127.0.0.1:{server.port}\nhost_bucket = 127.0.0.1:{server.port}\n"
        "use_https = False\nsignature_v2 = False\nmultipart_chunk_size_mb = 5\n"
    )
    return lambda *arguments, **options: call("s3cmd", "-c", config, *arguments, **options)


@pytest.fixture
def rclone(server):
    # Settings of another S3 that the machine may have are not for this one.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    environment = dict(
        inherited,
        RCLONE_CONFIG="/dev/null",
        RCLONE_CONFIG_ZS_TYPE="s3",
        RCLONE_CONFIG_ZS_PROVIDER="Other",
        RCLONE_CONFIG_ZS_ACCESS_KEY_ID=zonestore.ACCESS_KEY,
        RCLONE_CONFIG_ZS_SECRET_ACCESS_KEY=zonestore.SECRET_KEY,
        RCLONE_CONFIG_ZS_ENDPOINT=server.endpoint,
        RCLONE_CONFIG_ZS_CHUNK_SIZE="5M",
        RCLONE_CONFIG_ZS_UPLOAD_CUTOFF="8M",
        RCLONE_CONFIG_ZS_FORCE_PATH_STYLE="true",
    )
    return lambda *arguments, **options: call(
        "rclone", "--retries", "1", "--low-level-retries", "1", *arguments, env=environment, **options
    )


@pytest.mark.skipif(not shutil.which("s3cmd"), reason="s3cmd is not installed")
def test_s3cmd(s3cmd, s3, tree, tmp_path, data):
    url = "s3://s3cmd-bucket"
    s3cmd("mb", url)
    assert url in s3cmd("ls").stdout
    s3cmd("put", tree / "small.txt", url + "/one/small.txt")
    s3cmd("get", url + "/one/small.txt", tmp_path / "got")
    assert (tmp_path / "got").read_bytes() == (tree / "small.txt").read_bytes()
    assert "one/small.txt" in s3cmd("ls", "--recursive", url).stdout
    assert "DIR" in s3cmd("ls", url).stdout
    # Twenty MiB in five-MiB parts.
    s3cmd("put", tree / "dir/sub/large", url + "/large")
    assert s3.head_object(Bucket="s3cmd-bucket", Key="large")["ETag"].endswith('-5"')
    s3cmd("get", url + "/large", tmp_path / "large")
    assert (tmp_path / "large").read_bytes() == (tree / "dir/sub/large").read_bytes()
    s3cmd("cp", url + "/large", url + "/copy")
    s3cmd("mv", url + "/copy", url + "/moved")
    assert s3.get_object(Bucket="s3cmd-bucket", Key="moved")["Body"].read() == data(20 * MIB + 5, 4)
    assert "20971525" in s3cmd("info", url + "/moved", check=False).stdout
    s3cmd("sync", str(tree) + "/", url + "/tree/")
    again = s3cmd("sync", str(tree) + "/", url + "/tree/").stdout
    assert "upload:" not in again
    s3cmd("sync", url + "/tree/", str(tmp_path / "back") + "/")
    assert read_tree(tmp_path / "back") == read_tree(tree)
    s3cmd("del", url + "/one/small.txt")
    assert s3cmd("get", url + "/one/small.txt", tmp_path / "gone", check=False).returncode != 0
    assert s3cmd("rb", url, check=False).returncode != 0
    s3cmd("del", "--recursive", "--force", url)
    s3cmd("rb", url)
    assert url not in s3cmd("ls").stdout


@pytest.mark.skipif(not shutil.which("rclone"), reason="rclone is not installed")
def test_rclone(rclone, s3, tree, tmp_path):
    remote = "zs:rclone-bucket/tree"
    rclone("mkdir", "zs:rclone-bucket")
    assert "rclone-bucket" in rclone("lsd", "zs:").stdout
    rclone("copy", tree, remote)
    rclone("check", "--download", tree, remote)
    rclone("check", tree, remote)
    listed = rclone("lsf", "--recursive", "--files-only", remote).stdout.splitlines()
    assert sorted(listed) == sorted(read_tree(tree))
    rclone("copy", remote, tmp_path / "back")
    assert read_tree(tmp_path / "back") == read_tree(tree)
    times = [os.stat(root / "small.txt").st_mtime for root in (tree, tmp_path / "back")]
    assert abs(times[0] - times[1]) < 1
    # Changed, new and removed.
    (tree / "small.txt").write_text("changed")
    (tree / "new").write_text("new")
    (tree / "empty").unlink()
    rclone("sync", tree, remote)
    rclone("check", "--download", tree, remote)
    rclone("copyto", remote + "/dir/sub/large", "zs:rclone-bucket/copy")
    rclone("moveto", "zs:rclone-bucket/copy", "zs:rclone-bucket/moved")
    found = s3.head_object(Bucket="rclone-bucket", Key="moved")["ContentLength"]
    assert found == os.path.getsize(tree / "dir/sub/large")
    part = rclone("cat", "--offset", "100", "--count", "50", "zs:rclone-bucket/moved").stdout
    assert len(part.encode(errors="surrogateescape")) == 50
    rclone("delete", remote)
    assert rclone("lsf", "--recursive", "--files-only", remote).stdout == ""
    rclone("purge", "zs:rclone-bucket")
    assert "rclone-bucket" not in rclone("lsd", "zs:").stdout


@pytest.mark.skipif(not shutil.which("restic"), reason="restic is not installed")
def test_restic(server, tree, tmp_path):
    environment = dict(
        os.environ,
        AWS_ACCESS_KEY_ID=zonestore.ACCESS_KEY,
        AWS_SECRET_ACCESS_KEY=zonestore.SECRET_KEY,
        RESTIC_REPOSITORY=f"s3:{server.endpoint}/restic-bucket",
        RESTIC_PASSWORD="nobody's",
        RESTIC_CACHE_DIR=str(tmp_path / "cache"),
    )

    def restic(*arguments):
        return call("restic", *arguments, env=environment).stdout

    restic("init")
    restic("backup", tree)
    first = read_tree(tree)
    (tree / "small.txt").write_text("changed")
    restic("backup", tree)
    assert "no errors were found" in restic("check", "--read-data")
    oldest = json.loads(restic("snapshots", "--json"))[0]["short_id"]
    restic("restore", oldest, "--target", tmp_path / "back")
    assert read_tree(tmp_path / "back" / str(tree).lstrip("/")) == first
    restic("forget", "--keep-last", "1", "--prune")
    assert len(json.loads(restic("snapshots", "--json"))) == 1
    assert "no errors were found" in restic("check", "--read-data")


def examples(language):
    text = open(os.path.join(zonestore.ROOT, "docs", "s3.md")).read()
    return re.findall(rf"```{language}\n(.*?)```", text.split("\n## Clients\n")[1], re.S)


def test_the_documented_boto3_works_as_printed(make_server):
    server = make_server()
    [example] = examples("python")
    keys = {"ENDPOINT": server.endpoint, "ACCESS_KEY": zonestore.ACCESS_KEY, "SECRET_KEY": zonestore.SECRET_KEY}
    exec(compile(example, "docs/s3.md", "exec"), keys)


# That of requirements.txt, not the machine's.
AWS = os.path.join(os.path.dirname(sys.executable), "aws")
has_aws = pytest.mark.skipif(not os.path.exists(AWS), reason="awscli is not installed beside this Python")


@pytest.fixture
def aws(server, tmp_path):
    environment = dict(
        os.environ, AWS_ACCESS_KEY_ID=zonestore.ACCESS_KEY, AWS_SECRET_ACCESS_KEY=zonestore.SECRET_KEY,
        AWS_DEFAULT_REGION=zonestore.REGION, AWS_CONFIG_FILE=str(tmp_path / "config"), HOME=str(tmp_path),
    )
    command = (AWS, "--endpoint-url", server.endpoint)
    return lambda *arguments, **options: call(*command, *arguments, env=environment, **options)


@has_aws
def test_aws(aws, s3, tree, tmp_path):
    url = "s3://aws-bucket"
    aws("s3", "mb", url)
    aws("s3", "sync", tree, url + "/tree")
    assert aws("s3", "sync", tree, url + "/tree").stdout == ""
    assert s3.head_object(Bucket="aws-bucket", Key="tree/dir/sub/large")["ETag"].endswith('-3"')
    aws("s3", "mv", url + "/tree/dir/sub/large", url + "/moved")
    aws("s3", "mv", url + "/moved", url + "/tree/dir/sub/large")
    aws("s3", "sync", url + "/tree", tmp_path / "back")
    assert read_tree(tmp_path / "back") == read_tree(tree)
    (tree / "small.txt").unlink()
    assert "delete: " in aws("s3", "sync", "--delete", tree, url + "/tree").stdout
    assert aws("s3api", "get-object-acl", "--bucket", "aws-bucket", "--key", "tree/empty", check=False).returncode
    aws("s3", "rb", "--force", url)
    assert "aws-bucket" not in aws("s3", "ls").stdout


@has_aws
def test_the_documented_presigning_works_as_printed(make_server, tmp_path):
    server = make_server()
    s3 = server.client()
    s3.create_bucket(Bucket="first")
    s3.put_object(Bucket="first", Key="hello", Body=b"Hello\n")
    [example] = examples("sh")
    environment = dict(
        os.environ, ENDPOINT=server.endpoint, ACCESS_KEY=zonestore.ACCESS_KEY, SECRET_KEY=zonestore.SECRET_KEY,
        AWS_CONFIG_FILE=str(tmp_path / "config"), HOME=str(tmp_path),
        PATH=os.path.dirname(AWS) + os.pathsep + os.environ["PATH"],
    )
    result = subprocess.run(["sh", "-ec", example], env=environment, capture_output=True, timeout=zonestore.TIMEOUT)
    assert result.stdout == b"Hello\n", result
