"""Servers of either back end bring each other up to date: replication and handoffs by ssync, fragments by the reconstructor."""

import logging
import os
import shutil
import socket

import pytest
from swift.common import storage_policy
from swift.common.concurrency import greenio, sleep, spawn, wsgi
from swift.common.storage_policy import ECStoragePolicy
from swift.common.utils import get_logger
from swift.obj import diskfile, server

from backends import DEVICE, Files, Zoned, hash_of
from objects import Objects, moment, until
from zonestore_swift.disk_file import ECDiskFile
from zonestore_swift.drive import Drive, DriveObject
from zonestore_swift.errors import Damaged, Refused
from zonestore_swift.reconstructor import Reconstructor
from zonestore_swift.replicator import Replicator

AGE = {"reclaim_age": str(10 ** 9)}


class Ring:
    """All partitions have the same homes."""

    next_part_power = None

    def __init__(self, devs, homes):
        self.devs = devs
        self.homes = homes
        self.replica_count = len(homes)

    def get_part_nodes(self, partition):
        return [{**node, "index": index} for index, node in enumerate(self.homes)]

    def get_more_nodes(self, partition):
        return iter(())

    def has_changed(self):
        return False


class Server:
    """An object server of this process."""

    def __init__(self, backend, number):
        self.backend = backend
        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        listening.listen(50)
        listening.setblocking(False)
        self.port = listening.getsockname()[1]
        conf = {**backend.conf, **AGE, "log_requests": "false", "bind_port": str(self.port), "container_update_timeout": "0.1",
                "replication_concurrency_per_device": "0", "ring_ip": "127.0.0.1", "recon_cache_path": str(backend.devices)}
        self.conf = conf
        self._serving = spawn(
            wsgi.server, greenio.GreenSocket(listening), server.ObjectController(conf, get_logger(conf)), log=logging.getLogger("wsgi"))

    def node(self, number):
        return {"id": number, "region": 1, "zone": 1, "weight": 1.0, "ip": "127.0.0.1", "replication_ip": "127.0.0.1",
                "port": self.port, "replication_port": self.port, "device": DEVICE, "meta": ""}

    def stop(self):
        self._serving.kill()
        sleep(0)


def with_policy_module(monkeypatch, policy, backend):
    """What swift.conf does with `diskfile_module`. Both servers are in this process, and each has made its managers."""
    kind = backend.ec if policy.policy_type == "erasure_coding" else backend.replication
    monkeypatch.setattr(type(policy), "get_diskfile_manager", lambda self, *args, **kwargs: kind(*args, **kwargs))


class Pair:
    def __init__(self, request, tmp_path, monkeypatch, policy, kinds):
        monkeypatch.setattr(storage_policy, "_POLICIES", storage_policy.StoragePolicyCollection(
            [policy] if int(policy) == 0 else [request.getfixturevalue("plain"), policy]))
        self.policy = policy
        self.backends = []
        self.servers = []
        for number, kind in enumerate(kinds.split(" to ")):
            daemon = ["daemon", "other_daemon"][number]
            backend = Files(tmp_path / str(number)) if kind == "files" else Zoned(tmp_path / str(number), request.getfixturevalue(daemon))
            with_policy_module(monkeypatch, policy, backend)
            self.backends.append(backend)
            self.servers.append(Server(backend, number))
        # The sender's daemon makes its managers last.
        with_policy_module(monkeypatch, policy, self.backends[0])
        self.here = Objects(self.backends[0], policy)
        self.there = Objects(self.backends[1], policy, partition=self.here.partition)

    def ring(self, monkeypatch, homes):
        nodes = [self.servers[0].node(0)] + [self.servers[1].node(number) for number in range(1, 8)]
        monkeypatch.setattr(self.policy, "object_ring", Ring(nodes, [nodes[home] for home in homes]), raising=False)

    def replicate(self, **conf):
        daemon = Replicator({**self.servers[0].conf, "sync_method": "ssync", **conf}, get_logger({}))
        daemon._zero_stats()
        daemon.replicate(override_partitions=[int(self.here.partition)])
        return daemon

    def reconstruct(self):
        daemon = Reconstructor(self.servers[0].conf, get_logger({}))
        daemon.reconstruct(override_partitions=[int(self.here.partition)])
        return daemon

    def stop(self):
        for one in self.servers:
            one.stop()


KINDS = ["zoned to files", "files to zoned", "zoned to zoned"]


@pytest.fixture(params=KINDS)
def pair(request, tmp_path, monkeypatch, plain):
    pair = Pair(request, tmp_path, monkeypatch, plain, request.param)
    yield pair
    pair.stop()


@pytest.fixture(params=KINDS)
def coded_pair(request, tmp_path, monkeypatch, coded):
    pair = Pair(request, tmp_path, monkeypatch, coded, request.param)
    yield pair
    pair.stop()


def fill(objects):
    data = {"small": b"abc", "large": bytes(range(256)) * 2000, "empty": b""}
    for name, content in data.items():
        objects.put(name, data=content, at=1, **{"X-Object-Meta-Name": name, "X-Object-Meta-Caf\u00c3\u00a9": "na\u00c3\u00afve"})
    objects.post("small", at=3, content_type="posted", content_type_at=2, **{"X-Object-Meta-Posted": "yes"})
    objects.put("deleted", data=b"abc", at=1)
    objects.delete("deleted", at=2)
    return data


def assert_same(left, right, data):
    assert left.hashes() == right.hashes() != {}
    for name, content in data.items():
        assert right.read(name) == content
        assert right.metadata(name) == left.metadata(name)


def test_homes_are_brought_up_to_date(pair, monkeypatch):
    pair.ring(monkeypatch, [0, 1])
    data = fill(pair.here)
    pair.there.put("small", data=b"older", at=0)
    pair.there.put("deleted", data=b"older", at=0)
    daemon = pair.replicate()
    assert daemon.total_stats.failure == 0
    assert_same(pair.here, pair.there, data)
    assert not pair.there.exists("deleted")
    assert pair.replicate().total_stats.hashmatch == 1


def exchange_with_a_damaged_object(pair, exchange, damage, index=2):
    """What the receiver has of one object is damaged: this and the others come all the same, at once."""
    names = [f"o{number}" for number in range(5)]
    old = pair.there.put(names[2], data=os.urandom(30_000), at=0, index=index)
    archives = {name: pair.here.put(name, data=os.urandom(30_000), at=1, index=index) for name in names}
    damage(old)
    exchange()
    options = {"frag_index": index} if pair.there.coded else {}
    assert {name: pair.there.read(name, **options) for name in names} == archives
    assert pair.there.quarantined(names[2])


def data_damaged(pair, monkeypatch):
    return lambda data: pair.backends[1].damage(pair.policy, pair.there.partition, hash_of("o2"), data)


def metadata_damaged(pair, monkeypatch):
    """As the daemon says it of an object that was not put aside yet."""
    def opened(drive_object, *arguments, **options):
        if drive_object._root.endswith(hash_of("o2")) and moment(0).internal in "".join(drive_object.files()):
            raise Damaged("damaged", "its metadata")
        return opens(drive_object, *arguments, **options)

    opens = DriveObject.open
    return lambda data: monkeypatch.setattr(DriveObject, "open", opened)


@pytest.mark.parametrize("damaged", [data_damaged, metadata_damaged])
@pytest.mark.parametrize("pair", ["zoned to zoned"], indirect=True)
def test_a_damaged_object_keeps_no_other_from_its_home(pair, monkeypatch, damaged):
    pair.ring(monkeypatch, [0, 1])
    exchange_with_a_damaged_object(pair, pair.replicate, damaged(pair, monkeypatch))


@pytest.mark.parametrize("damaged", [data_damaged, metadata_damaged])
@pytest.mark.parametrize("coded_pair", ["zoned to zoned"], indirect=True)
def test_a_damaged_fragment_keeps_no_other_from_its_home(coded_pair, monkeypatch, damaged):
    coded_pair.ring(monkeypatch, range(1, 8))
    exchange_with_a_damaged_object(coded_pair, coded_pair.reconstruct, damaged(coded_pair, monkeypatch), index=4)


@pytest.mark.parametrize("pair", ["zoned to zoned"], indirect=True)
def test_what_was_replaced_takes_no_space(pair, monkeypatch):
    """The receiver opens what it has, to compare it, and does not close it."""
    def live():
        return pair.there.manager.drive(DEVICE).store("space")["live_bytes"]

    pair.ring(monkeypatch, [0, 1])
    pair.there.put(data=bytes(4_000_000), at=0)
    pair.here.put(data=b"new", at=1)
    before = live()
    assert pair.replicate().total_stats.failure == 0
    assert pair.there.read() == b"new"
    assert until(lambda: live() < before - 3_900_000), f"{before} bytes were live, and {live()} are"


def test_a_handoff_goes_home_and_is_empty_then(pair, monkeypatch):
    pair.ring(monkeypatch, [1, 2])
    data = fill(pair.here)
    daemon = pair.replicate()
    assert daemon.total_stats.failure == 0
    for name, content in data.items():
        assert pair.there.read(name) == content
        assert pair.here.names(name) == []
    if isinstance(pair.backends[0], Zoned):
        assert daemon.handoffs_remaining == 0
        assert int(pair.here.partition) not in pair.here.manager.drive(DEVICE).partitions(pair.policy)
    assert pair.here.hashes() == {}
    assert pair.there.metadata("small")["Content-Type"] == "posted"


@pytest.mark.parametrize("pair", ["zoned to files", "zoned to zoned"], indirect=True)
def test_what_comes_to_a_handoff_meanwhile_goes_home_too(pair, monkeypatch):
    """All but one of it is older than the POST that the homes have confirmed, and newer than the data."""
    def late(daemon, job, sent):
        pair.here.post("posted", at=30, **{"X-Object-Meta-Posted": "late"})
        pair.here.put("put", data=b"late", at=15)
        pair.here.delete("deleted", at=15)
        pair.here.post("typed", at=14, content_type="late", content_type_at=14)
        remove_sent(daemon, job, sent)

    remove_sent = Replicator._remove_sent
    pair.ring(monkeypatch, [1, 2])
    for name in ("put", "deleted", "typed", "posted", "unchanged"):
        pair.here.put(name, data=b"early", at=10)
        pair.here.post(name, at=20, **{"X-Object-Meta-Posted": name})
    with monkeypatch.context() as patched:
        patched.setattr(Replicator, "_remove_sent", late)
        daemon = pair.replicate()
    assert daemon.handoffs_remaining == 1
    assert pair.here.names("unchanged") == [] and moment(15).internal + ".data" in pair.here.names("put")
    daemon = pair.replicate()
    assert daemon.total_stats.failure == daemon.handoffs_remaining == 0
    assert pair.there.read("put") == b"late" and pair.there.metadata("put")["X-Object-Meta-Posted"] == "put"
    assert not pair.there.exists("deleted")
    assert pair.there.metadata("typed")["Content-Type"] == "late" and pair.there.metadata("posted")["X-Object-Meta-Posted"] == "late"


class Late:
    """What comes to a handoff when the files of an object have been listed that is about to be removed."""

    def __init__(self, monkeypatch, kind, before, come):
        act, files = getattr(kind, before), DriveObject.files

        def listed(drive_object):
            names = files(drive_object)
            patched.undo()
            come()
            return names

        def late(*arguments):
            patched.setattr(DriveObject, "files", listed)
            return act(*arguments)

        patched = pytest.MonkeyPatch()
        monkeypatch.setattr(kind, before, late)


@pytest.mark.parametrize("pair", ["zoned to files", "zoned to zoned"], indirect=True)
def test_a_post_to_a_handoff_that_is_listed_already_goes_home_too(pair, monkeypatch):
    pair.ring(monkeypatch, [1, 2])
    pair.here.put(data=b"abc", at=1)
    with monkeypatch.context() as patched:
        Late(patched, Replicator, "_remove_sent", lambda: pair.here.post(at=2, **{"X-Object-Meta-Posted": "late"}))
        daemon = pair.replicate()
    assert daemon.handoffs_remaining == 1
    assert pair.here.read() == b"abc" and pair.here.metadata()["X-Object-Meta-Posted"] == "late"
    assert pair.replicate().handoffs_remaining == 0
    assert pair.there.metadata()["X-Object-Meta-Posted"] == "late" and pair.here.names() == []


@pytest.mark.parametrize("coded_pair", ["zoned to zoned"], indirect=True)
def test_a_post_to_a_fragment_that_goes_home_goes_home_too(coded_pair, monkeypatch):
    pair = coded_pair
    pair.ring(monkeypatch, range(1, 8))
    archive = pair.here.put(data=b"abc" * 3000, at=1, index=4)
    with monkeypatch.context() as patched:
        Late(patched, ECDiskFile, "purge", lambda: pair.here.post(at=2, **{"X-Object-Meta-Posted": "late"}))
        pair.reconstruct()
    assert pair.here.read(frag_index=4) == archive
    pair.reconstruct()
    assert pair.there.metadata()["X-Object-Meta-Posted"] == "late" and pair.here.names() == []


def test_a_fragment_leaves_the_home_of_another_one_and_its_metadata_stay(coded_pair, monkeypatch):
    pair = coded_pair
    pair.ring(monkeypatch, range(7))
    archive = pair.here.put(data=b"abc" * 3000, at=1, index=4)
    pair.here.post(at=2, **{"X-Object-Meta-Posted": "yes"})
    pair.reconstruct()
    assert pair.there.read(frag_index=4) == archive
    assert pair.here.names() == [moment(2).internal + ".meta"]


def test_a_handoff_stays_while_a_home_is_away(pair, monkeypatch):
    pair.ring(monkeypatch, [1, 2])
    data = fill(pair.here)
    pair.servers[1].stop()
    daemon = pair.replicate()
    assert daemon.total_stats.failure
    assert pair.here.read("small") == data["small"]


def files_of(pair, number):
    return pair.backends[number].devices / DEVICE / diskfile.get_data_dir(pair.policy)


@pytest.mark.skipif(not shutil.which("rsync"), reason="needs rsync")
@pytest.mark.parametrize("pair", ["files to zoned"], indirect=True)
def test_rsync_finds_no_place_on_a_zoned_drives_host(pair, monkeypatch):
    """What it wrote there, nobody would read; and the handoff would be gone."""
    pair.ring(monkeypatch, [1, 2])
    data = pair.here.put(data=b"abc", at=1)
    pair.there.put("other", data=b"abc", at=1)
    # The auditor keeps its position.
    assert list(pair.there.manager.object_audit_location_generator(pair.policy))
    # Of rsync's daemon alone.
    run = Replicator._rsync
    monkeypatch.setattr(Replicator, "_rsync", lambda daemon, call: run(daemon, [word for word in call if not word.startswith("--contimeout")]))
    daemon = pair.replicate(sync_method="rsync", rsync_module=str(pair.backends[1].devices))
    assert daemon.total_stats.failure and pair.here.read() == data and not files_of(pair, 1).exists()
    assert pair.replicate().total_stats.failure == 0
    assert pair.there.read() == data and not pair.here.exists()


@pytest.mark.parametrize("pair", ["zoned to zoned"], indirect=True)
def test_partitions_of_files_on_a_zoned_drives_host_are_told(pair, monkeypatch):
    pair.ring(monkeypatch, [0, 1])
    pair.here.put(data=b"abc", at=1)
    folder = files_of(pair, 0)
    (folder / "17" / "abc").mkdir(parents=True)
    (folder / "auditor_status_ALL.json").touch()
    said = []
    monkeypatch.setattr(logging.LoggerAdapter, "error", lambda adapter, text, *values: said.append(text % values))
    pair.replicate()
    assert "1 partitions of files" in said[0] and (folder / "17" / "abc").exists()
    shutil.rmtree(folder / "17")
    said.clear()
    # An empty one goes, for rsync would write there.
    assert pair.replicate().total_stats.failure == 0
    assert said == [] and not folder.exists() and pair.there.read() == b"abc"


class TwoDrives:
    """One is healthy, and of the other every answer is a refusal."""

    def __init__(self, manager, monkeypatch):
        self._known = manager.drives
        monkeypatch.setattr(manager, "drives", self)

    def is_served(self, device):
        return True

    def drive(self, device):
        return self._known.drive(device) if device == DEVICE else Drive(self, device)

    def ask(self, method, target, *question):
        raise Damaged("damaged", target)


@pytest.mark.parametrize("pair", ["zoned to zoned"], indirect=True)
def test_a_drive_that_cannot_be_listed_is_replicated_without_harm_to_others(pair, monkeypatch):
    pair.ring(monkeypatch, [0, 1])
    pair.here.put(data=b"abc")
    devs = pair.policy.object_ring.devs
    daemon = Replicator(pair.servers[0].conf, get_logger({}))
    TwoDrives(daemon._df_router[pair.policy], monkeypatch)
    for broken in ([{**devs[0], "device": "broken"}, *devs], [*devs, {**devs[0], "device": "broken"}]):
        pair.policy.object_ring.devs = broken
        daemon._zero_stats()
        daemon.all_devs_info = set()
        jobs = daemon.build_replication_jobs(pair.policy, ["127.0.0.1"], override_partitions=[int(pair.here.partition)])
        assert [(job["device"], job["partition"]) for job in jobs] == [(DEVICE, pair.here.partition)]
        assert daemon.stats_for_dev["broken"].failure == len(broken) and daemon.stats_for_dev[DEVICE].failure == 0


@pytest.mark.parametrize("coded_pair", ["zoned to zoned"], indirect=True)
def test_a_drive_or_partition_that_cannot_be_listed_is_reconstructed_without_harm_to_others(coded_pair, monkeypatch):
    pair = coded_pair
    pair.ring(monkeypatch, range(7))
    pair.here.put(data=b"abc")
    devs = pair.policy.object_ring.devs
    daemon = Reconstructor(pair.servers[0].conf, get_logger({}))
    daemon._reset_stats()
    TwoDrives(daemon._df_router[pair.policy], monkeypatch)
    for broken in ([{**devs[0], "device": "broken"}, *devs], [*devs, {**devs[0], "device": "broken"}]):
        pair.policy.object_ring.devs = broken
        parts = daemon.collect_parts(override_partitions=[int(pair.here.partition)])
        assert [(part["local_dev"]["device"], part["partition"]) for part in parts] == [(DEVICE, int(pair.here.partition))]
    [part] = parts
    assert daemon.build_reconstruction_jobs(part)
    assert daemon.build_reconstruction_jobs({**part, "local_dev": {**part["local_dev"], "device": "broken"}}) == []
    # Of a policy of files, a partition without jobs would be removed.
    monkeypatch.setattr(daemon, "_is_zoned", lambda policy: False)
    with pytest.raises(Refused):
        daemon.build_reconstruction_jobs({**part, "local_dev": {**part["local_dev"], "device": "broken"}})


def test_a_fragment_goes_home(coded_pair, monkeypatch):
    pair = coded_pair
    pair.ring(monkeypatch, range(1, 8))
    archive = pair.here.put("o", data=b"abc" * 3000, at=1, index=4)
    waiting = pair.here.put("waits", data=b"abc" * 3000, at=1, index=5, commit=False)
    pair.here.delete("deleted", at=2)
    pair.there.put("deleted", data=b"abc", at=1, index=4)
    daemon = pair.reconstruct()
    assert daemon.handoffs_remaining == 0
    assert pair.there.read("o") == archive
    assert pair.there.read("waits", frag_prefs=[]) == waiting
    assert not pair.there.exists("deleted")
    assert [pair.here.names(name) for name in ("o", "waits")] == [[], []]
    assert pair.there.names("o") == [moment(1).internal + "#4#d.data"]
    assert hash_of("o")[-3:] not in pair.here.hashes()


@pytest.mark.parametrize("kinds", KINDS)
def test_a_missing_fragment_is_built_anew(request, tmp_path, monkeypatch, kinds):
    """Fragment 0 is here and 2 is there, and both together make 1, which nobody has."""
    policy = ECStoragePolicy(1, "two-of-three", ec_type="liberasurecode_rs_vand", ec_ndata=2, ec_nparity=1, ec_segment_size=4096)
    pair = Pair(request, tmp_path, monkeypatch, policy, kinds)
    try:
        pair.ring(monkeypatch, [0, 1, 2])
        data = b"abcdefgh" * 40_000
        pair.here.put("o", data=data, at=1, index=0)
        pair.there.put("o", data=data, at=1, index=2)
        pair.reconstruct()
        assert pair.there.names("o") == [moment(1).internal + f"#{index}#d.data" for index in (1, 2)]
        assert pair.there.read("o", frag_index=1) == pair.there.archive(data, 1)
    finally:
        pair.stop()
