//! Every decoder of the metadata of smrfs (docs/format/smrfs.md); and records with a right hash behind a file system that was
//! just made, which is mounted then, used, and mounted once more.

#![no_main]

use caveat::{Bits, CaveatDevice, CaveatShape};
use device::MemoryDrive;
use libfuzzer_sys::fuzz_target;
use runtime::Runtime;
use smrfs::{Error, FileSystem, Medium, MkfsOptions, MountOptions, NewInode, ROOT, Rename};
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use zone::{Geometry, ZoneKind};
use zone_alloc::Pressure;

fuzz_target!(|input: &[u8]| {
    let Some((choice, bytes)) = input.split_first() else {
        return;
    };
    match choice % 8 {
        0 => smrfs::fuzz(bytes),
        choice => mounted(choice as usize - 1, bytes),
    }
});

/// Bands beside conventional zones, in sequential ones alone, with whole files; on a Caveat-Scriptor drive, cleaned, with whole
/// files; and, last, bands with preallocated blocks, so that the journal is of version 2.
const KINDS: usize = 7;

fn is_caveat(kind: usize) -> bool {
    (3..6).contains(&kind)
}

fn file() -> NewInode {
    NewInode {
        mode: 0o100_644,
        uid: 0,
        gid: 0,
        rdev: 0,
    }
}

fn medium(kind: usize, drive: Arc<MemoryDrive>, damaged: Option<Bits>) -> Medium {
    if !is_caveat(kind) {
        return Medium::Bands(drive);
    }
    let shape = CaveatShape {
        block_size: 4096,
        isolation_distance: 3,
        no_overlap_range: 1,
        unshingled_bytes: 1 << 20,
    };
    let drive = CaveatDevice::in_memory(drive, &shape, damaged).expect("it has room");
    Medium::Caveat(Arc::new(drive))
}

fn mount(medium: &Medium) -> Result<FileSystem, Error> {
    let options = MountOptions {
        buffer_bytes: 64 << 10,
        ..MountOptions::default()
    };
    FileSystem::mount_on(medium, Runtime::seeded(2), options)
}

/// A drive with a file of a few blocks, a directory with another one, and a link.
fn made(kind: usize) -> (MemoryDrive, Option<Bits>) {
    let conventional = match kind {
        1 => 0,
        kind if is_caveat(kind) => 24,
        _ => 4,
    };
    let geometry = Geometry {
        block_size: 4096,
        zone_size: 256 << 10,
        zone_capacity: 256 << 10,
        zone_count: 24,
        conventional_zones: conventional,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 8,
        max_active_zones: 10,
        max_append_bytes: 0,
    };
    let drive = Arc::new(MemoryDrive::new(geometry).expect("a shape that can be"));
    let medium = medium(kind, drive.clone(), None);
    let options = MkfsOptions {
        whole_files: matches!(kind, 2 | 5),
        clean_when_full: kind == 4,
        ..MkfsOptions::default()
    };
    FileSystem::mkfs_on(&medium, &Runtime::seeded(1), &options).expect("an empty drive");
    let fs = mount(&medium).expect("it was made");
    let fill = || {
        let a = fs.create(ROOT, b"a", file())?.ino;
        fs.write(a, 0, &[1; 20_000])?;
        let directory = NewInode {
            mode: 0o040_755,
            ..file()
        };
        let d = fs.create(ROOT, b"d", directory)?.ino;
        let b = fs.create(d, b"b", file())?.ino;
        fs.write(b, 8192, &[2; 5000])?;
        if kind == 6 {
            fs.preallocate(b, 0, 30_000, true)?;
        }
        fs.symlink(d, b"l", b"a", (0, 0))?;
        fs.sync()
    };
    fill().expect("there is room");
    drop(fs);
    let damaged = match &medium {
        Medium::Bands(_) => None,
        Medium::Caveat(drive) => Some(drive.damage_without_power()),
    };
    (drive.snapshot(), damaged)
}

fn mounted(kind: usize, records: &[u8]) {
    static MADE: OnceLock<Vec<(MemoryDrive, Option<Bits>)>> = OnceLock::new();
    let made = &MADE.get_or_init(|| (0..KINDS).map(made).collect())[kind];
    let medium = medium(kind, Arc::new(made.0.snapshot()), made.1.clone());
    smrfs::append_to_journal(&medium, records).expect("the journal has room");
    let Ok(fs) = mount(&medium) else {
        return;
    };
    let synced = used(&fs);
    drop(fs);
    let fs = mount(&medium).expect("it was mounted");
    if synced.is_ok() {
        let mut found = [0; 9000];
        let new = fs.lookup(ROOT, b"new").expect("it was synced").ino;
        assert!(
            fs.read(new, 0, &mut found)
                .is_ok_and(|length| length == 9000)
                && found == [7; 9000]
        );
    }
    let _ = fs.check(true);
    let _ = used(&fs);
}

/// Whatever a user might do. What fails says so; a file that was written is synced then.
fn used(fs: &FileSystem) -> Result<(), Error> {
    let _ = fs.status();
    let (mut seen, mut left) = (BTreeSet::from([ROOT]), vec![ROOT]);
    let mut files = Vec::new();
    while let Some(directory) = left.pop() {
        for entry in fs.list(directory, 0, 100).unwrap_or_default() {
            if seen.insert(entry.ino) {
                left.push(entry.ino);
                files.push((directory, entry));
            }
        }
    }
    for (directory, entry) in &files {
        let ino = entry.ino;
        let size = fs.attributes(ino).map_or(0, |attributes| attributes.size);
        let mut some = [0; 6000];
        for offset in [0, size / 2, size.saturating_sub(100)] {
            let _ = fs.read(ino, offset, &mut some);
            let _ = fs
                .seek(ino, offset, true)
                .and_then(|_| fs.seek(ino, offset, false));
        }
        let _ = fs.read_link(ino);
        let _ = fs.xattrs(ino);
        let _ = fs.sectors(ino);
        let _ = fs.append(ino, b"more");
        let _ = fs.write(ino, 5000, &[3; 5000]);
        let _ = fs.punch(ino, 1000, 9000);
        let _ = fs.preallocate(ino, 3000, 20_000, true);
        let _ = fs.truncate(ino, 4000);
        let _ = fs.link(ino, ROOT, b"linked");
        let _ = fs.rename(
            (*directory, &entry.name),
            (ROOT, b"renamed"),
            Rename::Replace,
        );
        let _ = fs.unlink(ROOT, b"linked");
        let _ = fs.unlink(ROOT, b"renamed");
        let _ = fs.rmdir(ROOT, b"renamed");
    }
    let _ = fs.unlink(ROOT, b"new");
    let new = fs.create(ROOT, b"new", file())?.ino;
    fs.write(new, 0, &[7; 9000])?;
    fs.sync()?;
    let _ = fs.tick();
    let _ = fs.clean(Pressure::Any);
    let _ = fs.status();
    Ok(())
}
