//! Scenarios in which space is used, freed and used again.

use super::{Suite, is_no_space};

/// Many files share zones, and every second one is deleted.
pub(super) fn small(suite: &mut Suite) {
    suite.directory("/small");
    for n in 0..80 {
        let length = suite.random.size(20_000);
        suite.put(&format!("/small/{n:03}.sst"), length).unwrap();
    }
    suite.compare();
    for n in (0..80).step_by(2) {
        suite.delete(&format!("/small/{n:03}.sst"));
    }
    suite.fs.sync_metadata().unwrap();
}

/// Files replace each other until several times the capacity has been written: zones have to be reset, and live data
/// has to be moved. No file is refused.
pub(super) fn churn(suite: &mut Suite) {
    suite.directory("/churn");
    let fits = suite.fs.usage().capacity_bytes;
    let (target, all) = (fits * 7 / 10, fits * u64::from(suite.options.churn));
    let (mut written, mut live) = (0, Vec::new());
    while written < all {
        let length = suite.random.size(suite.zone() * 6 / 10);
        while suite.tree.bytes() + length + 4096 * live.len() as u64 > target && !live.is_empty() {
            let index = suite.random.below(live.len() as u64) as usize;
            let path: String = live.swap_remove(index);
            suite.delete(&path);
        }
        let path = format!("/churn/{written:012}.sst");
        suite.put(&path, length).unwrap();
        live.push(path);
        written += length;
    }
    suite.compare();
    suite.clear("/churn");
}

/// The file system holds as much as it reports, and refuses more without harm to its files. Deleted space can be used
/// again.
pub(super) fn full(suite: &mut Suite) {
    suite.directory("/full");
    let length = suite.zone() * 45 / 100;
    let fits = suite.fs.usage().capacity_bytes * 9 / 10;
    let path = |n: u64| format!("/full/{n:03}.sst");
    let mut count = 0;
    let refused = loop {
        let before = suite.tree.bytes();
        let put = suite.put(&path(count), length);
        if put.is_err() {
            assert!(
                before + length > fits,
                "refused at {before} of {fits} bytes"
            );
            break put;
        }
        count += 1;
    };
    assert!(is_no_space(&refused), "{refused:?}");
    // Small files may be refused as well; neither result may do harm.
    for n in 0..5 {
        let put = suite.put(&format!("/full/small{n}"), 3000);
        assert!(put.is_ok() || is_no_space(&put), "{put:?}");
    }
    suite.rest();
    for n in (0..count).step_by(2) {
        suite.delete(&path(n));
    }
    suite.fs.sync_metadata().unwrap();
    for n in (0..count - 1).step_by(2) {
        let before = suite.tree.bytes();
        if let Err(error) = suite.put(&path(n), length) {
            // More had been stored than the reported capacity; the same amount may not fit with another placement of
            // files.
            let much = before + length > fits;
            assert!(much, "{error} at {before} of {fits} bytes");
            break;
        }
    }
    suite.compare();
    suite.clear("/full");
}
