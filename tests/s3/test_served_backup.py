"""A backup of a drive while it is served and written to: all of it is of one moment."""

import subprocess
import threading

import zonestore
from zonestore import TIMEOUT


def content(writer, version, size):
    return f"{writer}/{version};".encode() * (size // 8)


class Writer(threading.Thread):
    """Puts, overwrites and removes objects of its own, and remembers every state that there was."""

    def __init__(self, server, name):
        super().__init__(daemon=True)
        self.s3, self.name, self.ends = server.client(), name, threading.Event()
        self.seen = {f"{name}-{number}": {None} for number in range(20)}
        self.rounds, self.failed = 0, None

    def run(self):
        try:
            while not self.ends.is_set():
                for number, key in enumerate(self.seen):
                    if (self.rounds + number) % 5 == 4:
                        self.seen[key].add(None)
                        self.s3.delete_object(Bucket="photos", Key=key)
                        continue
                    body = content(self.name, self.rounds, 1000 if number % 2 else 300_000)
                    # Before it is sent: from then on it may be in the archive.
                    self.seen[key].add(body)
                    self.s3.put_object(Bucket="photos", Key=key, Body=body)
                self.rounds += 1
        except Exception as error:
            self.failed = error


def restored(make, tmp_path, *archives):
    """What S3 finds in a new store that was made of them."""
    drive = zonestore.make_drive(tmp_path / f"restored-{len(archives)}.zoned", "512MiB")
    zonestore.run("store", "restore", *archives, "--to", drive)
    zonestore.fsck(drive)
    server = zonestore.Server(drive).start()
    s3 = server.client()
    found = {
        one["Key"]: s3.get_object(Bucket="photos", Key=one["Key"])["Body"].read()
        for one in s3.list_objects_v2(Bucket="photos").get("Contents", [])
    }
    server.stop()
    return found


def test_under_load_each_object_is_one_that_there_was(make_server, tmp_path):
    server = make_server(size="512MiB")
    s3 = server.client()
    s3.create_bucket(Bucket="photos")
    still = {f"still-{number}": content("still", number, 50_000) for number in range(300)}
    for key, body in still.items():
        s3.put_object(Bucket="photos", Key=key, Body=body)
    writers = [Writer(server, f"w{number}") for number in range(3)]
    [writer.start() for writer in writers]
    full, more = tmp_path / "full.tar", tmp_path / "more.tar"
    told = zonestore.run("store", "backup", server.drive, "--to", full).stdout
    assert "full.tar: " in told
    while any(writer.rounds < 2 and writer.failed is None for writer in writers):
        pass
    since = zonestore.run("store", "backup", server.drive, "--to", more, "--since", full).stdout
    for writer in writers:
        writer.ends.set()
        writer.join(TIMEOUT)
        assert writer.failed is None
    # What nobody touched is in the list only.
    assert int(since.split(" unchanged")[0].rsplit(", ", 1)[1].split()[0]) >= len(still), since
    server.stop()
    for archives in ([full], [full, more]):
        zonestore.run("store", "restore", *archives, "--check")
        found = restored(make_server, tmp_path, *archives)
        assert {key: found.pop(key, None) for key in still} == still
        for writer in writers:
            for key, states in writer.seen.items():
                assert found.pop(key, None) in states, key
        assert found == {}


def test_what_is_refused_is_refused_by_a_server_too(make_server, tmp_path):
    server, other = make_server(), tmp_path / "other.zoned"
    server.client().create_bucket(Bucket="photos")
    to = tmp_path / "full.tar"
    zonestore.run("store", "backup", server.drive, "--to", to)
    again = zonestore.run("store", "backup", server.drive, "--to", to, check=False)
    assert again.returncode == 5 or "exists already" in again.stderr
    (tmp_path / "none.tar").write_bytes(b"none")
    for since in ("none.tar", "nowhere.tar"):
        refused = zonestore.run(
            "store", "backup", server.drive, "--to", tmp_path / "x.tar", "--since", tmp_path / since, check=False
        )
        assert refused.returncode in (2, 3), refused.stderr
    assert not (tmp_path / "x.tar").exists()
    # A restore of a served backup to another drive goes through the same call.
    zonestore.make_drive(other, "256MiB")
    zonestore.run("store", "backup", server.drive, "--to", other)
    assert "photos" in zonestore.run("store", "ls", other).stdout
    server.stop()


def test_a_server_that_stops_ends_the_backup(make_server, data):
    server = make_server()
    s3 = server.client()
    s3.create_bucket(Bucket="photos")
    for number in range(8):
        s3.put_object(Bucket="photos", Key=str(number), Body=data(4 << 20))
    backup = subprocess.Popen(
        [zonestore.BINARY, "store", "backup", server.drive, "--to", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    # It has begun, and nobody takes the rest.
    assert backup.stdout.read(1)
    server.stop()
    _, why = backup.communicate(timeout=TIMEOUT)
    assert backup.returncode != 0 and b"the server" in why, why
    server.start()
    # Whoever leaves keeps nobody else from a backup.
    backup = subprocess.Popen([zonestore.BINARY, "store", "backup", server.drive, "--to", "-"], stdout=subprocess.PIPE)
    assert backup.stdout.read(1)
    backup.kill()
    backup.communicate(timeout=TIMEOUT)
    zonestore.run("store", "backup", server.drive, "--to", server.drive + ".tar")


class Counter(threading.Thread):
    """Writes 0, 1, 2 and so on, each to the object behind that of the one before; two requests take place as one after the other."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.s3, self.ends, self.count, self.failed = server.client(), threading.Event(), 0, None

    def run(self):
        try:
            while not self.ends.is_set():
                body = f"{self.count:08}".encode() * 10_000
                self.s3.put_object(Bucket="photos", Key=f"n{self.count % 10}", Body=body)
                self.count += 1
        except Exception as error:
            self.failed = error


def test_an_archive_has_the_beginning_of_what_was_written_and_nothing_behind(make_server, tmp_path):
    server = make_server(size="512MiB")
    s3 = server.client()
    s3.create_bucket(Bucket="photos")
    for number in range(100):
        s3.put_object(Bucket="photos", Key=f"still-{number}", Body=bytes(200_000))
    counter = Counter(server)
    counter.start()
    while counter.count < 20 and counter.failed is None:
        pass
    to = tmp_path / "full.tar"
    zonestore.run("store", "backup", server.drive, "--to", to)
    counter.ends.set()
    counter.join(TIMEOUT)
    assert counter.failed is None
    server.stop()
    found = restored(make_server, tmp_path, to)
    numbers = sorted(int(body[:8]) for key, body in found.items() if key.startswith("n"))
    assert all(body == body[:8] * 10_000 for key, body in found.items() if key.startswith("n"))
    assert numbers == list(range(numbers[0], numbers[0] + 10)), numbers
