//! What is read through the cache, the readahead and many reads at once is what was written, in
//! every life of a file and of a zone.

#![allow(clippy::unwrap_used)]

mod support;

use bluefs::{BlueFs, Lifetime, MountOptions, Reader, Role};
use device::faults::{Fault, Faults, Plan};
use device::{FileDrive, MemoryDrive, ZonedDevice};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use support::{format, pool};
use zone::{Geometry, ZoneCommand, ZoneKind};

const BUDGET: u64 = 500 << 10;

fn geometry() -> Geometry {
    Geometry {
        block_size: 4096,
        zone_size: 256 << 10,
        zone_capacity: 256 << 10,
        zone_count: 40,
        conventional_zones: 2,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 0,
        max_active_zones: 0,
        max_append_bytes: 0,
    }
}

fn mounted<D: ZonedDevice + 'static>(device: Arc<D>, cache_bytes: u64) -> BlueFs {
    mounted_with(device, cache_bytes, false)
}

fn mounted_with<D: ZonedDevice + 'static>(
    device: Arc<D>,
    cache_bytes: u64,
    cache_writes: bool,
) -> BlueFs {
    format(&*device, Role::Alone);
    let options = MountOptions {
        cache_bytes,
        cache_writes,
        ..MountOptions::default()
    };
    let pool = pool(&*device);
    BlueFs::mount(device, pool, options).unwrap()
}

/// Numbers that are the same every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.below(256) as u8).collect()
    }
}

/// A file, by the name that it had last, and what is in it.
struct File {
    name: String,
    content: Vec<u8>,
    reader: Reader,
    /// Where it is read on in order.
    next: usize,
}

fn compare(file: &mut File, numbers: &mut Numbers) {
    let size = file.content.len();
    for _ in 0..6 {
        let from = numbers.below(size + 2000);
        let mut buffer = vec![0; 1 + numbers.below(40_000)];
        let got = file.reader.read_at(from as u64, &mut buffer).unwrap();
        let expected = file.content.get(from..).unwrap_or_default();
        let expected = &expected[..expected.len().min(buffer.len())];
        assert!(buffer[..got] == *expected, "{} at {from}", file.name);
    }
    for _ in 0..8 {
        let mut buffer = vec![0; 3000];
        let got = file.reader.read_at(file.next as u64, &mut buffer).unwrap();
        let expected = file.content.get(file.next..).unwrap_or_default();
        let expected = &expected[..expected.len().min(3000)];
        assert!(
            buffer[..got] == *expected,
            "{} in order, {}",
            file.name,
            file.next
        );
        file.next = if got < 3000 { 0 } else { file.next + got };
    }
    let mut buffers: Vec<_> = (0..8).map(|_| vec![0; numbers.below(9000)]).collect();
    let places: Vec<_> = (0..8).map(|_| numbers.below(size + 100)).collect();
    let mut reads: Vec<(u64, &mut [u8])> = places
        .iter()
        .zip(&mut buffers)
        .map(|(at, b)| (*at as u64, &mut b[..]))
        .collect();
    let got = file.reader.read_many(&mut reads);
    for ((at, buffer), got) in places.iter().zip(&buffers).zip(got) {
        let expected = file.content.get(*at..).unwrap_or_default();
        let expected = &expected[..expected.len().min(buffer.len())];
        assert!(
            buffer[..got.unwrap()] == *expected,
            "{} of many, {at}",
            file.name
        );
    }
}

/// Creates, appends, cuts, removes, renames and makes anew under old names, on a drive that is so
/// small that its zones are used again and again; with open readers of what has lost its name.
fn history(device: Arc<impl ZonedDevice + 'static>, cache_bytes: u64, steps: usize) {
    history_on(&mounted(device, cache_bytes), cache_bytes, steps);
}

fn history_on(fs: &BlueFs, cache_bytes: u64, steps: usize) {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut files: Vec<File> = Vec::new();
    let mut nameless: Vec<File> = Vec::new();
    for step in 0..steps {
        let name = format!("/{}.sst", numbers.below(8));
        let found = files.iter().position(|f| f.name == name);
        match (numbers.below(10), found) {
            (0..3, _) | (_, None) => {
                let length = numbers.below(300_000);
                let content = numbers.bytes(length);
                let mut writer = fs.create(&name).unwrap();
                writer.append(&content).unwrap();
                writer.sync().unwrap();
                let reader = fs.open(&name).unwrap();
                let fresh = File {
                    name,
                    content,
                    reader,
                    next: 0,
                };
                nameless.extend(found.map(|at| files.swap_remove(at)));
                files.push(fresh);
            }
            (3..5, Some(at)) => {
                let length = numbers.below(60_000);
                let more = numbers.bytes(length);
                let mut writer = fs.reopen(&name).unwrap();
                writer.append(&more).unwrap();
                files[at].content.extend(more);
                compare(&mut files[at], &mut numbers);
                writer.close().unwrap();
            }
            (5, Some(at)) => {
                let size = numbers.below(files[at].content.len() + 1);
                fs.truncate(&name, size as u64).unwrap();
                files[at].content.truncate(size);
            }
            (6, Some(at)) => {
                fs.delete(&name).unwrap();
                nameless.push(files.swap_remove(at));
            }
            (7, Some(at)) => {
                let to = format!("/{}.sst", numbers.below(8));
                fs.rename(&name, &to).unwrap();
                let mut moved = files.swap_remove(at);
                let over = files.iter().position(|f| f.name == to);
                nameless.extend(over.map(|at| files.swap_remove(at)));
                moved.name = to;
                files.push(moved);
            }
            (8, _) => drop(fs.reclaim().unwrap()),
            _ => fs.sync_metadata().unwrap(),
        }
        if nameless.len() > 3 {
            nameless.remove(0);
        }
        let all = files.len() + nameless.len();
        let which = numbers.below(all);
        if let Some(file) = files.iter_mut().chain(&mut nameless).nth(which) {
            compare(file, &mut numbers);
        }
        let held = fs.statistics().cache_bytes;
        assert!(held <= cache_bytes, "{held} bytes after step {step}");
    }
    files.iter_mut().for_each(|f| compare(f, &mut numbers));
    let statistics = fs.statistics();
    assert!(statistics.resets > steps as u64 / 10, "{statistics:?}");
    assert_eq!(
        statistics.cache_hits > 500,
        cache_bytes > 0,
        "{statistics:?}"
    );
}

#[test]
fn reads_through_the_cache_are_what_was_written() {
    history(
        Arc::new(MemoryDrive::new(geometry()).unwrap()),
        BUDGET,
        1200,
    );
}

#[test]
fn so_are_reads_of_what_was_kept_when_it_was_written() {
    let device = Arc::new(MemoryDrive::new(geometry()).unwrap());
    history_on(&mounted_with(device, BUDGET, true), BUDGET, 1200);
}

#[test]
fn young_files_are_read_from_memory_if_what_is_written_is_kept() {
    let device = Arc::new(device::stats::Stats::new(
        MemoryDrive::new(geometry()).unwrap(),
    ));
    let fs = mounted_with(device.clone(), 4 << 20, true);
    let content = Numbers(7).bytes(300_000);
    for (lifetime, is_kept) in [
        (Lifetime::Unknown, true),
        (Lifetime::Medium, true),
        (Lifetime::Long, false),
        (Lifetime::Extreme, false),
    ] {
        let mut writer = fs.create("/a.sst").unwrap();
        writer.set_lifetime(lifetime);
        // The second part begins in the middle of a run, which is then not there.
        let (first, second) = content.split_at(290_000);
        writer.append(first).unwrap();
        writer.sync().unwrap();
        writer.append(second).unwrap();
        writer.sync().unwrap();
        let before = device.snapshot().read.operations;
        let reader = fs.open("/a.sst").unwrap();
        for at_once in [4096, 270_000] {
            let mut buffer = vec![0; at_once];
            for at in (0..270_000).step_by(at_once) {
                let got = reader.read_at(at as u64, &mut buffer).unwrap();
                assert!(buffer[..got] == content[at..at + got], "{at} of {at_once}");
            }
        }
        let reads = device.snapshot().read.operations - before;
        assert_eq!(reads == 0, is_kept, "{lifetime:?}: {reads} reads");
        let mut all = vec![0; content.len()];
        assert_eq!(reader.read_at(0, &mut all).unwrap(), content.len());
        assert!(all == content);
    }
}

#[test]
fn reads_that_are_waited_for_later_are_what_was_written_whatever_files_they_are_of() {
    let directory = tempfile::tempdir().unwrap();
    let drive = FileDrive::create(directory.path().join("d"), &geometry(), "test").unwrap();
    for device in [
        Arc::new(drive) as Arc<dyn ZonedDevice>,
        Arc::new(MemoryDrive::new(geometry()).unwrap()),
    ] {
        let device = Arc::new(device);
        let fs = mounted(device.clone(), BUDGET);
        let mut numbers = Numbers(11);
        let files: Vec<_> = (0..5)
            .map(|i| {
                let content = numbers.bytes(40_000 + i * 90_000);
                let mut writer = fs.create(&format!("/{i}.sst")).unwrap();
                writer.append(&content).unwrap();
                writer.sync().unwrap();
                let path = format!("/{i}.sst");
                // Two readers of one file each.
                ([fs.open(&path).unwrap(), fs.open(&path).unwrap()], content)
            })
            .collect();
        for round in 0..20 {
            let pending: Vec<_> = (0..40)
                .map(|n| {
                    let (readers, content) = &files[numbers.below(files.len())];
                    let from = numbers.below(content.len() + 100);
                    let length = numbers.below(60_000);
                    let expected = content.get(from..).unwrap_or_default();
                    let expected = &expected[..length.min(expected.len())];
                    (readers[n % 2].read_later(from as u64, length), expected)
                })
                .collect();
            for (n, (read, expected)) in pending.into_iter().enumerate() {
                // Some that nobody waits for.
                if (n + round) % 7 > 0 {
                    assert!(read.wait().unwrap() == expected);
                }
            }
        }
        let late = files[0].0[0].read_later(0, 40_000);
        drop((files, fs));
        assert_eq!(late.wait().unwrap().len(), 40_000);
        // The thread has let go of the drive before it answered.
        assert_eq!(Arc::strong_count(&device), 1);
    }
}

#[test]
fn a_read_that_fails_fails_where_it_is_waited_for() {
    let device = Arc::new(Faults::new(MemoryDrive::new(geometry()).unwrap()));
    let fs = mounted(device.clone(), 0);
    let mut writer = fs.create("/a.sst").unwrap();
    writer.append(&[7; 100_000]).unwrap();
    writer.close().unwrap();
    let reader = fs.open("/a.sst").unwrap();
    let error = Fault::Io(std::io::ErrorKind::Other);
    device.add(Plan::at(ZoneCommand::Read, 1, error));
    let pending = [0, 50_000, 200_000].map(|at| reader.read_later(at, 100));
    let [first, second, behind] = pending.map(|read| read.wait());
    // Those that were handed over together with the one that failed are tried again.
    assert!(
        [&first, &second]
            .iter()
            .filter(|read| read.is_err())
            .count()
            <= 1
    );
    assert_eq!(behind.unwrap(), b"");
    assert_eq!(reader.read_later(0, 100).wait().unwrap(), [7; 100]);
    assert_eq!(fs.statistics().reads_later, 4);
}

#[test]
fn so_are_reads_without_one() {
    history(Arc::new(MemoryDrive::new(geometry()).unwrap()), 0, 500);
}

#[test]
fn so_are_reads_of_a_drive_in_a_file() {
    let directory = tempfile::tempdir().unwrap();
    for cache_bytes in [0, BUDGET] {
        let path = directory.path().join(cache_bytes.to_string());
        let drive = FileDrive::create(path, &geometry(), "test").unwrap();
        history(Arc::new(drive), cache_bytes, 150);
    }
}

/// Ends the readers, also if the writer fails.
struct End<'a>(&'a AtomicU64);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(1, Ordering::Release);
    }
}

#[test]
fn readers_of_a_file_that_is_cut_and_written_again_see_one_life_of_it() {
    const LENGTH: usize = 70_000;
    let device = Arc::new(MemoryDrive::new(geometry()).unwrap());
    let fs = mounted(device, BUDGET);
    fs.create("/a.sst").unwrap().close().unwrap();
    // Lives that have begun, and whose predecessors are gone.
    let (begun, alone) = (AtomicU64::new(0), AtomicU64::new(0));
    let byte = |life: u64, at: usize| (life * 31 + at as u64 * 7 + at as u64 / 256) as u8;
    let over = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for seed in 1..4 {
            let reader = fs.open("/a.sst").unwrap();
            let (begun, alone, over) = (&begun, &alone, &over);
            scope.spawn(move || {
                let mut numbers = Numbers(seed * 0x1234_5678_9abc);
                let mut in_order = 0;
                while over.load(Ordering::Acquire) == 0 {
                    let random = numbers.below(2) == 0;
                    let at = if random {
                        numbers.below(LENGTH)
                    } else {
                        in_order
                    };
                    let mut buffer = vec![0; 1 + numbers.below(5000)];
                    let first = alone.load(Ordering::Acquire);
                    let got = reader.read_at(at as u64, &mut buffer).unwrap();
                    let last = begun.load(Ordering::Acquire);
                    let is = |life: &u64| {
                        (at..)
                            .zip(&buffer[..got])
                            .all(|(i, b)| *b == byte(*life, i))
                    };
                    assert!((first..=last).any(|l| is(&l)), "{at} in {first} to {last}");
                    in_order = if got < buffer.len() { 0 } else { at + got };
                }
            });
        }
        let _end = End(&over);
        for life in 1..150 {
            begun.store(life, Ordering::Release);
            fs.truncate("/a.sst", 0).unwrap();
            alone.store(life, Ordering::Release);
            let content: Vec<u8> = (0..LENGTH).map(|at| byte(life, at)).collect();
            let mut writer = fs.reopen("/a.sst").unwrap();
            for part in content.chunks(9000) {
                writer.append(part).unwrap();
                writer.range_sync().unwrap();
            }
            writer.sync().unwrap();
        }
    });
}

#[test]
fn reads_in_order_leave_the_cache_to_others_and_need_few_commands() {
    let device = Arc::new(device::stats::Stats::new(
        MemoryDrive::new(geometry()).unwrap(),
    ));
    let fs = mounted(device.clone(), BUDGET);
    let content = Numbers(7).bytes(1 << 20);
    let mut writer = fs.create("/a.sst").unwrap();
    writer.append(&content).unwrap();
    writer.sync().unwrap();
    drop(writer);
    let reader = fs.open("/a.sst").unwrap();
    let mut buffer = vec![0; 4096];
    let commands = device.snapshot().read.operations;
    for at in (0..content.len()).step_by(4096) {
        reader.read_at(at as u64, &mut buffer).unwrap();
        assert!(buffer == content[at..at + 4096]);
    }
    let commands = device.snapshot().read.operations - commands;
    // Of 256 KiB at most, for so large are the zones, in two zones each.
    assert!(commands < 20, "{commands}");
    assert!(fs.statistics().cache_bytes < 40 << 10);
    // Neither do direct reads fill it.
    let direct = reader.uncached();
    let before = fs.statistics().cache_bytes;
    for at in [900_000, 100_000, 500_000, 300_000] {
        direct.read_at(at, &mut buffer).unwrap();
    }
    assert_eq!(fs.statistics().cache_bytes, before);
    fs.delete("/a.sst").unwrap();
    drop(direct);
    assert_eq!(fs.statistics().cache_bytes, 0);
}

#[test]
fn damage_in_a_piece_that_is_read_whole_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("drive");
    let content = Numbers(5).bytes(10_000);
    let drive = FileDrive::create(&path, &geometry(), "test").unwrap();
    let fs = mounted(Arc::new(drive), 0);
    let mut writer = fs.create("/CURRENT").unwrap();
    writer.append(&content).unwrap();
    writer.sync().unwrap();
    drop(writer);
    let mut image = std::fs::read(&path).unwrap();
    let at = image.windows(64).position(|w| w == &content[..64]).unwrap();
    image[at + 5000] ^= 1;
    std::fs::write(&path, image).unwrap();
    let error = support::read(&fs, "/CURRENT").unwrap_err();
    assert!(matches!(error, bluefs::Error::Corrupt { .. }), "{error}");
    let reader = fs.open("/CURRENT").unwrap();
    let mut buffer = vec![0; 4000];
    assert_eq!(reader.read_at(0, &mut buffer).unwrap(), 4000);
    assert!(buffer == content[..4000]);
}
