"""Puts with plyvel until it is killed: every hundredth put is with sync, and said on standard output
once it has come back."""

import sys

import plyvel

db = plyvel.DB("/db", create_if_missing=True, write_buffer_size=64 << 10)
first = sum(1 for _ in db)
for number in range(first, 10_000_000):
    sync = number % 100 == 99
    db.put(b"%08d" % number, b"%d" % number * 20, sync=sync)
    if sync:
        print(number + 1, flush=True)
