"""An object's metadata as the bytes that the drive keeps: one byte of version, then JSON.

Swift's strings hold WSGI bytes as surrogates. They go through UTF-8 with `surrogateescape` as in Swift's own files, so that both back
ends give back the same string. JSON escapes what is not ASCII, so the frame itself is plain text.
"""

import json

VERSION = 1


class UnknownVersion(ValueError):
    pass


def _native(item):
    if isinstance(item, str):
        item = item.encode("utf8", "surrogateescape")
    return item.decode("utf8", "surrogateescape") if isinstance(item, bytes) else item


def encode(metadata):
    native = {_native(key): _native(value) for key, value in metadata.items()}
    return bytes([VERSION]) + json.dumps(native, separators=(",", ":")).encode("ascii")


def decode(frame):
    """Raises `UnknownVersion`, or `ValueError` for what is no metadata."""
    if not frame:
        raise ValueError("metadata are missing")
    if frame[0] != VERSION:
        raise UnknownVersion(f"metadata have version {frame[0]}, this package reads {VERSION}: a newer one wrote them")
    metadata = json.loads(frame[1:])
    if not isinstance(metadata, dict):
        raise ValueError("metadata are no table")
    return metadata
