"""What plyvel can do, on one database; the second run finds what the first has left."""

import sys

import plyvel

db = plyvel.DB("/py/db", create_if_missing=True, write_buffer_size=128 << 10, bloom_filter_bits=10)
if db.get(b"done"):
    assert db.get(b"batch-1") == b"b1"
    assert sum(1 for _ in db.iterator(prefix=b"key")) == 4500
    db.close()
    plyvel.repair_db("/py/db")
    plyvel.destroy_db("/py/db")
    try:
        plyvel.DB("/py/db", create_if_missing=False)
    except plyvel.Error:
        sys.exit(0)
    sys.exit("it was not destroyed")

for number in range(5000):
    db.put(b"key%05d" % number, b"value %d" % number * 10)
with db.write_batch(transaction=True, sync=True) as batch:
    batch.put(b"batch-1", b"b1")
    batch.delete(b"key00000")
snapshot = db.snapshot()
for number in range(0, 5000, 10):
    db.delete(b"key%05d" % number, sync=number % 1000 == 0)
assert snapshot.get(b"key00010") and db.get(b"key00010") is None
assert snapshot.get(b"key00000") is None
del snapshot
db.compact_range()
assert b"Compactions" in db.get_property(b"leveldb.stats")
assert db.approximate_size(b"a", b"z") > 10_000
backwards = [key for key, _ in db.iterator(start=b"key00001", stop=b"key00012", reverse=True)]
assert backwards == [b"key000%s" % n for n in (b"11 09 08 07 06 05 04 03 02 01").split()], backwards
numbers = db.prefixed_db(b"number-")
numbers.put(b"1", b"one")
assert db.get(b"number-1") == b"one"
try:
    plyvel.DB("/py/db")
    sys.exit("opened twice")
except plyvel.IOError:
    pass
db.put(b"done", b"yes")
db.close()
assert db.closed
