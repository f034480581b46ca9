"""Processes that outlive the command that starts them."""

import os
import signal
import subprocess
import time
from pathlib import Path


class Failed(Exception):
    """What went wrong, and what to do about it."""

    def __init__(self, message, hint=None):
        super().__init__(message)
        self.hint = hint


def _begun(pid):
    """When a process began, in the kernel's ticks: it tells it from a later one with its number. None: it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else int(fields[19])


class Process:
    def __init__(self, pid, begun, log):
        self.pid = pid
        self.begun = begun
        self.log = Path(log)

    @classmethod
    def of(cls, kept):
        return cls(kept["pid"], kept["begun"], kept["log"])

    def kept(self):
        return {"pid": self.pid, "begun": self.begun, "log": str(self.log)}

    def is_alive(self):
        return _begun(self.pid) == self.begun

    def send(self, which):
        """To it and to what it has started."""
        if self.is_alive():
            try:
                os.killpg(self.pid, which)
            except ProcessLookupError:
                pass

    def stop(self, seconds=20):
        self.send(signal.SIGTERM)
        until = time.monotonic() + seconds
        while self.is_alive() and time.monotonic() < until:
            time.sleep(0.05)
        self.kill()

    def kill(self):
        self.send(signal.SIGKILL)
        while self.is_alive():
            time.sleep(0.01)

    def wait_until(self, condition, seconds=90):
        """Raises if the process ends first."""
        until = time.monotonic() + seconds
        while True:
            try:
                if condition():
                    return
            except OSError:
                pass
            if not self.is_alive():
                raise Failed(f"it ended at once: {self.last_words()}", f"all of it is in {self.log}")
            if time.monotonic() > until:
                raise Failed(f"it did not get ready in {seconds} s", f"its log is {self.log}")
            time.sleep(0.05)

    def last_words(self):
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"


def start(command, log):
    with open(log, "ab") as out:
        child = subprocess.Popen(
            [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, cwd="/")
    return Process(child.pid, _begun(child.pid), log)
