//! Files that lie in one place as a whole.

use crate::common::{Kind, assert_clean, contents};
use device::MemoryDrive;
use runtime::Runtime;
use smrfs::{FileSystem, MkfsOptions, MountOptions, NewInode, ROOT};
use std::sync::Arc;

/// What is overwritten takes room once, not beside what it overwrites.
#[test]
fn a_file_as_large_as_can_be_is_overwritten_anywhere() {
    let caveat = Kind::Caveat {
        distance: 16,
        range: 6,
        cleaned: false,
    };
    for kind in [Kind::Bands(4), caveat] {
        let device = Arc::new(MemoryDrive::new(kind.geometry(40)).unwrap());
        let medium = kind.medium(device, None);
        let options = MkfsOptions {
            whole_files: true,
            ..MkfsOptions::default()
        };
        FileSystem::mkfs_on(&medium, &Runtime::seeded(1), &options).unwrap();
        let mount = || {
            let options = MountOptions::default();
            FileSystem::mount_on(&medium, Runtime::seeded(2), options).unwrap()
        };
        let fs = mount();
        let new = NewInode {
            mode: libc::S_IFREG | 0o644,
            uid: 0,
            gid: 0,
            rdev: 0,
        };
        let ino = fs.create(ROOT, b"file", new).unwrap().ino;
        let size = (fs.most_bytes() as usize).min(2 << 20);
        let mut expected = vec![0; size];
        let mut random = fastrand::Rng::with_seed(3);
        for turn in 0..40 {
            let from = if turn == 0 { 0 } else { random.usize(0..size) };
            let end = if turn == 0 {
                size
            } else {
                random.usize(from..=size)
            };
            random.fill(&mut expected[from..end]);
            fs.write(ino, from as u64, &expected[from..end])
                .unwrap_or_else(|error| panic!("{kind:?}, turn {turn}: {error}"));
            if random.bool() {
                fs.sync().unwrap();
            }
        }
        fs.sync().unwrap();
        drop(fs);
        let fs = mount();
        assert!(contents(&fs, ino).unwrap() == expected);
        assert_clean(&fs);
    }
}
