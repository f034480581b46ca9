//! Zones that are offline, read-only, unreadable, full or have gone back, and every k-th command failing while files
//! are written. All other files are as they were, and an examination names exactly the lost ones.

use crate::support::{bytes, format, geometry, mount, number, read, write};
use device::faults::{Fault, Faults, Plan};
use device::zone_damage::ZoneDamage;
use device::{MemoryDrive, ZonedDevice};
use fastrand::Rng;
use runtime::Runtime;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;
use zeafs::{Error, Examined, ZeaFs};
use zone::{Geometry, ZoneCommand};

type Files = BTreeMap<String, Vec<u8>>;

fn geometries() -> [Geometry; 2] {
    [geometry(12, 1, 0), geometry(14, 0, 0)]
}

/// A drive with files that were created, extended and removed, and their contents.
fn filled(g: &Geometry, random: &mut Rng) -> (Arc<MemoryDrive>, Files) {
    let device = Arc::new(MemoryDrive::new(g.clone()).unwrap());
    format(&*device);
    let fs = mount(device.clone()).unwrap();
    let mut files = Files::new();
    for n in 0..random.u64(10..40) {
        let name = format!("db/{}", random.u32(..12));
        if random.u32(..4) == 0 && files.remove(&name).is_some() {
            fs.delete(&name).unwrap();
        } else {
            let data = bytes(n, random.usize(..12_000));
            match write(&fs, &name, &data) {
                Ok(()) => _ = files.insert(name, data),
                Err(Error::NoSpace) => break,
                Err(error) => panic!("{error}"),
            }
        }
    }
    let listed = fs.list("");
    files.retain(|name, _| listed.contains(name));
    fs.unmount().unwrap();
    (device, files)
}

/// Random number of blocks, of `blocks`, that a zone that goes back keeps.
fn kept(random: &mut Rng) -> impl FnOnce(u64) -> u64 {
    move |blocks| random.u64(0..blocks.max(1))
}

/// Names of the files that cannot be read; panics if a file has other bytes.
fn lost(fs: &ZeaFs, files: &Files, told: &str) -> Vec<String> {
    let mut lost = Vec::new();
    for (name, data) in files {
        match read(fs, name) {
            Ok(found) => assert!(found == *data, "{told}: {name}: other bytes"),
            Err(_) => lost.push(name.clone()),
        }
    }
    lost
}

/// Names of the files that an examination finds damaged.
fn examined(device: &dyn ZonedDevice) -> Result<Vec<String>, Error> {
    let examined = Examined::of(device)?;
    let mut found = Vec::new();
    for file in examined.files() {
        if !Examined::verify(device, &file).is_empty() {
            found.push(file.name.to_owned());
        }
    }
    Ok(found)
}

#[test]
fn zones_are_damaged_in_an_image() {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for seed in 0..number("ZONESTORE_ZEA_DAMAGES", 8) {
        let mut random = Rng::with_seed(seed);
        let g = geometries()[seed as usize % 2].clone();
        let (inner, files) = filled(&g, &mut random);
        for zone in g.zones() {
            for damage in ZoneDamage::ALL {
                let told = format!("seed {seed}, zone {zone}, {damage:?}");
                let group = |what: &str| {
                    format!("{} conventional, {damage:?}: {what}", g.conventional_zones)
                };
                let image = Arc::new(inner.snapshot());
                let drive = Arc::new(Faults::new(image.clone()));
                damage.strike(&drive, zone, kept(&mut random)).unwrap();
                let told_lost = examined(&*drive);
                if let Ok(examined) = Examined::of(&*drive) {
                    let contradictions = examined.contradictions(&*drive);
                    if damage == ZoneDamage::ReadOnly {
                        assert!(
                            contradictions.as_ref().is_ok_and(Vec::is_empty),
                            "{told}: {contradictions:?}"
                        );
                    }
                }
                let fs = match mount(drive.clone()) {
                    Ok(fs) => fs,
                    Err(error) => {
                        let metadata = if g.conventional_zones > 0 { 1 } else { 2 };
                        assert!(zone.0 < metadata, "{told}: {error}");
                        let files = told_lost
                            .map(|lost| lost.len())
                            .map_err(|error| error.to_string());
                        *seen
                            .entry(group(&format!(
                                "zone {zone} refused: {error}; examined: {files:?}"
                            )))
                            .or_default() += 1;
                        continue;
                    }
                };
                if damage == ZoneDamage::WentBack && g.conventional_zones == 0 && zone.0 < 2 {
                    continue;
                }
                let gone = lost(&fs, &files, &told);
                assert_eq!(
                    told_lost.as_ref().ok(),
                    Some(&gone),
                    "{told}: {told_lost:?}"
                );
                *seen
                    .entry(group(&format!("mounted, files lost: {}", !gone.is_empty())))
                    .or_default() += 1;
                if damage == ZoneDamage::Unreadable {
                    continue;
                }
                let (mut more, mut is_stopped) = (Files::new(), false);
                for n in 0..20 {
                    let (name, data) = (format!("new/{n}"), bytes(1000 + n, 5000));
                    match write(&fs, &name, &data) {
                        Ok(()) => _ = more.insert(name, data),
                        Err(error) => {
                            let full = matches!(error, Error::NoSpace);
                            let stopped = matches!(error, Error::Stopped { .. });
                            assert!(full || stopped && zone.0 < 2, "{told}: {error}");
                            is_stopped |= stopped;
                            *seen
                                .entry(group(&format!("new file: {error}")))
                                .or_default() += 1
                        }
                    }
                }
                assert!(is_stopped || more.len() > 5, "{told}: {}", more.len());
                assert_eq!(lost(&fs, &files, &told), gone, "{told}");
                assert!(lost(&fs, &more, &told).is_empty(), "{told}");
                let ended = fs.unmount();
                drop(fs);
                let fs = mount(drive.clone());
                let fs = fs.unwrap_or_else(|error| {
                    panic!("{told}: mounted once, then: {error} {ended:?}")
                });
                assert_eq!(lost(&fs, &files, &told), gone, "{told}");
                assert!(lost(&fs, &more, &told).is_empty(), "{told}");
            }
        }
    }
    for (what, count) in seen {
        println!("{count:6} {what}");
    }
}

/// Files that were synced are there after a mount, however many commands failed. Files whose last change failed are not
/// checked.
#[test]
fn every_kth_command_fails() {
    let commands = [
        ZoneCommand::Write,
        ZoneCommand::Read,
        ZoneCommand::Flush,
        ZoneCommand::Reset,
        ZoneCommand::Finish,
    ];
    for (command, every) in commands
        .into_iter()
        .flat_map(|of| [(of, 2), (of, 3), (of, 7), (of, 20)])
    {
        for g in geometries() {
            let told = format!(
                "every {every}th {command:?}, {} conventional",
                g.conventional_zones
            );
            let mut random = Rng::with_seed(every);
            let (inner, mut files) = filled(&g, &mut random);
            let drive = Arc::new(Faults::new(inner.clone()));
            for kth in (1..300).map(|n| n * every) {
                drive.add(Plan::at(command, kth, Fault::Io(ErrorKind::Other)));
            }
            let (mut mounted, mut succeeded) = (mount(drive.clone()).ok(), 0);
            for n in 0..120 {
                let Some(fs) = &mounted else {
                    mounted = mount(drive.clone()).ok();
                    continue;
                };
                let name = format!("db/{}", random.u32(..12));
                let data = bytes(n, random.usize(..6000));
                let done = match random.u32(..4) {
                    0 => fs.delete(&name).and_then(|()| fs.sync_metadata()),
                    _ => write(fs, &name, &data),
                };
                succeeded += u32::from(done.is_ok());
                match done {
                    Ok(()) if fs.list("").contains(&name) => _ = files.insert(name, data),
                    Ok(()) => _ = files.remove(&name),
                    // The file may have the old or the new content, so it is not checked any more.
                    Err(error) => {
                        files.remove(&name);
                        if matches!(error, Error::Stopped { .. }) {
                            mounted = None;
                        }
                    }
                }
            }
            let is_of_each_sync = matches!(command, ZoneCommand::Write | ZoneCommand::Flush);
            let none_succeeds = every < 7 && is_of_each_sync;
            assert!(none_succeeds || succeeded > 10, "{told}: {succeeded}");
            drop(mounted);
            let fs = mount(inner).unwrap_or_else(|error| panic!("{told}: {error}"));
            assert_eq!(lost(&fs, &files, &told), Vec::<String>::new(), "{told}");
        }
    }
}

/// Each zone has few dead bytes, and all together have more than a zone.
#[test]
fn a_few_dead_bytes_in_each_zone_are_space() {
    let g = Geometry {
        zone_size: 1 << 20,
        zone_capacity: 512 << 10,
        ..geometry(180, 1, 0)
    };
    let device = Arc::new(MemoryDrive::new(g).unwrap());
    format(&*device);
    let fs = ZeaFs::mount_with(device, Runtime::seeded(1), 64 << 10).unwrap();
    let large = bytes(1, 56 << 10);
    // Nine large files and a small one are a little more than a zone.
    let mut small = Vec::new();
    for n in 0.. {
        let name = format!("{n}");
        let is_small = n % 10 == 0;
        let length = if is_small { 5632 } else { large.len() };
        match write(&fs, &name, &large[..length]) {
            Ok(()) if is_small => small.push(name),
            Ok(()) => {}
            Err(error) => {
                assert!(matches!(error, Error::NoSpace), "{error}");
                break;
            }
        }
    }
    assert!(small.len() > 160, "{}", small.len());
    for name in &small {
        fs.delete(name).unwrap();
    }
    fs.sync_metadata().unwrap();
    for n in 0..4 {
        write(&fs, &format!("new {n}"), &large).unwrap();
    }
    assert_eq!(read(&fs, "1").unwrap(), large);
}
