//! Power cuts under RocksDB itself: histories of operations on a drive in memory, cut at the drive commands that they
//! cause. Each state that a cut may leave is mounted, the database opened and compared: all writes acknowledged as
//! durable are there, the rows are those after a prefix of the writes, the check of the file system is clean, and the
//! database can be written to.
//!
//! RocksDB works in its own threads, so a history may cause other commands each time it is run. The expectation for a
//! state therefore comes only from the answers within the run that was cut.
//!
//! `ZONESTORE_CRASH_STATES=n` checks n states for each cut, `ZONESTORE_CRASH_POINTS=n` n cuts of each long history (0:
//! all of them), `ZONESTORE_CRASH_HISTORIES=n` n of these histories.

#![allow(clippy::unwrap_used)]

mod support;

use device::power_cut::{CrashLimits, PowerCut};
use device::{MemoryDrive, ZonedDevice};
use kv::{Batch, Durability, Kv, Options};
use kv_rocksdb::RocksDb;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::{format, geometry, mount, options, try_mount};
use zone::Geometry;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Op {
    /// Writes a batch of two rows, the larger of this many bytes.
    Put(usize),
    SyncPut(usize),
    Delete,
    SyncDelete,
    Flush,
    Compact,
    /// Closes the database and opens it on the same mount.
    Reopen,
    /// Closes the database, unmounts, mounts, and opens it again.
    Remount,
}

/// Two writes of the first kind exceed the MiB of a log that BlueFS keeps in memory, which causes writes without a
/// flush.
const PAIRED: [Op; 7] = [
    Op::Put(600_000),
    Op::SyncPut(5_000),
    Op::Delete,
    Op::Flush,
    Op::Compact,
    Op::Reopen,
    Op::Remount,
];

/// Number of histories that are run at once. RocksDB's threads serve all databases of a process, and a thread that
/// finds its drive failed sleeps for a second.
const AT_ONCE: usize = 16;
const TESTS: usize = 3;

type Rows = BTreeMap<Vec<u8>, Arc<[u8]>>;

/// The rows after each write, no two of them alike. A power cut may leave those after write `durable` or a later one.
#[derive(Clone)]
struct History {
    after: Vec<Rows>,
    durable: usize,
}

impl History {
    fn now(&self) -> &Rows {
        &self.after[self.after.len() - 1]
    }

    /// A batch of two rows, so that half a batch is noticed: `last`, whose value differs in each write, and one of five
    /// others.
    fn put(&mut self, size: usize) -> Batch {
        let write = self.after.len();
        let other = format!("row{}", write % 5).into_bytes();
        let mut rows = self.now().clone();
        let mut batch = Batch::default();
        for (key, size) in [(b"last".to_vec(), 24), (other, size)] {
            let value = pattern(write, size);
            batch.put(&key, &value);
            rows.insert(key, value);
        }
        self.after.push(rows);
        batch
    }

    /// Removes the last row in order of keys, which is seldom `last`.
    fn delete(&mut self) -> Batch {
        let mut rows = self.now().clone();
        let mut batch = Batch::default();
        if let Some((key, _)) = rows.pop_last() {
            batch.delete(&key);
        }
        self.after.push(rows);
        batch
    }

    /// Marks all writes so far as durable.
    fn acknowledge(&mut self) {
        self.durable = self.after.len() - 1;
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

fn pattern(seed: usize, size: usize) -> Arc<[u8]> {
    let mut random = Random(seed as u64);
    let words = std::iter::repeat_with(|| random.next().to_le_bytes());
    words.take(size.div_ceil(8)).flatten().take(size).collect()
}

/// An open database on a drive whose power may be cut.
struct Machine<'a> {
    drive: Arc<PowerCut>,
    options: &'a Options,
    fs: bluefs::BlueFs,
    kv: Option<Kv>,
    /// The operations so far, with the drive's command counts before and after each, for messages.
    told: String,
}

impl<'a> Machine<'a> {
    fn start(drive: Arc<PowerCut>, options: &'a Options) -> Self {
        let fs = mount(&drive);
        let kv = Some(Kv::open(&RocksDb, &fs, "/db", options, None).unwrap());
        Self {
            drive,
            options,
            fs,
            kv,
            told: String::new(),
        }
    }

    /// Carries out an operation and adds its outcome to the history; false if the power was cut.
    fn step(&mut self, history: &mut History, op: Op) -> bool {
        let before = self.drive.operation_count();
        let done = self.try_step(history, op);
        let after = self.drive.operation_count();
        write!(self.told, "{op:?}: commands {before} to {after}; ").unwrap();
        if let Err(error) = &done {
            assert!(self.drive.is_cut(), "{}{error}", self.told);
        }
        done.is_ok()
    }

    fn try_step(
        &mut self,
        history: &mut History,
        op: Op,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let kv = self.kv.take().unwrap();
        let done = match op {
            Op::Put(size) => kv.write(&history.put(size), Durability::Buffered),
            Op::Delete => kv.write(&history.delete(), Durability::Buffered),
            Op::SyncPut(size) => kv.write(&history.put(size), Durability::Synced),
            Op::SyncDelete => kv.write(&history.delete(), Durability::Synced),
            Op::Flush => kv.flush(),
            Op::Compact => kv.compact(),
            Op::Reopen | Op::Remount => {
                kv.close()?;
                if op == Op::Remount {
                    self.fs.unmount()?;
                    history.acknowledge();
                    self.fs = try_mount(&self.drive)?;
                }
                self.kv = Some(Kv::open(&RocksDb, &self.fs, "/db", self.options, None)?);
                history.acknowledge();
                return Ok(());
            }
        };
        self.kv = Some(kv);
        done?;
        if !matches!(op, Op::Put(_) | Op::Delete) {
            history.acknowledge();
        }
        Ok(())
    }
}

fn contents(kv: &Kv) -> Rows {
    let rows = kv.scan(b"", None).map(Result::unwrap);
    rows.map(|(key, value)| (key, value.into())).collect()
}

/// Opens the state that a cut left, compares it with the history, and writes more.
fn examine(image: MemoryDrive, history: &History, options: &Options, told: &dyn Fn() -> String) {
    let image = Arc::new(image);
    let fs = try_mount(&image).unwrap_or_else(|e| panic!("{e}; {}", told()));
    let check = |when: &str| {
        let report = fs.check(true).unwrap();
        assert!(report.is_clean(), "{when}: {report:?}; {}", told());
    };
    check("mounted");
    let open = || {
        Kv::open(&RocksDb, &fs, "/db", options, None).unwrap_or_else(|e| panic!("{e}; {}", told()))
    };
    let kv = open();
    let found = contents(&kv);
    let (lost, kept) = history.after.split_at(history.durable);
    if !kept.contains(&found) {
        let wrong = match lost.iter().position(|rows| *rows == found) {
            Some(write) => format!(
                "only {write} of {} durable writes are there",
                history.durable
            ),
            None => {
                let rows: Vec<_> = found
                    .iter()
                    .map(|(k, v)| (k.escape_ascii(), v.len()))
                    .collect();
                format!("no first so many writes are {rows:?}")
            }
        };
        panic!("{wrong}; {}", told());
    }
    let mut further = History {
        after: vec![found],
        durable: 0,
    };
    for batch in [further.put(700), further.delete()] {
        let done = kv.write(&batch, Durability::Synced);
        done.unwrap_or_else(|e| panic!("{e}; {}", told()));
    }
    drop(kv);
    assert!(
        contents(&open()) == *further.now(),
        "afterwards; {}",
        told()
    );
    check("afterwards");
}

/// The drive and the database options with which histories are run.
struct Setting {
    geometry: Geometry,
    options: Options,
}

impl Setting {
    /// Options with memtables of `write_buffer_bytes` bytes and as few threads as RocksDB works with.
    fn new(conventional_zones: u32, active_zones: u32, write_buffer_bytes: u64) -> Self {
        let geometry = Geometry {
            zone_count: 64,
            conventional_zones,
            max_open_zones: active_zones,
            max_active_zones: active_zones,
            ..geometry()
        };
        let options = Options {
            create_if_missing: false,
            write_buffer_bytes,
            max_background_jobs: 1,
            ..options()
        };
        Self { geometry, options }
    }

    /// A drive with rows in the bottom level, in level 0 and in the log, and the history of these writes.
    fn base(&self) -> (PowerCut, History) {
        let drive = Arc::new(PowerCut::new(self.geometry.clone()).unwrap());
        format(&*drive);
        let many_threads = Options {
            max_background_jobs: (4 * TESTS * AT_ONCE) as i32,
            ..options()
        };
        drop(Kv::open(&RocksDb, &mount(&drive), "/db", &many_threads, None).unwrap());
        let mut machine = Machine::start(drive.clone(), &self.options);
        let mut history = History {
            after: vec![Rows::new()],
            durable: 0,
        };
        for op in [
            Op::SyncPut(40_000),
            Op::SyncPut(300),
            Op::Flush,
            Op::Compact,
            Op::SyncPut(9_000),
            Op::Flush,
            Op::SyncPut(100),
            Op::SyncPut(2_000),
        ] {
            assert!(machine.step(&mut history, op));
        }
        drop(machine);
        drive.flush().unwrap();
        (copy(&drive), history)
    }
}

/// A copy of the drive, if everything on it is durable.
fn copy(drive: &PowerCut) -> PowerCut {
    let limits = CrashLimits {
        max_states: 1,
        ..CrashLimits::default()
    };
    drive.restart(&drive.crash_states(limits)[0])
}

struct Counts {
    histories: usize,
    points: AtomicUsize,
    states: AtomicUsize,
}

fn number(name: &str, default: usize) -> usize {
    let given = std::env::var(name).ok().and_then(|v| v.parse().ok());
    given.unwrap_or(default)
}

/// Runs `steps` with the power cut at command `point` and checks the states after the cut, unless it was within the
/// first `seen` steps. False if the steps ended before the cut.
fn cut_at(
    point: u64,
    (steps, seen): (&[Op], usize),
    setting: &Setting,
    base: &(PowerCut, History),
    counts: &Counts,
) -> bool {
    let drive = Arc::new(copy(&base.0));
    let mut history = base.1.clone();
    let mut machine = Machine::start(drive.clone(), &setting.options);
    drive.cut_after(point);
    let done = (steps.iter())
        .take_while(|op| machine.step(&mut history, **op))
        .count();
    let was_cut = drive.is_cut();
    // Also cut when all steps are done: data that was not flushed may be lost.
    drive.cut_after(0);
    let told = std::mem::take(&mut machine.told);
    drop(machine);
    if done < seen {
        return was_cut;
    }
    counts.points.fetch_add(1, Ordering::Relaxed);
    let limits = CrashLimits {
        max_states: number("ZONESTORE_CRASH_STATES", 3),
        seed: point.wrapping_add((number("ZONESTORE_SEED", 0) as u64) << 32),
        ..CrashLimits::default()
    };
    for state in drive.crash_states(limits) {
        counts.states.fetch_add(1, Ordering::Relaxed);
        let told = || format!("{steps:?}, cut at {point}, {told}left {state:?}");
        examine(drive.image(&state), &history, &setting.options, &told);
    }
    was_cut
}

/// Cuts each history at every command, or at `most_points` random ones if that is not 0. Cuts within a beginning that
/// an earlier history has too are skipped.
fn enumerate(name: &str, setting: &Setting, histories: &[Vec<Op>], most_points: usize) {
    let base = setting.base();
    let counts = Counts {
        histories: histories.len(),
        points: AtomicUsize::new(0),
        states: AtomicUsize::new(0),
    };
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(steps) = histories.get(index) else {
                        return;
                    };
                    let alike = |other: &Vec<Op>| {
                        other.iter().zip(steps).take_while(|(a, b)| a == b).count()
                    };
                    let seen = match most_points {
                        0 => histories[..index].iter().map(alike).max().unwrap_or(0),
                        _ => 0,
                    };
                    let cut_at = |point| cut_at(point, (steps, seen), setting, &base, &counts);
                    if most_points == 0 {
                        let _all = (1..).find(|point| !cut_at(*point));
                    } else {
                        let commands = commands(steps, setting, &base);
                        let mut random = Random(index as u64);
                        for _ in 0..most_points {
                            cut_at(1 + random.below(commands) as u64);
                        }
                        cut_at(u64::MAX);
                    }
                }
            });
        }
    });
    let (points, states) = (counts.points.into_inner(), counts.states.into_inner());
    println!(
        "{name}: {} histories, {points} crash points, {states} states opened and compared",
        counts.histories
    );
    assert!(states > points && points > 3 * counts.histories);
}

/// The approximate number of commands that `steps` cause.
fn commands(steps: &[Op], setting: &Setting, base: &(PowerCut, History)) -> usize {
    let drive = Arc::new(copy(&base.0));
    let mut history = base.1.clone();
    let mut machine = Machine::start(drive.clone(), &setting.options);
    let before = drive.operation_count();
    assert!(steps.iter().all(|op| machine.step(&mut history, *op)));
    let commands = (drive.operation_count() - before) as usize;
    assert!(contents(machine.kv.as_ref().unwrap()) == *history.now());
    commands
}

#[test]
fn every_pair_of_operations() {
    let pairs: Vec<_> = PAIRED
        .iter()
        .flat_map(|a| PAIRED.map(|b| vec![*a, b]))
        .collect();
    // Memtables are large enough that only a flush operation writes one out.
    enumerate("pairs", &Setting::new(4, 0, 16 << 20), &pairs, 0);
}

/// `count` random histories of `length` operations out of `of`.
fn drawn(count: usize, length: usize, of: &[Op]) -> Vec<Vec<Op>> {
    let history = |seed| {
        let mut random = Random(seed + ((number("ZONESTORE_SEED", 0) as u64) << 32));
        (0..length).map(|_| of[random.below(of.len())]).collect()
    };
    (1..=count as u64).map(history).collect()
}

#[test]
fn longer_histories() {
    let count = number("ZONESTORE_CRASH_HISTORIES", 12);
    let ops = [
        &PAIRED[..],
        &[Op::Put(90), Op::SyncDelete, Op::Put(300_000)],
    ]
    .concat();
    let setting = Setting::new(0, 8, 16 << 20);
    enumerate(
        "longer",
        &setting,
        &drawn(count, 12, &ops),
        number("ZONESTORE_CRASH_POINTS", 12),
    );
}

/// Memtables fill up, and RocksDB flushes and compacts by itself during the history. Every write is synced, for of
/// buffered writes RocksDB may then lose some from the middle, see [`Durability::Buffered`].
#[test]
fn histories_that_fill_memtables() {
    let count = number("ZONESTORE_CRASH_HISTORIES", 12);
    let ops = [
        Op::SyncPut(300_000),
        Op::SyncPut(200_000),
        Op::SyncPut(250_000),
        Op::SyncPut(4_000),
        Op::SyncDelete,
        Op::Flush,
        Op::Reopen,
    ];
    let setting = Setting::new(0, 8, 1 << 19);
    enumerate(
        "memtables",
        &setting,
        &drawn(count, 16, &ops),
        number("ZONESTORE_CRASH_POINTS", 12),
    );
}
