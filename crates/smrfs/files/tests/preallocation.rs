//! Space that was set aside is there when it is written, whatever else fills the drive.

use crate::common;
use crate::common::{Kind, assert_clean, contents};
use device::MemoryDrive;
use runtime::Runtime;
use smrfs::{Error, FileSystem, Fit, Free, Medium, MkfsOptions, MountOptions, NewInode, ROOT};
use std::sync::Arc;

const BLOCK: u64 = 4096;

const KINDS: [Kind; 4] = [
    Kind::Bands(4),
    Kind::Bands(0),
    Kind::Caveat {
        distance: 16,
        range: 6,
        cleaned: false,
    },
    Kind::Caveat {
        distance: 3,
        range: 0,
        cleaned: true,
    },
];

struct Place {
    medium: Medium,
    options: MountOptions,
}

impl Place {
    fn new(kind: Kind, whole_files: bool, fit: Fit) -> Self {
        let device = Arc::new(MemoryDrive::new(kind.geometry(40)).unwrap());
        let medium = kind.medium(device, None);
        let options = MkfsOptions {
            whole_files,
            clean_when_full: kind.is_cleaned(),
            ..MkfsOptions::default()
        };
        FileSystem::mkfs_on(&medium, &Runtime::seeded(1), &options).unwrap();
        let options = MountOptions {
            buffer_bytes: 256 << 10,
            fit,
            ..MountOptions::default()
        };
        Self { medium, options }
    }

    fn mount(&self) -> FileSystem {
        FileSystem::mount_on(&self.medium, Runtime::seeded(2), self.options).unwrap()
    }
}

fn create(fs: &FileSystem, name: &str) -> u64 {
    let new = NewInode {
        mode: libc::S_IFREG | 0o644,
        uid: 0,
        gid: 0,
        rdev: 0,
    };
    fs.create(ROOT, name.as_bytes(), new).unwrap().ino
}

/// Files of a few blocks, until there is no room at all.
fn fill(fs: &FileSystem, random: &mut fastrand::Rng, prefix: &str) {
    for size in [40, 7, 1] {
        for n in 0.. {
            let ino = create(fs, &format!("{prefix}{size}-{n}"));
            let length = random.usize(1..=size) * BLOCK as usize;
            match fs.write(ino, 0, &vec![9; length]) {
                Ok(()) => {}
                Err(Error::NoSpace) => break,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

fn every_block_is_written(kind: Kind, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let place = Place::new(kind, false, Fit::ALL[seed as usize % 5]);
    let mut fs = place.mount();
    // Holes everywhere, to begin with.
    fill(&fs, &mut random, "a");
    fs.sync().unwrap();
    for entry in fs.list(ROOT, 2, usize::MAX).unwrap() {
        if random.u8(0..5) < 3 {
            fs.unlink(ROOT, &entry.name).unwrap();
        }
    }
    let (blocks, ino) = (300, create(&fs, "wanted"));
    fs.sync().unwrap();
    let before = fs.space();
    fs.preallocate(ino, 0, 200 * BLOCK, false).unwrap();
    fs.preallocate(ino, 150 * BLOCK, 150 * BLOCK, true).unwrap();
    let after = fs.space();
    assert_eq!(after.preallocated_bytes, blocks * BLOCK);
    assert_eq!(after.used_bytes, before.used_bytes + blocks * BLOCK);
    assert!(after.available_bytes + blocks * BLOCK <= before.available_bytes);
    assert_eq!(fs.sectors(ino), blocks * 8);
    assert_eq!(fs.attributes(ino).unwrap().size, 200 * BLOCK);
    fill(&fs, &mut random, "b");
    fs.sync().unwrap();
    assert_clean(&fs);
    drop(fs);
    fs = place.mount();
    fill(&fs, &mut random, "c");
    let mut order: Vec<u64> = (0..blocks).collect();
    random.shuffle(&mut order);
    let mut expected = vec![0; (blocks * BLOCK) as usize];
    for (turn, block) in order.into_iter().enumerate() {
        let from = (block * BLOCK) as usize;
        // Not always whole ones.
        let (at, length) = (random.usize(0..4096), random.usize(1..4096));
        let end = (from + at + length).min(from + 4096);
        random.fill(&mut expected[from + at..end]);
        fs.write(ino, (from + at) as u64, &expected[from + at..end])
            .unwrap_or_else(|error| panic!("{kind:?}, seed {seed}, turn {turn}: {error}"));
        match random.u8(0..40) {
            0 => fs.sync().unwrap(),
            1 => {
                fs.sync().unwrap();
                drop(fs);
                fs = place.mount();
                fill(&fs, &mut random, &format!("d{turn}-"));
            }
            _ => {}
        }
    }
    fs.sync().unwrap();
    assert_clean(&fs);
    assert_eq!(fs.space().preallocated_bytes, 0);
    let size = fs.attributes(ino).unwrap().size as usize;
    assert!(contents(&fs, ino).unwrap() == expected[..size]);
}

#[test]
fn space_that_was_set_aside_is_there_on_a_full_drive() {
    for kind in KINDS {
        common::seeds(3).for_each(|seed| every_block_is_written(kind, seed));
    }
}

#[test]
fn what_is_not_there_is_not_set_aside() {
    for kind in KINDS {
        let place = Place::new(kind, false, Fit::Best);
        let fs = place.mount();
        let ino = create(&fs, "file");
        let before = fs.space();
        for length in [before.capacity_bytes + 1, 1 << 61] {
            let answer = fs.preallocate(ino, 0, length, true);
            assert!(matches!(answer, Err(Error::NoSpace)), "{answer:?}");
        }
        assert_eq!(fs.space(), before);
        let answer = fs.preallocate(ino, u64::MAX, 2, true);
        assert!(matches!(answer, Err(Error::Invalid(_))));
        // Truncation, holes and removal give it back.
        fs.preallocate(ino, 0, 64 * BLOCK, true).unwrap();
        fs.truncate(ino, 0).unwrap();
        fs.preallocate(ino, 0, 64 * BLOCK, false).unwrap();
        fs.punch(ino, 0, 32 * BLOCK).unwrap();
        assert_eq!(fs.space().preallocated_bytes, 32 * BLOCK);
        fs.sync().unwrap();
        fs.unlink(ROOT, b"file").unwrap();
        fs.sync().unwrap();
        let after = fs.space();
        assert_eq!(after.used_bytes, 0);
        assert_eq!(after.available_bytes, before.available_bytes);
        assert_clean(&fs);
    }
}

#[test]
fn no_space_is_set_aside_for_whole_files() {
    let place = Place::new(KINDS[0], true, Fit::Best);
    let fs = place.mount();
    let ino = create(&fs, "file");
    let answer = fs.preallocate(ino, 0, BLOCK, false).unwrap_err();
    assert_eq!(answer.errno(), libc::EOPNOTSUPP);
}

/// A drive is of version 2 as long as something is preallocated on it; programs that know version 1 alone read it before
/// and afterwards.
#[test]
fn a_drive_without_preallocated_space_is_of_version_1() {
    let version = |fs: &FileSystem| fs.status().version;
    let place = Place::new(KINDS[0], false, Fit::Best);
    let fs = place.mount();
    let ino = create(&fs, "file");
    fs.sync().unwrap();
    assert_eq!(version(&fs), 1);
    fs.preallocate(ino, 0, BLOCK, false).unwrap();
    fs.sync().unwrap();
    assert_eq!(version(&fs), 2);
    drop(fs);
    let fs = place.mount();
    assert_eq!(fs.space().preallocated_bytes, BLOCK);
    fs.write(ino, 0, b"one").unwrap();
    // Checkpoints come when a copy is full.
    for n in 0.. {
        fs.set_xattr(ino, b"user.a", &vec![n as u8; 60_000], Default::default())
            .unwrap();
        fs.sync().unwrap();
        if version(&fs) == 1 {
            break;
        }
        assert!(n < 1_000);
    }
    drop(fs);
    assert_clean(&place.mount());
}

/// Each small change of a file may make metadata larger. None is taken that a checkpoint would have no room for.
#[test]
fn extents_in_pieces_never_outgrow_the_metadata() {
    for kind in KINDS {
        let place = Place::new(kind, false, Fit::Best);
        let fs = place.mount();
        // As much as metadata can be, beside what files need at first.
        let ino = create(&fs, "file");
        let big = vec![1; 4 << 20];
        fs.write(ino, 0, &big).unwrap();
        fs.sync().unwrap();
        for n in 0.. {
            let name = format!("user.{n}");
            if fs
                .set_xattr(ino, name.as_bytes(), &[0; 8_000], Default::default())
                .is_err()
            {
                break;
            }
        }
        fs.sync().unwrap();
        let full = |error: &Error| matches!(error, Error::NoSpace | Error::NoMetadataSpace);
        for block in (0..big.len() as u64 / BLOCK).step_by(2) {
            let answer = match block % 3 {
                0 => fs.punch(ino, block * BLOCK, BLOCK),
                1 => fs.write(ino, block * BLOCK, b"x"),
                _ => fs.preallocate(ino, (block + 5_000) * BLOCK, BLOCK, true),
            };
            assert!(answer.as_ref().err().is_none_or(full), "{answer:?}");
        }
        fs.sync().unwrap();
        drop(fs);
        let fs = place.mount();
        assert_clean(&fs);
        fs.unlink(ROOT, b"file").unwrap();
        fs.sync().unwrap();
        create(&fs, "again");
        fs.sync().unwrap();
    }
}

/// On drives that are full in all degrees: zeros that have space, or nothing has changed.
#[test]
fn what_cannot_be_zeroed_is_as_it_was() {
    let (mut zeroed, mut refused) = (0, 0);
    let cases = KINDS.map(|kind| common::seeds(2).map(move |seed| (kind, seed)));
    for (kind, seed) in cases.into_iter().flatten() {
        let mut random = fastrand::Rng::with_seed(seed);
        let place = Place::new(kind, false, Fit::ALL[seed as usize % 5]);
        let fs = place.mount();
        fill(&fs, &mut random, "a");
        fs.sync().unwrap();
        for entry in fs.list(ROOT, 2, usize::MAX).unwrap() {
            let told = format!("{kind:?}, seed {seed}, {}", entry.ino);
            let before = contents(&fs, entry.ino).unwrap();
            let preallocated = fs.space().preallocated_bytes;
            let at = random.usize(0..=before.len());
            let length = random.usize(1..=before.len() - at + 5000);
            let keep_size = random.bool();
            let answer = fs.zero(entry.ino, at as u64, length as u64, keep_size);
            let mut expected = before;
            match answer {
                Ok(()) => {
                    zeroed += 1;
                    let end = at + length;
                    let size = expected.len();
                    expected[at..end.min(size)].fill(0);
                    if !keep_size {
                        expected.resize(size.max(end), 0);
                    }
                }
                Err(Error::NoSpace) => {
                    refused += 1;
                    fs.sync().unwrap();
                    assert_eq!(fs.space().preallocated_bytes, preallocated, "{told}");
                }
                Err(error) => panic!("{told}: {error}"),
            }
            assert!(contents(&fs, entry.ino).unwrap() == expected, "{told}");
            if random.u8(0..8) == 0 {
                fs.unlink(ROOT, &entry.name).unwrap();
                fs.sync().unwrap();
            }
        }
        fs.sync().unwrap();
        assert_clean(&fs);
        drop(fs);
        assert_clean(&place.mount());
    }
    assert!(zeroed > 20 && refused > 20, "{zeroed} {refused}");
}

/// Blocks that are set aside lie everywhere, between holes of which none has room for a footer and a block more.
#[test]
fn parts_with_space_set_aside_are_cleaned() {
    let place = Place::new(KINDS[3], false, Fit::Best);
    let fs = place.mount();
    let mut aside = Vec::new();
    for n in 0..31 {
        let file = create(&fs, &format!("file{n}"));
        fs.write(file, 0, &vec![1; 40 * BLOCK as usize]).unwrap();
        fs.sync().unwrap();
        let wanted = create(&fs, &format!("aside{n}"));
        fs.preallocate(wanted, 0, 20 * BLOCK, false).unwrap();
        fs.sync().unwrap();
        aside.push((file, wanted));
    }
    for (file, _) in &aside {
        for n in 0..6 {
            fs.punch(*file, (1 + n * 6) * BLOCK, 3 * BLOCK).unwrap();
        }
    }
    fs.sync().unwrap();
    let (space, more) = (fs.space(), create(&fs, "more"));
    let pieces = (space.capacity_bytes - space.used_bytes) / BLOCK / 4;
    for n in 0..pieces {
        fs.write(more, n * 4 * BLOCK, &[2; 4 * BLOCK as usize])
            .unwrap_or_else(|error| panic!("piece {n} of {pieces}: {error}, {:?}", fs.space()));
    }
    fs.sync().unwrap();
    assert!(fs.space().cleaned_bands > 0);
    let Free::Extents(free) = fs.space().free else {
        panic!("bands");
    };
    assert!(free.reserve_bytes > 0);
    for (_, wanted) in aside {
        fs.write(wanted, 0, &[3; 20 * BLOCK as usize]).unwrap();
        fs.sync().unwrap();
    }
    assert_clean(&fs);
}

#[test]
fn data_and_holes_are_found() {
    let place = Place::new(KINDS[0], false, Fit::Best);
    let fs = place.mount();
    let ino = create(&fs, "file");
    let write = |from: u64, blocks: u64| {
        let data = vec![1; (blocks * BLOCK) as usize];
        fs.write(ino, from * BLOCK, &data).unwrap();
    };
    // Two extents, blocks in the buffer, a hole, and a block in the buffer.
    for from in [0, 5] {
        write(from, 5);
        fs.sync().unwrap();
        write(30, 1);
        fs.sync().unwrap();
    }
    write(10, 2);
    write(20, 1);
    let size = 31 * BLOCK;
    let holes = [(0, 12), (5, 12), (11, 12), (12, 12), (20, 21), (30, 31)];
    for (from, hole) in holes {
        let found = fs.seek(ino, from * BLOCK, true).unwrap();
        assert_eq!(found, Some(hole * BLOCK), "{from}");
    }
    assert_eq!(
        fs.seek(ino, 13 * BLOCK + 7, true).unwrap(),
        Some(13 * BLOCK + 7)
    );
    for (from, data) in [(0, 0), (11, 11), (12, 20), (21, 30)] {
        let found = fs.seek(ino, from * BLOCK, false).unwrap();
        assert_eq!(found, Some(data * BLOCK), "{from}");
    }
    assert_eq!(fs.seek(ino, size, true).unwrap(), None);
}
