//! Commands to the drive that fail, one or all of them.

use super::{Disk, mkfs, new_file};
use crate::common::{
    KIB, Kind, Model, Operation, Seen, assert_clean, carry_out, contents, geometry, seeds, seen,
};
use device::changed::Changed;
use device::faults::{Fault, Faults, Plan};
use device::{MemoryDrive, ZonedDevice};
use runtime::Runtime;
use smrfs::{
    Error, FileSystem, MkfsOptions, MountOptions, NewInode, ROOT, SetAttributes, SetXattr,
};
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use zone::{ZoneAddress, ZoneCommand, ZoneCondition, ZoneId};

/// Runs with a plan of failures: what may be found afterwards.
fn run(device: &Arc<Faults<Arc<MemoryDrive>>>, runtime: &Runtime, seed: u64) -> Option<Vec<Seen>> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut model = Model::default();
    let options = MountOptions {
        buffer_bytes: 64 * KIB,
        ..MountOptions::default()
    };
    let fs = FileSystem::mount(device.clone(), runtime.clone(), options).ok()?;
    let mut allowed = vec![model.seen()];
    for _ in 0..80 {
        let operation = model.random(&mut random);
        let mut after = model.clone();
        let expected = after.apply(&operation);
        let answer = carry_out(&fs, &operation);
        match &answer {
            Err(error) if error.errno() == libc::EIO => {
                // Not done, or a write of which a part may be; nothing else fails for it.
                if matches!(
                    operation,
                    Operation::Write(..)
                        | Operation::Punch(..)
                        | Operation::Preallocate(..)
                        | Operation::Zero(..)
                ) {
                    return Some(allowed_after(allowed, &after));
                }
                continue;
            }
            _ => assert_eq!(
                answer.map_err(|error| error.errno()),
                expected,
                "{operation:?}"
            ),
        }
        let is_sync = matches!(operation, Operation::Sync);
        model = after;
        let mut found = model.clone();
        found.remount();
        if is_sync {
            allowed.clear();
        }
        allowed.push(found.seen());
    }
    Some(allowed)
}

fn allowed_after(mut allowed: Vec<Seen>, after: &Model) -> Vec<Seen> {
    let mut found = after.clone();
    found.remount();
    allowed.push(found.seen());
    allowed
}

#[test]
fn the_kth_command_fails_and_what_was_synced_is_there() {
    let commands = [
        ZoneCommand::Write,
        ZoneCommand::Read,
        ZoneCommand::Flush,
        ZoneCommand::Reset,
    ];
    for seed in seeds(1) {
        for command in commands {
            for kth in 1..20 {
                for fault in [Fault::Io(ErrorKind::Other), Fault::Torn { bytes: 4096 }] {
                    let inner = Arc::new(MemoryDrive::new(geometry(30, 4)).unwrap());
                    let runtime = mkfs(&inner, &MkfsOptions::default());
                    let device = Arc::new(Faults::new(inner.clone()));
                    device.add(Plan::at(command, kth, fault));
                    let Some(allowed) = run(&device, &runtime, seed) else {
                        continue;
                    };
                    let fs = FileSystem::mount(inner, runtime, MountOptions::default()).unwrap();
                    let found = seen(&fs, []).unwrap();
                    assert!(allowed.contains(&found), "{command:?} {kth}: {found:?}");
                    assert_clean(&fs);
                }
            }
        }
    }
}

/// The last block has to be read for its other bytes, and cannot be.
#[test]
fn a_write_that_fails_leaves_each_block_old_or_new() {
    const BLOCK: usize = 4096;
    for whole_files in [false, true] {
        let device = Arc::new(MemoryDrive::new(geometry(24, 4)).unwrap());
        let runtime = mkfs(
            &device,
            &MkfsOptions {
                whole_files,
                ..MkfsOptions::default()
            },
        );
        let mount = || {
            let options = MountOptions::default();
            FileSystem::mount(device.clone(), runtime.clone(), options).unwrap()
        };
        let fs = mount();
        let ino = fs.create(ROOT, b"a", new_file()).unwrap().ino;
        let old: Vec<u8> = (1..=8).flat_map(|n| [n; BLOCK]).collect();
        fs.write(ino, 0, &old).unwrap();
        fs.sync().unwrap();
        drop(fs);
        let mut zone = vec![0; device.geometry().zone_capacity as usize];
        device
            .read(device.geometry().start(ZoneId(4)), &mut zone)
            .unwrap();
        let bad = zone.chunks(BLOCK).position(|block| block == [6; BLOCK]);
        let bad = ZoneAddress::new(ZoneId(4), (bad.unwrap() * BLOCK) as u64);
        device.decay(bad, 1, |bytes| bytes[0] ^= 1);

        let fs = mount();
        let failed = fs.write(ino, 0, &[9; 5 * BLOCK + 100]).unwrap_err();
        assert!(matches!(failed, Error::DamagedData { .. }), "{failed}");
        let look = |fs: &FileSystem| {
            for n in [0, 1, 2, 3, 4, 6, 7] {
                let mut found = [0; BLOCK];
                fs.read(ino, (n * BLOCK) as u64, &mut found).unwrap();
                let was = &old[n * BLOCK..][..BLOCK];
                assert!(found == was || (n < 5 && found == [9; BLOCK]), "block {n}");
            }
        };
        look(&fs);
        let _ = fs.sync();
        look(&fs);
        drop(fs);
        look(&mount());
    }
}

/// While no commit succeeds, what waits for one takes no more memory than some.
#[test]
fn without_commits_memory_stays_within_bounds() {
    let inner = Arc::new(MemoryDrive::new(geometry(60, 24)).unwrap());
    let runtime = mkfs(&inner, &MkfsOptions::default());
    let device = Arc::new(Changed {
        drive: inner,
        change: Disk(AtomicU64::new(20 << 20)),
    });
    let fs = FileSystem::mount(device.clone(), runtime.clone(), MountOptions::default()).unwrap();
    let ino = fs.create(ROOT, b"file", new_file()).unwrap().ino;
    device.change.0.store(100 << 10, Ordering::Relaxed);
    let set = || fs.set_attributes(ino, SetAttributes::default());
    let refused = (0..200_000).find_map(|_| set().err());
    assert!(matches!(refused, Some(Error::HostFull)), "{refused:?}");
    device.change.0.store(30 << 20, Ordering::Relaxed);
    set().unwrap();
    fs.sync().unwrap();
    assert_clean(&fs);
    drop(fs);

    let kind = Kind::Caveat {
        distance: 3,
        range: 0,
        cleaned: false,
    };
    let memory = MemoryDrive::new(kind.geometry(40)).unwrap();
    let device = Arc::new(Faults::new(memory));
    let medium = kind.medium(device.clone(), None);
    FileSystem::mkfs_on(&medium, &runtime, &MkfsOptions::default()).unwrap();
    let options = MountOptions {
        buffer_bytes: 64 * KIB,
        ..MountOptions::default()
    };
    let fs = FileSystem::mount_on(&medium, runtime, options).unwrap();
    let ino = fs.create(ROOT, b"file", new_file()).unwrap().ino;
    let full = Fault::Io(ErrorKind::StorageFull);
    device.add(Plan::from(ZoneCommand::Write, 1, full));
    let accepted = (0..50).filter(|n| fs.write(ino, n * 64 * KIB, &[1; 64 << 10]).is_ok());
    assert!(accepted.count() <= 1);
    let buffered = fs.space().buffered_bytes;
    assert!(buffered <= 64 * KIB + (1 << 20), "{buffered}");
}

/// A file system with data in its buffer that no zone takes any more, and an inode to change.
fn without_zones() -> (FileSystem, u64) {
    let device = Arc::new(MemoryDrive::new(geometry(24, 4)).unwrap());
    let runtime = mkfs(&device, &MkfsOptions::default());
    let fs = FileSystem::mount(device.clone(), runtime, MountOptions::default()).unwrap();
    let [file, other] =
        [b"file", b"more"].map(|name| fs.create(ROOT, name, new_file()).unwrap().ino);
    fs.write(other, 0, &[1; 40_960]).unwrap();
    fs.sync().unwrap();
    fs.write(file, 0, &[1; 40_960]).unwrap();
    for zone in 4..24 {
        device
            .set_condition(ZoneId(zone), ZoneCondition::ReadOnly)
            .unwrap();
    }
    (fs, other)
}

/// Nothing can be committed, and much waits: what helps is not refused.
#[test]
fn removals_go_on_where_nothing_can_be_written() {
    for removal in ["unlink", "rmdir", "truncate", "punch"] {
        let (fs, other) = without_zones();
        let directory = NewInode {
            mode: libc::S_IFDIR | 0o755,
            ..new_file()
        };
        fs.create(ROOT, b"directory", directory).unwrap();
        let file = fs.lookup(ROOT, b"file").unwrap().ino;
        // Each commit finds out about a few of the zones.
        assert!((0..20).any(|_| matches!(fs.sync(), Err(Error::NoSpace))));
        let change = || fs.set_xattr(other, b"user.a", &[1; 4096], SetXattr::Any);
        let refused = (0..4000).find_map(|_| change().err());
        assert!(matches!(refused, Some(Error::NoSpace)), "{refused:?}");
        match removal {
            "unlink" => fs.unlink(ROOT, b"file"),
            "rmdir" => fs.rmdir(ROOT, b"directory"),
            "truncate" => fs.truncate(file, 0),
            _ => fs.punch(file, 0, 40_960),
        }
        .unwrap_or_else(|error| panic!("{removal}: {error}"));
        assert_eq!(change().is_ok(), removal != "rmdir", "{removal}");
        assert_eq!(fs.sync().is_ok(), removal != "rmdir", "{removal}");
    }
}

/// The range is zeros and preallocated, or nothing has changed, although the records of the first part are one too many
/// to go on without a commit, and that fails.
#[test]
fn a_range_is_zeroed_as_a_whole_beside_a_commit_that_fails() {
    let large = |fs: &FileSystem, ino| fs.set_xattr(ino, b"user.a", &[1; 4096], SetXattr::Any);
    let small = |fs: &FileSystem, ino| {
        let set = fs.set_attributes(ino, SetAttributes::default());
        set.map(|_| ())
    };
    let until_refused = |change: &dyn Fn() -> Result<(), Error>| (0..).find(|_| change().is_err());
    let (fs, ino) = without_zones();
    let many = until_refused(&|| large(&fs, ino)).unwrap() - 1;
    let (fs, ino) = without_zones();
    (0..many).for_each(|_| large(&fs, ino).unwrap());
    let few = until_refused(&|| small(&fs, ino)).unwrap() - 1;
    let (fs, ino) = without_zones();
    (0..many).for_each(|_| large(&fs, ino).unwrap());
    (0..few).for_each(|_| small(&fs, ino).unwrap());
    let zeroed = fs.zero(ino, 4096, 8192, true);
    let found = contents(&fs, ino).unwrap();
    let expected = if zeroed.is_ok() { 0 } else { 1 };
    assert!(found[4096..12_288].iter().all(|byte| *byte == expected));
    assert!(small(&fs, ino).is_err());
}
