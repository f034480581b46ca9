//! Errors planted in the database, one by one and several together: a check counts each exactly, and a repair removes
//! it.

use super::*;

/// Rows to put, or to delete where the value is `None`.
type Changes = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// An error of each kind that a check counts, and the changes of rows that make it.
fn errors(whole: &MemoryDrive) -> Vec<(&'static str, Changes)> {
    let source: Arc<dyn ZonedDevice> = Arc::new(whole.snapshot());
    let all = rows(&source, b"COHXBGZMTYS");
    let of = |kind: u8| all.iter().filter(move |(key, _)| key[0] == kind);
    let own: Vec<_> = of(b'X').filter(|(_, value)| value[0] == 1).collect();
    let nowhere = |key: &Row, kind: u8| [&[kind], &[0x77; 8][..], &key.0[9..]].concat();
    let first = |kind: u8| of(kind).next().unwrap().clone();
    let changes = |changes: &[(&[u8], Option<&[u8]>)]| {
        let owned =
            |(key, value): &(&[u8], Option<&[u8]>)| (key.to_vec(), value.map(<[u8]>::to_vec));
        changes.iter().map(owned).collect()
    };
    let leaked = nowhere(own[0], b'X');
    let (mut lost_map, object) = (first(b'O'), first(b'O'));
    lost_map.0.extend(b"-again");
    let (blob, cleaning, omap, free) = (first(b'B'), first(b'G'), first(b'M'), first(b'Z'));
    let mut counters = free.1.clone();
    counters[0] ^= 16;
    let references = {
        let mut value = blob.1.clone();
        value[20] += 1;
        value
    };
    let misplaced = {
        let (key, value) = first(b'H');
        let mut other = key.clone();
        other[6] ^= 1;
        (key, other, value)
    };
    let orphan = [b"M", &[0x77; 8][..], b"key"].concat();
    let inline = (b"Sinline_bytes".to_vec(), 5_u64.to_le_bytes());
    let damage = [&b"D"[..], &[0, 0, 0, 9], &[0; 8]].concat();
    vec![
        (
            "undecodable damage",
            changes(&[(&damage, Some(b"what is this?"))]),
        ),
        (
            "extent without an object",
            changes(&[(&leaked, Some(&own[0].1))]),
        ),
        (
            "map with two owners",
            changes(&[(&lost_map.0, Some(&own_onode(&all)))]),
        ),
        (
            "blob with other references than extents",
            changes(&[(&blob.0, Some(&references))]),
        ),
        (
            "object without a collection",
            changes(&[(&misplaced.0, None), (&misplaced.1, Some(&misplaced.2))]),
        ),
        (
            "omap key without an object",
            changes(&[(&orphan, Some(&omap.1))]),
        ),
        (
            "extent not in the cleaning index",
            changes(&[(&cleaning.0, None)]),
        ),
        (
            "freelist counts other live bytes",
            changes(&[(&free.0, Some(&counters))]),
        ),
        (
            "inline bytes counted wrong",
            changes(&[(&inline.0, Some(&inline.1))]),
        ),
        (
            "extents overlap in a zone",
            changes(&[(&own[0].0, Some(&twice(own[0], own[1])))]),
        ),
        ("end of an object is missing", changes(&[(&own[1].0, None)])),
        (
            "number that is in use",
            changes(&[(b"Snext_number", Some(&1_u64.to_le_bytes()))]),
        ),
        ("undecodable onode", changes(&[(&object.0, Some(b"?"))])),
    ]
}

fn write_all(device: &Arc<dyn ZonedDevice>, errors: &[&(&str, Changes)]) {
    let mut batch = Batch::default();
    for (key, value) in errors.iter().flat_map(|(_, changes)| changes) {
        match value {
            Some(value) => batch.put(key, value),
            None => batch.delete(key),
        }
    }
    write(device, &batch);
}

/// The counts of a check with these errors planted. Asserts that a repair asks before it gives anything up, removes all
/// errors, and loses at most two objects for each.
fn count_and_repair(
    whole: &MemoryDrive,
    before: &Objects,
    errors: &[&(&str, Changes)],
) -> BTreeMap<String, u64> {
    let kinds: Vec<&str> = errors.iter().map(|(kind, _)| *kind).collect();
    let what = kinds.join(", ");
    let device: Arc<dyn ZonedDevice> = Arc::new(whole.snapshot());
    write_all(&device, errors);
    let store = mount(&device);
    let counted = count(&store);
    store.unmount().unwrap();
    drop(store);
    let mut asked = 0;
    let refuse = &mut |_: &[store::GivenUp]| {
        asked += 1;
        false
    };
    let refused = Store::repair(device.clone(), &options(), refuse, &mut |_, _| {});
    assert_eq!((asked, refused.unwrap().is_done), (1, false), "{what}");
    let report = repair(&device);
    assert!(!report.repaired.is_empty(), "{what}: {report:?}");
    let store = assert_repaired(&device, &what);
    let after = objects(&store);
    let changed = before
        .iter()
        .filter(|(name, bytes)| after.get(*name) != Some(bytes));
    assert!(
        changed.count() <= 2 * errors.len(),
        "{what}: {:?}",
        report.given_up
    );
    counted
}

#[test]
fn every_kind_that_a_check_counts_is_planted_counted_and_repaired() {
    let (whole, before) = drive();
    let errors = errors(&whole);
    let mut alone = BTreeMap::new();
    for error in &errors {
        let counted = count_and_repair(&whole, &before, &[error]);
        assert_eq!(counted.get(error.0), Some(&1), "{}: {counted:?}", error.0);
        alone.insert(error.0, counted);
    }
    // Several errors in different rows: a kind that only one of them makes is counted once.
    let mut random = Rng::with_seed(seed() + 2);
    for _ in 0..10 {
        let mut some: Vec<&(&str, Changes)> = Vec::new();
        for _ in 0..random.usize(2..6) {
            let error = &errors[random.usize(..errors.len())];
            let has = |key: &Vec<u8>| some.iter().any(|(_, c)| c.iter().any(|(k, _)| k == key));
            if !error.1.iter().any(|(key, _)| has(key)) {
                some.push(error);
            }
        }
        let counted = count_and_repair(&whole, &before, &some);
        for (kind, _) in &some {
            let makers = some
                .iter()
                .filter(|(other, _)| alone[other].contains_key(*kind));
            if makers.count() == 1 {
                assert_eq!(counted.get(*kind), Some(&1), "{kind}: {counted:?}");
            }
        }
    }
}

/// The onode of an object with bytes in one map.
fn own_onode(all: &[Row]) -> Vec<u8> {
    let has_one_map = |value: &[u8]| value[20..24] == 1_u32.to_le_bytes();
    let mut onodes = all
        .iter()
        .filter(|(key, value)| key[0] == b'O' && has_one_map(value));
    onodes.next().unwrap().1.clone()
}

/// The value of `row` with its blob moved to where the blob of `other` begins.
fn twice(row: &Row, other: &Row) -> Vec<u8> {
    // Layout of a value: kind, skip, length; codec and kinds, raw bytes, number of fragments; zone, length, offset.
    let (zone, offset) = (24..28, 32..40);
    let mut value = row.1.clone();
    value[zone.clone()].copy_from_slice(&other.1[zone]);
    value[offset.clone()].copy_from_slice(&other.1[offset]);
    value
}
