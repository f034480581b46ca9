//! What metadata takes in memory: bytes for each file, extent and block, by what a new process has after a mount.
//!
//!     cargo run -p smrfs --example memory -- DRIVE [FILES]
//!
//! DRIVE is made, and removed in the end.

#![allow(clippy::unwrap_used)]

use device::{FileDrive, ZonedDevice};
use runtime::Runtime;
use smrfs::{FileSystem, MkfsOptions, MountOptions, NewInode, ROOT};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use zone::{Geometry, ZoneKind};

/// Bytes of anonymous memory that the process has.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    kib.unwrap().parse::<u64>().unwrap() << 10
}

fn mount(path: &Path, read_only: bool) -> FileSystem {
    let device: Arc<dyn ZonedDevice> = match read_only {
        true => Arc::new(FileDrive::open_read_only(path).unwrap()),
        false => Arc::new(FileDrive::open(path).unwrap()),
    };
    let options = MountOptions {
        read_only,
        buffer_bytes: 1 << 20,
        ..MountOptions::default()
    };
    FileSystem::mount(device, Runtime::system(), options).unwrap()
}

/// In a process of its own: what a mount reads is all that there is, no buffer, nothing that waits for a commit.
fn grown(path: &Path) -> u64 {
    let program = std::env::current_exe().unwrap();
    let told = Command::new(program)
        .arg("--mount")
        .arg(path)
        .output()
        .unwrap();
    String::from_utf8(told.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [first, rest @ ..] = arguments.as_slice() else {
        eprintln!("usage: memory DRIVE [FILES]");
        std::process::exit(2);
    };
    if first == "--mount" {
        let before = resident();
        let fs = mount(Path::new(&rest[0]), true);
        println!("{}", resident() - before);
        drop(fs);
        return;
    }
    let path = Path::new(first);
    let files: u64 = rest.first().map_or(200_000, |text| text.parse().unwrap());
    let zone_size = 256 << 20;
    let geometry = Geometry {
        block_size: 4096,
        zone_size,
        zone_capacity: zone_size,
        zone_count: 64,
        conventional_zones: 4,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 0,
        max_active_zones: 0,
        max_append_bytes: 0,
    };
    let device = Arc::new(FileDrive::create(path, &geometry, "memory").unwrap());
    FileSystem::mkfs(device, &Runtime::system(), &MkfsOptions::default()).unwrap();
    let empty = grown(path);
    println!("an empty file system of 16 GiB: {} KiB", empty >> 10);
    let new = NewInode {
        mode: libc::S_IFREG | 0o644,
        uid: 0,
        gid: 0,
        rdev: 0,
    };
    let name = |n: u64| format!("file number {n:08}").into_bytes();
    let each = |what: &str, bytes: u64, base: u64, count: u64| {
        println!("{what}: {} bytes each", bytes.saturating_sub(base) / count);
    };
    let fs = mount(path, false);
    for n in 0..files {
        fs.create(ROOT, &name(n), new).unwrap();
        if n % 5_000 == 4_999 {
            fs.sync().unwrap();
        }
    }
    fs.sync().unwrap();
    drop(fs);
    let inodes = grown(path);
    each("empty files with names of 20 bytes", inodes, empty, files);
    let fs = mount(path, false);
    for n in 0..files {
        let ino = fs.lookup(ROOT, &name(n)).unwrap().ino;
        fs.write(ino, 0, b"x").unwrap();
    }
    fs.sync().unwrap();
    drop(fs);
    let extents = grown(path);
    each("an extent of one block in each", extents, inodes, files);
    let fs = mount(path, false);
    let ino = fs.create(ROOT, b"large", new).unwrap().ino;
    let piece = vec![0; 1 << 20];
    let mebibytes = files.min(1 << 20) / 256;
    for at in 0..mebibytes {
        fs.write(ino, at << 20, &piece).unwrap();
    }
    fs.sync().unwrap();
    drop(fs);
    each(
        "blocks of a large file",
        grown(path),
        extents,
        mebibytes * 256,
    );
    std::fs::remove_file(path).unwrap();
}
