//! A small drive with the small database on it.

#![allow(dead_code, clippy::unwrap_used)]

use bluefs::{BlueFs, FormatOptions, MountOptions, Role};
use device::ZonedDevice;
use kv::{Batch, Kv, LoggedBatch, MergeOperator, Options, Replay, ReplayFilter, Result};
use kv_log::KvLog;
use runtime::Runtime;
use std::sync::Arc;
use zone::{Geometry, ZoneId, ZoneKind};
use zone_alloc::ZonePool;

pub fn geometry() -> Geometry {
    Geometry {
        block_size: 4096,
        zone_size: 256 << 10,
        zone_capacity: 256 << 10,
        zone_count: 48,
        conventional_zones: 2,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 0,
        max_active_zones: 0,
        max_append_bytes: 0,
    }
}

/// Formats the drive with an empty file system.
pub fn format(drive: &dyn ZonedDevice) {
    let options = FormatOptions {
        uuid: [5; 16],
        role: Role::Alone,
        copies: 1,
        force: false,
    };
    BlueFs::format(drive, &options).unwrap();
}

pub fn mount(drive: &Arc<impl ZonedDevice + 'static>) -> BlueFs {
    try_mount(drive).unwrap()
}

pub fn try_mount(drive: &Arc<impl ZonedDevice + 'static>) -> bluefs::Result<BlueFs> {
    let g = drive.geometry().clone();
    let report = drive.report(ZoneId(0), g.zone_count)?;
    let options = MountOptions {
        runtime: Runtime::seeded(0),
        ..MountOptions::default()
    };
    let fs = BlueFs::mount(drive.clone(), Arc::new(ZonePool::new(g, &report)), options)?;
    if !fs.exists("/db") {
        fs.create_directory("/db")?;
    }
    Ok(fs)
}

pub fn options() -> Options {
    Options {
        create_if_missing: true,
        write_buffer_bytes: 200 << 10,
        merge: vec![(b'#', MergeOperator::AddI64s)],
        ..Options::default()
    }
}

pub fn open(fs: &BlueFs) -> Result<Kv> {
    Kv::open(&KvLog, fs, "/db", &options(), None)
}

/// A batch with the row `number`, of `size` bytes, and the number as log data for filters.
pub fn numbered(number: u32, size: usize) -> Batch {
    let mut batch = Batch::default();
    batch.put(&key(number), &vec![number as u8; size]);
    batch.log_data(&number.to_le_bytes());
    batch
}

fn key(number: u32) -> Vec<u8> {
    format!("k{number:04}").into_bytes()
}

/// The numbers of all rows, in order; asserts that the values are right.
pub fn numbers(kv: &Kv) -> Vec<u32> {
    let rows = kv.scan(b"k", Some(b"l")).map(Result::unwrap);
    rows.map(|(key, value)| {
        let number: u32 = std::str::from_utf8(&key[1..]).unwrap().parse().unwrap();
        assert!(value.iter().all(|byte| *byte == number as u8));
        number
    })
    .collect()
}

/// A filter that stops at a number, and sends the numbers it sees.
pub struct StopAt(pub Option<u32>, pub std::sync::mpsc::Sender<u32>);

impl ReplayFilter for StopAt {
    fn batch(&mut self, logged: &LoggedBatch<'_>) -> Replay {
        let number = u32::from_le_bytes(logged.log_data[0].try_into().unwrap());
        self.1.send(number).unwrap();
        if self.0 == Some(number) {
            return Replay::Stop;
        }
        Replay::Continue
    }
}
