//! A drive in memory that counts commands, with a file system and a database on it.

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
use std::time::Duration;
use zone::{ByteOffset, Geometry, ZoneCommand, ZoneError, ZoneId, ZoneKind, ZoneResult};
use zone_alloc::ZonePool;

pub type Drive = Arc<Stats<Changed<MemoryDrive, Patient>>>;

/// Lets other threads run during a flush, as the flush of a real drive does; otherwise two writers would hardly ever wait
/// at once.
pub struct Patient;

impl Change<MemoryDrive> for Patient {
    fn flush(&self, drive: &MemoryDrive) -> ZoneResult<()> {
        // Not by yielding: on a busy machine each time lets all others run first.
        std::thread::sleep(Duration::from_micros(50));
        drive.flush()
    }
}

fn patient(drive: MemoryDrive) -> Drive {
    let change = Patient;
    Arc::new(Stats::new(Changed { drive, change }))
}

/// Faults of a drive: reads of this byte range fail this many times, and flushes fail if the flag is set.
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

/// An unformatted drive.
pub fn drive_of(geometry: Geometry) -> Drive {
    patient(MemoryDrive::new(geometry).unwrap())
}

/// A drive with an empty file system.
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

/// Mounts with a clock that ticks at each call.
pub fn mount(drive: &Arc<impl ZonedDevice + 'static>) -> BlueFs {
    try_mount(drive).unwrap()
}

/// Like [`mount`], without panicking on an error.
pub fn try_mount(drive: &Arc<impl ZonedDevice + 'static>) -> Result<BlueFs, bluefs::Error> {
    try_mount_with_pool(drive).map(|(_, fs)| fs)
}

/// Like [`mount`], with the pool of zones, from which a test may take some.
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

/// A copy of the drive as it is now, in the state that a kill of the process would leave.
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

/// A batch with the row `k<number>`, of `size` bytes, and the number as log data.
pub fn numbered(number: u32, size: usize) -> Batch {
    let mut batch = Batch::default();
    batch.put(&key(number), &vec![number as u8; size]);
    batch.log_data(&number.to_le_bytes());
    batch
}

pub fn key(number: u32) -> Vec<u8> {
    format!("k{number:08}").into_bytes()
}

/// The numbers of all rows, in order; asserts that the values are right.
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

/// A filter that records what it is shown, and stops the replay at a number.
pub struct StopAt {
    stop: Option<u32>,
    ends: Option<Ends>,
    seen: Arc<Mutex<Vec<Vec<u32>>>>,
}

/// For each batch that a filter was shown, the numbers in its log data.
pub type Seen = Arc<Mutex<Vec<Vec<u32>>>>;

/// For each batch, its log and the byte at which it ends there.
pub type Ends = Arc<Mutex<Vec<(String, u64)>>>;

/// A filter that records only where batches end.
pub fn ends() -> (Box<dyn ReplayFilter>, Ends) {
    let ends = Ends::default();
    let filter = StopAt {
        stop: None,
        ends: Some(ends.clone()),
        seen: Seen::default(),
    };
    (Box::new(filter), ends)
}

/// A filter that stops at a number, and the record of what it was shown.
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
