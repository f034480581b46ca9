"""Processes that outlive the command that starts them."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path


# In the environment of all that is started: its log.
MARK = "ZONESTORE_PROCESS_LOG"


class Failed(Exception):
    """What went wrong, what to do about it, and the code that the command ends with: 2 if it was called wrongly."""

    def __init__(self, message, hint=None, code=1):
        super().__init__(message)
        self.hint = hint
        self.code = code


def last_words(log):
    lines = Path(log).read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"


def _begun(pid):
    """When a process began, in the kernel's ticks: it tells it from a later one with its number. None: it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" and not _other_threads(pid) else int(fields[19])


def _other_threads(pid):
    """Threads of a process without its first one: while they live, the process has its files and locks, also if the first has ended."""
    try:
        return [path for path in Path(f"/proc/{pid}/task").iterdir() if path.name != str(pid)]
    except OSError:
        return []


class Process:
    def __init__(self, pid, begun, log):
        self.pid = pid
        self.begun = begun
        self.log = Path(log)

    def is_alive(self):
        """One that ended before anybody looked has begun at no time."""
        return self.begun is not None and _begun(self.pid) == self.begun

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

    def kill(self, seconds=60):
        self.send(signal.SIGKILL)
        until = time.monotonic() + seconds
        while self.is_alive():
            if time.monotonic() > until:
                raise Failed(f"process {self.pid} was killed and does not end in {seconds} s: the kernel holds it, as it waits for a disk, say",
                             f"its log is {self.log}; give the command again once it is gone")
            time.sleep(0.01)

    def wait_until(self, condition, seconds=90):
        """Raises if the process ends first, or takes longer."""
        if not self.is_true_of_it(condition, seconds):
            raise Failed(f"it ended at once: {self.last_words()}", f"all of it is in {self.log}")

    def is_true_of_it(self, condition, seconds=90):
        """Waits; false if the process ends first. Raises if neither happens in so many seconds."""
        until = time.monotonic() + seconds
        while True:
            try:
                if condition():
                    return True
            except OSError:
                pass
            if not self.is_alive():
                return False
            if time.monotonic() > until:
                raise Failed(f"it did not get ready in {seconds} s", f"its log is {self.log}")
            time.sleep(0.05)

    def last_words(self):
        return last_words(self.log)


def start(command, log):
    with open(log, "ab") as out:
        child = subprocess.Popen(
            [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, cwd="/",
            env={**os.environ, MARK: str(log)})
    return Process(child.pid, _begun(child.pid), log)


def running(logs):
    """What was started with a log in this folder and lives, by the log's name. The system is asked, and no file: a command that was killed has
    written down nothing."""
    return {log.stem: Process(pid, _begun(pid), log) for pid, log in marked(logs) if _leads(pid)}


def end_all(logs, name=None):
    """Kills all that was started with a log below this folder, or with that log, and all that this has started in its turn."""
    for pid, log in marked(logs):
        if name in (None, log.stem):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _leads(pid):
    """Whether it was started here, and not by one that was."""
    try:
        return os.getsid(pid) == pid
    except ProcessLookupError:
        return False


def marked(logs):
    """(process, log) of all that was started with a log below this folder, and of what that has started."""
    for entry in Path("/proc").glob("[0-9]*"):
        for word in _environment(entry):
            name, _, log = os.fsdecode(word).partition("=")
            if name == MARK and Path(log).is_relative_to(logs):
                yield int(entry.name), Path(log)


def _environment(entry):
    """The words of a process's environment; none of one that has ended, or is not ours to look at."""
    begun = time.monotonic()
    try:
        # While a process becomes another program, nothing is read for a moment.
        while not (words := (entry / "environ").read_bytes()) and time.monotonic() - begun < _seconds_to_wait(entry):
            time.sleep(0.001)
    except OSError:
        # The first thread may have ended and others not.
        for thread in _other_threads(entry.name):
            with contextlib.suppress(OSError):
                if words := (thread / "environ").read_bytes():
                    return words.split(b"\0")
        return []
    return words.split(b"\0")


def _seconds_to_wait(entry):
    """For an environment of which nothing was read. Raises for a thread of the kernel, which has no program."""
    os.readlink(entry / "exe")
    start, end = (entry / "stat").read_text().rpartition(")")[2].split()[47:49]
    # An empty one stays empty, and one that is being set up begins so.
    return 0.02 if start == end != "0" else 1
