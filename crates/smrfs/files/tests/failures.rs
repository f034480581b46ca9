//! Commands that fail, zones that break, bytes that change, and a drive that is full.

use crate::common::{
    KIB, Kind, Model, Operation, Seen, assert_clean, carry_out, contents, geometry, seeds, seen,
};
use caveat::{CaveatDevice, CaveatShape};
use device::changed::{Change, Changed};
use device::faults::{Fault, Faults, Plan};
use device::{MemoryDrive, ZonedDevice};
use runtime::Runtime;
use smrfs::{
    Error, FileSystem, Fit, MkfsOptions, MountOptions, NewInode, ROOT, SetAttributes, SetXattr,
};
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use xxhash_rust::xxh3::xxh3_64;
use zone::{
    ByteOffset, Geometry, ZoneAddress, ZoneCommand, ZoneCondition, ZoneError, ZoneId, ZoneResult,
};
use zone_alloc::Pressure;

fn new_file() -> NewInode {
    NewInode {
        mode: libc::S_IFREG | 0o644,
        uid: 0,
        gid: 0,
        rdev: 0,
    }
}

fn mkfs(device: &Arc<MemoryDrive>, options: &MkfsOptions) -> Runtime {
    let runtime = Runtime::seeded(1);
    FileSystem::mkfs(device.clone(), &runtime, options).unwrap();
    runtime
}

/// Runs with a plan of failures: what may be found afterwards.
fn mount_to(
    device: Arc<dyn ZonedDevice>,
    runtime: &Runtime,
    read_only: bool,
) -> Result<FileSystem, Error> {
    let options = MountOptions {
        read_only,
        ..MountOptions::default()
    };
    FileSystem::mount(device, runtime.clone(), options)
}

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

#[test]
fn a_zone_that_cannot_be_written_is_left() {
    let inner = Arc::new(MemoryDrive::new(geometry(30, 4)).unwrap());
    let runtime = mkfs(&inner, &MkfsOptions::default());
    let fs = FileSystem::mount(inner.clone(), runtime.clone(), MountOptions::default()).unwrap();
    let ino = fs.create(ROOT, b"file", new_file()).unwrap().ino;
    fs.write(ino, 0, &vec![1; 20_000]).unwrap();
    fs.sync().unwrap();
    inner
        .set_condition(ZoneId(4), ZoneCondition::ReadOnly)
        .unwrap();
    fs.write(ino, 20_000, &vec![2; 20_000]).unwrap();
    fs.sync().unwrap();
    drop(fs);
    let fs = FileSystem::mount(inner, runtime, MountOptions::default()).unwrap();
    let bytes = contents(&fs, ino).unwrap();
    assert_eq!(bytes, [vec![1; 20_000], vec![2; 20_000]].concat());
    assert_clean(&fs);
}

#[test]
fn a_zone_below_a_caveat_drive_that_cannot_be_written_is_left() {
    for fit in [
        Fit::Best,
        Fit::First,
        Fit::Next,
        Fit::LastAccessed,
        Fit::Worst,
    ] {
        let kind = Kind::Caveat {
            distance: 3,
            range: 1,
            cleaned: false,
        };
        let inner = Arc::new(MemoryDrive::new(kind.geometry(30)).unwrap());
        let medium = kind.medium(inner.clone(), None);
        let runtime = Runtime::seeded(1);
        FileSystem::mkfs_on(&medium, &runtime, &MkfsOptions::default()).unwrap();
        let options = MountOptions {
            fit,
            ..MountOptions::default()
        };
        let fs = FileSystem::mount_on(&medium, runtime.clone(), options).unwrap();
        let ino = fs.create(ROOT, b"file", new_file()).unwrap().ino;
        let mut expected = Vec::new();
        for turn in 0..40 {
            // The one in which the file begins, behind the unshingled part, and one that it comes to.
            if let Some(zone) = [(1, 4), (20, 6)].iter().find(|(at, _)| *at == turn) {
                inner
                    .set_condition(ZoneId(zone.1), ZoneCondition::ReadOnly)
                    .unwrap();
            }
            let more = vec![turn as u8; 30_000];
            fs.write(ino, expected.len() as u64, &more).unwrap();
            expected.extend(more);
            // A zone that cannot be written is no error of a call.
            fs.sync()
                .unwrap_or_else(|error| panic!("{fit:?}, {turn}: {error}"));
        }
        drop(fs);
        let fs = FileSystem::mount_on(&medium, runtime, options).unwrap();
        assert_eq!(contents(&fs, ino).unwrap(), expected);
        assert_clean(&fs);
    }
}

#[test]
fn a_full_file_system_says_so_and_can_be_emptied() {
    for whole_files in [false, true] {
        let device = Arc::new(MemoryDrive::new(geometry(24, 4)).unwrap());
        let options = MkfsOptions {
            whole_files,
            ..MkfsOptions::default()
        };
        let runtime = mkfs(&device, &options);
        let mount =
            || FileSystem::mount(device.clone(), runtime.clone(), MountOptions::default()).unwrap();
        let mut fs = mount();
        for round in 0..3 {
            let mut files = Vec::new();
            for n in 0_u32.. {
                let name = format!("{n}").into_bytes();
                let ino = match fs.create(ROOT, &name, new_file()) {
                    Ok(attributes) => attributes.ino,
                    Err(error) => {
                        assert_eq!(error.errno(), libc::ENOSPC);
                        break;
                    }
                };
                let byte = (n + round) as u8;
                match fs.write(ino, 0, &vec![byte; 30_000]) {
                    Ok(()) => files.push((name, ino, byte)),
                    Err(Error::NoSpace) => {
                        fs.unlink(ROOT, &name).unwrap();
                        break;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            let stored = files.len() as u64 * 32 * KIB;
            let space = fs.space();
            let least = if whole_files { 60 } else { 95 };
            assert!(
                stored * 100 >= space.capacity_bytes * least,
                "{stored} of {space:?}"
            );
            fs.sync().unwrap();
            // What is there is overwritten, and stays the same size.
            for (_, ino, byte) in files.iter().take(20) {
                fs.write(*ino, 10_000, &[*byte; 5000]).unwrap();
            }
            fs.sync().unwrap();
            drop(fs);
            fs = mount();
            for (_, ino, byte) in &files {
                assert_eq!(contents(&fs, *ino).unwrap(), vec![*byte; 30_000]);
            }
            assert_clean(&fs);
            for (name, ..) in files {
                fs.unlink(ROOT, &name).unwrap();
            }
            fs.sync().unwrap();
            assert_eq!(fs.space().used_bytes, 0);
        }
    }
}

#[test]
fn metadata_that_is_full_can_be_removed() {
    let device = Arc::new(MemoryDrive::new(geometry(24, 4)).unwrap());
    let runtime = mkfs(&device, &MkfsOptions::default());
    let mount =
        || FileSystem::mount(device.clone(), runtime.clone(), MountOptions::default()).unwrap();
    let fs = mount();
    let name = |n: u32| format!("{n:0>200}").into_bytes();
    let mut count = 0;
    while fs.create(ROOT, &name(count), new_file()).is_ok() {
        count += 1;
    }
    assert!(count > 500, "{count}");
    fs.sync().unwrap();
    drop(fs);
    let fs = mount();
    assert_clean(&fs);
    for n in 0..count {
        fs.unlink(ROOT, &name(n)).unwrap();
    }
    fs.sync().unwrap();
    assert_eq!(fs.space().inodes, 1);
}

/// A file system with files of which everything is known, synced.
fn filled(device: &Arc<MemoryDrive>) -> (Runtime, Vec<(u64, Vec<u8>)>, Seen) {
    let runtime = mkfs(device, &MkfsOptions::default());
    let fs = FileSystem::mount(device.clone(), runtime.clone(), MountOptions::default()).unwrap();
    let mut files = Vec::new();
    for n in 0..12_u8 {
        let ino = fs.create(ROOT, &[b'a' + n], new_file()).unwrap().ino;
        let bytes = vec![n + 1; 10_000 + usize::from(n) * 777];
        fs.write(ino, 0, &bytes).unwrap();
        files.push((ino, bytes));
        fs.sync().unwrap();
    }
    let all = seen(&fs, []).unwrap();
    (runtime, files, all)
}

#[test]
fn changed_data_is_an_error_and_never_given() {
    let device = Arc::new(MemoryDrive::new(geometry(24, 4)).unwrap());
    let (runtime, files, _) = filled(&device);
    let written = device.report_zone(ZoneId(4)).unwrap().write_pointer;
    let mut random = fastrand::Rng::with_seed(3);
    let mut damaged = 0;
    for _ in 0..60 {
        let copy = Arc::new(device.snapshot());
        let at = ZoneAddress::new(ZoneId(4), random.u64(0..written));
        copy.decay(at, 1, |bytes| bytes[0] ^= 1 << 3);
        let options = MountOptions::default();
        let fs = FileSystem::mount(copy.clone(), runtime.clone(), options).unwrap();
        let look = |fs: &FileSystem| {
            let mut bad = 0;
            for (ino, bytes) in &files {
                match contents(fs, *ino) {
                    Ok(found) => assert_eq!(found, *bytes),
                    Err(Error::DamagedData { .. }) => bad += 1,
                    Err(Error::NotFound) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            bad
        };
        let bad = look(&fs);
        assert_eq!(fs.check(true).errors.get("data").copied().unwrap_or(0), bad);
        damaged += bad;
        // The cleaner moves it as it is, and it stays an error.
        fs.unlink(ROOT, b"l").unwrap();
        while fs.clean(Pressure::Any).unwrap() {}
        assert!(look(&fs) <= bad + 1);
    }
    assert!(damaged > 20, "{damaged}");
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

#[test]
fn changed_metadata_is_refused_or_makes_no_difference() {
    change_metadata(false);
    change_metadata(true);
}

fn change_metadata(is_sealed: bool) {
    let device = Arc::new(MemoryDrive::new(geometry(24, 4)).unwrap());
    let (runtime, _, mut all) = filled(&device);
    if is_sealed {
        let options = MountOptions::default();
        let fs = FileSystem::mount(device.clone(), runtime.clone(), options).unwrap();
        fs.create(ROOT, b"last", new_file()).unwrap();
        fs.seal().unwrap();
        fs.seal().unwrap();
        all = seen(&fs, []).unwrap();
    }
    let mut random = fastrand::Rng::with_seed(5);
    let (mut refused, mut last) = (0, 0);
    for _ in 0..600 {
        let copy = Arc::new(device.snapshot());
        let at = ZoneAddress::new(
            ZoneId(random.u32(0..4)),
            random.u64(0..64) * 4096 + random.u64(0..300),
        );
        copy.decay(at, 1, |bytes| bytes[0] ^= 1 << random.u8(0..8));
        let read_only = MountOptions {
            read_only: true,
            ..MountOptions::default()
        };
        match FileSystem::mount(copy.clone(), runtime.clone(), read_only) {
            Ok(fs) => match seen(&fs, []) {
                Ok(found) if found == all => {}
                // Damage to the very last group looks like one that was not finished.
                Ok(found) => {
                    assert_eq!(found.len() + 1, all.len());
                    last += 1;
                }
                Err(error) => panic!("{error}"),
            },
            Err(Error::DamagedMetadata { .. } | Error::Version { .. } | Error::NotFormatted) => {
                refused += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    // Behind an unmount the older copy may have any damage.
    assert!(refused > if is_sealed { 0 } else { 20 }, "{refused}");
    assert!(last < 20 && (last == 0 || !is_sealed), "{last}");
}

#[test]
fn noise_is_no_file_system() {
    let mut random = fastrand::Rng::with_seed(9);
    for _ in 0..30 {
        let device = Arc::new(MemoryDrive::new(geometry(24, 4)).unwrap());
        let (runtime, ..) = filled(&device);
        for _ in 0..random.usize(1..40) {
            let zone = ZoneId(random.u32(0..8));
            let written = match device.report_zone(zone).unwrap() {
                report if report.write_pointer_valid() => report.write_pointer,
                _ => 256 * KIB,
            };
            if written > 0 {
                let at = ZoneAddress::new(zone, random.u64(0..written / 64) * 64);
                device.decay(at, 64, |bytes| random.fill(bytes));
            }
        }
        // Whatever comes, no panic.
        if let Ok(fs) = FileSystem::mount(device, runtime, MountOptions::default()) {
            let _ = seen(&fs, []);
            let _ = fs.check(true);
            let _ = fs.sync();
        }
    }
}

#[test]
fn other_versions_and_empty_drives_are_named() {
    let device = Arc::new(MemoryDrive::new(geometry(24, 4)).unwrap());
    let runtime = Runtime::seeded(1);
    let mount = |device: &Arc<MemoryDrive>| {
        FileSystem::mount(device.clone(), runtime.clone(), MountOptions::default()).unwrap_err()
    };
    assert!(matches!(mount(&device), Error::NotFormatted));
    assert!(!smrfs::is_there(&*device).unwrap());
    mkfs(&device, &MkfsOptions::default());
    assert!(smrfs::is_there(&*device).unwrap());
    // Of two copies one will do, and neither is of another version.
    let version = |copy: u32| ZoneAddress::new(ZoneId(2 * copy), 8);
    device.decay(version(0), 1, |bytes| bytes[0] = 9);
    FileSystem::mount(device.clone(), runtime.clone(), MountOptions::default()).unwrap();
    device.decay(version(0), 1, |bytes| bytes[0] = 9);
    device.decay(version(1), 1, |bytes| bytes[0] = 9);
    assert!(matches!(mount(&device), Error::DamagedMetadata { .. }));
    let mut head = vec![0; 4096];
    device.read(ByteOffset(0), &mut head).unwrap();
    let payload = 64 + u32::from_le_bytes(head[12..16].try_into().unwrap()) as usize;
    let covered = [&head[..56], &head[64..payload]].concat();
    head[56..64].copy_from_slice(&xxh3_64(&covered).to_le_bytes());
    device.write(ByteOffset(0), &head).unwrap();
    assert!(matches!(mount(&device), Error::Version { found: 9, .. }));
}

/// Whatever byte of a Caveat-Scriptor drive's header is changed: what is there is damaged, and never another drive. With its
/// copy all is as it was, a check says so, and a mount mends it.
#[test]
fn a_damaged_header_of_a_caveat_drive_has_a_copy() {
    for (zones, has_copy) in [(40, true), (12, false)] {
        let below = || {
            let geometry = Geometry {
                zone_size: 256 * KIB * 40 / u64::from(zones) / 4096 * 4096,
                ..geometry(zones, zones)
            };
            let zone_capacity = geometry.zone_size;
            let geometry = Geometry {
                zone_capacity,
                ..geometry
            };
            Arc::new(MemoryDrive::new(geometry).unwrap())
        };
        let shape = CaveatShape {
            block_size: 4096,
            isolation_distance: 16,
            no_overlap_range: 6,
            unshingled_bytes: 1 << 20,
        };
        let device = below();
        CaveatDevice::create(device.clone(), &shape).unwrap();
        let runtime = mkfs(&device, &MkfsOptions::default());
        let read_only = MountOptions {
            read_only: true,
            ..MountOptions::default()
        };
        let mount = |options| FileSystem::mount(device.clone(), runtime.clone(), options);
        for byte in 0..56 {
            let flip = || {
                device.decay(ZoneAddress::new(ZoneId(0), byte), 1, |bytes| bytes[0] ^= 1);
            };
            flip();
            assert!(smrfs::is_there(&*device).unwrap());
            if !has_copy {
                let error = mount(read_only).unwrap_err();
                assert!(matches!(error, Error::DamagedMetadata { .. }), "{error}");
                flip();
                continue;
            }
            let fs = mount(read_only).unwrap();
            assert_eq!(fs.check(true).errors.get("metadata"), Some(&1), "{byte}");
            assert_clean(&mount(MountOptions::default()).unwrap());
            assert_clean(&mount(read_only).unwrap());
        }
    }
}

/// A power cut tears the bitmap of a Caveat-Scriptor drive, or leaves it unreadable. The drive below has all data: all files
/// are there, a check says what is damaged, and a mount for writing mends it.
#[test]
fn a_bitmap_that_a_power_cut_tore_loses_nothing() {
    let inner = Arc::new(MemoryDrive::new(geometry(40, 40)).unwrap());
    let shape = CaveatShape {
        block_size: 4096,
        isolation_distance: 16,
        no_overlap_range: 6,
        unshingled_bytes: 1 << 20,
    };
    CaveatDevice::create(inner.clone(), &shape).unwrap();
    let (runtime, _, all) = filled(&inner);
    let piece = 4096;
    let mount = |block: u64, read_only| {
        let device = Arc::new(Changed {
            drive: inner.clone(),
            change: Unreadable([block; 2]),
        });
        let options = MountOptions {
            read_only,
            ..MountOptions::default()
        };
        FileSystem::mount(device, runtime.clone(), options).unwrap()
    };
    for unreadable in [u64::MAX, piece] {
        inner.decay(ZoneAddress::new(ZoneId(0), piece), 512, |bytes| {
            bytes.fill(7);
        });
        let fs = mount(unreadable, true);
        assert_eq!(seen(&fs, []).unwrap(), all);
        assert_eq!(fs.check(true).errors.get("metadata"), Some(&1));
        drop(fs);
        let fs = mount(unreadable, false);
        assert_eq!(seen(&fs, []).unwrap(), all);
        drop(fs);
        assert_clean(&mount(u64::MAX, true));
    }
}

/// A checkpoint resets the zones of the older copy one by one, and the power goes: whichever of them it took, the newer copy
/// is as it was.
#[test]
fn an_older_copy_of_which_some_zones_are_reset_is_no_damage() {
    for zones in 1..8_u32 {
        let device = Arc::new(MemoryDrive::new(geometry(30, 0)).unwrap());
        let runtime = mkfs(&device, &MkfsOptions::default());
        let fs = FileSystem::mount(device.clone(), runtime.clone(), MountOptions::default());
        let fs = fs.unwrap();
        let ino = fs.create(ROOT, b"file", new_file()).unwrap().ino;
        for turn in 0_u32.. {
            fs.write(ino, 0, &turn.to_le_bytes()).unwrap();
            fs.sync().unwrap();
            // From the second copy, which mkfs leaves, to the first.
            if fs.counts().checkpoints > 0 {
                break;
            }
        }
        let expected = contents(&fs, ino).unwrap();
        drop(fs);
        // The second copy is in zones 3 to 5.
        for n in (0..3).filter(|n| zones >> n & 1 == 1) {
            device.reset(ZoneId(3 + n)).unwrap();
        }
        let fs = FileSystem::mount(device, runtime, MountOptions::default()).unwrap();
        assert_eq!(contents(&fs, ino).unwrap(), expected);
        assert_clean(&fs);
    }
}

/// Reads of these blocks fail, writes succeed.
struct Unreadable([u64; 2]);

impl Change<Arc<MemoryDrive>> for Unreadable {
    fn read(&self, drive: &Arc<MemoryDrive>, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        let touched = at.0..at.0 + buffer.len() as u64;
        if self.0.iter().any(|block| touched.contains(block)) {
            return Err(ZoneError::Io {
                command: ZoneCommand::Read,
                at,
                source: Arc::new(ErrorKind::Other.into()),
            });
        }
        drive.read(at, buffer)
    }
}

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

/// A disk of the host that has so many bytes for what is written from now on.
struct Disk(AtomicU64);

impl Change<Arc<MemoryDrive>> for Disk {
    fn write(&self, drive: &Arc<MemoryDrive>, at: ByteOffset, data: &[u8]) -> ZoneResult<()> {
        let left = self
            .0
            .load(Ordering::Relaxed)
            .checked_sub(data.len() as u64);
        let source = || Arc::new(ErrorKind::StorageFull.into());
        let left = left.ok_or_else(|| ZoneError::Io {
            command: ZoneCommand::Write,
            at,
            source: source(),
        })?;
        self.0.store(left, Ordering::Relaxed);
        drive.write(at, data)
    }

    fn host_free_bytes(&self, _: &Arc<MemoryDrive>) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed))
    }
}

/// What was accepted without a sync is there after an unmount although the host's disk is full, and files can be removed.
#[test]
fn a_full_disk_of_the_host_refuses_writes_and_loses_none() {
    for whole in [false, true] {
        let inner = Arc::new(MemoryDrive::new(geometry(300, 24)).unwrap());
        let made = MkfsOptions {
            whole_files: whole,
            ..MkfsOptions::default()
        };
        let runtime = mkfs(&inner, &made);
        let device = Arc::new(Changed {
            drive: inner,
            change: Disk(AtomicU64::new(20 << 20)),
        });
        let mount = || {
            let options = MountOptions::default();
            FileSystem::mount(device.clone(), runtime.clone(), options).unwrap()
        };
        let fs = mount();
        let mut accepted = Vec::new();
        let refused = loop {
            let name = format!("{}", accepted.len());
            let ino = fs.create(ROOT, name.as_bytes(), new_file()).unwrap().ino;
            let bytes = vec![accepted.len() as u8; 10_000];
            match fs.write(ino, 0, &bytes) {
                Ok(_) => accepted.push((ino, bytes)),
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, Error::HostFull), "{refused}");
        assert!(accepted.len() > 500, "{}", accepted.len());
        fs.seal().unwrap();
        drop(fs);
        let fs = mount();
        for (number, (ino, bytes)) in accepted.iter().enumerate() {
            assert!(contents(&fs, *ino).unwrap() == *bytes, "{number}");
            fs.unlink(ROOT, format!("{number}").as_bytes()).unwrap();
        }
        fs.sync().unwrap();
        // Others take the rest: nothing begins that could not be ended.
        device.change.0.store(100 << 10, Ordering::Relaxed);
        fs.create(ROOT, b"late", new_file()).unwrap();
        assert!(matches!(fs.sync(), Err(Error::HostFull)));
        device.change.0.store(20 << 20, Ordering::Relaxed);
        fs.sync().unwrap();
        assert_clean(&fs);
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

/// Overwrites files at random on a drive of this geometry, until some are cleaned.
fn clean_with_few_active(geometry: Geometry, options: &MkfsOptions) {
    let device = Arc::new(MemoryDrive::new(geometry).unwrap());
    let runtime = mkfs(&device, options);
    let mount =
        || FileSystem::mount(device.clone(), runtime.clone(), MountOptions::default()).unwrap();
    let mut fs = mount();
    let mut random = fastrand::Rng::with_seed(7);
    let mut files = Vec::new();
    for n in 0..20_u8 {
        let ino = fs.create(ROOT, &[b'a' + n], new_file()).unwrap().ino;
        fs.write(ino, 0, &[n; 100_000]).unwrap();
        files.push((ino, n));
    }
    for turn in 0..150_u8 {
        let file = random.usize(0..files.len());
        fs.write(files[file].0, 0, &[turn; 60_000]).unwrap();
        files[file].1 = turn;
        fs.sync().unwrap();
        if turn == 75 {
            drop(fs);
            fs = mount();
        }
    }
    while fs.counts().moved_bytes == 0 {
        assert!(fs.clean(Pressure::Any).unwrap());
    }
    for (n, (ino, byte)) in files.iter().enumerate() {
        let found = contents(&fs, *ino).unwrap();
        let was_written = found[..60_000].iter().all(|found| found == byte);
        let is_old = found[60_000..].iter().all(|found| *found == n as u8);
        assert!(was_written && is_old && found.len() == 100_000, "{n}");
    }
    assert_clean(&fs);
}

#[test]
fn a_drive_with_too_few_active_zones_is_refused() {
    let options = MkfsOptions::default();
    for (conventional, least) in [(0, 4), (4, 2)] {
        let active = |zones| Geometry {
            max_open_zones: zones,
            max_active_zones: zones,
            ..geometry(30, conventional)
        };
        let few = Arc::new(MemoryDrive::new(active(least - 1)).unwrap());
        let few = FileSystem::mkfs(few, &Runtime::seeded(1), &options).unwrap_err();
        assert!(matches!(few, Error::Shape(_)), "{few}");
        clean_with_few_active(active(least), &options);
    }
}

/// The end of a zone that holds no block does not keep it active.
#[test]
fn zones_that_are_no_multiple_of_a_block_are_finished() {
    let options = MkfsOptions {
        block_size: 8 << 10,
        ..MkfsOptions::default()
    };
    let geometry = Geometry {
        zone_capacity: 204 * KIB,
        max_open_zones: 5,
        max_active_zones: 5,
        ..geometry(40, 0)
    };
    clean_with_few_active(geometry, &options);
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
