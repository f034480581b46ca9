//! Blocks of logs that cannot be read.

use super::*;
use crate::worn_out::BadBlocks;
use device::changed::Changed;
use zone::Geometry;

const FILES: usize = 10;

type Drive = Arc<Changed<MemoryDrive, BadBlocks>>;

fn drive(drive: MemoryDrive) -> Drive {
    let change = BadBlocks::default();
    Arc::new(Changed { drive, change })
}

/// A drive with this many conventional zones, and one copy of its files. The process was killed.
fn killed(conventional: u32) -> Drive {
    let g = Geometry {
        zone_size: 128 << 10,
        zone_capacity: 128 << 10,
        ..geometry(40, conventional, 0)
    };
    let drive = drive(MemoryDrive::new(g).unwrap());
    format_copies(&*drive, Role::Alone, 1);
    let fs = mount(drive.clone()).unwrap();
    for number in 0..FILES {
        support::put(&fs, &format!("/{number}.sst"), &[number as u8; 700]);
    }
    let mut log = fs.create("/1.log").unwrap();
    for part in 0..FILES {
        log.append(&[part as u8; 300]).unwrap();
        log.sync().unwrap();
    }
    drop((log, fs));
    drive
}

fn spoil(drive: &Drive, at: ZoneAddress) {
    let bad = drive.geometry().absolute(at).0;
    drive.change.0.lock().unwrap().push(bad);
}

/// The records of the log, each of one block.
fn records(drive: &Drive) -> Vec<ZoneAddress> {
    let g = drive.geometry();
    let blocks = g.zones().flat_map(|zone| {
        let offsets = (0..g.zone_capacity).step_by(BLOCK);
        offsets.map(move |offset| ZoneAddress::new(zone, offset))
    });
    let records: Vec<ZoneAddress> = blocks
        .filter(|at| block(&drive.drive, *at).starts_with(b"BFWR"))
        .collect();
    assert_eq!(records.len(), FILES);
    records
}

/// A search for durability marks reads the blocks beside one that cannot be read.
#[test]
fn it_hides_no_marks_beside_it() {
    let drive = killed(40);
    let records = records(&drive);
    let damaged = records[FILES - 4];
    drive.drive.decay(damaged, 300, |bytes| bytes[200] ^= 1);
    // The marks in the records beside it are the last ones.
    spoil(&drive, records[FILES - 2]);
    let refused = mount(drive).map(drop).unwrap_err();
    assert!(
        matches!(refused, Error::LogDamaged { at, .. } if at == damaged),
        "{refused}"
    );
}
