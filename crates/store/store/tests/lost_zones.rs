//! Health of a drive that has lost a zone is never graded good, whatever was in the zone.

use crate::common::*;
use bluefs::ZonePurpose;
use device::divided::Divided;
use device::{MemoryDrive, ZonedDevice};
use std::collections::BTreeSet;
use std::sync::Arc;
use store::{Grade, MkfsOptions, MountOptions, Store};
use zone::{Geometry, ZoneCondition, ZoneId, ZoneKind};

fn drive() -> MemoryDrive {
    let drive = Arc::new(MemoryDrive::new(geometry(96)).unwrap());
    let device: Arc<dyn ZonedDevice> = drive.clone();
    mkfs_in_copies(&device, Some(2));
    let store = mount(&device);
    create_collection(&store);
    for index in 0..20 {
        put(&store, &format!("o{index}"), &pattern(index, 300_000)).unwrap();
    }
    store.unmount().unwrap();
    drive.snapshot()
}

#[test]
fn no_drive_with_a_lost_zone_is_good() {
    let whole = drive();
    let mut purposes = BTreeSet::new();
    for condition in [ZoneCondition::Offline, ZoneCondition::ReadOnly] {
        for zone in (0..96).map(ZoneId) {
            for read_only in [true, false] {
                let drive = whole.snapshot();
                drive.set_condition(zone, condition).unwrap();
                let device: Arc<dyn ZonedDevice> = Arc::new(drive);
                let options = MountOptions {
                    read_only,
                    ..options()
                };
                let store = Store::mount(device, options).unwrap();
                let health = store.health().unwrap();
                let what = format!("zone {zone} {condition:?}, read-only {read_only}");
                assert!(health.grade != Grade::Good, "{what}");
                // A mount for writing may give up the other zone of a pair too.
                assert!((1..=2).contains(&health.wear.zones_lost), "{what}");
                for lost in &health.metadata_zones {
                    assert_eq!((lost.zone, lost.condition), (zone, condition));
                    purposes.insert(format!("{:?}", lost.purpose));
                }
                // No metadata is lost, for it has another copy.
                assert!(health.metadata.is_empty(), "{what}: {:?}", health.metadata);
                assert_eq!(health.is_healthy(), health.zones.is_empty(), "{what}");
                store.unmount().unwrap();
            }
        }
    }
    let expected = ["Data", "Journal", "Log", "Spare", "Superblock"];
    let has = |purpose: &&str| purposes.contains(*purpose);
    assert!(expected.iter().all(has), "{purposes:?}");
}

#[test]
fn a_ring_of_superblocks_that_is_lost_is_told() {
    let drive = drive();
    for zone in [0, 1] {
        drive
            .set_condition(ZoneId(zone), ZoneCondition::Offline)
            .unwrap();
    }
    let device: Arc<dyn ZonedDevice> = Arc::new(drive);
    let store = mount(&device);
    let health = store.health().unwrap();
    assert!(!health.is_healthy());
    let lines = health.lines().join("\n");
    assert!(lines.contains("superblock zones 0 and 1"), "{lines}");
    assert!(lines.contains("zone 0 (superblocks of the metadata) is offline"));
    store.unmount().unwrap();
}

/// One copy of the metadata is reset; the next mount for writing repairs it and counts that, for a later scrub would
/// find nothing.
#[test]
fn what_the_mount_has_mended_is_counted() {
    let whole = drive();
    let device: Arc<dyn ZonedDevice> = Arc::new(whole.snapshot());
    let store = mount(&device);
    assert_eq!(store.scrub_status().unwrap().mended_at_mount, 0);
    let zones = store.bluefs().zones();
    store.unmount().unwrap();
    for (zone, purpose) in zones {
        if !matches!(
            purpose,
            ZonePurpose::Superblock | ZonePurpose::Data | ZonePurpose::Log
        ) {
            continue;
        }
        let drive = whole.snapshot();
        let device: Arc<dyn ZonedDevice> = Arc::new(drive);
        if device.geometry().kind(zone) == ZoneKind::Conventional {
            continue;
        }
        device.reset(zone).unwrap();
        let store = mount(&device);
        let status = store.scrub_status().unwrap();
        let is_told = status
            .lines()
            .iter()
            .any(|line| line.contains("made whole by the mount"));
        assert_eq!(is_told, status.mended_at_mount > 0);
        // Only for data zones is a repair certain: the other zones may have held nothing that is needed.
        assert!(is_told || purpose != ZonePurpose::Data, "zone {zone}");
        store.unmount().unwrap();
    }
}

/// Lost zones are counted as the drive's own zones, not as the parts into which BlueFS divides conventional zones.
#[test]
fn a_conventional_zone_is_one_zone_whatever_it_is_divided_into() {
    let divided = Geometry {
        zone_size: 8 << 20,
        zone_capacity: 8 << 20,
        zone_count: 150,
        conventional_zones: 3,
        ..geometry(150)
    };
    let drive = Arc::new(MemoryDrive::new(divided).unwrap());
    let device: Arc<dyn ZonedDevice> = drive.clone();
    let in_parts = Arc::new(Divided::new(device.clone(), 8).unwrap());
    let made = MkfsOptions {
        metadata_copies: Some(2),
        ..MkfsOptions::new(kv_rocksdb::RocksDb)
    };
    Store::mkfs(in_parts, &made).unwrap();
    let store = mount(&device);
    create_collection(&store);
    put(&store, "o", &pattern(1, 300_000)).unwrap();
    let space = store.statfs();
    assert_eq!(space.conventional_parts, 8);
    store.unmount().unwrap();
    for zone in (0..3).map(ZoneId) {
        let drive = drive.snapshot();
        drive.set_condition(zone, ZoneCondition::Offline).unwrap();
        let device: Arc<dyn ZonedDevice> = Arc::new(drive);
        for round in 0..3 {
            let store = mount(&device);
            let health = store.health().unwrap();
            let what = format!("zone {zone}, mount {round}: {health:?}");
            assert_eq!(
                (health.wear.zones, health.wear.zones_lost),
                (150, 1),
                "{what}"
            );
            assert_eq!(health.grade, Grade::Worn, "{what}");
            assert!(
                health.metadata_zones.iter().all(|lost| lost.zone == zone),
                "{what}"
            );
            assert!(
                health.metadata_zones.len() <= 1 && health.unusable_zones <= 1,
                "{what}"
            );
            assert!(store.scrub(true, |_| true).unwrap());
            // At most the lost zone's space for metadata becomes unusable.
            let now = store.statfs();
            assert!(now.unusable_bytes <= 8 << 20, "{what}: {now:?}");
            put(&store, "o", &pattern(2, 300_000)).unwrap();
            assert_eq!(store.health().unwrap().wear.zones_lost, 1, "{what}");
            store.unmount().unwrap();
        }
    }
}
