//! A long history of files whose contents are read all the time: in order, at random, and many ranges at once.

use super::*;

/// A file with an open reader, its last name, and its expected content.
struct File {
    name: String,
    content: Vec<u8>,
    reader: Reader,
    /// Offset of the next read in order.
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

/// Creates, appends, truncates, removes, renames and recreates files under old names, on a drive so small that its
/// zones are reused again and again. Files that have lost their names keep open readers.
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
        let held = fs.statistics().cache.held_bytes;
        assert!(held <= cache_bytes, "{held} bytes after step {step}");
    }
    files.iter_mut().for_each(|f| compare(f, &mut numbers));
    let statistics = fs.statistics();
    assert!(statistics.resets > steps as u64 / 10, "{statistics:?}");
    assert_eq!(
        statistics.cache.hits > 500,
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
