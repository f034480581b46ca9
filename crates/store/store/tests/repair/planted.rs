//! Errors that are planted one by one.

use super::*;

#[test]
fn every_kind_that_a_check_counts_is_planted_counted_and_repaired() {
    let (whole, before) = drive();
    let source: Arc<dyn ZonedDevice> = Arc::new(whole.snapshot());
    let all = rows(&source, b"COHXBGZMTYS");
    let of = |kind: u8| all.iter().filter(move |(key, _)| key[0] == kind);
    let own: Vec<_> = of(b'X').filter(|(_, value)| value[0] == 1).collect();
    let nowhere = |key: &Row, kind: u8| [&[kind], &[0x77; 8][..], &key.0[9..]].concat();
    let first = |kind: u8| of(kind).next().unwrap().clone();
    let batch = |changes: &[(&[u8], Option<&[u8]>)]| {
        let mut batch = Batch::default();
        for (key, value) in changes {
            match value {
                Some(value) => batch.put(key, value),
                None => batch.delete(key),
            }
        }
        batch
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
    let planted = [
        (
            "undecodable damage",
            batch(&[(&damage, Some(b"what is this?"))]),
        ),
        (
            "extent without an object",
            batch(&[(&leaked, Some(&own[0].1))]),
        ),
        (
            "map with two owners",
            batch(&[(&lost_map.0, Some(&own_onode(&all)))]),
        ),
        (
            "blob with other references than extents",
            batch(&[(&blob.0, Some(&references))]),
        ),
        (
            "object without a collection",
            batch(&[(&misplaced.0, None), (&misplaced.1, Some(&misplaced.2))]),
        ),
        (
            "omap key without an object",
            batch(&[(&orphan, Some(&omap.1))]),
        ),
        (
            "extent not in the cleaning index",
            batch(&[(&cleaning.0, None)]),
        ),
        (
            "freelist counts other live bytes",
            batch(&[(&free.0, Some(&counters))]),
        ),
        (
            "inline bytes counted wrong",
            batch(&[(&inline.0, Some(&inline.1))]),
        ),
        (
            "extents overlap in a zone",
            batch(&[(&own[0].0, Some(&twice(own[0], own[1])))]),
        ),
        ("end of an object is missing", batch(&[(&own[1].0, None)])),
        (
            "number that is in use",
            batch(&[(b"Snext_number", Some(&1_u64.to_le_bytes()))]),
        ),
        ("undecodable onode", batch(&[(&object.0, Some(b"?"))])),
    ];
    for (kind, batch) in &planted {
        let device: Arc<dyn ZonedDevice> = Arc::new(whole.snapshot());
        write(&device, batch);
        let store = mount(&device);
        let counted = count(&store);
        assert!(counted.contains_key(*kind), "{kind}: {counted:?}");
        store.unmount().unwrap();
        drop(store);
        let mut asked = 0;
        let refused = Store::repair(device.clone(), &options(), &mut |_| {
            asked += 1;
            false
        });
        assert_eq!((asked, refused.unwrap().is_done), (1, false), "{kind}");
        let report = repair(&device);
        assert!(!report.repaired.is_empty(), "{kind}: {report:?}");
        let store = assert_repaired(&device, kind);
        let after = objects(&store);
        let changed = before
            .iter()
            .filter(|(name, bytes)| after.get(*name) != Some(bytes));
        assert!(changed.count() <= 2, "{kind}: {:?}", report.given_up);
    }
}

/// The onode of an object with bytes.
fn own_onode(all: &[Row]) -> Vec<u8> {
    let mut onodes = all
        .iter()
        .filter(|(key, value)| key[0] == b'O' && value.len() > 50);
    onodes.next().unwrap().1.clone()
}

/// An extent as before, but its blob begins where another's does.
fn twice(row: &Row, other: &Row) -> Vec<u8> {
    // Kind, skip, length; codec and kinds, raw bytes, number of fragments; zone, length, offset.
    let (zone, offset) = (24..28, 32..40);
    let mut value = row.1.clone();
    value[zone.clone()].copy_from_slice(&other.1[zone]);
    value[offset.clone()].copy_from_slice(&other.1[offset]);
    value
}
