"""What the drive daemon refuses.

Few of these are a `DiskFileError`: Swift's ssync skips an object with such an error and may still remove it from a handoff as sent. A
daemon that is busy, stopping or away must fail the whole exchange instead.
"""

from swift.common.exceptions import DiskFileNoSpace, SwiftException


class Refused(SwiftException):
    """The daemon said no. `kind` is its word for the reason, `message` one line for people, `file` the object's file that it is about."""

    def __init__(self, kind, message, status=None, file=None):
        super().__init__(f"{message} ({kind})")
        self.kind = kind
        self.message = message
        self.status = status
        self.file = file


class NotFound(Refused):
    """No such object or file."""


class NoPolicy(Refused):
    """The policy has no room on this drive yet."""


class Gone(Refused):
    """Staged or opened data that the daemon has forgotten."""


class Damaged(Refused):
    """A checksum does not match: this copy is lost."""


class BrokenOff(Refused):
    """A body did not come to its end."""


class Busy(Refused):
    """Too much under way: ask again."""


class NoSpace(Refused, DiskFileNoSpace):
    """The drive is full. Swift answers 507."""


class Unavailable(Refused):
    """Nobody serves the drive now."""


KINDS = {
    "not_found": NotFound,
    "no_policy": NoPolicy,
    "gone": Gone,
    "damaged": Damaged,
    "broken_off": BrokenOff,
    "busy": Busy,
    "no_space": NoSpace,
    "no_drive": Unavailable,
    "stopping": Unavailable,
    "unreachable": Unavailable,
}


def refusal(kind, message, status=None, file=None):
    """The exception for an answer of this kind; kinds of later daemons are plain `Refused`."""
    return KINDS.get(kind, Refused)(kind, message, status, file)
