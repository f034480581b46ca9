"""What a document's tables say and only a finished archive or drive shows."""

import json
import re
from pathlib import Path

import backup
import golden
from drive_file import CONDITIONS, KINDS

DOCUMENTS = Path(__file__).parents[2] / "docs" / "format"


def test_the_numbers_of_kinds_and_conditions():
    document = (DOCUMENTS / "file-drive.md").read_text()
    for field, numbers in {"kind": KINDS, "condition": CONDITIONS}.items():
        (told,) = re.findall(rf"\| entry \| \d \| 1 \| {field} \| (.*?)[;|]", document)
        found = {int(number): words for number, words in re.findall(r"(\d) ([a-z -]+)", told)}
        short = {number: name.replace("sequential_write_preferred", "preferred") for number, name in numbers.items()}
        assert {number: re.sub("[ -]", "_", words.strip()) for number, words in found.items()} == short


def test_the_fields_of_a_backup():
    document = (DOCUMENTS / "backup.md").read_text()
    _, files = backup.read(golden.image("backup-1", "whole"))
    text = golden.image("backup-1", "whole").split(b'{"version"')[1].split(b"\n")[0]
    summary = json.loads(b'{"version"' + text)
    fields = re.findall(r"^\| `(\w+)` \| (.*) \|$", document, re.M)
    assert [name for name, _ in fields] == list(summary)
    assert dict(fields)["version"] == str(summary["version"]) == str(backup.VERSION)
    assert f"version {backup.VERSION}" in document.splitlines()[0]
    of_a_file = re.findall(r"`(\w+)`", dict(fields)["files"])
    assert of_a_file == list(summary["files"][0]) and len(files) == len(summary["files"])
