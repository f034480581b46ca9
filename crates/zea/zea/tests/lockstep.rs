//! Random histories on several instances of one drive, beside a model: on drives in memory, with either kind of
//! sequential zones, and in a file. `ZONESTORE_ZEA_STEPS=n` takes more steps.

use crate::support::{Model, assert_same, bytes, format, geometry, number, put};
use device::{FileDrive, MemoryDrive, ZonedDevice};
use std::sync::Arc;
use zea::{Error, Instance, LogicalAddress, Sequence};
use zone::{ByteOffset, ZoneId, ZoneKind};

fn run(device: Arc<dyn ZonedDevice>, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let sequence = Sequence::default();
    let mut zones: Vec<(Instance, Model)> = [1, 3, 4]
        .into_iter()
        .map(|zone| {
            let instance = format(
                &device,
                zone,
                [1, 4, 16][zone as usize % 3],
                &sequence,
                seed,
            );
            (instance.unwrap(), Model::default())
        })
        .collect();
    for step in 0..number("ZONESTORE_ZEA_STEPS", 400) {
        let chosen = random.usize(..zones.len());
        let (instance, mut model) = zones.swap_remove(chosen);
        let zone = instance.zone();
        let instance = match random.u32(..20) {
            0..14 => {
                let most = [40, 700, 9000][random.usize(..3)];
                let data = bytes(seed << 32 | step, 1 + random.usize(..most));
                let room = instance.room();
                if data.len() as u64 <= room {
                    let before = sequence.upcoming();
                    let placed = put(&instance, &mut model, random.u64(..8), data);
                    assert_eq!((placed.order, placed.at.zone), (before, zone));
                    instance
                } else {
                    let refused = instance.put(LogicalAddress(0), &data);
                    let told = matches!(refused, Err(Error::NoRoom { room: r, .. }) if r == room);
                    assert!(told, "{refused:?}");
                    // An extent that does not fit changes nothing; a caller would finish the zone then.
                    assert_same(&instance, &model);
                    if random.bool() {
                        instance.finish().unwrap();
                        assert_eq!(instance.room(), 0);
                        drop(instance);
                        let again = Instance::open(device.clone(), zone, sequence.clone()).unwrap();
                        assert_same(&again, &model);
                        again.reset().unwrap();
                    } else {
                        instance.reset().unwrap();
                    }
                    model = Model::default();
                    format(&device, zone.0, random.u32(1..20), &sequence, step).unwrap()
                }
            }
            14 => {
                drop(instance);
                let fresh = Sequence::default();
                let again = Instance::open(device.clone(), zone, fresh.clone()).unwrap();
                let last = model.extents.last().map(|(placed, _)| *placed);
                assert_eq!(again.last(), last);
                assert_eq!(fresh.upcoming(), last.map_or(0, |last| last.order + 1));
                Instance::open(device.clone(), zone, sequence.clone()).unwrap()
            }
            15 => {
                assert_same(&instance, &model);
                instance
            }
            16 => {
                // Addresses and lengths that were never put are refused.
                for (placed, _) in &model.extents {
                    for (lba, length) in [
                        (placed.lba.0 + 512, placed.length),
                        (placed.lba.0.wrapping_sub(512), placed.length),
                        (placed.lba.0, placed.length + 1),
                        (placed.lba.0, placed.length - 1),
                        (placed.lba.0 + 1, placed.length),
                        (u64::MAX - 511, 1),
                        (placed.lba.0, u64::MAX),
                        (placed.lba.0, 0),
                    ] {
                        let none = instance.get(ByteOffset(lba), length);
                        assert!(matches!(none, Err(Error::NotAnExtent { .. })), "{none:?}");
                    }
                }
                instance
            }
            17 => {
                instance.flush().unwrap();
                instance
            }
            _ => {
                for (placed, data) in &model.extents {
                    assert!(instance.get(placed.lba, placed.length).unwrap() == *data);
                }
                instance
            }
        };
        zones.push((instance, model));
    }
    for (instance, model) in &zones {
        assert_same(instance, model);
    }
}

#[test]
fn in_memory() {
    for seed in 0..4 {
        let kind = [
            ZoneKind::SequentialWriteRequired,
            ZoneKind::SequentialWritePreferred,
        ][seed as usize % 2];
        run(Arc::new(MemoryDrive::new(geometry(kind)).unwrap()), seed);
    }
}

#[test]
fn in_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("drive");
    let g = geometry(ZoneKind::SequentialWriteRequired);
    run(Arc::new(FileDrive::create(path, &g, "test").unwrap()), 9);
}

#[test]
fn what_cannot_be_is_refused() {
    let g = geometry(ZoneKind::SequentialWriteRequired);
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(g).unwrap());
    let sequence = Sequence::default();
    let open = |zone| Instance::open(device.clone(), ZoneId(zone), Sequence::default());
    let make = |zone, n| format(&device, zone, n, &sequence, 1);
    assert!(matches!(make(0, 4), Err(Error::Conventional { .. })));
    assert!(matches!(open(0), Err(Error::Conventional { .. })));
    assert!(matches!(make(6, 4), Err(Error::NoSuchZone { .. })));
    assert!(matches!(open(2), Err(Error::NotFormatted { .. })));
    assert!(matches!(make(2, 0), Err(Error::BackPointers { .. })));
    let most = (512 - 80) / 4;
    assert!(matches!(make(2, most + 1), Err(Error::BackPointers { most: m, .. }) if m == most));
    let instance = make(2, most).unwrap();
    assert!(matches!(make(2, 4), Err(Error::NotEmpty { .. })));
    let empty = instance.put(LogicalAddress(0), &[]);
    assert!(matches!(empty, Err(Error::EmptyExtent)));
    // A zone with data of another program.
    device
        .write(device.geometry().start(ZoneId(3)), &[7; 2048])
        .unwrap();
    assert!(matches!(open(3), Err(Error::NotFormatted { .. })));
}

/// Fills zones with the smallest extents, so that every back pointer is used.
#[test]
fn a_full_zone_with_many_pointers() {
    let g = geometry(ZoneKind::SequentialWriteRequired);
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(g.clone()).unwrap());
    let sequence = Sequence::default();
    for (zone, n) in [(1, 1), (2, 3), (3, 16), (4, 108)] {
        let instance = format(&device, zone, n, &sequence, 1).unwrap();
        let mut model = Model::default();
        while instance.room() > 0 {
            put(&instance, &mut model, 0, vec![7; 100]);
        }
        assert_eq!(model.extents.len(), (48 * 2 - 2) / 2);
        assert_eq!(instance.written(), g.zone_capacity);
        assert_same(&instance, &model);
        drop(instance);
        let again = Instance::open(device.clone(), ZoneId(zone), sequence.clone()).unwrap();
        assert_same(&again, &model);
    }
}
