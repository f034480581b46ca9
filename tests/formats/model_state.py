"""Reads what docs/format/model-state.md says of a model's state: all but the model's own types."""

import struct
from dataclasses import dataclass

from checksums import crc64_nvme

MAGIC = b"ZSMODEL\0"
VERSION = 5
HEADER_BYTES = 48


class Refused(Exception):
    """Not a state that may be gone on with."""


@dataclass
class State:
    profile: int
    clock_nanoseconds: int
    model: bytes


def read(content, profile_text):
    if len(content) < HEADER_BYTES or content[:8] != MAGIC:
        raise Refused("magic")
    version, _reserved, profile, clock, length, checksum = struct.unpack_from("<IIQQQQ", content, 8)
    if version != VERSION:
        raise Refused("version")
    model = content[HEADER_BYTES:]
    if length != len(model):
        raise Refused("length")
    if checksum != crc64_nvme(content[:40] + model):
        raise Refused("checksum")
    if profile != crc64_nvme(profile_text):
        raise Refused("profile")
    return State(profile, clock, model)
