"""A process that forks: before it opens a database, as a daemon does, that is harmless; a child that
comes later is refused, and leaves what the parent has alone."""

import os
import sys

import plyvel


def child(work):
    """The exit code of a child that does the work and ends in the ordinary way."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        sys.exit(work())
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def daemon():
    db = plyvel.DB("/db", create_if_missing=True)
    db.put(b"daemon", b"1")
    db.close()
    return 0


def late():
    try:
        db.put(b"child", b"1", sync=True)
    except plyvel.IOError as error:
        assert b"parent" in error.args[0], error
        return 17
    return 0


assert child(daemon) == 0
db = plyvel.DB("/db")
assert db.get(b"daemon") == b"1"
db.put(b"before", b"1", sync=True)
assert child(late) == 17
db.put(b"after", b"1", sync=True)
assert [key for key, _ in db] == [b"after", b"before", b"daemon"]
