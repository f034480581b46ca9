//! Translates the kernel's FUSE requests to calls of the file system. Errors of the drive, and damage, are logged.

use crate::translate::{self, errno};
use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, IoctlFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyLseek, ReplyOpen,
    ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use smrfs::{Attributes, Error, FileSystem, NewInode, SetAttributes, SetXattr};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// How long the kernel may answer from its own cache. Files change only through the kernel.
const LIFETIME: Duration = Duration::from_secs(1);
const GENERATION: Generation = Generation(0);
/// Most bytes of one write or read request.
const MAX_REQUEST: u32 = 1 << 20;
/// Number of directory entries fetched at once.
const ENTRIES: usize = 256;
/// The extended attribute of every inode that holds the file system's status as JSON. Listings do not show it.
pub const STATUS: &str = "user.zonestore.smrfs";

/// The FUSE server of a mounted file system.
#[derive(Debug)]
pub struct Adaptor {
    fs: Arc<FileSystem>,
    block_size: u32,
}

impl Adaptor {
    /// An adaptor for `fs`.
    pub fn new(fs: Arc<FileSystem>) -> Self {
        let block_size = fs.shape().block_size;
        Self { fs, block_size }
    }

    fn attributes(&self, attributes: &Attributes) -> FileAttr {
        let sectors = match attributes.is_file() {
            true => self.fs.sectors(attributes.ino),
            false => 0,
        };
        translate::attributes(attributes, sectors, self.block_size)
    }

    fn entry(&self, what: &str, found: Result<Attributes, Error>, reply: ReplyEntry) {
        match found {
            Ok(found) => reply.entry(&LIFETIME, &self.attributes(&found), GENERATION),
            Err(error) => reply.error(told(what, &error)),
        }
    }
}

fn told(what: &str, error: &Error) -> Errno {
    if error.is_of_drive() {
        tracing::error!(what, %error, "a request failed");
    }
    errno(error)
}

fn done(what: &str, result: Result<(), Error>, reply: ReplyEmpty) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(told(what, &error)),
    }
}

/// Access control lists would have to be enforced by the kernel, which does not do so for such mounts.
fn is_refused(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b"system.")
}

impl Filesystem for Adaptor {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // An older kernel may support smaller values; it works with its own then.
        let _ = config.set_max_write(MAX_REQUEST);
        let _ = config.set_max_readahead(MAX_REQUEST);
        let _ = config.set_time_granularity(Duration::from_nanos(1));
        let wanted = InitFlags::FUSE_PARALLEL_DIROPS | InitFlags::FUSE_ASYNC_DIO;
        let _ = config.add_capabilities(wanted & config.capabilities());
        Ok(())
    }

    fn destroy(&mut self) {
        if let Err(error) = self.fs.sync() {
            tracing::error!(%error, "the last commit of a mount failed");
        }
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.entry("lookup", self.fs.lookup(parent.0, name.as_bytes()), reply);
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.fs.attributes(ino.0) {
            Ok(found) => reply.attr(&LIFETIME, &self.attributes(&found)),
            Err(error) => reply.error(told("getattr", &error)),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        ctime: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let set = SetAttributes {
            mode,
            uid,
            gid,
            atime: atime.map(translate::set_time),
            mtime: mtime.map(translate::set_time),
            ctime: ctime.map(translate::time),
        };
        let result = size
            .map_or(Ok(()), |size| self.fs.truncate(ino.0, size))
            .and_then(
                |()| match set == SetAttributes::default() && size.is_some() {
                    true => self.fs.attributes(ino.0),
                    false => self.fs.set_attributes(ino.0, set),
                },
            );
        match result {
            Ok(found) => reply.attr(&LIFETIME, &self.attributes(&found)),
            Err(error) => reply.error(told("setattr", &error)),
        }
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        match self.fs.read_link(ino.0) {
            Ok(target) => reply.data(&target),
            Err(error) => reply.error(told("readlink", &error)),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        let new = NewInode {
            mode,
            uid: request.uid(),
            gid: request.gid(),
            rdev,
        };
        let made = self.fs.create(parent.0, name.as_bytes(), new);
        self.entry("mknod", made, reply);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        let new = NewInode {
            mode: libc::S_IFDIR | mode & 0o7777,
            uid: request.uid(),
            gid: request.gid(),
            rdev: 0,
        };
        let made = self.fs.create(parent.0, name.as_bytes(), new);
        self.entry("mkdir", made, reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done("unlink", self.fs.unlink(parent.0, name.as_bytes()), reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done("rmdir", self.fs.rmdir(parent.0, name.as_bytes()), reply);
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let owner = (request.uid(), request.gid());
        let target = target.as_os_str().as_bytes();
        let made = self.fs.symlink(parent.0, name.as_bytes(), target, owner);
        self.entry("symlink", made, reply);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        to: INodeNo,
        new: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let Some(how) = translate::rename(flags) else {
            reply.error(Errno::EINVAL);
            return;
        };
        let (from, to) = ((parent.0, name.as_bytes()), (to.0, new.as_bytes()));
        done("rename", self.fs.rename(from, to, how), reply);
    }

    fn link(&self, _: &Request, ino: INodeNo, to: INodeNo, new: &OsStr, reply: ReplyEntry) {
        self.entry("link", self.fs.link(ino.0, to.0, new.as_bytes()), reply);
    }

    fn open(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.fs.open(ino.0) {
            // All changes come through the kernel, so its cache stays valid across opens.
            Ok(()) => reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE),
            Err(error) => reply.error(told("open", &error)),
        }
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let new = NewInode {
            mode: libc::S_IFREG | mode & 0o7777,
            uid: request.uid(),
            gid: request.gid(),
            rdev: 0,
        };
        match self.fs.create_open(parent.0, name.as_bytes(), new) {
            Ok(made) => reply.created(
                &LIFETIME,
                &self.attributes(&made),
                GENERATION,
                FileHandle(0),
                FopenFlags::FOPEN_KEEP_CACHE,
            ),
            Err(error) => reply.error(told("create", &error)),
        }
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut buffer = vec![0; size as usize];
        match self.fs.read(ino.0, offset, &mut buffer) {
            Ok(length) => reply.data(&buffer[..length]),
            Err(error) => reply.error(told("read", &error)),
        }
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.fs.write(ino.0, offset, data) {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(told("write", &error)),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // Closing a file makes nothing durable.
        reply.ok();
    }

    fn release(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.fs.release(ino.0);
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        done("fsync", self.fs.sync(), reply);
    }

    fn opendir(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.fs.open(ino.0) {
            Ok(()) => reply.opened(FileHandle(0), FopenFlags::empty()),
            Err(error) => reply.error(told("opendir", &error)),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let entries = match self.fs.list(ino.0, offset, ENTRIES) {
            Ok(entries) => entries,
            Err(error) => {
                reply.error(told("readdir", &error));
                return;
            }
        };
        for entry in entries {
            let kind = translate::kind(entry.kind);
            let name = OsStr::from_bytes(&entry.name);
            if reply.add(INodeNo(entry.ino), entry.cookie, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.fs.release(ino.0);
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        done("fsyncdir", self.fs.sync(), reply);
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let space = self.fs.space();
        let blocks = |bytes: u64| bytes / u64::from(space.block_size);
        let free = blocks(space.capacity_bytes.saturating_sub(space.used_bytes));
        // Free space that cannot be used is not available.
        let available = blocks(space.available_bytes);
        let metadata = space
            .metadata_capacity_bytes
            .saturating_sub(space.metadata_bytes);
        // 256 bytes: an inode with a name of usual length.
        let inodes = metadata / 256;
        reply.statfs(
            blocks(space.capacity_bytes),
            free,
            available,
            space.inodes + inodes,
            inodes,
            space.block_size,
            255,
            space.block_size,
        );
    }

    fn setxattr(
        &self,
        _: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        if is_refused(name) || name == STATUS {
            reply.error(Errno::EOPNOTSUPP);
            return;
        }
        let how = match flags {
            libc::XATTR_CREATE => SetXattr::Create,
            libc::XATTR_REPLACE => SetXattr::Replace,
            _ => SetXattr::Any,
        };
        done(
            "setxattr",
            self.fs.set_xattr(ino.0, name.as_bytes(), value, how),
            reply,
        );
    }

    fn getxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        if is_refused(name) {
            reply.error(Errno::EOPNOTSUPP);
            return;
        }
        if name == STATUS {
            let status = serde_json::to_vec(&self.fs.status()).unwrap_or_default();
            give(&status, size, reply);
            return;
        }
        match self.fs.xattr(ino.0, name.as_bytes()) {
            Ok(value) => give(&value, size, reply),
            Err(error) => reply.error(told("getxattr", &error)),
        }
    }

    fn listxattr(&self, _: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        match self.fs.xattrs(ino.0) {
            Ok(names) => {
                let mut list = Vec::new();
                for name in names {
                    list.extend_from_slice(&name);
                    list.push(0);
                }
                give(&list, size, reply);
            }
            Err(error) => reply.error(told("listxattr", &error)),
        }
    }

    fn removexattr(&self, _: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(
            "removexattr",
            self.fs.remove_xattr(ino.0, name.as_bytes()),
            reply,
        );
    }

    fn fallocate(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let keep_size = mode & libc::FALLOC_FL_KEEP_SIZE != 0;
        let made = match mode & !libc::FALLOC_FL_KEEP_SIZE {
            0 => self.fs.preallocate(ino.0, offset, length, keep_size),
            libc::FALLOC_FL_ZERO_RANGE => self.fs.zero(ino.0, offset, length, keep_size),
            libc::FALLOC_FL_PUNCH_HOLE if keep_size => self.fs.punch(ino.0, offset, length),
            // Operations that move bytes within a file are seldom used, and programs work without them.
            _ => Err(smrfs::Error::Unsupported),
        };
        done("fallocate", made, reply);
    }

    /// No ioctl is supported. Programs use it on any file to ask whether it is a terminal, or for its flags.
    fn ioctl(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: IoctlFlags,
        _: u32,
        _: &[u8],
        _: u32,
        reply: ReplyIoctl,
    ) {
        reply.error(Errno::ENOTTY);
    }

    fn lseek(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let (Ok(from), libc::SEEK_DATA | libc::SEEK_HOLE) = (u64::try_from(offset), whence) else {
            reply.error(Errno::EINVAL);
            return;
        };
        match self.fs.seek(ino.0, from, whence == libc::SEEK_HOLE) {
            Ok(Some(found)) => reply.offset(i64::try_from(found).unwrap_or(i64::MAX)),
            Ok(None) => reply.error(Errno::ENXIO),
            Err(error) => reply.error(told("lseek", &error)),
        }
    }
}

/// Replies with the value if it fits `size`; with its length if `size` is 0.
fn give(value: &[u8], size: u32, reply: ReplyXattr) {
    if size == 0 {
        reply.size(value.len() as u32);
    } else if value.len() > size as usize {
        reply.error(Errno::ERANGE);
    } else {
        reply.data(value);
    }
}
