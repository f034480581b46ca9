"""A small cluster in network namespaces, from nothing to faults, with real clients."""

import hmac
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import boto3
import pytest
import swiftclient
from backends import binary
from botocore.config import Config
from faults import KINDS, SHAPE, Faults
from swift.common.memcached import MemcacheRing
from swift.common.utils import get_logger
from trial import Trial
from zonestore_cluster import host, processes, settings
from zonestore_cluster.cluster import Cluster, clear, is_remainder
from zonestore_cluster.node import Node
from zonestore_cluster.processes import Failed, Process, start
from zonestore_swift import news

ROOT = Path(__file__).resolve().parents[2]
SMALL = ("--nodes", "1", "--drives", "1", "--size", SHAPE[3], "--zone-size", SHAPE[5], "--quiet")


def missing():
    """Why there can be no cluster here."""
    try:
        host.check()
    except (Failed, OSError) as failed:
        return str(failed)
    if Path(f"/sys/class/net/{host.BRIDGE}").exists():
        return "a cluster runs on this machine already"
    tools = [tool for tool in ("ip", "memcached", "rsync") if not shutil.which(tool)]
    return f"{', '.join(tools)} missing: scripts/setup --cluster" if tools else None


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    if why := missing():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("cluster") / "it"
    up = command(folder, "up", "--nodes", "2", "--drives", "2", "--size", SHAPE[3], "--zone-size", SHAPE[5], "--interval", "3")
    try:
        assert up.returncode == 0, up.stderr
        yield folder
    finally:
        command(folder, "down", "--remove")


def command(folder, *arguments):
    return subprocess.run(words_of(folder, *arguments), capture_output=True, text=True, timeout=600, env=environment())


def words_of(folder, *arguments):
    return [sys.executable, "-m", "zonestore_cluster", "--folder", folder, "--json", *arguments]


def environment():
    return {**os.environ, "PYTHONPATH": str(ROOT / "swift"), "ZONESTORE_BIN": str(binary())}


@pytest.fixture
def ends(folder):
    return Cluster.found(folder).endpoints()


DATA = bytes(range(256)) * 8192


def test_swiftclient(ends):
    client = swiftclient.Connection(ends["swift"], ends["user"], ends["key"])
    for policy in ("zoned", "zoned-ec", "files"):
        client.put_container(policy, {"X-Storage-Policy": policy})
        client.put_object(policy, "o", DATA, headers={"X-Object-Meta-Colour": "blue ☂"})
        headers, body = client.get_object(policy, "o", headers={"Range": "bytes=100-1099"})
        assert body == DATA[100:1100] and headers["x-object-meta-colour"] == "blue ☂"
        client.post_object(policy, "o", {"X-Object-Meta-Colour": "red"})
        headers, body = client.get_object(policy, "o")
        assert body == DATA and headers["x-object-meta-colour"] == "red"
        client.delete_object(policy, "o")
        with pytest.raises(swiftclient.ClientException):
            client.head_object(policy, "o")


@pytest.fixture
def s3(ends):
    return boto3.client("s3", endpoint_url=ends["s3"], aws_access_key_id=ends["user"], aws_secret_access_key=ends["key"],
                        region_name="us-east-1", config=Config(s3={"addressing_style": "path"}))


def test_boto3_with_parts(s3):
    s3.create_bucket(Bucket="bucket")
    upload = s3.create_multipart_upload(Bucket="bucket", Key="large")["UploadId"]
    parts = []
    # The last part number that S3 knows.
    for number, part in ((1, b"a" * (5 << 20)), (10_000, DATA)):
        tag = s3.upload_part(Bucket="bucket", Key="large", UploadId=upload, PartNumber=number, Body=part)["ETag"]
        parts.append({"PartNumber": number, "ETag": tag})
    s3.complete_multipart_upload(Bucket="bucket", Key="large", UploadId=upload, MultipartUpload={"Parts": parts})
    assert s3.get_object(Bucket="bucket", Key="large")["Body"].read() == b"a" * (5 << 20) + DATA
    assert [each["Key"] for each in s3.list_objects_v2(Bucket="bucket")["Contents"]] == ["large"]


def test_what_swift_made_s3_reads(ends, s3):
    client = swiftclient.Connection(ends["swift"], ends["user"], ends["key"])
    client.put_container("by-swift", {"X-Storage-Policy": "zoned-ec"})
    client.put_object("by-swift", "o", DATA)
    assert "by-swift" in [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]]
    assert s3.get_object(Bucket="by-swift", Key="o")["Body"].read() == DATA
    s3.put_object(Bucket="by-swift", Key="p", Body=DATA)
    assert client.get_object("by-swift", "p")[1] == DATA


def test_containers_are_synchronized_by_the_clusters_realm(ends):
    client = swiftclient.Connection(ends["swift"], ends["user"], ends["key"])
    account = client.get_auth()[0].rpartition("/")[2]
    client.put_container("to", {"X-Storage-Policy": "zoned-ec", "X-Container-Sync-Key": "open"})
    client.put_container("from", {"X-Container-Sync-Key": "open", "X-Container-Sync-To": f"//cluster/here/{account}/to"})
    client.put_object("from", "o", DATA)
    assert Trial.until(lambda: [row["name"] for row in client.get_container("to")[1]] == ["o"], 600)
    assert client.get_object("to", "o")[1] == DATA


def test_a_form_puts_an_object(ends):
    client = swiftclient.Connection(ends["swift"], ends["user"], ends["key"])
    client.post_account({"X-Account-Meta-Temp-URL-Key": "secret"})
    client.put_container("form")
    url = urlsplit(client.get_auth()[0] + "/form/")
    fields = {"redirect": "", "max_file_size": str(len(DATA)), "max_file_count": "1", "expires": str(int(time.time()) + 600)}
    fields["signature"] = hmac.new(b"secret", "\n".join([url.path, *fields.values()]).encode(), "sha256").hexdigest()
    parts = [f'--edge\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode() for name, value in fields.items()]
    parts.append(b'--edge\r\nContent-Disposition: form-data; name="file"; filename="o"\r\nContent-Type: text/plain\r\n\r\n' + DATA)
    form = Request(url.geturl(), b"".join(parts) + b"\r\n--edge--\r\n", {"Content-Type": "multipart/form-data; boundary=edge"})
    assert urlopen(form, timeout=600).status == 201
    assert client.get_object("form", "o")[1] == DATA


def test_what_expires_goes_from_listings(ends):
    client = swiftclient.Connection(ends["swift"], ends["user"], ends["key"], retries=8)
    client.put_container("expiring")
    client.put_object("expiring", "brief", DATA, headers={"X-Delete-After": "1"})
    client.put_object("expiring", "long", DATA, headers={"X-Delete-After": "100000"})
    assert Trial.until(lambda: [row["name"] for row in client.get_container("expiring")[1]] == ["long"], 600)


@pytest.mark.skipif(not shutil.which("rclone"), reason="no rclone")
def test_rclone(ends, tmp_path):
    there = tmp_path / "there"
    there.mkdir()
    for number in range(20):
        (there / f"file {number}").write_bytes(DATA[:number * 5000])
    configuration = tmp_path / "rclone.conf"
    configuration.write_text(f"[z]\ntype = swift\nuser = {ends['user']}\nkey = {ends['key']}\nauth = {ends['swift']}\n")
    for words in (["copy", there, "z:copied"], ["check", "--download", there, "z:copied"]):
        run = subprocess.run(["rclone", "--config", configuration, *words], capture_output=True, text=True, timeout=600)
        assert run.returncode == 0, run.stderr


def test_reporters_tell_of_every_drive(folder):
    cluster = Cluster.found(folder)
    servers = [f"{node.ip}:{settings.PORTS['memcached']}" for node in cluster.nodes]
    memcache = MemcacheRing(servers, logger=get_logger({}))
    keys = [news.key(node.ip, settings.PORTS["object"]) for node in cluster.nodes]

    def all_tell():
        told = memcache.get_multi(keys, news.SERVER) or []
        return [sorted(row["drives"]) for row in told if row] == [node.devices for node in cluster.nodes]

    assert Trial.until(all_tell, 600)


def test_status_tells_what_does_not_run(folder):
    cluster = Cluster.found(folder)
    assert command(folder, "kill", "drive", "d2b").returncode == 0
    status = json.loads(command(folder, "status").stdout)
    assert status[1]["not_running"] == ["daemon-d2b"]
    assert [drive["served"] for node in status for drive in node["drives"]] == [True, True, True, False]
    told = subprocess.run([word for word in words_of(folder, "status") if word != "--json"], capture_output=True, text=True, env=environment())
    assert "d2b  not served: its daemon does not run" in told.stdout and f"scripts/cluster --folder {folder} heal" in told.stderr, told
    assert command(folder, "heal").returncode == 0
    status = json.loads(command(folder, "status").stdout)
    assert all(not node["not_running"] and drive["served"] for node in status for drive in node["drives"])
    for words in (["kill", "node", "node9"], ["kill", "drive", "sdx"]):
        run = command(folder, *words)
        assert run.returncode == 1 and "there is no" in run.stderr
    assert not cluster.data_files()


def test_writes_go_on_without_as_many_drives_as_up_says(folder, ends):
    told = json.loads(command(folder, "up").stdout)["drives_to_lose"]
    assert told == {"zoned": 2, "zoned-ec": 0}
    # Swift's proxy waits half a second for a server, and a server on a machine with much else to do may take longer.
    client, once = (swiftclient.Connection(ends["swift"], ends["user"], ends["key"], retries=retries) for retries in (8, 0))
    for policy in told:
        client.put_container(f"lose {policy}", {"X-Storage-Policy": policy})
    try:
        for lost, drive in enumerate(["d2b", "d1a", "d1b"], 1):
            assert command(folder, "kill", "drive", drive).returncode == 0
            for policy, most in told.items():
                if lost <= most:
                    client.put_object(f"lose {policy}", "o", DATA)
                else:
                    with pytest.raises(swiftclient.ClientException, match="503"):
                        once.put_object(f"lose {policy}", "o", DATA)
    finally:
        assert command(folder, "heal").returncode == 0


def test_options_that_an_existing_cluster_does_not_have_are_refused(folder):
    for words, why in ((["--nodes", "3"], "--nodes 3 (it has 2)"), (["--drives", "1", "--size", "1TiB"], "--drives 1 (it has 2), --size 1TiB (it has"),
                       (["--default-policy", "files"], "--default-policy files (it has zoned)"), (["--quiet"], "--quiet"),
                       (["--interval", "4"], "--interval 4 (it has 3)"), (["--workers", "1"], "--workers 1 (it has 0)")):
        run = command(folder, "up", *words)
        assert run.returncode == 2 and why in run.stderr and f"scripts/cluster --folder {folder} down --remove` first" in run.stderr, run.stderr
    run = command(folder, "up", "--nodes", "2", "--zone-size", SHAPE[5], "--default-policy", "zoned")
    assert run.returncode == 0, run.stderr


def test_another_cluster_is_refused_and_takes_nothing(folder, tmp_path):
    other = tmp_path / "other"
    run = command(other, "up", "--nodes", "1")
    assert run.returncode == 1 and f"the cluster in {folder} runs" in run.stderr and f"--folder {folder} down" in run.stderr
    assert not other.exists()
    # One that was made before.
    plan = {**Cluster.found(folder).plan, "nodes": 1, "drives": 1}
    other.mkdir()
    (other / "cluster.json").write_text(json.dumps({"format": 1, "plan": plan}))
    for words in (["up"], ["heal"], ["kill", "network", "1"]):
        run = command(other, *words)
        assert run.returncode == 1 and f"the cluster in {folder} runs" in run.stderr, run.stderr
    assert not json.loads(command(other, "status").stdout)[0]["connected"]
    Cluster.found(other).nodes[0].folder.mkdir()
    assert command(other, "down", "--remove").returncode == 0
    assert all(node["connected"] and not node["not_running"] for node in json.loads(command(folder, "status").stdout))


@pytest.mark.parametrize("kind", ["lost", "zone"])
def test_nothing_is_lost_when_a_drive_or_a_zone_is(folder, kind):
    cluster = Cluster.found(folder)
    trial = Trial(cluster, ["zoned", "zoned-ec"], writers=1, sizes=(0, 100, 70_000, 300_000), seed=KINDS.index(kind))
    trial.start()
    trial.run_for(3)
    print(getattr(Faults(cluster, random.Random(1)), kind)())
    trial.run_for(3)
    cluster.start(lambda line: None)
    trial.end()
    trial.check()
    trial.wait_for_redundancy(600)
    assert not cluster.data_files()


def test_a_cluster_that_is_stopped_goes_on(folder, ends):
    client = swiftclient.Connection(ends["swift"], ends["user"], ends["key"], retries=8)
    client.put_container("kept")
    client.put_object("kept", "o", DATA)
    assert command(folder, "down").returncode == 0
    assert not Path(f"/sys/class/net/{host.BRIDGE}").exists()
    assert command(folder, "up").returncode == 0
    client = swiftclient.Connection(ends["swift"], ends["user"], ends["key"], retries=8)
    assert client.get_object("kept", "o")[1] == DATA


@pytest.fixture
def stopped(folder):
    """The one that the other tests have, so that there is room for another."""
    assert command(folder, "down").returncode == 0


@pytest.mark.usefixtures("stopped")
def test_a_cluster_that_cannot_be_is_not_remembered(tmp_path):
    other = tmp_path / "other"
    for words, why in ((["--profile", "nosuch"], "no profile"), (["--nodes", "0"], "from 1 to"), (["--nodes", "-1"], "from 1 to"),
                       (["--nodes", "1", "--drives", "2", "--default-policy", "zoned-ec"], "it takes 3"), (["--drives", "0"], "from 1 to"), (["--zone-size", "1"], "zone")):
        run = command(other, "up", *words)
        assert run.returncode in (1, 2) and why in run.stderr and "Traceback" not in run.stderr, run.stderr
        assert not other.exists()


@pytest.mark.usefixtures("stopped")
def test_folders_that_cannot_be_are_told(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "cluster.json").write_text('{"format": 1, "pl')
    for name, words, why in (("a b", ["up"], "cannot name"), ("a;b", ["up"], "cannot name"), ("x" * 90, ["up"], "107 bytes"), ("file", ["up"], "is no folder"),
                             ("file", ["down"], "there is no cluster"), ("cut", ["status"], "is damaged"), ("cut", ["up"], "is damaged")):
        run = command(tmp_path / name, *words, *(SMALL if words == ["up"] else ()))
        assert run.returncode == 1 and why in run.stderr and "Traceback" not in run.stderr, run.stderr


@pytest.mark.usefixtures("stopped")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_up_can_be_interrupted_anywhere(tmp_path, how):
    """Between a drive and the store on it, and where drives are and a node begins."""
    other = tmp_path / "other"
    slow = tmp_path / "zonestore"
    held = tmp_path / "held"
    # Stands still where `held` says, as long as it does, and ends.
    stands = f'if [ "$1" = "$(cat {held})" ]; then touch {held}.there; while [ "$1" = "$(cat {held})" ]; do sleep 0.1; done; exit 1; fi'
    slow.write_text(f'#!/bin/sh\n{stands}\nexec {binary()} "$@"\n')
    slow.chmod(0o755)
    try:
        for step in ("store", "daemon"):
            held.write_text(step)
            up = subprocess.Popen(words_of(other, "up", *SMALL),
                                  stderr=subprocess.PIPE, text=True, env={**environment(), "ZONESTORE_BIN": str(slow)},
                                  # A run of the tests in the background ignores it, and all that it starts does.
                                  preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
            there = Path(f"{held}.there")
            assert Trial.until(there.exists, 600)
            there.unlink()
            up.send_signal(how)
            held.write_text("")
            _, words = up.communicate(timeout=600)
            assert how == signal.SIGKILL or up.returncode == 130 and "interrupted" in words and "Traceback" not in words, words
        Cluster.found(other).nodes[0].kill()
        assert command(other, "up").returncode == 0
        [node] = json.loads(command(other, "status").stdout)
        assert not node["not_running"] and node["drives"][0]["served"]
    finally:
        command(other, "down", "--remove")


def a_cluster_that_never_ran(folder):
    """Its folders, with something in each."""
    plan = {"nodes": 2, "drives": 1, "shape": [], "zonestore": "zonestore", "background": True, "interval": 10, "workers": 0, "default": "zoned"}
    cluster = Cluster(folder, plan)
    (cluster.folder / "rings").mkdir(parents=True)
    (cluster.folder / "rings" / "object.ring.gz").touch()
    for node in cluster.nodes:
        node.configure(cluster.nodes, settings.policies(2), 10, 0, "key")
        for device in node.devices:
            node.drive(device).touch()
    (cluster.folder / "cluster.json").write_text(json.dumps({"format": 1, "plan": plan}))
    return cluster


@pytest.mark.usefixtures("stopped")
def test_a_removal_can_be_interrupted_anywhere(tmp_path, monkeypatch):
    """With all that is removed as the last, and before `cluster.json` was the last to go."""
    other = tmp_path / "other"
    removed, interrupted = [0], {}
    for name in ("unlink", "rmdir", "rename"):
        def some(*arguments, _real=getattr(os, name), **options):
            removed[0] -= 1
            if removed[0] < 0:
                raise KeyboardInterrupt
            return _real(*arguments, **options)
        interrupted[name] = some
    for step in range(1000):
        cluster = a_cluster_that_never_ran(other)
        removed[0] = step
        try:
            with monkeypatch.context() as patch:
                for name, some in interrupted.items():
                    patch.setattr(os, name, some)
                cluster.remove()
            break
        except KeyboardInterrupt:
            if not any(other.iterdir()):
                other.rmdir()
                continue
            assert (other / "cluster.json").exists() or is_remainder(other), step
            if step % 16 == 2:
                heal = command(other, "heal")
                assert heal.returncode == 1 and f"--folder {other} down --remove" in heal.stderr, heal.stderr
                run = command(other, "down", "--remove")
                assert run.returncode == 0, run.stderr
            else:
                Cluster(other, cluster.plan).remove() if (other / "cluster.json").exists() else clear(other)
    assert step > 20 and not other.exists()


@pytest.mark.usefixtures("stopped")
def test_what_an_older_removal_left_is_removed_and_nothing_else(tmp_path):
    other = tmp_path / "other"
    cluster = a_cluster_that_never_ran(other)
    (other / "cluster.json").unlink()
    shutil.rmtree(cluster.nodes[0].folder)
    run = command(other, "up", *SMALL)
    assert run.returncode == 1 and f"scripts/cluster --folder {other} down --remove" in run.stderr, run.stderr
    for stranger in (other / "mine", other / "node2" / "mine", other / "rings" / "mine"):
        stranger.touch()
        for words in (["down", "--remove"], ["up", *SMALL]):
            run = command(other, *words)
            assert run.returncode == 1 and "down --remove" not in run.stderr, run.stderr
        stranger.unlink()
    assert command(other, "down").returncode == 1 and (other / "rings").exists()
    assert command(other, "down", "--remove").returncode == 0 and not other.exists()


def marked(other):
    """What was started for a cluster, and what that started."""
    return [pid for node in Path(other).glob("node*") for pid, _ in processes.marked(node.resolve() / "log")]


@pytest.mark.usefixtures("stopped")
def test_heal_waits_for_what_is_being_stopped(tmp_path):
    """A daemon finishes the requests in hand, and refuses others meanwhile."""
    other = tmp_path / "other"
    try:
        assert command(other, "up", *SMALL).returncode == 0
        [node] = Cluster.found(other).nodes
        old = node.processes()["daemon-d1a"]
        with socket.socket(socket.AF_UNIX) as in_hand:
            in_hand.connect(str(node.socket("d1a")))
            in_hand.sendall(b"POST /v1/drives/d1a/swift/staged HTTP/1.1\r\nHost: x\r\nContent-Length: 8000000\r\n\r\n" + bytes(1_000_000))
            os.kill(old.pid, signal.SIGTERM)
            place = (socket.AF_UNIX, str(node.socket("d1a")))
            assert Trial.until(lambda: not Node._answers(*place), 600) and old.is_alive()
            heal = subprocess.Popen(words_of(other, "heal"), stderr=subprocess.PIPE, text=True, env=environment())
            said = []
            for line in heal.stderr:
                said.append(line)
                if "daemon-d1a runs and does not answer" in line:
                    break
        said += heal.stderr
        assert heal.wait() == 0 and any("daemon-d1a was being stopped" in line for line in said), said
        assert not old.is_alive()
        [found] = json.loads(command(other, "status").stdout)
        assert not found["not_running"] and found["drives"][0]["served"]
    finally:
        command(other, "down", "--remove")


def test_a_process_lives_as_long_as_one_of_its_threads(tmp_path):
    """Its first thread has ended: the others have its files, and their locks."""
    program = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(3600,)).start()
ctypes.CDLL(None).syscall(60, 0)
"""
    process = start([sys.executable, "-c", program], tmp_path / "one.log")
    try:
        assert Trial.until(lambda: Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z", 600)
        assert process.is_alive() and processes.running(tmp_path).keys() == {"one"}
    finally:
        process.kill()
    assert processes.running(tmp_path) == {}


@pytest.mark.usefixtures("stopped")
@pytest.mark.parametrize("has_directory", [True, False])
def test_a_loss_of_a_drive_can_be_interrupted_and_told_again(tmp_path, has_directory):
    node = Node(tmp_path, 1, 1, SHAPE, binary(), False)
    [device] = node.devices
    drive, directory, lost = node.drive(device), node.folder / "devices" / device, node.folder / f"{device}.lost"

    def left():
        lost.mkdir(parents=True)
        (lost / "x").touch()
        if has_directory:
            (directory / "containers").mkdir(parents=True)
        else:
            directory.parent.mkdir(exist_ok=True)
            shutil.rmtree(directory, ignore_errors=True)

    left()
    drive.touch()
    node.kill_drive(device, True)
    assert list(directory.iterdir()) == [] and not lost.exists() and not drive.exists()
    # What heal does if nobody tells it again.
    left()
    drive.touch()
    node.make_drives()
    assert directory.is_dir() and not lost.exists()


def test_what_was_started_is_found_whoever_has_noted_it(tmp_path):
    """Also where `up` was killed before it could, where a process ended before it was looked at, and where a node's namespaces are gone."""
    other = tmp_path / "other"
    try:
        assert command(other, "up", *SMALL).returncode == 0
        [node] = Cluster.found(other).nodes
        noted_by_none = start([*host.inside(node.processes()["holder"].pid), "sleep", "infinity"], node.log / "other.log")
        assert "other" in node.processes()
        ended = start(["true"], node.log / "ended.log")
        assert Trial.until(lambda: not ended.is_alive(), 600) and not Process(ended.pid, None, ended.log).is_alive()
        node.processes()["holder"].kill()
        old = set(marked(other))
        healed = command(other, "heal")
        assert old and healed.returncode == 0, healed.stderr
        assert not noted_by_none.is_alive() and not old & set(marked(other))
        # A program of the machine removed the folder that nodes see theirs on.
        host.run("nsenter", "-t", node.processes()["holder"].pid, "-m", "umount", host.ETC)
        healed = command(other, "heal")
        assert healed.returncode == 0 and host.holds(node.processes()["holder"]), healed.stderr
        [found] = json.loads(command(other, "status").stdout)
        assert not found["not_running"] and found["drives"][0]["served"]
        # Its folder has another name.
        other.rename(tmp_path / "renamed")
        assert command(tmp_path, "down").returncode == 1 and any(processes.marked(other))
        assert command(other, "down").returncode == 0 and not any(processes.marked(other))
        (tmp_path / "renamed").rename(other)
        assert command(other, "up").returncode == 0
    finally:
        assert command(other, "down").returncode == 0
        assert not marked(other)
        command(other, "down", "--remove")


def test_what_becomes_another_program_is_found_meanwhile(tmp_path):
    again = tmp_path / "again"
    again.write_text('#!/bin/sh\nexec "$0"\n')
    again.chmod(0o755)
    process = start([again], tmp_path / "again.log")
    try:
        # Of a look that does not wait a dozen and more miss it; of one that does, a few may on a machine that stands still.
        assert sum("again" in processes.running(tmp_path) for _ in range(400)) >= 396
    finally:
        process.kill()


@pytest.mark.usefixtures("stopped")
def test_two_commands_take_turns(tmp_path):
    other = tmp_path / "other"
    try:
        both = [subprocess.Popen(words_of(other, "up", *SMALL), stderr=subprocess.PIPE, text=True, env=environment()) for _ in range(2)]
        words = [one.communicate(timeout=600)[1] for one in both]
        assert [one.returncode for one in both] == [0, 0], words
        assert sum("another command is at work" in word for word in words) <= 1
    finally:
        assert command(other, "down", "--remove").returncode == 0


@pytest.fixture
def strangers():
    """Makes interfaces that no cluster has made; they are gone behind the test, and so is their other end."""
    made = []

    def make(name, *what):
        host.run("ip", "link", "add", name, "type", *(what or ["veth", "peer", "name", f"{name[:12]}far"]))
        made.append(name)
        return Path(f"/sys/class/net/{name}")

    yield make
    for name in made:
        subprocess.run(["ip", "link", "delete", name], capture_output=True)


@pytest.mark.usefixtures("stopped")
def test_interfaces_of_nobody_known_are_refused_and_stay(tmp_path, strangers):
    other = tmp_path / "other"
    for what in (["bridge"], []):
        there = strangers(host.BRIDGE, *what)
        run = command(other, "up", *SMALL)
        assert run.returncode == 1 and host.BRIDGE in run.stderr and "another name" in run.stderr and "Traceback" not in run.stderr, run.stderr
        host.network_down(other)
        assert there.exists() and not (there / "ifalias").read_text().strip() and not other.exists()
        host.run("ip", "link", "delete", host.BRIDGE)
    host.network_up(other)
    try:
        mine = strangers("zsc1")
        with pytest.raises(Failed, match="zsc1"):
            host.hold(1, tmp_path, tmp_path / "log")
        assert mine.exists()
    finally:
        host.network_down(other)


@pytest.mark.usefixtures("stopped")
def test_addresses_that_this_machine_has_already_are_told(tmp_path, strangers):
    strangers("elsewhere")
    host.run("ip", "address", "add", f"{host.SUBNET}.7/28", "dev", "elsewhere")
    host.run("ip", "link", "set", "elsewhere", "up")
    run = command(tmp_path / "other", "up", *SMALL)
    assert run.returncode == 1 and "elsewhere" in run.stderr and host.SUBNET in run.stderr, run.stderr
    assert not (tmp_path / "other").exists()
