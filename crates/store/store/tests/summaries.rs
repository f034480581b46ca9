//! Segment summaries: every row about data in zones has a copy in a data zone, from which objects can be recovered
//! without the database. Summaries take a bounded share of the space.

#[path = "../src/format/tests/columns.rs"]
mod columns;

use crate::common;
use crate::common::{contents, create_collection, geometry, mkfs, mount, pattern, put, written};
use device::{MemoryDrive, ZonedDevice};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{Attributes, FsckReport, Store, Transaction};
use zone::{ZoneAddress, ZoneId};

const OBJECT: usize = 64 << 10;

fn drive(zones: u32) -> Arc<dyn ZonedDevice> {
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry(zones)).unwrap());
    mkfs(&device);
    device
}

fn checked(store: &Store) -> FsckReport {
    let report = store.fsck(true, &mut |_, _| {}).unwrap();
    assert!(report.is_clean(), "{:#?}", report.details);
    report
}

/// Unmounts, which writes a summary for all rows that wait for one, and mounts again.
fn again(store: Store, device: &Arc<dyn ZonedDevice>) -> Store {
    store.unmount().unwrap();
    mount(device)
}

/// Commits a random change; some change only names, not data.
fn change(store: &Store, random: &mut fastrand::Rng) -> store::Result<()> {
    let name = |random: &mut fastrand::Rng| format!("object-{}", random.u32(..40));
    let (a, b) = (name(random), name(random));
    // Small data is stored inline, as whole objects, ends and middles.
    let size = match random.bool() {
        true => random.usize(1..2500),
        false => random.usize(4096..3 * OBJECT),
    };
    let data = written(store, &pattern(random.u64(..), size))?;
    let mut tx = Transaction::new();
    match random.u32(..10) {
        0 => tx.remove("c", &a),
        1 => tx.rename(("c", &a), ("c", &b)),
        2 => tx.clone_object(("c", &a), ("c", &b)),
        3 => tx.append("c", &a, data),
        4 => tx.truncate("c", &a, random.u64(..2 * OBJECT as u64)),
        5 => tx.punch("c", &a, random.u64(..OBJECT as u64), OBJECT as u64),
        6 => tx.assemble("c", &a, &[("c", &b)], Attributes::new()),
        7 => tx.write("c", &a, random.u64(..OBJECT as u64), data),
        _ => tx.put("c", &a, data, Attributes::from([("k".into(), b.into())])),
    };
    match store.commit(tx) {
        Err(store::Error::NoObject { .. } | store::Error::Invalid { .. }) => Ok(()),
        done => done,
    }
}

#[test]
fn every_row_has_a_copy_whatever_is_changed_and_cleaned() {
    let mut random = fastrand::Rng::with_seed(common::seed());
    let device = drive(96);
    let mut store = mount(&device);
    create_collection(&store);
    for round in 0..4 {
        for _ in 0..150 {
            change(&store, &mut random).unwrap();
        }
        for _ in 0..round * 8 {
            store.clean_one().unwrap();
        }
        store = again(store, &device);
        let report = checked(&store);
        assert!(report.summaries > 0);
        assert_eq!(report.rows_without_copy, 0, "round {round}");
    }
    assert!(store.clean_status().zones_cleaned == 0);
    store.seal_open_zones().unwrap();
    while store.clean_one().unwrap() {}
    let store = again(store, &device);
    assert_eq!(checked(&store).rows_without_copy, 0);
}

/// A decoder of its own, written from the format document, gathers rows from the summaries in data zones and rebuilds
/// all objects from these rows.
#[test]
fn objects_can_be_put_together_from_data_zones_alone() {
    let device = drive(64);
    let store = mount(&device);
    create_collection(&store);
    for index in 0..200 {
        let data = pattern(index, 4097 + (index as usize * 977) % (2 * OBJECT));
        put(&store, &format!("object-{}", index % 90), &data).unwrap();
    }
    for index in 0..10 {
        let (from, to) = (format!("object-{index}"), format!("renamed-{index}"));
        let mut tx = Transaction::new();
        tx.rename(("c", &from), ("c", &to));
        store.commit(tx).unwrap();
        let mut tx = Transaction::new();
        tx.remove("c", format!("object-{}", 20 + index));
        store.commit(tx).unwrap();
    }
    store.seal_open_zones().unwrap();
    for _ in 0..6 {
        store.clean_one().unwrap();
    }
    let store = again(store, &device);
    let zones: Vec<_> = store.zones().iter().map(|used| used.zone).collect();
    let expected = contents(&store);
    store.unmount().unwrap();
    let rows = rows_in(&*device, &zones);
    let found = objects_of(&*device, &rows);
    assert!(
        found.keys().eq(expected.keys()),
        "{:?} {:?}",
        found.keys(),
        expected.keys()
    );
    assert!(found == expected);
}

#[test]
fn they_take_less_than_a_thousandth_of_objects_of_64_kib() {
    let device = drive(160);
    let store = mount(&device);
    create_collection(&store);
    for index in 0..1500_u32 {
        let name = format!(
            "photos/2026/11/IMG_{:08x}.jpeg",
            index.wrapping_mul(0x9e37_79b9_u32)
        );
        put(&store, &name, &pattern(index.into(), OBJECT)).unwrap();
    }
    let report = checked(&store);
    let live: u64 = store.zones().iter().map(|used| used.live_bytes).sum();
    let written: u64 = store.zones().iter().map(|used| used.written_bytes).sum();
    assert_eq!(live, 1500 * OBJECT as u64);
    let summaries = written - live;
    println!(
        "{summaries} bytes of {live}, {} summaries",
        report.summaries
    );
    assert!(report.summaries >= 3);
    assert!(summaries * 1000 <= live, "{summaries} of {live}");
}

/// Attributes as the S3 server keeps them for an object that a usual client has put: `etag` is an MD5, the checksum is
/// CRC32's or, with `sha`, SHA-256's.
fn as_of_s3(random: &mut fastrand::Rng, sha: bool) -> Attributes {
    let hex = |random: &mut fastrand::Rng| random.digit(16).to_ascii_lowercase();
    let mut text = |digits, is_hex| -> String {
        let digit = |_| {
            if is_hex {
                hex(random)
            } else {
                random.alphanumeric()
            }
        };
        (0..digits).map(digit).collect()
    };
    let checksum = match sha {
        true => format!("SHA256:{}=", text(43, false)),
        false => format!("CRC32:{}==", text(6, false)),
    };
    let (etag, mtime) = (text(32, true), random.u64(..30_000_000_000_000_000));
    let (seconds, nanos) = (1_700_000_000 + mtime / 1_000_000_000, mtime % 1_000_000_000);
    let of = |name: &str, value: &str| (name.to_owned(), value.as_bytes().to_vec());
    Attributes::from([
        of("etag", &etag),
        of("checksum", &checksum),
        of("content-type", "image/jpeg"),
        of("meta:mode", "33188"),
        of("meta:uid", "1000"),
        of("meta:gid", "1000"),
        of("meta:mtime", &format!("{seconds}.{nanos:09}")),
    ])
}

/// Bytes of summaries for a million bytes of data, in objects of `size` bytes with those of the S3 attributes that
/// `is_kept` selects.
fn parts_per_million(size: usize, count: u32, sha: bool, is_kept: impl Fn(&str) -> bool) -> u64 {
    let device = drive(160);
    let store = mount(&device);
    create_collection(&store);
    let mut random = fastrand::Rng::with_seed(common::seed());
    for index in 0..count {
        let data = written(&store, &pattern(index.into(), size)).unwrap();
        let name = format!("photos/2026/11/IMG_{index:06}.jpeg");
        let mut tx = Transaction::new();
        let mut attributes = as_of_s3(&mut random, sha);
        attributes.retain(|name, _| is_kept(name));
        tx.put("c", name, data, attributes);
        store.commit(tx).unwrap();
    }
    // The unmount writes the rows that wait, as the next objects would.
    let store = again(store, &device);
    checked(&store);
    let live: u64 = store.zones().iter().map(|used| used.live_bytes).sum();
    let written: u64 = store.zones().iter().map(|used| used.written_bytes).sum();
    let part = (written - live) * 1_000_000 / live;
    println!("{size} bytes, sha {sha}: {part} parts per million");
    part
}

#[test]
fn they_take_less_than_a_thousandth_with_all_that_s3_keeps() {
    for (size, count, most) in [
        (OBJECT, 1500, 800),
        (4 * OBJECT, 450, 300),
        (16 * OBJECT, 110, 200),
    ] {
        let part = parts_per_million(size, count, false, |_| true);
        assert!(part <= most, "{size}: {part}");
    }
    // An MD5 and a SHA-256 are 48 of 65 bytes by themselves.
    assert!(parts_per_million(OBJECT, 1500, true, |_| true) <= 1300);
    assert!(parts_per_million(2 * OBJECT, 800, true, |_| true) <= 1000);
    let is_digest = |name: &str| matches!(name, "etag" | "checksum");
    assert!(parts_per_million(OBJECT, 1500, true, |name| !is_digest(name)) <= 500);
    assert!(parts_per_million(OBJECT, 1500, true, |_| false) <= 300);
}

#[test]
fn a_full_drive_holds_what_it_promises_and_rows_wait_for_a_place() {
    let device = drive(160);
    let store = mount(&device);
    create_collection(&store);
    let mut random = fastrand::Rng::with_seed(common::seed());
    let promised = store.statfs().available_bytes;
    let mut count = 0u64;
    let error = loop {
        match put(&store, &format!("o{count}"), &pattern(count, OBJECT)) {
            Ok(()) => count += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, store::Error::NoSpace { .. }), "{error}");
    // Summaries take a thousandth, and the metadata may have taken some zones.
    let (stored, full) = (count * OBJECT as u64, store.statfs());
    assert!(full.available_bytes < OBJECT as u64);
    assert!(stored + (6 << 20) >= promised, "{stored} of {promised}");
    for _ in 0..common::rounds() * count {
        let name = format!("o{}", random.u64(..count));
        let mut tx = Transaction::new();
        tx.remove_if_present("c", &name);
        store.commit(tx).unwrap();
        put(&store, &name, &pattern(random.u64(..), OBJECT)).unwrap();
    }
    let before = contents(&store);
    let store = again(store, &device);
    let report = checked(&store);
    // The reset of a zone of 1 MiB needs a block of summary for a few rows, and summaries may take one block in 1,024:
    // at least a third of the rows has a copy.
    let rows = report.objects + report.extents;
    assert!(report.rows_without_copy < rows / 3 * 2, "{report:?}");
    assert!(contents(&store) == before);
}

/// The longest name and the most attributes that an object may have.
#[test]
fn attributes_at_their_limits_keep_no_row_from_its_copy() {
    let device = drive(160);
    let store = mount(&device);
    create_collection(&store);
    let most = usize::from(u16::MAX);
    let long = Attributes::from([("n".repeat(most), Vec::new())]);
    let many = (0..most).map(|n| (n.to_string(), Vec::new())).collect();
    for (name, attributes) in [("long", long), ("many", many)] {
        let mut tx = Transaction::new();
        let data = written(&store, &pattern(1, OBJECT)).unwrap();
        tx.put("c", name, data, attributes);
        store.commit(tx).unwrap();
    }
    for index in 0..300 {
        put(&store, &format!("object-{index}"), &pattern(index, OBJECT)).unwrap();
    }
    let store = again(store, &device);
    let report = checked(&store);
    assert!(report.summaries > 2, "{report:?}");
    assert_eq!(report.rows_without_copy, 0);
    let zones: Vec<_> = store.zones().iter().map(|used| used.zone).collect();
    let expected = contents(&store);
    let rows = rows_in(&*device, &zones);
    assert!(objects_of(&*device, &rows) == expected);
}

#[test]
fn a_summary_that_cannot_be_read_costs_nothing_but_the_copy() {
    let device = drive(64);
    let store = mount(&device);
    create_collection(&store);
    for index in 0..60 {
        put(&store, &format!("o{index}"), &pattern(index, OBJECT)).unwrap();
    }
    let store = again(store, &device);
    let zone = store.zones().last().unwrap().zone;
    let before = contents(&store);
    store.unmount().unwrap();
    // Writes the zone again with the same bytes, but with its summaries overwritten.
    let end = device.report_zone(zone).unwrap().write_pointer;
    let start = device.geometry().start(zone);
    let mut bytes = vec![0; end as usize];
    device.read(start, &mut bytes).unwrap();
    device.reset(zone).unwrap();
    for block in bytes.chunks_mut(4096) {
        if block.starts_with(b"ZSSEGSUM") {
            block.fill(0xa5);
        }
    }
    device.write(start, &bytes).unwrap();
    let store = mount(&device);
    let report = checked(&store);
    assert!(report.summaries_unreadable > 0 && report.rows_without_copy > 0);
    for index in 0..30 {
        let mut tx = Transaction::new();
        tx.remove("c", format!("o{index}"));
        store.commit(tx).unwrap();
    }
    store.seal_open_zones().unwrap();
    while store.clean_one().unwrap() {}
    let after = contents(&store);
    assert!(after.iter().all(|(name, bytes)| before[name] == *bytes) && after.len() == 30);
}

/// Before a zone is reset, the rows of its summaries become durable in summaries of other zones.
#[test]
fn rows_outlive_their_zone_without_an_unmount() {
    let device = drive(96);
    let store = mount(&device);
    create_collection(&store);
    for index in 0..400 {
        // Enough attributes that most zones have a summary.
        let random = Attributes::from([("random".to_owned(), pattern(index, 48))]);
        let data = written(&store, &pattern(index, OBJECT)).unwrap();
        let mut tx = Transaction::new();
        tx.put("c", format!("o{index}"), data, random);
        store.commit(tx).unwrap();
    }
    let store = again(store, &device);
    // Rows that were too few for a summary at the unmount.
    assert!(store.copy_uncopied(|_| true).unwrap());
    for index in (0..400).filter(|index| index % 8 > 0) {
        let mut tx = Transaction::new();
        tx.remove("c", format!("o{index}"));
        store.commit(tx).unwrap();
    }
    store.seal_open_zones().unwrap();
    while store.clean_one().unwrap() {}
    assert!(store.clean_status().zones_cleaned > 10);
    drop(store);
    let store = mount(&device);
    assert_eq!(checked(&store).rows_without_copy, 0);
}

/// Rows that change again and again leave summaries without any current row; these take no space from objects.
#[test]
fn changes_of_metadata_take_no_space_from_objects() {
    let device = drive(96);
    let store = mount(&device);
    create_collection(&store);
    for index in 0..20 {
        put(&store, &format!("o{index}"), &pattern(index, OBJECT)).unwrap();
    }
    let before = store.statfs().available_bytes;
    let mut random = fastrand::Rng::with_seed(common::seed());
    for change in 0..4_000 {
        let mut value = vec![0; 2_000];
        random.fill(&mut value);
        let mut tx = Transaction::new();
        let set = Attributes::from([("k".to_owned(), value)]);
        tx.update_attributes("c", format!("o{}", change % 20), set, &[]);
        store.commit(tx).unwrap();
    }
    let written: u64 = store.zones().iter().map(|used| used.written_bytes).sum();
    assert!(written < 22 * OBJECT as u64 + before / 500, "{written}");
    // The metadata may hold some zones more or fewer than before, once the database has deleted what it compacted. Only a
    // failing test waits long.
    let available = |_| {
        store.bluefs().sync_metadata().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1));
        store.statfs().available_bytes
    };
    let mut waiting = (0..60_000).map(available);
    let after = waiting.find(|after| after + (8 << 20) >= before);
    let after = after.unwrap_or_else(|| panic!("{:?} of {before}", store.statfs()));
    let mut index = 100;
    while put(&store, &format!("o{index}"), &pattern(index, OBJECT)).is_ok() {
        index += 1;
    }
    assert!((index - 100) * OBJECT as u64 + (8 << 20) >= after);
    checked(&store);
}

#[test]
fn what_was_replaced_by_a_small_object_is_not_found() {
    let device = drive(64);
    let store = mount(&device);
    create_collection(&store);
    put(&store, "stays", &pattern(1, OBJECT)).unwrap();
    put(&store, "shrinks", &pattern(2, OBJECT)).unwrap();
    let store = again(store, &device);
    put(&store, "shrinks", b"small").unwrap();
    let store = again(store, &device);
    let zones: Vec<_> = store.zones().iter().map(|used| used.zone).collect();
    let found = objects_of(&*device, &rows_in(&*device, &zones));
    assert_eq!(found.keys().collect::<Vec<_>>(), ["stays"]);
}

/// A little-endian number.
fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |n, byte| (n << 8) + u64::from(*byte))
}

/// The latest value of each key: the one in the summary with the highest sequence.
fn rows_in(device: &dyn ZonedDevice, zones: &[ZoneId]) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut latest: BTreeMap<Vec<u8>, (u64, Option<Vec<u8>>)> = BTreeMap::new();
    for zone in zones {
        let end = device.report_zone(*zone).unwrap().write_pointer;
        let mut bytes = vec![0; end as usize];
        let start = device.geometry().start(*zone);
        device.read(start, &mut bytes).unwrap();
        for at in (0..bytes.len()).step_by(4096) {
            let summary = &bytes[at..];
            if !summary.starts_with(b"ZSSEGSUM") {
                continue;
            }
            assert_eq!(summary[16..32], [7; 16]);
            let sequence = number(&summary[32..40]);
            let (count, raw) = (number(&summary[40..44]), number(&summary[44..48]));
            let packed = number(&summary[48..52]) as usize;
            assert_eq!(summary[8..12], [2, 0, 0, 0]);
            let stored = &summary[64..64 + packed];
            for (key, value) in columns::rows(stored, count, raw).unwrap() {
                let newest = latest.entry(key).or_default();
                if newest.0 < sequence {
                    *newest = (sequence, value);
                }
            }
        }
    }
    let rows = latest.into_iter();
    rows.filter_map(|(key, (_, value))| Some((key, value?)))
        .collect()
}

/// The objects of collection 1 that consist of own blobs.
fn objects_of(
    device: &dyn ZonedDevice,
    rows: &BTreeMap<Vec<u8>, Vec<u8>>,
) -> BTreeMap<String, Vec<u8>> {
    let mut objects = BTreeMap::new();
    for (key, onode) in rows
        .iter()
        .filter(|(key, _)| key.starts_with(b"O\0\0\0\x01"))
    {
        let mut bytes = Vec::new();
        for segment in onode[24..].chunks(24).take(number(&onode[20..24]) as usize) {
            let (map, length) = (number(&segment[..8]), number(&segment[16..24]));
            let first = [b"X", &map.to_be_bytes()[..]].concat();
            for (key, extent) in rows.range(first.clone()..) {
                if !key.starts_with(&first) || bytes.len() as u64 >= length {
                    break;
                }
                assert_eq!(extent[0], 1, "an own blob");
                let fragments = number(&extent[20..24]) as usize;
                for fragment in extent[24..].chunks(16).take(fragments) {
                    let zone = ZoneId(number(&fragment[..4]) as u32);
                    let at = ZoneAddress::new(zone, number(&fragment[8..16]));
                    let stored = number(&fragment[4..8]) as usize;
                    let mut blocks = vec![0; stored.next_multiple_of(4096)];
                    device
                        .read(device.geometry().absolute(at), &mut blocks)
                        .unwrap();
                    bytes.extend_from_slice(&blocks[..stored]);
                }
            }
        }
        let name = String::from_utf8(key[5..].to_vec()).unwrap();
        objects.insert(name, bytes);
    }
    objects
}
