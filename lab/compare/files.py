"""File systems on the drive, used as a gateway of objects uses them: a put is a new file that is
written, synced, renamed to its name, and its directory synced."""

import errno
import os
import pathlib

from drive import Failed, run

LAB = pathlib.Path(__file__).resolve().parent.parent.parent / "target" / "lab" / "newer"
MOUNT = "/mnt/compared"
FOLDERS = 16


class Full(Exception):
    """The system says that there is no space."""


class Damaged(Exception):
    """The system noticed that what it read is not what was written."""


def tool(name, *arguments, check=True):
    """A program of the newer Debian, with that Debian's libraries."""
    root = LAB / "tools" / "usr"
    program = next((path for path in (root / "sbin" / name, root / "bin" / name) if path.exists()), None)
    if program is None:
        raise Failed(f"{name} is not in {root}: lab/newer")
    return run(root / "lib64" / "ld-linux-x86-64.so.2", "--library-path", root / "lib" / "x86_64-linux-gnu",
               program, *arguments, check=check)


class FileSystem:
    # Without it a put is answered before anything is durable: the control of the power cuts.
    syncs = True
    modules = ()
    mkfs = ()
    options = ()

    def format(self, drive):
        self.device = drive.path
        for module in self.modules:
            run("modprobe", module)
        os.makedirs(MOUNT, exist_ok=True)
        self.make()
        self.start()
        for number in range(FOLDERS):
            os.mkdir(f"{MOUNT}/{number:02}")
        self.sync()

    def make(self):
        tool(*self.mkfs, self.device)

    def start(self):
        run("mount", *self.options, self.device, MOUNT)

    def sync(self):
        run("sync", "-f", MOUNT)

    def stop(self):
        run("umount", MOUNT)

    def abandon(self):
        """After the power is gone: whatever is still mounted goes, and nothing has to succeed."""
        run("umount", MOUNT, check=False)
        if os.path.ismount(MOUNT):
            run("umount", "-l", MOUNT, check=False)

    def place(self, key):
        folder = sum(key.encode()) % FOLDERS
        return f"{MOUNT}/{folder:02}", f"{MOUNT}/{folder:02}/{key}"

    def put(self, key, data):
        folder, path = self.place(key)
        temporary = f"{path}.new"
        try:
            with open(temporary, "wb", buffering=0) as file:
                view = memoryview(data)
                while view:
                    view = view[file.write(view):]
                if self.syncs:
                    os.fsync(file.fileno())
            os.rename(temporary, path)
            if not self.syncs:
                return
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            try:
                os.unlink(temporary)
            except OSError:
                pass
            # btrfs also says "try again" when no zone is to be had.
            if error.errno in (errno.ENOSPC, errno.EAGAIN):
                raise Full(os.strerror(error.errno)) from error
            raise

    def get(self, key):
        try:
            return pathlib.Path(self.place(key)[1]).read_bytes()
        except OSError as error:
            if error.errno in (errno.EIO, errno.EUCLEAN):
                raise Damaged(os.strerror(error.errno)) from error
            raise

    def delete(self, key):
        os.unlink(self.place(key)[1])

    def database(self, arguments):
        """db_bench in a directory of this file system."""
        folder = f"{MOUNT}/database"
        os.makedirs(folder)
        return run("db_bench", f"--db={folder}", *arguments, timeout=1800)


class Xfs(FileSystem):
    label = "XFS, zoned"
    modules = ("xfs",)
    mkfs = ("mkfs.xfs", "-f", "-r", "zoned=1")


class F2fs(FileSystem):
    label = "F2FS"
    modules = ("f2fs",)
    mkfs = ("mkfs.f2fs", "-f", "-m")


class Btrfs(FileSystem):
    label = "btrfs"
    modules = ("btrfs",)
    mkfs = ("mkfs.btrfs", "-f")


class OnDmZoned(FileSystem):
    """A file system that knows nothing of zones, on the kernel's translation layer."""

    def format(self, drive):
        run("modprobe", "dm-zoned")
        self.drive = drive
        tool("dmzadm", "--format", drive.path)
        self.attach()
        below = drive.path
        drive.path = self.mapped
        try:
            super().format(drive)
        finally:
            drive.path = below

    def attach(self):
        tool("dmzadm", "--start", self.drive.path)
        self.name = tool("dmsetup", "ls", "--target", "zoned").split()[0]
        self.mapped = f"/dev/mapper/{self.name}"
        if not os.path.exists(self.mapped):
            tool("dmsetup", "mknodes")

    def start(self):
        if not self.is_attached():
            self.attach()
        super().start()

    def is_attached(self):
        return "No devices" not in tool("dmsetup", "ls", "--target", "zoned", check=False)

    def stop(self):
        super().stop()
        tool("dmsetup", "remove", self.name)

    def abandon(self):
        super().abandon()
        tool("dmsetup", "remove", "--force", self.name, check=False)


class Ext4OnDmZoned(OnDmZoned):
    label = "dm-zoned with ext4"
    modules = ("ext4",)

    def make(self):
        # The machine's own mke2fs: ext4 needs nothing new.
        run("mke2fs", "-q", "-F", "-t", "ext4", self.device)


class XfsOnDmZoned(OnDmZoned):
    label = "dm-zoned with XFS"
    modules = ("xfs",)
    mkfs = ("mkfs.xfs", "-f")
