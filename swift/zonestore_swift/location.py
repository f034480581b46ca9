"""Swift's path of an object or suffix, which is no path of the host here, and what it says to the daemon."""

from swift.common.exceptions import DiskFileError
from swift.common.storage_policy import PolicyError, split_policy_string
from swift.common.swob import HTTPBadRequest


def is_number(partition):
    """Whether the daemon can take it: 32 bits."""
    text = str(partition)
    return text.isascii() and text.isdigit() and len(text) <= 10 and int(text) < 1 << 32


def number_of(partition):
    """The partition as the daemon takes it. Requests may name anything in its place: they are answered 400."""
    if not is_number(partition):
        raise HTTPBadRequest(body=f"Invalid partition: {partition}", content_type="text/plain")
    return int(partition)


class Location:
    """Below a device: `objects[-N]/partition[/suffix[/hash[/file]]]`."""

    def __init__(self, devices, path):
        root = devices.rstrip("/") + "/"
        parts = path[len(root):].split("/") if path.startswith(root) else []
        if len(parts) < 3:
            raise DiskFileError(f"{path} is no place of an object below {devices}")
        try:
            base, policy = split_policy_string(parts[1])
        except PolicyError as error:
            raise DiskFileError(f"{path}: {error}") from error
        if base != "objects":
            raise DiskFileError(f"{path} is no place of an object")
        self.device, self.policy, self.partition = parts[0], policy, parts[2]
        self.suffix, self.hash, self.file = (parts[3:] + [None] * 3)[:3]
