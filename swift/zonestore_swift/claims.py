"""The right to write what follows a table of turns: one coordinator has it, whoever else believes that it leads.

A counter in memcached for each table; who counts the first has the right, for a second. If nothing was written then for longer than any
write is under way, the next counter is asked for.
"""

from swift.common.exceptions import MemcacheConnectionError

CLAIM = "zonestore/turns/after"
# Whoever has the right begins to write within this.
WRITE_SECONDS = 1.0
# Behind it nothing of that arrives any more: Swift's client of memcached waits for two seconds.
OVER_SECONDS = 4.0
# Longer than any table lives that nobody renews (news.KEPT_SECONDS).
KEPT_SECONDS = 60


class Claims:
    def __init__(self, memcache, clock):
        self.memcache, self.clock = memcache, clock
        # Which table, which of its counters, and since when that one is known to be used up.
        self.table, self.attempt, self.taken = None, 0, None

    def claim(self, table):
        """Until when the successor of the table of this name may be written; None if that is not ours."""
        if table != self.table:
            self.table, self.attempt, self.taken = table, 0, None
        if self.taken is not None:
            if self.clock() - self.taken < OVER_SECONDS:
                return None
            self.attempt, self.taken = self.attempt + 1, None
        now = self.clock()
        try:
            count = self.memcache.incr(f"{CLAIM}/{table}/{self.attempt}", time=KEPT_SECONDS)
        except MemcacheConnectionError:
            return None
        # Ours too is used up: if this write does not come, the next one takes another counter.
        self.taken = self.clock()
        return now + WRITE_SECONDS if count == 1 else None
