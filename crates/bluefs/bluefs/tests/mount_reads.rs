//! Bytes and commands that a mount reads: superblocks, journal and logs once, in large pieces.

use crate::support::{format, mount, mount_in, pool, read};
use bluefs::{BlueFs, Role};
use device::MemoryDrive;
use device::stats::Stats;
use std::sync::Arc;
use zone::{Geometry, ZoneKind};

fn geometry(conventional_zones: u32) -> Geometry {
    Geometry {
        block_size: 4096,
        zone_size: 16 << 20,
        zone_capacity: 16 << 20,
        zone_count: 64,
        conventional_zones,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 0,
        max_active_zones: 0,
        max_append_bytes: 0,
    }
}

const SYNCS: u32 = 400;

fn log_bytes() -> Vec<u8> {
    let records = (0..SYNCS).flat_map(|round| [round as u8; 500]);
    records.collect()
}

/// Writes what a database writes: SSTs, and a log and a manifest with many syncs.
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
                // Superblocks, journal and logs, and the rest of each piece after their ends.
                let needed = journal + logs;
                assert!(after.read.operations <= 12, "{after:?}");
                assert!(
                    after.read.bytes <= needed + (1 << 20),
                    "{needed}: {after:?}"
                );
                let before = device.snapshot();
                assert_eq!(read(&fs, "/000001.log").unwrap(), log_bytes());
                assert_eq!(device.snapshot(), before, "the mount has read it");
            }
        }
    }
}

#[test]
fn records_of_many_syncs_are_read_together() {
    let device = Arc::new(Stats::new(MemoryDrive::new(geometry(0)).unwrap()));
    format(&*device, Role::Alone);
    let fs = mount(device.clone()).unwrap();
    work(&fs);
    let before = device.snapshot();
    assert_eq!(read(&fs, "/000001.log").unwrap(), log_bytes());
    let together = device.snapshot().since(&before).read;
    assert!(together.operations <= 8, "{together:?}");
    // Reads at any offset, some across the end of what one read command fetches.
    let log = fs.open("/000001.log").unwrap();
    for (offset, length) in [(1, 998), (499, 2), (499, 20_001), (77_777, 100_000)] {
        let mut bytes = vec![0; length];
        assert_eq!(log.read_at(offset as u64, &mut bytes).unwrap(), length);
        assert_eq!(bytes, log_bytes()[offset..offset + length]);
    }
}
