"""An archive of `fs backup`, and what can be wrong with one."""

import io
import json
import tarfile
from hashlib import sha256

from backup import SUMMARY
from checksums import crc32c

FOLDER = "backup-1"
FILES = {"db/000007.sst": b"".join(b"row %05d\n" % row for row in range(2000)), "db/empty": b"", "top": b"top\n"}


def make(golden):
    golden.drive("d.zoned")
    golden.run("fs", "mkfs", "d.zoned")
    for path, content in FILES.items():
        golden.run("fs", "put", "d.zoned", "-", path, stdin=content)
    golden.run("fs", "backup", "d.zoned", "whole.tar")
    whole = (golden.scratch / "whole.tar").read_bytes()
    files = {f"/{path}": [len(content), sha256(content).hexdigest()] for path, content in FILES.items()}
    golden.keep("whole", whole, about="as `fs backup` writes it", exit_code=0, directories=["/db"], files=files)
    refuse(golden, "cut", whole[: len(whole) // 2 // 512 * 512], 6, "half of the archive")
    at = whole.index(b"row 01000")
    refuse(golden, "content", flipped(whole, at), 6, "a flipped bit in a file")
    at = whole.index(b'"bytes"')
    refuse(golden, "summary", flipped(whole, at + 9), 6, "a flipped bit in what names all files")
    members, summary = unpack(whole)
    refuse(golden, "no-summary", pack(members), 6, "the last file is another one")
    refuse(golden, "fewer", pack(members[:-1] + [summarized(summary)]), 6, "a file is missing")
    more = members + [("more", b"more")]
    refuse(golden, "more", pack(more + [summarized(summary)]), 6, "a file too many")
    refuse(golden, "not-last", pack(members + [summarized(summary), ("more", b"more")]), 6, "something behind the last file")
    for version in (0, 2):
        other = pack(members + [summarized({**summary, "version": version})])
        refuse(golden, f"version-{version}", other, 6, "another version")


def refuse(golden, name, content, code, about):
    base = "whole" if name in ("cut", "content", "summary") else None
    golden.keep(name, content, base, about=about, exit_code=code, says=[], refused=True)


def flipped(content, at):
    return content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :]


def unpack(archive):
    members = []
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            members.append((member.name, tar.extractfile(member).read() if member.isfile() else None))
    (_, text), members = members[-1], members[:-1]
    return members, json.loads(text.rsplit(b"\n", 2)[0])


def summarized(summary):
    text = json.dumps(summary, separators=(",", ":")).encode()
    return SUMMARY, b"%s\n%08x\n" % (text, crc32c(text))


def pack(members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.type = tarfile.DIRTYPE if content is None else tarfile.REGTYPE
            member.size = len(content or b"")
            tar.addfile(member, io.BytesIO(content or b""))
    return out.getvalue()
