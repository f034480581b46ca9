"""Downloads that the daemon sends into the client's socket itself."""

import os
import signal
import socket
import struct
import threading

import eventlet.greenio
import pytest

from backends import DEVICE, hash_of
from objects import Objects
from test_client import Script
from zonestore_swift.transport import Transport

# As the object server opens a reader.
AS_SERVED = {"etag_validate_frac": 0}


class Client:
    """Two connected sockets, the second of which takes all that comes in a thread of its own."""

    def __init__(self, family=socket.AF_INET):
        if family == socket.AF_UNIX:
            self.server, self.client = socket.socketpair()
        else:
            with socket.create_server(("127.0.0.1", 0)) as listening:
                self.client = socket.create_connection(listening.getsockname())
                self.server, _ = listening.accept()
        self.server.setblocking(False)
        self.got = bytearray()

    def reads(self, count):
        self._reading = threading.Thread(target=self._read, args=(count,), daemon=True)
        self._reading.start()
        return self

    def _read(self, count):
        try:
            while len(self.got) < count and (piece := self.client.recv(1 << 16)):
                self.got += piece
        except ConnectionResetError:
            pass

    def end(self):
        """What has come until the end of as many bytes as were asked for, or of the connection."""
        self._reading.join(60)
        assert not self._reading.is_alive(), "neither all the data nor the end of the connection has come"
        return bytes(self.got)


def reader_of(objects, name="o"):
    with objects.file(name).open() as disk_file:
        return disk_file.reader(**AS_SERVED)


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_UNIX])
def test_all_of_the_data_comes_and_the_connection_goes_on(zoned, plain, family):
    objects = Objects(zoned, plain)
    both = {name: objects.put(name, data=os.urandom(3_000_001)) for name in "ab"}
    client = Client(family)
    for name in "abab":
        data = both[name]
        client.got.clear()
        client.reads(len(data) + 4)
        if family == socket.AF_INET:
            client.server.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        client.server.sendall(b"head")
        reader = reader_of(objects, name)
        assert reader.can_zero_copy_send()
        reader.zero_copy_send(client.server.fileno())
        assert client.end() == b"head" + data
        if family == socket.AF_INET:
            assert not client.server.getsockopt(socket.IPPROTO_TCP, socket.TCP_CORK), "the end of the data waits for more"
    senders = objects.manager.drive(DEVICE)._transport._handing
    assert [len(pool._idle()) for pool in senders.values()] == [1], "one connection for all of them"


def test_a_green_socket_is_handed_over(zoned, plain, monkeypatch):
    """As in the object server, where eventlet has patched the sockets."""
    monkeypatch.setattr(socket, "socket", eventlet.greenio.GreenSocket)
    objects = Objects(zoned, plain)
    data = objects.put(data=os.urandom(1_000_000))
    monkeypatch.undo()
    client = Client().reads(len(data))
    monkeypatch.setattr(socket, "socket", eventlet.greenio.GreenSocket)
    reader = reader_of(objects)
    assert reader.can_zero_copy_send()
    assert isinstance(reader._fp._sender._connection.sock, eventlet.greenio.GreenSocket)
    reader.zero_copy_send(client.server.fileno())
    assert client.end() == data


def test_it_can_be_switched_off(zoned, plain):
    objects = Objects(zoned, plain, zonestore_send_directly="no")
    objects.put(data=b"a" * 1_000_000)
    assert not reader_of(objects).can_zero_copy_send()


def test_what_is_here_already_or_is_compared_here_is_not_sent(zoned, plain, coded):
    objects = Objects(zoned, plain)
    objects.put("short", data=b"a" * 65536)
    objects.put("long", data=b"a" * 65537)
    assert not reader_of(objects, "short").can_zero_copy_send()
    with objects.file("long").open() as disk_file:
        assert not disk_file.reader(etag_validate_frac=None).can_zero_copy_send(), "the MD5 is compared here"
    # Fragments have a checksum of their own, which Swift's code compares.
    fragments = Objects(zoned, coded)
    fragments.put(data=b"a" * 1_000_000)
    assert not reader_of(fragments).can_zero_copy_send()


def test_a_reader_that_could_send_can_be_read_or_dropped(zoned, plain):
    objects = Objects(zoned, plain)
    data = objects.put(data=os.urandom(1_000_000))
    reader = reader_of(objects)
    assert reader.can_zero_copy_send()
    assert b"".join(reader) == data
    reader = reader_of(objects)
    assert reader.can_zero_copy_send()
    sender = reader._fp._sender
    del reader
    assert sender._connection.sock is None


def test_a_client_that_goes_away_is_no_error(zoned, plain):
    objects = Objects(zoned, plain)
    data = objects.put(data=os.urandom(40_000_000))
    client = Client()
    client.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def goes():
        # The rest is still on its way.
        client.client.recv(1)
        client.client.close()

    going = threading.Thread(target=goes)
    going.start()
    reader = reader_of(objects)
    assert reader.can_zero_copy_send()
    reader.zero_copy_send(client.server.fileno())
    going.join()
    assert not objects.quarantined()
    assert objects.read() == data


def test_damage_ends_the_connection_and_puts_the_object_aside(own):
    data = own.put(data=os.urandom(3_000_000))
    own.backend.damage(own.policy, own.partition, hash_of("o"), data)
    client = Client().reads(len(data))
    reader = reader_of(own)
    assert reader.can_zero_copy_send()
    with pytest.raises(OSError):
        reader.zero_copy_send(client.server.fileno())
    client.server.close()
    got = client.end()
    assert len(got) < len(data) and data.startswith(got)
    assert own.quarantined()


def test_a_daemon_that_dies_ends_the_connection(own):
    own.put(data=os.urandom(40_000_000))
    client = Client()
    reader = reader_of(own)
    assert reader.can_zero_copy_send()

    def dies():
        # Nobody takes more of the data, so it is still being sent.
        client.client.recv(1)
        own.daemon.stop(signal.SIGKILL)

    dying = threading.Thread(target=dies)
    dying.start()
    with pytest.raises(OSError):
        reader.zero_copy_send(client.server.fileno())
    dying.join()
    own.daemon.start()
    assert not own.quarantined()


def test_who_gives_up_waiting_ends_the_connection(zoned, plain):
    """Swift's timeouts come from outside and at any point."""
    objects = Objects(zoned, plain)
    data = objects.put(data=os.urandom(40_000_000))
    client = Client()
    reader = reader_of(objects)
    assert reader.can_zero_copy_send()
    sender = reader._fp._sender
    first = bytearray()

    def gives_up():
        first.extend(client.client.recv(1))
        sender._connection.sock.shutdown(socket.SHUT_RDWR)

    giving_up = threading.Thread(target=gives_up)
    giving_up.start()
    with pytest.raises(OSError):
        reader.zero_copy_send(client.server.fileno())
    giving_up.join()
    # The daemon shuts it down, so all that was sent and then the end comes, though this process has it open still.
    got = bytes(first) + client.reads(len(data)).end()
    assert len(got) < len(data) and data.startswith(got)


def test_a_connection_goes_to_no_other_threads_pool(zoned, plain):
    """A reader that was not used may be collected anywhere."""
    objects = Objects(zoned, plain)
    objects.put(data=os.urandom(1_000_000))
    readers = [reader_of(objects)]
    assert readers[0].can_zero_copy_send()
    sender, idle = readers[0]._fp._sender, []

    def collects():
        readers.clear()
        idle.extend(sender._pool._idle())

    collecting = threading.Thread(target=collects)
    collecting.start()
    collecting.join()
    assert idle == [] and sender._connection.sock is None


REFUSED = b'{"kind": "unknown_call", "message": "there is no such call"}'


@pytest.mark.parametrize("answer", [b"HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n%b" % (len(REFUSED), REFUSED), None])
def test_a_daemon_that_takes_no_sockets_is_no_error(tmp_path, answer):
    script = Script(tmp_path / "s", [[answer]])
    transport = Transport(str(tmp_path / "s"), 2, 10)
    assert transport.handing("/sending", "zonestore-sending") is None
    if answer:
        # And is not asked each time.
        assert transport.handing("/sending", "zonestore-sending") is None
        assert script.requests == [b"GET /sending"]


def test_what_is_no_socket_is_refused(zoned, plain, tmp_path):
    objects = Objects(zoned, plain)
    objects.put(data=os.urandom(1_000_000))
    reader = reader_of(objects)
    assert reader.can_zero_copy_send()
    with open(tmp_path / "file", "wb") as file, pytest.raises(OSError, match="no socket"):
        reader.zero_copy_send(file.fileno())
    assert (tmp_path / "file").read_bytes() == b""
