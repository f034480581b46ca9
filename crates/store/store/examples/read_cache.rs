//! Reads of a hot set by way of the store's cache beside the same reads from the host's page cache, on a drive file:
//! processor time, which other work on the machine hardly changes, as medians of rounds in alternation.
//!
//!     cargo run --release -p store --example read_cache -- DIRECTORY [ROUNDS]

use device::{FileDrive, ZonedDevice};
use kv_rocksdb::RocksDb;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use store::{Attributes, ChecksumKind, MkfsOptions, MountOptions, Store, Transaction};
use zone::{Geometry, ZoneKind};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const MIB: u64 = 1 << 20;
/// The hot set.
const BYTES: u64 = 256 * MIB;
const HELD: u64 = 2 * BYTES;
const READS: usize = 20_000;

fn geometry() -> Geometry {
    Geometry {
        block_size: 4096,
        zone_size: 64 * MIB,
        zone_capacity: 64 * MIB,
        zone_count: 64,
        conventional_zones: 4,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 128,
        max_active_zones: 0,
        max_append_bytes: 0,
    }
}

fn mount(path: &Path, data_cache_bytes: u64, checksum: ChecksumKind) -> Result<Store> {
    let device: Arc<dyn ZonedDevice> = Arc::new(FileDrive::open(path)?);
    let mut options = MountOptions {
        data_cache_bytes,
        ..MountOptions::new(RocksDb)
    };
    options.data.checksum = checksum;
    Ok(Store::mount(device, options)?)
}

/// A drive with objects of `size`.
fn fill(path: &Path, size: u64, checksum: ChecksumKind) -> Result<u64> {
    let device: Arc<dyn ZonedDevice> = Arc::new(FileDrive::create(path, &geometry(), "bench")?);
    Store::mkfs(device.clone(), &MkfsOptions::new(RocksDb))?;
    drop(device);
    let store = mount(path, 0, checksum)?;
    let mut transaction = Transaction::new();
    transaction.create_collection("c", Attributes::new());
    store.commit(transaction)?;
    let count = (BYTES / size).min(20_000);
    let mut random = fastrand::Rng::with_seed(1);
    let mut bytes = vec![0; size as usize];
    for number in 0..count {
        random.fill(&mut bytes);
        let mut writer = store.writer(Some(size))?;
        writer.write(&bytes)?;
        let mut transaction = Transaction::new();
        transaction.put("c", number.to_string(), writer.finish()?, Attributes::new());
        drop(store.commit_readable(transaction)?);
    }
    store.unmount()?;
    Ok(count)
}

/// Seconds of processors that this process has taken, in its own code and in the kernel's.
fn processor_time() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    let ticks = after_name.split(' ').skip(11).take(2);
    let ticks: f64 = ticks.filter_map(|field| field.parse::<f64>().ok()).sum();
    // A tick is a hundredth of a second for all programs.
    Ok(ticks / 100.0)
}

/// Microseconds of processors for a read of `length` bytes of a random object of these, by so many threads.
fn time(store: &Store, count: u64, size: u64, length: u64, threads: u64) -> Result<f64> {
    let begun = processor_time()?;
    std::thread::scope(|scope| {
        let reader = |seed| {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut target = vec![0; length as usize];
            for _ in 0..READS {
                let object = store.open("c", random.u64(0..count).to_string())?;
                let at = random.u64(0..=(size - length) / 4096) * 4096;
                object.read_at(at, &mut target)?;
            }
            Ok(())
        };
        let readers: Vec<_> = (0..threads)
            .map(|seed| scope.spawn(move || reader(seed)))
            .collect();
        let mut done = readers.into_iter().map(|reader| reader.join());
        done.try_for_each(|done| done.unwrap_or_else(|_| Err("a reader failed".into())))
    })
    .and_then(|()| Ok((processor_time()? - begun) * 1e6 / (READS as f64 * threads as f64)))
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, ..] = &arguments[..] else {
        return Err("name a directory for the drive".into());
    };
    let rounds: usize = arguments.get(1).map_or(Ok(7), |rounds| rounds.parse())?;
    println!(
        "processor time of a read, µs: host's page cache; the store's cache, all hits; its cache of a 16th, nearly all misses"
    );
    for (size, length, checksum, threads) in [
        (4096 * 4, 4096 * 4, ChecksumKind::Crc32c, 1),
        (65_536, 65_536, ChecksumKind::Crc32c, 1),
        (65_536, 65_536, ChecksumKind::None, 1),
        (65_536, 65_536, ChecksumKind::Crc32c, 2),
        (MIB, MIB, ChecksumKind::Crc32c, 1),
        (MIB, 4096, ChecksumKind::Crc32c, 1),
    ] {
        let path = Path::new(directory).join("read_cache.zoned");
        let _ = std::fs::remove_file(&path);
        let count = fill(&path, size, checksum)?;
        let mut times = [const { Vec::new() }; 3];
        let mut hits = [0.0; 3];
        let mut memory = (0, 0);
        for round in 0..=rounds {
            for way in 0..3 {
                let way = (way + round) % 3;
                let budget = [0, HELD, count * size / 16][way];
                let store = mount(&path, budget, checksum)?;
                time(&store, count, size, length, threads)?;
                let before = store.caches()?.data;
                let took = time(&store, count, size, length, threads)?;
                let now = store.caches()?.data;
                let (found, lost) = (now.hits - before.hits, now.misses - before.misses);
                hits[way] = found as f64 / (found + lost).max(1) as f64;
                if way == 1 {
                    memory = (now.held_bytes / MIB, resident());
                }
                if round > 0 {
                    times[way].push(took);
                }
                store.unmount()?;
            }
        }
        let ratio = |way: usize| {
            let pairs = times[way].iter().zip(&times[0]);
            median(pairs.map(|(with, without)| with / without).collect())
        };
        let (all_hits, misses) = (ratio(1), ratio(2));
        let [page, ours, missing] = times.map(median);
        println!(
            "{length} of {size} bytes, {checksum:?}, {threads} threads: {page:.1}; {ours:.1} ({all_hits:.2}, {:.1} % hits); \
             {missing:.1} ({misses:.2}, {:.1} % hits); held {} MiB, resident {} MiB",
            hits[1] * 100.0,
            hits[2] * 100.0,
            memory.0,
            memory.1
        );
    }
    Ok(())
}
