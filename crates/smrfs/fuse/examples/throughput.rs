//! Sequential writing and reading through FUSE: file systems of smrfs beside the plainest one that hands requests on to a
//! file of the host.
//!
//!     cargo run --release -p smrfs-fuse --example throughput -- DIRECTORY [MEBIBYTES] [ROUNDS]
//!
//! Needs root. Writing ends with fsync; what is read is not in the kernel's cache. Prints the median of the rounds, which take turns.

#![allow(clippy::unwrap_used)]

use caveat::{CaveatDevice, CaveatShape};
use device::{FileDrive, ZonedDevice};
use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, WriteFlags,
};
use runtime::Runtime;
use smrfs::{FileSystem, Medium, MkfsOptions, MountOptions};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};
use zone::{Geometry, ZoneKind};

const LIFETIME: Duration = Duration::from_secs(1);
const MIB: u64 = 1 << 20;

/// One file in one directory.
struct Plain(File);

fn attributes(ino: u64, size: u64) -> FileAttr {
    FileAttr {
        ino: INodeNo(ino),
        size,
        blocks: size.div_ceil(512),
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: match ino {
            1 => FileType::Directory,
            _ => FileType::RegularFile,
        },
        perm: 0o755,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

impl Plain {
    fn of(&self, ino: u64) -> FileAttr {
        attributes(ino, self.0.metadata().unwrap().len())
    }
}

impl Filesystem for Plain {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let _ = config.set_max_write(1 << 20);
        let _ = config.set_max_readahead(1 << 20);
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO & config.capabilities());
        Ok(())
    }

    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match name == "file" && self.0.metadata().unwrap().len() > 0 {
            true => reply.entry(&LIFETIME, &self.of(2), Generation(0)),
            false => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&LIFETIME, &self.of(ino.0));
    }

    fn create(
        &self,
        _: &Request,
        _: INodeNo,
        _: &OsStr,
        _: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let flags = FopenFlags::FOPEN_KEEP_CACHE;
        reply.created(&LIFETIME, &self.of(2), Generation(0), FileHandle(0), flags);
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut buffer = vec![0; size as usize];
        let length = self.0.read_at(&mut buffer, offset).unwrap();
        reply.data(&buffer[..length]);
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        self.0.write_all_at(data, offset).unwrap();
        reply.written(data.len() as u32);
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.0.sync_data().unwrap();
        reply.ok();
    }
}

fn geometry(conventional: bool, mebibytes: u64) -> Geometry {
    let zones = (2 * mebibytes / 16 + 40) as u32;
    Geometry {
        block_size: 4096,
        zone_size: 16 * MIB,
        zone_capacity: 16 * MIB,
        zone_count: zones,
        conventional_zones: if conventional { zones } else { 2 },
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 0,
        max_active_zones: 0,
        max_append_bytes: 0,
    }
}

/// Seconds of writing a file, and of reading it.
fn transfer(place: &Path, mebibytes: u64) -> (f64, f64) {
    let mut data = vec![0; MIB as usize];
    data.iter_mut()
        .enumerate()
        .for_each(|(n, byte)| *byte = (n * 7 % 251) as u8);
    let start = Instant::now();
    let mut file = File::create(place.join("file")).unwrap();
    (0..mebibytes).for_each(|_| file.write_all(&data).unwrap());
    file.sync_all().unwrap();
    let written = start.elapsed().as_secs_f64();
    drop(file);
    std::fs::write("/proc/sys/vm/drop_caches", "1").unwrap();
    let start = Instant::now();
    let mut file = File::open(place.join("file")).unwrap();
    while file.read(&mut data).unwrap() > 0 {}
    (written, start.elapsed().as_secs_f64())
}

fn smrfs(folder: &Path, caveat: bool, mebibytes: u64) -> (f64, f64) {
    let (drive, place) = (folder.join("d.zoned"), folder.join("mnt"));
    let _ = std::fs::remove_file(&drive);
    let made = FileDrive::create(&drive, &geometry(caveat, mebibytes), "throughput").unwrap();
    let made: Arc<dyn ZonedDevice> = Arc::new(made);
    let shape = CaveatShape {
        block_size: 4096,
        isolation_distance: 16,
        no_overlap_range: 6,
        unshingled_bytes: 32 * MIB,
    };
    let medium = match caveat {
        true => Medium::Caveat(Arc::new(CaveatDevice::create(made, &shape).unwrap())),
        false => Medium::Bands(made),
    };
    let runtime = Runtime::system();
    FileSystem::mkfs_on(&medium, &runtime, &MkfsOptions::default()).unwrap();
    let options = MountOptions::default();
    let fs = Arc::new(FileSystem::mount_on(&medium, runtime.clone(), options).unwrap());
    let mounted = smrfs_fuse::mount(fs, &runtime, &place, &smrfs_fuse::Options::default()).unwrap();
    let seconds = transfer(&place, mebibytes);
    mounted.unmount().unwrap();
    std::fs::remove_file(&drive).unwrap();
    seconds
}

fn plain(folder: &Path, mebibytes: u64) -> (f64, f64) {
    let (path, place) = (folder.join("plain"), folder.join("mnt"));
    let mut options = File::options();
    let file = options.read(true).write(true).create(true).truncate(true);
    let plain = Plain(file.open(&path).unwrap());
    let mut config = Config::default();
    config.mount_options = vec![MountOption::FSName("plain".to_owned())];
    config.n_threads = Some(4);
    config.clone_fd = true;
    let session = fuser::spawn_mount(plain, &place, &config).unwrap();
    let seconds = transfer(&place, mebibytes);
    session.umount_and_join().unwrap();
    std::fs::remove_file(path).unwrap();
    seconds
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(folder) = arguments.first().map(PathBuf::from) else {
        eprintln!("usage: throughput DIRECTORY [MEBIBYTES] [ROUNDS]");
        std::process::exit(2);
    };
    let number = |n: usize, usual| arguments.get(n).map_or(usual, |text| text.parse().unwrap());
    let (mebibytes, rounds) = (number(1, 1024), number(2, 5));
    std::fs::create_dir_all(folder.join("mnt")).unwrap();
    let mut all = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..rounds {
        all[0].push(plain(&folder, mebibytes));
        all[1].push(smrfs(&folder, false, mebibytes));
        all[2].push(smrfs(&folder, true, mebibytes));
    }
    let median = |rows: &[(f64, f64)], of: fn(&(f64, f64)) -> f64| {
        let mut times: Vec<f64> = rows.iter().map(of).collect();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let base = (median(&all[0], |t| t.0), median(&all[0], |t| t.1));
    for (name, rows) in ["plain file", "strict append", "Caveat-Scriptor"]
        .iter()
        .zip(&all)
    {
        let (write, read) = (median(rows, |t| t.0), median(rows, |t| t.1));
        let rate = |seconds: f64| mebibytes as f64 / seconds;
        println!(
            "{name:16} write {:6.0} MiB/s ({:.2})   read {:6.0} MiB/s ({:.2})",
            rate(write),
            base.0 / write,
            rate(read),
            base.1 / read
        );
    }
}
