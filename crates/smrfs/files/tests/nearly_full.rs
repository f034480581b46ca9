//! Drives that are nearly full: what is refused finds no room however often it is tried, and is refused soon.

use crate::common::{Kind, assert_clean};
use device::MemoryDrive;
use runtime::Runtime;
use smrfs::{Error, FileSystem, MkfsOptions, MountOptions, NewInode, ROOT};
use std::sync::Arc;

const KINDS: [Kind; 4] = [
    Kind::Bands(4),
    Kind::Bands(0),
    Kind::Caveat {
        distance: 16,
        range: 6,
        cleaned: false,
    },
    Kind::Caveat {
        distance: 16,
        range: 6,
        cleaned: true,
    },
];

struct Filling {
    fs: FileSystem,
    random: fastrand::Rng,
    names: Vec<Vec<u8>>,
    made: u64,
}

impl Filling {
    fn new(kind: Kind, whole_files: bool) -> Self {
        let device = Arc::new(MemoryDrive::new(kind.geometry(160)).unwrap());
        let medium = kind.medium(device, None);
        let options = MkfsOptions {
            whole_files,
            clean_when_full: kind.is_cleaned(),
            ..MkfsOptions::default()
        };
        FileSystem::mkfs_on(&medium, &Runtime::seeded(1), &options).unwrap();
        let options = MountOptions::default();
        Self {
            fs: FileSystem::mount_on(&medium, Runtime::seeded(2), options).unwrap(),
            random: fastrand::Rng::with_seed(3),
            names: Vec::new(),
            made: 0,
        }
    }

    fn write(&self, name: &[u8], length: usize) -> Result<(), Error> {
        let new = NewInode {
            mode: libc::S_IFREG | 0o644,
            uid: 0,
            gid: 0,
            rdev: 0,
        };
        let there = self.fs.lookup(ROOT, name);
        let ino = there.or_else(|_| self.fs.create(ROOT, name, new))?.ino;
        self.fs.write(ino, 0, &vec![length as u8; length])
    }

    /// Makes files of twice as many bytes at most until one finds no room; that one is there in part.
    fn fill(&mut self, size: usize) -> (Vec<u8>, usize) {
        loop {
            self.made += 1;
            let name = format!("file {}", self.made).into_bytes();
            let length = self.random.usize(1..2 * size);
            match self.write(&name, length) {
                Ok(()) => self.names.push(name),
                Err(error) => {
                    assert_eq!(error.errno(), libc::ENOSPC, "{error}");
                    return (name, length);
                }
            }
        }
    }

    /// Removes the file that found no room, and some others.
    fn remove(&mut self, refused: &[u8], others: usize) {
        _ = self.fs.unlink(ROOT, refused);
        for _ in 0..others {
            let name = self
                .names
                .swap_remove(self.random.usize(..self.names.len()));
            self.fs.unlink(ROOT, &name).unwrap();
        }
    }
}

/// How much metadata the buffer will take nobody knows before it is written.
#[test]
fn nothing_is_refused_that_finds_room_behind_a_sync() {
    for kind in KINDS {
        for size in [3_000, 40_000] {
            let mut filling = Filling::new(kind, false);
            for turn in 0..10 {
                let (name, length) = filling.fill(size);
                filling.fs.sync().unwrap();
                let again = filling.write(&name, length);
                assert!(again.is_err(), "{kind:?}, {size}, turn {turn}");
                filling.remove(&name, 3);
            }
            filling.fs.sync().unwrap();
            assert_clean(&filling.fs);
        }
    }
}

/// What is left at the ends of bands comes back wherever files move, and nothing is moved for it.
#[test]
fn a_whole_file_is_refused_behind_what_cleaning_gains() {
    for kind in [Kind::Bands(4), Kind::Bands(0)] {
        for size in [40_000, 90_000] {
            let mut filling = Filling::new(kind, true);
            for turn in 0..20 {
                let (name, length) = filling.fill(size);
                let before = filling.fs.counts().cleaned_zones;
                _ = filling.write(&name, length);
                let cleaned = filling.fs.counts().cleaned_zones - before;
                assert!(cleaned <= 64, "{kind:?}, {size}, turn {turn}: {cleaned}");
                // Nor does the cleaner go round when nobody waits.
                let mut ticks = 0;
                while filling.fs.tick().unwrap() {
                    ticks += 1;
                    assert!(ticks <= 64, "{kind:?}, {size}, turn {turn}");
                }
                filling.remove(&name, 3);
            }
            filling.fs.sync().unwrap();
            assert_clean(&filling.fs);
        }
    }
}
