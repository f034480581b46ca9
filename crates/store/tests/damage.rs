//! Damage to the metadata of the file system below, one bit in each log record and journal frame:
//! objects that were acknowledged are there, or the store cannot be mounted for writing and a check
//! says why. Only the last commit before an unclean stop may be missing.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use device::{MemoryDrive, ZonedDevice};
use std::sync::Arc;
use store::{Error, MountOptions, Store};
use zone::{ZoneAddress, ZoneKind};

const OBJECTS: usize = 8;

/// Every block that begins a log record or a journal frame, with one bit of it changed.
fn damaged_copies(device: &MemoryDrive) -> Vec<Arc<MemoryDrive>> {
    let g = device.geometry().clone();
    let mut copies = Vec::new();
    for zone in g.zones() {
        let report = device.report_zone(zone).unwrap();
        let sequential = g.kind(zone) != ZoneKind::Conventional;
        let used = if sequential {
            report.write_pointer
        } else {
            64 << 10
        };
        if used == 0 {
            continue;
        }
        let mut bytes = vec![0; used as usize];
        device.read(g.start(zone), &mut bytes).unwrap();
        for at in (0..bytes.len()).step_by(4096) {
            if !bytes[at..].starts_with(b"BFWR") && !bytes[at..].starts_with(b"BFJL") {
                continue;
            }
            let copy = device.snapshot();
            bytes[at + 80] ^= 4;
            if sequential {
                copy.reset(zone).unwrap();
            }
            copy.write(g.absolute(ZoneAddress::new(zone, 0)), &bytes)
                .unwrap();
            bytes[at + 80] ^= 4;
            copies.push(Arc::new(copy));
        }
    }
    copies
}

fn name(i: usize) -> String {
    format!("object{i}")
}

fn has(store: &Store, count: usize) -> bool {
    (0..count).all(|i| read(store, &name(i)).is_ok_and(|data| data == pattern(i as u64, 9000)))
}

#[test]
fn acknowledged_objects_are_there_or_the_store_is_not_mounted() {
    let memory = Arc::new(MemoryDrive::new(geometry(40)).unwrap());
    let device: Arc<dyn ZonedDevice> = memory.clone();
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    for i in 0..OBJECTS {
        put(&store, &name(i), &pattern(i as u64, 9000)).unwrap();
    }
    let unclean = memory.snapshot();
    store.unmount().unwrap();
    drop(store);
    for (drive, clean) in [(&unclean, false), (&*memory, true)] {
        let (mut refused, mut without_last) = (0, 0);
        for copy in damaged_copies(drive) {
            match Store::mount(copy.clone(), options()) {
                Ok(store) if has(&store, OBJECTS) => {}
                Ok(store) => {
                    assert!(!clean && has(&store, OBJECTS - 1));
                    without_last += 1;
                }
                Err(Error::BlueFs(bluefs::Error::Corrupt { .. })) => {
                    refused += 1;
                    let read_only = MountOptions {
                        read_only: true,
                        ..options()
                    };
                    match Store::mount(copy, read_only) {
                        Ok(store) => {
                            assert!(!store.fsck(false, &mut |_, _| {}).unwrap().is_clean())
                        }
                        Err(error) => assert!(!matches!(error, Error::NotFormatted)),
                    }
                }
                // RocksDB's own checks: of its manifest, say, which is a log too.
                Err(error) => panic!("{error}"),
            }
        }
        println!("clean {clean}: {refused} refused, {without_last} without the last commit");
        assert!(refused > OBJECTS / 2, "{refused}");
        assert!(without_last <= 1);
    }
}
