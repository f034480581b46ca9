//! A scenario with logs that are synced record by record, over stops without unmount.

use super::Suite;
use bluefs::Writer;

const LOGS: [&str; 3] = ["/MANIFEST-000001", "/000002.log", "/000003.log"];
const ROUNDS: u64 = 4;
const RECORDS: u64 = 25;

/// After a stop, a log holds at least the bytes that were synced, and only bytes that were written.
pub(super) fn logs(suite: &mut Suite) {
    for path in LOGS {
        suite.fs.create(path).unwrap().sync().unwrap();
        let content = suite.tree.new_content();
        suite.tree.insert(path, content);
    }
    for _ in 0..ROUNDS {
        let mut writers = LOGS.map(|path| suite.fs.reopen(path).unwrap());
        let mut synced = LOGS.map(|path| suite.tree.content(path).length());
        for _ in 0..RECORDS {
            let which = suite.random.below(3) as usize;
            append(suite, LOGS[which], &mut writers[which]);
            if suite.random.below(4) > 0 {
                writers[which].sync().unwrap();
                synced[which] = writers[which].size();
            }
        }
        // A plain file whose metadata is written between the records.
        suite.put("/000004.sst", 20_000).unwrap();
        drop(writers);
        suite.stop();
        for (path, synced) in LOGS.iter().zip(synced) {
            let size = suite.fs.metadata(path).unwrap().size;
            let stream = suite.tree.new_stream();
            let content = suite.tree.content(path);
            assert!(
                (synced..=content.length()).contains(&size),
                "{path}: {size}, {synced} synced"
            );
            content.truncate(size, stream);
        }
        suite.compare();
    }
    for path in LOGS {
        suite.delete(path);
    }
    suite.fs.sync_metadata().unwrap();
}

fn append(suite: &mut Suite, path: &str, writer: &mut Writer) {
    let length = suite.random.size(12_000);
    writer
        .append(&suite.tree.content(path).grow(length))
        .unwrap();
}
