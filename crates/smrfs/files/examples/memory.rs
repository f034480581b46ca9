//! What metadata takes in memory: bytes for each file, extent and block, by what the process has grown.
//!
//!     cargo run -p smrfs --example memory -- [FILES]

#![allow(clippy::unwrap_used)]

use device::MemoryDrive;
use runtime::Runtime;
use smrfs::{FileSystem, MkfsOptions, MountOptions, NewInode, ROOT};
use std::sync::Arc;
use zone::{Geometry, ZoneKind};

/// Bytes of anonymous memory that the process has.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    kib.unwrap().parse::<u64>().unwrap() << 10
}

fn main() {
    let files: u64 = std::env::args()
        .nth(1)
        .map_or(200_000, |text| text.parse().unwrap());
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
    let runtime = Runtime::system();
    let device = Arc::new(MemoryDrive::new(geometry).unwrap());
    FileSystem::mkfs(device.clone(), &runtime, &MkfsOptions::default()).unwrap();
    let mount = || {
        let options = MountOptions {
            buffer_bytes: 1 << 20,
            ..MountOptions::default()
        };
        FileSystem::mount(device.clone(), runtime.clone(), options).unwrap()
    };
    // What a mount reads is all that there is: no buffer, nothing that waits for a commit.
    let grown = |what: &str, count: u64, base: u64| {
        let before = resident();
        let fs = mount();
        let bytes = resident().saturating_sub(before);
        println!(
            "{what}: {:.0} bytes each",
            bytes.saturating_sub(base) as f64 / count as f64
        );
        drop(fs);
        bytes
    };
    let new = NewInode {
        mode: libc::S_IFREG | 0o644,
        uid: 0,
        gid: 0,
        rdev: 0,
    };
    let fs = mount();
    for n in 0..files {
        fs.create(ROOT, format!("file number {n:08}").as_bytes(), new)
            .unwrap();
        if n % 5_000 == 4_999 {
            fs.sync().unwrap();
        }
    }
    fs.sync().unwrap();
    drop(fs);
    let base = grown("empty files with names of 20 bytes", files, 0);
    let fs = mount();
    for n in 0..files {
        let ino = fs
            .lookup(ROOT, format!("file number {n:08}").as_bytes())
            .unwrap()
            .ino;
        fs.write(ino, 0, b"x").unwrap();
    }
    fs.sync().unwrap();
    drop(fs);
    let base = grown("extents of one block more", files, base);
    let fs = mount();
    let ino = fs.create(ROOT, b"large", new).unwrap().ino;
    let (blocks, piece) = (files, vec![0; 1 << 20]);
    for at in 0..blocks / 256 {
        fs.write(ino, at << 20, &piece).unwrap();
    }
    fs.sync().unwrap();
    drop(fs);
    grown("blocks of a large file more", blocks, base);
}
