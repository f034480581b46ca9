//! How much a mount reads: what it needs, in large pieces.

#![allow(clippy::unwrap_used)]

mod support;

use bluefs::{BlueFs, Role};
use device::MemoryDrive;
use device::stats::Stats;
use std::sync::Arc;
use support::{format, mount, mount_in, pool, read};
use zone::{Geometry, ZoneKind};

fn geometry(conventional_zones: u32) -> Geometry {
    Geometry {
        block_size: 4096,
        zone_size: 16 << 20,
        zone_capacity: 16 << 20,
        zone_count: 64,
        conventional_zones,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 0,
        max_active_zones: 0,
        max_append_bytes: 0,
    }
}

const SYNCS: u32 = 400;

/// A database's files: tables, a log and a manifest of many syncs.
fn work(fs: &BlueFs) {
    let mut log = fs.create("/000001.log").unwrap();
    let mut manifest = fs.create("/MANIFEST-000002").unwrap();
    for round in 0..SYNCS {
        log.append(&[round as u8; 500]).unwrap();
        log.sync().unwrap();
        if round % 20 == 0 {
            let mut table = fs.create(&format!("/{round:06}.sst")).unwrap();
            table.append(&vec![1; 1 << 20]).unwrap();
            table.close().unwrap();
            manifest.append(&[2; 150]).unwrap();
            manifest.sync().unwrap();
        }
    }
}

#[test]
fn a_mount_reads_what_it_needs_in_large_pieces() {
    for conventional in [0, 4] {
        for clean in [true, false] {
            let device = Arc::new(Stats::new(
                MemoryDrive::new(geometry(conventional)).unwrap(),
            ));
            format(&*device, Role::Alone);
            let fs = mount(device.clone()).unwrap();
            work(&fs);
            if clean {
                fs.unmount().unwrap();
            }
            let journal = fs.statistics().journal_bytes_written;
            let logs = fs.statistics().log_bytes_written;
            drop(fs);
            for read_only in [true, false] {
                let before = device.snapshot();
                let fs = mount_in(device.clone(), pool(&*device), read_only).unwrap();
                let after = device.snapshot().since(&before);
                // Superblocks, journal and logs, and what a piece reads behind them.
                let needed = journal + logs;
                assert!(after.read.operations <= 12, "{after:?}");
                assert!(
                    after.read.bytes <= needed + (1 << 20),
                    "{needed}: {after:?}"
                );
                assert_eq!(
                    read(&fs, "/000001.log").unwrap().len(),
                    SYNCS as usize * 500
                );
            }
        }
    }
}
