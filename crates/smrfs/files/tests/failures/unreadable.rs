//! Blocks and zones that cannot be read.

use super::{Unreadable, filled, mkfs, mount_to, new_file};
use crate::common::{KIB, assert_clean, contents, geometry, seen};
use device::changed::Changed;
use device::{MemoryDrive, ZonedDevice};
use smrfs::{Error, FileSystem, MkfsOptions, MountOptions, ROOT};
use std::sync::Arc;
use zone::{ByteOffset, ZoneAddress, ZoneCondition, ZoneId};

/// Behind the end of the journal, where nothing counts, blocks and zones that cannot be read keep nobody from the files; and no
/// metadata goes there.
#[test]
fn what_cannot_be_read_behind_the_journal_is_left() {
    let journal = 1024 * KIB;
    let cases: [(u32, &[u32], [u64; 2]); 4] = [
        (24, &[], [journal, 12 * 256 * KIB + journal]),
        (24, &[1, 13], [u64::MAX; 2]),
        (0, &[1], [u64::MAX; 2]),
        (0, &[4], [u64::MAX; 2]),
    ];
    for (conventional, zones, blocks) in cases {
        let inner = Arc::new(MemoryDrive::new(geometry(40, conventional)).unwrap());
        let runtime = mkfs(&inner, &MkfsOptions::default());
        let fs = FileSystem::mount(inner.clone(), runtime.clone(), MountOptions::default());
        let fs = fs.unwrap();
        let ino = fs.create(ROOT, b"file", new_file()).unwrap().ino;
        let mut expected = vec![1; 20_000];
        fs.write(ino, 0, &expected).unwrap();
        fs.sync().unwrap();
        drop(fs);
        for zone in zones {
            let condition = ZoneCondition::Offline;
            inner.set_condition(ZoneId(*zone), condition).unwrap();
        }
        let device = Arc::new(Changed {
            drive: inner,
            change: Unreadable(blocks),
        });
        let read_only = MountOptions {
            read_only: true,
            ..MountOptions::default()
        };
        for options in [read_only, MountOptions::default(), MountOptions::default()] {
            let fs = FileSystem::mount(device.clone(), runtime.clone(), options).unwrap();
            assert_eq!(contents(&fs, ino).unwrap(), expected);
            assert_clean(&fs);
            // Each copy of the metadata is written more than once.
            while conventional > 0 && !options.read_only && fs.counts().checkpoints < 4 {
                expected[0] ^= 1;
                fs.write(ino, 0, &expected[..1]).unwrap();
                fs.sync().unwrap();
            }
        }
    }
}

/// A block of the metadata cannot be read, each in turn. Where it is the one at the end of the current copy, the last
/// commit may have been there: nothing is written, and what is known can be read.
#[test]
fn metadata_whose_end_cannot_be_read_can_be_read() {
    let inner = Arc::new(MemoryDrive::new(geometry(40, 24)).unwrap());
    let runtime = mkfs(&inner, &MkfsOptions::default());
    let mount = |device, read_only| mount_to(device, &runtime, read_only);
    let fs = mount(inner.clone(), false).unwrap();
    let ino = fs.create(ROOT, b"file", new_file()).unwrap().ino;
    let write = |byte: u8| {
        fs.write(ino, 0, &[byte]).unwrap();
        fs.sync().unwrap();
    };
    let before = fs.counts().checkpoints;
    while fs.counts().checkpoints == before {
        write(0);
    }
    (0..9).for_each(write);
    drop(fs);
    let metadata = 24 * 256 * KIB;
    let mut last = Vec::new();
    let (mut mounted, mut damaged, mut older) = (0, 0, 0);
    for at in (0..metadata).step_by(4096) {
        let device = Arc::new(Changed {
            drive: Arc::new(inner.snapshot()),
            change: Unreadable([at, u64::MAX]),
        });
        match mount(device.clone(), false) {
            Ok(fs) => {
                assert_eq!(contents(&fs, ino).unwrap(), [8]);
                mounted += 1;
            }
            Err(Error::Unwritable(why)) if why.contains("the end of copy") => {
                let fs = mount(device, true).unwrap();
                last.extend(contents(&fs, ino).unwrap());
                assert!(fs.check(false).errors.contains_key("metadata"));
            }
            // The older copy says itself that it has ended, so what is behind it does not matter.
            Err(Error::Unwritable(why)) => {
                let mut block = [0; 4096];
                inner.read(ByteOffset(at), &mut block).unwrap();
                assert_ne!(block, [0; 4096], "{why}");
                older += 1;
            }
            Err(_) => damaged += 1,
        }
    }
    assert_eq!(last, [7, 8]);
    assert!(mounted > 900, "{mounted}");
    assert!(older > 2 && damaged > 5, "{older} {damaged}");
}

/// The power goes during a checkpoint, and a block of it cannot be read any more. The other copy has everything: it can be
/// read, and nothing is written over what is unknown. If it names that checkpoint, there was more.
#[test]
fn a_checkpoint_that_a_power_cut_tore_leaves_the_other_copy() {
    let (copy, block) = (12 * 256 * KIB, 4096);
    let inner = Arc::new(MemoryDrive::new(geometry(40, 24)).unwrap());
    let runtime = mkfs(&inner, &MkfsOptions::default());
    let mount = |device, read_only| mount_to(device, &runtime, read_only);
    let fs = mount(inner.clone(), false).unwrap();
    for n in 0..100 {
        let name = format!("{n:0>200}").into_bytes();
        fs.create(ROOT, &name, new_file()).unwrap();
    }
    let ino = fs.create(ROOT, b"file", new_file()).unwrap().ino;
    fs.write(ino, 0, &[5; 20_000]).unwrap();
    fs.sync().unwrap();
    let all = seen(&fs, []).unwrap();
    // The second copy is in use, and does not name a checkpoint in the first one.
    let torn = Arc::new(inner.snapshot());
    fs.seal().unwrap();
    drop(fs);
    let mut zone = vec![0; 256 << 10];
    for at in (0..copy).step_by(zone.len()) {
        inner.read(ByteOffset(at), &mut zone).unwrap();
        torn.write(ByteOffset(at), &zone).unwrap();
    }
    let unreadable = |drive: &Arc<MemoryDrive>, blocks| {
        Arc::new(Changed {
            drive: drive.clone(),
            change: Unreadable(blocks),
        })
    };
    for at in [block, 3 * block] {
        let device = unreadable(&torn, [at, u64::MAX]);
        let refused = mount(device.clone(), false).unwrap_err();
        assert!(matches!(refused, Error::Unwritable(_)), "{refused}");
        let fs = mount(device, true).unwrap();
        assert_eq!(seen(&fs, []).unwrap(), all);
        assert!(fs.check(false).errors.contains_key("metadata"));
        let named = mount(unreadable(&inner, [at, u64::MAX]), true).unwrap_err();
        assert!(matches!(named, Error::DamagedMetadata { .. }), "{named}");
    }
    // A drive that does not answer is not damaged.
    for blocks in [[0, copy], [block, copy + block]] {
        let silent = mount(unreadable(&torn, blocks), true).unwrap_err();
        assert!(matches!(silent, Error::Drive(_)), "{silent}");
    }
    // The torn block once anything is written over it: no checkpoint was finished there.
    torn.write(ByteOffset(block), &[0; 4096]).unwrap();
    let fs = mount(torn, false).unwrap();
    assert_eq!(seen(&fs, []).unwrap(), all);
    assert_clean(&fs);
}

/// Of two heads, one that cannot be read hides no file system, and keeps nobody from making another.
#[test]
fn a_head_that_cannot_be_read_hides_no_file_system() {
    let copy = 12 * 256 * KIB;
    let inner = Arc::new(MemoryDrive::new(geometry(40, 24)).unwrap());
    let unreadable = |blocks| {
        Arc::new(Changed {
            drive: inner.clone(),
            change: Unreadable(blocks),
        })
    };
    smrfs::is_there(&*unreadable([0, u64::MAX])).unwrap_err();
    let (runtime, ..) = filled(&inner);
    for blocks in [[0, u64::MAX], [copy, u64::MAX]] {
        assert!(smrfs::is_there(&*unreadable(blocks)).unwrap());
    }
    smrfs::is_there(&*unreadable([0, copy])).unwrap_err();
    let options = MkfsOptions::default();
    FileSystem::mkfs(unreadable([0, copy]), &runtime, &options).unwrap();
    let fs = FileSystem::mount(inner.clone(), runtime, MountOptions::default()).unwrap();
    assert_eq!(fs.space().inodes, 1);
    assert_clean(&fs);
}

/// What lies behind a block that cannot be read tells of damage before it all the same.
#[test]
fn damage_is_told_from_behind_what_cannot_be_read() {
    let inner = Arc::new(MemoryDrive::new(geometry(40, 24)).unwrap());
    let runtime = mkfs(&inner, &MkfsOptions::default());
    let fs = FileSystem::mount(inner.clone(), runtime.clone(), MountOptions::default()).unwrap();
    for n in 0..10 {
        fs.create(ROOT, &[b'a' + n], new_file()).unwrap();
        fs.sync().unwrap();
    }
    drop(fs);
    // A block of the journal, and the next one, whichever copy is in use.
    let copies = [ZoneId(0), ZoneId(12)].map(|zone| ZoneAddress::new(zone, 5 * 4096));
    for at in copies {
        inner.decay(at, 1, |bytes| bytes[0] ^= 1);
    }
    let next = copies.map(|at| u64::from(at.zone.0) * 256 * KIB + at.offset + 4096);
    let device = Arc::new(Changed {
        drive: inner,
        change: Unreadable(next),
    });
    let read_only = MountOptions {
        read_only: true,
        ..MountOptions::default()
    };
    let error = FileSystem::mount(device, runtime, read_only).unwrap_err();
    assert!(matches!(error, Error::DamagedMetadata { .. }), "{error}");
}
