"""Flushes of a drive file that fail, or that nobody answers, from a moment on."""

import subprocess

SOURCE = r"""
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static int is_there(const char *how) {
    char name[4096];
    const char *folder = getenv("FLUSHES");
    return folder && snprintf(name, sizeof name, "%s/%s", folder, how) > 0 && access(name, F_OK) == 0;
}
int fdatasync(int file) {
    while (is_there("hang")) usleep(20000);
    if (is_there("fail")) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fdatasync, file);
}
"""


class Flushes:
    """Those of servers that are started with this environment."""

    def __init__(self, folder, monkeypatch):
        self.folder = folder
        (folder / "flushes.c").write_text(SOURCE)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "flushes.so", folder / "flushes.c"], check=True)
        monkeypatch.setenv("LD_PRELOAD", str(folder / "flushes.so"))
        monkeypatch.setenv("FLUSHES", str(folder))

    def fail(self):
        (self.folder / "fail").touch()

    def hang(self):
        (self.folder / "hang").touch()

    def go_on(self):
        (self.folder / "hang").unlink(missing_ok=True)
