//! A drive in memory that counts, with a file system on it.

#![allow(dead_code, clippy::unwrap_used)]

use bluefs::{BlueFs, FormatOptions, MountOptions, Role};
use device::changed::{Change, Changed};
use device::stats::Stats;
use device::{MemoryDrive, ZonedDevice};
use kv::{Batch, Kv, LoggedBatch, MergeOperator, Options, Replay, ReplayFilter};
use kv_rocksdb::RocksDb;
use runtime::Runtime;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use zone::{ByteOffset, Geometry, ZoneCommand, ZoneError, ZoneId, ZoneKind, ZoneResult};
use zone_alloc::ZonePool;

pub type Drive = Arc<Stats<Changed<MemoryDrive, Patient>>>;

/// A flush lets all others run for a while, as that of a real drive does; otherwise hardly ever would two
/// writers wait at once.
pub struct Patient;

impl Change<MemoryDrive> for Patient {
    fn flush(&self, drive: &MemoryDrive) -> ZoneResult<()> {
        for _ in 0..100 {
            std::thread::yield_now();
        }
        drive.flush()
    }
}

fn patient(drive: MemoryDrive) -> Drive {
    let change = Patient;
    Arc::new(Stats::new(Changed { drive, change }))
}

/// Bytes of the drive that cannot be read, so many times; and whether flushes fail.
#[derive(Default)]
pub struct Unreadable(pub Mutex<(Range<u64>, u32)>, pub AtomicBool);

impl Change<MemoryDrive> for Unreadable {
    fn read(&self, drive: &MemoryDrive, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        let (bad, times) = &mut *self.0.lock().unwrap();
        if *times > 0 && at.0 < bad.end && at.0 + buffer.len() as u64 > bad.start {
            *times -= 1;
            return Err(ZoneError::Io {
                command: ZoneCommand::Read,
                at,
                source: Arc::new(io::Error::from(io::ErrorKind::Other)),
            });
        }
        drive.read(at, buffer)
    }

    fn flush(&self, drive: &MemoryDrive) -> ZoneResult<()> {
        if self.1.load(Ordering::Relaxed) {
            return Err(ZoneError::Io {
                command: ZoneCommand::Flush,
                at: ByteOffset(0),
                source: Arc::new(io::Error::from(io::ErrorKind::Other)),
            });
        }
        drive.flush()
    }
}

pub fn breakable(drive: MemoryDrive) -> Arc<Changed<MemoryDrive, Unreadable>> {
    let change = Unreadable::default();
    Arc::new(Changed { drive, change })
}

pub fn geometry() -> Geometry {
    Geometry {
        block_size: 4096,
        zone_size: 1 << 20,
        zone_capacity: 1 << 20,
        zone_count: 128,
        conventional_zones: 4,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 0,
        max_active_zones: 0,
        max_append_bytes: 0,
    }
}

/// An empty drive.
pub fn drive_of(geometry: Geometry) -> Drive {
    patient(MemoryDrive::new(geometry).unwrap())
}

/// A formatted drive.
pub fn formatted() -> Drive {
    let drive = drive_of(geometry());
    format(&*drive);
    drive
}

pub fn format(drive: &dyn ZonedDevice) {
    let options = FormatOptions {
        uuid: [7; 16],
        role: Role::Alone,
        copies: 1,
        force: false,
    };
    BlueFs::format(drive, &options).unwrap();
}

/// Mounts with a clock that ticks once a call.
pub fn mount(drive: &Arc<impl ZonedDevice + 'static>) -> BlueFs {
    try_mount(drive).unwrap()
}

/// The same where it may fail.
pub fn try_mount(drive: &Arc<impl ZonedDevice + 'static>) -> Result<BlueFs, bluefs::Error> {
    try_mount_with_pool(drive).map(|(_, fs)| fs)
}

/// The same with the pool of zones, for a test that takes some.
pub fn mount_with_pool(drive: &Arc<impl ZonedDevice + 'static>) -> (Arc<ZonePool>, BlueFs) {
    try_mount_with_pool(drive).unwrap()
}

fn try_mount_with_pool(
    drive: &Arc<impl ZonedDevice + 'static>,
) -> Result<(Arc<ZonePool>, BlueFs), bluefs::Error> {
    let g = drive.geometry().clone();
    let report = drive.report(ZoneId(0), g.zone_count)?;
    let options = MountOptions {
        read_only: false,
        runtime: Runtime::seeded(0),
        ..MountOptions::default()
    };
    let pool = Arc::new(ZonePool::new(g, &report));
    let fs = BlueFs::mount(drive.clone(), pool.clone(), options)?;
    Ok((pool, fs))
}

/// The drive as it is at this moment, the way another computer would find it after the process
/// that uses it was killed.
pub fn killed(drive: &Drive) -> Drive {
    let image = drive.inner().drive.snapshot();
    image.power_cycle();
    patient(image)
}

pub fn options() -> Options {
    Options {
        create_if_missing: true,
        write_buffer_bytes: 1 << 20,
        target_file_bytes: 960 << 10,
        block_cache_bytes: 1 << 20,
        merge: vec![(b'#', MergeOperator::AddI64s)],
        ..Options::default()
    }
}

pub fn read_only() -> Options {
    Options {
        read_only: true,
        create_if_missing: false,
        ..options()
    }
}

pub fn open(fs: &BlueFs) -> Kv {
    Kv::open(&RocksDb, fs, "/db", &options(), None).unwrap()
}

/// One numbered batch: the key `k<number>` with a value of `size` bytes, and its number as a blob.
pub fn numbered(number: u32, size: usize) -> Batch {
    let mut batch = Batch::default();
    batch.put(&key(number), &vec![number as u8; size]);
    batch.log_data(&number.to_le_bytes());
    batch
}

pub fn key(number: u32) -> Vec<u8> {
    format!("k{number:08}").into_bytes()
}

/// The numbers of all keys, checked for their values' bytes.
pub fn numbers(kv: &Kv) -> Vec<u32> {
    kv.scan(b"k", Some(b"l"))
        .map(|entry| {
            let (key, value) = entry.unwrap();
            let number: u32 = std::str::from_utf8(&key[1..]).unwrap().parse().unwrap();
            assert!(value.iter().all(|byte| *byte == number as u8));
            number
        })
        .collect()
}

/// Records what it is shown and stops at a number.
pub struct StopAt {
    stop: Option<u32>,
    ends: Option<Ends>,
    seen: Arc<Mutex<Vec<Vec<u32>>>>,
}

/// The numbers of the batches that a filter saw, each with those of its blobs.
pub type Seen = Arc<Mutex<Vec<Vec<u32>>>>;

/// Where each batch ends, and in which log.
pub type Ends = Arc<Mutex<Vec<(String, u64)>>>;

/// A filter that only looks where batches end.
pub fn ends() -> (Box<dyn ReplayFilter>, Ends) {
    let ends = Ends::default();
    let filter = StopAt {
        stop: None,
        ends: Some(ends.clone()),
        seen: Seen::default(),
    };
    (Box::new(filter), ends)
}

/// A filter, and what it was shown: the numbers in each record.
pub fn stop_at(stop: Option<u32>) -> (Box<dyn ReplayFilter>, Seen) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    (
        Box::new(StopAt {
            stop,
            ends: None,
            seen: seen.clone(),
        }),
        seen,
    )
}

impl ReplayFilter for StopAt {
    fn batch(&mut self, logged: &LoggedBatch<'_>) -> Replay {
        if let Some(ends) = &self.ends {
            let end = (logged.log.to_owned(), logged.end);
            ends.lock().unwrap().push(end);
        }
        let numbers: Vec<u32> = logged
            .log_data
            .iter()
            .map(|blob| u32::from_le_bytes((*blob).try_into().unwrap()))
            .collect();
        let stop = numbers.iter().any(|number| Some(*number) == self.stop);
        self.seen.lock().unwrap().push(numbers);
        if stop { Replay::Stop } else { Replay::Continue }
    }
}
