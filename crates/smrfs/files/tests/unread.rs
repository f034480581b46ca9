//! What a program writes into a file that is on the drive is not read first where that can be helped: each such read would
//! be a seek.

use crate::common::{KIB, contents, geometry};
use device::MemoryDrive;
use device::trace::{Event, Trace};
use runtime::Runtime;
use smrfs::{FileSystem, MkfsOptions, MountOptions, NewInode, ROOT};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use zone::ZoneCommand;

#[test]
fn overwriting_a_file_and_appending_to_it_read_nothing() {
    let reads = Arc::new(AtomicU64::new(0));
    let counter = reads.clone();
    let count = move |event: &Event| {
        let is_read = event.command == ZoneCommand::Read;
        counter.fetch_add(is_read.into(), Ordering::Relaxed);
    };
    let memory = MemoryDrive::new(geometry(40, 4)).unwrap();
    let drive = Arc::new(Trace::new(memory, Arc::new(count)));
    let runtime = Runtime::seeded(1);
    FileSystem::mkfs(drive.clone(), &runtime, &MkfsOptions::default()).unwrap();
    let options = MountOptions {
        buffer_bytes: 64 * KIB,
        ..MountOptions::default()
    };
    let fs = FileSystem::mount(drive.clone(), runtime.clone(), options).unwrap();
    let new = NewInode {
        mode: libc::S_IFREG | 0o644,
        uid: 0,
        gid: 0,
        rdev: 0,
    };
    let ino = fs.create(ROOT, b"log", new).unwrap().ino;
    fs.write(ino, 0, &[1; 10_000]).unwrap();
    fs.sync().unwrap();
    let before = reads.load(Ordering::Relaxed);
    let count = || reads.load(Ordering::Relaxed) - before;

    // All that the file has, although it ends within a block.
    fs.write(ino, 0, &[2; 10_000]).unwrap();
    fs.sync().unwrap();
    // A file grows by less than a block.
    for n in 0..50 {
        fs.append(ino, &[n; 300]).unwrap();
        fs.sync().unwrap();
    }
    assert_eq!(count(), 0);

    // As much as the buffer has is kept at most, the newest of it.
    for n in 0..100_u32 {
        let file = fs.create(ROOT, n.to_string().as_bytes(), new).unwrap();
        fs.write(file.ino, 0, &[3; 100]).unwrap();
        fs.sync().unwrap();
    }
    let last = fs.lookup(ROOT, b"99").unwrap().ino;
    fs.append(last, b"kept").unwrap();
    assert_eq!(count(), 0);
    fs.append(ino, b"not kept").unwrap();
    assert_eq!(count(), 1);

    fs.sync().unwrap();
    drop(fs);
    let fs = FileSystem::mount(drive, runtime, options).unwrap();
    let mut expected = vec![2; 10_000];
    (0..50).for_each(|n| expected.extend([n; 300]));
    expected.extend(b"not kept");
    assert_eq!(contents(&fs, ino).unwrap(), expected);
}
