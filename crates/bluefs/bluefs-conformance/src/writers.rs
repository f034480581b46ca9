//! A scenario with many writers at once, on a drive that allows few active zones.

use super::random::Random;
use super::{Content, LIFETIMES, Suite};
use bluefs::BlueFs;

const THREADS: u64 = 8;
const FILES: u64 = 4;

/// Each thread has a directory of its own, and two open files at any time, one of them a log. No writer is refused for
/// lack of an active zone.
pub(super) fn writers(suite: &mut Suite) {
    let mut streams = Vec::new();
    for thread in 0..THREADS {
        suite.directory(&format!("/w{thread}"));
        streams.push(suite.tree.new_stream() << 32 | suite.random.below(1 << 32));
    }
    let fs = &suite.fs;
    let most = (suite.device.geometry().zone_capacity / 16).min(200_000);
    let kept: Vec<Vec<(String, Content)>> = runtime::thread::scope(|scope| {
        let threads = (0..THREADS).zip(&streams);
        let spawned: Vec<_> = threads
            .map(|(thread, stream)| scope.spawn(move || write(fs, thread, *stream, most)))
            .collect();
        spawned
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    for (path, content) in kept.into_iter().flatten() {
        suite.tree.insert(&path, content);
    }
    suite.compare();
    for thread in 0..THREADS {
        suite.clear(&format!("/w{thread}"));
    }
}

/// Writes, reads and deletes files; returns those that are left.
fn write(fs: &BlueFs, thread: u64, stream: u64, most: u64) -> Vec<(String, Content)> {
    let mut random = Random::new(stream);
    let log_path = format!("/w{thread}/000001.log");
    let mut log = fs.create(&log_path).unwrap();
    let mut log_content = Content::new(stream);
    let mut kept = Vec::new();
    for n in 0..FILES {
        let path = format!("/w{thread}/{n}.sst");
        let mut content = Content::new(stream + 1 + n);
        let mut writer = fs.create(&path).unwrap();
        writer.set_lifetime(LIFETIMES[(thread + n) as usize % 4]);
        for _ in 0..4 {
            writer.append(&content.grow(random.size(most))).unwrap();
            log.append(&log_content.grow(random.size(3000))).unwrap();
            log.sync().unwrap();
        }
        writer.sync().unwrap();
        writer.close().unwrap();
        content.compare(&path, &fs.open(&path).unwrap(), &mut random);
        if n % 2 == 0 {
            fs.delete(&path).unwrap();
        } else {
            kept.push((path, content));
        }
    }
    log.close().unwrap();
    kept.push((log_path, log_content));
    kept
}
