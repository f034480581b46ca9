//! Scenarios with reads at any offset.

use super::Suite;
use bluefs::Writer;

/// A plain file and a log, read while they grow, one read at a time and many at once.
pub(super) fn anywhere(suite: &mut Suite) {
    for path in ["/anywhere.sst", "/000007.log"] {
        suite.tree.insert(path, super::Content::new(0));
        let mut writer = suite.fs.create(path).unwrap();
        for step in 0..40 {
            grow(suite, path, &mut writer);
            if step % 3 == 0 {
                writer.sync().unwrap();
            }
            read_one(suite, path);
            if step % 4 == 0 {
                read_many(suite, path);
            }
        }
        writer.sync().unwrap();
        writer.close().unwrap();
    }
}

fn grow(suite: &mut Suite, path: &str, writer: &mut Writer) {
    let blocks = suite.block();
    let length = match suite.random.below(4) {
        0 => 1 + suite.random.below(100),
        1 => blocks * (1 + suite.random.below(4)),
        _ => suite.random.size(16 * blocks),
    };
    writer
        .append(&suite.tree.content(path).grow(length))
        .unwrap();
}

/// Reads at a random offset, up to and beyond the file's end.
fn read_one(suite: &mut Suite, path: &str) {
    let from = suite.random.below(suite.tree.content(path).length() + 3);
    let length = suite.random.size(100_000);
    read(suite, path, from, length);
}

fn read(suite: &mut Suite, path: &str, from: u64, length: u64) {
    let mut found = vec![0xee; length as usize];
    let reader = suite.fs.open(path).unwrap();
    let got = reader.read_at(from, &mut found).unwrap();
    let expected = suite.tree.content(path).bytes(from, length);
    assert!(found[..got] == expected, "{path} at {from}");
}

fn read_many(suite: &mut Suite, path: &str) {
    let content = suite.tree.content(path).clone();
    let count = 1 + suite.random.below(40);
    let random = &mut suite.random;
    let asked = (0..count).map(|_| (random.below(content.length() + 3), random.size(20_000)));
    let asked: Vec<(u64, u64)> = asked.collect();
    let mut buffers: Vec<Vec<u8>> = asked.iter().map(|(_, n)| vec![0xee; *n as usize]).collect();
    let places = asked.iter().zip(&mut buffers);
    let mut reads: Vec<(u64, &mut [u8])> = places.map(|((at, _), b)| (*at, &mut b[..])).collect();
    let got = suite.fs.open(path).unwrap().read_many(&mut reads);
    for (((from, length), found), got) in asked.iter().zip(&buffers).zip(got) {
        assert!(
            found[..got.unwrap()] == content.bytes(*from, *length),
            "{path} at {from}"
        );
    }
}

/// A file whose pieces lie in several zones; reads cross their borders.
pub(super) fn large(suite: &mut Suite) {
    let (path, length) = ("/large.sst", suite.zone() * 5 / 2 + 1234);
    suite.put(path, length).unwrap();
    let extents = suite.fs.extents(path).unwrap();
    assert!(
        extents
            .iter()
            .any(|extent| extent.at.zone != extents[0].at.zone)
    );
    for extent in &extents[1..] {
        read(suite, path, extent.file_offset - 1000, 2000);
    }
    for _ in 0..10 {
        read_one(suite, path);
        read_many(suite, path);
    }
    suite.compare();
    suite.delete(path);
}
