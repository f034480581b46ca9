"""Requests of a block device as the tracepoint block_rq_issue tells them, and as traces of the experiments have them."""

import re

BLOCK = 4096
EVENT = re.compile(r"\s(\d+\.\d+): block_rq_issue: \d+,\d+ (\w+) \d+ \(.*?\) (\d+) \+ (\d+) ")


def request(line):
    """Time, letters of blktrace, first block and number of blocks of a request; None if the line has none."""
    match = EVENT.search(line)
    if match:
        sector, sectors = int(match.group(3)), int(match.group(4))
        first, end = sector * 512 // BLOCK, -(-(sector + sectors) * 512 // BLOCK)
        return float(match.group(1)), match.group(2), first, end - first
    if "LOST" in line or not line.startswith("#") and "block_rq_issue" in line:
        raise SystemExit(f"not understood in a trace: {line}")
    return None


def kind(letters, first, journal_blocks=()):
    """f flush, or r read, a read ahead, w write; with d data, m metadata, j journal, s superblock."""
    if letters.startswith("F") and "W" not in letters and "R" not in letters or letters.startswith("FF"):
        return "f"
    if first in journal_blocks:
        of = "j"
    elif first == 0:
        of = "s"
    else:
        of = "m" if "M" in letters else "d"
    if "W" in letters:
        return f"w{of}"
    if "R" not in letters:
        raise SystemExit(f"a request {letters} is not expected")
    return f"{'a' if 'A' in letters else 'r'}{of}"


class Writer:
    """Lines of a stage: what it is, blocks from the end of the request before and how many, milliseconds since then."""

    def __init__(self):
        self.end, self.before = 0, None

    def line(self, time, what, first, blocks):
        passed = 0 if self.before is None else round((time - self.before) * 1000)
        words = [what] if what == "f" else [what, str(first - self.end), str(blocks)]
        if what != "f":
            self.end = first + blocks
        self.before = time
        return " ".join(words + ([f"+{passed}"] if passed else []))
