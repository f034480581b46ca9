"""Calls to several drives, side by side, with a deadline for each: one that hangs holds up no other."""

from swift.common.concurrency import GreenPool, Timeout

ANSWER_SECONDS = 1.5


def each(names, call, late=lambda name: None, seconds=ANSWER_SECONDS):
    """What `call` says of each, by name; what `late` says of those of which that says nothing in time."""
    def within(name):
        with Timeout(seconds, False):
            return call(name)
        return late(name)

    names = list(names)
    return dict(zip(names, GreenPool(max(1, len(names))).imap(within, names)))
