"""Servers with a configuration, and what has to be waited for when it changes."""

import os
import signal
import time

from zonestore import TIMEOUT, Server, make_drive

ADMIN = ("admin", "the admin's secret")


def key(access_key, secret_key, rights=None):
    """A key's entry; without rights, one that may do everything."""
    may = "admin = true" if rights is None else "rights = [{}]".format(
        ", ".join(f'{{ bucket = "{bucket}", may = {list(may)} }}' for bucket, may in rights)
    )
    return f'[[key]]\naccess_key = "{access_key}"\nsecret_key = "{secret_key}"\n{may}\n'


def write(path, text, mode=0o600):
    """Writes a file whole, as an editor does."""
    new = path.with_name(path.name + ".new")
    new.write_text(text)
    new.chmod(mode)
    os.replace(new, path)


class Configured(Server):
    """A server whose configuration is in `folder`."""

    def __init__(self, folder, text="", size="256MiB"):
        self.config = folder / "zonestore.toml"
        write(self.config, key(*ADMIN) + text)
        super().__init__(make_drive(folder / "d.zoned", size), "--config", str(self.config))

    def configure(self, text):
        """Exchanges the configuration and has it read at once."""
        write(self.config, text)
        self.hang_up()

    def hang_up(self):
        # Lines of the start, which may still come, have names of tests.
        def answers():
            return self.said("configuration read") + self.said("configuration stays")

        before = answers()
        self.process.send_signal(signal.SIGHUP)
        self.wait_until(lambda: answers() > before)

    def said(self, words):
        """How many lines of the log have these words."""
        return sum(words in line for line in list(self.output))

    def wait_until(self, true):
        deadline = time.monotonic() + TIMEOUT
        while not true():
            assert time.monotonic() < deadline and self.alive(), "".join(self.output[-50:])
            time.sleep(0.02)

    def as_admin(self, **options):
        return self.client(*ADMIN, **options)
