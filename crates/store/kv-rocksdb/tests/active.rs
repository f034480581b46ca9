//! Few active zones: RocksDB's logs, flushes and compactions and BlueFS's own zones stay within the limit, so that the
//! drive never has to refuse to open a zone.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use bluefs::{BlueFs, MountOptions};
use device::trace::{Event, Trace};
use device::{MemoryDrive, ZonedDevice};
use kv::{Batch, Durability};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use support::*;
use zone::{Geometry, ZoneError, ZoneId};
use zone_alloc::ZonePool;

fn with_active_zones(limit: u32, conventional_zones: u32) {
    let geometry = Geometry {
        zone_count: 200,
        conventional_zones,
        max_open_zones: limit,
        max_active_zones: limit,
        ..geometry()
    };
    let refused = Arc::new(Mutex::new(Vec::new()));
    let changes = Arc::new(AtomicU64::new(0));
    let (list, count) = (refused.clone(), changes.clone());
    let sink = move |event: &Event| {
        let too_many = matches!(
            event.error,
            Some(ZoneError::TooManyActiveZones { .. } | ZoneError::TooManyOpenZones { .. })
        );
        if too_many {
            list.lock().unwrap().push(event.clone());
        }
        count.fetch_add(1, Ordering::Relaxed);
    };
    let drive = MemoryDrive::new(geometry.clone()).unwrap();
    let drive = Arc::new(Trace::new(drive, Arc::new(sink)));
    format(&*drive);
    let report = drive.report(ZoneId(0), geometry.zone_count).unwrap();
    let pool = Arc::new(ZonePool::new(geometry.clone(), &report));
    let fs = BlueFs::mount(drive.clone(), pool, MountOptions::default()).unwrap();
    let kv = open(&fs);
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let kv = &kv;
            scope.spawn(move || {
                let mut state = u64::from(thread) + 1;
                for round in 0..6_000u32 {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    let mut batch = Batch::default();
                    let value = state.to_le_bytes().repeat(100);
                    batch.put(&key((state >> 40) as u32 % 20_000), &value);
                    let durability = match round % 50 {
                        0 => Durability::Synced,
                        _ => Durability::Buffered,
                    };
                    kv.write(&batch, durability).unwrap();
                }
            });
        }
    });
    kv.compact().unwrap();
    let rows = kv.scan(b"k", Some(b"l")).map(Result::unwrap).count();
    assert!(rows > 10_000, "{rows}");
    kv.close().unwrap();
    fs.unmount().unwrap();
    // The drive reports no more active zones than its limit, and has refused no command for that reason.
    let report = drive.report(ZoneId(0), geometry.zone_count).unwrap();
    let active = report.iter().filter(|z| z.condition.is_active()).count();
    assert!(active <= limit as usize);
    assert!(changes.load(Ordering::Relaxed) > 1_000);
    let refused = refused.lock().unwrap();
    assert!(
        refused.is_empty(),
        "{} of them: {:?}",
        refused.len(),
        refused[0]
    );
}

#[test]
fn six_without_conventional_zones_are_enough() {
    with_active_zones(6, 0);
}

#[test]
fn six_with_conventional_zones_are_enough() {
    with_active_zones(6, 4);
}

#[test]
fn fourteen_are_enough() {
    with_active_zones(14, 0);
}
