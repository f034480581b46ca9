"""The daemon's answer to `open`: a head, metadata of the files that count, and the data if they are short."""

import json

LENGTH = 4


class Opened:
    """`metadata` maps a file name to its frame. `held` is the id under which longer data can be read."""

    def __init__(self, head, metadata, first):
        # In the order that Swift's choice takes, which of two names of one fragment prefers the first.
        self.files = sorted(head["files"], reverse=True)
        self.data_file = head.get("data")
        self.size = head.get("size")
        self.held = head.get("opened")
        self.metadata = metadata
        self.first = first

    @classmethod
    def nothing(cls):
        return cls({"files": []}, {}, b"")

    @classmethod
    def decode(cls, answer):
        frames = iter(_frames(answer))
        head = json.loads(next(frames))
        metadata = {head[role]: next(frames) for role in head["metadata"]}
        return cls(head, metadata, next(frames, b""))


def _frames(answer):
    at = 0
    while at < len(answer):
        length = int.from_bytes(answer[at:at + LENGTH], "little")
        at += LENGTH
        if at + length > len(answer):
            raise ValueError("the daemon's answer ends inside a frame")
        yield answer[at:at + length]
        at += length
