"""Reads an archive of `fs backup` as docs/format/backup.md says."""

import io
import json
import tarfile

from checksums import crc32c

SUMMARY = ".zonestore-backup"
VERSION = 1


class Refused(Exception):
    """Nothing of the archive may be restored."""


def read(archive):
    """Directories, and files with their contents, in the order of the archive."""
    directories, files = [], []
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
            for member in tar:
                if member.isdir():
                    directories.append("/" + member.name)
                elif member.isfile():
                    files.append(("/" + member.name, tar.extractfile(member).read()))
                else:
                    raise Refused(f"{member.name} is neither file nor directory")
    except tarfile.TarError as error:
        raise Refused(error) from None
    if not files or files[-1][0] != "/" + SUMMARY:
        raise Refused("the last file is another one")
    summary = checked(files.pop()[1])
    if summary["version"] != VERSION:
        raise Refused(f"version {summary['version']}")
    found = [{"path": path, "bytes": len(data), "crc32c": crc32c(data)} for path, data in files]
    if summary["directories"] != directories or summary["files"] != found:
        raise Refused("the archive does not hold what it names")
    return directories, dict(files)


def checked(summary):
    """The JSON object, if the checksum behind it is right."""
    lines = summary.split(b"\n")
    if len(lines) < 3 or lines[-1] != b"" or len(lines[-2]) != 8:
        raise Refused("no checksum")
    text = b"\n".join(lines[:-2])
    if int(lines[-2], 16) != crc32c(text):
        raise Refused("checksum")
    return json.loads(text)
