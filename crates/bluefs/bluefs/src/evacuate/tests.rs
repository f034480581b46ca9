//! A zone that is open is not emptied, and a zone that another writer uses is not given back.

use super::{MoveError, Target};
use crate::slot::{Class, Slot};
use crate::{BlueFs, Error, FormatOptions, MountOptions, Role, Writer};
use device::faults::{Fault, Faults, Plan};
use device::{MemoryDrive, ZonedDevice};
use runtime::Runtime;
use runtime::sync::Mutex;
use std::sync::Arc;
use zone::{Geometry, ZoneCommand, ZoneError, ZoneId, ZoneKind};

fn mount(drive: Arc<Faults<MemoryDrive>>) -> BlueFs {
    let options = MountOptions {
        runtime: Runtime::seeded(1),
        ..MountOptions::default()
    };
    BlueFs::mount_alone(drive, options).unwrap()
}

pub(crate) fn mounted() -> (Arc<Faults<MemoryDrive>>, BlueFs) {
    mounted_on(0, 0, 1)
}

/// On a drive of forty zones of 24 KiB.
pub(crate) fn mounted_on(
    conventional_zones: u32,
    max_active_zones: u32,
    copies: u32,
) -> (Arc<Faults<MemoryDrive>>, BlueFs) {
    let geometry = Geometry {
        block_size: 512,
        zone_size: 32 << 10,
        zone_capacity: 24 << 10,
        zone_count: 40,
        conventional_zones,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: max_active_zones,
        max_active_zones,
        max_append_bytes: 0,
    };
    let drive = Arc::new(Faults::new(MemoryDrive::new(geometry).unwrap()));
    let options = FormatOptions {
        uuid: [3; 16],
        role: Role::Alone,
        copies,
        force: false,
    };
    BlueFs::format(&*drive, &options).unwrap();
    (drive.clone(), mount(drive))
}

pub(crate) fn zone_of(fs: &BlueFs, path: &str) -> ZoneId {
    fs.extents(path).unwrap()[0].at.zone
}

pub(crate) fn append(file: &mut Writer) -> Result<(), Error> {
    file.append(&[7; 90])?;
    file.sync()
}

/// The zone was chosen while it held other data; it has been reset and opened since then.
#[test]
fn a_zone_that_was_opened_since_it_was_chosen_is_left_as_it_is() {
    for path in ["/000001.log", "/1.sst"] {
        let (drive, fs) = mounted();
        let mut file = fs.create(path).unwrap();
        (0..10).for_each(|_| append(&mut file).unwrap());
        let zone = zone_of(&fs, path);
        let file = Arc::new(Mutex::new(file));
        let writer = file.clone();
        let meanwhile = move |_| append(&mut writer.lock()).unwrap();
        let fault = Fault::Slow(Arc::new(meanwhile));
        drive.add(Plan::at(ZoneCommand::Read, 1, fault).in_zone(zone));
        let mut written = 0;
        let shared = &fs.shared;
        shared.evacuate(zone, 0, &|| false, &mut written).unwrap();
        drive.clear();
        append(&mut file.lock()).unwrap();
        let size = file.lock().size() as usize;
        assert!(size >= 11 * 90);
        drop((file, fs));
        let fs = mount(drive);
        let mut found = vec![0; size];
        let reader = fs.open(path).unwrap();
        assert_eq!(reader.size(), size as u64, "{path}");
        reader.read_at(0, &mut found).unwrap();
        assert_eq!(found, vec![7; size], "{path}");
        assert_eq!((written, zone_of(&fs, path)), (0, zone), "{path}");
    }
}

/// Otherwise nobody would release it, and it would never be closed.
#[test]
fn a_zone_that_the_table_does_not_take_back_is_left_to_its_writer_to_release() {
    let (_drive, fs) = mounted();
    let (zone, limit) = (ZoneId(9), 4);
    let command = ZoneCommand::Write;
    let refused = ZoneError::TooManyActiveZones {
        command,
        zone,
        limit,
    };
    let slot = Arc::new(Slot::new(zone, Class::Short, 24 << 10, 0, 1, 1));
    assert!(!fs.shared.abandon(&slot, &refused));
}

/// Otherwise nobody would know of it until the next scrub, if the move fails.
#[test]
fn a_zone_whose_piece_was_put_together_from_both_copies_counts_as_damaged() {
    let (drive, fs) = mounted_on(0, 0, 2);
    let mut file = fs.create("/1.sst").unwrap();
    file.append(&[7; 2000]).unwrap();
    file.sync().unwrap();
    drop(file);
    let zone = zone_of(&fs, "/1.sst");
    fs.shared.close_zones(&|closed| closed == zone).unwrap();
    let copies = fs.shared.device.copies_of(zone).unwrap();
    let g = drive.geometry().clone();
    for (block, copy) in copies.into_iter().enumerate() {
        let mut bytes = vec![0; g.capacity(copy) as usize];
        drive.read(g.start(copy), &mut bytes).unwrap();
        bytes[block * 512] ^= 1;
        drive.reset(copy).unwrap();
        drive.write(g.start(copy), &bytes).unwrap();
    }
    assert!(fs.shared.device.damaged().is_empty());
    fs.shared.evacuate(zone, 0, &|| false, &mut 0).unwrap();
    assert_ne!(zone_of(&fs, "/1.sst"), zone);
    assert!(fs.shared.device.damaged().contains(&zone));
}

/// Otherwise a mount might find them behind the records of the rewritten log, and take them for its own.
#[test]
fn records_of_a_log_that_was_rewritten_meanwhile_are_not_written() {
    let (_drive, fs) = mounted();
    let mut log = fs.create("/1.log").unwrap();
    append(&mut log).unwrap();
    let node = fs.shared.state.lock().names.node("/1.log").unwrap().clone();
    let pieces = node.body.read().pieces.clone();
    let truncates = node.body.read().truncates;
    log.truncate(0).unwrap();
    append(&mut log).unwrap();
    let mut target = Target::new(&fs.shared, Class::MovedLog, 0);
    let moved = fs
        .shared
        .copy_records(&node, truncates, &pieces, &mut target);
    assert!(matches!(moved, Err(MoveError::Changed)));
    assert_eq!(target.written, 0);
}
