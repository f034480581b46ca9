//! Records with a right hash that nobody of ours wrote: what cannot be is refused by the mount that finds it, not by the next
//! one behind a checkpoint that has it too. `fuzz/src/smrfs.rs` found them.

use crate::common::geometry;
use device::MemoryDrive;
use runtime::Runtime;
use smrfs::{Error, FileSystem, Medium, MkfsOptions, MountOptions, NewInode, ROOT};
use std::sync::Arc;

fn number(out: &mut Vec<u8>, value: u64, bytes: usize) {
    out.extend_from_slice(&value.to_le_bytes()[..bytes]);
}

fn inode(ino: u64, mode: u32, links: u32, size: u64) -> Vec<u8> {
    let mut out = vec![1];
    number(&mut out, ino, 8);
    for field in [mode, 0, 0, 0, links] {
        number(&mut out, field.into(), 4);
    }
    number(&mut out, size, 8);
    out.resize(out.len() + 4 * 12, 0);
    out
}

fn name(dir: u64, ino: u64, name: &[u8]) -> Vec<u8> {
    let mut out = vec![3];
    number(&mut out, dir, 8);
    number(&mut out, ino, 8);
    number(&mut out, name.len() as u64, 4);
    out.extend_from_slice(name);
    out
}

fn remove(ino: u64) -> Vec<u8> {
    let mut out = vec![2];
    number(&mut out, ino, 8);
    out
}

fn range(kind: u8, ino: u64, from: u64, to: u64) -> Vec<u8> {
    let mut out = vec![kind];
    for field in [ino, from, to] {
        number(&mut out, field, 8);
    }
    out
}

fn extent(ino: u64, block: u64) -> Vec<u8> {
    let mut out = vec![5];
    number(&mut out, ino, 8);
    number(&mut out, block, 8);
    for field in [5, 0, 1, 7] {
        number(&mut out, field, 4);
    }
    out
}

/// Behind a root with a file, which is inode 2, and a directory, which is 3.
fn mounted(records: &[Vec<u8>]) -> Result<FileSystem, Error> {
    let medium = Medium::Bands(Arc::new(MemoryDrive::new(geometry(24, 4)).unwrap()));
    let runtime = Runtime::seeded(1);
    FileSystem::mkfs_on(&medium, &runtime, &MkfsOptions::default()).unwrap();
    let fs = FileSystem::mount_on(&medium, runtime.clone(), MountOptions::default()).unwrap();
    let new = |mode| NewInode {
        mode,
        uid: 0,
        gid: 0,
        rdev: 0,
    };
    fs.create(ROOT, b"a", new(libc::S_IFREG | 0o644)).unwrap();
    fs.create(ROOT, b"d", new(libc::S_IFDIR | 0o755)).unwrap();
    fs.sync().unwrap();
    drop(fs);
    smrfs::append_to_journal(&medium, &records.concat()).unwrap();
    FileSystem::mount_on(&medium, runtime, MountOptions::default())
}

#[test]
fn what_cannot_be_is_refused() {
    const FILE: u32 = libc::S_IFREG | 0o644;
    const DIRECTORY: u32 = libc::S_IFDIR | 0o755;
    let most = (1 << 62) / 4096;
    let cases = [
        ("a name that leads nowhere", vec![remove(2)]),
        ("a link that nobody counted", vec![name(3, 2, b"again")]),
        ("a name too few", vec![inode(2, FILE, 2, 0)]),
        ("an orphan with a name", vec![inode(2, FILE, 0, 0)]),
        (
            "a directory with two names",
            vec![name(ROOT, 3, b"e"), inode(3, DIRECTORY, 2, 0)],
        ),
        (
            "a directory in itself",
            vec![inode(6, DIRECTORY, 3, 0), name(6, 6, b"self")],
        ),
        (
            "the root in a directory",
            vec![name(3, ROOT, b"root"), inode(3, DIRECTORY, 3, 0)],
        ),
        (
            "a directory that is gone and has entries",
            vec![
                inode(6, DIRECTORY, 0, 0),
                inode(7, FILE, 1, 0),
                name(6, 7, b"x"),
            ],
        ),
        (
            "a block behind the end of every file",
            vec![extent(2, most)],
        ),
        ("the last block there is", vec![extent(2, u64::MAX)]),
        ("preallocated there", vec![range(12, 2, most - 1, most + 1)]),
        (
            "a file larger than any",
            vec![inode(2, FILE, 1, (1 << 62) + 1)],
        ),
    ];
    for (what, records) in cases {
        let mounted = mounted(&records);
        assert!(
            matches!(mounted, Err(Error::DamagedMetadata { .. })),
            "{what}: {:?}",
            mounted.map(drop)
        );
    }
    // And what can be is not.
    let mounted = mounted(&[
        inode(6, FILE, 2, 1 << 62),
        name(ROOT, 6, b"b"),
        name(3, 6, b"b"),
        extent(6, most - 1),
    ]);
    let ino = mounted.unwrap().lookup(3, b"b").unwrap().ino;
    assert_eq!(ino, 6);
}
