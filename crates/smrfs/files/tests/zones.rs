//! Zones go offline, can only be read, cannot be read, or went back, in images of file systems that were unmounted or not;
//! and commands fail again and again while one is used. Nothing but what lay there is lost, and a check tells what is.

use crate::common::{KIB, Kind, contents, damage as damaged_blocks, seeds};
use caveat::Bits;
use device::MemoryDrive;
use device::faults::{Fault, Faults, Plan};
use device::zone_damage::ZoneDamage;
use fastrand::Rng;
use runtime::Runtime;
use smrfs::{Error, FileSystem, Medium, MkfsOptions, MountOptions, NewInode, ROOT};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;
use zone::{ZoneCommand, ZoneId};
use zone_alloc::Pressure;

const KINDS: [Kind; 4] = [
    Kind::Bands(4),
    Kind::Bands(0),
    Kind::Caveat {
        distance: 8,
        range: 3,
        cleaned: false,
    },
    Kind::Caveat {
        distance: 8,
        range: 3,
        cleaned: true,
    },
];
const ZONES: u32 = 40;

fn new_file() -> NewInode {
    NewInode {
        mode: libc::S_IFREG | 0o644,
        uid: 0,
        gid: 0,
        rdev: 0,
    }
}

type Filled = (Arc<MemoryDrive>, Option<Bits>, Runtime, Files);
type Files = BTreeMap<Vec<u8>, Vec<u8>>;

/// A file system with history: files come, grow, are overwritten and go, and its metadata was in both places; `sealed` if it was
/// unmounted.
fn filled(kind: Kind, whole_files: bool, sealed: bool, random: &mut Rng) -> Filled {
    let drive = Arc::new(MemoryDrive::new(kind.geometry(ZONES)).unwrap());
    let medium = kind.medium(drive.clone(), None);
    let runtime = Runtime::seeded(1);
    let options = MkfsOptions {
        whole_files,
        clean_when_full: kind.is_cleaned(),
        ..MkfsOptions::default()
    };
    FileSystem::mkfs_on(&medium, &runtime, &options).unwrap();
    let fs = FileSystem::mount_on(&medium, runtime.clone(), mount_options()).unwrap();
    let mut files = Files::new();
    for n in 0..random.u32(20..60) {
        let name = format!("f{}", random.u32(0..25)).into_bytes();
        let length = random.usize(0..90_000);
        let bytes: Vec<u8> = std::iter::repeat_with(|| random.u8(..))
            .take(length)
            .collect();
        if random.u32(0..5) == 0 && files.remove(&name).is_some() {
            fs.unlink(ROOT, &name).unwrap();
        } else {
            let ino = match fs.lookup(ROOT, &name) {
                Ok(found) => found.ino,
                Err(_) => fs.create(ROOT, &name, new_file()).unwrap().ino,
            };
            fs.truncate(ino, 0).unwrap();
            fs.write(ino, 0, &bytes).unwrap();
            files.insert(name, bytes);
        }
        if n % 3 == 0 {
            fs.sync().unwrap();
        }
    }
    match sealed {
        true => fs.seal().unwrap(),
        false => fs.sync().unwrap(),
    }
    drop(fs);
    (drive, damaged_blocks(&medium), runtime, files)
}

/// Zones that have metadata.
fn metadata_zones(kind: Kind) -> u32 {
    match kind {
        // Two copies of half a megabyte at least.
        Kind::Bands(0) => 6,
        Kind::Bands(_) | Kind::Caveat { .. } => 4,
    }
}

fn mount_options() -> MountOptions {
    MountOptions {
        buffer_bytes: 64 * KIB,
        ..MountOptions::default()
    }
}

/// How much of so many blocks of a zone that goes back is left.
fn kept(random: &mut Rng) -> impl FnOnce(u64) -> u64 {
    move |blocks| random.u64(0..blocks.max(1))
}

/// Files that are as they were, and the others; panics at other bytes.
fn judge(fs: &FileSystem, files: &Files, told: &str) -> (usize, usize) {
    let (mut good, mut bad) = (0, 0);
    for (name, bytes) in files {
        let found = fs
            .lookup(ROOT, name)
            .and_then(|found| contents(fs, found.ino));
        match found {
            Ok(found) => {
                assert!(found == *bytes, "{told}: other bytes");
                good += 1;
            }
            Err(_) => bad += 1,
        }
    }
    (good, bad)
}

/// How many files are lost to a mount that writes nothing, or why there is none.
fn only_read(
    medium: &Medium,
    runtime: &Runtime,
    files: &Files,
    told: &str,
) -> Result<usize, String> {
    let options = MountOptions {
        read_only: true,
        ..mount_options()
    };
    let fs = FileSystem::mount_on(medium, runtime.clone(), options);
    let fs = fs.map_err(|error| error.to_string())?;
    Ok(judge(&fs, files, told).1)
}

#[test]
fn zones_are_damaged_in_an_image() {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for seed in seeds(4) {
        let mut random = Rng::with_seed(seed);
        let kind = KINDS[seed as usize % 4];
        let whole_files = !kind.is_cleaned() && random.u32(0..4) == 0;
        let sealed = random.bool();
        let (inner, bits, runtime, files) = filled(kind, whole_files, sealed, &mut random);
        for zone in 0..ZONES {
            for damage in ZoneDamage::ALL {
                let told = format!(
                    "seed {seed}, {kind:?}, whole {whole_files}, sealed {sealed}, zone {zone}, {damage:?}"
                );
                let image = Arc::new(inner.snapshot());
                let drive = Arc::new(Faults::new(image.clone()));
                damage
                    .strike(&drive, ZoneId(zone), kept(&mut random))
                    .unwrap();
                let medium = kind.medium(drive.clone(), bits.clone());
                let group = |what: &str| format!("{kind:?} {damage:?}: {what}");
                let fs = match FileSystem::mount_on(&medium, runtime.clone(), mount_options()) {
                    Ok(fs) => fs,
                    Err(error) => {
                        let after = only_read(&medium, &runtime, &files, &told);
                        assert!(zone < metadata_zones(kind), "{told}: {error}");
                        // The current copy of the metadata is lost, or nothing is.
                        let is_whole = matches!(error, Error::Unwritable(_));
                        assert_eq!(after, is_whole.then_some(0).ok_or(error.to_string()));
                        *seen
                            .entry(group(&format!("refused: {error}; read-only: {after:?}")))
                            .or_default() += 1;
                        continue;
                    }
                };
                // Without an unmount, frames of the journal that are gone look like those that a crash has not let be written.
                if damage == ZoneDamage::WentBack && zone < metadata_zones(kind) && !sealed {
                    let _ = fs.check(true);
                    continue;
                }
                let (_, bad) = judge(&fs, &files, &told);
                let found = fs.check(true);
                assert!(
                    (bad == 0) == found.errors.is_empty(),
                    "{told}: {bad} files, {found:?}"
                );
                *seen
                    .entry(group(&format!("mounted, files lost: {}", bad > 0)))
                    .or_default() += 1;
                // It goes on.
                let mut more = Files::new();
                // What is written into a zone that cannot be read is lost with it.
                let new_files = if damage == ZoneDamage::Unreadable {
                    0
                } else {
                    12
                };
                for n in 0..new_files {
                    let name = format!("new{n}").into_bytes();
                    let bytes = vec![n; 40_000];
                    let done = fs.create(ROOT, &name, new_file()).and_then(|made| {
                        fs.write(made.ino, 0, &bytes)?;
                        fs.sync()
                    });
                    match done {
                        Ok(()) => {
                            more.insert(name, bytes);
                        }
                        Err(error) => {
                            *seen
                                .entry(group(&format!("new file: {error}")))
                                .or_default() += 1;
                        }
                    }
                }
                // With whole files there is always a band with a rest.
                for _ in 0..2 * new_files {
                    let _ = fs.clean(Pressure::Any);
                }
                let after = judge(&fs, &files, &told);
                assert_eq!(after.1, bad, "{told}: lost more");
                assert_eq!(judge(&fs, &more, &told).1, 0, "{told}: new files are lost");
                drop(fs);
                match FileSystem::mount_on(&medium, runtime.clone(), mount_options()) {
                    Ok(fs) => {
                        assert_eq!(
                            judge(&fs, &files, &told).1,
                            bad,
                            "{told}: lost more at a remount"
                        );
                        assert_eq!(judge(&fs, &more, &told).1, 0, "{told}: new files are lost");
                    }
                    Err(error) => {
                        more.extend(files.clone());
                        let after = only_read(&medium, &runtime, &more, &told);
                        *seen
                            .entry(group(&format!(
                                "then refused: {error}; read-only: {after:?}"
                            )))
                            .or_default() += 1;
                        assert!(after == Ok(bad), "{told}: mounted once, then: {error}");
                    }
                }
            }
        }
    }
    for (what, count) in seen {
        println!("{count:6} {what}");
    }
}

/// The zone with the most dead bytes cannot be read: the cleaner leaves it, and cleans the others.
#[test]
fn a_zone_that_cannot_be_cleaned_is_left() {
    leave_a_zone(Kind::Bands(4), ZoneId(4));
    // Behind the unshingled part and the reserve.
    let kind = Kind::Caveat {
        distance: 3,
        range: 0,
        cleaned: true,
    };
    leave_a_zone(kind, ZoneId(9));
}

fn leave_a_zone(kind: Kind, zone: ZoneId) {
    let inner = Arc::new(MemoryDrive::new(kind.geometry(ZONES)).unwrap());
    let drive = Arc::new(Faults::new(inner.clone()));
    let runtime = Runtime::seeded(1);
    let medium = kind.medium(drive.clone(), None);
    let options = MkfsOptions {
        clean_when_full: kind.is_cleaned(),
        ..MkfsOptions::default()
    };
    FileSystem::mkfs_on(&medium, &runtime, &options).unwrap();
    let fs = FileSystem::mount_on(&medium, runtime, mount_options()).unwrap();
    let name = |n: u32| n.to_string().into_bytes();
    let mut count = 0;
    loop {
        let made = fs.create(ROOT, &name(count), new_file()).unwrap();
        if fs.write(made.ino, 0, &[1; 16 << 10]).is_err() {
            fs.unlink(ROOT, &name(count)).unwrap();
            break;
        }
        count += 1;
    }
    fs.sync().unwrap();
    // Of the first zone hardly anything stays, of the others a half.
    for n in 0..count {
        if if n < 16 { n != 3 } else { n % 2 == 0 } {
            fs.unlink(ROOT, &name(n)).unwrap();
        }
    }
    fs.sync().unwrap();
    ZoneDamage::Unreadable
        .strike(&drive, zone, |all| all)
        .unwrap();
    let (before, lost) = (fs.space(), fs.check(true).errors);
    assert!(!lost.is_empty());
    // It is the first victim, and is not taken for a cleaned one.
    assert!(fs.clean(Pressure::Any).unwrap());
    assert_eq!(fs.space().cleaned_bands, before.cleaned_bands);
    for n in 0..count / 4 {
        let ino = fs.create(ROOT, &name(1000 + n), new_file()).unwrap().ino;
        fs.write(ino, 0, &[2; 16 << 10]).unwrap();
    }
    fs.sync().unwrap();
    assert!(fs.space().cleaned_bands > before.cleaned_bands);
    // On a Caveat-Scriptor drive, new data may come to lie in that zone.
    if let Kind::Bands(_) = kind {
        assert_eq!(fs.check(true).errors, lost);
    }
}

/// What was synced is there, whichever commands fail beside it, again and again; of what failed nobody knows.
#[test]
fn every_kth_command_fails() {
    let commands = [
        ZoneCommand::Write,
        ZoneCommand::Read,
        ZoneCommand::Flush,
        ZoneCommand::Reset,
        ZoneCommand::Finish,
    ];
    let cases = commands
        .into_iter()
        .flat_map(|of| [(of, 2), (of, 3), (of, 7), (of, 20)]);
    for (command, every) in cases {
        for kind in KINDS {
            let told = format!("every {every}th {command:?}, {kind:?}");
            let mut random = Rng::with_seed(every);
            let (inner, bits, runtime, mut files) = filled(kind, false, false, &mut random);
            let drive = Arc::new(Faults::new(inner.clone()));
            for kth in (1..300).map(|n| n * every) {
                drive.add(Plan::at(command, kth, Fault::Io(ErrorKind::Other)));
            }
            let medium = kind.medium(drive.clone(), bits);
            let mount = || FileSystem::mount_on(&medium, runtime.clone(), mount_options()).ok();
            let mut mounted = mount();
            for n in 0..120_u8 {
                let Some(fs) = &mounted else {
                    mounted = mount();
                    continue;
                };
                let name = format!("f{}", random.u32(0..25)).into_bytes();
                let bytes = vec![n; random.usize(1..60_000)];
                let is_removed = random.u32(0..4) == 0;
                let done = match is_removed {
                    true => fs.unlink(ROOT, &name).or_else(|error| match error {
                        Error::NotFound => Ok(()),
                        error => Err(error),
                    }),
                    false => fs
                        .lookup(ROOT, &name)
                        .or_else(|_| fs.create(ROOT, &name, new_file()))
                        .and_then(|found| {
                            fs.truncate(found.ino, 0)?;
                            fs.write(found.ino, 0, &bytes)
                        }),
                };
                match done.and_then(|()| fs.sync()) {
                    Ok(()) if is_removed => _ = files.remove(&name),
                    Ok(()) => _ = files.insert(name, bytes),
                    // It is as it was, or it is not.
                    Err(error) => {
                        files.remove(&name);
                        if matches!(error, Error::Stopped(_)) {
                            mounted = None;
                        }
                    }
                }
            }
            drop(mounted);
            drive.clear();
            let fs = FileSystem::mount_on(&medium, runtime.clone(), mount_options());
            let fs = fs.unwrap_or_else(|error| panic!("{told}: {error}"));
            assert_eq!(judge(&fs, &files, &told).1, 0, "{told}");
            assert!(fs.check(true).errors.is_empty(), "{told}");
        }
    }
}
